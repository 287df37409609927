"""All joint trees of a short sentence, written down without a chart; and the probability of each.

`derivations` is every binary derivation, in the documented order of preference: the first maximum is the answer. Several may
give the same tree; `tree_set` has each tree once.

A tree is (spans, arcs): spans (start, end, head word) of the labelled spans, arcs (dependent, head), words 0-based, the root
head -1. Which label a span has is left to `best_label`; `labelled_trees` spells the labels out as well.
"""

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


# --- derivations in order of preference --------------------------------------------------------------------------


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
    """Score, spans (start, end, label, head word) in pre-order, heads (both 1-based) of the first maximum.

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


@cache
def tree_set(n: int) -> frozenset:
    """Every (heads 1-based, set of labelled spans)."""
    return frozenset((tuple(heads_of(arcs)), frozenset(spans)) for spans, arcs in derivations(n))


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
    """Return the score of a labelled tree in float64; -inf forbids, also with weight 0."""
    spans, heads = tree
    labels = sum(float(label_scores[i, j, label]) for i, j, label, _ in spans)
    arcs = sum(float(arc_scores[d, h]) for d, h in enumerate(heads))
    return lam * labels + (1 - lam) * arcs if np.isfinite([labels, arcs]).all() else -np.inf


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
    log_partition = float(np.logaddexp.reduce(scores))
    with np.errstate(invalid="ignore"):  # every tree may be forbidden
        probabilities = np.exp(scores - log_partition)
    label_sums, arc_sums = np.zeros((n + 1, n + 1, labels)), np.zeros((n, n + 1))
    head_words = np.zeros((n + 1, n + 1, n))
    for (spans, heads), p in zip(trees, probabilities):
        for i, j, label, head in spans:
            label_sums[i, j, label] += p
            head_words[i, j, head - 1] += p
        for d, h in enumerate(heads):
            arc_sums[d, h] += p
    i, j = np.triu_indices(n + 1, 1)
    label_sums[i, j, 0] = 1 - label_sums[i, j, 1:].sum(-1)  # no label
    return Sums(log_partition, label_sums, arc_sums, head_words)
