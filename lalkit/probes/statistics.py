"""Is a difference more than chance? Tests for scores that are ratios of sums over sentences, and for many tests at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


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


def holm(p: ArrayLike) -> np.ndarray:
    """p-values corrected for their number (Holm 1979): the chance of any false alarm stays what it is for one test."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def _f1(counts: np.ndarray) -> np.ndarray:
    """Percent, from sums [..., 3]; 0 of nothing."""
    matched, gold, predicted = np.moveaxis(counts, -1, 0)
    return 200 * matched / np.maximum(gold + predicted, 1e-12)
