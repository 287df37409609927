"""Joint decoding in O(n^5): every span, head word, split and dependent tried in turn, as the recurrence is first written down.

Compiled as the decoder is, with the same checks of the input and the same tie-breaking, and with back-pointers. What it
maximises is said in `lalkit.chart.joint`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lalkit.chart.joint import JointTree, as_arrays


def decode_n5(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float = 0.5) -> JointTree:
    """As `lalkit.chart.joint.decode`, for finite scores: label_scores [n+1, n+1, L], arc_scores [n, n+1]."""
    label_scores, arc_scores = as_arrays(label_scores, arc_scores, "")
    number = arc_scores.dtype.type
    score, spans, heads = _decode(label_scores, arc_scores, number(lam), number(1 - lam))
    return JointTree(float(score), list(map(tuple, spans.tolist())), heads)


@njit(nogil=True)  # no cache on disk: it would not be found under the name that `lalkit bench` loads this by
def _decode(label_scores, arc_scores, weight, other):
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
