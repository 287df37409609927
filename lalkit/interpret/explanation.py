"""The explanation of parses by their label attention: one table of parts that add up to scores; in words; as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from lalkit.errors import LalkitError, checked, whole_number
from lalkit.interpret.tables import NORMS, PLACE, Contributions, Span, normalise, with_words
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
LEFT_OUT = ""  # the role of a span that `Explanation.of` leaves out
FIRST_LABEL = 2  # the first label of constituents, after the empty label and <H>
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

    sums: [m, H], the sum that each head passes on to each span. attention: [H, n + 2], over START, the words and STOP, if a
    head has one attention for the whole sentence.
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
        """Return the constituents of the parse; after `Explanation.of`, only those of its label."""
        return [span for span, role in zip(self.spans, self.roles) if role == "parse"]

    def second(self, place: int) -> int | None:
        """Return the place of the span with the label that comes second over the same words."""
        same = (k for k, span in enumerate(self.spans) if span[:2] == self.spans[place][:2])
        return next((k for k in same if self.roles[k] == "second"), None)

    def of(self, place: int) -> Parts:
        """Return the parts of one span."""
        return self.parts.where(slice(*np.searchsorted(self.parts.span, [place, place + 1])))

    def difference(self, place: int, label: str) -> np.ndarray:
        """Return the values of the parts of a span minus the values for another label over the same words."""
        return self.of(place).value - self.of(self.places[(*self.spans[place][:2], label)]).value

    def names(self, parts: Parts) -> list[str]:
        """Return the names of parts."""
        pairs = zip(parts.part, parts.number)
        return [PARTS[part][2].format(self.words[k - 1] if part == WORD else k) for part, k in pairs]


@checked
@dataclass(frozen=True, repr=False)
class Explanation:
    """Parses, and for each constituent the parts that add up to its score. `print` shows the words, a notebook the table.

    >>> print(str(parser.explain("It rained.", "NP"))[:51])
    NP “It”, head word “It”, score 2.54: 64 label heads
    """

    sentences: Sequence[Explained]
    given: Sequence[Sentence | None]  # as they were given, perhaps with gold trees
    labels: Sequence[str]  # of the parser
    head_labels: Sequence[str]  # the labels of heads 0, 1, ...; empty if the heads have no fixed labels
    mean: np.ndarray | None = None  # [H], of the sums that each head passes on, over all spans of the sentences
    against: str | None = None  # the label with which all constituents are compared
    profile: dict | None = None  # how often each head leads each label in a corpus

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
        each = ((k, one, *row) for k, one in enumerate(self.sentences) for row in zip(one.spans, one.roles, one.scores))
        spans = pd.DataFrame(
            [(k, *span, role, float(score)) for k, _, span, role, score in each],
            columns=[*PLACE, "label", "role", "score"],
        )
        before = np.cumsum([0, *(len(one.spans) for one in self.sentences)])[:-1]  # spans of the sentences before
        table = spans.iloc[parts.span + np.repeat(before, [len(one.parts.span) for one in self.sentences])]
        table = table.reset_index(drop=True).assign(kind=np.array(PARTS, object)[parts.part, 1])
        table["part"] = [name for one in self.sentences for name in one.names(one.parts)]
        head, places = np.where(parts.part == HEAD, parts.number, -1), [one.positions for one in self.sentences]
        words = [np.array([None, *one.words], object)[place] for one, place in zip(self.sentences, places)]
        table["word"], position = np.concatenate(words), np.concatenate(places)
        if self.head_labels:
            numbers = {label: number for number, label in enumerate(self.head_labels)}
            head = table["label"].map(numbers).fillna(-1).to_numpy(int)
        for name, values, known in (("head", head, head >= 0), ("position", position, position > 0)):
            table[name] = pd.Series(values, dtype="Int64").where(known)
        table["then"] = np.array([*self.labels, None], object)[parts.then]
        for name in NUMBERS:
            table[name] = np.nan if getattr(parts, name) is None else getattr(parts, name)
        return with_words(table[table["role"] != LEFT_OUT].reset_index(drop=True), self.parses, self.given)

    def heads(self, mean: np.ndarray | None = None) -> Contributions:
        """Return the contributions of all heads to the constituents of the parse, and to gold constituents if there are any.

        >>> parser.explain("It rained.").heads().exact.shape
        (3, 64)

        With label attention inside the span, a contribution is the sum that the head passes on minus its mean over all spans of
        the sentences (or minus `mean`, [H]). Only the sum of the head of the constituent's own label is in a score.
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
        spans = found.spans[[*PLACE, "label"]]
        table = spans.loc[spans.index.repeat(heads.shape[1])].reset_index(drop=True)
        table["rank"], table["head"] = np.tile(np.arange(heads.shape[1]) + 1, len(heads)), heads.ravel()
        if self.head_labels:
            table["head_label"] = [self.head_labels[head] for head in heads.ravel().tolist()]
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
        rows = []
        for number, one in enumerate(explained.sentences):
            if one.attention is None:
                raise LalkitError("no head here has one attention for a whole sentence", remedy="Use a query=vector.")
            words = ["<START>", *one.words, "<STOP>"]
            for start, end, name in one.constituents() if label else [(0, len(one.words), None)]:
                positions = range(start + 1, end + 1) if label else range(len(words))
                places = product(range(len(one.attention)), positions)
                rows += [(number, start, end, name, h, t, words[t], one.attention[h, t]) for h, t in places]
        return with_words(pd.DataFrame(rows, columns=columns), self.parses, self.given)

    def text(self, top: int = 3) -> str:
        """Describe the score of each constituent in words. top: how many parts to name. Raises LalkitError without any.

        >>> parser.explain("It rained.").text(top=1).count("Most from")
        3
        """
        texts, top = [], whole_number("top", top, 1)
        for one in self.sentences:
            paragraphs = [paragraph(self, one, one.places[span], top) for span in one.constituents()]
            if len(self.sentences) > 1:
                paragraphs.insert(0, f"# {' '.join(one.words)}")
            texts += filter(None, paragraphs)
        if not any(" score " in line for line in texts):
            problem = "there is no constituent" + f" that is not {self.against}" * bool(self.against)
            raise LalkitError(problem, remedy="Give another sentence, or another label to compare with.")
        if self.profile and not self.against:
            texts.append(f"The many sentences are those of {self.profile['corpus']}.")
        return "\n\n".join(texts)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        spans = sum(len(one.constituents()) for one in self.sentences)
        return f"Explanation(sentences: {len(self.sentences)}, constituents: {spans})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


# ---------------------------------------------------------------- in words: a paragraph for each constituent


def paragraph(explanation: Explanation, one: Explained, place: int, top: int) -> str:
    """Return the text about one constituent; "" if it has the label `against`."""
    (start, end, label), score = one.spans[place], one.scores[place]
    if label == explanation.against:
        return ""
    head = next((span.head for span in one.prediction.spans if span[:3] == (start, end, label)), 0)
    begin = f"{label} “{' '.join(one.words[start:end])}”"
    begin += f", head word “{one.words[head - 1]}”" if head else ""
    if confidence := one.prediction.confidence:
        probable = {span[:3]: p for span, p in zip(one.prediction.spans, confidence.spans)}
        begin += f", probability {probable[start, end, label]:.3g}"
    begin += f", score {score:.2f}: "
    if explanation.against:
        return begin + why_not(one, place, explanation.against, top)
    return begin + reasons(explanation, one, place, top)


def reasons(explanation: Explanation, one: Explained, place: int, top: int) -> str:
    """Name the sum of all heads or words, the largest ones and the rest, and the label that wins without the largest one."""
    parts, label = one.of(place), one.spans[place][2]
    ranked = np.isin(parts.part, [HEAD, WORD])
    order = np.flatnonzero(ranked)[np.argsort(-abs(parts.value[ranked]), kind="stable")]
    largest, rest, first = parts.where(order[:top]), parts.value[order[top:]], one.names(parts)[order[0]]
    kind = {HEAD: "label head", WORD: "word"}[int(largest.part[0])]

    def total(values: np.ndarray) -> str:
        return f"{len(values)} {kind}{'s' * (len(values) > 1)} {values.sum():+.2f}"

    amounts = [f"{value:+.2f}" for value in largest.value]
    if largest.attention is not None:
        amounts = [f"{amount}, {share:.0%} of the attention" for amount, share in zip(amounts, largest.attention)]
    names = [f"{name} ({amount})" for name, amount in zip(one.names(largest), amounts)]
    others = [f"{name} {value:+.2f}" for name, value in zip(one.names(parts.where(~ranked)), parts.value[~ranked])]
    text = f"{', '.join([total(parts.value[ranked]), *others])}. Most from {names[0]}"
    text += f", then {', '.join(names[1:])}, together {largest.value.sum():+.2f}" * (len(names) > 1)
    text += f"; the other {total(rest)}." if len(rest) else "."
    if (second := one.second(place)) is not None:
        text += f" {one.spans[second][2]} comes second with {one.scores[second]:.2f}."
    then, still = explanation.labels[parts.then[order[0]]], f" with {parts.then_score[order[0]]:.2f}"
    text += f" Without {first}, {then} would {'still ' * (then == label)}come first{still}."
    return text + of_head(explanation.profile, one, label, int(parts.number[order[0]]))


def of_head(profile: dict | None, one: Explained, label: str, head: int) -> str:
    """Say to which word a head attends most, and how often it leads the label in a corpus; nothing if it does not attend."""
    if one.attention is None:
        return ""
    focus = int(one.attention[head].argmax())
    word = ("the start", *(f"“{word}”" for word in one.words), "the end")[focus]
    text = f" Label head {head} attends most to {word} ({one.attention[head, focus]:.0%})"
    text += ", in every span of the sentence."
    if profile and label in profile["labels"]:
        k = profile["labels"].index(label)
        part, overall = profile["led"][head][k] / profile["all"][k], sum(profile["led"][head]) / profile["spans"]
        text += f" Over many sentences it is the top head of {part:.0%} of {label}"
        text += f", {part / overall:.1f} times its share of all spans ({overall:.0%})." if overall else "."
    return text


def why_not(one: Explained, place: int, against: str, top: int) -> str:
    """Name the parts that differ most between two labels. With the rest, they add up to the difference."""
    other = one.places[(*one.spans[place][:2], against)]
    parts, values = one.of(place), one.difference(place, against)
    largest = np.argsort(-abs(values), kind="stable")[:top]
    names = [f"{name} {value:+.2f}" for name, value in zip(one.names(parts.where(largest)), values[largest])]
    if rest := len(values) - len(largest):
        names.append(f"{rest} other part{'s' * (rest > 1)} {values.sum() - values[largest].sum():+.2f}")
    text = f"{against} would score {one.scores[other]:.2f}. The difference of {values.sum():+.2f} is the sum of: "
    return f"{text}{', '.join(names)}."


# ---------------------------------------------------------------- as a page to explore

TITLES = {"heads": "Which label heads made this?", "terms": "Which words made this?"}  # of each kind of pane


def page(explanation: Explanation, model: str, title: str | None = None) -> dict:
    """Return the data of the page to explore, of sentences with both layers. `lalkit.draw.explorer` describes the data.

    model: the name of the parser. title: None: the question that the page answers. Raises LalkitError if there is no sentence,
    and if a parse has no dependencies.
    """
    pane = "terms" if explanation.head_labels else "heads"
    if not explanation.sentences:
        raise LalkitError("there is no sentence to show", remedy="Give at least one.")
    if any(parse.heads is None for parse in explanation.parses):
        problem = "a page to explore shows both layers, and this parser gives constituents alone"
        raise LalkitError(problem, remedy="Use a parser of the task joint.")
    data: dict = {"pane": pane, "title": title or TITLES[pane], "model": model, "against": explanation.against}
    if pane == "heads":
        data |= {"norm": "exact", "norms": NORMS, "profile": explanation.profile}
    else:
        data["boundary"] = "full" if any(BOUNDARY in one.parts.part for one in explanation.sentences) else "glass"
    return data | {"sentences": [_sentence(explanation, one) for one in explanation.sentences]}


def _sentence(explanation: Explanation, one: Explained) -> dict:
    confidence, against = one.prediction.confidence, explanation.against
    spans = [_span(one, one.places[span], against, explanation.labels) for span in one.constituents()]
    shown = {"sentence": one.prediction.sentence, "spans": spans, "gold": None}
    if one.attention is not None:
        shown["attention"] = one.attention.tolist()
    if confidence:
        shown["arc_probabilities"] = [round(p, 4) for p in confidence.arcs]
        probabilities = {span[:3]: round(p, 4) for span, p in zip(one.prediction.spans, confidence.spans)}
        for span in spans:
            span["probability"] = probabilities[span["start"], span["end"], span["label"]]
    return shown


def _span(one: Explained, place: int, against: str | None, labels: Sequence[str]) -> dict:
    """Return one constituent. With label attention inside the span it has two readings: its own label, and another one."""
    (start, end, label), parts = one.spans[place], one.of(place)
    head = next((span.head for span in one.prediction.spans if span[:3] == (start, end, label)), 0) or None
    span = {"start": start, "end": end, "label": label, "head": head, "score": round(float(one.scores[place]), 4)}
    if against:
        span["against"] = one.difference(place, against).tolist()
    if parts.attention is None:
        raw, exact = one.sums[place], parts.effect[:-1]
        return span | {"values": {norm: normalise(raw, exact, norm).tolist() for norm in NORMS}}
    other = one.second(place) if against in (None, label) else one.places[start, end, against]
    readings = [_reading(one, k) for k in (place, other) if k is not None]
    words = parts.where(parts.part == WORD)
    return span | {"readings": readings, "then": [*zip((labels[k] for k in words.then), _rounded(words.then_score))]}


def _reading(one: Explained, place: int) -> dict:
    """Return the parts of one label's score: the parts of words, and the rest."""
    parts = one.of(place)
    words, rest = parts.where(parts.part == WORD), parts.where(parts.part != WORD)
    reading = {"label": one.spans[place][2], "score": _rounded(one.scores[[place]])[0]}
    reading |= {name: _rounded(getattr(words, name)) for name in ("attention", "evidence", "value")}
    return {**reading, "rest": dict(zip((PARTS[part][0] for part in rest.part), _rounded(rest.value)))}


def _rounded(values: np.ndarray) -> list[float]:
    """Round to six digits after the point, so that the parts still add up."""
    return [round(value, 6) for value in values.tolist()]
