"""Derive dependencies from constituents by rules: English in the style of the Penn Treebank, and the Chinese Treebank.

In each constituent one child is the head child. The head words of the other children depend on the head word of the head
child. So the result is one projective tree, and each constituent has exactly one word whose head is outside it. A joint tree
needs just this. The rules stand in english_rules.txt and chinese_rules.txt, with the meaning of every arc label.

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
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import strip_function
from lalkit.treebank.text import is_chinese
from lalkit.treebank.tree import Node

Arcs = tuple[tuple[int, ...], tuple[str, ...]]  # heads (from 1; 0 is the root), arc labels
Derive = Callable[[Node], Arcs]
# Newer treebanks tag hyphens as HYPH (CRAFT: dose HYPH dependent) and superfluous punctuation as NFP.
PUNCTUATION = frozenset(", . : `` '' -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- HYPH NFP".split())
COORDINATORS = frozenset({"CC", "CONJP"})
COMMAS = frozenset({",", ":"})
BETWEEN = frozenset("`` '' -LRB- -RRB- RB ADVP PRN INTJ".split())  # may stand next to the comma or coordinator


def read_tables(language: str) -> dict[str, list[list[str]]]:
    """Return the tables of LANGUAGE_rules.txt by name, as rows of cells. The members of a group replace its name."""
    tables: dict[str, list[list[str]]] = {"groups": []}
    text = Path(__file__).with_name(f"{language}_rules.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            rows = tables.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            groups = dict(tables["groups"])
            rows.append([" ".join(groups.get(word, word) for word in cell.split()) for cell in line.split("|")])
    return tables


class Rules:
    """The head rules and arc labels of one language.

    never: tags that are a head only if all siblings are such tags. seldom: categories that are a head only if a rank names
    them, or if there are no other children, apart from those in `never`. compounds: categories whose head is the part after
    the last HYPH, if they have one. of_the_parent: parents, or parents with a role, in which a role is that of the parent itself.
    """

    never: frozenset[str]
    seldom: frozenset[str]
    compounds: frozenset[str] = frozenset()
    of_the_parent: frozenset[str | tuple[str, str]] = frozenset()

    def __init__(self, language: str):
        tables = read_tables(language)
        self.groups = {name: frozenset(members.split()) for name, members in tables["groups"]}
        self.heads = {
            parent: (side, [rank.split() for rank in ranks.split(">")])
            for parents, side, ranks in tables["heads"]
            for parent in parents.split()
        }
        self.roles = dict(tables["roles"])
        self.arcs = [(label, [cell.split() for cell in cells]) for label, *cells in tables["arcs"]]
        self.alike = {name: frozenset(group.split()) for (group,) in tables["alike"] for name in group.split()}
        self.look_up = cache(self._look_up)

    def head_child(self, node: Node) -> int:
        """Return the index of the head among the children of a constituent. Function tags and indices do not matter."""
        if len(node.children) == 1:
            return 0
        parent, categories = strip_function(node.label), [strip_function(child.label) for child in node.children]
        side, ranks = self.heads.get(parent, ("last", []))
        end = 0 if side == "first" else -1
        candidates = [i for i, category in enumerate(categories) if category not in self.never]
        usual = [i for i in candidates if categories[i] not in self.seldom]
        if parent in self.compounds and (after := [i for i in usual if i > 0 and categories[i - 1] == "HYPH"]):
            return after[-1]
        for rank in ranks:
            if best := [i for i in candidates if categories[i] in rank]:
                return best[end]
        return (usual or candidates or range(len(categories)))[end]

    def arc_label(self, parent: Node, head: int, child: int) -> str:
        """Return the label of the arc from the head word of parent.children[head] to that of parent.children[child]."""
        categories = [strip_function(node.label) for node in parent.children]
        node, category, above = parent.children[child], categories[child], strip_function(parent.label)
        if category in self.never:
            return "P"
        if category in COORDINATORS:
            return "CC"
        role = self.role(node)
        if label := self.coordination(above, categories, head, child, role == self.role(parent.children[head])):
            return label
        if role and (above, role) not in self.of_the_parent and above not in self.of_the_parent:
            return role
        if above in self.groups.get("nominal", ()) and category in ("NP", "NML") and node.leaves()[-1].label == "POS":
            return "POSS"
        return self.look_up(above, categories[head], category, "left" if child < head else "right")

    def role(self, node: Node) -> str:
        """Return the role that the function tags of a constituent name, or ""."""
        tags = function_tags(node.label)
        return next((label for tag, label in self.roles.items() if tag in tags), "")

    def coordination(self, parent: str, categories: Sequence[str], head: int, child: int, same_role: bool) -> str:
        """Return COORD or APPO if the child is a conjunct of the head child, else "". same_role: of child and head child."""
        raise NotImplementedError

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
    """(FRAG (LST 1 .) (NP Methods)): a number that introduces a phrase is not its head. In ADJP, NN HYPH VBG ("gene -
    expressing") is headed by the participle, not by the noun."""

    never, seldom, compounds = PUNCTUATION, COORDINATORS | {"LST"}, frozenset({"ADJP"})
    of_the_parent = frozenset({("PP", "LGS")})  # in (PP by (NP-LGS ...)) the whole PP has the role

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
        while i != head and categories[i] in BETWEEN | COORDINATORS | COMMAS:
            neighbours.add(categories[i])
            i += step
        if neighbours & COORDINATORS:
            return "COORD"
        if not neighbours & COMMAS:
            return ""
        if not COORDINATORS.isdisjoint(categories[1:]):  # a, b and c: only a comma stands next to b
            return "COORD"
        if not same_role:  # (S (S-ADV ...) , (S ...)) is subordination
            return ""
        return "APPO" if parent in self.groups["nominal"] else "COORD"


class Chinese(Rules):
    """Punctuation, sentence particles and aspect marks are heads only if there is no other child."""

    never, seldom = frozenset({"PU"}), frozenset("CC SP AS ETC MSP DER LST PRN FLR".split())
    of_the_parent = frozenset({"PP", "LCP"})

    def coordination(self, parent: str, categories: Sequence[str], head: int, child: int, same_role: bool) -> str:
        """Return COORD if the child is a conjunct of the head child, else "".

        Both must be of the same kind (table `alike`). Between them there must be a coordinator or punctuation, and besides
        only more conjuncts and adverbs.
        """
        between = set(categories[min(head, child) + 1 : max(head, child)])
        alike = {categories[head]} | self.alike.get(categories[head], set())
        separated = between & {"CC", "PU"} and between <= alike | {"CC", "PU", "ADVP", "AD"}
        return "COORD" if categories[child] in alike and separated else ""


ENGLISH, CHINESE = English("english"), Chinese("chinese")


def derive(tree: Node) -> Arcs:
    """Return heads and arc labels of a cleaned tree, by the Chinese rules if it is Chinese, else by the English ones.

    It is Chinese if all its tags are tags of the Chinese Treebank, and at least one tag is found in no other tag set, or most
    words are Chinese. Raises TreebankError for Chinese words with other tags: English rules would give wrong heads without a
    warning.
    """
    leaves = tree.leaves()
    tags = {leaf.label for leaf in leaves}
    unknown = tags - CHINESE.groups["tags"]
    mostly_chinese = 2 * sum(is_chinese(leaf.word) for leaf in leaves) > len(leaves)
    if not unknown and (mostly_chinese or tags & CHINESE.groups["typical"]):
        return dependencies(tree, CHINESE)
    if mostly_chinese:
        problem = f"there are no head rules for Chinese with the tags {', '.join(sorted(unknown)[:5])}"
        raise TreebankError(problem, remedy="Give the dependencies in a .conllu file, or tags of the Chinese Treebank.")
    return dependencies(tree)


def dependencies(tree: Node, rules: Rules = ENGLISH) -> Arcs:
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
        head = rules.head_child(node)
        head_words = [waiting.pop() for _ in node.children]
        waiting.append(head_words[head])
        for i, word in enumerate(head_words):
            if i != head:
                heads[word] = head_words[head] + 1
                labels[word] = rules.arc_label(node, head, i)
    return tuple(heads), tuple(labels)
