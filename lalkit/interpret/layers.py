"""Measure how a layer of label attention contributed to a parse: one interface for every such layer.

`paper_layer` and `span_layer` implement `Explainer`. Their mathematics differ, but explanations, pages, probes, controls
and comparisons use both of them in the same way. A third layer needs one file with one more implementation, and its name in
`lalkit.interpret.layer_of`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lalkit.config import ModelConfig
from lalkit.errors import LalkitError, ModelError, ParameterError, checked, did_you_mean, whole_number
from lalkit.interpret.explanation import Explained, Explanation, Parts
from lalkit.interpret.tables import Contributions, Heads, Span
from lalkit.network.encoder import HookedModule
from lalkit.network.model import Model, Prediction, Scored
from lalkit.network.parser import ParserOutput
from lalkit.probes.view import AttentionView
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

Spans = Sequence[Sequence[Span]]  # the spans of each sentence
Sentences = Sequence[Sentence]
Hooks = dict[str, Callable]  # the name of a layer's hook point -> the function that changes the value there


class Explainer(ABC):
    """Compute for one trained parser how its label heads contribute to the scores of spans.

    A layer sets these attributes. removed, passed: the hook points where a head can be set to zero, and to its mean. mixed:
    whether the part of one head in the score of a span cannot be separated.
    """

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

    # Explain

    @checked
    def explain(self, sentences: Sentences, gold: bool = False, against: str | None = None, **options) -> Explanation:
        """Parse sentences, in order, and split the scores of their constituents; the same alone and in any batch.

        Args:
            sentences: The sentences to parse.
            gold: Also explain the constituents of the gold trees.
            against: Also explain each constituent under this label.
            options: Those of `lalkit.network.model.Model.predict`.

        Raises:
            ModelError: As in `check`.
            ParameterError: The parser does not know the label.
            LalkitError: A gold tree is missing.
        """
        self.check()
        known = self.model.vocab.labels[2:]
        if against is not None and against not in known:
            remedy = f"{did_you_mean(against, known)}Labels: {', '.join(known)}."
            raise ParameterError(f"there is no label {against!r}", remedy=remedy)
        if gold and (bare := [sentence for sentence in sentences if sentence.constituents is None]):
            raise LalkitError("has no gold tree", where=bare[0].where, remedy="Give the sentences of a treebank.")
        explained: list[Any] = [None] * len(sentences)
        totals: list[Any] = []
        for scored, predictions in self.model.predict(sentences, **options):
            totals.append(self.total(scored))
            for b, (place, prediction) in enumerate(zip(scored.places, predictions)):
                tree = gold_spans([sentences[place]])[0] if gold else []
                explained[place] = self.explained(prediction, scored.output, b, tree, against)
        mean = self.mean_of(totals).cpu().numpy() if self.head_labels else None
        return Explanation(explained, sentences, self.model.vocab.labels, self.head_labels, mean, against)

    def total(self, scored: Scored) -> Any:
        """Return the data of a batch that `mean_of` needs: only for heads with fixed labels."""
        return None

    def mean_of(self, totals: Sequence) -> Tensor:
        """Return the mean [H] of the sums that each head passes on, over all spans of batches."""
        raise NotImplementedError

    @torch.inference_mode()
    def explained(
        self, prediction: Prediction, output: ParserOutput, b: int, gold: Sequence[Span] = (), against: str | None = None
    ) -> Explained:  # fmt: skip
        """Explain sentence b of a batch: the constituents of its parse, these gold spans, and all under the label `against`."""
        names, index, scores = self.model.vocab.labels, self.model.vocab.label_index, output.label_scores[b]
        constituents, n = parsed_spans(prediction), len(prediction.sentence)
        roles = dict.fromkeys(constituents, "parse") | {span: "gold" for span in gold if span not in constituents}
        for start, end, label in constituents:
            if against is not None:
                roles.setdefault((start, end, against), "asked")
            if self.head_labels:
                others = scores[start, end].clone()
                others[index[label]] = others[: index[GROUP] + 1] = -torch.inf
                if others.max() > -torch.inf:
                    roles.setdefault((start, end, names[int(others.argmax())]), "second")
        rows = [(start, end, index.get(label, 0)) for start, end, label in roles]  # 0: a label that is not known
        spans = torch.tensor(rows, device=scores.device, dtype=torch.long).reshape(-1, 3)
        start, end, label = spans.T
        of_spans = scores[start, end, label].masked_fill(label == 0, torch.nan).double().cpu().numpy()
        whole = getattr(output.attention, "ndim", 0) == 3  # by a query matrix, each word has an attention of its own
        attention = output.attention[b, :, : n + 2].float().cpu().numpy().copy() if whole else None
        parts, sums = self.split(output, b, n, spans)
        return Explained(prediction, list(roles), list(roles.values()), of_spans, parts, sums, attention)

    @abstractmethod
    def check(self) -> None:
        """Raise ModelError for a parser whose scores have no separate part of one head, or of one word."""

    @abstractmethod
    def split(self, output: ParserOutput, b: int, n: int, spans: Int[Tensor, "m 3"]) -> tuple[Parts, np.ndarray]:
        """Split the scores of spans of sentence b, which has n words.

        spans: start, end and label; 0 for a label that the parser does not know, whose values are nan.
        Returns: the parts; and the sum that each head passes on to each span, [m, H].
        """

    def check_contexts(self) -> None:
        """Raise ModelError for a parser whose heads do not have one context each for a whole sentence."""
        remedy = "Use a parser with the paper's layer and query=vector, such as en-news."
        raise ModelError("this parser has no label heads with one context for a sentence", remedy=remedy)

    # Measure many sentences

    @abstractmethod
    def view(self, sentences: Sentences, spans: Spans | None = None, examples: Sequence[int] = ()) -> AttentionView:
        """Return the attention in the form that the probes of `lalkit.probes` use. Give some tens of sentences at a time.

        The decisions that the probes observe are the labels of spans, out of all labels and the empty one. The score of a unit
        counts (1 if the label is the given one, 1).

        Args: spans: the spans of each sentence (None: those of the parse). examples: the numbers of the sentences in their data.
        """

    @abstractmethod
    def head_of(self, label: str, contributions: Contributions) -> int:
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
    """Return the gold constituents of each sentence."""
    return [[(c.start, c.end, c.label) for c in s.constituents if c.label != GROUP] for s in sentences]


def parsed_spans(prediction: Prediction) -> list[Span]:
    """Return the constituents of a parse. Spans with the group label <H> are not constituents."""
    return [(s.start, s.end, s.label) for s in prediction.spans if s.label != GROUP]
