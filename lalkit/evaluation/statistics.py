"""Say whether a difference is more than chance, for one test or for many; measure areas under ROC curves and agreement of judges.

The scores of a corpus are ratios of sums over sentences. Therefore they are tested by randomisation over sentences, which no
library we know offers for such ratios. Holm's correction is not in scipy either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

# Score -> the columns of a table of sentences (`Evaluation.table`) that it is made of: right, in gold, predicted.
COUNTS = {
    "f1": ["matched", "gold", "predicted"],
    "uas": ["arcs_right", "arcs", "arcs"],
    "las": ["labels_right", "arcs", "arcs"],
}


@dataclass(frozen=True)
class Difference:
    """difference: of the scores in points, first minus second; p: two-sided."""

    difference: float
    p: float


def f1_test(first: ArrayLike, second: ArrayLike, rounds: int = 10_000, seed: int = 0) -> Difference:
    """Test the difference of two corpus F1 scores by approximate randomisation (Noreen 1989).

    If the two systems were the same, it would not matter which system has which counts of a sentence. So p is the share of
    `rounds` random exchanges, with the observed one among them, in which F1 differs by at least as much as observed. UAS is
    such a ratio too: (right, arcs, arcs). A t-test on the F1 of sentences would test their unweighted mean instead.

    Args:
        first, second: counts of every sentence, (matched, gold, predicted): [N, 3] each.
        rounds, seed: of the random exchanges.

    Raises:
        ValueError: the counts are not of the same sentences.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3 or not len(a):
        raise ValueError(f"counts of the same sentences are needed, [N, 3] each, not {a.shape} and {b.shape}")
    delta = a - b

    def exchanged(swaps: np.ndarray) -> np.ndarray:
        moved = swaps.astype(np.float64) @ delta
        return f1_of_sums(a.sum(0) - moved) - f1_of_sums(b.sum(0) + moved)

    observed = f1_of_sums(a.sum(0)) - f1_of_sums(b.sum(0))
    return Difference(float(observed), _share(exchanged, observed, len(a), rounds, seed))


def score_test(first: Sequence[pd.DataFrame], second: Sequence[pd.DataFrame], score: str) -> Difference:
    """Test one of the scores in `COUNTS` over several pairs of runs, such as seeds.

    first, second: the tables of sentences of every run. The counts of a sentence are added up over the runs.
    """
    sides = (sum(table[COUNTS[score]].fillna(0).to_numpy(float) for table in tables) for tables in (first, second))
    return f1_test(*sides)


@dataclass(frozen=True)
class Paired:
    """difference: mean of first - second, low to high its 95% interval by t; p of the t-test, and of `rounds` random signs."""

    difference: float
    low: float
    high: float
    t_p: float
    permutation_p: float


def paired_test(first: ArrayLike, second: ArrayLike, rounds: int = 10_000, seed: int = 0) -> Paired:
    """Test two measurements of the same examples, [N] each. Pairs with a nan are left out.

    If all differences are equal, a t-test has no spread to measure them by: p is then 1 if they are 0, and 0 if not. Raises
    ValueError for other shapes, or fewer than two pairs.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"measurements of the same examples are needed, not {a.shape} and {b.shape}")
    d = (a - b)[~np.isnan(a - b)]
    if len(d) < 2:
        raise ValueError(f"{len(d)} pairs: at least two are needed")
    mean, error = float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))
    if error > 0:
        half, p = stats.t.ppf(0.975, len(d) - 1) * error, float(2 * stats.t.sf(abs(mean) / error, len(d) - 1))
    else:
        half, p = 0.0, 1.0 if mean == 0 else 0.0
    permutation_p = _share(lambda swaps: (swaps * 2 - 1) @ d, d.sum(), len(d), rounds, seed)
    return Paired(mean, mean - half, mean + half, p, permutation_p)


def _share(statistic: Callable, observed: float, n: int, rounds: int, seed: int) -> float:
    """Return the share of random exchanges, the observed one among them, whose statistic is at least as far from 0.

    statistic: [rounds, n] of 0 (keep) and 1 (exchange) -> [rounds].
    """
    rng, reached = np.random.default_rng(seed), 0
    for start in range(0, rounds, 1000):  # in pieces, to save memory
        swaps = rng.integers(0, 2, (min(1000, rounds - start), n))
        reached += int((np.abs(statistic(swaps)) >= abs(observed) - 1e-9).sum())
    return (reached + 1) / (rounds + 1)


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
    """Correct p-values for their number (Holm 1979), so that the chance of any false alarm is that of a single test."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]).clip(max=1.0)
    return corrected


def roc_auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under the ROC curve (Mann and Whitney 1947).

    It is the chance that a positive example has a higher score than a negative one; ties count half. Raises ValueError
    without examples of both kinds.
    """
    scores, positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    count, others = positive.sum(), (~positive).sum()
    if not count or not others:
        raise ValueError(f"{count} positive and {others} negative examples: some of both are needed")
    return float(stats.mannwhitneyu(scores[positive], scores[~positive], method="asymptotic")[0] / (count * others))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Return how far judges agree beyond chance (Fleiss 1971): 1 is full agreement, and 0 is that of chance.

    counts: [N, C], how many judges gave item n the category c. Items may have different numbers of judges; those with fewer than
    two are left out. It is nan if none is left, or if only one category was ever given.
    """
    votes = np.asarray(counts, dtype=np.float64)
    votes = votes[votes.sum(1) >= 2]
    judges = votes.sum(1)
    if not len(votes) or (chance := np.square(votes.sum(0) / judges.sum()).sum()) >= 1:
        return float("nan")
    agreed = ((votes * (votes - 1)).sum(1) / (judges * (judges - 1))).mean()
    return float((agreed - chance) / (1 - chance))


def f1_of_sums(counts: np.ndarray) -> np.ndarray:
    """Return percent, from sums [..., 3]; 0 where there is nothing to count."""
    matched, gold, predicted = np.moveaxis(counts, -1, 0)
    return 200 * matched / np.maximum(gold + predicted, 1e-12)
