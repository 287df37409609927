"""All joint trees of a short sentence, written down twice without a chart; and the probability of each.

(a) `derivations`: every binary derivation, in the documented order of preference: the first maximum is the answer;
(b) `joint_trees`: every projective single-root dependency tree times, per word, every chain of labelled projections.

A tree is (spans, arcs): spans (start, end, head word) of the labelled spans, arcs (dependent, head), words 0-based,
the root head -1. Which label a span has is left to `best_label`; `labelled_trees` spells the labels out as
well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

Tree = tuple[tuple, tuple]


# --- labels ----------------------------------------------------------------------------------------------------------


def admissible(i: int, j: int, n: int, labels: int) -> range:
    """The labels span (i, j) may have, other than none: <H> (1) neither over one word nor over the sentence."""
    return range(2 if j - i == 1 or (i, j) == (0, n) else 1, labels)


def best_label(label_scores: np.ndarray, i: int, j: int) -> int:
    """The first admissible label with the highest score."""
    candidates = admissible(i, j, len(label_scores) - 1, label_scores.shape[2])
    return max(candidates, key=lambda label: (label_scores[i, j, label], -label))


# --- (a) derivations in order of preference --------------------------------------------------------------------------


def contents(i: int, j: int, h: int, names: Callable[[int, int], tuple]) -> Iterator[Tree]:
    """Ways to build (i, j) with head h, its own label left open: smallest split first, then smallest dependent."""
    if j - i == 1:
        yield (), ()
        return
    for k in range(i + 1, j):
        own, other = ((i, k), (k, j)) if h < k else ((k, j), (i, k))
        for d in range(*other):
            dependents = list(completed(*other, d, names))
            for spans, arcs in optional(*own, h, names):
                for spans_d, arcs_d in dependents:
                    yield spans + spans_d, arcs + arcs_d + ((d, h),)


def optional(i: int, j: int, h: int, names: Callable[[int, int], tuple]) -> Iterator[Tree]:
    """The part that holds the head: without a label, or with one."""
    for spans, arcs in contents(i, j, h, names):
        yield spans, arcs
        for name in names(i, j):
            yield spans + ((i, j, h, *name),), arcs


def completed(i: int, j: int, h: int, names: Callable[[int, int], tuple]) -> Iterator[Tree]:
    """The part attached as a dependent: with a label; a single word also without."""
    if j - i == 1:
        yield from optional(i, j, h, names)
        return
    for spans, arcs in contents(i, j, h, names):
        for name in names(i, j):
            yield spans + ((i, j, h, *name),), arcs


@cache
def derivations(n: int) -> list[Tree]:
    """Every derivation of n words, labels not named. 23,040 for n = 5."""
    return list(_sentences(n, lambda i, j: ((),)))


def _sentences(n: int, names: Callable[[int, int], tuple]) -> Iterator[Tree]:
    for h in range(n):
        for spans, arcs in contents(0, n, h, names):
            for name in names(0, n):
                yield spans + ((0, n, h, *name),), arcs + ((h, -1),)


@cache
def _incidence(n: int) -> np.ndarray:
    """[derivations, (n+1)^2 + n(n+1)]: which spans are labelled and which arcs are there."""
    rows = np.zeros((len(derivations(n)), (n + 1) ** 2 + n * (n + 1)))
    for row, (spans, arcs) in zip(rows, derivations(n)):
        for i, j, _ in spans:
            row[i * (n + 1) + j] = 1
        for d, h in arcs:
            row[(n + 1) ** 2 + d * (n + 1) + h + 1] = 1
    return rows


def first_best(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> tuple[float, list, list]:
    """(a): score, spans (start, end, label, head word) in pre-order, heads (both 1-based) of the first maximum.

    The scores must be exact in any order of addition (small multiples of a power of two), or ties are not ties.
    """
    n = len(arc_scores)
    weighted = lam * label_scores.astype(np.float64)
    values = np.zeros((n + 1, n + 1))
    for i in range(n):
        for j in range(i + 1, n + 1):
            values[i, j] = weighted[i, j, best_label(weighted, i, j)]
    totals = _incidence(n) @ np.concatenate([values.ravel(), (1 - lam) * arc_scores.astype(np.float64).ravel()])
    at = int(totals.argmax())
    spans, arcs = derivations(n)[at]
    named = [(i, j, best_label(weighted, i, j), h + 1) for i, j, h in spans]
    return float(totals[at]), in_preorder(named), heads_of(arcs)


def in_preorder(spans: list) -> list:
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def heads_of(arcs: tuple) -> list[int]:
    return [h + 1 for _, h in sorted(arcs)]


def rounded(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> float:
    """The best score by the equations of `lalkit.chart.joint`, every addition rounded to the type of the scores."""
    n, number = len(arc_scores), arc_scores.dtype.type
    labels, arcs = number(lam) * label_scores, number(1 - lam) * arc_scores

    @cache
    def content(i: int, j: int, h: int):
        if j - i == 1:
            return number(0)
        return max(
            with_head(i, k, h) + dependent(k, j, h) if h < k else with_head(k, j, h) + dependent(i, k, h)
            for k in range(i + 1, j)
        )

    @cache
    def with_head(i: int, j: int, h: int):
        return content(i, j, h) + max(number(0), labels[i, j, best_label(labels, i, j)])

    @cache
    def dependent(i: int, j: int, h: int):
        label = labels[i, j, best_label(labels, i, j)]
        if j - i == 1:
            label = max(number(0), label)
        return max((content(i, j, d) + label) + arcs[d, h + 1] for d in range(i, j))

    label = labels[0, n, best_label(labels, 0, n)]
    return float(max((content(0, n, h) + label) + arcs[h, 0] for h in range(n)))


# --- (b) dependency trees times chains of projections ----------------------------------------------------------------


def projective_trees(n: int) -> Iterator[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """(heads 0-based with -1 for the root, yields) of every single-root tree whose subtrees are unbroken spans."""
    for heads in product(range(-1, n), repeat=n):
        if heads.count(-1) != 1:
            continue
        below = [[d for d in range(n) if h in _path_up(d, heads)] for h in range(n)]
        if any(-1 not in _path_up(d, heads) for d in range(n)):
            continue  # a cycle
        if all(words[-1] - words[0] + 1 == len(words) for words in below):
            yield heads, [(words[0], words[-1] + 1) for words in below]


def _path_up(word: int, heads: tuple[int, ...]) -> list[int]:
    path = [word]
    while path[-1] != -1 and len(path) <= len(heads) + 1:
        path.append(heads[path[-1]])
    return path


def chains(h: int, heads: tuple[int, ...], yields: list[tuple[int, int]]) -> list[tuple]:
    """Every set of labelled spans headed by h: nested groups of h and its nearest dependents on either side; the whole
    yield among them if it is wider than one word."""
    starts = [h] + [yields[d][0] for d in range(h - 1, -1, -1) if heads[d] == h]
    ends = [h + 1] + [yields[d][1] for d in range(h + 1, len(heads)) if heads[d] == h]
    if len(starts) == len(ends) == 1:
        return [(), ((h, h + 1, h),)]
    found = []

    def grow(x: int, y: int, chain: tuple) -> None:
        found.append((*chain, (starts[-1], ends[-1], h)))
        for next_x in range(x, len(starts)):
            for next_y in range(y, len(ends)):
                is_same = chain and (next_x, next_y) == (x, y)
                is_full = (next_x, next_y) == (len(starts) - 1, len(ends) - 1)
                if not is_same and not is_full:
                    grow(next_x, next_y, (*chain, (starts[next_x], ends[next_y], h)))

    grow(0, 0, ())
    return found


@cache
def joint_trees(n: int) -> list[tuple[tuple[int, ...], list[list[tuple]]]]:
    """Per projective tree its heads and, per word, its `chains`; one word alone must be labelled."""
    trees = [(heads, [chains(h, heads, yields) for h in range(n)]) for heads, yields in projective_trees(n)]
    return trees if n > 1 else [((-1,), [[((0, 1, 0),)]])]


def maximum(label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> float:
    """(b): the highest score of any joint tree: per dependency tree, the best chain of every word."""
    n = len(arc_scores)
    labels = label_scores.astype(np.float64)

    def value(span: tuple) -> float:
        i, j, _ = span
        return max(labels[i, j, label] for label in admissible(i, j, n, labels.shape[2]))

    values = {(i, j): value((i, j, 0)) for i in range(n) for j in range(i + 1, n + 1)}
    best = -np.inf
    for heads, options in joint_trees(n):
        arcs = sum(float(arc_scores[d, h + 1]) for d, h in enumerate(heads))
        spans = sum(max(sum(values[i, j] for i, j, _ in chain) for chain in word) for word in options)
        best = max(best, lam * spans + (1 - lam) * arcs)
    return best


@cache
def tree_set(n: int) -> frozenset:
    """(b) written out: every (heads 1-based, set of labelled spans)."""
    return frozenset(
        (tuple(h + 1 for h in heads), frozenset(span for chain in choice for span in chain))
        for heads, options in joint_trees(n)
        for choice in product(*options)
    )


# --- probabilities ---------------------------------------------------------------------------------------------------


def labelled_trees(n: int, labels: int) -> Iterator[Tree]:
    """Yield every joint tree with every label, each once: spans (start, end, label, head word) and heads, both 1-based.

    The spans are in pre-order, as in `lalkit.chart.joint.JointTree`. Label 1 is <H>. With one real label and without <H>
    there are 1, 8, 88, 1,184 and 17,792 trees of 1 to 5 words; more labels make far more, so n <= 4 with 3 labels.
    """
    for heads, spans in sorted((heads, sorted(spans, key=lambda s: (s[0], -s[1]))) for heads, spans in tree_set(n)):
        for names in product(*(admissible(i, j, n, labels) for i, j, _ in spans)):
            yield tuple((i, j, name, h + 1) for (i, j, h), name in zip(spans, names)), heads


def score_of(tree: Tree, label_scores: np.ndarray, arc_scores: np.ndarray, lam: float) -> float:
    """Return the score of a labelled tree in float64."""
    spans, heads = tree
    labels = sum(float(label_scores[i, j, label]) for i, j, label, _ in spans)
    return lam * labels + (1 - lam) * sum(float(arc_scores[d, h]) for d, h in enumerate(heads))


class Sums(NamedTuple):
    """What sums over all joint trees give; the fields are those of `lalkit.chart.sums.Marginals`."""

    log_partition: float
    labels: np.ndarray
    arcs: np.ndarray
    head_words: np.ndarray


def sums_over_trees(
    label_scores: np.ndarray, arc_scores: np.ndarray, lam: float = 0.5, temperature: float = 1.0
) -> Sums:
    """Add up p(tree) = exp(score / temperature) / Z over every labelled tree, one by one. For few trees."""
    n, labels = len(arc_scores), label_scores.shape[2]
    trees = list(labelled_trees(n, labels))
    scores = np.array([score_of(tree, label_scores, arc_scores, lam) for tree in trees]) / temperature
    log_partition = _log_sum(scores)
    probabilities = np.exp(scores - log_partition)
    label_sums, arc_sums = np.zeros((n + 1, n + 1, labels)), np.zeros((n, n + 1))
    head_words = np.zeros((n + 1, n + 1, n))
    for (spans, heads), p in zip(trees, probabilities):
        for i, j, label, head in spans:
            label_sums[i, j, label] += p
            head_words[i, j, head - 1] += p
        for d, h in enumerate(heads):
            arc_sums[d, h] += p
    _fill_empty(label_sums)
    return Sums(log_partition, label_sums, arc_sums, head_words)


@cache
def _structures(n: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int, int]]]:
    """Return which spans with which head word, and which arcs, each tree of `tree_set` has; and the list of spans.

    Two arrays of 0 and 1: [trees, spans] and [trees, n * (n+1)].
    """
    trees = sorted((heads, sorted(spans)) for heads, spans in tree_set(n))
    every_span = [(i, j, h) for i in range(n) for j in range(i + 1, n + 1) for h in range(i, j)]
    column = {span: at for at, span in enumerate(every_span)}
    spans, arcs = np.zeros((len(trees), len(every_span))), np.zeros((len(trees), n * (n + 1)))
    for row, (heads, labelled) in enumerate(trees):
        spans[row, [column[span] for span in labelled]] = 1
        arcs[row, [d * (n + 1) + h for d, h in enumerate(heads)]] = 1
    return spans, arcs, every_span


def sums_over_structures(
    label_scores: np.ndarray, arc_scores: np.ndarray, lam: float = 0.5, temperature: float = 1.0
) -> Sums:
    """Return the same as `sums_over_trees` for up to 5 words and many labels.

    It adds up the trees without label names one by one. Given such a tree, the labels of its spans are independent.
    """
    n, labels = len(arc_scores), label_scores.shape[2]
    spans, arcs, every_span = _structures(n)
    label_scores, arc_scores = (
        _weighted(label_scores, lam / temperature),
        _weighted(arc_scores, (1 - lam) / temperature),
    )
    names = {(i, j): list(admissible(i, j, n, labels)) for i, j, _ in every_span}
    totals = {span: _log_sum(label_scores[span][names[span]]) for span in names}
    arc_values = arc_scores.copy()
    arc_values[np.arange(n), np.arange(1, n + 1)] = 0  # no tree has these arcs

    with np.errstate(invalid="ignore"):
        of_spans = _product(spans, np.array([totals[i, j] for i, j, _ in every_span]))
        scores = of_spans + _product(arcs, arc_values.ravel())
        log_partition = _log_sum(scores)
        probabilities = np.exp(scores - log_partition)
    arc_sums = (probabilities @ arcs).reshape(n, n + 1)
    label_sums, head_words = np.zeros((n + 1, n + 1, labels)), np.zeros((n + 1, n + 1, n))
    for (i, j, h), p in zip(every_span, probabilities @ spans):
        if p > 0:
            head_words[i, j, h] = p
            share = np.exp(label_scores[i, j, names[i, j]] - totals[i, j])
            label_sums[i, j, names[i, j]] += p * share
    _fill_empty(label_sums)
    return Sums(log_partition, label_sums, arc_sums, head_words)


def _weighted(scores: np.ndarray, weight: float) -> np.ndarray:
    """Return weight * scores; -inf stays, also with weight 0."""
    forbidden = np.isneginf(scores)
    return np.where(forbidden, -np.inf, weight * np.where(forbidden, 0, scores.astype(np.float64)))


def _fill_empty(label_sums: np.ndarray) -> None:
    """Write the probability that a span has no label into index 0 of the cells i < j."""
    i, j = np.triu_indices(len(label_sums), 1)
    label_sums[i, j, 0] = 1 - label_sums[i, j, 1:].sum(-1)


def _log_sum(values: np.ndarray) -> float:
    top = float(np.max(values))
    return top if np.isinf(top) else top + float(np.log(np.sum(np.exp(values - top))))


def _product(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return rows @ values, where a row that uses a value of -inf gets -inf."""
    forbidden = np.isneginf(values)
    sums = rows @ np.where(forbidden, 0, values)
    return np.where(rows @ forbidden > 0, -np.inf, sums)
