"""The two kinds of label heads, asked the same: which head is a label's, what are its controls, where does it look."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from lalkit.api import Parser
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.controls import CONTROLS, changed, changes, mean_contexts, without_head
from lalkit.interpret.errors import gold_spans
from lalkit.interpret.look import Span
from lalkit.interpret.span_controls import mean_inside, only, span_changed, span_changes
from lalkit.probes.view import AttentionView
from lalkit.treebank.tree import Sentence

VIEWED = 20  # sentences looked into at a time


class PaperHeads:
    """The paper's layer: one attention a head for the whole sentence. A label's head is the one that is most often worth most to
    the label's gold spans (exact effects), chosen on the sentences that it is then judged on: in its favour."""

    norm = "exact"

    def __init__(self, parser: Parser, gold: Sequence[Sentence], train: Sequence[Sentence]):
        """train: where means are taken."""
        self.parser, self.gold, self.train = parser, gold, train

    @cached_property
    def looks(self):
        return self.parser.look(self.gold, besides=gold_spans(self.gold))

    @cached_property
    def found(self) -> Contributions:
        """Of the gold spans."""
        everything = contributions(self.looks, self.gold)
        return everything.where(everything.spans["gold"].to_numpy(bool))

    @cached_property
    def controls(self) -> dict[str, AbstractContextManager]:
        network = self.parser.network
        made = changes(network, self.parser.collator, self.train)
        return {name: changed(network, made.get(name, name)) for name in CONTROLS if name != "as trained"}

    def head(self, label: str) -> int:
        top = self.found.top(self.norm)[(self.found.spans["label"] == label).to_numpy()]
        return int(np.bincount(top).argmax()) if len(top) else 0

    def without(self, label: str) -> dict[str, AbstractContextManager]:
        """The label's head out: its slice at zero, which also takes away what it always says; and what it attends to at its mean,
        which leaves that."""
        network, head = self.parser.network, self.head(label)

        def at_mean(contexts: torch.Tensor) -> torch.Tensor:
            contexts = contexts.clone()
            contexts[:, head] = self.mean[head].to(contexts)
            return contexts

        return {"head out": without_head(network, head), "head at its mean": changed(network, at_mean)}

    @cached_property
    def mean(self) -> torch.Tensor:
        """[H, ...]: of what every head hands on."""
        return mean_contexts(self.parser.network, self.parser.collator, self.train)

    def attention(self) -> list[tuple[int, Span, np.ndarray]]:
        """(sentence, gold span, [H, its words])."""
        spans = gold_spans(self.gold)
        return [
            (b, span, seen.attention[:, span[0] + 1 : span[1] + 1])
            for b, seen in enumerate(self.looks) for span in spans[b]
        ]  # fmt: skip

    def views(self, sentences: Sequence[Sentence], spans: Sequence[Sequence[Span]]) -> list[AttentionView]:
        """Of the spans of two words and more."""
        parts = [slice(k, k + VIEWED) for k in range(0, len(sentences), VIEWED)]
        return [
            self.parser.view(sentences[part], spans=spans[part], examples=range(len(sentences))[part])
            for part in parts if any(spans[part])
        ]  # fmt: skip


class InsideHeads(PaperHeads):
    """Label attention inside the span: one head a label. What a head contributes to a span is A above its mean, whatever the
    span's label is: so that a head can be seen to speak up where it should not."""

    norm = "raw"

    @cached_property
    def mean(self) -> torch.Tensor:
        return mean_inside(self.parser.network, self.parser.collator, self.train)

    @cached_property
    def inside(self) -> list[tuple[int, Span, np.ndarray, np.ndarray]]:
        """(sentence, gold span, attention [H, k], A [H])."""
        spans, found = gold_spans(self.gold), []
        for start in range(0, len(self.gold), VIEWED):
            some = slice(start, start + VIEWED)
            places = [(start + b, span) for b, own in enumerate(spans[some]) for span in own]
            if places:
                seen = self.parser.view(self.gold[some], spans=spans[some])
                weights, a = seen.weights[:, :, 0], (seen.weights[:, :, 0] * seen.values[..., 0]).sum(-1)
                for (b, span), row, value in zip(places, weights.cpu().numpy(), a.cpu().numpy(), strict=True):
                    found.append((b, span, row[:, : span[1] - span[0]], value))
        return found

    @cached_property
    def found(self) -> Contributions:
        rows = [(b, self.gold[b].id, *span, True, True) for b, span, *_ in self.inside]
        spans = pd.DataFrame(rows, columns=["sentence", "id", "start", "end", "label", "parsed", "gold"])
        values = np.stack([value for *_, value in self.inside]) - self.mean.cpu().numpy()
        return Contributions(spans, values, None)

    @cached_property
    def controls(self) -> dict[str, AbstractContextManager]:
        made = span_changes(self.mean)
        return {
            name: span_changed(self.parser.network, change) for name, change in made.items() if name != "as trained"
        }

    def head(self, label: str) -> int:
        return self.parser.vocab.label_index[label] - 1

    def without(self, label: str) -> dict[str, AbstractContextManager]:
        network, head = self.parser.network, self.head(label)
        return {
            "head out": span_changed(network, only(head)),
            "head at its mean": span_changed(network, only(head, self.mean[head])),
        }

    def attention(self) -> list[tuple[int, Span, np.ndarray]]:
        return [(b, span, weights) for b, span, weights, _ in self.inside]


def kind_of(parser: Parser) -> type[PaperHeads] | None:
    """None for a parser without label attention: without the layer, or with no label inside the span that attends."""
    if parser.inside:
        return InsideHeads if parser.config.model.span_attention.attention != "none" else None
    return PaperHeads if parser.config.model.label_attention else None
