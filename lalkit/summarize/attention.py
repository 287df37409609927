"""Multi-head attention of which everything can be asked: any normaliser, a gate on every head, given weights in the place of its
own, and always its weights. (torch's own can do none of these.)"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.probes.normalisers import normalise


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_h)) V of every head, side by side through a matrix. normalisers: one for each head."""

    def __init__(self, d_model: int, normalisers: tuple[str, ...], dropout: float):
        super().__init__()
        self.normalisers, self.heads, self.dropout = normalisers, len(normalisers), dropout
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor, gate: Tensor | None = None, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x [B, Q, d] asks, y [B, T, d] is attended to where mask ([B, 1 or Q, T]) is True -> ([B, Q, d], weights [B, H, Q, T]).

        gate: [H], what every head's context is multiplied by; weights: [B, H, Q, T], to be used instead of its own.
        """
        query, key, value = (
            layer(z).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, z in ((self.query, x), (self.key, y), (self.value, y))
        )
        if weights is None:
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            weights = self._normalise(scores, mask[:, None].expand_as(scores))
        contexts = F.dropout(weights, self.dropout, self.training) @ value
        if gate is not None:
            contexts = contexts * gate[:, None, None]
        return self.output(contexts.transpose(1, 2).flatten(-2)), weights

    def _normalise(self, scores: Tensor, mask: Tensor) -> Tensor:
        kinds = set(self.normalisers)
        if len(kinds) == 1:
            return normalise(scores, mask, *kinds)
        found = scores.new_empty(scores.shape)
        for kind in kinds:
            own = [h for h, name in enumerate(self.normalisers) if name == kind]
            found[:, own] = normalise(scores[:, own], mask[:, own], kind)
        return found
