"""Enumeration has every joint tree, and the decoder finds the first of the best ones, ties included."""

import numpy as np
import pytest

from lalkit.bench import best_score_twin
from lalkit.chart.joint import JointTree, decode
from lalkit.treebank.tree import check_heads
from tests.chart.charts import LAMBDAS, check_joint_tree, random_chart
from tests.reference import joint_enumeration as reference


@pytest.mark.parametrize(("n", "number"), [(1, 1), (2, 8), (3, 88), (4, 1_184), (5, 17_792)])
def test_enumeration_has_all_joint_trees_and_nothing_else(n, number):
    """As many as projective trees times chains of labelled projections; 143 of 5 words without labels (OEIS A006013)."""
    trees = reference.tree_set(n)
    assert len(trees) == number and len({heads for heads, _ in trees}) == (1, 2, 7, 30, 143)[n - 1]
    for heads, spans in trees:
        check_heads(heads)
        named = [(i, j, 2, h + 1) for i, j, h in spans]
        check_joint_tree(JointTree(0.0, reference.in_preorder(named), np.array(heads)), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_added_in_the_documented_order(dtype):
    """Bit-equal to the twin that takes the equations one by one, in the type of the scores: rounding depends on the order."""
    rng = np.random.default_rng(101)
    for trial in range(40):
        n, lam = 1 + trial % 20, (*LAMBDAS, 0.3)[trial % 7]
        label_scores, arc_scores = random_chart(rng, n, 5, ("real", "ties")[trial % 2], dtype)
        tree = decode(label_scores, arc_scores, lam)
        check_joint_tree(tree, n)
        assert tree.score == best_score_twin(label_scores, arc_scores, lam), trial


@pytest.mark.parametrize("kind", ["ties", "exact"])
def test_decode_is_the_first_maximum_of_the_enumeration(kind):
    rng = np.random.default_rng(20200 + len(kind))
    tied = 0
    for trial in range(250):
        n, lam = 1 + trial % 5, LAMBDAS[trial % len(LAMBDAS)]
        label_scores, arc_scores = random_chart(rng, n, int(rng.integers(3, 6)), kind)
        tree = decode(label_scores, arc_scores, lam)
        score, spans, heads = reference.first_best(label_scores, arc_scores, lam)
        assert tree.score == score, trial
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
