"""The two slow twins agree with each other, and the decoder with both, ties included."""

import numpy as np
import pytest

from lalkit.chart.joint import decode
from tests.chart.charts import LAMBDAS, random_chart
from tests.reference import joint_enumeration as reference


@pytest.mark.parametrize("n", range(1, 6))
def test_the_two_enumerations_have_the_same_trees(n):
    derived = {(tuple(reference.heads_of(arcs)), frozenset(spans)) for spans, arcs in reference.derivations(n)}
    assert derived == reference.tree_set(n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_added_in_the_documented_order(dtype):
    """Bit-equal to the formulas of the docstring, in the type of the scores, where rounding depends on the order."""
    rng = np.random.default_rng(101)
    for trial in range(40):
        label_scores, arc_scores = random_chart(rng, 1 + trial % 9, 5, "real", dtype)
        assert decode(label_scores, arc_scores, 0.3).score == reference.rounded(label_scores, arc_scores, 0.3), trial


def test_numbers_of_trees():
    assert [len(reference.joint_trees(n)) for n in range(1, 6)] == [1, 2, 7, 30, 143]  # OEIS A006013
    assert [len(reference.tree_set(n)) for n in range(1, 6)] == [1, 8, 88, 1_184, 17_792]


@pytest.mark.parametrize("kind", ["ties", "exact"])
def test_decode_is_the_first_maximum_of_the_enumeration(kind):
    rng = np.random.default_rng(20200 + len(kind))
    tied = 0
    for trial in range(250):
        n, lam = 1 + trial % 5, LAMBDAS[trial % len(LAMBDAS)]
        label_scores, arc_scores = random_chart(rng, n, int(rng.integers(3, 6)), kind)
        tree = decode(label_scores, arc_scores, lam)
        score, spans, heads = reference.first_best(label_scores, arc_scores, lam)
        assert tree.score == score == reference.maximum(label_scores, arc_scores, lam), trial
        assert tree.spans == spans, trial
        assert tree.heads.tolist() == heads, trial
        key = tuple(heads), frozenset((i, j, h - 1) for i, j, _, h in tree.spans)
        assert key in reference.tree_set(n), trial
        arcs = sum(arc_scores[d, h] for d, h in enumerate(tree.heads))
        labels = sum(label_scores[i, j, label] for i, j, label, _ in tree.spans)
        assert lam * labels + (1 - lam) * arcs == score, trial
        tied += n > 2 and _has_ties(label_scores, arc_scores, lam, score)
    if kind == "ties":
        assert tied > 75, "integer scores are here to make ties; most charts of three words and more should have one"


def _has_ties(label_scores, arc_scores, lam, score) -> bool:
    """Is there a second best tree? Forbid each arc of the best one in turn."""
    for d, h in enumerate(decode(label_scores, arc_scores, lam).heads):
        other = arc_scores.copy()
        other[d, h] -= 1024
        if decode(label_scores, other, lam).score == score:
            return True
    return False


def test_labelled_trees_are_different_and_the_best_one_is_the_decoders():
    rng = np.random.default_rng(11)
    for trial in range(8):
        n = 1 + trial % 4
        label_scores, arc_scores = random_chart(rng, n, 4 if n < 4 else 3, "exact")
        trees = list(reference.labelled_trees(n, label_scores.shape[2]))
        assert len(set(trees)) == len(trees)
        tree = decode(label_scores, arc_scores, 0.25)
        best = max(trees, key=lambda tree: reference.score_of(tree, label_scores, arc_scores, 0.25))
        assert best == (tuple(tree.spans), tuple(tree.heads.tolist()))
        assert reference.score_of(best, label_scores, arc_scores, 0.25) == tree.score


def test_sums_over_trees_and_over_structures_agree():
    rng = np.random.default_rng(12)
    for trial in range(12):
        n = 1 + trial % 3
        label_scores, arc_scores = random_chart(rng, n, 4, "real")
        if trial > 5:
            label_scores[0, 1, 2] = arc_scores[0, 0] = -np.inf if n > 1 else 0
        found = reference.sums_over_structures(label_scores, arc_scores, 0.3, 0.7)
        expected = reference.sums_over_trees(label_scores, arc_scores, 0.3, 0.7)
        for name, a, b in zip(found._fields, found, expected):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=name)
