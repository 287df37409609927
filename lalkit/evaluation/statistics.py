"""Is a difference more than chance? Tests for scores that are ratios of sums over sentences, and for many tests at once; and
the area under a ROC curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Difference:
    """difference: of the scores in points, first minus second; p: two-sided; n: sentences."""

    difference: float
    p: float
    n: int


def f1_test(first: ArrayLike, second: ArrayLike, rounds: int = 10_000, seed: int = 0) -> Difference:
    """Approximate randomisation (Noreen 1989) of corpus F1 over per-sentence counts (matched, gold, predicted): [N, 3] each.

    If the two systems were the same, it would not matter whose counts of a sentence are whose: p is the share of `rounds`
    random exchanges, the one that was observed among them, in which F1 differs by at least as much. UAS is such a ratio
    too: (right, arcs, arcs). A t-test on the F1 of sentences would test another thing, their unweighted mean.

    Raises ValueError unless the counts are of the same sentences.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3 or not len(a):
        raise ValueError(f"counts of the same sentences are needed, [N, 3] each, not {a.shape} and {b.shape}")
    rng, delta = np.random.default_rng(seed), a - b
    observed = _f1(a.sum(0)) - _f1(b.sum(0))
    reached, done = 0, 0
    while done < rounds:
        size = min(1000, rounds - done)
        moved = rng.integers(0, 2, (size, len(a))).astype(np.float64) @ delta
        found = _f1(a.sum(0) - moved) - _f1(b.sum(0) + moved)
        reached += int((np.abs(found) >= abs(observed) - 1e-9).sum())
        done += size
    return Difference(float(observed), (reached + 1) / (rounds + 1), len(a))


@dataclass(frozen=True)
class Paired:
    """difference: mean of first - second, low to high its 95% interval by t; p of the t-test, and of `rounds` random signs."""

    difference: float
    low: float
    high: float
    t_p: float
    permutation_p: float
    n: int


def paired_test(first: ArrayLike, second: ArrayLike, rounds: int = 10_000, seed: int = 0) -> Paired:
    """Two measurements of the same examples, [N] each; pairs with a nan are left out.

    Where all differences are equal a t-test has none to go by: p is then 1 for no difference at all and 0 for another.
    Raises ValueError for other shapes, or fewer than two pairs.
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
    rng, reached, done = np.random.default_rng(seed), 0, 0
    while done < rounds:
        size = min(1000, rounds - done)
        signs = rng.integers(0, 2, (size, len(d))) * 2 - 1
        reached += int((np.abs(signs @ d) >= abs(d.sum()) - 1e-9).sum())
        done += size
    return Paired(mean, mean - half, mean + half, p, (reached + 1) / (rounds + 1), len(d))


def holm(p: ArrayLike) -> np.ndarray:
    """p-values corrected for their number (Holm 1979): the chance of any false alarm stays what it is for one test."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def roc_auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """The area under the ROC curve: the chance that a positive example has a higher score than a negative one, ties counted
    half (Mann and Whitney 1947). Raises ValueError without examples of both kinds."""
    positive = np.asarray(positive, dtype=bool)
    count, others = positive.sum(), (~positive).sum()
    if not count or not others:
        raise ValueError(f"{count} positive and {others} negative examples: some of both are needed")
    ranks = stats.rankdata(np.asarray(scores, dtype=np.float64))  # ties have their mean rank
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))


def _f1(counts: np.ndarray) -> np.ndarray:
    """Percent, from sums [..., 3]; 0 of nothing."""
    matched, gold, predicted = np.moveaxis(counts, -1, 0)
    return 200 * matched / np.maximum(gold + predicted, 1e-12)
