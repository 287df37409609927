"""Count which label head leads which label over a corpus, with intervals (Mrini et al. 2020, section 4.5, figure 8).

A head *leads* a span if its contribution to the span is the greatest of all heads. A large share alone proves nothing: a head
that leads most of *all* spans also leads most NPs. So every share stands beside the head's share among all spans; their
quotient is the *lift*. The intervals come from a bootstrap over sentences, because the spans of a sentence belong together.

`agreement` compares two ways to measure a contribution. `match` and `survival` compare the heads of two parsers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from lalkit.errors import LalkitError, whole_number
from lalkit.interpret.contributions import Contributions

ROUNDS = 1000
INTERVAL = (2.5, 97.5)  # percent
LEAST = 20  # A label with fewer spans stands in a table only if it is named.


def averages(contributions: Contributions, norm: str, labels: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the mean contribution of every head to the spans of each label (figure 8).

    Args: labels as in `chosen`.
    Returns: a row for each label and head: label, head, norm, spans, mean, low, high.
    """
    values = contributions.by(norm)
    sentence, weights = _resampled(contributions)
    tables = []
    for label in chosen(contributions, labels):
        mask = contributions.labelled(label)
        sums = _per_sentence(sentence[mask], values[mask], weights.shape[1])
        counts = _per_sentence(sentence[mask], np.ones((mask.sum(), 1)), weights.shape[1])
        low, high = interval(_quotient(weights @ sums, weights @ counts))
        heads = np.arange(contributions.heads)
        mean = [values[mask, head].mean() for head in heads]
        columns = {"label": label, "head": heads, "norm": norm, "spans": mask.sum(), "mean": mean}
        tables.append(pd.DataFrame({**columns, "low": low, "high": high}))
    return pd.concat(tables, ignore_index=True)


def top_shares(contributions: Contributions, norm: str, labels: Sequence[str] | None = None) -> pd.DataFrame:
    """Return, for each label, which heads lead its spans.

    Args: labels as in `chosen`.
    Returns: label, head, norm, spans, led (how many of these spans the head leads), share, low, high (percent), overall (the
        percent of all spans that the head leads), lift, lift_low, lift_high. A head that leads no span of the label is left
        out. The first row of a label is its top head.
    """
    names, led, weights = _led(contributions, norm)
    everything = led.sum(1)  # [sentences, heads]
    overall = 100 * everything.sum(0) / everything.sum()
    overall_rounds = _shares(everything, weights)
    tables = []
    for label in chosen(contributions, labels):
        counts = led[:, names.index(label)]
        shares = _shares(counts, weights)
        lift_low, lift_high = interval(_quotient(shares, overall_rounds))
        columns = {"label": label, "head": np.arange(contributions.heads), "norm": norm, "spans": int(counts.sum())}
        columns |= {"led": counts.sum(0).astype(int)} | _share_columns(counts, shares, overall)
        tables.append(_largest_first(columns | {"lift_low": lift_low, "lift_high": lift_high}))
    return pd.concat(tables, ignore_index=True)


def led_labels(contributions: Contributions, norm: str, heads: Sequence[int] | None = None) -> pd.DataFrame:
    """Return, for each head (None: for all), which labels the spans have that it leads. This is the reverse of `top_shares`.

    Returns: head, label, norm, spans (that the head leads), share, low, high (percent), overall (the percent of all spans
        that have this label), lift. The largest share of a head comes first.
    """
    names, led, weights = _led(contributions, norm)
    overall = 100 * led.sum((0, 2)) / led.sum()
    tables = []
    last = contributions.heads - 1
    for head in range(last + 1) if heads is None else [whole_number("head", head, 0, last) for head in heads]:
        counts = led[:, :, head]
        columns = {"head": head, "label": names, "norm": norm, "spans": int(counts.sum())}
        tables.append(_largest_first(columns | _share_columns(counts, _shares(counts, weights), overall)))
    return pd.concat(tables, ignore_index=True)


def profile(contributions: Contributions, norm: str, corpus: str) -> dict:
    """Count how often each head leads each label, for the page to explore and for explanations in words.

    Returns: {'corpus', 'norm', 'spans', 'labels', 'led' [heads][labels], 'all' [labels]}, the most frequent labels first.
    """
    names, led, _ = _led(contributions, norm, rounds=1)
    counts = led.sum(0).astype(int)  # [labels, heads]
    order = np.argsort(-counts.sum(1), kind="stable")
    return {
        "corpus": corpus, "norm": norm, "spans": int(counts.sum()), "labels": [names[k] for k in order],
        "led": counts[order].T.tolist(), "all": counts[order].sum(1).tolist(),
    }  # fmt: skip


def agreement(
    contributions: Contributions, norms: Sequence[str] = ("raw", "share"), labels: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compare how a norm ranks the heads of a span with how the exact effect ranks them.

    The norms minmax and softmax rank the heads as raw does.

    Args: labels as in `chosen`.
    Returns: label, norm, spans, rho (the mean over spans of Spearman's rank correlation over heads), low, high, same_top (the
        percent of spans with the same top head).
    """
    exact = rankdata(contributions.by("exact"), axis=1)
    sentence, weights = _resampled(contributions)
    rows = []
    for norm in norms:
        rho = correlation(rankdata(contributions.by(norm), axis=1), exact)
        same = contributions.top(norm) == contributions.top("exact")
        for label in chosen(contributions, labels):
            mask = contributions.labelled(label) & np.isfinite(rho)
            sums = _per_sentence(sentence[mask], np.stack([rho[mask], np.ones(mask.sum())], 1), weights.shape[1])
            rounds_sums = weights @ sums
            low, high = interval(_quotient(rounds_sums[:, 0], rounds_sums[:, 1]))
            rows.append((label, norm, int(mask.sum()), rho[mask].mean(), low, high, 100 * same[mask].mean()))
    return pd.DataFrame(rows, columns=["label", "norm", "spans", "rho", "low", "high", "same_top"])


def match(first: Contributions, second: Contributions, norm: str) -> pd.DataFrame:
    """Pair the heads of one parser with those of another, so that their label profiles are most alike.

    The numbers of heads have a meaning within one trained parser only. So heads of two parsers must be paired before they are
    compared. A head's profile is, for each label, the share of the label's spans that the head leads. The pairs have the
    greatest sum of cosines (Hungarian algorithm). The best of many pairs is alike by chance, too. So every second sentence
    decides the pairs, and the other sentences say how alike they are.

    Args: both parsers looked at the same sentences.
    Returns: head, other, similarity, by_chance (the mean similarity of the head to all heads of the other parser).
    Raises: LalkitError if no label is in both halves of the sentences, for both parsers.
    """
    (a, a_held), (b, b_held) = _halves(first), _halves(second)
    labels = sorted(set.intersection(*(set(part.spans["label"]) for part in (a, a_held, b, b_held))))
    if not labels:
        problem = "the two have no label in common in each half of the sentences"
        raise LalkitError(problem, remedy="Look at the same sentences with both, and at more of them.")
    heads, others = linear_sum_assignment(-_profiles(a, norm, labels) @ _profiles(b, norm, labels).T)
    similar = _profiles(a_held, norm, labels) @ _profiles(b_held, norm, labels).T
    columns = {"head": heads, "other": others, "similarity": similar[heads, others]}
    return pd.DataFrame({**columns, "by_chance": similar.mean(1)[heads]})


def survival(
    first: Contributions, second: Contributions, norm: str, labels: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return whether the top head of each label is found again in another parser.

    As in `match`, every second sentence decides the pairs and the top heads, and the shares are those of the other sentences.

    Args: labels as in `chosen`, of the first parser.
    Returns: label, norm, head (the top head in the first parser), share (percent of the label's spans that it leads), other
        (its pair; missing if the second parser has fewer heads and none is left), other_share, other_low, other_high,
        other_overall (percent of all spans that the pair leads: its share by chance), best (the label's top head in the second
        parser), best_share, same (is the pair this head?).
    """
    pairs = match(first, second, norm).set_index("head")["other"]
    halves = (*_halves(first), *_halves(second))
    rows = []
    for label in chosen(first, labels):
        if not all(part.labelled(label).any() for part in halves):
            continue
        a, a_held, b, b_held = (
            100 * np.bincount(part.top(norm)[part.labelled(label)], minlength=part.heads) / part.labelled(label).sum()
            for part in halves
        )
        head, best = int(a.argmax()), int(b.argmax())
        row = {"label": label, "norm": norm, "head": head, "share": a_held[head]}
        other = pairs.get(head)
        if other is not None:
            shares = top_shares(halves[3], norm, [label]).set_index("head")
            low, high = shares.loc[other, ["low", "high"]] if other in shares.index else (0.0, 0.0)
            row |= {"other": other, "other_share": b_held[other], "other_low": low, "other_high": high}
            row["other_overall"] = 100 * float((halves[3].top(norm) == other).mean())
        rows.append(row | {"best": best, "best_share": b_held[best], "same": best == other})
    columns = "label norm head share other other_share other_low other_high other_overall best best_share same"
    return pd.DataFrame(rows, columns=columns.split()).astype({"other": "Int64"})


def _halves(contributions: Contributions) -> tuple[Contributions, Contributions]:
    """Return the contributions in every second sentence, and those in the others."""
    second = contributions.spans["sentence"].to_numpy() % 2 == 1
    return contributions.where(~second), contributions.where(second)


def _profiles(contributions: Contributions, norm: str, labels: list[str]) -> np.ndarray:
    """[heads, labels], each row of length one (zero for a head that leads nothing)."""
    names, led, _ = _led(contributions, norm, rounds=1)
    counts = led.sum(0)[[names.index(name) for name in labels]]  # [labels, heads]
    shares = (counts / counts.sum(1, keepdims=True)).T
    return shares / np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), 1e-12)


def chosen(contributions: Contributions, labels: Sequence[str] | None) -> list[str]:
    """Return these labels; for None those with at least LEAST spans, the most frequent first.

    Raises LalkitError for a label that no span has, and if there is no label.
    """
    counts = contributions.spans["label"].value_counts()
    if labels is None:
        labels = [name for name in counts.index if counts[name] >= LEAST] or list(counts.index)
    unknown = [name for name in labels if name not in counts]
    if unknown or not len(labels):
        remedy = f"Labels here: {', '.join(counts.index[:20])}."
        raise LalkitError(f"no span is labelled {', '.join(map(repr, unknown)) or 'as asked'}", remedy=remedy)
    return list(labels)


def interval(resampled: np.ndarray) -> np.ndarray:
    """[rounds, ...] -> [2, ...]: the limits of the middle 95% of the rounds.

    A round without a value (nan) is left out. The limits are nan if less than 95% of the rounds have a value: without this rule,
    the lift of a head that leads one span would have a narrow interval.
    """
    enough = np.isfinite(resampled).mean(0) >= 0.95
    return np.where(enough, np.nanpercentile(np.where(enough, resampled, 0), INTERVAL, axis=0), np.nan)


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[m, k], [m, k] -> [m]: Pearson's correlation of the rows; nan if one of the two rows is constant."""
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    return _quotient((a * b).sum(1), np.sqrt((a**2).sum(1) * (b**2).sum(1)))


def _led(contributions: Contributions, norm: str, rounds: int = ROUNDS) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the labels; [sentences, labels, heads], how many spans of the label the head leads; the resampled weights."""
    sentence, weights = _resampled(contributions, rounds)
    names, index = np.unique(contributions.spans["label"].to_numpy(str), return_inverse=True)
    led = np.zeros((weights.shape[1], len(names), contributions.heads), dtype=np.float32)
    known = np.isfinite(contributions.by(norm)).all(1)  # no head leads a span whose label the parser does not know
    np.add.at(led, (sentence[known], index[known], contributions.top(norm)[known]), 1)
    return names.tolist(), led, weights


def _resampled(contributions: Contributions, rounds: int = ROUNDS) -> tuple[np.ndarray, np.ndarray]:
    """Return the sentence of every span, numbered without gaps, and how often each sentence is drawn: [rounds, sentences].

    The seed of the draws is always the same, so that a table can be made again.
    """
    _, sentence = np.unique(contributions.spans["sentence"].to_numpy(), return_inverse=True)
    count = int(sentence.max()) + 1
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=rounds)
    return sentence, draws.astype(np.float32)


def _per_sentence(sentence: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, sentence, values)
    return sums


def _shares(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Counts [sentences, k], weights [rounds, sentences] -> [rounds, k], the shares in each round."""
    sums = weights @ counts
    return _quotient(sums, sums.sum(1, keepdims=True))


def _quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; nan where whole is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _share_columns(counts: np.ndarray, shares: np.ndarray, overall: np.ndarray) -> dict[str, np.ndarray]:
    """Return the share of each column of counts [sentences, k] in percent, its interval, and its lift over `overall` [k].

    shares: those of each round, [rounds, k].
    """
    share, (low, high) = _quotient(100 * counts.sum(0), counts.sum()), 100 * interval(shares)
    return {"share": share, "low": low, "high": high, "overall": overall, "lift": _quotient(share, overall)}


def _largest_first(columns: dict) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    return table[table["share"] > 0].sort_values("share", ascending=False, kind="stable")
