"""Differences and their chances, on examples whose answer is known."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lalkit.evaluation.statistics import f1_test, holm, mean_of_runs, paired_test, split_tests, welch


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
    assert f1_test(good, good).p == f1_test(good, good, seed=5).p == 1
    better = f1_test(good, np.tile([7, 10, 10], (200, 1)), rounds=999)
    assert better.difference == pytest.approx(20) and better.p == 0.001


def test_counts_must_be_of_the_same_sentences():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 3\)"):
        f1_test(np.ones((2, 3)), np.ones((3, 3)))


def test_holm_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1, 1] and holm([]).tolist() == []


def test_paired_differences_against_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=9), rng.normal(0.4, size=9)
    found = paired_test(a, b)
    theirs = stats.ttest_rel(a, b)
    interval = theirs.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    assert paired_test([*a, np.nan], [*b, 1.0]).p == found.p


def test_paired_differences_that_do_not_vary():
    assert paired_test([1, 2, 3], [1, 2, 3]).p == 1
    shifted = paired_test([1.0] * 20, [0.0] * 20)
    assert shifted.p == 0 and shifted.low == shifted.high == 1
    one = paired_test([1.0, np.nan], [0.0, 1.0])
    assert one.difference == 1 and np.isnan([one.p, one.low, one.high]).all()
    with pytest.raises(ValueError, match="same examples"):
        paired_test([1.0, 2.0], [0.0])


# ---------------------------------------------------------------- tests over runs

A, B = [90.34, 90.56, 90.81, 90.2], [90.88, 90.72, 90.87]


def literal_welch(a, b, delta=0.0):
    """Return t and the degrees of freedom of Welch and Satterthwaite, from their formulas."""
    (m, v, n), (k, w, o) = ((np.mean(x), np.var(x, ddof=1), len(x)) for x in (a, b))
    error = v / n + w / o
    return (m - k - delta) / error**0.5, error**2 / ((v / n) ** 2 / (n - 1) + (w / o) ** 2 / (o - 1)), error**0.5


def test_welch_against_scipy_and_the_formulas():
    found, twin = welch(A, B, margin=0.3), stats.ttest_ind(A, B, equal_var=False)
    t, df, error = literal_welch(A, B)
    assert found.p == pytest.approx(twin.pvalue) == pytest.approx(2 * stats.t.sf(abs(t), df))
    half = stats.t.ppf(0.975, df) * error
    assert (found.low, found.high) == pytest.approx((found.difference - half, found.difference + half))
    above, below = (literal_welch(A, B, delta)[0] for delta in (-0.3, 0.3))
    assert found.equal_p == pytest.approx(max(stats.t.sf(above, df), stats.t.cdf(below, df)))
    other = welch(B, A, margin=0.3)
    assert (other.difference, other.p, other.equal_p) == pytest.approx((-found.difference, found.p, found.equal_p))


def test_known_answers_of_the_tests_over_runs(recwarn):
    found = welch([80.1, 80.1, 80.1], [79.9, 80.4, 80.2], margin=0.3)
    assert found.low < found.difference < found.high and not list(recwarn), "equal runs give no warning"
    assert np.isnan([welch([1.0], [2.0, 3.0], 0.3).p, welch([1.0], [2.0, 3.0], 0.3).equal_p]).all(), "no spread"
    assert welch([1.0, 1.0], [1.0, 1.0], 0.3).p == 1 and welch([1.0, 1.0], [2.0, 2.0], 0.3).p == 0
    near, far = (welch([80.0, 80.01, 80.02], [80.0 + d, 80.01 + d, 80.02 + d], 0.3) for d in (0.001, 1.0))
    assert near.equal_p < 0.001 < 0.5 < near.p and far.p < 0.001 < 0.9 < far.equal_p
    assert mean_of_runs([1.0, 2.0, 3.0]) == pytest.approx((2, *stats.t.interval(0.95, 2, 2, 1 / 3**0.5)))
    assert np.isnan(mean_of_runs([1.0])[1:]).all()


def test_splits_of_the_runs_of_one_system():
    three = split_tests([1.0, 2.0, 4.0])
    assert three == pytest.approx([2 * stats.t.sf(abs(x - np.mean(y)) / (np.std(y, ddof=1) * 1.5**0.5), 1) for x, y in
                                   ((1, (2, 4)), (2, (1, 4)), (4, (1, 2)))])  # fmt: skip
    assert [len(split_tests(np.arange(n) ** 2)) for n in (1, 2, 4, 5)] == [0, 0, 3, 10]
    five = split_tests([1.0, 2.0, 4.0, 7.0, 11.0])
    assert five[0] == pytest.approx(stats.ttest_ind([1.0, 2.0], [4.0, 7.0, 11.0], equal_var=False).pvalue)
    rng = np.random.default_rng(0)
    rates = [np.mean([p < 0.05 for _ in range(400) for p in split_tests(rng.normal(size=n))]) for n in (3, 5)]
    assert all(0.02 < rate < 0.08 for rate in rates), "5 % of the tests of nothing are significant"
