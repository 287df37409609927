"""The k best joint trees and the best ones under constraints are those of enumeration."""

import numpy as np
import pytest

from lalkit.chart.constraints import ArcItem, Constraints, SpanItem
from lalkit.chart.joint import decode
from lalkit.chart.readings import k_best, log_partition, structures, weighted
from lalkit.errors import ParameterError
from tests.chart.charts import LAMBDAS, check_joint_tree, random_chart
from tests.reference import joint_enumeration as reference

LABELS = ("", "<H>", "NP", "S::VP", "VP")


def all_trees(n: int, labels: int, label_scores, arc_scores, lam: float) -> list[tuple[float, tuple]]:
    trees = reference.labelled_trees(n, labels)
    return [(reference.score_of(tree, label_scores, arc_scores, lam), tree) for tree in trees]


def key(tree) -> tuple:
    return tuple(tree.spans), tuple(tree.heads.tolist())


@pytest.mark.parametrize("kind", ["ties", "exact"])
def test_k_best_are_those_of_enumeration(kind):
    """Also with ties: then the scores are the same, and every tree is one of enumeration."""
    rng = np.random.default_rng(22)
    for trial in range(60):
        n, lam = 4 if trial % 10 == 0 else 1 + trial % 3, LAMBDAS[trial % len(LAMBDAS)]
        labels = 3 if n == 4 else int(rng.integers(3, 6))
        label_scores, arc_scores = random_chart(rng, n, labels, kind)
        expected = all_trees(n, labels, label_scores, arc_scores, lam)
        scores = {tree: score for score, tree in expected}
        k = int(rng.integers(1, 60))
        trees = k_best(weighted(label_scores, arc_scores, lam), k)
        assert [tree.score for tree in trees] == sorted(scores.values(), reverse=True)[:k], trial
        assert all(scores[key(tree)] == tree.score for tree in trees), trial
        assert len(set(map(key, trees))) == len(trees), trial


def test_the_best_is_the_decoders_and_there_are_no_duplicates():
    rng = np.random.default_rng(1000)
    for trial in range(300):
        n = 1 + trial % 12
        label_scores, arc_scores = random_chart(rng, n, 5, ("exact", "ties")[trial % 2])
        trees = k_best(weighted(label_scores, arc_scores, 0.25), 12)
        best = decode(label_scores, arc_scores, 0.25)
        assert trees[0].score == best.score, trial
        assert trial % 2 or key(trees[0]) == key(best), trial
        assert len(set(map(key, trees))) == len(trees), trial
        assert [tree.score for tree in trees] == sorted((tree.score for tree in trees), reverse=True), trial
        for tree in trees:
            check_joint_tree(tree, n)


def test_ties_are_broken_as_documented():
    label_scores, arc_scores = np.zeros((4, 4, 4)), np.zeros((3, 4))
    first = k_best(weighted(label_scores, arc_scores, 0.5), 40)
    # The first head word, the first split, and no label where there may be none.
    assert key(first[0]) == (((0, 3, 2, 1), (1, 3, 1, 2)), (0, 1, 2))


@pytest.mark.parametrize("seed", range(12))
def test_structures_are_those_of_enumeration(seed):
    """The best tree of every set of arcs, and the sum over all trees that have these arcs; the last word may not count."""
    rng = np.random.default_rng(seed)
    n, labels = 1 + seed % 5, 3 if seed % 5 > 2 else 4
    label_scores, arc_scores = random_chart(rng, n, labels, "exact")
    words, classes = range(n - (seed > 6 and n > 1)), {}
    for score, (_, heads) in all_trees(n, labels, label_scores, arc_scores, 0.5):
        classes.setdefault(tuple(heads[i] for i in words), []).append(score)
    found = list(structures(weighted(label_scores, arc_scores, 0.5), words))
    assert [tree.score for tree, _ in found] == sorted(map(max, classes.values()), reverse=True)
    for tree, scores in found:
        members = classes.pop(tuple(tree.heads[i] for i in words))
        assert tree.score == max(members) and log_partition(scores) == pytest.approx(np.logaddexp.reduce(members))
    assert not classes


def test_wrong_input_is_refused():
    label_scores, arc_scores = random_chart(np.random.default_rng(1), 3, 3, "real")
    with pytest.raises(ParameterError, match="the number of trees is 0\n  Give 1 to 10000"):
        k_best(weighted(label_scores, arc_scores, 0.5), 0)
    for wrong in (np.nan, np.inf):
        label_scores[0, 2, 2] = wrong
        with pytest.raises(ValueError, match=r"the sentence: label_scores\[0, 2, 2\] is (nan|inf)"):
            weighted(label_scores, arc_scores, 0.5)


# ---------------------------------------------------------------- probabilities


def test_log_partition_is_that_of_enumeration():
    rng = np.random.default_rng(31)
    for trial in range(40):
        n, temperature = 1 + trial % 3, (0.3, 1.0, 5.0)[trial % 3]
        label_scores, arc_scores = random_chart(rng, n, 4, ("real", "ties")[trial % 2])
        expected = reference.sums_over_trees(label_scores, arc_scores, 0.4, temperature).log_partition
        total = log_partition(weighted(label_scores, arc_scores, 0.4).divided(temperature))
        assert total == pytest.approx(expected, abs=1e-9), trial
    big = 1e4 * label_scores, 1e4 * arc_scores
    assert log_partition(weighted(*big, 0.5)) >= k_best(weighted(*big, 0.5), 1)[0].score


# ---------------------------------------------------------------- constraints


def obeys(tree: tuple, constraints: Constraints) -> bool:
    """Whether a tree (spans, heads) of enumeration has all that is required and nothing that is forbidden."""
    spans, heads = tree

    def has(item) -> bool:
        if isinstance(item, ArcItem):
            return heads[item.dependent - 1] == item.head
        names = [LABELS[k] for i, j, k, _ in spans if (i, j) == (item.first - 1, item.last)]
        if item.label == "*":
            return any(name != "<H>" for name in names)
        return any(item.label == name or item.label in name.split("::") for name in names)

    return all(map(has, constraints.require)) and not any(map(has, constraints.forbid))


def random_item(rng: np.random.Generator, n: int):
    if rng.random() < 0.4:
        return ArcItem(int(rng.integers(1, n + 1)), int(rng.integers(0, n + 1)))
    first, last = sorted(map(int, rng.integers(1, n + 1, 2)))
    return SpanItem(str(rng.choice(["*", "NP", "VP", "S::VP", "S", "<H>"])), first, last)


def test_constrained_trees_are_those_of_enumeration():
    """Up to four constraints at the same time. If none of the trees obeys, this is said, or there are no trees."""
    rng = np.random.default_rng(7)
    sizes = {1: 5, 2: 5, 3: 5, 4: 3}
    trees = {n: list(reference.labelled_trees(n, labels)) for n, labels in sizes.items()}
    outcomes = {"some": 0, "refused": 0, "none": 0}
    for trial in range(240):
        n = 4 if trial % 10 == 0 else 1 + trial % 3
        items = [random_item(rng, n) for _ in range(rng.integers(1, 5))]
        cut = int(rng.integers(0, len(items) + 1))
        constraints = Constraints(tuple(items[:cut]), tuple(items[cut:]))
        label_scores, arc_scores = random_chart(rng, n, sizes[n], "exact")
        expected = [tree for tree in trees[n] if obeys(tree, constraints)]
        try:
            constraints.check(n, LABELS[: sizes[n]], ())
            arrays = constraints.apply(label_scores, arc_scores, LABELS[: sizes[n]])
        except ParameterError:
            assert not expected or any(isinstance(i, ArcItem) and i[0] == i[1] for i in items) or sizes[n] == 3, trial
            outcomes["refused"] += 1
            continue
        scores = {tree: reference.score_of(tree, label_scores, arc_scores, 0.5) for tree in expected}
        best = k_best(weighted(arrays[0], arrays[1], 0.5, arrays[2]), 30)
        assert [tree.score for tree in best] == sorted(scores.values(), reverse=True)[:30], (trial, str(constraints))
        assert {key(tree) for tree in best} <= set(scores)
        total = np.logaddexp.reduce(list(scores.values()), initial=-np.inf)
        assert log_partition(weighted(arrays[0], arrays[1], 0.5, arrays[2])) == pytest.approx(total, abs=1e-9), trial
        outcomes["some" if scores else "none"] += 1
    assert min(outcomes.values()) > 12 and outcomes["some"] > 90, outcomes
