"""The slow twins that `lalkit bench` compares with: each fast routine, written straight from its equations.

They read their weights from the fast modules. The tests compare their results with those of the fast routines; for the layer
and for label attention inside the span they also compare them with still slower twins, loop by loop, in the tests' own folder.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from lalkit.chart.joint import JointTree, as_arrays
from lalkit.chart.machine import compiled


def label_attention(layer, x, mask):
    """Compute the label attention layer for a batch without folding any matrices.

    Returns (y, attention) as `LabelAttention.forward` does without dropout. The layer must have a query vector, shared
    projections and concatenated heads.
    """
    config = layer.config
    keys, values = layer.key(x), layer.value(x)  # [B, T, H, d_kv]
    logits = torch.einsum("hk,bthk->bht", layer.query, keys) / math.sqrt(config.d_kv)
    attention = torch.softmax(logits.masked_fill(~mask[:, None], -1e9), dim=-1)
    contexts = torch.einsum("bht,bthk->bhk", attention, values)
    residual = x[:, :, None] + layer.project(contexts)[:, None]  # [B, T, H, d_model]
    return F.layer_norm(layer.reduce(residual), (config.d_out,), layer.gain, layer.offset), attention


def span_attention(module, parts):
    """Score all spans by label attention inside the span, with one softmax over the words of every span.

    All starts are computed at once, for one end at a time, so a sentence of n words still needs n^3 L numbers. Returns the
    chart [B, N+1, N+1, L] as `SpanLabelAttention.chart` does. Every sentence must have N words.
    """
    logits, evidence, *edges = parts
    n = logits.shape[1]
    scores = module.boundary.chart(tuple(edges))
    place = torch.arange(n, device=logits.device)
    inside = torch.zeros_like(scores)
    for end in range(1, n + 1):
        outside = place[None, :end] < place[:end, None]  # [starts, words]
        chosen = logits[:, None, :end].masked_fill(outside[None, ..., None], -torch.inf)
        attention = torch.softmax(chosen, dim=2)
        inside[:, :end, end, 1:] = torch.einsum("bstl,btl->bsl", attention, evidence[:, :end])
    return scores + inside


def span_vectors(posts):
    """Form every span vector s[i, j] = f_j - f_i from the fenceposts: [B, F, H, d] -> [B, F, F, H d]."""
    flat = posts.flatten(-2)
    return flat[:, None] - flat[:, :, None]


def score_vectors(scorer, vectors):
    """Score any span vectors [..., H d] by equations 5 and 6, W2 ReLU(LN(W1 s + b1)) + b2. The empty label scores 0: [..., L]."""
    hidden = torch.relu(scorer.norm(vectors @ scorer.first.weight.T + scorer.bias))
    scores = scorer.second(hidden)
    return torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)


def span_scores(scorer, posts):
    """Score all spans, [B, F, H, d] -> [B, F, F, L], as `SpanScorer` does for i < j, by forming every span vector first."""
    return score_vectors(scorer, span_vectors(posts))


def span_scores_without_heads(scorer, posts):
    """Score all spans once for each label head, with the head's slice of every span vector set to zero.

    [F, H, d] -> [H, F, F, L].
    """
    charts = []
    vectors = span_vectors(posts[None])[0].unflatten(-1, posts.shape[1:])
    for h in range(posts.shape[1]):
        kept = vectors.clone()
        kept[..., h, :] = 0
        charts.append(score_vectors(scorer, kept.flatten(-2)))
    return torch.stack(charts)


def decode_n5(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float = 0.5) -> JointTree:
    """Return the best joint tree in O(n^5): try every span, head word, split and dependent in turn.

    This is the recurrence of `lalkit.chart.joint` before it is made faster. It is compiled as the decoder is, checks its input
    and breaks ties in the same way, and keeps back-pointers. The scores must be finite: label_scores [n+1, n+1, L],
    arc_scores [n, n+1].
    """
    label_scores, arc_scores = as_arrays(label_scores, arc_scores, "")
    number = arc_scores.dtype.type
    score, spans, heads = _decode_n5(label_scores, arc_scores, number(lam), number(1 - lam))
    return JointTree(float(score), list(map(tuple, spans.tolist())), heads)


@compiled
def _decode_n5(label_scores, arc_scores, weight, other):
    n, dtype = arc_scores.shape[0], label_scores.dtype
    zero, least = dtype.type(0), dtype.type(-np.inf)
    best, label = np.zeros((n + 1, n + 1), dtype), np.zeros((n + 1, n + 1), np.int64)
    for i in range(n):
        for j in range(i + 1, n + 1):
            first = 2 if j - i == 1 or j - i == n else 1
            best[i, j], label[i, j] = weight * label_scores[i, j, first], first
            for k in range(label_scores.shape[2]):
                value = weight * label_scores[i, j, k]
                if not np.isfinite(value):
                    raise ValueError("not finite")
                if k > first and value > best[i, j]:
                    best[i, j], label[i, j] = value, k
    arcs = np.empty((n + 1, n), dtype)  # [head, dependent]: the innermost loop below runs along memory
    for d in range(n):
        for h in range(n + 1):
            arcs[h, d] = other * arc_scores[d, h] if h != d + 1 else zero

    content = np.zeros((n + 1, n + 1, n), dtype)  # U[i, j, h], with the split and the dependent that made it
    splits, dependents = np.zeros((n + 1, n + 1, n), np.int16), np.zeros((n + 1, n + 1, n), np.int16)
    for width in range(2, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            for h in range(i, j):
                top = least
                for k in range(i + 1, j):
                    a, b = (k, j) if h < k else (i, k)  # the dependent's side
                    c, d = (i, k) if h < k else (k, j)  # the head's
                    obligatory = best[a, b] if b - a > 1 else max(zero, best[a, b])
                    dependent, attached = a, least
                    for m in range(a, b):
                        value = (content[a, b, m] + obligatory) + arcs[h + 1, m]
                        if value > attached:
                            dependent, attached = m, value
                    value = (content[c, d, h] + max(zero, best[c, d])) + attached
                    if value > top:
                        top, splits[i, j, h], dependents[i, j, h] = value, k, dependent
                content[i, j, h] = top
    score, root = least, 0
    for h in range(n):
        value = (content[0, n, h] + best[0, n]) + arcs[0, h]
        if value > score:
            score, root = value, h

    spans, heads = [(0, n, label[0, n], root + 1)], np.zeros(n, np.int64)
    stack = [(0, n, root)]
    while stack:
        i, j, h = stack.pop()
        if j - i == 1:
            continue
        k, m = np.int64(splits[i, j, h]), np.int64(dependents[i, j, h])
        heads[m] = h + 1
        for a, b in ((i, k), (k, j)):
            word = h if a <= h < b else m
            if best[a, b] > 0 or (word == m and b - a > 1):
                spans.append((a, b, label[a, b], word + 1))
            stack.append((a, b, word))
    return score, np.array(spans), heads
