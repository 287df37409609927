"""Gather what each label head contributes to each span of a corpus, measured by several norms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError

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

    @property
    def norm(self) -> str:
        """The usual norm: exact, if there are exact contributions."""
        return "raw" if self.exact is None else "exact"

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


def contributions(looks, gold=None):
    """The old way to say `looks.explanation.heads()`."""
    return looks.explanation.heads()
