"""One parser under all controls: rows of (what, label, measure, value), and the counts that tests are made of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lalkit.api import Parser
from lalkit.breakdown import by_label
from lalkit.errors import JointError, LalkitError
from lalkit.evalb import COLLINS
from lalkit.evaluate import Evaluation, evaluate
from lalkit.heads.kinds import InsideHeads, PaperHeads, kind_of
from lalkit.interpret.controls import words_kept
from lalkit.predict import predict
from lalkit.probes.tables import ask
from lalkit.treebank.joint import to_joint
from lalkit.treebank.trainable import subset
from lalkit.treebank.tree import Sentence

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
