"""Scores of spans from eq. 5 and 6 as written: every span vector s_ij = f_j - f_i is formed, then scored."""

from __future__ import annotations

import torch


def span_vectors(posts):
    """posts: [B, F, H, d] -> [B, F, F, H d], s[i, j] = f_j - f_i."""
    flat = posts.flatten(-2)
    return flat[:, None] - flat[:, :, None]


def score(scorer, vectors):
    """W2 ReLU(LN(W1 s + b1)) + b2 of any span vectors [..., H d]; the empty label scores 0: [..., L]."""
    hidden = torch.relu(scorer.norm(vectors @ scorer.first.weight.T + scorer.bias))
    found = scorer.second(hidden)
    return torch.cat([torch.zeros_like(found[..., :1]), found], dim=-1)


def literal(scorer, posts):
    """[B, F, H, d] -> [B, F, F, L], as SpanScorer for i < j."""
    return score(scorer, span_vectors(posts))


def without_heads(scorer, posts):
    """The chart without each label head: its slice of every span vector is zero. [F, H, d] -> [H, F, F, L]."""
    charts = []
    vectors = span_vectors(posts[None])[0].unflatten(-1, posts.shape[1:])
    for h in range(posts.shape[1]):
        kept = vectors.clone()
        kept[..., h, :] = 0
        charts.append(score(scorer, kept.flatten(-2)))
    return torch.stack(charts)
