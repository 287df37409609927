"""Constraints on joint trees: constituents, arcs and tags that a parse must have, or must not have.

The notation. Words are counted from 1, and both ends belong to a span:

    NP(3,5)    a constituent NP over the words 3 to 5; in a unary chain such as S::NP, too. S::VP(3,5) is this very chain
    *(3,5)     a constituent over these words, whatever its label. (3,5) means the same
    <H>(3,5)   a group of words without a label of the treebank
    2->4       word 4 depends on word 2: from the head to the dependent; 0->4: on the root
    3_NN       word 3 has the tag NN

Constituents can also be typed in the sentence itself: She crossed [NP the old bridge]. Here, too, * stands for any label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lalkit.config import MOST_DIGITS
from lalkit.errors import ParameterError, checked, shown
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import UNARY

ANY = "*"
NUMBER = f"([0-9]{{1,{MOST_DIGITS}}})"
NOTATION = "Write NP(3,5) for a constituent, *(3,5) for one with any label, 2->4 for an arc, or 3_NN for a tag."


class SpanItem(NamedTuple):
    """A constituent over the words first..last, counted from 1. label: ANY for any label."""

    label: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.label}({self.first},{self.last})"

    def matches(self, label: str) -> bool:
        """Return whether the item stands for this label of the parser, or for a part of this unary chain."""
        if self.label == ANY:
            return label not in ("", GROUP)
        return f"{UNARY}{self.label}{UNARY}" in f"{UNARY}{label}{UNARY}"


class ArcItem(NamedTuple):
    """An arc from a dependent to its head word, counted from 1; head 0 is the root."""

    dependent: int
    head: int

    def __str__(self) -> str:
        return f"{self.head}->{self.dependent}"


class TagItem(NamedTuple):
    """A word, counted from 1, and its tag."""

    word: int
    tag: str

    def __str__(self) -> str:
        return f"{self.word}_{self.tag}"


Item = SpanItem | ArcItem | TagItem


def items_of(spans: Iterable, heads: Iterable[int]) -> frozenset[Item]:
    """Return constituents (with start, end and label) and the head words of a sentence as constraints that it obeys."""
    constituents = (SpanItem(span.label, span.start + 1, span.end) for span in spans)
    return frozenset([*constituents, *(ArcItem(dependent, head) for dependent, head in enumerate(heads, 1))])


def read_item(item: str | Item) -> Item:
    """Read one constraint. Raises ParameterError for anything else, also for a number of more than 9 digits."""
    text = ""
    with suppress(ValueError):  # Python refuses to write a number of more than 4,300 digits
        text = str(item).strip() if isinstance(item, str | Item) else ""
    if match := re.fullmatch(rf"{NUMBER}\s*->\s*{NUMBER}", text):
        return ArcItem(int(match[2]), int(match[1]))
    if match := re.fullmatch(rf"([^\s()]*)\s*\(\s*{NUMBER}\s*,\s*{NUMBER}\s*\)", text):
        return SpanItem(match[1] or ANY, int(match[2]), int(match[3]))
    if match := re.fullmatch(rf"{NUMBER}_(\S+)", text):
        return TagItem(int(match[1]), match[2])
    raise ParameterError("is no constraint", where=shown(item), remedy=NOTATION)


@checked
@dataclass(frozen=True)
class Constraints:
    """The items that a parse must have (require), and the items that it must not have (forbid)."""

    require: tuple[Item, ...] = ()
    forbid: tuple[Item, ...] = ()

    @classmethod
    def read(cls, require: Iterable[str | Item] = (), forbid: Iterable[str | Item] = ()) -> Constraints:
        """Read two lists of constraints. Raises ParameterError, as `read_item`, for an entry that is not a constraint."""
        return cls(*(tuple(dict.fromkeys(map(read_item, items))) for items in (require, forbid)))

    @property
    def items(self) -> tuple[Item, ...]:
        return self.require + self.forbid

    @property
    def wanted(self) -> list[tuple[Item, bool]]:
        """All constraints, each with whether it is required."""
        return [(item, True) for item in self.require] + [(item, False) for item in self.forbid]

    def __str__(self) -> str:
        return ", ".join(f"{'require' if wanted else 'forbid'} {item}" for item, wanted in self.wanted)

    def check(self, n: int, labels: Sequence[str], tags: Sequence[str]) -> None:
        """Raise ParameterError for a word that a sentence of n words does not have, or for a name the parser does not know.

        It does not find constraints that contradict each other: `Readings.trees` does.
        """
        for item in self.items:
            known, names = True, [label for label in labels[1:] if UNARY not in label]
            if isinstance(item, ArcItem):
                inside = 1 <= item.dependent <= n and 0 <= item.head <= n
            elif isinstance(item, TagItem):
                inside, known, names = 1 <= item.word <= n, item.tag in tags, [*tags]
            else:
                inside, known = 1 <= item.first <= item.last <= n, any(map(item.matches, labels))
            if not inside:
                raise ParameterError("is not in the sentence", where=str(item), remedy=f"The words are 1 to {n}.")
            if not known:
                remedy = f"It knows: {' '.join(names) or 'none'}."
                raise ParameterError("the parser does not know this name", where=str(item), remedy=remedy)

    def apply(
        self, label_scores: np.ndarray, arc_scores: np.ndarray, labels: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return label scores [n+1, n+1, L] and arc scores [n, n+1] with -inf where forbidden, and the closed spans.

        closed: [n+1, n+1], see `lalkit.chart.readings`. labels: the name of every label.
        """
        n = len(arc_scores)
        allowed, arcs = np.ones(label_scores.shape, bool), np.ones(arc_scores.shape, bool)
        closed = np.zeros((n + 1, n + 1), bool)
        start, end = np.indices(closed.shape)
        for item, wanted in self.wanted:
            if isinstance(item, ArcItem):
                arcs[item.dependent - 1] &= (np.arange(n + 1) == item.head) == wanted
            elif isinstance(item, SpanItem):
                i, j = item.first - 1, item.last
                allowed[i, j] &= np.array([item.matches(label) for label in labels]) == wanted
                if wanted:
                    crossing = ((start < i) & (i < end) & (end < j)) | ((i < start) & (start < j) & (j < end))
                    allowed[crossing] = False
                    closed |= crossing
                    closed[i, j] = True
        allowed[..., 0] = True  # the empty label has no score
        return np.where(allowed, label_scores, -np.inf), np.where(arcs, arc_scores, -np.inf), closed
