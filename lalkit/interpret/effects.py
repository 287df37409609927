"""What the scores of a span would be without each label head: exactly, for all heads, from one forward pass.

The span scorer is Linear, LN, ReLU, Linear (eq. 6), and its first step adds the heads up:

    W1 s_ij + b1 = b1 + sum_h W1[:, h] s_ij[h]        s_ij[h] = f_j[h] - f_i[h]

so taking head h's slice out of the span vector is one subtraction after that step. What a head adds to *other* heads' slices
does not exist here: each makes its own. (A feed-forward after the label attention would mix them.)
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lalkit.model.scores import SpanScorer


@torch.no_grad()
def parts(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> tuple[Float[Tensor, "m h k"], Float[Tensor, "k"]]:
    """(W1[:, h] s_ij[h] of every head, b1): over heads they add up to what the norm is given."""
    weight = scorer.first.weight.unflatten(1, posts.shape[1:]).permute(1, 2, 0)  # [H, d, hidden]
    start, end = spans.unbind(1)
    if len(spans) < len(posts):  # fewer spans than fenceposts: their vectors are projected, else what they are made of
        found = (posts[end] - posts[start]).transpose(0, 1) @ weight
    else:
        projected = posts.transpose(0, 1) @ weight
        found = projected[:, end] - projected[:, start]
    return found.transpose(0, 1), scorer.bias


@torch.no_grad()
def without_heads(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> Float[Tensor, "m h l"]:
    """The label scores of each span (start, end) with each head's slice of its vector at zero; the empty label scores 0.

    posts: the fenceposts of one sentence, f = n + 1. Takes m * h * hidden floats.
    """
    each, bias = parts(scorer, posts, spans)
    each = each.transpose(0, 1)
    before = (each.sum(0) + bias) - each
    found = scorer.second(torch.relu_(scorer.norm(before))).transpose(0, 1)
    return torch.cat([torch.zeros_like(found[..., :1]), found], dim=-1)
