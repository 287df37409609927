"""Differences and their chances, on examples whose answer is known."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lalkit.evaluation.statistics import f1_test, fleiss_kappa, holm, paired_test, roc_auc
from tests.reference import probes_literal as literal


def f1(counts):
    matched, gold, predicted = np.sum(counts, axis=0)
    return 200 * matched / (gold + predicted)


def test_against_all_exchanges():
    """The slow twin: every one of the 2^8 exchanges."""
    rng = np.random.default_rng(0)
    gold = rng.integers(3, 9, 8)
    a = np.stack([rng.integers(1, 3, 8), gold, gold + rng.integers(-1, 2, 8)], 1)
    b = np.stack([rng.integers(0, 3, 8), gold, gold + rng.integers(-1, 2, 8)], 1)
    observed = abs(f1(a) - f1(b))
    found = []
    for swap in product([False, True], repeat=8):
        mask = np.array(swap)[:, None]
        found.append(abs(f1(np.where(mask, b, a)) - f1(np.where(mask, a, b))) >= observed - 1e-9)
    result = f1_test(a, b, rounds=20_000)
    assert result.difference == pytest.approx(f1(a) - f1(b))
    assert result.p == pytest.approx(np.mean(found), abs=0.015)


def test_equal_and_very_different_systems():
    good = np.tile([9, 10, 10], (200, 1))
    assert f1_test(good, good) == f1_test(good, good, seed=5) and f1_test(good, good).p == 1
    better = f1_test(good, np.tile([7, 10, 10], (200, 1)), rounds=999)
    assert better.difference == pytest.approx(20) and better.p == 0.001


def test_chance_alone_seldom_looks_like_a_difference():
    rng = np.random.default_rng(1)
    ps = []
    for _ in range(60):
        a, b = (np.stack([rng.binomial(10, 0.8, 50), np.full(50, 10), np.full(50, 10)], 1) for _ in range(2))
        ps.append(f1_test(a, b, rounds=400).p)
    assert np.mean(np.array(ps) < 0.05) < 0.15 and 0.35 < np.mean(ps) < 0.65


def test_counts_must_be_of_the_same_sentences():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 3\)"):
        f1_test(np.ones((2, 3)), np.ones((3, 3)))


def test_holm_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1, 1] and holm([]).tolist() == []


def test_paired_differences_against_all_signs_and_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=9), rng.normal(0.4, size=9)
    found = paired_test(a, b, rounds=20_000)
    sums = [abs(np.dot(signs, a - b)) for signs in product([1, -1], repeat=9)]
    assert found.permutation_p == pytest.approx(np.mean(np.array(sums) >= abs((a - b).sum()) - 1e-9), abs=0.01)
    theirs = stats.ttest_rel(a, b)
    interval = theirs.confidence_interval()
    assert (found.t_p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    assert paired_test([*a, np.nan], [*b, 1.0]) == paired_test(a, b)


def test_paired_differences_that_do_not_vary():
    assert paired_test([1, 2, 3], [1, 2, 3]).t_p == 1 == paired_test([1, 2, 3], [1, 2, 3]).permutation_p
    shifted = paired_test([1.0] * 20, [0.0] * 20, rounds=999)
    assert shifted.t_p == 0 and shifted.permutation_p < 0.01 and shifted.low == shifted.high == 1
    with pytest.raises(ValueError, match="at least two"):
        paired_test([1.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="same examples"):
        paired_test([1.0, 2.0], [0.0])


def test_the_area_under_the_curve_against_all_pairs():
    rng = np.random.default_rng(5)
    for size in (2, 7, 40):
        positive = rng.permutation([True, False] + list(rng.random(size - 2) < 0.3))
        for scores in (rng.normal(size=size), rng.integers(0, 3, size)):  # without ties, and with many
            assert roc_auc(scores, positive) == pytest.approx(literal.roc_auc(scores, positive), abs=1e-12)
    assert roc_auc([1, 2, 3], [0, 0, 1]) == 1 and roc_auc([3, 2, 1], [0, 0, 1]) == 0 and roc_auc([1, 1], [0, 1]) == 0.5
    with pytest.raises(ValueError, match="2 positive and 0 negative"):
        roc_auc([1, 2], [1, 1])


def test_the_agreement_of_judges_against_all_pairs():
    """The published example of Fleiss' kappa has 14 judges (0.21); the slow twin goes through all pairs of judgements."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)
    uneven = [[3, 0], [2, 3], [1, 0], [0, 0], [1, 1]]
    for votes in (counts, uneven):
        assert fleiss_kappa(votes) == pytest.approx(literal.fleiss_kappa(votes), abs=1e-12)
    assert fleiss_kappa([[2, 0], [0, 2]]) == 1
    assert all(np.isnan(fleiss_kappa(votes)) for votes in ([[2, 0]], [[1, 0], [0, 1]], np.zeros((0, 2))))
