"""What each label head contributes to each span, over a corpus, by several norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError
from lalkit.interpret.paper_layer import Look

# What stands for a contribution. `minmax` is the paper's; its program then took a softmax of it, so that the largest share
# was always e times the least; `softmax` here is of raw.
NORMS = {
    "raw": "the sum over the head's slice of the span vector",
    "minmax": "raw, from 0 for the least head of the span to 1 for the greatest (the paper's)",
    "softmax": "the softmax of raw over heads",
    "share": "the absolute value of raw, over the sum of these",
    "exact": "what the score of the span's label loses without the head",
}


def normalise(raw: np.ndarray, exact: np.ndarray | None, norm: str) -> np.ndarray:
    """[m, H] raw and exact contributions -> [m, H] by a norm. Raises LalkitError for a norm there is not."""
    if norm not in NORMS:
        raise LalkitError(f"there is no norm {norm!r}", remedy=f"The norms are {', '.join(NORMS)}.")
    if norm == "exact":
        if exact is None:
            raise LalkitError("exact contributions were not computed", remedy="Look with exact=True.")
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
    """Of all spans looked at. spans: a row each: sentence (its place), id, start, end, label, parsed (or only asked for),
    and gold (is it in the gold tree? missing without one). raw, exact: [m, H], of the same rows."""

    spans: pd.DataFrame
    raw: np.ndarray
    exact: np.ndarray | None

    @property
    def heads(self) -> int:
        return self.raw.shape[1]

    def by(self, norm: str) -> np.ndarray:
        """[m, H]."""
        return normalise(self.raw, self.exact, norm)

    def top(self, norm: str) -> np.ndarray:
        """[m]: the head with the greatest contribution to each span; the lowest number of equals."""
        return self.by(norm).argmax(1)

    @cached_property
    def parsed(self) -> Contributions:
        """Of the parse's own spans."""
        return self.where(self.spans["parsed"].to_numpy())

    def where(self, mask: np.ndarray) -> Contributions:
        exact = None if self.exact is None else self.exact[mask]
        return Contributions(self.spans[mask].reset_index(drop=True), self.raw[mask], exact)

    def table(self, norms: Sequence[str] = tuple(NORMS)) -> pd.DataFrame:
        """Tidy: a row per span, head and norm, with the span's columns, head, norm, value."""
        parts = []
        for norm in norms:
            values = self.by(norm)
            m, h = values.shape
            part = self.spans.loc[self.spans.index.repeat(h)].reset_index(drop=True)
            parts.append(part.assign(head=np.tile(np.arange(h), m), norm=norm, value=values.ravel()))
        return pd.concat(parts, ignore_index=True)


def contributions(looks: Sequence[Look], gold: Sequence | None = None) -> Contributions:
    """Gather looks. gold: the same sentences with their gold constituents."""
    rows = []
    for place, seen in enumerate(looks):
        own = {(s.start, s.end, s.label) for s in seen.prediction.spans}
        right = {(c.start, c.end, c.label) for c in gold[place].constituents} if gold else None
        for span in seen.spans:
            rows.append((place, seen.sentence.id, *span, span in own, None if right is None else span in right))
    columns = ["sentence", "id", "start", "end", "label", "parsed", "gold"]
    spans = pd.DataFrame(rows, columns=columns).astype({"gold": "boolean", "parsed": "bool"})
    if not rows:
        raise LalkitError("there is no span to look at", remedy="Give at least one sentence.")
    exact = None if looks[0].exact is None else np.concatenate([seen.exact for seen in looks])
    return Contributions(spans, np.concatenate([seen.raw for seen in looks]), exact)


def attention_table(looks: Sequence[Look]) -> pd.DataFrame:
    """Tidy: sentence, id, head, position (0 START, n + 1 STOP), word, attention."""
    parts = []
    for place, seen in enumerate(looks):
        words = ["<START>", *seen.sentence.words, "<STOP>"]
        h, t = seen.attention.shape
        parts.append(
            pd.DataFrame(
                {
                    "sentence": place, "id": seen.sentence.id, "head": np.repeat(np.arange(h), t),
                    "position": np.tile(np.arange(t), h), "word": words * h, "attention": seen.attention.ravel(),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)
