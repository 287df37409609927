"""The explanation of parses by their label attention: one table of the parts that add up to the score of each constituent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from lalkit.errors import LalkitError, checked, whole_number
from lalkit.interpret.tables import PLACE, Contributions, Span, with_words
from lalkit.network.model import Prediction
from lalkit.treebank.tree import Sentence

# The parts of scores: name, kind, and words for it. {} is the number of a head, or a word.
PARTS = [
    ("head", "head", "label head {}"),
    ("no head", "rest", "no head"),
    ("word", "word", "“{}”"),
    ("first", "boundary", "its first word"),
    ("last", "boundary", "its last word"),
    ("boundary", "boundary", "its boundaries"),
    ("constant", "rest", "a constant"),
]
HEAD, NO_HEAD, WORD, FIRST, LAST, BOUNDARY, CONSTANT = range(len(PARTS))
LEFT_OUT = ""  # the role of a span that is not asked for
FIRST_LABEL = 2  # of constituents: before it stand the empty label and <H>
NUMBERS = ("value", "effect", "then_score", "raw", "attention", "evidence")  # the columns of numbers


class Parts(NamedTuple):
    """The parts of the scores of m spans, in the order of the spans: arrays with one item for each part.

    span: its place among the spans. part: its place in `PARTS`. number: of a head, from 0, or of a word, from 1. then: the
    number of a label. The other columns are those of `Explanation.table`. None: a column that this layer does not have.
    """

    span: np.ndarray
    part: np.ndarray
    number: np.ndarray
    value: np.ndarray
    effect: np.ndarray
    then: np.ndarray
    then_score: np.ndarray
    raw: np.ndarray | None = None
    attention: np.ndarray | None = None
    evidence: np.ndarray | None = None

    @classmethod
    def flat(cls, part: Tensor, number: Tensor, there: Tensor, columns: dict[str, Tensor]) -> Parts:
        """Make the parts of m spans from arrays with a row for each span.

        part [W]. number [m, W]. there: which of the W parts each span has, [m, W]. columns: [m, w], for the first w parts.
        """

        def column(x: Tensor) -> np.ndarray:
            missing = number.shape[1] - x.shape[1]
            return F.pad(x, (0, missing), value=torch.nan if x.is_floating_point() else -1)[there].cpu().numpy()

        span = torch.arange(len(number), device=number.device)[:, None]
        arrays = {"span": span.expand_as(number), "part": part.expand_as(number), "number": number}
        return cls(**{name: column(x) for name, x in (arrays | columns).items()})

    def where(self, chosen: np.ndarray | slice) -> Parts:
        return Parts(*(column if column is None else column[chosen] for column in self))


@dataclass(frozen=True)
class Explained:
    """One sentence: its spans with their roles and scores [m], and their parts.

    sums: [m, H], what each head passes on to each span. attention: [H, n + 2], over START, the words and STOP, if a head has one
    attention for the whole sentence.
    """

    prediction: Prediction
    spans: Sequence[Span]
    roles: Sequence[str]
    scores: np.ndarray
    parts: Parts
    sums: np.ndarray
    attention: np.ndarray | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return self.prediction.sentence.words

    @cached_property
    def places(self) -> dict[Span, int]:
        """The place of each span among the spans."""
        return {span: place for place, span in enumerate(self.spans)}

    @property
    def positions(self) -> np.ndarray:
        """The word of each part, from 1; 0 for a part that is not of a word."""
        return np.where(np.isin(self.parts.part, [WORD, FIRST, LAST]), self.parts.number, 0)

    def constituents(self) -> list[Span]:
        """Return the constituents of the parse; of one label, if others are left out."""
        return [span for span, role in zip(self.spans, self.roles) if role == "parse"]

    def second(self, place: int) -> int | None:
        """Return the place of the span with the label that comes second over the same words."""
        same = (k for k, span in enumerate(self.spans) if span[:2] == self.spans[place][:2])
        return next((k for k in same if self.roles[k] == "second"), None)

    def of(self, place: int) -> Parts:
        """Return the parts of one span."""
        return self.parts.where(slice(*np.searchsorted(self.parts.span, [place, place + 1])))

    def difference(self, place: int, label: str) -> np.ndarray:
        """Return the values of the parts of a span, less those of another label over the same words."""
        return self.of(place).value - self.of(self.places[(*self.spans[place][:2], label)]).value

    def names(self, parts: Parts) -> list[str]:
        """Return the names of parts."""
        pairs = zip(parts.part, parts.number)
        return [PARTS[part][2].format(self.words[k - 1] if part == WORD else k) for part, k in pairs]

    def rows(self) -> Iterator[tuple]:
        """Yield start, end, label, role and score of each span."""
        for span, role, score in zip(self.spans, self.roles, self.scores.tolist()):
            yield *span, role, score


@checked
@dataclass(frozen=True, repr=False)
class Explanation:
    """Parses, and for each constituent the parts that add up to its score. `print` shows the words, a notebook the table.

    >>> print(str(parser.explain("It rained.", "NP"))[:44])
    NP “It”, head word “It”, score 2.54: most fr
    """

    sentences: Sequence[Explained]
    given: Sequence[Sentence | None]  # as they were given, perhaps with gold trees
    labels: Sequence[str]  # of the parser
    head_labels: Sequence[str]  # the labels of heads 0, 1, ...; empty if the heads have no fixed labels
    mean: np.ndarray | None = None  # [H], of what each head passes on, over all spans of the sentences
    against: str | None = None  # the label with which all constituents are compared
    profile: dict | None = None  # how often each head leads each label in a corpus

    @property
    def predictions(self) -> list[Prediction]:
        """The parses.

        >>> parser.explain("It rained.").predictions[0].sentence.words
        ('It', 'rained', '.')
        """
        return [one.prediction for one in self.sentences]

    @property
    def parses(self) -> list[Sentence]:
        """The sentences of the parses.

        >>> parser.explain("It rained.").parses[0].heads
        (2, 0, 2)
        """
        return [one.prediction.sentence for one in self.sentences]

    def of(self, label: str | None) -> Explanation:
        """Return the constituents of one label. Raises LalkitError if there are none.

        >>> set(parser.explain(treebank).of("PP").table["label"])
        {'PP'}
        """
        if label is None:
            return self
        if not any(span[2] == label for one in self.sentences for span in one.constituents()):
            there = ", ".join(dict.fromkeys(span[2] for one in self.sentences for span in one.constituents()))
            raise LalkitError(f"no constituent here is labelled {label!r}", remedy=f"Labels here: {there}.")
        sentences = []
        for one in self.sentences:
            places = {span[:2] for span in one.constituents() if span[2] == label}
            kept = [span[2] == label or span[:2] in places for span in one.spans]
            sentences.append(replace(one, roles=[role if keep else LEFT_OUT for role, keep in zip(one.roles, kept)]))
        return replace(self, sentences=sentences)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The parts of the score of each constituent, a row for each.

        >>> table = parser.explain("It rained.").table
        >>> table.groupby("label")["value"].sum().map("{:.2f}".format).to_dict()  # the scores
        {'NP': '2.54', 'S': '-0.39', 'VP': '2.27'}

        First come the columns of `tables.with_words`, then

            role                   parse; second (the label that comes second over these words); asked (the label `against`); gold
            kind, part             head, word, boundary or rest; its name
            head, position, word   of the part; with one head for each label, head is that of the constituent's own label
            value, score           what the part adds to the score, and the score: the sum of the values
            effect                 of heads and words: what the score loses without the part
            then, then_score       the label that comes first without the part, and its score
            raw                    of heads: the sum over the slice of the head
            attention, evidence    of words
        """
        everything = zip(*(one.parts for one in self.sentences))
        parts = Parts(*(None if columns[0] is None else np.concatenate(columns) for columns in everything))
        spans = pd.DataFrame(
            [(k, *row) for k, one in enumerate(self.sentences) for row in one.rows()],
            columns=[*PLACE, "label", "role", "score"],
        )
        before = np.cumsum([0, *(len(one.spans) for one in self.sentences)])[:-1]  # spans of the sentences before
        table = spans.iloc[parts.span + np.repeat(before, [len(one.parts.span) for one in self.sentences])]
        table = table.reset_index(drop=True).assign(kind=np.array(PARTS, object)[parts.part, 1])
        table["part"] = [name for one in self.sentences for name in one.names(one.parts)]
        head, position = np.where(parts.part == HEAD, parts.number, -1), [one.positions for one in self.sentences]
        words = [np.array([None, *one.words], object)[place] for one, place in zip(self.sentences, position)]
        table["word"], position = np.concatenate(words), np.concatenate(position)
        if self.head_labels:
            numbers = {label: number for number, label in enumerate(self.head_labels)}
            head = table["label"].map(numbers).fillna(-1).to_numpy(int)
        for name, numbers, known in (("head", head, head >= 0), ("position", position, position > 0)):
            table[name] = pd.Series(numbers, dtype="Int64").where(known)
        table["then"] = np.array([*self.labels, None], object)[parts.then]
        for name in NUMBERS:
            table[name] = np.nan if getattr(parts, name) is None else getattr(parts, name)
        return with_words(table[table["role"] != LEFT_OUT].reset_index(drop=True), self.parses, self.given)

    def heads(self, mean: np.ndarray | None = None) -> Contributions:
        """Return the contributions of all heads to the constituents of the parse, and to gold constituents if there are any.

        >>> parser.explain("It rained.").heads().exact.shape
        (3, 64)

        With label attention inside the span it is the sum that the head passes on, above its mean over all spans of the
        sentences (or above `mean`, [H]). Only the sum of the own label's head is in a score.
        """
        rows, raw, effects = [], [], []
        for number, one in enumerate(self.sentences):
            tree = self.given[number].constituents if self.given[number] else None
            places = [place for place, role in enumerate(one.roles) if role in ("parse", "gold")]
            for span in (one.spans[place] for place in places):
                right = None if tree is None else span in tree
                rows.append((number, one.prediction.sentence.id, *span, one.roles[one.places[span]] == "parse", right))
            raw.append(one.sums[places])
            if not self.head_labels:
                effects.append(one.parts.effect.reshape(len(one.spans), one.sums.shape[1] + 1)[places, :-1])
        columns = ["sentence", "id", "start", "end", "label", "parsed", "gold"]
        spans = pd.DataFrame(rows, columns=columns).astype({"gold": "boolean", "parsed": "bool"})
        if effects:
            return Contributions(spans, np.concatenate(raw), np.concatenate(effects))
        return Contributions(spans, np.concatenate(raw) - np.asarray(self.mean if mean is None else mean), None)

    def top(self, count: int = 1, norm: str | None = None) -> pd.DataFrame:
        """Return the heads that contribute most to each constituent: rank (from 1), head, head_label, norm, value.

        >>> parser.explain("It rained.").top()[["label", "head"]].values.tolist()
        [['S', 1], ['NP', 62], ['VP', 5]]

        norm: one of `NORMS`; None: the exact effect, or raw with label attention inside the span. See `heads`.
        """
        found = self.heads()
        values, norm = found.by(norm or found.norm), norm or found.norm
        heads = np.argsort(-values, axis=1, kind="stable")[:, : whole_number("count", count, 1)]
        table = (
            found.spans[[*PLACE, "label"]].loc[np.repeat(np.arange(len(heads)), heads.shape[1])].reset_index(drop=True)
        )
        table["rank"], table["head"] = np.tile(np.arange(heads.shape[1]) + 1, len(heads)), heads.ravel()
        if self.head_labels:
            table["head_label"] = [self.head_labels[head] for head in heads.ravel()]
        table["norm"], table["value"] = norm, np.take_along_axis(values, heads, 1).ravel()
        return with_words(table, self.parses, self.given)

    def attention(self, label: str | None = None) -> pd.DataFrame:
        """Return the words to which label heads attend: head, position (from 1), word, attention.

        >>> parser.explain("It rained.").attention().groupby("head")["attention"].sum().round(3).unique().tolist()
        [1.0]

        Paper's layer: a head has one attention for the whole sentence. Without a label: a row for each head and word, also for
        START (position 0) and STOP. With a label: for each constituent of this label, the rows of its words.
        Label attention inside the span: for each constituent, the attention of its label's head, which adds up to 1.
        """
        columns = [*PLACE, "label", "head", "position", "word", "attention"]
        explained = self.of(label)
        if self.head_labels:
            table = explained.table[(explained.table["kind"] == "word") & (explained.table["role"] == "parse")]
            return with_words(table[columns].reset_index(drop=True), self.parses, self.given)
        parts = []
        for number, one in enumerate(explained.sentences):
            words = ["<START>", *one.words, "<STOP>"]
            spans = one.constituents() if label else [(0, len(one.words), None)]
            for start, end, name in spans:
                positions = np.arange(start + 1, end + 1) if label else np.arange(len(words))
                attention = one.attention[:, positions]
                table = pd.DataFrame(np.ndindex(attention.shape), columns=["head", "position"]).assign(
                    sentence=number, start=start, end=end, label=name, attention=attention.ravel()
                )
                table["position"] = positions[table["position"]]
                parts.append(table.assign(word=np.array(words, object)[table["position"]]))
        return with_words(pd.concat(parts, ignore_index=True)[columns], self.parses, self.given)

    def contrast(self, against: str | None = None) -> pd.DataFrame:
        """Compare the label of each constituent with another label: of_label, of_against, value (their difference).

        >>> table = parser.explain("It rained.", against="NP").contrast()
        >>> table.groupby("label")["value"].sum().map("{:.1f}".format).to_dict()  # the differences of the scores
        {'S': '2.9', 'VP': '7.3'}

        against: None: the label that `explain` was given. The values of a constituent add up to the difference of both scores.
        Raises LalkitError if the parts of this label were not computed.
        """
        against, table = against or self.against, self.table
        keys = [*PLACE, "part", "position"]
        mine = table[(table["role"] == "parse") & (table["label"] != against)]
        if not len(mine):
            raise LalkitError(f"there is no constituent that is not {against}", remedy="Compare with another label.")
        other = table.loc[table["label"] == against, [*keys, "value"]].rename(columns={"value": "of_against"})
        mine = mine.drop(columns=["role", "score", "effect", "then", "then_score", "raw", "attention", "evidence"])
        both = mine.rename(columns={"value": "of_label"}).merge(other, on=keys, how="left").assign(against=against)
        if both["of_against"].isna().any():
            raise LalkitError(
                f"the label {against!r} was not explained", remedy=f"Call explain(..., against={against!r})."
            )
        return both.assign(value=both["of_label"] - both["of_against"])

    def text(self, top: int = 3) -> str:
        """Say in words where the score of each constituent comes from. top: how many parts to name.

        >>> parser.explain("It rained.").text(top=1).count("most from")
        3
        """
        from lalkit.interpret import prose

        return prose.text(self, whole_number("top", top, 1))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        spans = sum(len(one.constituents()) for one in self.sentences)
        return f"Explanation(sentences: {len(self.sentences)}, constituents: {spans})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
