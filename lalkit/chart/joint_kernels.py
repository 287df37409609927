"""The compiled part of joint decoding: what `joint` says, for one sentence, in the order of additions it says."""

from __future__ import annotations

from functools import partial

import numpy as np

from lalkit.compiled import compiled


@compiled
def first_wrong_label(label_scores):
    """Indices of the first score that is not finite, or of an empty label that is not 0; -1, -1, -1 if there is none."""
    size, _, labels = label_scores.shape
    for i in range(size):
        for j in range(i + 1, size):
            if label_scores[i, j, 0] != 0:  # also true for NaN
                return i, j, 0
            for k in range(1, labels):
                if not np.isfinite(label_scores[i, j, k]):
                    return i, j, k
    return -1, -1, -1


@partial(compiled, relaxed=["reassoc"])  # added in any order, maximised without a thought of NaN: eight at a time
def _zeros(row):
    """The sum of row[0] * row[k], where row[0] is 0: 0, or NaN if a score is not finite."""
    zero = row[0]
    total = zero
    for k in range(1, row.shape[0]):
        total += zero * row[k]
    return total


@partial(compiled, relaxed=["nnan", "nsz"])
def _maximum(row, weight):
    top = weight * row[0]
    for k in range(1, row.shape[0]):
        top = max(top, weight * row[k])
    return top


@compiled
def _best_labels(label_scores, weight, best, label):
    """Per span the best admissible label other than the empty one, and its weighted score; first index wins.

    Returns False, the rest undefined, if a score is not finite or an empty label not 0.
    """
    n = label_scores.shape[0] - 1
    for i in range(n):
        for j in range(i + 1, n + 1):
            # <H> stands for a group of several words inside a constituent: never one word, never the sentence.
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
    """out[h] = U[i, j, h] = max_k (T[i, k, h] + T[k, j, h]) for h in i..j-1; nothing (0) below a single word."""
    if j - i == 1:
        out[i] = 0
        return
    for h in range(i, j):
        out[h] = chart[i, i + 1, h] + chart[i + 1, j, h]
    k = i + 2
    while k + 3 < j:  # four splits at a time: a quarter of the loads and stores of `out` (no branches: it vectorises)
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
    """out[h] = max_d ((U[i, j, d] + obligatory) + arc(d, h)) over the dependents d of i..j-1, for every head h."""
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
    """chart: empty [n+1, n+1, n] -> T. Spans end by end, longest last, so that T[k, j] stays in the processor cache."""
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
def unwind(chart, best, label, arcs, n):
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


@compiled
def solve(label_scores, arc_scores, lam, other):
    """(fine, score, spans [m, 4], heads [n]) of the best joint tree, lam and other = 1 - lam of the charts' type.

    fine: False if a score is not finite or an empty label not 0; then nothing else is said.
    """
    n, dtype = arc_scores.shape[0], arc_scores.dtype
    arcs = np.empty((n, n + 1), dtype)
    best, label = np.zeros((n + 1, n + 1), dtype), np.zeros((n + 1, n + 1), np.int64)
    fine = _best_labels(label_scores, lam, best, label)
    for d in range(n):
        for h in range(n + 1):
            value = arc_scores[d, h] if h != d + 1 else dtype.type(0)  # a word is never its own head
            fine &= np.isfinite(value)
            arcs[d, h] = other * value
    if not fine:
        return False, lam, np.empty((0, 4), np.int64), np.empty(0, np.int64)
    chart = np.empty((n + 1, n + 1, n), dtype)
    _fill(chart, best, arcs)
    score, spans, heads = unwind(chart, best, label, arcs, n)
    return True, score, spans, heads
