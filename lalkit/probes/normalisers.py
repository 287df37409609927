"""Scores -> attention over what is there: softmax, or a sparse relative of it."""

from __future__ import annotations

from torch import Tensor

from lalkit.normalisers import NORMALISERS as KINDS
from lalkit.normalisers import OUTSIDE


def normalise(scores: Tensor, mask: Tensor, kind: str = "softmax") -> Tensor:
    """Over the last axis, 0 where mask (of the same shape, or broadcast) is False. Raises ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"no normaliser {kind!r}: {', '.join(KINDS)}")
    return KINDS[kind](scores.masked_fill(~mask, OUTSIDE), dim=-1) * mask
