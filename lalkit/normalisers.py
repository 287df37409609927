"""Scores -> attention, by name: softmax, and its sparse relatives (Martins and Astudillo 2016; Peters et al. 2019), by entmax."""

from __future__ import annotations

import torch
from entmax import entmax15, sparsemax

NORMALISERS = {"softmax": torch.softmax, "entmax15": entmax15, "sparsemax": sparsemax}
# A score for padding: exactly 0 after every one of them, and safe in their sums. A row of -inf would have no sparsemax, and
# its softmax is nan.
OUTSIDE = -1e9
