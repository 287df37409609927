"""Compute exact probabilities of joint trees: of every span, label, arc and head word. O(n^4), on the CPU.

The distribution. p(tree) is proportional to exp(score / temperature). The joint trees and their score are those of `joint`,
the arc to the root included. Here a span can have any allowed label; the decoder takes the best.

The algorithm. The decoder may attach the left and right dependents of a head word in any order. A sum must count every tree
once. Therefore a constituent first takes all right dependents of its head word and then the left ones, one by one. With h
the head word, d the head word of a dependent, and + for the logarithm of a sum of several cases:

    U(i, j, h) = sum over k of (R(i, k, h), D(k, j, h)) if k > h, else of (D(i, k, h), L(k, j, h))    the content; one word: 0
    N(i, j, h) = sum over labels of (label, U(i, j, h))        a child: a labelled span (or a single word, with or without label)
    D(i, j, h) = sum over d of (N(i, j, d), arc(d, h))         a dependent child of a head word h outside (i, j)
    R(i, j, h) = N(i, j, h) + that part of U with k > h        the head child, and right dependents
    L(i, j, h) = N(i, j, h) + U(i, j, h)                       then left dependents

and log Z = sum over h of (N(0, n, h), arc(h, root)). The second pass goes from the sentence down to the words, and shares the
probability of every sum out among its terms. `readings` has the same charts with maxima instead of sums.

One layer. Trees of constituents alone are the joint trees in which the first word of every constituent is its head. For arcs
alone, labels weigh nothing, and a span of several words is a child N only where it is a dependent (`YIELD`): so the labelled
spans are the full yields of words, and every projective tree counts once. See `of_one_layer`.

Numbers. The charts hold logarithms. The inner loops multiply and add numbers that are divided by the largest one of their
span. Where such a sum is so small that parts of it may have become 0, it is computed again with logarithms. So the
probabilities are exact up to rounding, also if scores are -inf or very far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import NamedTuple

import numpy as np

from lalkit.chart.cky import FIRST_REAL, SUBHEAD
from lalkit.chart.joint import check_scores, check_weight, map_sentences
from lalkit.chart.machine import NOT_FINITE, compiled
from lalkit.config import LEAST_TEMPERATURE, MOST_TEMPERATURE
from lalkit.errors import ScoreError, shown

Temperature = float | tuple[float, float] | list[float]  # the divisor of all scores; or two: of labels and of arcs
TINY = 1e-200  # a scaled sum below this is computed again with logarithms
FREE, CLOSED, YIELD = range(3)  # spans: any item; only a child N; a child N only as a dependent
LOWEST = -1e300  # the scale of a span that no tree has: the difference of two infinities would not be a number


class Marginals(NamedTuple):
    """The probabilities of the parts of a joint tree over n words.

    log_partition: the log of the sum over all trees of exp(score / temperature).
    labels: [n+1, n+1, L], the probability that (i, j) is a constituent with this label. Index 0: that it has no label.
        Cells i >= j are 0.
    arcs: [n, n+1], the probability of each arc, dependent by head. Column 0 is the root.
    head_words: [n+1, n+1, n], the probability that (i, j) is a labelled constituent with this head word (counted from 0).
    """

    log_partition: float
    labels: np.ndarray
    arcs: np.ndarray
    head_words: np.ndarray


def marginals(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float, temperature: float = 1.0) -> Marginals:
    """Return the probabilities of all spans, labels and arcs of one sentence.

    Args:
        label_scores: [n+1, n+1, L], of which the cells i < j are read. Index 0 is the empty label and must be 0.
        arc_scores: [n, n+1], dependent by head. Column 0 is the root, column h+1 is word h; [d, d+1] is not read.
            A score of -inf forbids its label or arc.
        lam: The weight of labels; arcs have weight 1 - lam.
        temperature: The divisor of the scores. Above 1 it makes the probabilities of trees more equal.

    Returns:
        Probabilities as float64 if one of the arrays is, otherwise as float32. They are computed in float64.

    Raises:
        ValueError: A shape or a setting is wrong.
        ScoreError: A score is NaN, +inf or too large to add up, or every tree is forbidden.
        TooLongError: The chart would not fit into memory.
    """
    return marginals_batch([(label_scores, arc_scores)], lam, temperature, threads=1)[0]


def marginals_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    lam: float,
    temperature: Temperature = 1.0,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    task: str = "joint",
) -> list[Marginals]:
    """Return the probabilities of every (label_scores, arc_scores) pair.

    lam, temperature: see `marginals`. threads, names: see `joint.decode_batch`. task: see `of_one_layer`.
    """
    weights = check_distribution(lam, temperature)
    pairs = [of_one_layer(task, *pair) for pair in pairs]
    return map_sentences(partial(_marginals, weights, task), pairs, _bytes_needed, threads, names)


def of_one_layer(task: str, label_scores: np.ndarray, arc_scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores whose joint trees are the trees of one layer, each once; for task 'joint' the scores as they are.

    'dependencies': lam must be 0, and spans closed by `closed_spans`. 'constituents': lam must be 1; groups (<H>) are forbidden.
    """
    n = len(arc_scores)
    if task == "dependencies":
        label_scores = np.zeros((n + 1, n + 1, FIRST_REAL + 1), arc_scores.dtype)
        label_scores[range(n), range(1, n + 1), FIRST_REAL] = 0 if n == 1 else -np.inf
        label_scores[..., SUBHEAD] = -np.inf
    if task == "constituents":
        label_scores, to_the_left = label_scores.copy(), np.tri(n, n + 1, dtype=bool)
        to_the_left[:, 0] = np.arange(n) == 0
        arc_scores = np.where(to_the_left, 0, -np.inf).astype(arc_scores.dtype)
        label_scores[..., SUBHEAD] = -np.inf
    return label_scores, arc_scores


def closed_spans(task: str, n: int) -> np.ndarray:
    """Return FREE, CLOSED or YIELD for every span: int8 [n+1, n+1]."""
    closed = np.full((n + 1, n + 1), CLOSED if n == 1 else FREE, np.int8)
    return closed if task != "dependencies" or n == 1 else YIELD * np.triu(np.ones_like(closed), 2)


def _marginals(
    weights: tuple[float, float], task: str, label_scores: np.ndarray, arc_scores: np.ndarray, where: str
) -> Marginals:
    n = len(arc_scores)
    labels, names, closed = np.zeros_like(label_scores), np.full((n + 1, n + 1), -np.inf), closed_spans(task, n)
    _label_weights(label_scores, weights[0], labels, names)
    with np.errstate(invalid="ignore", over="ignore"):  # -inf forbids, also where the weight is 0
        arcs = np.where(arc_scores == -np.inf, -np.inf, arc_scores * np.float64(weights[1]))
    arcs[range(n), range(1, n + 1)] = -np.inf
    log_z, *charts = inside(names, arcs, closed) if (names < np.inf).all() and (arcs < np.inf).all() else (np.nan,)
    if not abs(log_z) < np.inf:
        check_scores(label_scores, arc_scores, where, forbidden=True)
        if log_z == -np.inf:
            remedy = "Allow a real label for the whole sentence, a head for every word, and one of them the root."
            raise ScoreError("no joint tree is left without a forbidden label or arc", where=where, remedy=remedy)
        raise ScoreError("the scores are too large to add up", where=where, remedy=NOT_FINITE)
    arc_sums = np.zeros_like(arcs)
    head_words = outside(names, arcs, closed, log_z, *charts, arc_sums)
    spans = head_words.sum(-1)
    labels *= spans[..., None].astype(labels.dtype)
    labels[..., 0] = np.triu(1 - np.minimum(spans, 1), 1)
    return Marginals(log_z, labels, arc_sums.astype(labels.dtype), head_words)


def check_distribution(lam: float, temperature: Temperature) -> tuple[float, float]:
    """Return the factors of label and of arc scores. Raises ValueError for a lam or a temperature outside its bounds."""
    check_weight(lam)
    of_labels, of_arcs = temperatures(temperature)
    return lam / of_labels, (1 - lam) / of_arcs


def temperatures(temperature: Temperature) -> tuple[float, float]:
    """Return the temperatures of labels and of arcs. Raises ValueError unless they are numbers within their bounds."""
    pair = tuple(temperature) if isinstance(temperature, tuple | list) else (temperature, temperature)
    least, most = LEAST_TEMPERATURE, MOST_TEMPERATURE
    if len(pair) != 2 or not all(isinstance(number, Real) and least <= number <= most for number in pair):
        allowed = f"a number from {least} to {most:g}, or two for labels and arcs"
        raise ValueError(f"temperature must be {allowed}, not {shown(temperature)}")
    return pair


def _bytes_needed(label_scores: np.ndarray, arc_scores: np.ndarray) -> int:
    """Return the bytes for the probabilities of a sentence: three charts of float64, and arrays of the size of the scores."""
    n = len(arc_scores)
    return 8 * (3 * n * (n + 1) ** 2 + 4 * arc_scores.size) + label_scores.nbytes


# ---------------------------------------------------------------- both passes


@compiled
def _label_weights(label_scores, weight, shares, names):
    """Write the logarithm of the weight of all labels of a span into names, and the share of each label into shares.

    names is NaN where a score is NaN or +inf, or where the empty label is not 0.
    """
    n = label_scores.shape[0] - 1
    for i in range(n):
        for j in range(i + 1, n + 1):
            row, share = label_scores[i, j], shares[i, j]
            first = FIRST_REAL if j - i == 1 or j - i == n else SUBHEAD
            top, total = LOWEST, 0.0 if row[0] == 0 else np.nan
            for k in range(first, row.shape[0]):
                # -inf forbids, even if the weight is 0
                top = max(top, weight * row[k] if row[k] != -np.inf else -np.inf)
            for k in range(first, row.shape[0]):
                value = math.exp((weight * row[k] if row[k] != -np.inf else -np.inf) - top)
                total += value
                share[k] = value
            names[i, j] = top + math.log(total)
            share[first:] /= max(total, TINY)


@compiled
def _log_add(a, b):
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@compiled
def _log_sum(a, b):
    """Return the logarithm of the sum of e^(a + b)."""
    top, total = -np.inf, 0.0
    for k in range(a.shape[0]):
        top = max(top, a[k] + b[k])
    for k in range(a.shape[0]):
        total += math.exp(a[k] + b[k] - top) if top > -np.inf else 0.0
    return top + math.log(total) if total > 0 else top


@compiled
def _log_splits(chart, i, j, h, first):
    """Return the logarithm of the sum over the splits k in first..j-1."""
    return _log_sum(chart[i, first:j, h], chart[j, first:j, h])


@compiled
def _part(probability, logarithm):
    return probability * math.exp(logarithm) if probability > 0 else 0.0


@compiled
def _add_row(out, factor, row):
    for h in range(out.shape[0]):
        out[h] += factor * row[h]


@compiled
def _add_products(out, factor, left, right):
    for h in range(out.shape[0]):
        out[h] += factor * (left[h] * right[h])


@compiled
def _add_shares(of_left, of_right, shares, factor, left, right):
    for h in range(shares.shape[0]):
        share = shares[h] * (factor * (left[h] * right[h]))
        of_left[h] += share
        of_right[h] += share


@partial(compiled, relaxed=["contract", "reassoc"])  # any order of additions
def _product(a, b):
    total = 0.0
    for h in range(a.shape[0]):
        total += a[h] * b[h]
    return total


@compiled
def _choice(names, closed, i, j):
    """Return three logarithms of ratios of a span, then two ratios.

    Logarithms: L / U, N / L, and (N with a label) / N. Ratios: (L without N) / L, and (N as a head child) / L.
    """
    if closed[i, j] == CLOSED:
        return names[i, j], 0.0, 0.0, 0.0, 1.0
    if closed[i, j] == YIELD:
        return 0.0, names[i, j], 0.0, 1.0, 0.0
    both = _log_add(0.0, names[i, j])
    if j - i == 1:
        return both, 0.0, names[i, j] - both, 0.0, 1.0
    return both, names[i, j] - both, 0.0, math.exp(-both), math.exp(names[i, j] - both)


@compiled
def inside(names, arcs, closed):
    """Return log Z and three charts: chart and scaled [n+1, n+1, n], top [n+1, n+1].

    chart: [i, j, h] has R where h is inside (i, j), and D where h >= j. [j, i, h] has L and, where h < i, D.
    top: [i, j] is the highest of them, [j, i] is the scale of U. scaled: e^(chart - top[i, j]).

    names: [n+1, n+1], the logarithm of the weight of all labels of a span. arcs: [n, n+1]. closed: [n+1, n+1], FREE, YIELD, or
    CLOSED, where a single word needs a label, too (see `readings`). A sentence of one word must be closed.
    """
    n = arcs.shape[0]
    chart, scaled, top = np.empty((n + 1, n + 1, n)), np.empty((n + 1, n + 1, n)), np.full((n + 1, n + 1), LOWEST)
    right, both, attached = np.empty(n), np.empty(n), np.empty(n)
    highest_arc = max(LOWEST, arcs[:, 1:].max())
    arc_weights = np.exp(arcs[:, 1:] - highest_arc)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            for k in range(i + 1, j):
                top[j, i] = max(top[j, i], top[i, k] + top[k, j])
            both[i:j] = right[i:j] = 0
            for k in range(j - 1, i, -1):
                factor = math.exp(top[i, k] + top[k, j] - top[j, i])
                _add_products(both[i:j], factor, scaled[i, k, i:j], scaled[j, k, i:j])
                right[k - 1] = both[k - 1]  # all k > h; smaller ones are still to come
            if j - i == 1:
                top[j, i], both[i] = 0, 1

            over, child, _, rest, head = _choice(names, closed, i, j)
            after, before, highest = chart[i, j], chart[j, i], LOWEST
            for h in range(i, j):
                exact = both[h] > TINY
                content = top[j, i] + math.log(both[h]) if exact else _log_splits(chart, i, j, h, i + 1)
                before[h], after[h] = content + over, content + over + child if head > 0 else -np.inf
                share = head + rest * (right[h] / both[h]) if exact else 0.0
                if rest > 0 and share > TINY:
                    after[h] = before[h] + math.log(share)
                elif rest > 0:
                    after[h] = _log_add(after[h], _log_splits(chart, i, j, h, h + 1))
                highest = max(highest, before[h])

            attached[:] = 0
            for d in range(i, j):
                _add_row(attached, math.exp(before[d] - highest), arc_weights[d])
            scale = highest + child + highest_arc
            for h in range(n):
                if h < i or h >= j:
                    value = scale + math.log(attached[h])
                    if not attached[h] > TINY:
                        value = child + _log_sum(before[i:j], arcs[i:j, h + 1])
                    (before if h < i else after)[h] = value
                    highest = max(highest, value)
            top[i, j] = highest
            for h in range(j):
                scaled[j, i, h] = math.exp(before[h] - highest)
            for h in range(i, n):
                scaled[i, j, h] = math.exp(after[h] - highest)
    return _log_sum(chart[n, 0], arcs[:, 0]) + _choice(names, closed, 0, n)[1], chart, scaled, top


@compiled
def outside(names, arcs, closed, log_z, chart, scaled, top, arc_sums):
    """Add the probabilities of arcs to arc_sums [n, n+1]. Return the probabilities of head words [n+1, n+1, n].

    The other arguments are those of `inside` and its results. No span may be closed, except in a sentence of one word.
    """
    n = arcs.shape[0]
    shares = np.zeros((n + 1, n + 1, n))  # the probability of each entry of the chart, and then of head words
    here, slopes, slope_sums = np.empty(n), np.empty(n), np.zeros((n, n))
    to_left, to_right = np.zeros(n), np.zeros(n)
    highest_arc = max(LOWEST, arcs[:, 1:].max())
    arc_weights = np.exp(arcs[:, 1:] - highest_arc)
    for i in range(n):
        for j in range(n, i, -1):
            over, child, name, rest, labelled = _choice(names, closed, i, j)
            arc_scale = math.exp(child + highest_arc)
            left_scale, right_scale = math.exp(top[j, i] + over - top[i, j]), math.exp(top[j, i] - top[i, j])
            here[i:j], slopes[:] = 0, 0
            for h in range(n):
                a, b = (j, i) if h < i else (i, j)
                share, value = shares[a, b, h], scaled[a, b, h]
                if j - i == n:
                    here[h] = arc_sums[h, 0] = math.exp(chart[n, 0, h] + child + arcs[h, 0] - log_z)
                elif (h < i or h >= j) and value > max(1.0, arc_scale) * TINY:
                    slopes[h] = share * (arc_scale / value)
                elif (h < i or h >= j) and share > 0:
                    for d in range(i, j):
                        part = _part(share, chart[j, i, d] + child + arcs[d, h + 1] - chart[a, b, h])
                        here[d] += part
                        arc_sums[d, h + 1] += part
            for d in range(i, j):
                here[d] += scaled[j, i, d] * _product(arc_weights[d], slopes)
                _add_row(slope_sums[d], scaled[j, i, d], slopes)

            for h in range(i, j):
                after, before, both = shares[i, j, h], shares[j, i, h], scaled[j, i, h]
                first = scaled[i, j, h] if after > 0 else np.inf
                exact = both > max(1.0, left_scale) * TINY and first > max(1.0, right_scale) * TINY
                if exact:
                    here[h] += before * labelled + after * (labelled * both / first)
                else:
                    part = _part(after, chart[j, i, h] + child - chart[i, j, h]) if labelled > 0 else 0.0
                    here[h] += before * labelled + part
                below = here[h] + before * rest  # the probability of U
                to_left[h] = below * (left_scale / both) if exact else 0.0
                to_right[h] = to_left[h] + after * (right_scale / first) if exact else 0.0
                for k in range(i + 1, i if exact else j):
                    value = chart[i, k, h] + chart[j, k, h]
                    part = _part(below, value + over - chart[j, i, h])
                    part += _part(after, value - chart[i, j, h]) if k > h else 0.0
                    shares[i, k, h] += part
                    shares[j, k, h] += part
            for k in range(j - 1, i, -1):
                to_right[k] = to_left[k]  # and of all larger h
                factor, left, right = math.exp(top[i, k] + top[k, j] - top[j, i]), scaled[i, k, i:j], scaled[j, k, i:j]
                _add_shares(shares[i, k, i:j], shares[j, k, i:j], to_right[i:j], factor, left, right)
            shares[i, j] = shares[j, i] = 0
            shares[i, j, i:j] = here[i:j] * math.exp(name)
    arc_sums[:, 1:] += slope_sums * arc_weights
    return shares
