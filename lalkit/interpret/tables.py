"""Hold contributions of label heads to spans; count which head leads which label (Mrini et al. 2020, section 4.5, figure 8).

A head *leads* a span if its contribution to the span is the greatest of all heads. A large share alone proves nothing: a head
that leads most of *all* spans also leads most NPs. So every share stands beside the head's share among all spans; their
quotient is the *lift*. The intervals come from a bootstrap over sentences, because the spans of a sentence belong together.

`agreement` compares two ways to measure a contribution. `matched_by_chance` compares the heads of two parsers.

`with_words` adds the words of each constituent and its head word to a table of constituents, so that a question such as "which
head leads an SBAR that begins with *that*?" is a filter of a table. The table then begins with

    sentence, id     the place of the sentence (from 0), and its id
    length           the number of words of the sentence
    start, end       the words of the constituent, as words[start:end]
    label, text      of the constituent
    depth            the number of larger constituents around it in the parse
    head_word        the word of the constituent whose own head word lies outside; None without dependencies
    tag, arc_label   of this head word
    gold             is it also in the given tree? <NA> if the sentence was given without a tree

A table with `position`, the number of a word from 1, has, too, word_tag, word_arc_label and word_head (its head word; None for
the root).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import random_table, rankdata

from lalkit.errors import LalkitError
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Sentence

Span = tuple[int, int, str]  # start, end, label
Heads = int | str | Iterable[int | str]  # one label head or several, by number; or by label, if each has one

# The ways to turn a head's part of a span into a number. `minmax` is the paper's norm; the paper's program then took a softmax
# of it, so that the largest share was always e times the least. Our `softmax` is of raw.
NORMS = {
    "raw": "the sum over the head's slice of the span vector",
    "minmax": "raw, from 0 for the least head of the span to 1 for the greatest (the paper's)",
    "softmax": "the softmax of raw over heads",
    "share": "the absolute value of raw, over the sum of these",
    "exact": "what the score of the span's label loses without the head",
}
Given = Sequence[Sentence | None]
ROUNDS = 1000
INTERVAL = (2.5, 97.5)  # percent
LEAST = 20  # A label with fewer spans is in a table only if the user names it.
PLACE = ["sentence", "start", "end"]
FIRST = "sentence id length start end label depth text head_word tag arc_label gold".split()


def normalise(raw: np.ndarray, exact: np.ndarray | None, norm: str) -> np.ndarray:
    """Return the contributions [m, H] by a norm, from raw and exact contributions of m spans and H heads.

    Raises LalkitError for an unknown norm, and for `exact` if exact contributions were not computed.
    """
    if norm not in NORMS:
        raise LalkitError(f"there is no norm {norm!r}", remedy=f"The norms are {', '.join(NORMS)}.")
    if norm == "exact":
        if exact is None:
            remedy = "With label attention inside the span, leave the norm out."
            raise LalkitError("there are no exact contributions here", remedy=remedy)
        return exact
    if norm == "minmax":
        low, high = raw.min(-1, keepdims=True), raw.max(-1, keepdims=True)
        return (raw - low) / np.where(high > low, high - low, 1.0)
    if norm in ("softmax", "share"):
        sizes = np.abs(raw) if norm == "share" else np.exp(raw - raw.max(-1, keepdims=True))
        whole = sizes.sum(-1, keepdims=True)
        return sizes / np.where(whole > 0, whole, 1.0)
    return raw


@dataclass(frozen=True)
class Contributions:
    """Hold the contributions of H heads to m spans.

    spans: a table with a row for each span: sentence (its place), id, start, end, label, parsed (is it in the parse?), gold
    (is it in the gold tree? missing if there is none). raw, exact: [m, H], in the order of these rows.
    """

    spans: pd.DataFrame
    raw: np.ndarray
    exact: np.ndarray | None

    @property
    def heads(self) -> int:
        return self.raw.shape[1]

    @property
    def norm(self) -> str:
        """The usual norm: exact, if there are exact contributions."""
        return "raw" if self.exact is None else "exact"

    def by(self, norm: str) -> np.ndarray:
        """Return the contributions by a norm: [m, H]."""
        return normalise(self.raw, self.exact, norm)

    def top(self, norm: str) -> np.ndarray:
        """Return the head with the greatest contribution to each span: [m]. Of equal heads it is the first."""
        return self.by(norm).argmax(1)

    def labelled(self, label: str) -> np.ndarray:
        """Return which spans have this label: [m], bool."""
        return (self.spans["label"] == label).to_numpy()

    @cached_property
    def parsed(self) -> Contributions:
        """The spans of the parse only."""
        return self.where(self.spans["parsed"].to_numpy())

    def where(self, rows: np.ndarray) -> Contributions:
        """Return the contributions to some of the spans. rows: a mask [m], or the numbers of rows."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        exact = None if self.exact is None else self.exact[rows]
        return Contributions(self.spans.iloc[rows].reset_index(drop=True), self.raw[rows], exact)

    def table(self, norm: str) -> pd.DataFrame:
        """Return a row for each span and head: the columns of the span, head, norm, value."""
        spans = self.spans.loc[self.spans.index.repeat(self.heads)].reset_index(drop=True)
        heads = np.tile(np.arange(self.heads), len(self.spans))
        return spans.assign(head=heads, norm=norm, value=self.by(norm).ravel())


def top_shares(contributions: Contributions, norm: str, labels: Sequence[str] | None = None) -> pd.DataFrame:
    """Return, for each label, which heads lead its spans.

    Args: norm: one of `NORMS`. labels: None: those with 20 spans or more (or all), the most frequent first.
    Returns: label, head, norm, spans, led (how many of these spans the head leads), share, low, high (percent), overall (the
        percent of all spans that the head leads), lift, lift_low, lift_high. A head that leads no span of the label is left
        out. The first row of a label is its top head.
    """
    names, led, weights = _led(contributions, norm)
    tables = []
    for label in chosen(contributions, labels):
        counts = led[:, names.index(label)]
        columns = {"label": label, "head": np.arange(contributions.heads), "norm": norm, "spans": int(counts.sum())}
        tables.append(_shares(columns | {"led": counts.sum(0).astype(int)}, counts, led.sum(1), weights))
    return pd.concat(tables, ignore_index=True)


def profile(contributions: Contributions, norm: str, corpus: str) -> dict:
    """Count how often each head leads each label, for the page to explore and for explanations in words.

    Returns: {'corpus', 'norm', 'spans', 'labels', 'led' [heads][labels], 'all' [labels]}, the most frequent labels first.
    """
    names, led, _ = _led(contributions, norm)
    counts = led.sum(0).astype(int)  # [labels, heads]
    order = np.argsort(-counts.sum(1), kind="stable")
    return {
        "corpus": corpus, "norm": norm, "spans": int(counts.sum()), "labels": [names[k] for k in order],
        "led": counts[order].T.tolist(), "all": counts[order].sum(1).tolist(),
    }  # fmt: skip


def likeness(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Compare two sets of contributions to the same spans, [m, H] each.

    Returns: the percent of spans with the same top head, and the mean Spearman correlation of contributions over heads. A span
        has no correlation if all its heads are equal on one side; the mean is nan if no span has one.
    """
    ranks = [pd.DataFrame(rankdata(values, axis=1)) for values in (first, second)]
    same = 100 * (first.argmax(1) == second.argmax(1)).mean()
    return same, ranks[0].corrwith(ranks[1], axis=1).mean()


def agreement(
    contributions: Contributions, norms: Sequence[str] = ("raw", "share"), labels: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compare how a norm ranks the heads of a span with how the exact effect ranks them.

    The norms minmax and softmax rank as raw does. Raises LalkitError for the other layer, which has no exact effects.

    Args: norms: of `NORMS`. labels: None: those with 20 spans or more (or all), the most frequent first.
    Returns: label, norm, spans, same_top, rho (see `likeness`).
    """
    rows = []
    for norm in norms:
        for label in chosen(contributions, labels):
            spans = contributions.where(contributions.labelled(label) & np.isfinite(contributions.by("exact")).all(1))
            rows.append((label, norm, len(spans.spans), *likeness(spans.by(norm), spans.exact)))
    return pd.DataFrame(rows, columns=["label", "norm", "spans", "same_top", "rho"])


def matched_by_chance(first: pd.DataFrame, second: pd.DataFrame, rounds: int = ROUNDS) -> pd.Series:
    """Compare the number of labels whose top heads are paired with the number by chance.

    The numbers of heads have a meaning within one trained parser only. So the heads of both parsers are paired first. A head's
    profile is, for each label, the share of the label's spans that the head leads, and the pairs have the greatest sum of
    products of profiles (Hungarian algorithm), so that heads that lead many spans find a pair first. A label is counted if the
    pair of its top head in the first parser is its top head in the second. By chance: the spans of the second parser exchange
    their labels at random, so that its heads stand for no label; the heads are paired and the labels are counted again.

    Args: the tables of `top_shares` of both parsers, by one norm.
    Returns: labels (that both tables have), same (the number that is counted), by_chance (the mean random number), low and high
        (95% of the random numbers lie between), p (the share of random numbers, the true one among them, that are as large as
        the true one).
    """
    a, b = (table.pivot(index="head", columns="label", values="led").fillna(0).astype(int) for table in (first, second))
    labels = a.columns.intersection(b.columns)
    a, b = a[labels].to_numpy(), b[labels].to_numpy()
    exchanged = random_table(b.sum(1), b.sum(0), seed=0).rvs(rounds).astype(int)
    same, random = _same(a, b), np.array([_same(a, counts) for counts in exchanged])
    p = (1 + (random >= same).sum()) / (1 + rounds)
    numbers = (len(labels), same, random.mean(), *np.percentile(random, INTERVAL), p)
    return pd.Series(numbers, "labels same by_chance low high p".split(), dtype=float)


def _same(a: np.ndarray, b: np.ndarray) -> int:
    """Return for how many labels the top heads are a pair. a, b: the spans of a label that a head leads, [heads, labels]."""
    heads, others = linear_sum_assignment(-(a / a.sum(0)) @ (b / b.sum(0)).T)
    pairs = dict(zip(heads, others))
    return sum(pairs.get(head) == other for head, other in zip(a.argmax(0), b.argmax(0)))


class SelfAttention(NamedTuple):
    """The attention between words of every self-attention head, in each sentence alone.

    arrays: of each sentence [layers, heads, T, T], from a row to a column, over START, the words and STOP. The attention *to* the
    sub-words of a word is summed, and that *from* them is averaged (Clark et al. 2019), so each row adds up to 1.
    """

    parses: Sequence[Sentence]
    given: Given
    arrays: Sequence[np.ndarray]

    @property
    def table(self) -> pd.DataFrame:
        """The columns of `Explanation.attention`, and layer. start, end and text are of the word that attends; label is None."""
        tables, names = [], ["layer", "head", "start", "position"]
        for place, (parse, array) in enumerate(zip(self.parses, self.arrays)):
            attention = array[:, :, 1:-1]
            table = pd.DataFrame(np.ndindex(attention.shape), columns=names).assign(sentence=place, label=None)
            word = np.array(["<START>", *parse.words, "<STOP>"], object)[table["position"]]
            tables.append(table.assign(end=table["start"] + 1, word=word, attention=attention.ravel()))
        return with_words(pd.concat(tables, ignore_index=True), self.parses, self.given)


def with_words(table: pd.DataFrame, sentences: Sequence[Sentence], given: Given = ()) -> pd.DataFrame:
    """Add the columns of words to a table with sentence, start, end and label, a row or many for each constituent.

    Args:
        table: with `position`, from 1, it also gets the columns of this word.
        sentences: the parses, by their places.
        given: the same sentences as they were given, perhaps with gold trees.
    """
    rows, of_words = [], words(sentences)
    for place, start, end, label in table[[*PLACE, "label"]].drop_duplicates().itertuples(index=False):
        parse, tree = sentences[place], given[place].constituents if given and given[place] else None
        right = None if tree is None or label is None else (start, end, label) in tree
        head = external_head(parse.heads, start, end) if parse.heads else None
        text, number = " ".join(parse.words[start:end]), None if head is None else head + 1
        rows.append((place, start, end, label, parse.id, len(parse), _depth(parse, start, end), text, number, right))
    columns = [*PLACE, "label", "id", "length", "depth", "text", "number", "gold"]
    spans = pd.DataFrame(rows, columns=columns).astype({"depth": "Int64", "number": "Int64", "gold": "boolean"})
    of_head = of_words[["sentence", "position", "word", "tag", "arc_label"]]
    of_head = of_head.rename(columns={"position": "number", "word": "head_word"})
    spans = spans.merge(of_head, on=["sentence", "number"], how="left").drop(columns="number")
    table = table.merge(spans, on=[*PLACE, "label"], how="left")
    if "position" in table:
        names = {"tag": "word_tag", "arc_label": "word_arc_label", "head_word": "word_head"}
        of_words = of_words[["sentence", "position", *names]].rename(columns=names)
        of_words = of_words.astype({"position": table["position"].dtype})
        table = table.merge(of_words, on=["sentence", "position"], how="left")
    return table[[*FIRST, *(name for name in table.columns if name not in FIRST)]]


def words(sentences: Sequence[Sentence]) -> pd.DataFrame:
    """Return a row for each word, with its layers in the parse.

    Returns: sentence, id, length, position (from 1), word, tag, head (the position of its head word, 0 for the root), head_word
        (None for the root), arc_label, depth (the number of larger constituents around it).
    """
    rows = []
    for place, s in enumerate(sentences):
        blank = (None,) * len(s)
        layers = zip(s.words, s.tags or blank, s.heads or blank, s.arc_labels or blank)
        for i, (word, tag, head, arc_label) in enumerate(layers):
            head_word = s.words[head - 1] if head else None
            rows.append((place, s.id, len(s), i + 1, word, tag, head, head_word, arc_label, _depth(s, i, i + 1)))
    columns = "sentence id length position word tag head head_word arc_label depth".split()
    return pd.DataFrame(rows, columns=columns).astype({"head": "Int64", "depth": "Int64"})


def _depth(sentence: Sentence, start: int, end: int) -> int | None:
    """Return how many constituents have all words of a span, and more words; None without constituents."""
    if sentence.constituents is None:
        return None
    return sum(c.start <= start and end <= c.end and (c.start, c.end) != (start, end) for c in sentence.constituents)


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


def _led(contributions: Contributions, norm: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the labels; [sentences, labels, heads], how many spans of the label the head leads; [rounds, sentences], how often
    each sentence is drawn."""
    _, sentence = np.unique(contributions.spans["sentence"].to_numpy(), return_inverse=True)
    count = int(sentence.max()) + 1
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=ROUNDS)  # always the same
    names, index = np.unique(contributions.spans["label"].to_numpy(str), return_inverse=True)
    led = np.zeros((count, len(names), contributions.heads), dtype=np.float32)
    known = np.isfinite(contributions.by(norm)).all(1)  # no head leads a span whose label the parser does not know
    np.add.at(led, (sentence[known], index[known], contributions.top(norm)[known]), 1)
    return names.tolist(), led, draws.astype(np.float32)


def _shares(columns: dict, counts: np.ndarray, everything: np.ndarray, weights: np.ndarray) -> pd.DataFrame:
    """Add to columns of k rows: share, low, high, overall (percent), lift, lift_low, lift_high. The largest share comes first.

    counts, everything: the spans of one group, and of all, in each sentence: [sentences, k]. weights: [rounds, sentences].
    """
    share, overall = (100 * _quotient(part.sum(0, dtype=float), part.sum(dtype=float)) for part in (counts, everything))
    drawn, of_all = (100 * _quotient(s := weights @ part, s.sum(1, keepdims=True)) for part in (counts, everything))
    (low, high), (lift_low, lift_high) = interval(drawn), interval(_quotient(drawn, of_all))
    shares = {"share": share, "low": low, "high": high, "overall": overall, "lift": _quotient(share, overall)}
    table = pd.DataFrame({**columns, **shares, "lift_low": lift_low, "lift_high": lift_high})
    return table[table["share"] > 0].sort_values("share", ascending=False, kind="stable")


def _quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; nan where whole is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
