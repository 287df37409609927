"""Do two ways of asking name the same heads? Norms against the exact effect, and one parser's heads against another's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from lalkit.errors import LalkitError
from lalkit.interpret.contributions import Contributions
from lalkit.interpret.tables import ROUNDS, _led, _per_sentence, _quotient, _resampled, chosen, interval


def agreement(
    found: Contributions,
    norms: Sequence[str] = ("raw", "share"),
    labels: Sequence[str] | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> pd.DataFrame:
    """How a norm ranks the heads of a span, against the exact effect: label, norm, spans, rho (the mean over spans of
    Spearman's rank correlation over heads), low, high, same_top (percent of spans whose top head is the same).

    minmax and softmax rank as raw does.
    """
    exact = rankdata(found.by("exact"), axis=1)
    sentence, weights = _resampled(found, rounds, seed)
    rows = []
    for norm in norms:
        rho = correlation(rankdata(found.by(norm), axis=1), exact)
        same = found.top(norm) == found.top("exact")
        for name in chosen(found, labels):
            mask = (found.spans["label"] == name).to_numpy() & np.isfinite(rho)
            sums = _per_sentence(sentence[mask], np.stack([rho[mask], np.ones(mask.sum())], 1), weights.shape[1])
            both = weights @ sums
            low, high = interval(_quotient(both[:, 0], both[:, 1]))
            rows.append((name, norm, int(mask.sum()), rho[mask].mean(), low, high, 100 * same[mask].mean()))
    return pd.DataFrame(rows, columns=["label", "norm", "spans", "rho", "low", "high", "same_top"])


def match(first: Contributions, second: Contributions, norm: str) -> pd.DataFrame:
    """Heads of one parser paired with those of another so that their label profiles are most alike (Hungarian algorithm on
    the cosine): head, other, similarity, and by_chance, the mean similarity of that head to all of the other's heads.

    A head's profile: of each label's spans, the share that it leads. Numbers of heads belong to one checkpoint, so heads
    are compared across seeds after this only. Raises LalkitError unless both were looked at on sentences with common labels.
    """
    labels = sorted(set(first.spans["label"]) & set(second.spans["label"]))
    if not labels:
        raise LalkitError("the two have no label in common", remedy="Look at the same sentences with both.")
    a, b = (_profiles(found, norm, labels) for found in (first, second))
    similar = a @ b.T
    heads, others = linear_sum_assignment(-similar)
    return pd.DataFrame(
        {"head": heads, "other": others, "similarity": similar[heads, others], "by_chance": similar.mean(1)[heads]}
    )


def _profiles(found: Contributions, norm: str, labels: list[str]) -> np.ndarray:
    """[H, L], rows of length one (zero for a head that leads nothing)."""
    led, _ = _led(found, norm, 1, 0)
    names = sorted(found.spans["label"].unique())
    counts = led.sum(0)[[names.index(name) for name in labels]]  # [L, H]
    shares = (counts / counts.sum(1, keepdims=True)).T
    return shares / np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), 1e-12)


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[m]: Pearson's correlation of the rows; missing where one is constant."""
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return _quotient((a * b).sum(1), size)
