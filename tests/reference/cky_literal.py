"""Every binary tree of a short sentence, without a chart: the twin of `lalkit.chart.cky` and of the margin loss."""

from functools import cache
from itertools import combinations

import numpy as np

Spans = tuple[tuple[int, int], ...]


@cache
def bracketings(i: int, j: int) -> tuple[Spans, ...]:
    """All binary trees over (i, j), spans in pre-order; smallest split first, then the left part, then the right."""
    if j - i == 1:
        return (((i, j),),)
    return tuple(
        ((i, j), *left, *right) for k in range(i + 1, j) for left in bracketings(i, k) for right in bracketings(k, j)
    )


def admissible(i: int, j: int, n: int, labels: int) -> list[int]:
    """Labels of a span: 0 empty, 1 <H>. The sentence has a real label, a single word is not <H>."""
    if (i, j) == (0, n):
        return list(range(2, labels))
    return [label for label in range(labels) if not (label == 1 and j - i == 1)]


def first_best(chart: np.ndarray) -> tuple[float, list[tuple[int, int, int]]]:
    """Score and labelled spans of the first best tree. Needs scores that add up exactly in any order."""
    n, labels = len(chart) - 1, chart.shape[2]
    chart = chart.astype(np.float64)
    name = {}
    for i, j in combinations(range(n + 1), 2):
        name[i, j] = max(admissible(i, j, n, labels), key=lambda label: (chart[i, j, label], -label))
    totals = [sum(chart[i, j, name[i, j]] for i, j in spans) for spans in bracketings(0, n)]
    at = int(np.argmax(totals))
    return totals[at], [(i, j, name[i, j]) for i, j in bracketings(0, n)[at] if name[i, j]]


def margin(chart: np.ndarray, gold: list[tuple[int, int, int]]) -> float:
    """max over trees T of s(T) + distance(T, gold), less s(gold): equations 7-9 before the max with 0."""
    n, labels = len(chart) - 1, chart.shape[2]
    chart = chart.astype(np.float64)
    wanted = {(i, j): label for i, j, label in gold}
    best = max(
        sum(
            max(chart[i, j, label] + (label != wanted.get((i, j), 0)) for label in admissible(i, j, n, labels))
            for i, j in spans
        )
        for spans in bracketings(0, n)
    )
    return best - sum(chart[i, j, label] for i, j, label in gold)
