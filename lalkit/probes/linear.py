"""The smallest system with attention: heads' contexts side by side, a matrix, a softmax. For examples whose answer is known."""

from __future__ import annotations

import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, Outcome


def linear_view(weights: Tensor, values: Tensor, read: Tensor, key_mask: Tensor | None = None) -> AttentionView:
    """weights [B, H, Q, T], values [B, H, T, D], read [H D, C] -> a view that decides once for each query: U = Q.

    key_mask [B, T]: by default every key is there. Raises ValueError as AttentionView does.
    """
    b, _, q, t = weights.shape
    keys = torch.ones(b, t, dtype=torch.bool) if key_mask is None else key_mask
    queries = torch.ones(b, q, dtype=torch.bool)

    def from_contexts(contexts: Tensor) -> Outcome:
        probs = torch.softmax(contexts.transpose(-3, -2).flatten(-2) @ read, dim=-1)
        return Outcome(probs, queries, probs.argmax(-1))

    def predict(given: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", given, values))

    heads = [f"head {h}" for h in range(weights.shape[1])]
    return AttentionView(weights, values, keys, queries, heads, predict, (), from_contexts)
