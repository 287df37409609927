"""Which label head leads which label: averages, shares and lifts over a corpus, with intervals (section 4.5, figure 8).

A large share proves nothing by itself: a head that leads most of *all* spans leads most NPs too. So every share stands beside
the head's share among all spans, and their quotient, the lift. Intervals are percentiles of a bootstrap over sentences, whose
spans belong together.

Do two ways of asking name the same heads? Norms against the exact effect, and one parser's heads against another's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from lalkit.errors import LalkitError
from lalkit.interpret.contributions import Contributions

ROUNDS = 1000
INTERVAL = (2.5, 97.5)  # percent
LEAST = 20  # spans that a label needs to be in a table unasked


def averages(
    found: Contributions, norm: str, labels: Sequence[str] | None = None, rounds: int = ROUNDS, seed: int = 0
) -> pd.DataFrame:
    """Figure 8: a row per label and head: label, head, norm, spans, mean, low, high."""
    names, values = chosen(found, labels), found.by(norm)
    sentence, weights = _resampled(found, rounds, seed)
    rows = []
    for name in names:
        mask = (found.spans["label"] == name).to_numpy()
        sums = _per_sentence(sentence[mask], values[mask], weights.shape[1])
        counts = _per_sentence(sentence[mask], np.ones((mask.sum(), 1)), weights.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            low, high = interval((weights @ sums) / (weights @ counts))
        for head in range(found.heads):
            rows.append((name, head, norm, int(mask.sum()), values[mask, head].mean(), low[head], high[head]))
    return pd.DataFrame(rows, columns=["label", "head", "norm", "spans", "mean", "low", "high"])


def top_shares(
    found: Contributions, norm: str, labels: Sequence[str] | None = None, rounds: int = ROUNDS, seed: int = 0
) -> pd.DataFrame:
    """Of the spans of a label, which head is on top: label, head, norm, spans, led (of these, by this head), share, low, high
    (percent), overall (percent of all spans that this head leads), lift, lift_low, lift_high. Heads that lead none are left
    out; the first row of a label is its top head."""
    names, led, weights = chosen(found, labels), *_led(found, norm, rounds, seed)
    everything = led.sum(1)  # [sentences, H]
    overall = 100 * everything.sum(0) / everything.sum()
    overall_r = _quotient(weights @ everything, (weights @ everything).sum(1, keepdims=True))
    rows = []
    for name in names:
        counts = led[:, _labels(found).index(name)]
        share, spans = 100 * counts.sum(0) / counts.sum(), int(counts.sum())
        share_r = _quotient(weights @ counts, (weights @ counts).sum(1, keepdims=True))
        low, high = 100 * interval(share_r)
        lift_low, lift_high = interval(_quotient(share_r, overall_r))
        for h in np.argsort(-share, kind="stable"):
            if share[h] > 0:
                rows.append(
                    (name, int(h), norm, spans, int(counts[:, h].sum()), share[h], low[h], high[h], overall[h],
                     share[h] / overall[h], lift_low[h], lift_high[h])
                )  # fmt: skip
    columns = "label head norm spans led share low high overall lift lift_low lift_high".split()
    return pd.DataFrame(rows, columns=columns)


def led_labels(
    found: Contributions, norm: str, heads: Sequence[int] | None = None, rounds: int = ROUNDS, seed: int = 0
) -> pd.DataFrame:
    """The reverse: of the spans a head leads, which label they have: head, label, norm, spans (led), share, low, high
    (percent), overall (the label's percent of all spans), lift. The largest share of a head first."""
    names, (led, weights) = _labels(found), _led(found, norm, rounds, seed)
    rows = []
    overall = 100 * led.sum((0, 2)) / led.sum()
    for head in known_heads(found, heads):
        counts = led[:, :, head]
        if not counts.sum():
            continue
        share = 100 * counts.sum(0) / counts.sum()
        low, high = 100 * interval(_quotient(weights @ counts, (weights @ counts).sum(1, keepdims=True)))
        for k in np.argsort(-share, kind="stable"):
            if share[k] > 0:
                rows.append(
                    (
                        head,
                        names[k],
                        norm,
                        int(counts.sum()),
                        share[k],
                        low[k],
                        high[k],
                        overall[k],
                        share[k] / overall[k],
                    )
                )
    return pd.DataFrame(rows, columns="head label norm spans share low high overall lift".split())


def profile(found: Contributions, norm: str, corpus: str) -> dict:
    """What a page shows beside a head: how often it leads each label, as counts. {'corpus', 'norm', 'spans', 'labels', 'led'
    [H][L], 'all' [L]}, the most frequent labels first."""
    led, _ = _led(found, norm, 1, 0)
    counts, names = led.sum(0).astype(int), _labels(found)  # [L, H]
    order = np.argsort(-counts.sum(1), kind="stable")
    return {
        "corpus": corpus,
        "norm": norm,
        "spans": int(counts.sum()),
        "labels": [names[k] for k in order],
        "led": counts[order].T.tolist(),
        "all": counts[order].sum(1).tolist(),
    }


def chosen(found: Contributions, labels: Sequence[str] | None) -> list[str]:
    """The labels asked for, or those of at least LEAST spans, the most frequent first. Raises LalkitError for one that no span
    has, and where there is none."""
    counts = found.spans["label"].value_counts()
    if labels is None:
        labels = [name for name in counts.index if counts[name] >= LEAST] or list(counts.index)
    unknown = [name for name in labels if name not in counts]
    if unknown or not len(labels):
        raise LalkitError(
            f"no span is labelled {', '.join(map(repr, unknown)) or 'as asked'}",
            remedy=f"Labels here: {', '.join(counts.index[:20])}.",
        )
    return list(labels)


def known_heads(found: Contributions, heads: Sequence[int] | None) -> list[int]:
    """Raises LalkitError for a head that there is not."""
    heads = range(found.heads) if heads is None else heads
    for head in heads:
        if not 0 <= head < found.heads:
            raise LalkitError(f"there is no label head {head}", remedy=f"They are numbered 0 to {found.heads - 1}.")
    return list(heads)


def _labels(found: Contributions) -> list[str]:
    return sorted(found.spans["label"].unique())


def _led(found: Contributions, norm: str, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """([sentences, labels, heads]: how many spans of the label the head leads; [rounds, sentences]: resampled weights)."""
    sentence, weights = _resampled(found, rounds, seed)
    names = _labels(found)
    index = found.spans["label"].map({name: k for k, name in enumerate(names)}).to_numpy()
    led = np.zeros((weights.shape[1], len(names), found.heads), dtype=np.float32)
    np.add.at(led, (sentence, index, found.top(norm)), 1)
    return led, weights


def _resampled(found: Contributions, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(the sentence of every span, numbered without gaps; how often each sentence is drawn in every round)."""
    _, sentence = np.unique(found.spans["sentence"].to_numpy(), return_inverse=True)
    count = int(sentence.max()) + 1
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=rounds)
    return sentence, draws.astype(np.float32)


def _per_sentence(sentence: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, sentence, values)
    return sums


def interval(resampled: np.ndarray) -> np.ndarray:
    """[rounds, ...] -> [2, ...]: where 95% of the rounds lie, those left out in which there was nothing to divide by (nan if
    there never was)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return np.nanpercentile(resampled, INTERVAL, axis=0)


def _quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Of nothing: missing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


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
