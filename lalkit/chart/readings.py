"""Find the k best joint trees of a sentence, and the best ones under constraints.

A joint tree can have several derivations in the chart of `joint`, because left and right dependents may be added in different
orders. In the charts of `sums` every joint tree has exactly one. Here they hold the best of several cases; the names
N, D, R, L and U are those of that file.

The k best trees. A derivation is a list of choices, from the sentence down, the left part first. The chart of the best scores
shows how much every other choice costs. The best tree that differs from a known one for the first time at a certain choice
therefore has a known score. A queue of such trees gives all joint trees, the best first; only the trees that are returned are
built. (Lawler 1972 partitions solutions in this way. The trees are the same as those of Huang and Chiang 2005, algorithm 3,
but k choices per item need not be kept.) Of trees with equal scores, the one comes first whose first different choice does:
the smaller head word of the sentence, no label before labels by their index, the head child before splits, right splits
before left ones, smaller splits before larger ones, and smaller dependents before larger ones.

Structures. Most of the k best trees differ only in labels. `structures` gives the best tree for each set of arcs instead. The
trees that differ from a known one for the first time at the arc of a certain word have its earlier arcs, but not this one. So
each part of the partition needs one more chart. (Lawler's method again, with arcs as the choices.)

Constraints. A label or an arc with score -inf is forbidden. A closed span is one that the tree must contain, or one that
crosses it: only a labelled child N may stand there, and a single word needs a label. If also all labels of the spans that
cross it are forbidden, then every derivation that is left contains the required span, because a binary derivation without an
item that crosses a span has an item over that span.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from lalkit.chart import machine as memory
from lalkit.chart.cky import FIRST_REAL, SUBHEAD
from lalkit.chart.joint import JointTree, as_arrays, check_scores, check_weight
from lalkit.chart.machine import compiled
from lalkit.chart.sums import CLOSED, Temperature, inside, temperatures
from lalkit.config import MOST_TREES
from lalkit.errors import whole_number

logger = logging.getLogger(__name__)

CHILD, DEPENDENT, CONTENT, RIGHTS, BOTH = range(5)  # items: N, D, U, R and L
CHARTS = 2  # arrays of the size of the decoder's chart


class Scores(NamedTuple):
    """Hold the weighted scores of a sentence in float64; -inf is forbidden.

    labels: [n+1, n+1, L]. arcs: [n, n+1]. closed: [n+1, n+1], where only a labelled child may stand.
    """

    labels: np.ndarray
    arcs: np.ndarray
    closed: np.ndarray

    def divided(self, temperature: Temperature) -> Scores:
        """Return the scores divided by a temperature, or by two: one for labels and one for arcs."""
        of_labels, of_arcs = temperatures(temperature)
        return Scores(self.labels / of_labels, self.arcs / of_arcs, self.closed)


def weighted(
    label_scores: np.ndarray, arc_scores: np.ndarray, lam: float, closed=None, where: str = "the sentence"
) -> Scores:
    """Return the scores of a sentence as this module reads them.

    Args:
        label_scores: [n+1, n+1, L], as `joint.decode` reads them, or -inf where a label is forbidden.
        arc_scores: [n, n+1], likewise.
        lam: The weight of labels; arcs have weight 1 - lam.
        closed: [n+1, n+1], spans that are closed (see above); None for no constraint.
        where: The name of the sentence in errors.

    Raises:
        ValueError: A shape is wrong, lam is outside [0, 1], or a score is NaN or +inf.
        TooLongError: The charts would not fit into memory.
    """
    check_weight(lam)
    labels, arcs = as_arrays(np.array(label_scores, np.float64), arc_scores, where)
    n, labels_forbidden, arcs_forbidden = len(arcs), labels == -np.inf, arcs == -np.inf
    needed = CHARTS * memory.chart_bytes(n, 8)
    memory.check_fits(n, needed, memory.available_bytes() if needed > memory.SMALL else None, where)
    labels[labels_forbidden], arcs = 0, np.where(arcs_forbidden, 0, arcs)
    check_scores(labels, arcs, where)
    labels *= lam
    labels_forbidden[..., 0] = True  # no label is a case of its own
    labels_forbidden[range(n), range(1, n + 1), SUBHEAD] = labels_forbidden[0, n, :FIRST_REAL] = True
    labels[labels_forbidden] = -np.inf
    closed = np.zeros((n + 1, n + 1), np.int8) if closed is None else closed.astype(np.int8)
    closed[0, n] = max(closed[0, n], CLOSED)  # the whole sentence has a label
    return Scores(labels, np.where(arcs_forbidden, -np.inf, (1 - lam) * arcs), closed)


def k_best(scores: Scores, k: int) -> list[JointTree]:
    """Return the k best joint trees, the best first. If there are fewer, return all of them, and log a warning.

    The score of a tree is the sum of its labels and arcs, rounded once. Raises ParameterError if k is below 1 or too large.
    """
    k, n, trees = whole_number("the number of trees", k, 1, 100 * MOST_TREES), len(scores.arcs), []
    chart, node = np.empty((n + 1, n + 1, n)), np.empty((n + 1, n + 1, n))
    memory.apart(_fill_best, scores.labels.max(-1), scores.arcs, scores.closed, chart, node)
    # A tree in the queue: its loss against the best tree; a number that breaks ties; the ranks of its choices, which are those
    # of an earlier tree before `place`, and `rank` there. All choices after it are the best ones.
    queue, number = [(0.0, 0, np.empty(0, np.int64), 0, 0)], 0
    while queue and len(trees) < k:
        lost, _, ranks, place, rank = heapq.heappop(queue)
        ranks = np.append(ranks[:place], rank)
        spans, heads, gaps, possible = _unwind(*scores, chart, node, ranks)
        if not possible:
            break  # the constraints leave no tree
        rows = list(map(tuple, spans.tolist()))
        trees.append(JointTree(tree_score(scores, rows, heads), rows, heads))
        ranks = np.append(ranks, np.zeros(len(gaps) - len(ranks), np.int64))
        for other in place + np.argsort(gaps[place:], kind="stable")[: k - len(trees)]:  # the others come too late
            if gaps[other] < np.inf:
                number += 1
                heapq.heappush(queue, (lost + gaps[other], number, ranks, other, ranks[other] + 1))
    if 0 < len(trees) < k:
        logger.warning("%d trees were asked for, but the sentence has only %d", k, len(trees))
    return sorted(trees, key=lambda tree: -tree.score)  # the queue adds in another order


def structures(
    scores: Scores, words: Sequence[int], best: JointTree | None = None
) -> Iterator[tuple[JointTree, Scores]]:
    """Yield the best tree of every set of arcs, the best first, and the scores of all trees that have these arcs.

    words: the words (from 0) whose arcs count. Trees that differ only in labels, in constituents, or in the arcs of other words
    have the same structure. `log_partition` of the scores is the logarithm of the sum over all trees of a structure. best: it
    comes first if no tree has a higher score.
    """
    # Minus the score of the best tree, a number, this tree, the arcs it may have, its first free word
    queue: list[tuple] = []
    number = count()

    def push(arcs: np.ndarray, place: int) -> None:
        for tree in k_best(scores._replace(arcs=arcs), 1):
            heapq.heappush(queue, (-tree.score, next(number), tree, arcs, place))

    push(scores.arcs, 0)
    while queue:
        score, _, tree, arcs, place = heapq.heappop(queue)
        tree, best = best if best and best.score == -score else tree, None
        for i, word in enumerate(words):
            head = tree.heads[word]
            if i >= place:
                others = arcs.copy()
                others[word, head] = -np.inf
                push(others, i)
            arcs = arcs.copy()
            arcs[word] = np.where(np.arange(arcs.shape[1]) == head, arcs[word], -np.inf)
        yield tree, scores._replace(arcs=arcs)


def log_partition(scores: Scores) -> float:
    """Return the logarithm of the sum over all joint trees of exp(score); -inf if there is no tree."""
    return memory.apart(inside, np.logaddexp.reduce(scores.labels, axis=-1), scores.arcs, scores.closed)[0]


def tree_score(scores: Scores, spans, heads) -> float:
    """Return the sum of the weighted scores of a tree, rounded once, so that it does not depend on an order."""
    labels, arcs = [scores.labels[i, j, k] for i, j, k, _ in spans], [scores.arcs[d, h] for d, h in enumerate(heads)]
    return math.fsum(labels + arcs)


@compiled
def _fill_best(names, arcs, closed, chart, node):
    """Fill chart with the best scores, in the places that `sums.inside` describes, and node [n+1, n+1, n] with N.

    names: the best label of every span.
    """
    n = arcs.shape[0]
    rows = arcs[:, 1:].copy()  # [dependent, head word]
    right, both, attached = np.empty(n), np.empty(n), np.empty(n)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            right[:], both[:], attached[:] = -np.inf, -np.inf, -np.inf
            for k in range(j - 1, i, -1):
                first, second = chart[i, k], chart[j, k]
                for h in range(i, j):
                    both[h] = max(both[h], first[h] + second[h])
                right[k - 1] = both[k - 1]  # all k > h; smaller ones are still to come
            if j - i == 1:
                both[i] = 0  # the content of a single word
            for h in range(i, j):
                child = names[i, j] + both[h]
                if j - i == 1 and not closed[i, j]:
                    child = max(0.0, child)
                node[i, j, h] = chart[i, j, h] = chart[j, i, h] = child
                if not closed[i, j]:
                    chart[i, j, h] = max(child, right[h])
                    chart[j, i, h] = max(child, both[h])
            for d in range(i, j):
                row, score = rows[d], node[i, j, d]
                for h in range(n):
                    attached[h] = max(attached[h], score + row[h])
            chart[j, i, :i] = attached[:i]
            chart[i, j, j:] = attached[j:]


@compiled
def _following(values, count, value, index):
    """Return the index of the case that follows (value, index) in the order of preference; -1 if none is possible."""
    chosen, top = -1, -np.inf
    for e in range(count):
        x = values[e]
        if x > top and (x < value or (x == value and e > index)):
            chosen, top = e, x
    return chosen


@compiled
def _cases(labels, arcs, closed, chart, node, item, i, j, h, values, choices):
    """Write the value and the choice (a label, a head word, or a split) of every case of an item; return their number.

    A choice < 0 of R, L or U: a left split; 0: the head child alone.
    """
    if item == DEPENDENT:
        values[: j - i], choices[: j - i] = node[i, j, i:j] + arcs[i:j, h + 1], np.arange(i, j)
        return j - i
    if item == CHILD:
        count = labels.shape[2]
        values[:count], choices[:count] = labels[i, j], np.arange(count)
        if j - i == 1 and not closed[i, j]:
            values[0] = 0.0  # no label
        return count
    values[0], choices[0] = node[i, j, h] if item != CONTENT else -np.inf, 0
    if item != CONTENT and closed[i, j]:
        return 1
    count = max(j - h, 1)
    values[1:count], choices[1:count] = chart[i, h + 1 : j, h] + chart[j, h + 1 : j, h], np.arange(h + 1, j)
    if item != RIGHTS:
        values[count : count + h - i] = chart[i, i + 1 : h + 1, h] + chart[j, i + 1 : h + 1, h]
        choices[count : count + h - i] = -np.arange(i + 1, h + 1)
        count += h - i
    return count


@compiled
def _push(rows, count, a, b, c, d):
    rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = a, b, c, d
    return count + 1


@compiled
def _unwind(labels, arcs, closed, chart, node, ranks):
    """Build one tree from filled charts. Return (spans [m, 4], heads [n], gaps [choices], whether there is a tree).

    ranks: the rank of each of the first choices, 0 for the best case; all later choices are the best. gaps: the loss
    if a choice were the next best case; inf if there is none, and before the last of the ranks.
    """
    n = arcs.shape[0]
    heads = np.zeros(n, np.int64)
    spans = np.empty((2 * n - 1, 4), np.int64)
    gaps = np.full(5 * n, np.inf)
    size = max(labels.shape[2], n + 1) + 1
    values, choices = np.empty(size), np.empty(size, np.int64)
    stack = np.empty((3 * n + 3, 4), np.int64)  # item, start, end, head word
    depth, count, step = _push(stack, 0, DEPENDENT, 0, n, -1), 0, 0  # the sentence depends on the root
    while depth > 0:
        depth -= 1
        item, i, j, h = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        cases = _cases(labels, arcs, closed, chart, node, item, i, j, h, values, choices)
        case = _following(values, cases, np.inf, -1)
        if case < 0:
            return spans[:count], heads, gaps[:step], False
        for _ in range(ranks[step] if step < ranks.shape[0] else 0):
            case = _following(values, cases, values[case], case)
        if step >= ranks.shape[0] - 1:
            other = _following(values, cases, values[case], case)
            if other >= 0:
                gaps[step] = values[case] - values[other]
        step += 1
        choice = choices[case]
        if item == DEPENDENT:
            heads[choice] = h + 1
            depth = _push(stack, depth, CHILD, i, j, choice)
        elif item == CHILD:
            if choice > 0:
                count = _push(spans, count, i, j, choice, h + 1)
            if j - i > 1:
                depth = _push(stack, depth, CONTENT, i, j, h)
        elif choice == 0:
            depth = _push(stack, depth, CHILD, i, j, h)
        else:  # the right part first, because the left part must leave the stack first
            k = abs(choice)
            depth = _push(stack, depth, DEPENDENT if choice > 0 else BOTH, k, j, h)
            depth = _push(stack, depth, RIGHTS if choice > 0 else DEPENDENT, i, k, h)
    return spans[:count], heads, gaps[:step], True
