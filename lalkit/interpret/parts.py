"""The parts of the scores of one sentence, as a layer of label attention computes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from torch import Tensor

from lalkit.interpret.contributions import Span
from lalkit.network.model import Prediction

# The parts of scores: name, kind, and words for it. {} is the number of a head, or a word.
PARTS = [
    ("head", "head", "label head {}"),
    ("no head", "rest", "no head"),
    ("word", "word", "“{}”"),
    ("first", "boundary", "its first word"),
    ("last", "boundary", "its last word"),
    ("boundary", "boundary", "its boundaries"),
    ("constant", "rest", "a constant"),
]
HEAD, NO_HEAD, WORD, FIRST, LAST, BOUNDARY, CONSTANT = range(len(PARTS))
FIRST_LABEL = 2  # of constituents: before it stand the empty label and <H>


class Parts(NamedTuple):
    """The parts of the scores of m spans, in the order of the spans: arrays with one item for each part.

    span: its place among the spans. part: its place in `PARTS`. number: of a head, from 0, or of a word, from 1. then: the
    number of a label. The other columns are those of `Explanation.table`. None: a column that this layer does not have.
    """

    span: np.ndarray
    part: np.ndarray
    number: np.ndarray
    value: np.ndarray
    effect: np.ndarray
    then: np.ndarray
    then_score: np.ndarray
    raw: np.ndarray | None = None
    attention: np.ndarray | None = None
    evidence: np.ndarray | None = None

    @classmethod
    def joined(cls, pieces: dict[int, dict[str, Tensor]]) -> Parts:
        """Join the columns of several parts, in the order of the spans. A column that one of them lacks is nan there."""
        tables = []
        for part, columns in pieces.items():
            table = {name: column.cpu().numpy() for name, column in columns.items()}
            tables.append({"part": np.full(len(table["span"]), part), "then": np.full(len(table["span"]), -1)} | table)
        joined = {}
        for name in dict.fromkeys(name for table in tables for name in table):
            joined[name] = np.concatenate([table.get(name, np.full(len(table["span"]), np.nan)) for table in tables])
        parts = cls(**joined)
        return parts.where(np.argsort(parts.span, kind="stable"))

    def where(self, chosen: np.ndarray | slice) -> Parts:
        return Parts(*(column if column is None else column[chosen] for column in self))


@dataclass(frozen=True)
class Explained:
    """One sentence: its spans with their roles and scores [m], and their parts.

    sums: [m, H], what each head passes on to each span. attention: [H, n + 2], over START, the words and STOP, if a head has one
    attention for the whole sentence.
    """

    prediction: Prediction
    spans: Sequence[Span]
    roles: Sequence[str]
    scores: np.ndarray
    parts: Parts
    sums: np.ndarray
    attention: np.ndarray | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return self.prediction.sentence.words

    @cached_property
    def places(self) -> dict[Span, int]:
        """The place of each span among the spans."""
        return {span: place for place, span in enumerate(self.spans)}

    @property
    def positions(self) -> np.ndarray:
        """The word of each part, from 1; 0 for a part that is not of a word."""
        return np.where(np.isin(self.parts.part, [WORD, FIRST, LAST]), self.parts.number, 0)

    def constituents(self) -> list[int]:
        """Return the places of the constituents of the parse."""
        return [place for place, role in enumerate(self.roles) if role == "parse"]

    def second(self, place: int) -> int | None:
        """Return the place of the span with the label that comes second over the same words."""
        same = (k for k, span in enumerate(self.spans) if span[:2] == self.spans[place][:2])
        return next((k for k in same if self.roles[k] == "second"), None)

    def of(self, place: int) -> Parts:
        """Return the parts of one span."""
        return self.parts.where(slice(*np.searchsorted(self.parts.span, [place, place + 1])))

    def difference(self, place: int, label: str) -> np.ndarray:
        """Return the values of the parts of a span, less those of another label over the same words."""
        return self.of(place).value - self.of(self.places[(*self.spans[place][:2], label)]).value

    def names(self, parts: Parts) -> list[str]:
        """Return the names of parts."""
        pairs = zip(parts.part, parts.number)
        return [PARTS[part][2].format(self.words[k - 1] if part == WORD else k) for part, k in pairs]

    def rows(self) -> Iterator[tuple]:
        """Yield start, end, label, role and score of each span."""
        for span, role, score in zip(self.spans, self.roles, self.scores.tolist()):
            yield *span, role, score

    def where(self, chosen: Sequence[int]) -> Explained:
        """Return the sentence with some of its spans."""
        parts = self.parts.where(np.isin(self.parts.span, chosen))
        parts = parts._replace(span=np.searchsorted(chosen, parts.span))
        spans, roles = ([items[place] for place in chosen] for items in (self.spans, self.roles))
        return replace(self, spans=spans, roles=roles, scores=self.scores[chosen], parts=parts, sums=self.sums[chosen])
