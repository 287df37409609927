"""Test whether a difference is more than chance.

Two questions need two tests. *Is one system better than another?* A system is trained again and again, so the unit is the run
(a seed): `welch`. *Is this parser better than that parser?* Both are fixed files that parse the same sentences, so the unit is
the sentence: `f1_test` and `score_test`. A test over sentences must not answer the first question: it calls a difference
between two seeds of one system significant far more often than in 5 % of cases.

The scores of a corpus are ratios of sums over sentences, so `f1_test` exchanges sentences at random. Neither this test nor
Holm's correction is in scipy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import scipy  # it loads scipy.stats when that is first used
from numpy.typing import ArrayLike

# Score -> the columns of a table of sentences (`Evaluation.table`) that it is made of: right, in gold, predicted.
COUNTS = {
    "f1": ["matched", "gold", "predicted"],
    "uas": ["arcs_right", "arcs", "arcs"],
    "las": ["labels_right", "arcs", "arcs"],
}


@dataclass(frozen=True)
class Difference:
    """Hold the result of a test of two sides.

    difference: first minus second; p: two-sided; low to high: the 95 % interval of the difference; equal_p: the p of the
    equivalence test. A value that a test does not give is nan.
    """

    difference: float
    p: float
    low: float = np.nan
    high: float = np.nan
    equal_p: float = np.nan


def welch(first: ArrayLike, second: ArrayLike, margin: float) -> Difference:
    """Test whether two systems differ, by the scores of their runs: [A] and [B]. The runs need not have the same seeds.

    The equivalence test (two one-sided tests, Schuirmann 1987) asks whether the difference of the means lies between -margin
    and +margin: its p is the larger one of two Welch tests, against -margin and against +margin.

    All but the difference are nan if one system has fewer than two runs.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    difference = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Difference(difference, np.nan)
    # All runs of each system are equal, so there is no spread with which to compare the difference.
    if a.std() == b.std() == 0:
        p, equal_p = float(difference == 0), float(abs(difference) >= margin)
        return Difference(difference, p, difference, difference, equal_p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the runs of one system may be equal, which is not an error
        test = scipy.stats.ttest_ind(a, b, equal_var=False)
        interval = test.confidence_interval(0.95)
        above = scipy.stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue
        below = scipy.stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue
    return Difference(difference, float(test.pvalue), *map(float, (*interval, max(above, below))))


def mean_of_runs(values: ArrayLike) -> tuple[float, float, float]:
    """Return the mean of runs and its 95 % interval by t; the interval of a single run is nan."""
    a = np.asarray(values, dtype=np.float64)
    half = scipy.stats.t.ppf(0.975, len(a) - 1) * a.std(ddof=1) / np.sqrt(len(a)) if len(a) > 1 else float("nan")
    return float(a.mean()), float(a.mean() - half), float(a.mean() + half)


def split_tests(scores: ArrayLike) -> list[float]:
    """Return the p of every split of one system's runs into two groups, whose true difference is 0.

    At a level of 5 %, 5 % of such tests should be significant. With four runs or more, each group has at least two of them, and
    the test is Welch's. Of three runs, each one is tested against the other two, whose spread counts for it as well: Student's t
    test with one degree of freedom. Fewer runs cannot be split.
    """
    a = np.asarray(scores, dtype=np.float64)
    sizes = range(2, len(a) // 2 + 1) if len(a) > 3 else range(1, len(a) - 1)
    found = []
    for size in sizes:
        for group in combinations(range(len(a)), size):
            if 2 * size == len(a) and 0 not in group:
                continue  # the same split was seen from its other side
            sides = a[list(group)], np.delete(a, group)
            facts = [(side.mean(), side.std(ddof=1) if len(side) > 1 else 0.0, len(side)) for side in sides]
            test = scipy.stats.ttest_ind_from_stats(*facts[0], *facts[1], equal_var=len(a) == 3)
            found.append(float(test.pvalue))
    return found


def f1_test(first: ArrayLike, second: ArrayLike, rounds: int = 10_000, seed: int = 0) -> Difference:
    """Test one parser against one parser over sentences, by approximate randomisation (Noreen 1989).

    If the two parsers were the same, it would not matter which parser has which counts of a sentence. So p is the share of
    `rounds` random exchanges, with the observed one among them, in which F1 differs by at least as much as observed. UAS is
    such a ratio too: (right, arcs, arcs). A t test on the F1 of sentences would test their unweighted mean instead.

    This says nothing about another training of the same two systems: see `welch`.

    Args:
        first, second: counts of every sentence, (matched, gold, predicted): [N, 3] each.
        rounds, seed: of the random exchanges.

    Raises:
        ValueError: the counts are not of the same sentences.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3 or not len(a):
        raise ValueError(f"counts of the same sentences are needed, [N, 3] each, not {a.shape} and {b.shape}")
    observed = f1_of_sums(a.sum(0)) - f1_of_sums(b.sum(0))
    rng, reached = np.random.default_rng(seed), 0
    for start in range(0, rounds, 1000):  # in pieces, to save memory
        moved = rng.integers(0, 2, (min(1000, rounds - start), len(a))).astype(np.float64) @ (a - b)
        exchanged = f1_of_sums(a.sum(0) - moved) - f1_of_sums(b.sum(0) + moved)
        reached += int((np.abs(exchanged) >= abs(observed) - 1e-9).sum())
    return Difference(float(observed), (reached + 1) / (rounds + 1))


def score_test(first: Sequence[pd.DataFrame], second: Sequence[pd.DataFrame], score: str) -> Difference:
    """Test one parser against one parser over sentences by one of the scores in `COUNTS`, see `f1_test`.

    first, second: the tables of sentences of every run. The counts of a sentence are added up over the runs of a side, so a
    small p is about these trained parsers, and not about other seeds.
    """
    sides = (sum(table[COUNTS[score]].fillna(0).to_numpy(float) for table in tables) for tables in (first, second))
    return f1_test(*sides)


def paired_test(first: ArrayLike, second: ArrayLike) -> Difference:
    """Test two measurements of the same examples, [N] each, by t. Pairs with a nan are left out.

    If all differences are equal, a t-test has no spread to measure them by: p is then 1 if they are 0, and 0 if not. With fewer
    than two pairs it is nan, and so is the interval. Raises ValueError for other shapes.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"measurements of the same examples are needed, not {a.shape} and {b.shape}")
    d = (a - b)[~np.isnan(a - b)]
    mean, low, high = mean_of_runs(d)
    if len(d) < 2:
        return Difference(mean, np.nan)
    error = d.std(ddof=1) / np.sqrt(len(d))
    p = float(2 * scipy.stats.t.sf(abs(mean) / error, len(d) - 1)) if error > 0 else float(mean == 0)
    return Difference(mean, p, low, high)


def mean_interval(values: ArrayLike, per: ArrayLike | None = None) -> tuple[float, float, float]:
    """Return (mean, low, high): low to high is its 95% interval by drawing examples again, 1,000 times (bootstrap).

    All three are nan without values. per: numbers of the same examples, for sum(values) / sum(per) instead of the mean.
    """
    a = np.asarray(values, dtype=np.float64)
    b = np.ones_like(a) if per is None else np.asarray(per, dtype=np.float64)
    if not len(a):
        return (float("nan"),) * 3
    drawn = np.random.default_rng(0).integers(0, len(a), (1000, len(a)))
    low, high = np.quantile(a[drawn].sum(1) / b[drawn].sum(1), [0.025, 0.975])
    return float(a.sum() / b.sum()), float(low), float(high)


def holm(p: ArrayLike) -> np.ndarray:
    """Correct p values [N] for their number (Holm 1979): the chance of any false alarm is then at most that of one test."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]).clip(max=1.0)
    return corrected


def f1_of_sums(counts: np.ndarray) -> np.ndarray:
    """Return F1 in percent from sums [..., 3] of (matched, gold, predicted); 0 where there are no brackets."""
    matched, gold, predicted = np.moveaxis(counts, -1, 0)
    return 200 * matched / np.maximum(gold + predicted, 1e-12)
