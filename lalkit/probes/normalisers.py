"""Scores -> attention: softmax, and its sparse relatives (Martins and Astudillo 2016; Peters et al. 2019), by entmax."""

from __future__ import annotations

import torch
from entmax import entmax15, sparsemax
from torch import Tensor

KINDS = {"softmax": torch.softmax, "entmax15": entmax15, "sparsemax": sparsemax}
OUTSIDE = -1e9  # finite: a row of -inf has no sparsemax, and its softmax is nan


def normalise(scores: Tensor, mask: Tensor, kind: str = "softmax") -> Tensor:
    """Over the last axis, 0 where mask (of the same shape, or broadcast) is False. Raises ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"no normaliser {kind!r}: {', '.join(KINDS)}")
    return KINDS[kind](scores.masked_fill(~mask, OUTSIDE), dim=-1) * mask
