"""Ask a layer of label attention what it contributed to a parse: one interface for every such layer.

`paper_layer` and `span_layer` implement `AttributionSource`. Their mathematics differ, but explanations, pages, probes, controls
and comparisons use both of them in the same way. A third layer needs one file with one more implementation, and its name in
`lalkit.interpret.layer_of`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.chart.joint import JointTree
from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError, ParameterError, checked, did_you_mean, whole_number
from lalkit.interpret.contributions import Contributions, Heads, Span
from lalkit.network.encoder import HookedModule
from lalkit.network.model import Model, Prediction
from lalkit.network.parser import ParserOutput
from lalkit.probes.view import AttentionView
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

Spans = Sequence[Sequence[Span]]  # the spans of each sentence
Sentences = Sequence[Sentence]
Hooks = dict[str, Callable]  # the name of a layer's hook point -> the function that changes the value there


@dataclass(frozen=True)
class SpanAttribution:
    """Hold the contributions and the attention of the label heads in gold spans.

    contributions: of all heads to these spans. attention: (place of the sentence, span, attention [heads, words of the span]).
    """

    contributions: Contributions
    attention: list[tuple[int, Span, np.ndarray]]


class AttributionSource(ABC):
    """Answer for one trained parser how its label heads contribute to the scores of spans.

    A *look* is the record that a layer keeps of one parsed sentence. Each layer has its own class for it, with at least
    `prediction` and `spans`, the spans to explain.

    A layer sets these attributes. question: the title of the page to explore. content: the content of a look, in words. norms:
    the ways to measure a contribution, if there are several. top_norm: the norm that decides which head leads a span. removed,
    passed: the hook points where a head can be set to zero, and to its mean. mixed: whether the part of one head in the score
    of a span cannot be separated.
    """

    question: str
    content: str
    norms: Sequence[str] = ()
    top_norm: str
    removed = passed = ""
    mixed: bool = False

    def __init__(self, model: Model):
        self.model = model.exact

    @staticmethod
    @abstractmethod
    def system(config: ModelConfig) -> str:
        """Return the name of a parser with this layer in comparisons."""

    @property
    def attends(self) -> bool:
        """Return False for a parser that was trained with the attention switched off."""
        return True

    @property
    @abstractmethod
    def layer(self) -> HookedModule:
        """The layer itself. Controls act at its hook points."""

    @property
    @abstractmethod
    def heads(self) -> int:
        """The number of label heads."""

    @property
    def head_labels(self) -> Sequence[str]:
        """The labels of heads 0, 1, ...; empty if the heads have no fixed labels."""
        return ()

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """Return the weights of the label heads."""

    # Explain single sentences

    @checked
    def look(
        self, sentences: Sentences, besides: Spans | None = None, probabilities: bool = False,
        trees: Sequence[JointTree] | None = None, batch_words: int | None = None, progress: bool = False,
        against: str | None = None,
    ) -> list:  # fmt: skip
        """Parse sentences, in order, and keep a look at each; the same alone and in any batch.

        Args: besides: more spans of each sentence to look at. probabilities: also compute them, which the page then shows. trees,
            batch_words, progress: as in `lalkit.network.model.Model.predict`. against: also look at each constituent under this
            label, as `contrast` needs it.
        Raises: ModelError as `check` does. ParameterError for a label that the parser does not know.
        """
        self.check()
        if against is not None:
            self.check_label(against)
        looks = [None] * len(sentences)
        for scored, predictions in self.model.predict(
            sentences, probabilities=probabilities, trees=trees, batch_words=batch_words, progress=progress
        ):
            for b, (place, prediction) in enumerate(zip(scored.places, predictions)):
                asked = [*besides[place]] if besides else []
                asked += [(*span[:2], against) for span in parsed_spans(prediction)] if against else []
                looks[place] = self.look_at(prediction, scored.output, b, asked)
        return looks

    @abstractmethod
    def check(self) -> None:
        """Raise ModelError for a parser whose scores have no separate part of one head, or of one word."""

    @abstractmethod
    def look_at(self, prediction: Prediction, output: ParserOutput, b: int, besides: Sequence[Span]) -> Any:
        """Return the look at sentence b of a batch. besides: more spans to look at."""

    def check_label(self, label: str) -> None:
        """Raise ParameterError for a label that the parser does not know."""
        known = self.model.vocab.labels[2:]
        if label not in known:
            remedy = f"{did_you_mean(label, known)}Labels: {', '.join(known)}."
            raise ParameterError(f"there is no label {label!r}", remedy=remedy)

    def check_contexts(self) -> None:
        """Raise ModelError for a parser whose heads do not have one context each for a whole sentence."""
        remedy = "Use a parser with the paper's layer and query=vector, such as en-news."
        raise ModelError("this parser has no label heads with one context for a sentence", remedy=remedy)

    @abstractmethod
    def reasons(self, look, span: Span, norm: str, top: int, profile: dict | None) -> str:
        """Return the end of a sentence of `explain`: the origin of the span's score, in words."""

    @abstractmethod
    def score(self, look, span: Span) -> float:
        """Return the score of one span for its label."""

    @abstractmethod
    def parts(self, look, span: Span) -> pd.DataFrame:
        """Return the parts that add up to the score of a span: value, part (in words), and which head or word it belongs to."""

    def contrast(self, look, span: Span, against: str) -> pd.DataFrame:
        """Compare the label of a span with another label: the parts of both scores, and their differences.

        look: one that was made with this `against`.
        Returns: the columns of `parts`; against, of_label, of_against, value (their difference). The values add up to the
            difference of both scores.
        """
        first, other = (self.parts(look, (*span[:2], label)) for label in (span[2], against))
        columns = {"against": against, "of_label": first["value"], "of_against": other["value"]}
        return first.assign(**columns, value=first["value"] - other["value"])

    @abstractmethod
    def page_fields(self, norm: str, profile: dict | None) -> dict:
        """Return the data that the page to explore shows once, beside the title."""

    def page_sentence(self, look) -> dict:
        """Return the data that the page to explore shows for one sentence, beside its spans."""
        return {}

    @abstractmethod
    def page_span(self, look, span: Span) -> dict:
        """Return the data that the page to explore shows for one constituent."""

    def explain(
        self, look, label: str | None = None, norm: str = "exact", top: int = 3, profile: dict | None = None,
        against: str | None = None,
    ) -> str:  # fmt: skip
        """Explain each constituent of a label (None: all constituents) in words, one paragraph each.

        Args: norm and profile are for layers with `norms`: the measure of contributions, and how often each head leads each
            label in a corpus (`tables.profile`). top: the number of heads, or words, to name. against: say why these are not
            constituents of this label; the look was made with it.
        Raises: LalkitError for a label that the parse does not have, and if top is not a whole number of at least 1.
        """
        top = whole_number("top", top, 1)
        everything = parsed_spans(look.prediction)
        spans = [span for span in everything if label in (None, span[2]) and span[2] != against]
        if not spans:
            what = f"{label or 'constituent'}{f' that is not {against}' if against else ''}"
            there = ", ".join(dict.fromkeys(name for *_, name in everything))
            raise LalkitError(f"there is no {what} in this parse", remedy=f"It has: {there}.")
        paragraphs, sure = [], look.prediction.confidence
        probable = dict(zip(look.prediction.spans, sure.spans)) if sure else {}
        for span in spans:
            words, head = look.prediction.sentence.words, _head_word(look.prediction, span)
            text = f"{span[2]} “{' '.join(words[slice(*span[:2])])}”"
            text += f", head word “{words[head - 1]}”" if head else ""
            reasons = (
                self._why_not(look, span, against, top) if against else self.reasons(look, span, norm, top, profile)
            )
            text += "".join(f", probability {p:.3g}" for one, p in probable.items() if one[:3] == span)
            paragraphs.append(f"{text}, score {self.score(look, span):.2f}: {reasons}")
        if not against and profile and profile["norm"] == norm:
            paragraphs.append(f"The many sentences are those of {profile['corpus']}.")
        return "\n\n".join(paragraphs)

    def _why_not(self, look, span: Span, against: str, top: int) -> str:
        """Name the parts that differ most between two labels. With the rest, they add up to the difference."""
        table = self.contrast(look, span, against)
        largest = table.loc[table["value"].abs().nlargest(top).index]
        names = [f"{row.part} {row.value:+.2f}" for row in largest.itertuples()]
        if count := len(table) - len(largest):
            rest = table["value"].sum() - largest["value"].sum()
            names.append(f"{count} other part{'s' * (count > 1)} {rest:+.2f}")
        text = f"{against} would score {table['of_against'].sum():.2f}. The difference of {table['value'].sum():+.2f}"
        return f"{text} is the sum of: {', '.join(names)}."

    def page(
        self, looks: Sequence, title: str, model: str, gold: Sentences | None = None, norm: str = "exact",
        profile: dict | None = None, against: str | None = None,
    ) -> dict:  # fmt: skip
        """Return the data that `draw.explorer` shows.

        Args: title and model are texts for the top of the page. gold: the same sentences with their gold trees. norm, profile
            and against as in `explain`.
        Raises: LalkitError if there is no sentence, or a parse has no dependencies.
        """
        if not looks:
            raise LalkitError("there is no sentence to show", remedy="Give at least one.")
        sentences = []
        for look, tree in zip(looks, gold or [None] * len(looks)):
            confidence = look.prediction.confidence
            if look.prediction.sentence.heads is None:
                problem = "a page to explore shows both layers, and this parser gives constituents alone"
                raise LalkitError(problem, remedy="Use a parser of the task joint.")
            shown = {"sentence": look.prediction.sentence, "gold": tree, **self.page_sentence(look)}
            if confidence:
                shown["arc_probabilities"] = [round(p, 4) for p in confidence.arcs]
                probabilities = {s[:3]: round(p, 4) for s, p in zip(look.prediction.spans, confidence.spans)}
            shown["spans"] = [
                {"start": span[0], "end": span[1], "label": span[2], "head": _head_word(look.prediction, span)}
                | {"score": round(float(self.score(look, span)), 4)}
                | self.page_span(look, span)
                | ({"against": self.contrast(look, span, against)["value"].tolist()} if against else {})
                | ({"probability": probabilities[span]} if confidence else {})
                for span in parsed_spans(look.prediction)
            ]
            sentences.append(shown)
        fields = {**self.page_fields(norm, profile), "against": against}
        return {"title": title, "model": model, **fields, "sentences": sentences}

    # Measure many sentences

    @abstractmethod
    def contributions_table(self, looks: Sequence, norm: str) -> pd.DataFrame:
        """Return the parts of the score of each constituent: sentence (its place), start, end, label, head, norm, value, ...

        Raises: LalkitError for an unknown norm.
        """

    @abstractmethod
    def attention_table(self, looks: Sequence, label: str | None = None) -> pd.DataFrame:
        """Return the attention over the words of the constituents of a label, see `tables.attention_with_words`."""

    @abstractmethod
    def ranked(self, looks: Sequence) -> Contributions:
        """Return the contributions of all heads to the constituents of the parse, so that heads can be compared."""

    @abstractmethod
    def view(self, sentences: Sentences, spans: Spans | None = None, examples: Sequence[int] = ()) -> AttentionView:
        """Return the attention in the form that the probes of `lalkit.probes` use. Give some tens of sentences at a time.

        The decisions that the probes watch are the labels of spans, out of all labels and the empty one. The score of a unit
        counts (label is as given, 1).

        Args: spans: the spans of each sentence (None: those of the parse). examples: the numbers of the sentences in their data.
        """

    @abstractmethod
    def measure(self, sentences: Sentences, mean: Tensor) -> SpanAttribution:
        """Measure the contributions and the attention of all heads in the gold spans of sentences. mean: see `mean`."""

    @abstractmethod
    def head_of(self, label: str, attribution: SpanAttribution) -> int:
        """Return the head that stands for a label."""

    @abstractmethod
    def mean(self, sentences: Sentences) -> Tensor:
        """Return the mean, over sentences, of the value that each head passes on: [heads, ...]. The controls use it."""

    @staticmethod
    def order(mean: Tensor) -> Tensor:
        """Return a random order of the heads in which no head stays in its place (if there are two or more).

        The order is always the same, so that a comparison can be repeated.
        """
        order = torch.randperm(len(mean), generator=torch.Generator().manual_seed(0))
        exchanged = torch.empty_like(order)
        exchanged[order] = order.roll(1)
        return exchanged.to(mean.device)

    @abstractmethod
    def controls(self, mean: Tensor) -> dict[str, Hooks]:
        """Return the controls by name, for `with source.layer.hooked(**hooks):`. mean: see `mean`."""

    def without(self, heads: Heads, mean: Tensor) -> dict[str, Hooks]:
        """Return, as `controls` does, the ways to remove heads: `head out` and `head at its mean`.

        Raises: ParameterError for a head that the layer does not have.
        """
        this = self.chosen(heads)
        return {
            "head out": {self.removed: lambda value, *_: value.masked_fill(this, 0)},
            "head at its mean": {self.passed: lambda value, *_: torch.where(this, mean.to(value), value)},
        }

    def chosen(self, heads: Heads) -> Tensor:
        """Return which heads are chosen, [heads], bool. A head with a fixed label can be named by its label.

        Raises: ParameterError for a head that the layer does not have.
        """
        return chosen(heads, self.heads, labels=self.head_labels).to(next(self.layer.parameters()).device)

    def parsed(self, sentences: Sentences) -> Spans:
        """Parse sentences, and return the spans of each parse, <H> included."""
        return [[span[:3] for span in prediction.spans] for prediction in self.model.parse(sentences)]


def chosen(items: Heads, size: int, kind: str = "head", first: int = 0, labels: Sequence[str] = ()) -> Tensor:
    """Return which items of an axis are chosen, [size], bool: heads, or words. The numbers begin at `first`."""
    mask, names = torch.zeros(size, dtype=torch.bool), list(labels)
    several = isinstance(items, Iterable) and not isinstance(items, str) and getattr(items, "ndim", 1) > 0
    for item in cast(Iterable, items) if several else [items]:
        mask[names.index(item) if item in names else whole_number(kind, item, first, first + size - 1) - first] = True
    return mask


def gold_spans(sentences: Sentences) -> list[list[Span]]:
    """Return the gold constituents of each sentence. Look at these besides the parse (`besides=`) to trace missing spans."""
    return [[(c.start, c.end, c.label) for c in s.constituents if c.label != GROUP] for s in sentences]


def parsed_spans(prediction: Prediction) -> list[Span]:
    """Return the constituents of a parse. Spans with the group label <H> are not constituents."""
    return [(s.start, s.end, s.label) for s in prediction.spans if s.label != GROUP]


def _head_word(prediction: Prediction, span: Span) -> int | None:
    """Return the number of a span's head word; None if the span is not in the parse or has no head word."""
    return next((s.head for s in prediction.spans if s[:3] == span), 0) or None
