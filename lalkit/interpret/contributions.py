"""Gather what each label head contributes to each span of a corpus, measured by several norms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError
from lalkit.network.model import Prediction
from lalkit.treebank.tree import Sentence

Span = tuple[int, int, str]  # start, end, label
Heads = int | str | Iterable[int | str]  # one label head or several, by number; or by label, if each has one

# The ways to turn a head's part of a span into a number. `minmax` is the paper's norm; the paper's program then took a softmax
# of it, so that the largest share was always e times the least. Our `softmax` is of raw.
NORMS = {
    "raw": "the sum over the head's slice of the span vector",
    "minmax": "raw, from 0 for the least head of the span to 1 for the greatest (the paper's)",
    "softmax": "the softmax of raw over heads",
    "share": "the absolute value of raw, over the sum of these",
    "exact": "what the score of the span's label loses without the head",
}
UNITS = {"exact": "{:+.2f}", "share": "{:.0%} of the sum", "softmax": "{:.0%}", "raw": "{:+.2f}", "minmax": "{:.2f}"}


@dataclass(frozen=True)
class Look:
    """Hold what the layer did in one parsed sentence: H label heads, n words, m spans.

    spans: the constituents of the parse, then those asked for besides. attention: [H, n + 2], over START, words, STOP.
    raw: [m, H], the sum of each head's slice of each span vector. scores [m], exact [m, H] and parts [m, H + 1] are for the
    spans' own labels; they are nan for a label that the parser does not know. The parts add up to the score, see
    `paper_layer.parts_of`.
    """

    prediction: Prediction
    spans: tuple[Span, ...]
    attention: np.ndarray = field(repr=False)
    raw: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    exact: np.ndarray = field(repr=False)
    parts: np.ndarray = field(repr=False)

    @property
    def sentence(self) -> Sentence:
        """The words with their tags and both layers.

        >>> parser.look("It rained.")[0].sentence.words
        ('It', 'rained', '.')
        """
        return self.prediction.sentence


def normalise(raw: np.ndarray, exact: np.ndarray | None, norm: str) -> np.ndarray:
    """Return the contributions [m, H] by a norm, from raw and exact contributions of m spans and H heads.

    Raises LalkitError for an unknown norm, and for `exact` if exact contributions were not computed.
    """
    if norm not in NORMS:
        raise LalkitError(f"there is no norm {norm!r}", remedy=f"The norms are {', '.join(NORMS)}.")
    if norm == "exact":
        if exact is None:
            remedy = "With label attention inside the span, leave the norm out."
            raise LalkitError("there are no exact contributions here", remedy=remedy)
        return exact
    if norm == "minmax":
        low, high = raw.min(-1, keepdims=True), raw.max(-1, keepdims=True)
        return (raw - low) / np.where(high > low, high - low, 1.0)
    if norm == "softmax":
        powers = np.exp(raw - raw.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    if norm == "share":
        sizes = np.abs(raw)
        whole = sizes.sum(-1, keepdims=True)
        return sizes / np.where(whole > 0, whole, 1.0)
    return raw


@dataclass(frozen=True)
class Contributions:
    """Hold the contributions of H heads to m spans.

    spans: a table with a row for each span: sentence (its place), id, start, end, label, parsed (is it in the parse?), gold
    (is it in the gold tree? missing if there is none). raw, exact: [m, H], in the order of these rows.
    """

    spans: pd.DataFrame
    raw: np.ndarray
    exact: np.ndarray | None

    @property
    def heads(self) -> int:
        return self.raw.shape[1]

    def by(self, norm: str) -> np.ndarray:
        """Return the contributions by a norm: [m, H]."""
        return normalise(self.raw, self.exact, norm)

    def top(self, norm: str) -> np.ndarray:
        """Return the head with the greatest contribution to each span: [m]. Of equal heads it is the first."""
        return self.by(norm).argmax(1)

    def labelled(self, label: str) -> np.ndarray:
        """Return which spans have this label: [m], bool."""
        return (self.spans["label"] == label).to_numpy()

    @cached_property
    def parsed(self) -> Contributions:
        """The spans of the parse only."""
        return self.where(self.spans["parsed"].to_numpy())

    def where(self, rows: np.ndarray) -> Contributions:
        """Return the contributions to some of the spans. rows: a mask [m], or the numbers of rows."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        exact = None if self.exact is None else self.exact[rows]
        return Contributions(self.spans.iloc[rows].reset_index(drop=True), self.raw[rows], exact)

    def table(self, norm: str) -> pd.DataFrame:
        """Return a row for each span and head: the columns of the span, head, norm, value."""
        spans = self.spans.loc[self.spans.index.repeat(self.heads)].reset_index(drop=True)
        heads = np.tile(np.arange(self.heads), len(self.spans))
        return spans.assign(head=heads, norm=norm, value=self.by(norm).ravel())


def contributions(looks: Sequence[Look], gold: Sequence | None = None) -> Contributions:
    """Gather the contributions of looks. gold: the same sentences with their gold constituents."""
    rows = []
    for place, look in enumerate(looks):
        parsed = {(s.start, s.end, s.label) for s in look.prediction.spans}
        right = {(c.start, c.end, c.label) for c in gold[place].constituents} if gold else None
        for span in look.spans:
            rows.append((place, look.sentence.id, *span, span in parsed, None if right is None else span in right))
    if not rows:
        raise LalkitError("there is no span to look at", remedy="Give at least one sentence.")
    columns = ["sentence", "id", "start", "end", "label", "parsed", "gold"]
    spans = pd.DataFrame(rows, columns=columns).astype({"gold": "boolean", "parsed": "bool"})
    raw, exact = (np.concatenate([getattr(look, part) for look in looks]) for part in ("raw", "exact"))
    return Contributions(spans, raw, exact)
