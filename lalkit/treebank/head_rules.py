"""Choose the head child of an English constituent: one rule for each category, as a table.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# Newer treebanks tag hyphens as HYPH (CRAFT: dose HYPH dependent) and superfluous punctuation as NFP.
PUNCTUATION = frozenset(", . : `` '' -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- HYPH NFP".split())
COORDINATORS = frozenset({"CC", "CONJP"})
LIST_MARKERS = frozenset({"LST"})  # (FRAG (LST 1 .) (NP Methods)): a number that introduces a phrase is not its head


@dataclass(frozen=True)
class HeadRule:
    """side: where the search starts. ranks: such as "IN > VBG VBN", the best rank first, with spaces inside a rank."""

    side: Literal["first", "last"]
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


def table(rows: dict[str, HeadRule]) -> dict[str, HeadRule]:
    """Give each category of a key such as "NP NX" its own entry."""
    return {parent: rule for parents, rule in rows.items() for parent in parents.split()}


NOUNS = "NN NNS NNP NNPS POS"
FINITE = "MD VBD VBP VBZ VB"

ENGLISH = HeadRules(
    by_parent=table({
        # Clauses. TO and IN as children of S occur where the annotation left out a VP or an SBAR.
        "S TOP HEADING TITLE CAPTION": HeadRule("last", "TO > IN > VP > S > SBAR > ADJP > UCP > NP"),
        "SBAR": HeadRule("last", "IN WHNP WHPP WHADVP WHADJP > DT > S SQ SINV > SBAR > FRAG"),
        "SBARQ": HeadRule("last", "SQ > S > SINV > SBARQ > FRAG"),
        "SINV": HeadRule("last", FINITE + " > VP > S > SINV"),
        "SQ": HeadRule("first", FINITE + " > VP > SQ"),
        "RRC": HeadRule("first", "VP > NP > ADJP > PP"),
        # Verbs and prepositions: the head comes first. TO is not listed under VP: "to" depends on its infinitive.
        "VP": HeadRule("first", FINITE + " VBN VBG > VP > NN NNS > NP > ADJP"),
        "PP": HeadRule("first", "IN > TO > VBG VBN > RP RB RBR JJ DT NN NNP SYM ADVP PP > CC"),
        "WHPP": HeadRule("first", "IN TO"),
        "PRT": HeadRule("first", "RP"),
        # Nouns: the last one, also a possessive 's; without a noun, the word most like a noun, then a nominal phrase.
        "NP NX NML NAC": HeadRule(
            "last",
            NOUNS + " > NX NML > JJR > CD > JJ > JJS > RB RBR RBS > QP > NP NAC > PRP EX WP > VBG VBN VBD > ADJP > DT",
        ),
        "WHNP": HeadRule("last", "WDT WP WP$ WHADJP WHPP WHNP"),
        "QP": HeadRule("last", "$ > IN > NNS > NN > JJ > RB > DT > CD"),
        # Adjectives and adverbs.
        "ADJP": HeadRule(
            "last", "QP > NN NNS > $ > ADVP > JJ > VBN > VBG > ADJP > JJR > NP > JJS > DT > RB RBR RBS"
        ),
        "ADVP": HeadRule("first", "RB > RBR RBS > ADVP > TO > JJR > JJ > IN > NP > JJS > NN"),
        "WHADJP WHADVP": HeadRule("first", "WRB"),
        # The rest have no order of categories: the head is their outermost child.
        "CONJP": HeadRule("first", "CC RB IN"),
        "FRAG UCP LST CIT": HeadRule("first"),
        "PRN INTJ X": HeadRule("last"),
    }),
    other=HeadRule("last"),
    compounds=frozenset({"ADJP"}),  # NN HYPH VBG: "gene - expressing" is headed by the participle, not by the noun
)  # fmt: skip
