"""Choose the head child of a constituent by a table: one rule for each category. The English rules are in english_rules.txt.

A rule searches the children from one side. It lists ranks of categories, the best rank first, and takes the first child of
the best rank that is present. Categories inside one rank are equal.

The convention is that of Yamada and Matsumoto (2003), "Statistical dependency analysis with support vector machines", which
goes back to Magerman and Collins: the head of a VP is the finite verb or the modal, the head of a PP is the preposition, the
head of an SBAR is the complementiser or the relative pronoun, and a possessive 's is the head of its NP. We found the order
of the categories by counting, in all of NLTK's `treebank` and `dependency_treebank`, which child is preferred to which
sibling. So agreement with those heads (tests/treebank/test_heads.py) is a regression test, not a measure of quality. For the
categories and tags that only CRAFT has (NML, CIT, HEADING, HYPH, ...) we decided ourselves.

Coordination needs no rule of its own: a "first" category takes its first conjunct (VP and VP), a "last" one its last (NP and
NP).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Newer treebanks tag hyphens as HYPH (CRAFT: dose HYPH dependent) and superfluous punctuation as NFP.
PUNCTUATION = frozenset(", . : `` '' -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- HYPH NFP".split())
COORDINATORS = frozenset({"CC", "CONJP"})
LIST_MARKERS = frozenset({"LST"})  # (FRAG (LST 1 .) (NP Methods)): a number that introduces a phrase is not its head


@dataclass(frozen=True)
class HeadRule:
    """side: "first" or "last", where the search starts. ranks: such as "IN > VBG VBN", the best one first."""

    side: str
    ranks: str = ""

    @cached_property
    def _ranks(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(rank.split()) for rank in self.ranks.split(">"))

    def choose(self, categories: Sequence[str], candidates: Sequence[int]) -> int | None:
        """Return the candidate of the best rank present, or None. candidates: indices into categories, in order."""
        present = {categories[i] for i in candidates}
        for rank in self._ranks:
            if not present.isdisjoint(rank):
                return self.outermost([i for i in candidates if categories[i] in rank])
        return None

    def outermost(self, candidates: Sequence[int]) -> int:
        return candidates[0 if self.side == "first" else -1]


@dataclass(frozen=True)
class HeadRules:
    """A table of head rules.

    by_parent: the rule of each category. other: the rule of every category that is not in by_parent. never: tags that are a
    head only if all siblings are such tags. seldom: categories that are a head only if a rank names them, or if there are no
    other children, apart from those in `never`. compounds: categories whose head is the part after the last HYPH, if they
    have one.
    """

    by_parent: Mapping[str, HeadRule]
    other: HeadRule
    never: frozenset[str] = PUNCTUATION
    seldom: frozenset[str] = COORDINATORS | LIST_MARKERS
    compounds: frozenset[str] = frozenset()

    def find(self, parent: str, categories: Sequence[str]) -> int:
        """Return the index of the head child. parent and categories (of the children) have no function tags."""
        rule = self.by_parent.get(parent, self.other)
        candidates = [i for i, category in enumerate(categories) if category not in self.never]
        usual = [i for i in candidates if categories[i] not in self.seldom]
        if parent in self.compounds:
            after_hyphen = [i for i in usual if i > 0 and categories[i - 1] == "HYPH"]
            if after_hyphen:
                return after_hyphen[-1]
        chosen = rule.choose(categories, candidates)
        return rule.outermost(usual or candidates or range(len(categories))) if chosen is None else chosen


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


def by_parent(rows: Iterable[Sequence[str]]) -> dict[str, HeadRule]:
    """Return the rule of each category, from rows of a table `heads`: categories, side, ranks."""
    return {parent: HeadRule(side, ranks) for parents, side, ranks in rows for parent in parents.split()}


# In ADJP, NN HYPH VBG ("gene - expressing") is headed by the participle, not by the noun.
ENGLISH = HeadRules(by_parent(read_tables("english")["heads"]), HeadRule("last"), compounds=frozenset({"ADJP"}))
