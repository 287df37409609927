"""Find the best labelled binary tree of a constituency chart (CKY), on the CPU, for all sentences of a batch.

A tree over n words has 2n - 1 spans: every span of two words and more is split into two. Each span has one label, which may
be the empty label (index 0). The score of the tree is the sum of its labels' scores. The whole sentence must have a real
label, and a single word never has <H> (Kitaev and Klein 2018, section 2; Mrini et al. 2020, eq. 7).

Of trees with equal scores, the one with the smallest split wins, and of equal labels the one with the smallest index. The
score of a span is added up as label + (left + right).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lalkit.chart.machine import NOT_FINITE, compiled, map_threads
from lalkit.errors import ScoreError

EMPTY, SUBHEAD, FIRST_REAL = 0, 1, 2  # label indices: no label; <H>; the first label of the treebank


class ConstituencyTree(NamedTuple):
    """score: the maximum. spans: (start, end, label index) of the labelled spans, from the top down and left to right."""

    score: float
    spans: list[tuple[int, int, int]]


def cky_batch(
    charts: Sequence[np.ndarray] | np.ndarray,
    lengths: Sequence[int] | None = None,
    threads: int | None = None,
    names: Sequence[str] | None = None,
) -> list[ConstituencyTree]:
    """Return the best tree of every chart.

    Args:
        charts: One array [n+1, n+1, L] per sentence, of which the cells i < j are read; or one padded array
            [B, N+1, N+1, L]. Index 0 is the empty label; its scores need not be 0. float64 stays float64, any other type
            becomes float32.
        lengths: [B], the numbers of words, for a padded array.
        threads: The number of threads; None: one per core.
        names: How errors name the sentences; None: by their numbers in the batch.

    Raises:
        ValueError: A shape is wrong.
        ScoreError: A score is NaN or infinite.
    """
    charts = list(charts)
    if lengths is None:
        lengths = [np.shape(chart)[0] - 1 for chart in charts]
    if len(lengths) != len(charts):
        raise ValueError(f"{len(lengths)} lengths for {len(charts)} charts")
    names = names or [f"sentence {b}" for b in range(len(charts))]
    items = list(zip(charts, map(int, lengths), names, strict=True))
    return map_threads(lambda item: _parse(*item), items, threads)


def _parse(chart, n: int, where: str) -> ConstituencyTree:
    chart = np.asarray(chart)
    if chart.ndim != 3 or chart.shape[0] != chart.shape[1] or chart.shape[2] <= FIRST_REAL:
        raise ValueError(f"{where}: a chart must be [n+1, n+1, L] with L >= 3, not {list(chart.shape)}")
    if not 1 <= n < chart.shape[0]:
        raise ValueError(f"{where}: length {n} is not in 1..{chart.shape[0] - 1}")
    chart = chart[: n + 1, : n + 1].astype(np.float64 if chart.dtype == np.float64 else np.float32)  # a copy
    if len(wrong := np.argwhere(np.triu(~np.isfinite(chart).all(-1), 1))):
        i, j = wrong[0]
        raise ScoreError(f"the scores of span ({i}, {j}) are not all finite", where=where, remedy=NOT_FINITE)
    chart[np.arange(n), np.arange(1, n + 1), SUBHEAD] = -np.inf  # <H> is a group of several words
    chart[0, n, :FIRST_REAL] = -np.inf  # the whole sentence has a real label
    label = chart.argmax(-1)  # of equal ones, the first
    score, spans = _cky(np.take_along_axis(chart, label[..., None], -1)[..., 0], n)
    labelled = [(i, j, int(label[i, j])) for i, j in spans.tolist() if label[i, j] != EMPTY]
    return ConstituencyTree(float(score), labelled)


def best_brackets(best: np.ndarray, lengths: Sequence[int], threads: int | None = None) -> list[np.ndarray]:
    """Return the spans [2n-1, 2] (start, end) of the best binary tree of every sentence, from the top down.

    best: [B, N+1, N+1], the score of the best label of every span. Cells i < j <= n are read and must be finite.
    """
    best = np.ascontiguousarray(best)
    return map_threads(lambda b: _cky(best[b], lengths[b])[1], range(len(lengths)), threads)


@compiled
def _cky(best, n):
    """Return (score, spans [2n-1, 2] from the top down) of the best binary tree over the first n words."""
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
            stack[depth, 0], stack[depth, 1] = k, j  # the left part is taken from the stack first
            stack[depth + 1, 0], stack[depth + 1, 1] = i, k
            depth += 2
    return chart[0, n], spans
