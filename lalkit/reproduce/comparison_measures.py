"""Measure one parser under all controls: rows of (what, label, measure, value), and the counts that the tests need.

The measures ask a layer of label attention through `AttributionSource` only, so they are the same for every layer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lalkit.errors import JointError, LalkitError
from lalkit.evaluation.evalb import COLLINS
from lalkit.evaluation.scores import Evaluation, by_label, evaluate
from lalkit.interpret import layer_of
from lalkit.interpret.controls import words_kept
from lalkit.interpret.source import AttributionSource, SpanAttribution
from lalkit.network.predict import predict
from lalkit.probes.perturbation import ask
from lalkit.treebank.check import subset
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    from lalkit.api import Parser

Row = tuple[str, str, str, float]  # what, label, measure, value
TRAINED = "as trained"
LABELS = 6  # the number of labels to look at, the most frequent ones, if none are named
VIEWED = 20  # sentences probed at a time
# Unlike in COLLINS.prm, ADVP and PRT are two labels here, because each of the two has a label head.
APART = replace(COLLINS, name="COLLINS.prm, ADVP and PRT apart", equal_labels=())


def measure(
    parser: Parser, gold: Sequence[Sentence], train: Sequence[Sentence], labels: Sequence[str], probed: int, rounds: int
) -> tuple[list[Row], dict[str, pd.DataFrame]]:
    """Measure a parser as trained, under all controls, without the head of each label, and with the probes.

    Args: gold: the sentences to parse. train: the sentences over which means are taken. labels: those whose head is taken out.
        probed: the number of sentences for the probes, spread evenly. rounds: permutations of each attention.
    Returns: the rows; and the table of sentences for the parser as trained and for every control.
    Raises: ModelError for a parser whose heads are mixed, so that none can be taken out.
    """
    _parse(parser, gold[:2])  # Kernels are compiled now, before the time is taken.
    start = time.process_time()  # Other work on the machine does not count here.
    trained = _parse(parser, gold)
    seconds = time.process_time() - start
    evaluations = {TRAINED: evaluate(gold, trained)}
    source = parser.attribution if layer_of(parser.config.model) and parser.attribution.attends else None
    rows: list[Row] = [(TRAINED, "", "sentences_per_second", len(gold) / seconds)]
    weights = [p for p in parser.network.parameters() if p.requires_grad]
    for name, tensors in (("parameters", weights), ("head_parameters", source.weights() if source else [])):
        rows.append((TRAINED, "", name, sum(x.numel() for x in tensors)))
    if source:
        with words_kept(parser.network):
            mean = source.mean(train)
            for name, hooks in source.controls(mean).items():
                with source.layer.hooked(**hooks):
                    evaluations[name] = evaluate(gold, _parse(parser, gold))
            attribution = source.measure(gold, mean)
            known = [label for label in labels if label in parser.vocab.label_index]
            heads = {label: source.head_of(label, attribution) for label in known}
            before = counted(gold, trained)
            for label, head in heads.items():
                rows += _of_label(TRAINED, label, before)
                for name, hooks in source.without(head, mean).items():
                    with source.layer.hooked(**hooks):
                        rows += _of_label(name, label, counted(gold, _parse(parser, gold)))
        rows += _tops(source, attribution, heads)
        rows += _head_words(gold, attribution, heads)
        rows += _probes(source, subset(gold, probed), rounds)
    for name, evaluation in evaluations.items():
        rows += _scores(name, evaluation)
    return rows, {name: evaluation.table() for name, evaluation in evaluations.items()}


def usual_labels(gold: Sequence[Sentence], count: int | None = LABELS) -> list[str]:
    """Return the most frequent labels of gold constituents (None: all labels), without unary chains."""
    names = pd.Series([c.label for s in gold for c in s.constituents if "::" not in c.label])
    return list(names.value_counts().index[:count])


def counted(gold: Sequence[Sentence], parses: Sequence[Sentence]) -> pd.DataFrame:
    """Return the counts of every label that gold or the parses have, a row each."""
    return by_label(gold, parses, APART, least=0)


def _parse(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    predictions = predict(parser.network, parser.collator, sentences, lam=parser.config.train.lam, threads=1)
    return [prediction.sentence for prediction in predictions]


def _scores(what: str, evaluation: Evaluation) -> list[Row]:
    summary = evaluation.summary()
    return [(what, "", key, summary[key]) for key in ("f1", "uas", "las") if summary[key] is not None]


def _of_label(what: str, label: str, table: pd.DataFrame) -> Iterator[Row]:
    """Yield recall and F1 of a label, and of all other labels together.

    F1 is there because a head may speak against its label: without the head, the label is found more often, also where it is
    wrong.
    """
    is_label = table["label"] == label
    for name, rows in (("", table[is_label]), ("_of_others", table[~is_label])):
        sums = rows[["matched", "gold", "predicted"]].sum()
        if sums["gold"]:
            yield what, label, f"recall{name}", 100 * sums["matched"] / sums["gold"]
            yield what, label, f"label_f1{name}", 200 * sums["matched"] / (sums["gold"] + sums["predicted"])


def _tops(source: AttributionSource, attribution: SpanAttribution, heads: dict[str, int]) -> Iterator[Row]:
    """Yield the number of each label's head, and how often it leads spans of the label, against all spans (lift)."""
    top = attribution.contributions.top(source.top_norm)
    for label, head in heads.items():
        share = 100 * (top[attribution.contributions.labelled(label)] == head).mean()
        overall = 100 * (top == head).mean()
        yield TRAINED, label, "head", head
        yield TRAINED, label, "top_share", share
        yield TRAINED, label, "top_share_of_all", overall
        yield TRAINED, label, "lift", share / overall if overall else np.nan


def _head_words(gold: Sequence[Sentence], attribution: SpanAttribution, heads: dict[str, int]) -> Iterator[Row]:
    """Yield in how many spans of a label the most attended word of the span is its head word by the dependencies, in percent.

    The rows are for the label's head, for the mean and the best of the other heads, and by chance. Spans have two words or
    more. If k words have the same attention, each counts 1/k. Sentences whose two layers are not one tree are left out.
    """
    words = [_head_of(sentence) for sentence in gold]
    hits: dict[str, list[np.ndarray]] = {label: [] for label in heads}
    chance: dict[str, list[float]] = {label: [] for label in heads}
    for b, (start, end, label), weights in attribution.attention:
        if label in hits and end - start > 1 and (start, end) in words[b]:
            best = np.isclose(weights, weights.max(-1, keepdims=True), rtol=1e-6, atol=0)
            hits[label].append(best[:, words[b][start, end] - 1 - start] / best.sum(-1))
            chance[label].append(1 / (end - start))
    for label, head in heads.items():
        if hits[label]:
            shares = 100 * np.mean(hits[label], axis=0)
            others = np.delete(shares, head)
            yield TRAINED, label, "on_head_word", shares[head]
            yield TRAINED, label, "on_head_word_chance", 100 * float(np.mean(chance[label]))
            if len(others):
                yield TRAINED, label, "on_head_word_other_heads", others.mean()
                yield TRAINED, label, "on_head_word_best_other", others.max()


def _head_of(sentence: Sentence) -> dict[tuple[int, int], int]:
    try:
        return {(span.start, span.end): span.head for span in to_joint(sentence)}
    except JointError:
        return {}


def _probes(source: AttributionSource, gold: Sequence[Sentence], rounds: int) -> Iterator[Row]:
    """Yield what the shared probes measure on all heads at once: means over gold spans of two words or more."""
    spans = [[(c.start, c.end, c.label) for c in s.constituents if c.end - c.start > 1] for s in gold]
    tables = []
    for first in range(0, len(gold), VIEWED):
        part = slice(first, first + VIEWED)
        if any(spans[part]):
            view = source.view(gold[part], spans=spans[part], examples=range(len(gold))[part])
            tables.append(ask(view, rounds))
    if not tables:
        raise LalkitError("no constituent has two words", remedy="Probe more sentences.")
    table = pd.concat(tables)
    for name, values in table.groupby("measure", sort=False)["value"]:
        yield "probe", "", name, values.mean()
    erased = table.loc[table["measure"] == "erased", "value"]
    yield "probe", "", "never_erased", (erased == 1).mean()
