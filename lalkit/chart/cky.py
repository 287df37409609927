"""The best labelled binary tree of a constituency chart (CKY), on the CPU, over the sentences of a batch.

A tree over n words is a binary bracketing with one label per span, the empty label (index 0) included; its score is
the sum over all 2n - 1 spans. The whole sentence has a real label, a single word never has <H> (Kitaev and Klein
2018, section 2; Mrini et al. 2020, eq. 7). Ties: smallest split first, smallest label index first. Score of a span:
label + (left + right).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lalkit.chart.machine import compiled, map_threads

EMPTY, SUBHEAD, FIRST_REAL = 0, 1, 2  # label indices: no label, <H>, the first label of the treebank


class ConstituencyTree(NamedTuple):
    """score: the maximum. spans: (start, end, label index) of the labelled spans, in pre-order."""

    score: float
    spans: list[tuple[int, int, int]]


def cky_batch(
    charts: Sequence[np.ndarray] | np.ndarray, lengths: Sequence[int] | None = None, threads: int | None = None
) -> list[ConstituencyTree]:
    """The best tree of every chart.

    charts: one [n+1, n+1, L] array per sentence, cells i < j are read, index 0 is the empty label with whatever score
    it has; or one padded array [B, N+1, N+1, L] with lengths [B]. threads: None for one per core. float64 stays
    float64, all else is float32. Raises ValueError for wrong shapes and for NaN or infinite scores, naming the
    sentence.
    """
    charts = list(charts)
    if lengths is None:
        lengths = [np.shape(chart)[0] - 1 for chart in charts]
    if len(lengths) != len(charts):
        raise ValueError(f"{len(lengths)} lengths for {len(charts)} charts")
    prepared = [_prepare(chart, int(n), f"sentence {b}") for b, (chart, n) in enumerate(zip(charts, lengths))]
    return map_threads(lambda item: _parse(*item), prepared, threads)


def _prepare(chart, n: int, where: str) -> tuple[np.ndarray, str]:
    chart = np.asarray(chart)
    if chart.ndim != 3 or chart.shape[0] != chart.shape[1] or chart.shape[2] <= FIRST_REAL:
        raise ValueError(f"{where}: a chart must be [n+1, n+1, L] with L >= 3, not {list(chart.shape)}")
    if not 1 <= n < chart.shape[0]:
        raise ValueError(f"{where}: length {n} is not in 1..{chart.shape[0] - 1}")
    dtype = np.float64 if chart.dtype == np.float64 else np.float32
    return np.ascontiguousarray(chart[: n + 1, : n + 1], dtype), where


def _parse(chart: np.ndarray, where: str) -> ConstituencyTree:
    n = len(chart) - 1
    best, label = np.zeros((n + 1, n + 1), chart.dtype), np.zeros((n + 1, n + 1), np.int64)
    i, j = _best_labels(chart, best, label)
    if i >= 0:
        raise ValueError(f"{where}: the scores of span ({i}, {j}) are not all finite")
    score, spans = _cky(best, n)
    labelled = [(i, j, int(label[i, j])) for i, j in spans.tolist() if label[i, j] != EMPTY]
    return ConstituencyTree(float(score), labelled)


def best_brackets(best: np.ndarray, lengths: Sequence[int], threads: int | None = None) -> list[np.ndarray]:
    """The spans [2n-1, 2] (start, end), in pre-order, of the best binary tree of every sentence.

    best: [B, N+1, N+1], per span the score of its best label; cells i < j <= n are read and must be finite.
    """
    best = np.ascontiguousarray(best)
    return map_threads(lambda b: _cky(best[b], lengths[b])[1], range(len(lengths)), threads)


@compiled
def _best_labels(chart, best, label):
    """Per span the best admissible label and its score. Returns the first span with a score not finite, or (-1, -1)."""
    n, labels = chart.shape[0] - 1, chart.shape[2]
    for i in range(n):
        for j in range(i + 1, n + 1):
            first = 2 if j - i == n else 0
            top, index = chart[i, j, first], first
            for k in range(labels):
                value = chart[i, j, k]
                if not np.isfinite(value):
                    return i, j
                if k > first and value > top and not (k == 1 and j - i == 1):
                    top, index = value, k
            best[i, j], label[i, j] = top, index
    return -1, -1


@compiled
def _cky(best, n):
    """(score, spans [2n-1, 2] in pre-order) of the best binary tree over the first n words; best: [N+1, N+1]."""
    chart = np.empty((n + 1, n + 1), best.dtype)
    splits = np.zeros((n + 1, n + 1), np.int32)
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            if width == 1:
                chart[i, j] = best[i, j]
                continue
            split, top = i + 1, chart[i, i + 1] + chart[i + 1, j]
            for k in range(i + 2, j):
                value = chart[i, k] + chart[k, j]
                if value > top:
                    split, top = k, value
            chart[i, j], splits[i, j] = best[i, j] + top, split

    spans = np.empty((2 * n - 1, 2), np.int64)
    stack = np.empty((2 * n, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth, count = 1, 0
    while depth > 0:
        depth -= 1
        i, j = stack[depth, 0], stack[depth, 1]
        spans[count, 0], spans[count, 1] = i, j
        count += 1
        if j - i > 1:
            k = splits[i, j]
            stack[depth, 0], stack[depth, 1] = k, j  # the right part waits below the left one
            stack[depth + 1, 0], stack[depth + 1, 1] = i, k
            depth += 2
    return chart[0, n], spans
