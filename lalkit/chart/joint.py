"""Exact joint decoding of constituents and dependencies on the CPU: simplified HPSG in O(n^4).

Model (Zhou and Zhao 2019; Mrini et al. 2020, section 3): a joint tree over n words is a binary derivation in which
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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lalkit.chart import memory
from lalkit.chart.cky import FIRST_REAL
from lalkit.chart.compiled import compiled, cpu_count, map_threads


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
    return decode_batch([(label_scores, arc_scores)], lam, threads=1)[0]


def decode_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], lam: float = 0.5, threads: int | None = None
) -> list[JointTree]:
    """The best joint trees of (label_scores, arc_scores) pairs, as `decode`, over threads (None: one per core).

    Fewer threads run if their charts would not fit into memory together. An error names the sentence (from 0).
    """
    check_weight(lam)
    pairs = [as_arrays(labels, arcs, f"sentence {b}") for b, (labels, arcs) in enumerate(pairs)]
    limit, largest = memory.available_bytes(), 0
    for b, (_, arcs) in enumerate(pairs):
        needed = memory.chart_bytes(len(arcs), arcs.itemsize)
        memory.check_fits(len(arcs), needed, limit, f"sentence {b}")
        largest = max(largest, needed)
    workers = cpu_count() if threads is None else threads
    if limit is not None and largest and workers > 1:
        workers = max(1, min(workers, limit // largest))
    return map_threads(lambda b: _decode(*pairs[b], lam, f"sentence {b}"), range(len(pairs)), workers)


def _decode(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float, where: str) -> JointTree:
    n, dtype = len(arc_scores), arc_scores.dtype
    check_scores(label_scores, arc_scores, where)
    best, label = np.zeros((n + 1, n + 1), dtype), np.zeros((n + 1, n + 1), np.int64)
    _best_labels(label_scores, dtype.type(lam), best, label)
    arcs = arc_scores.copy()
    np.fill_diagonal(arcs[:, 1:], 0)  # a word is never its own head; -inf * 0 would only give a warning
    arcs *= dtype.type(1 - lam)
    chart = np.empty((n + 1, n + 1, n), dtype)
    _fill(chart, best, arcs)
    return unwind(chart, best, label, arcs, n, where)


def unwind(chart, best, label, arcs, n: int, where: str = "") -> JointTree:
    """Filled chart -> tree. chart [N+1, N+1, N], best and label [N+1, N+1], arcs [N, N+1] (weighted), of which the
    first n words are this sentence. Raises ValueError if the score is not finite (sums that overflow)."""
    score, spans, heads = _unwind(chart, best, label, arcs, n)
    if not np.isfinite(score):
        raise ValueError(f"{where or 'sentence'}: the best score is {score}: the scores are too large to add up")
    return JointTree(float(score), [tuple(span) for span in spans.tolist()], heads)


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
    i, j, k = _first_wrong_label(label_scores)
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


@compiled
def _first_wrong_label(label_scores):
    size, _, labels = label_scores.shape
    for i in range(size):
        for j in range(i + 1, size):
            if label_scores[i, j, 0] != 0:  # also true for NaN
                return i, j, 0
            for k in range(1, labels):
                if not np.isfinite(label_scores[i, j, k]):
                    return i, j, k
    return -1, -1, -1


@compiled
def _best_labels(label_scores, weight, best, label):
    """Per span the best admissible label other than the empty one, and its weighted score; first index wins."""
    n, labels = label_scores.shape[0] - 1, label_scores.shape[2]
    for i in range(n):
        for j in range(i + 1, n + 1):
            # <H> stands for a group of several words inside a constituent: never one word, never the sentence.
            first = 2 if j - i == 1 or j - i == n else 1
            top, index = weight * label_scores[i, j, first], first
            for k in range(first + 1, labels):
                value = weight * label_scores[i, j, k]
                if value > top:
                    top, index = value, k
            best[i, j], label[i, j] = top, index


@compiled
def _content(chart, i, j, out):
    """out[h] = U[i, j, h] = max_k (T[i, k, h] + T[k, j, h]) for h in i..j-1; nothing (0) below a single word."""
    if j - i == 1:
        out[i] = 0
        return
    for h in range(i, j):
        out[h] = chart[i, i + 1, h] + chart[i + 1, j, h]
    for k in range(i + 2, j):
        left, right = chart[i, k], chart[k, j]
        for h in range(i, j):
            value = left[h] + right[h]
            out[h] = max(out[h], value)  # no branch: it vectorises


@compiled
def _fill(chart, best, arcs):
    """chart: empty [n+1, n+1, n] -> T. Spans end by end, longest last, so that T[k, j] stays in the processor cache."""
    n = arcs.shape[0]
    zero = arcs[0, 0] - arcs[0, 0]  # 0 of the charts' type: a literal would make float32 sums float64
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            cell = chart[i, j]
            _content(chart, i, j, cell)
            optional = best[i, j] if best[i, j] > 0 else zero
            obligatory = optional if j - i == 1 else best[i, j]
            for d in range(i, j):
                subtree, row = cell[d] + obligatory, arcs[d]
                if d == i:
                    for h in range(i):
                        cell[h] = subtree + row[h + 1]
                    for h in range(j, n):
                        cell[h] = subtree + row[h + 1]
                else:
                    for h in range(i):
                        value = subtree + row[h + 1]
                        cell[h] = max(cell[h], value)
                    for h in range(j, n):
                        value = subtree + row[h + 1]
                        cell[h] = max(cell[h], value)
            for h in range(i, j):
                cell[h] = cell[h] + optional


@compiled
def _unwind(chart, best, label, arcs, n):
    """The tree of a filled chart: (score, spans [m, 4], heads [n]). What won is found again on the way down, which
    costs O(n^3) and saves two charts of back-pointers."""
    content = np.empty(n, chart.dtype)
    heads = np.zeros(n, np.int64)
    spans = np.empty((2 * n - 1, 4), np.int64)
    stack = np.empty((2 * n, 4), np.int64)  # spans to open: start, end, label, head word

    _content(chart, 0, n, content)
    score, root = (content[0] + best[0, n]) + arcs[0, 0], 0
    for h in range(1, n):
        value = (content[h] + best[0, n]) + arcs[h, 0]
        if value > score:
            score, root = value, h
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, label[0, n], root

    depth, count = 1, 0
    while depth > 0:
        depth -= 1
        i, j, name, h = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if name > 0:
            spans[count, 0], spans[count, 1], spans[count, 2], spans[count, 3] = i, j, name, h + 1
            count += 1
        if j - i == 1:
            continue
        split, top = i + 1, chart[i, i + 1, h] + chart[i + 1, j, h]
        for k in range(i + 2, j):
            value = chart[i, k, h] + chart[k, j, h]
            if value > top:
                split, top = k, value
        a, b = (split, j) if h < split else (i, split)  # the dependent's side
        _content(chart, a, b, content)
        dependent_label = label[a, b]
        obligatory = best[a, b]
        if b - a == 1 and not best[a, b] > 0:
            dependent_label, obligatory = 0, content[a]  # content is 0 below a single word
        dependent, top = a, (content[a] + obligatory) + arcs[a, h + 1]
        for d in range(a + 1, b):
            value = (content[d] + obligatory) + arcs[d, h + 1]
            if value > top:
                dependent, top = d, value
        heads[dependent] = h + 1
        for side in range(2):  # the right part first: the left one must come off the stack before it
            left, right = (split, j) if side == 0 else (i, split)
            stack[depth, 0], stack[depth, 1] = left, right
            if left == a:
                stack[depth, 2], stack[depth, 3] = dependent_label, dependent
            else:
                stack[depth, 2], stack[depth, 3] = label[left, right] if best[left, right] > 0 else 0, h
            depth += 1
    return score, spans[:count], heads
