"""One parser under all controls: rows of (what, label, measure, value), and the counts that tests are made of.

The two kinds of label heads, asked the same: which head is a label's, what are its controls, where does it look.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from lalkit.api import Parser
from lalkit.errors import JointError, LalkitError
from lalkit.evaluation.evalb import COLLINS
from lalkit.evaluation.scores import Evaluation, by_label, evaluate
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.controls import (
    CONTROLS,
    changed,
    changes,
    mean_contexts,
    mean_inside,
    only,
    span_changed,
    span_changes,
    without_head,
    words_kept,
)
from lalkit.interpret.errors import gold_spans
from lalkit.interpret.paper_layer import Span
from lalkit.network.predict import predict
from lalkit.probes.tables import ask
from lalkit.probes.view import AttentionView
from lalkit.treebank.check import subset
from lalkit.treebank.joint import to_joint
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


Row = tuple[str, str, str, float]  # what, label, measure, value
TRAINED = "as trained"
LABELS = 6  # labels looked at unasked: the most frequent ones
APART = replace(COLLINS, name="COLLINS.prm, ADVP and PRT apart", equal_labels=())  # each has a head of its own


def measure(
    parser: Parser,
    gold: Sequence[Sentence],
    train: Sequence[Sentence],
    labels: Sequence[str],
    probed: int = 40,
    rounds: int = 20,
) -> tuple[list[Row], dict[str, pd.DataFrame]]:
    """train: where means are taken; probed: sentences for the probes, spread evenly. Returns the rows, and for the parser as
    trained and every control the table of its sentences.

    Raises ModelError for a parser whose heads are mixed: no head can be taken out of it.
    """
    _parse(parser, gold[:2])  # what is compiled is compiled
    begun = time.process_time()  # not the clock: other work on the machine would count
    trained = _parse(parser, gold)
    seconds = time.process_time() - begun
    evaluations = {TRAINED: evaluate(gold, trained)}
    rows: list[Row] = [(TRAINED, "", "sentences_per_second", len(gold) / seconds), *_sizes(parser)]
    kind = kind_of(parser)
    if kind is not None:
        heads = kind(parser, gold, train)
        with words_kept(parser.network):
            for name, control in heads.controls.items():
                with control:
                    evaluations[name] = evaluate(gold, _parse(parser, gold))
            known = [label for label in labels if label in parser.vocab.label_index]
            rows += _removals(heads, gold, trained, known)
            rows += [*_tops(heads, known), *_head_words(heads, gold, known)]
        rows += _probes(heads, subset(gold, probed), rounds)
    for name, evaluation in evaluations.items():
        rows += _scores(name, evaluation)
    return rows, {name: evaluation.table() for name, evaluation in evaluations.items()}


def usual_labels(gold: Sequence[Sentence], count: int | None = LABELS) -> list[str]:
    """The most frequent labels of gold's constituents (None: all), unary chains apart."""
    names = pd.Series([c.label for s in gold for c in s.constituents if "::" not in c.label])
    return list(names.value_counts().index[:count])


def _parse(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    found = predict(parser.network, parser.collator, sentences, lam=parser.config.train.lam, threads=1)
    return [p.sentence for p in found]


def _scores(what: str, evaluation: Evaluation) -> list[Row]:
    summary = evaluation.summary()
    return [(what, "", key, summary[key]) for key in ("f1", "uas", "las") if summary[key] is not None]


def _sizes(parser: Parser) -> Iterator[Row]:
    """Weights trained, in all and in the heads: the paper's layer, or keys, queries and evidence."""
    network, kind = parser.network, kind_of(parser)
    if kind is InsideHeads:
        own = [network.spans.key.weight, network.spans.query, network.spans.evidence.weight]
    else:
        own = list(network.label_attention.parameters()) if kind else []
    yield TRAINED, "", "parameters", sum(p.numel() for p in network.parameters() if p.requires_grad)
    yield TRAINED, "", "head_parameters", sum(p.numel() for p in own)


def _removals(heads: PaperHeads, gold: Sequence[Sentence], trained: list[Sentence], labels: Sequence[str]) -> list[Row]:
    """Recall and F1 of the label whose head is taken out, and of all other labels together, before and after. F1 too, because a
    head may speak against its label: without it the label is found more often, where it is not, too."""
    before, rows = counted(gold, trained), []
    for label in labels:
        rows += _of_label(TRAINED, label, before)
        for what, control in heads.without(label).items():
            with control:
                rows += _of_label(what, label, counted(gold, _parse(heads.parser, gold)))
    return rows


def counted(gold: Sequence[Sentence], found: Sequence[Sentence]) -> pd.DataFrame:
    """A row for every label that either side has."""
    return by_label(gold, found, APART, least=0)


def _of_label(what: str, label: str, table: pd.DataFrame) -> Iterator[Row]:
    own = table["label"] == label
    for name, some in (("", table[own]), ("_of_others", table[~own])):
        sums = some[["matched", "gold", "predicted"]].sum()
        if sums["gold"]:
            yield what, label, f"recall{name}", 100 * sums["matched"] / sums["gold"]
            yield what, label, f"label_f1{name}", 200 * sums["matched"] / (sums["gold"] + sums["predicted"])


def _tops(heads: PaperHeads, labels: Sequence[str]) -> Iterator[Row]:
    """How often the label's head is on top of its spans, against all spans (lift); its number."""
    top, names = heads.found.top(heads.norm), heads.found.spans["label"].to_numpy()
    for label in labels:
        head = heads.head(label)
        share, overall = 100 * (top[names == label] == head).mean(), 100 * (top == head).mean()
        yield TRAINED, label, "head", head
        yield TRAINED, label, "top_share", share
        yield TRAINED, label, "top_share_of_all", overall
        yield TRAINED, label, "lift", share / overall if overall else np.nan


def _head_words(heads: PaperHeads, gold: Sequence[Sentence], labels: Sequence[str]) -> Iterator[Row]:
    """Percent of a label's spans (of two words and more) in which the most attended word of the span is its head word by the
    dependencies: for the label's head, for the mean and the best of the other heads, and by chance. k equal words have 1/k
    each; sentences whose two layers are not one tree are left out."""
    words = [_head_of(sentence) for sentence in gold]
    hits: dict[str, list[np.ndarray]] = {label: [] for label in labels}
    chance: dict[str, list[float]] = {label: [] for label in labels}
    for b, (start, end, label), weights in heads.attention():
        if label in hits and end - start > 1 and (start, end) in words[b]:
            best = np.isclose(weights, weights.max(-1, keepdims=True), rtol=1e-6, atol=0)
            hits[label].append(best[:, words[b][start, end] - 1 - start] / best.sum(-1))
            chance[label].append(1 / (end - start))
    for label in labels:
        if hits[label]:
            shares, own = 100 * np.mean(hits[label], axis=0), heads.head(label)
            others = np.delete(shares, own)
            yield TRAINED, label, "on_head_word", shares[own]
            yield TRAINED, label, "on_head_word_chance", 100 * float(np.mean(chance[label]))
            if len(others):
                yield TRAINED, label, "on_head_word_other_heads", others.mean()
                yield TRAINED, label, "on_head_word_best_other", others.max()


def _head_of(sentence: Sentence) -> dict[tuple[int, int], int]:
    try:
        return {(span.start, span.end): span.head for span in to_joint(sentence)}
    except JointError:
        return {}


def _probes(heads: PaperHeads, gold: Sequence[Sentence], rounds: int) -> Iterator[Row]:
    """The shared probes, all heads at once, on gold spans of two words and more: mean over spans."""
    spans = [[(c.start, c.end, c.label) for c in s.constituents if c.end - c.start > 1] for s in gold]
    views = heads.views(gold, spans)
    if not views:
        raise LalkitError("no constituent has two words", remedy="Probe more sentences.")
    table = pd.concat([ask(view, rounds) for view in views])
    for name, values in table.groupby("measure", sort=False)["value"]:
        yield "probe", "", name, values.mean()
    erased = table.loc[table["measure"] == "erased", "value"]
    yield "probe", "", "never_erased", (erased == 1).mean()
