"""Compute sums over all joint trees of a sentence by inside and outside passes, O(n^4), on the CPU: the kernels of `marginals`.

The algorithm. The decoder may attach the left and right dependents of a head word in any order. A sum must count every tree
once. Therefore a constituent first takes all right dependents of its head word and then the left ones, one by one:

    N(i, j, h) = sum over labels e^label * U(i, j, h)                 a labelled span; for a single word: 1 + its labels
    D(i, j, h) = sum over d in (i, j) of N(i, j, d) e^arc(d, h)       the same as a dependent of a head word h outside
    R(i, j, h) = N(i, j, h) + sum over k > h of R(i, k, h) D(k, j, h)    the head word and its right dependents
    L(i, j, h) = R(i, j, h) + sum over k <= h of D(i, k, h) L(k, j, h)   then its left dependents
    U(i, j, h) = L(i, j, h) - N(i, j, h)                              the content of a labelled span; 1 for a single word

and Z = sum over h of N(0, n, h) e^arc(h, root). The derivatives of log Z are the probabilities (Eisner 2016, "Inside-outside
and forward-backward algorithms are just backprop"). The outside pass computes them, from the whole sentence to the words.

Numbers. Both passes run in float64 without logarithms, so that the inner loops are products and sums. Every span has one
scale, a power of 2. A sum is exact up to rounding unless a number of a span is very much smaller than the largest one, or 0
because a score is -inf. Such a sentence is computed again with logarithms, which takes much longer.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from lalkit.chart.machine import compiled

TINY = 2.0**-900  # where a number of a span is smaller, parts of it may have become 0
LOG2 = math.log(2)
ROUND = 1.5 * 2.0**52  # x + ROUND - ROUND is x, rounded; the low bits of x + ROUND are its integer
HIGH, LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # log 2 in two parts: HIGH * 2^k has no rounding
UNSIGNED = np.uintp
ONE, TWO, THREE, FOUR = (np.uintp(k) for k in (1, 2, 3, 4))
SERIES = tuple(1 / math.factorial(k) for k in range(13, -1, -1))  # of exp
fused = partial(compiled, relaxed=["contract"])  # a * b + c may be rounded once


# ---------------------------------------------------------------- scores to weights


@fused
def _exponentials(row, weight, top, room, out):
    """Write exp(weight * row - top) into out; 0 where the exponent is below -700. room: float64 [2, at least as long].

    exp(x) = 2^k exp(x - k log 2) with the series of exp. These loops vectorise; calls of the library's exp do not.
    """
    powers, values = room[0], room[1]
    bits = powers.view(np.int64)
    for k in range(row.shape[0]):
        x = max(weight * row[k] - top, -700.0)
        shifted = x * (1 / LOG2) + ROUND
        whole = shifted - ROUND
        rest = (x - whole * HIGH) - whole * LOW
        value = SERIES[0]
        for term in SERIES[1:]:
            value = value * rest + term
        powers[k] = shifted
        values[k] = value
    for k in range(row.shape[0]):
        bits[k] = (bits[k] + 1023) << 52
    for k in range(row.shape[0]):
        out[k] = values[k] * powers[k] if weight * row[k] - top > -700.0 else 0.0


@compiled
def _usable(row):
    """Return whether no score is NaN or +inf."""
    wrong = 0
    for k in range(row.shape[0]):
        wrong += not row[k] < np.inf
    return wrong == 0


@partial(compiled, relaxed=["nnan", "nsz"])  # NaN was excluded before
def _maximum(row, weight):
    top = -np.inf
    for k in range(row.shape[0]):
        top = max(top, weight * row[k] if row[k] > -np.inf else -np.inf)  # -inf forbids, also where the weight is 0
    return top


@partial(compiled, relaxed=["contract", "reassoc", "nsz"])  # any order of additions
def _share(row, weight, values):
    """Divide the values by their sum. Return (sum, sum of value * weight * row after the division)."""
    total, mean = 0.0, 0.0
    for k in range(row.shape[0]):
        total += values[k]
    factor = 1 / total
    for k in range(row.shape[0]):
        values[k] *= factor
        mean += values[k] * (weight * row[k]) if values[k] > 0 else 0.0
    return total, mean


@compiled
def _label_weights(label_scores, weight, shares, top, total, mean):
    """Write each label's share of its span's weight into shares; the weight is total * exp(top).

    mean: the expected weighted score of the label. Returns False if a score is NaN or +inf, or an empty label is not 0.
    """
    n, size = label_scores.shape[0] - 1, label_scores.shape[2]
    room = np.empty((2, size))
    for i in range(n):
        for j in range(i + 1, n + 1):
            first = 2 if j - i == 1 or j - i == n else 1  # where <H> (index 1) is not allowed
            row = label_scores[i, j]
            if row[0] != 0 or not _usable(row):
                return False
            top[i, j] = _maximum(row[first:], weight)
            if top[i, j] > -np.inf:
                _exponentials(row[first:], weight, top[i, j], room, shares[i, j, first:])
                total[i, j], mean[i, j] = _share(row[first:], weight, shares[i, j, first:])
            else:
                total[i, j], mean[i, j] = 0, 0
    return True


@compiled
def _arc_weights(arc_scores, weight, arcs):
    """Write the weighted scores into arcs [n, n+1], -inf for a word as its own head. Returns False for NaN and +inf."""
    n = arc_scores.shape[0]
    fine = True
    for d in range(n):
        for h in range(n + 1):
            if h == d + 1 or arc_scores[d, h] == -np.inf:
                arcs[d, h] = -np.inf
            else:
                arcs[d, h] = weight * arc_scores[d, h]
                fine &= arcs[d, h] < np.inf
    return fine


# ---------------------------------------------------------------- sums without logarithms


@fused
def _mix(weights, w0, w_step, rows, r_step, first, last, low, high, out, o0):
    """Add sum over k in first..last-1 of weights[w0 + k * w_step] * rows[k * r_step + h] to out[o0 + h], h in low..high-1.

    All arrays are flat. Unsigned indices need no test for negative ones; only without that test do the loops vectorise.
    """
    k, last, low, high = UNSIGNED(first), UNSIGNED(last), UNSIGNED(low), UNSIGNED(high)
    w0, w_step, step, o0 = UNSIGNED(w0), UNSIGNED(w_step), UNSIGNED(r_step), UNSIGNED(o0)
    while k + THREE < last:
        w = w0 + k * w_step
        f0, f1, f2, f3 = weights[w], weights[w + w_step], weights[w + TWO * w_step], weights[w + THREE * w_step]
        p0 = k * step
        p1, p2, p3 = p0 + step, p0 + TWO * step, p0 + THREE * step
        for h in range(low, high):
            out[o0 + h] += (f0 * rows[p0 + h] + f1 * rows[p1 + h]) + (f2 * rows[p2 + h] + f3 * rows[p3 + h])
        k += FOUR
    while k < last:
        f0, p0 = weights[w0 + k * w_step], k * step
        for h in range(low, high):
            out[o0 + h] += f0 * rows[p0 + h]
        k += ONE


@fused
def _pair(factors, a, a0, a_step, b, b0, b_step, first, last, low, high, side, out):
    """Add sum over k in first..last-1 of factors[k] * a[a0 + k * a_step + h] * b[b0 + k * b_step + h] to out[h].

    h runs over low..high-1; with side -1 only over h < k, with side 1 only over h >= k. All arrays are flat, see `_mix`.
    """
    k, last, low, high = UNSIGNED(first), UNSIGNED(last), UNSIGNED(low), UNSIGNED(high)
    a0, a_step, b0, b_step = UNSIGNED(a0), UNSIGNED(a_step), UNSIGNED(b0), UNSIGNED(b_step)
    while k + THREE < last:
        f0, f1, f2, f3 = factors[k], factors[k + ONE], factors[k + TWO], factors[k + THREE]
        p0, q0 = a0 + k * a_step, b0 + k * b_step
        p1, p2, p3 = p0 + a_step, p0 + TWO * a_step, p0 + THREE * a_step
        q1, q2, q3 = q0 + b_step, q0 + TWO * b_step, q0 + THREE * b_step
        for h in range(k + THREE if side > 0 else low, k if side < 0 else high):
            out[h] += ((f0 * a[p0 + h]) * b[q0 + h] + (f1 * a[p1 + h]) * b[q1 + h]) + (
                (f2 * a[p2 + h]) * b[q2 + h] + (f3 * a[p3 + h]) * b[q3 + h]
            )
        if side < 0:  # three words where only some of the four rows count
            for h in range(k, k + ONE):
                out[h] += (f1 * a[p1 + h]) * b[q1 + h]
            for h in range(k, k + TWO):
                out[h] += (f2 * a[p2 + h]) * b[q2 + h]
            for h in range(k, k + THREE):
                out[h] += (f3 * a[p3 + h]) * b[q3 + h]
        elif side > 0:
            for h in range(k, k + THREE):
                out[h] += (f0 * a[p0 + h]) * b[q0 + h]
            for h in range(k + ONE, k + THREE):
                out[h] += (f1 * a[p1 + h]) * b[q1 + h]
            for h in range(k + TWO, k + THREE):
                out[h] += (f2 * a[p2 + h]) * b[q2 + h]
        k += FOUR
    while k < last:
        f0, p0, q0 = factors[k], a0 + k * a_step, b0 + k * b_step
        for h in range(k if side > 0 else low, k if side < 0 else high):
            out[h] += (f0 * a[p0 + h]) * b[q0 + h]
        k += ONE


@compiled
def _powers(constant, scale, a0, a_step, b0, b_step, sign, first, last, factors):
    """Write 2^(constant + scale[a0 + k * a_step] + sign * scale[b0 + k * b_step]) into factors[k], k in first..last-1."""
    bits = factors.view(np.int64)
    a0, a_step, b0, b_step = UNSIGNED(a0), UNSIGNED(a_step), UNSIGNED(b0), UNSIGNED(b_step)
    for k in range(UNSIGNED(first), UNSIGNED(last)):
        power = constant + scale[a0 + k * a_step] + sign * scale[b0 + k * b_step]
        bits[k] = (max(power, -1023) + 1023) << 52  # below 2^-1022: 0


@partial(compiled, relaxed=["nnan", "nsz"])
def _smallest(row, first, last):
    least = np.inf
    for k in range(UNSIGNED(first), UNSIGNED(last)):
        least = min(least, row[k])
    return least


@partial(compiled, relaxed=["contract", "reassoc", "nsz"])
def _product(a, b, first, last):
    total = 0.0
    for k in range(UNSIGNED(first), UNSIGNED(last)):
        total += a[k] * b[k]
    return total


@fused
def _inside(arcs, root, top, total, chart, scale, factor):
    """Fill the charts. Return Z / 2^scale[0, n], or 0 if parts of a sum may have been lost.

    Each array holds two things about a span (i, j): one at [i, j] and one at [j, i].
    chart [n+1, n+1, n]: [i, j] has R where h is inside (i, j) and D where h >= j; [j, i] has L and, where h < i, D.
    scale int64 [n+1, n+1]: [i, j] is the scale of the span: the true number is the chart's times 2^scale.
        [j, i] is the scale of the sums over splits.
    factor [n+1, n+1]: U times [i, j] is N, and U times [j, i] is U, in the scale of the span.
    arcs [n, n]: e^(arc(d, h) - the maximum of d); root [n]: the same for the root.
    """
    n = arcs.shape[0]
    side = n + 1
    rows, scales, to_head = chart.reshape(side * side * n), scale.reshape(side * side), arcs.reshape(n * n)
    right, left, labelled, factors = np.empty(n), np.empty(n), np.empty(n), np.empty(side)
    for j in range(1, side):
        for i in range(j - 1, -1, -1):
            after, before, words = (i * side + j) * n, (j * side + i) * n, range(UNSIGNED(i), UNSIGNED(j))
            for h in words:
                left[h] = right[h] = 0.0
            base = 0
            if j - i == 1:
                left[i] = 1
            else:
                base = scale[i, i + 1] + scale[i + 1, j]
                for k in range(i + 2, j):
                    base = max(base, scale[i, k] + scale[k, j])
                _powers(-base, scales, i * side, 1, j, side, 1, i + 1, j, factors)
                _pair(factors, rows, i * side * n, n, rows, j * side * n, n, i + 1, j, i, j, -1, right)
                _pair(factors, rows, i * side * n, n, rows, j * side * n, n, i + 1, j, i, j, 1, left)
            largest = 0.0
            for h in words:
                left[h] += right[h]  # U
                largest = max(largest, left[h])
            if not largest > 0:
                return 0.0
            name, power = 0.0, 0
            if total[i, j] > 0:
                power = int(round(top[i, j] / LOG2))  # the labels weigh about 2^power
                name = total[i, j] * math.exp((top[i, j] - power * HIGH) - power * LOW)
            shift = max(power, 0) + math.frexp(largest)[1]  # so that the largest number of the span is about 1
            name, one = math.ldexp(name, power - shift), math.ldexp(1.0, -shift)
            scale[i, j], scale[j, i] = base + shift, base
            factor[i, j], factor[j, i] = name, one

            if j - i > 1 or n == 1:
                to_after, to_before = UNSIGNED(after), UNSIGNED(before)
                for h in words:
                    value = name * left[h]
                    labelled[h] = value
                    rows[to_after + h] = one * right[h] + value
                    rows[to_before + h] = one * left[h] + value
            else:
                labelled[i] = rows[after + i] = rows[before + i] = one + name
            if j - i == n:
                break
            rows[before : before + i] = 0
            rows[after + j : after + n] = 0
            _mix(labelled, 0, 1, to_head, n, i, j, 0, i, rows, before)
            _mix(labelled, 0, 1, to_head, n, i, j, j, n, rows, after)
            outside = min(_smallest(rows, before, before + i), _smallest(rows, after + j, after + n))
            if not min(_smallest(labelled, i, j), outside) >= TINY:
                return 0.0
    z = _product(labelled, root, 0, n)
    return z if z >= TINY else 0.0


@fused
def _outside(arcs, root, z, chart, scale, factor, span_sums, arc_sums, head_sums):
    """Add the probabilities of spans [n+1, n+1], arcs [n, n+1] and, unless head_sums is empty, head words [n+1, n+1, n].

    slope [n+1, n+1, n] has the derivatives of log Z by the sums over splits: at [i, j] by that over right dependents, at
    [j, i] by that over left dependents.
    """
    n = arcs.shape[0]
    side = n + 1
    slope = np.empty((side, side, n))
    slopes, rows, scales = slope.reshape(side * side * n), chart.reshape(side * side * n), scale.reshape(side * side)
    to_dependent, arc_slopes = arcs.T.copy().reshape(n * n), np.zeros(n * n)
    after, before, labelled, factors = np.empty(n), np.empty(n), np.empty(n), np.empty(side)
    # Of the spans (i, j) with one i: N at [j, d], and the derivative by D at [j, h].
    starting, attached = np.zeros(side * n), np.zeros(side * n)
    for j in range(1, side):  # swap the charts, because this pass goes along the other direction of each
        for i in range(j):
            for h in range(n):
                chart[i, j, h], chart[j, i, h] = chart[j, i, h], chart[i, j, h]
    for i in range(n):
        for j in range(n, i, -1):
            words, row = range(UNSIGNED(i), UNSIGNED(j)), UNSIGNED(j * n)
            after[i:] = 0  # the derivative by chart[i, j]
            before[:j] = 0  # the derivative by chart[j, i]
            if j < n:  # left parts of (i, k)
                _powers(scale[i, j], scales, j * side, 1, i, side, -1, j + 1, side, factors)
                _pair(factors, slopes, i * side * n, n, rows, j * side * n, n, j + 1, side, i, j, 0, after)
                _pair(factors, slopes, i * n, side * n, rows, j * side * n, n, j + 1, side, j, n, -1, after)
            if i > 0:  # right parts of (k, j)
                _powers(scale[i, j], scales, i, side, j * side, 1, -1, 0, i, factors)
                _pair(factors, slopes, j * side * n, n, rows, i * side * n, n, 0, i, i, j, 0, before)
                _pair(factors, slopes, j * n, side * n, rows, i * side * n, n, 0, i, 0, i, 1, before)
            for h in words:
                labelled[h] = after[h] + before[h] if j - i < n else root[h] / z  # the derivative by N
            _mix(before, 0, 1, to_dependent, n, 0, i, i, j, labelled, 0)
            _mix(after, 0, 1, to_dependent, n, j, n, i, j, labelled, 0)

            name, one = factor[i, j], factor[j, i]
            value, right, left = (
                UNSIGNED((i * side + j) * n),
                UNSIGNED((i * side + j) * n),
                UNSIGNED((j * side + i) * n),
            )
            if j - i > 1:
                share = name / (one + name)
                for h in words:
                    starting[row + h] = share * rows[value + h]
                    slopes[left + h] = name * labelled[h] + one * before[h]
                    slopes[right + h] = name * labelled[h] + one * before[h] + one * after[h]
                    attached[row + h] = 0
            else:
                starting[row + UNSIGNED(i)] = name
                attached[row + UNSIGNED(i)] = 0
            for h in range(UNSIGNED(i)):
                attached[row + h] = before[h]
            for h in range(UNSIGNED(j), UNSIGNED(n)):
                attached[row + h] = after[h]
            span_sums[i, j] = _product(starting[j * n :], labelled, i, j)
            if head_sums.shape[0] > 1:
                for h in range(i, j):
                    head_sums[i, j, h] = starting[j * n + h] * labelled[h]
            if j - i == n:
                for h in range(n):
                    arc_sums[h, 0] = starting[j * n + h] * labelled[h]
            elif j - i == 1:
                starting[row + UNSIGNED(i)] = one + name
        for d in range(i, n):
            _mix(starting, d, n, attached, n, d + 1, side, 0, i, arc_slopes, d * n)
            _mix(starting, d, n, attached, n, d + 1, side, d + 1, n, arc_slopes, d * n)
    for d in range(n):
        for h in range(n):
            arc_sums[d, h + 1] = arc_slopes[d * n + h] * arcs[d, h]


@compiled
def _without_logarithms(arc_scores, top, total, span_sums, arc_sums, head_sums):
    """Return log Z and add the probabilities; NaN if that takes logarithms, and nothing is added."""
    n = arc_scores.shape[0]
    arcs, root = np.zeros((n, n)), np.empty(n)
    room, row = np.empty((2, n + 1)), np.empty(n + 1)
    sum_of_tops = 0.0
    for d in range(n):
        highest = arc_scores[d].max()
        if highest == -np.inf:
            return np.nan
        sum_of_tops += highest
        _exponentials(arc_scores[d], 1.0, highest, room, row)
        arcs[d], root[d] = row[1:], row[0]
    chart, scale = np.empty((n + 1, n + 1, n)), np.empty((n + 1, n + 1), np.int64)
    factor = np.empty((n + 1, n + 1))
    z = _inside(arcs, root, top, total, chart, scale, factor)
    if z == 0:
        return np.nan
    _outside(arcs, root, z, chart, scale, factor, span_sums, arc_sums, head_sums)
    return math.log(z) + (scale[0, n] * LOG2 + sum_of_tops)


# ---------------------------------------------------------------- sums with logarithms


@compiled
def _log_add(a, b):
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@compiled
def _log_splits(chart, i, j, h, first, last):
    """Return log sum over k in first..last-1 of e^(chart[i, k, h] + chart[j, k, h])."""
    top = -np.inf
    for k in range(first, last):
        top = max(top, chart[i, k, h] + chart[j, k, h])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(first, last):
        total += math.exp(chart[i, k, h] + chart[j, k, h] - top)
    return top + math.log(total)


@compiled
def _part(probability, value, total):
    """Return the share e^(value - total) of a probability."""
    return probability * math.exp(value - total) if probability > 0 else 0.0


@compiled
def log_inside(names, arcs, closed):
    """Return (log Z, chart [n+1, n+1, n], node [n+1, n+1, n]) with the logarithms of the sums.

    chart: [i, j, h] has R where h is inside (i, j), and D where h >= j; [j, i, h] has L and, where h < i, D. node: N.
    names: [n+1, n+1], the logarithm of the weight of all labels of a span. closed: [n+1, n+1], where only a labelled span may
    stand, see `readings`; the whole sentence must be closed.
    """
    n = arcs.shape[0]
    chart, node = np.empty((n + 1, n + 1, n)), np.empty((n + 1, n + 1, n))
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            for h in range(i, j):
                right, left = _log_splits(chart, i, j, h, h + 1, j), _log_splits(chart, i, j, h, i + 1, h + 1)
                if j - i > 1:
                    node[i, j, h] = names[i, j] + _log_add(right, left)
                else:
                    node[i, j, h] = names[i, j] if closed[i, j] else _log_add(0.0, names[i, j])
                chart[i, j, h] = chart[j, i, h] = node[i, j, h]
                if not closed[i, j]:
                    chart[i, j, h] = _log_add(node[i, j, h], right)
                    chart[j, i, h] = _log_add(chart[i, j, h], left)
            for h in range(n):
                if h < i or h >= j:
                    highest, value = -np.inf, 0.0
                    for d in range(i, j):
                        highest = max(highest, node[i, j, d] + arcs[d, h + 1])
                    for d in range(i, j):
                        value += _part(1.0, node[i, j, d] + arcs[d, h + 1], highest) if highest > -np.inf else 0.0
                    value = highest + math.log(value) if highest > -np.inf else highest
                    if h < i:
                        chart[j, i, h] = value
                    else:
                        chart[i, j, h] = value
    log_z = -np.inf
    for h in range(n):
        log_z = _log_add(log_z, node[0, n, h] + arcs[h, 0])
    return log_z, chart, node


@compiled
def _with_logarithms(arc_scores, top, total, span_sums, arc_sums, head_sums):
    """Return log Z and add the probabilities, as `_without_logarithms` does.

    The charts hold logarithms. The second pass shares the probability of every sum out among its terms.
    """
    n = arc_scores.shape[0]
    names, closed = np.full((n + 1, n + 1), -np.inf), np.zeros((n + 1, n + 1), np.bool_)
    closed[0, n] = True
    for i in range(n):
        for j in range(i + 1, n + 1):
            if total[i, j] > 0:
                names[i, j] = top[i, j] + math.log(total[i, j])
    log_z, chart, node = log_inside(names, arc_scores, closed)
    if not abs(log_z) < np.inf:
        return log_z

    share = np.zeros((n + 1, n + 1, n))  # the probability of each entry of the chart
    for i in range(n):
        for j in range(n, i, -1):
            here = np.zeros(n)  # the probability of N
            for h in range(n):
                if j - i == n:
                    here[h] = arc_sums[h, 0] = _part(1.0, node[i, j, h] + arc_scores[h, 0], log_z)
                elif h < i or h >= j:
                    value, probability = (chart[j, i, h], share[j, i, h]) if h < i else (chart[i, j, h], share[i, j, h])
                    for d in range(i, j):
                        part = _part(probability, node[i, j, d] + arc_scores[d, h + 1], value)
                        here[d] += part
                        arc_sums[d, h + 1] += part
            for h in range(i, j):
                after, before = share[i, j, h], share[j, i, h]
                here[h] += _part(after, node[i, j, h], chart[i, j, h]) + _part(before, node[i, j, h], chart[j, i, h])
                probability = here[h]
                if j - i > 1:
                    right, left = _log_splits(chart, i, j, h, h + 1, j), _log_splits(chart, i, j, h, i + 1, h + 1)
                    both = _log_add(right, left)
                    to_right = _part(after, right, chart[i, j, h]) + _part(before, right, chart[j, i, h])
                    to_right += _part(here[h], right, both)
                    to_left = _part(before, left, chart[j, i, h]) + _part(here[h], left, both)
                    for k in range(i + 1, j):
                        value, sum_of_all = (to_left, left) if k <= h else (to_right, right)
                        part = _part(value, chart[i, k, h] + chart[j, k, h], sum_of_all)
                        share[i, k, h] += part
                        share[j, k, h] += part
                elif n > 1:
                    probability = _part(here[h], names[i, j], node[i, j, h])
                span_sums[i, j] += probability
                if head_sums.shape[0] > 1:
                    head_sums[i, j, h] = probability
    return log_z


# ---------------------------------------------------------------- one sentence


@compiled
def solve(label_scores, arc_scores, label_weight, arc_weight, labels, head_words, logarithms=False):
    """Return (log Z, arcs [n, n+1], head words [n+1, n+1, n], entropy), and write the probabilities into labels.

    labels: zeros [n+1, n+1, L]. head_words: False leaves this array empty. logarithms: use them from the start.
    log Z is NaN if a score is NaN or +inf or an empty label is not 0, and -inf if no tree is left.
    """
    n, dtype = arc_scores.shape[0], arc_scores.dtype
    top, total, mean = np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1))
    span_sums, arc_sums, weighted = np.zeros((n + 1, n + 1)), np.zeros((n, n + 1)), np.empty((n, n + 1))
    head_sums = np.zeros((n + 1, n + 1, n) if head_words else (1, 1, n))
    fine = _label_weights(label_scores, label_weight, labels, top, total, mean)
    fine &= _arc_weights(arc_scores, arc_weight, weighted)
    log_z = np.nan
    if fine and not logarithms:
        log_z = _without_logarithms(weighted, top, total, span_sums, arc_sums, head_sums)
    if fine and np.isnan(log_z):
        log_z = _with_logarithms(weighted, top, total, span_sums, arc_sums, head_sums)
    entropy = log_z
    if abs(log_z) < np.inf:
        for i in range(n):
            for j in range(i + 1, n + 1):
                probability = min(span_sums[i, j], 1.0)
                labels[i, j] *= dtype.type(probability)
                labels[i, j, 0] = dtype.type(1 - probability)
                entropy -= probability * mean[i, j]
        for d in range(n):
            for h in range(n + 1):
                if arc_sums[d, h] > 0:
                    entropy -= arc_sums[d, h] * weighted[d, h]
    return log_z, arc_sums.astype(dtype), head_sums.astype(dtype), entropy
