"""Exact joint decoding of constituents and dependencies (simplified HPSG) in O(n^4), on the CPU.

The model (Zhou and Zhao 2019; Mrini et al. 2020). A joint tree over n words is a binary tree in which every span has one
head word. A span (i, j) with head word h is split at k into two parts:

* the part that contains h may be labelled or not;
* the other part, with head word d, must be labelled or be a single word. The arc d -> h attaches it.

A single word can only have a real label (index >= 2); wider spans can also have <H> (index 1). The whole sentence must have
a real label, and its head word depends on the root. The decoder maximises

    lam * (scores of the labels) + (1 - lam) * (scores of the arcs).

The algorithm. U[i, j, h] is the best score of what is inside the span (i, j) with head word h, without its own label. One
chart T[i, j, h] holds two different things, which depend on where the word h is:

    h inside (i, j):   T = U + max(0, label)                              the part that contains the head word
    h outside (i, j):  T = max_d ((U[i, j, d] + obligatory) + arc(d, h))   the other part, attached to a head word h

`label` is the best label of the span. `obligatory` is the same; for a single word, it is max(0, label). Then

    U[i, j, h] = max_k (T[i, k, h] + T[k, j, h])

on whichever side of k the word h is. The second line of T makes this O(n^4). Trying every pair (d, h) at every split would
take O(n^5).

Ties. The smallest split wins, then the smallest dependent, and the smallest root; of labels, the smallest index. A label
replaces 'no label' only if its score is > 0. Scores are compared after weighting, and added in the order written above; the
final score is (U[0, n, h] + label) + arc(root, h). Therefore `joint_torch` gives the same bits, in float32 and float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from lalkit.chart import machine as memory
from lalkit.chart.cky import FIRST_REAL
from lalkit.chart.machine import NOT_FINITE, compiled, cpu_count, map_threads
from lalkit.errors import ScoreError

Result = TypeVar("Result")


class JointTree(NamedTuple):
    """The best joint tree of a sentence of n words.

    score: the maximum. spans: (start, end, label index, head word) of the labelled spans, <H> included, from the top down.
    heads: int64 [n], each word's head. Words are counted from 1, as in `treebank`, and 0 is the root.
    """

    score: float
    spans: list[tuple[int, int, int, int]]
    heads: np.ndarray


def decode(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> JointTree:
    """Return the best joint tree of one sentence.

    Args:
        label_scores: [n+1, n+1, L], of which the cells i < j are read. Index 0 is the empty label and must be 0.
        arc_scores: [n, n+1], dependent by head. Column 0 is the root, column h+1 is word h; [d, d+1] is not read.
            If one of the two is float64, everything is computed in float64, otherwise in float32.
        lam: The weight of labels; arcs have weight 1 - lam.

    Raises:
        ValueError: A shape is wrong, or lam is outside [0, 1].
        ScoreError: A score is NaN or infinite.
        TooLongError: The chart would not fit into memory.
    """
    return decode_batch([(label_scores, arc_scores)], lam, threads=1)[0]


def decode_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    lam: float,
    threads: int | None = None,
    names: Sequence[str] | None = None,
) -> list[JointTree]:
    """Return the best joint tree of every (label_scores, arc_scores) pair, see `decode`.

    Args:
        pairs: label_scores and arc_scores of every sentence.
        lam: The weight of labels; arcs have weight 1 - lam.
        threads: None for one per core. Fewer threads run if their charts would not fit into memory together.
        names: How errors name the sentences; None: by their numbers in the batch.
    """
    check_weight(lam)

    sentence, bytes_of = partial(_decode, lam=lam), lambda labels, arcs: memory.chart_bytes(len(arcs), arcs.itemsize)
    return map_sentences(sentence, pairs, bytes_of, threads, names)


def map_sentences(
    function: Callable[[np.ndarray, np.ndarray, str], Result],
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    bytes_of: Callable[[np.ndarray, np.ndarray], int],
    threads: int | None,
    names: Sequence[str] | None,
) -> list[Result]:
    """Return function(label_scores, arc_scores, name) of every pair, computed by threads.

    The function gets the pairs as `as_arrays` returns them. bytes_of(label_scores, arc_scores): the bytes that it needs.
    threads, names: see `decode_batch`. Raises TooLongError, before the computation, if a pair needs too much memory.
    """
    names = names or [f"sentence {b}" for b in range(len(pairs))]
    pairs = [as_arrays(labels, arcs, name) for name, (labels, arcs) in zip(names, pairs, strict=True)]
    needed = [bytes_of(*pair) for pair in pairs]
    lengths = [len(arcs) for _, arcs in pairs]
    return map_charts(lambda b: function(*pairs[b], names[b]), lengths, needed, threads, names)


def map_charts(
    function: Callable[[int], Result], lengths: Sequence[int], needed: Sequence[int], threads: int | None,
    names: Sequence[str],
) -> list[Result]:  # fmt: skip
    """Return function(b) of every sentence b, computed by threads. lengths, needed: words and bytes of each sentence."""
    largest = max(needed, default=0)
    limit = memory.available_bytes() if largest > memory.SMALL else None
    for n, size, name in zip(lengths, needed, names):
        memory.check_fits(n, size, limit, name)
    workers = cpu_count() if threads is None else threads
    if limit is not None and largest and workers > 1:
        workers = max(1, min(workers, limit // largest))
    return map_threads(function, range(len(needed)), workers)


def _decode(label_scores: np.ndarray, arc_scores: np.ndarray, where: str, lam: float) -> JointTree:
    n, dtype = len(arc_scores), arc_scores.dtype
    best, label = np.zeros((n + 1, n + 1), dtype), np.zeros((n + 1, n + 1), np.int64)
    arcs = arc_scores.copy()
    np.fill_diagonal(arcs[:, 1:], 0)  # a word is never its own head
    if not (np.isfinite(arcs).all() and best_labels(label_scores, dtype.type(lam), best, label)):
        check_scores(label_scores, arc_scores, where)
    return tree_of(where, *fill_and_unwind(best, label, arcs * dtype.type(1 - lam)))


def tree_of(where: str, score: float, spans: np.ndarray, heads: np.ndarray) -> JointTree:
    """Turn the result of `fill_and_unwind` into a tree. Raises ScoreError if the score is not finite: a sum overflowed."""
    if not math.isfinite(score):
        problem = f"the best score is {score}: the scores are too large to add up"
        raise ScoreError(problem, where=where, remedy=NOT_FINITE)
    return JointTree(float(score), list(map(tuple, spans.tolist())), heads)


def check_weight(lam: float) -> None:
    if not 0 <= lam <= 1:
        raise ValueError(f"lam must lie in [0, 1], not {lam}")


def as_arrays(label_scores, arc_scores, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both as contiguous arrays of one type: float64 if one is, else float32. Raises ValueError for a wrong shape."""
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


def check_scores(label_scores: np.ndarray, arc_scores: np.ndarray, where: str, forbidden: bool = False) -> None:
    """Raise ScoreError for the first score that is NaN or infinite, or for an empty label that does not score 0.

    forbidden: a score may also be -inf, which forbids its label or arc.
    """
    reason = "scores must be finite" + ", or -inf for what is forbidden" * forbidden
    wrong = ~(label_scores < np.inf) if forbidden else ~np.isfinite(label_scores)
    wrong[..., 0] = label_scores[..., 0] != 0  # also true for NaN
    wrong[np.tril_indices(len(wrong))] = False
    if wrong.any():
        i, j, k = np.argwhere(wrong)[0]
        value = label_scores[i, j, k]
        if np.isfinite(value) or (forbidden and k == 0):
            reason = "the empty label (index 0) must score exactly 0"
        raise ScoreError(f"label_scores[{i}, {j}, {k}] is {value}: {reason}", where=where, remedy=NOT_FINITE)
    wrong = ~(arc_scores < np.inf) if forbidden else ~np.isfinite(arc_scores)
    np.fill_diagonal(wrong[:, 1:], False)
    if wrong.any():
        d, h = np.argwhere(wrong)[0]
        raise ScoreError(f"arc_scores[{d}, {h}] is {arc_scores[d, h]}: {reason}", where=where, remedy=NOT_FINITE)


@partial(compiled, relaxed=["reassoc"])  # any order of additions: eight at a time
def _zeros(row):
    """Return the sum of row[0] * row[k], where row[0] is 0. The sum is 0, or NaN if a score is not finite."""
    zero = row[0]
    total = zero
    for k in range(1, row.shape[0]):
        total += zero * row[k]
    return total


@partial(compiled, relaxed=["nnan", "nsz"])  # NaN was excluded before
def _maximum(row, weight):
    top = weight * row[0]
    for k in range(1, row.shape[0]):
        top = max(top, weight * row[k])
    return top


@compiled
def best_labels(label_scores, weight, best, label):
    """Write the best allowed label and its weighted score of every span into `label` and `best`. The first index wins.

    Returns False if a score is not finite or an empty label is not 0. The rest is then undefined.
    """
    n = label_scores.shape[0] - 1
    for i in range(n):
        for j in range(i + 1, n + 1):
            # <H> is a group of several words inside a constituent. It is never one word, and never the whole sentence.
            first = 2 if j - i == 1 or j - i == n else 1
            row = label_scores[i, j]
            if row[0] != 0 or not _zeros(row) == 0:
                return False
            top, index = _maximum(row[first:], weight), first
            while weight * row[index] != top:
                index += 1
            best[i, j], label[i, j] = top, index
    return True


@compiled
def _content(chart, i, j, out):
    """Write out[h] = U[i, j, h] = max_k (T[i, k, h] + T[k, j, h]) for h in i..j-1; 0 for a single word."""
    if j - i == 1:
        out[i] = 0
        return
    for h in range(i, j):
        out[h] = chart[i, i + 1, h] + chart[i + 1, j, h]
    k = i + 2
    while k + 3 < j:  # four splits at a time read and write `out` a quarter as often; no branches, so it vectorises
        left0, left1, left2, left3 = chart[i, k], chart[i, k + 1], chart[i, k + 2], chart[i, k + 3]
        right0, right1, right2, right3 = chart[k, j], chart[k + 1, j], chart[k + 2, j], chart[k + 3, j]
        for h in range(i, j):
            a = max(left0[h] + right0[h], left1[h] + right1[h])
            b = max(left2[h] + right2[h], left3[h] + right3[h])
            out[h] = max(out[h], max(a, b))
        k += 4
    while k < j:
        left0, right0 = chart[i, k], chart[k, j]
        for h in range(i, j):
            out[h] = max(out[h], left0[h] + right0[h])
        k += 1


@compiled
def _attached(content, obligatory, rows, i, j, out):
    """Write out[h] = max_d ((U[i, j, d] + obligatory) + arc(d, h)) over d in i..j-1, for every head h."""
    n = rows.shape[0]
    first, row0 = content[i] + obligatory, rows[i]
    for h in range(n):
        out[h] = first + row0[h]
    d = i + 1
    while d + 3 < j:
        first, second = content[d] + obligatory, content[d + 1] + obligatory
        third, fourth = content[d + 2] + obligatory, content[d + 3] + obligatory
        row0, row1, row2, row3 = rows[d], rows[d + 1], rows[d + 2], rows[d + 3]
        for h in range(n):
            a = max(first + row0[h], second + row1[h])
            b = max(third + row2[h], fourth + row3[h])
            out[h] = max(out[h], max(a, b))
        d += 4
    while d < j:
        first, row0 = content[d] + obligatory, rows[d]
        for h in range(n):
            out[h] = max(out[h], first + row0[h])
        d += 1


@compiled
def _fill(chart, best, arcs):
    """Write T into an empty chart [n+1, n+1, n].

    All spans with one end come together, the longest last, so that T[k, j] stays in the processor's cache.
    """
    n = arcs.shape[0]
    zero = arcs.dtype.type(0)  # a literal 0.0 would make float32 sums float64
    rows = arcs[:, 1:].copy()  # [dependent, head word]
    content, attached = np.empty(n, arcs.dtype), np.empty(n, arcs.dtype)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            _content(chart, i, j, content)
            optional = max(zero, best[i, j])
            obligatory = optional if j - i == 1 else best[i, j]
            _attached(content, obligatory, rows, i, j, attached)
            cell = chart[i, j]
            for h in range(n):
                cell[h] = attached[h]
            for h in range(i, j):
                cell[h] = content[h] + optional


@compiled
def fill_and_unwind(best, label, arcs):
    """Return (score, spans [m, 4], heads [n]) of the best tree.

    best, label: [n+1, n+1], the weighted score and the index of the best label of every span. arcs: [n, n+1], weighted.

    On the way down, the splits and dependents that won are searched again. This takes O(n^3) and saves two charts of
    back-pointers.
    """
    n = arcs.shape[0]
    chart = np.empty((n + 1, n + 1, n), arcs.dtype)
    _fill(chart, best, arcs)
    content = np.empty(n, chart.dtype)
    heads = np.zeros(n, np.int64)
    spans = np.empty((2 * n - 1, 4), np.int64)
    stack = np.empty((2 * n, 4), np.int64)  # spans still to open: start, end, label, head word

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
        a, b = (split, j) if h < split else (i, split)  # the part without the head word
        _content(chart, a, b, content)
        dependent_label = label[a, b]
        obligatory = best[a, b]
        if b - a == 1 and not best[a, b] > 0:
            dependent_label, obligatory = 0, content[a]  # content is 0 inside a single word
        dependent, top = a, (content[a] + obligatory) + arcs[a, h + 1]
        for d in range(a + 1, b):
            value = (content[d] + obligatory) + arcs[d, h + 1]
            if value > top:
                dependent, top = d, value
        heads[dependent] = h + 1
        for side in range(2):  # the right part first, because the left part must leave the stack first
            left, right = (split, j) if side == 0 else (i, split)
            stack[depth, 0], stack[depth, 1] = left, right
            if left == a:
                stack[depth, 2], stack[depth, 3] = dependent_label, dependent
            else:
                stack[depth, 2], stack[depth, 3] = label[left, right] if best[left, right] > 0 else 0, h
            depth += 1
    return score, spans[:count], heads
