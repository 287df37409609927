"""Derive dependencies from constituents by rules: English in the style of the Penn Treebank, the Chinese Treebank, or a file.

In each constituent one child is the head child. The head words of the other children depend on the head word of the head
child. So the result is one projective tree, and each constituent has exactly one word whose head is outside it. A joint tree
needs just this. The rules stand in english_rules.txt and chinese_rules.txt, with the meaning of every arc label. A file of the
same form has the rules of another language (`--heads FILE`, see book/treebanks.md): only its table `heads` is needed.

**Head children.** A rule searches the children of a constituent from one side. It lists ranks of categories, the best rank
first, and takes the first child of the best rank that is present. Categories inside one rank are equal. Coordination needs no
rule of its own: a "first" category takes its first conjunct (VP and VP), a "last" one its last (NP and NP).

For English the convention is that of Yamada and Matsumoto (2003), "Statistical dependency analysis with support vector
machines", which goes back to Magerman and Collins: the head of a VP is the finite verb or the modal, the head of a PP is the
preposition, the head of an SBAR is the complementiser or the relative pronoun, and a possessive 's is the head of its NP. We
found the order of the categories by counting, in all of NLTK's `treebank` and `dependency_treebank`, which child is preferred
to which sibling. So agreement with those heads (tests/treebank/test_heads.py) is a regression test, not a measure of quality.
For the categories and tags that only CRAFT has (NML, CIT, HEADING, HYPH, ...) we decided ourselves.

For Chinese (Xue et al. 2005; Xia 2000 for the tags) the guidelines do not name the head child of every phrase; there we chose
it. The verb is the head of its VP, and so are 把 and 被. Phrases of nouns, measure words, localisers and 的 have their head on
the right, a PP has it on the left. The head of a clause is its VP, or 的 (DEC) if it has one.

**Arc labels** are our own, because the treebanks whose heads we reproduce have none. A paper that uses their scores should say
so. The label of an arc is the first of these that applies: punctuation; coordination; the role that the function tags of the
dependent name (table `roles`); the first line that fits of the table `arcs`, which looks at the parent, the head child, the
other child and its side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import read_text, strip_function
from lalkit.treebank.conllu import PENN
from lalkit.treebank.text import is_chinese
from lalkit.treebank.tree import Node

Arcs = tuple[tuple[int, ...], tuple[str, ...]]  # heads (from 1; 0 is the root), arc labels
COMMAS = frozenset({",", ":"})
BETWEEN = frozenset("`` '' -LRB- -RRB- RB ADVP PRN INTJ".split())  # may stand next to the comma or coordinator
# The tables of a file of rules, and the number of cells in their rows.
CELLS = {"groups": 2, "labels": 2, "heads": 3, "roles": 2, "roles of the parent": 2, "arcs": 5, "alike": 1}
FORM = "Rules stand in tables as in lalkit/treebank/english_rules.txt: [heads], then lines like NP | last | NOUN > NP."
# Of the constituents with several children, the share without a rule: 4 % in the worst part of an English treebank (CRAFT, dev),
# 25 % in the worst ten sentences in a row, 56 % for English rules on Chinese trees.
MOST_UNKNOWN = 1 / 3


def read_tables(file: Path) -> dict[str, list[list[str]]]:
    """Return the tables of a file of rules by name, as rows of cells, with groups replaced by members. Raises TreebankError."""
    tables: dict[str, list[list[str]]] = {name: [] for name in CELLS}
    table = ""
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if line.startswith("["):
            table = line.strip("[] ")
        elif line.strip() and not line.startswith("#"):
            groups = dict(tables["groups"])
            cells = [" ".join(groups.get(word, word) for word in cell.split()) for cell in line.split("|")]
            if CELLS.get(table) != len(cells) or (table == "heads" and cells[1] not in ("first", "last")):
                problem = f"{line.strip()!r} is no line of the table [{table}]"
                raise TreebankError(problem, FORM, where=f"{file}, line {number}")
            tables[table].append(cells)
    if not tables["heads"]:
        raise TreebankError("there are no head rules", FORM, where=str(file))
    return tables


class Rules:
    """The head rules and arc labels of one language, from a file.

    Some groups have a meaning of their own. never: tags that are a head only if all siblings are such tags. seldom: categories
    that are a head only if a rank names them, or if there are no other children, apart from those in `never`. compounds:
    categories whose head is the part after the last HYPH, if they have one. coordinators; between: categories that may stand
    between two conjuncts. The table `roles of the parent`: parents in which this role (or any) is that of the parent itself.
    """

    def __init__(self, file: Path):
        tables = read_tables(file)
        self.groups = {name: frozenset(members.split()) for name, members in tables["groups"]}
        groups = (self.groups.get(name, frozenset()) for name in ("never", "seldom", "compounds", "coordinators"))
        self.never, self.seldom, self.compounds, self.coordinators = groups
        self.heads = {
            parent: (side, [rank.split() for rank in ranks.split(">")])
            for parents, side, ranks in tables["heads"]
            for parent in parents.split()
        }
        self.labels, self.roles = dict(tables["labels"]), dict(tables["roles"])
        self.of_the_parent = {(p, role) for parents, role in tables["roles of the parent"] for p in parents.split()}
        self.arcs = [(label, [cell.split() for cell in cells]) for label, *cells in tables["arcs"]]
        self.alike = {name: frozenset(group.split()) for (group,) in tables["alike"] for name in group.split()}
        self.look_up = cache(self._look_up)

    def head_child(self, node: Node) -> tuple[int, bool]:
        """Return the index of the head among the children of a constituent, and whether a rule names it.

        Function tags and indices do not matter.
        """
        if len(node.children) == 1:
            return 0, True
        parent, categories = strip_function(node.label), [strip_function(child.label) for child in node.children]
        side, ranks = self.heads.get(parent, ("last", []))
        end = 0 if side == "first" else -1
        candidates = [i for i, category in enumerate(categories) if category not in self.never]
        usual = [i for i in candidates if categories[i] not in self.seldom]
        if parent in self.compounds and (after := [i for i in usual if i > 0 and categories[i - 1] == "HYPH"]):
            return after[-1], True
        for rank in ranks:
            if best := [i for i in candidates if categories[i] in rank]:
                return best[end], True
        return (usual or candidates or range(len(categories)))[end], ranks == [[]]

    def arc_label(self, parent: Node, head: int, child: int) -> str:
        """Return the label of the arc from the head word of parent.children[head] to that of parent.children[child]."""
        categories = [strip_function(node.label) for node in parent.children]
        node, category, above = parent.children[child], categories[child], strip_function(parent.label)
        if category in self.never:
            return "P"
        if category in self.coordinators:
            return "CC"
        role = self.role(node)
        if label := self.coordination(above, categories, head, child, role == self.role(parent.children[head])):
            return label
        if role and self.of_the_parent.isdisjoint([(above, role), (above, "")]):
            return role
        if above in self.groups.get("nominal", ()) and category in ("NP", "NML") and node.leaves()[-1].label == "POS":
            return "POSS"
        return self.look_up(above, categories[head], category, "left" if child < head else "right")

    def role(self, node: Node) -> str:
        """Return the role that the function tags of a constituent name, or ""."""
        tags = function_tags(node.label)
        return next((label for tag, label in self.roles.items() if tag in tags), "")

    def coordination(self, parent: str, categories: Sequence[str], head: int, child: int, same_role: bool) -> str:
        """Return COORD if the child is a conjunct of the head child, else "". same_role: of child and head child.

        Both must be of the same kind (table `alike`). Between them there must be a coordinator or punctuation, and besides only
        more conjuncts and the group `between`.
        """
        between, marks = set(categories[min(head, child) + 1 : max(head, child)]), self.coordinators | self.never
        alike = {categories[head]} | self.alike.get(categories[head], set())
        separated = between & marks and between <= alike | marks | self.groups.get("between", set())
        return "COORD" if categories[child] in alike and separated else ""

    def _look_up(self, parent: str, head: str, child: str, side: str) -> str:
        """Return the label of the first line of the table `arcs` that fits, or DEP. An empty cell fits anything."""
        names = (parent, head, child, side)
        fits = (label for label, cells in self.arcs if all(not c or name in c for c, name in zip(cells, names)))
        return next(fits, "DEP")


@cache
def function_tags(label: str) -> list[str]:
    """Return the function tags and indices of a label: NP-SBJ=2 -> SBJ, 2."""
    return re.split(r"[-=|]", label)[1:]


class English(Rules):
    """The rules for English, with roles one level deeper, and conjuncts beside a comma or coordinator. In english_rules.txt, a
    number before a phrase, (FRAG (LST 1 .) (NP Methods)), is not its head, and the VBG is the head of the ADJP NN HYPH VBG."""

    def role(self, node: Node) -> str:
        """Return the role that the function tags of a constituent name, or "".

        Two roles stand one level too deep in the treebank. A PP around an -LGS phrase is itself the by-phrase. A clause of
        which only a predicate is left (make it [S [ADJP-PRD easy]], with a trace as subject) is that predicate.
        """
        if node.is_leaf:
            return ""
        category, below = strip_function(node.label), [function_tags(child.label) for child in node.children]
        deeper = {"PP": "LGS", "S": "PRD" if len(below) == 1 else ""}.get(category, "")
        return super().role(node) or (deeper if any(deeper in tags for tags in below) else "")

    def coordination(self, parent: str, categories: Sequence[str], head: int, child: int, same_role: bool) -> str:
        """Return COORD or APPO if the child can be a conjunct of the head child, and a coordinator or comma stands next to
        it; else "".

        Next to it: on the side of the head; adverbs and quotes may stand between. A colon counts as a comma.
        """
        if parent != "UCP" and categories[child] not in self.alike.get(categories[head], categories[head : head + 1]):
            return ""
        step = 1 if child < head else -1
        neighbours, i = set(), child + step
        while i != head and categories[i] in BETWEEN | self.coordinators | COMMAS:
            neighbours.add(categories[i])
            i += step
        if neighbours & self.coordinators:
            return "COORD"
        if not neighbours & COMMAS:
            return ""
        if not self.coordinators.isdisjoint(categories[1:]):  # a, b and c: only a comma stands next to b
            return "COORD"
        if not same_role:  # (S (S-ADV ...) , (S ...)) is subordination
            return ""
        return "APPO" if parent in self.groups["nominal"] else "COORD"


FOLDER = Path(__file__).parent
ENGLISH, CHINESE = English(FOLDER / "english_rules.txt"), Rules(FOLDER / "chinese_rules.txt")


class Heads:
    """Derive the dependencies of trees by rules, and count the constituents whose head no rule names.

    rules: None for the Chinese rules where a tree is Chinese, else the English ones. A tree is Chinese if all its tags are
    those of the Chinese Treebank, and at least one tag is found in no other tag set, or most words are Chinese.
    """

    def __init__(self, rules: Rules | None = None):
        self.rules, self.constituents, self.unknown, self.tags = rules, 0, Counter[str](), Counter[str]()

    def __call__(self, tree: Node) -> Arcs:
        """Return heads and arc labels of a cleaned tree.

        Raises TreebankError for Chinese words with other tags: English rules would give wrong heads without a warning.
        """
        if self.rules:
            return dependencies(tree, self.rules, self)
        leaves = tree.leaves()
        tags = {strip_function(leaf.label) for leaf in leaves}
        unknown = tags - CHINESE.groups["tags"]
        mostly_chinese = 2 * sum(is_chinese(leaf.word) for leaf in leaves) > len(leaves)
        if mostly_chinese and unknown:
            problem = f"there are no head rules for Chinese with the tags {', '.join(sorted(unknown)[:5])}"
            raise TreebankError(problem, "Give a .conllu file, tags of the Chinese Treebank, or rules (--heads FILE).")
        chinese = not unknown and (mostly_chinese or tags & CHINESE.groups["typical"])
        self.tags.update(strip_function(leaf.label) for leaf in leaves if not chinese)
        return dependencies(tree, CHINESE if chinese else ENGLISH, self)

    @property
    def guessed(self) -> str:
        """One line, if the rules are not made for these trees: no rule names the heads of many, or English ones the tags."""
        tags = Counter({tag: count for tag, count in self.tags.items() if tag not in PENN})
        kinds = (self.constituents, self.unknown, "constituents"), (self.tags.total(), tags, "tags")
        for total, unknown, kind in kinds:
            if unknown.total() > MOST_UNKNOWN * total:
                share, names = unknown.total() / total, " ".join(name for name, _ in unknown.most_common(5))
                return f"{share:.0%} of the {kind} ({names}) have no head rule, so no dependencies are derived"
        return ""


def dependencies(tree: Node, rules: Rules = ENGLISH, counts: Heads | None = None) -> Arcs:
    """Return heads and arc labels of the leaves of a tree. Every leaf counts as a word, also a trace (-NONE-).

    tree: as `brackets.clean` returns it: without traces, but with function tags, because arc labels come from them.
    """
    nodes = list(tree.nodes())
    position = sum(node.is_leaf for node in nodes)
    heads, labels = [0] * position, ["ROOT"] * position
    waiting: list[int] = []  # head words (from 0) of the subtrees that have no parent yet, the leftmost last
    for node in reversed(nodes):  # children before parents; no recursion: a tree may be very deep
        if node.is_leaf:
            position -= 1
            waiting.append(position)
            continue
        head, named = rules.head_child(node)
        if counts and len(node.children) > 1:
            counts.constituents += 1
            counts.unknown.update([strip_function(node.label)] * (not named))
        head_words = [waiting.pop() for _ in node.children]
        waiting.append(head_words[head])
        for i, word in enumerate(head_words):
            if i != head:
                heads[word] = head_words[head] + 1
                labels[word] = rules.arc_label(node, head, i)
    return tuple(heads), tuple(labels)
