"""Exact joint decoding of constituents and dependencies on the CPU: simplified HPSG in O(n^4).

Model (Zhou and Zhao 2019; Mrini et al. 2020): a joint tree over n words is a binary derivation in which
every span has one head word. Span (i, j) with head h is split at k; of the two parts,

* the one that holds h may be labelled or not,
* the other, with head d, must be labelled or be a single word, and is attached by the arc d -> h.

A single word is labelled only with a real label (index >= 2); wider spans also with <H> (index 1); the whole sentence
must have a real label, and its head word hangs on the root. What is maximised:
lam * (labels of labelled spans) + (1 - lam) * (arcs).

One chart T[i, j, h] holds two things. With U[i, j, h] the best unlabelled content of (i, j) headed by h:

    h inside (i, j):   T = U + max(0, label)                                  the part that holds the head
    h outside (i, j):  T = max_d ((U[i, j, d] + obligatory label) + arc(d, h))    the best dependent for a head h

(obligatory: the best label, for a single word max(0, best label)). Then U[i, j, h] = max_k (T[i, k, h] + T[k, j, h])
whichever side holds h. The second line makes it O(n^4) where trying every pair (d, h) at every split is O(n^5).

Ties, the same everywhere: smallest split, then smallest dependent, smallest root; smallest label index; a label
replaces 'no label' only if it is > 0. Scores are compared after weighting and in the order of additions written
above, so float32 and float64 results are bit-identical to `joint_torch`. The final score is
(U[0, n, h] + label) + arc(root, h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lalkit.chart import joint_kernels, memory
from lalkit.chart.cky import FIRST_REAL
from lalkit.compiled import cpu_count, map_threads


class JointTree(NamedTuple):
    """score: the maximum. spans: (start, end, label index, head word) of labelled spans in pre-order, <H> included.
    heads: int64 [n], 0 for the root. Head words and heads are 1-based as in `treebank`: start < head word <= end."""

    score: float
    spans: list[tuple[int, int, int, int]]
    heads: np.ndarray


def decode(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float = 0.5) -> JointTree:
    """The best joint tree of one sentence.

    label_scores: [n+1, n+1, L], cells i < j are read; index 0 is the empty label and must be 0 there.
    arc_scores: [n, n+1], dependent word by head; column 0 is the root, column h+1 is word h; [d, d+1] is not read.
    float64 is computed as float64, all else as float32. Raises ValueError for shapes that do not fit, lam outside
    [0, 1], NaN or infinite scores; TooLongError if the chart would not fit into memory.
    """
    check_weight(lam)
    label_scores, arc_scores = as_arrays(label_scores, arc_scores, "sentence 0")
    needed = memory.chart_bytes(len(arc_scores), arc_scores.itemsize)
    if needed > memory.SMALL:
        memory.check_fits(len(arc_scores), needed, memory.available_bytes(), "sentence 0")
    return _decode(label_scores, arc_scores, lam, "sentence 0")


def decode_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], lam: float = 0.5, threads: int | None = None
) -> list[JointTree]:
    """The best joint trees of (label_scores, arc_scores) pairs, as `decode`, over threads (None: one per core).

    Fewer threads run if their charts would not fit into memory together. An error names the sentence (from 0).
    """
    check_weight(lam)
    pairs = [as_arrays(labels, arcs, f"sentence {b}") for b, (labels, arcs) in enumerate(pairs)]
    needed = [memory.chart_bytes(len(arcs), arcs.itemsize) for _, arcs in pairs]
    largest = max(needed, default=0)
    limit = memory.available_bytes() if largest > memory.SMALL else None
    for b, (_, arcs) in enumerate(pairs):
        memory.check_fits(len(arcs), needed[b], limit, f"sentence {b}")
    workers = cpu_count() if threads is None else threads
    if limit is not None and largest and workers > 1:
        workers = max(1, min(workers, limit // largest))
    return map_threads(lambda b: _decode(*pairs[b], lam, f"sentence {b}"), range(len(pairs)), workers)


def _decode(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float, where: str) -> JointTree:
    number = arc_scores.dtype.type
    fine, *found = joint_kernels.solve(label_scores, arc_scores, number(lam), number(1 - lam))
    if not fine:
        check_scores(label_scores, arc_scores, where)
    return _tree(*found, where)


def unwind(chart, best, label, arcs, n: int, where: str = "") -> JointTree:
    """Filled chart -> tree. chart [N+1, N+1, N], best and label [N+1, N+1], arcs [N, N+1] (weighted), of which the
    first n words are this sentence. Raises ValueError if the score is not finite (sums that overflow)."""
    return _tree(*joint_kernels.unwind(chart, best, label, arcs, n), where)


def _tree(score: float, spans: np.ndarray, heads: np.ndarray, where: str) -> JointTree:
    if not math.isfinite(score):
        raise ValueError(f"{where or 'sentence'}: the best score is {score}: the scores are too large to add up")
    return JointTree(float(score), list(map(tuple, spans.tolist())), heads)


def check_weight(lam: float) -> None:
    if not 0 <= lam <= 1:
        raise ValueError(f"lam must lie in [0, 1], not {lam}")


def as_arrays(label_scores, arc_scores, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Both as contiguous arrays of one type (float64 if either is, else float32). ValueError for wrong shapes."""
    label_scores, arc_scores = np.asarray(label_scores), np.asarray(arc_scores)
    n = len(arc_scores) if arc_scores.ndim else 0
    if n < 1 or arc_scores.shape != (n, n + 1):
        raise ValueError(f"{where}: arc_scores must be [n, n+1] with n >= 1, not {list(arc_scores.shape)}")
    if label_scores.ndim != 3 or label_scores.shape[:2] != (n + 1, n + 1) or label_scores.shape[2] <= FIRST_REAL:
        raise ValueError(
            f"{where}: label_scores must be [{n + 1}, {n + 1}, L] with L >= 3 (empty, <H>, a label) for {n} words, "
            f"not {list(label_scores.shape)}"
        )
    dtype = np.float64 if np.float64 in (label_scores.dtype, arc_scores.dtype) else np.float32
    return np.ascontiguousarray(label_scores, dtype), np.ascontiguousarray(arc_scores, dtype)


def check_scores(label_scores: np.ndarray, arc_scores: np.ndarray, where: str) -> None:
    """Raises ValueError naming the first score that is NaN or infinite, or an empty label that does not score 0."""
    i, j, k = joint_kernels.first_wrong_label(label_scores)
    if i >= 0:
        value, reason = label_scores[i, j, k], "scores must be finite"
        if np.isfinite(value):
            reason = "the empty label (index 0) must score exactly 0"
        raise ValueError(f"{where}: label_scores[{i}, {j}, {k}] is {value}: {reason}")
    wrong = ~np.isfinite(arc_scores)
    np.fill_diagonal(wrong[:, 1:], False)
    if wrong.any():
        d, h = np.argwhere(wrong)[0]
        raise ValueError(f"{where}: arc_scores[{d}, {h}] is {arc_scores[d, h]}: scores must be finite")
