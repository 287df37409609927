"""A(i, j, l) of all spans as the equation says it, without sums that run on: a softmax over the words of every span.

All starts at once, an end at a time; still n^3 L numbers a sentence. For comparing speed: `span_attention_literal` says the same
in loops.
"""

from __future__ import annotations

import torch


def chart(module, logits, evidence, *edges):
    """[B, N+1, N+1, L]; every sentence has N words."""
    b, n, _ = logits.shape
    if module.config.boundary == "full":
        scores = module.boundary.chart(*edges)
    else:
        scores = module._edges(*edges)
    place = torch.arange(n, device=logits.device)
    inside = torch.zeros_like(scores)
    for end in range(1, n + 1):
        outside = place[None, :end] < place[:end, None]  # [starts, words]
        chosen = logits[:, None, :end].masked_fill(outside[None, ..., None], -torch.inf)
        attention = torch.softmax(chosen, dim=2)
        inside[:, :end, end, 1:] = torch.einsum("bstl,btl->bsl", attention, evidence[:, :end])
    return scores + inside
