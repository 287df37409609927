"""Three systems under the same probes: the label attention of a parser, the attention of LSTM classifiers, a summarizer's heads.

Every system is seen as one or more attention views. Tags are the twelve universal ones in every system, so that POS-KL means the
same. A ranking of words is faithful if the decision depends on its first words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lalkit.api import Parser
from lalkit.chart.machine import progress
from lalkit.interpret.span_layer import STRIDE, SpanLayer
from lalkit.network.batches import pad
from lalkit.probes.perturbation import overview, probe_all
from lalkit.probes.rankings import METHODS, TRUTH, Kept, areas, attribute, by_weights, faithfulness, grades
from lalkit.probes.view import AttentionView
from lalkit.probes.weights import pool_queries
from lalkit.studies import classifiers, summarizer_heads, summarizers
from lalkit.studies.classifiers import Classifier
from lalkit.studies.frame import exact, in_order
from lalkit.studies.label_heads import name_and_place
from lalkit.studies.summarizers import Summarizer, SummarizerConfig
from lalkit.studies.texts import OF_PENN, OF_UD, UNIVERSAL, Text, load, news
from lalkit.treebank.corpora import load as load_treebank
from lalkit.treebank.tree import Sentence

SIZE = 20  # sentences in a batch


@dataclass(frozen=True)
class Seen:
    """One attention of a system, and the rankings of words whose faithfulness is measured.

    name: of the system; tags [B, T]: places in UNIVERSAL, or -1; rankings: names and scores [B, T]; ways: what is added to the
    name, and how words are removed; truth [B, T]: the known attribution; texts: the number of each example's text, if several
    examples are of one text; explained: the examples whose decision can be explained (empty: all).
    """

    name: str
    seed: int
    view: AttentionView
    tags: Tensor
    rankings: Mapping[str, Tensor]
    ways: Mapping[str, Kept | None] = field(default_factory=lambda: {"": None})
    truth: Tensor | None = None
    texts: Sequence[int] = ()
    explained: Sequence[int] = ()


def compare(systems: Iterable[tuple[str, Any, Sequence]], rounds: int = 100) -> dict[str, pd.DataFrame]:
    """Apply the same probes to all systems, and return the tables of notebook 19.

    Args:
        systems: The name of each, such as "LSTM, vanilla"; a parser, a classifier or a summarizer; and its texts. Several seeds
            of a system have one name. The part before the comma is its group.
        rounds: Number of permutations.

    Returns: systems, a row for each system and seed (see `overview`); systems-faithful, the `areas` over all seeds; and
        systems-grades, the `grades` of the systems that know their truth.
    """
    probed, removed = [], []
    for name, model, texts in progress(systems, desc="systems", unit="system"):
        for seen in VIEWS[type(model)](name, model, texts):
            found = probe_all(seen.view, rounds, seen.tags, len(UNIVERSAL), system=seen.name, seed=seen.seed)
            probed.append(found.assign(example=found["example"].replace(dict(zip(seen.view.examples, seen.texts)))))
            for way, p in seen.ways.items():
                lost = faithfulness(seen.view, seen.rankings, p, seen.truth, seen.texts, seen.name + way, seen.seed)
                removed.append(lost[lost["example"].isin(seen.explained)] if seen.explained else lost)
    found, lost = (pd.concat(tables, ignore_index=True) for tables in (probed, removed))
    rows = [overview(table).assign(seed=seed) for (_, seed), table in found.groupby(["system", "seed"], sort=False)]
    table = pd.concat(rows, ignore_index=True)
    table["group"] = table["system"].str.partition(",")[0]
    known = lost["system"].isin(lost["system"][lost["measure"] == TRUTH])
    return {"systems": table, "systems-faithful": areas(lost), "systems-grades": grades(lost[known])}


# ---------------------------------------------------------------- the three kinds of systems


def of_parser(name: str, parser: Parser, sentences: Sequence[Sentence]) -> Iterator[Seen]:
    """Yield groups of sentences of similar length. All label heads together decide the labels of the spans.

    With label attention inside the span, an example is a span with its words, and the head of the span's label is asked. There
    the truth is known: a word adds its term, attention times evidence, to the label's score. Words are removed in two ways: as
    always, so that the weights of the others sum to 1, and so that the terms of the others stay ("terms"). The two ways can
    prefer different words, because only in the second a term is what a word adds. With the paper's layer, the ranking is by the
    mean attention of all heads. The sentences have Penn tags; they become universal ones.
    """
    tags, seed = [[OF_PENN.get(tag, "X") for tag in s.tags] for s in sentences], parser.config.train.seed
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for group in in_order(order, SIZE):
        view = parser.view([sentences[i] for i in group], examples=group)
        if not isinstance(parser.attribution, SpanLayer):
            rows = [tags[i] for i in view.examples]
            yield Seen(name, seed, view, numbers(rows, view.weights.shape[-1], 1), {"attention": _mean_attention(view)})
            continue
        rows = [tags[e // STRIDE][e % STRIDE // 1000 : e % 1000] for e in view.examples]
        decision = view.predict(view.weights).decision[:, 0]
        spans, heads = torch.arange(len(decision)), (decision - 1).clamp(min=0)
        attention, evidence = view.weights[spans, heads, 0], view.values[spans, heads, :, 0]
        yield Seen(
            name, seed, view, numbers(rows, view.weights.shape[-1]),
            {"attention": attention, "evidence": evidence, "terms": attention * evidence},
            {"": by_weights(view), ", terms": by_weights(view, normalised=False)}, attention * evidence,
            [example // STRIDE for example in view.examples],
            # Where no label is best, there is none to explain.
            torch.tensor(view.examples)[decision > 0].tolist() or [-1],
        )  # fmt: skip


def of_classifier(name: str, model: Classifier, texts: Sequence[Text]) -> Iterator[Seen]:
    """Yield the one head of a classifier, which decides the class. Words are taken out of the text itself."""
    model = exact(model)
    batch = model.collate(texts)
    view, every = classifiers.view(model, batch), torch.arange(len(texts))
    decision, rankings = view.predict(view.weights).decision[:, 0], {"attention": view.weights[:, 0, 0]}
    for method in METHODS:
        given = classifiers.from_words(model, batch), model.words(batch.x), decision, method, every
        rankings[method] = attribute(*given)
    tags = numbers([text.tags for text in texts], view.weights.shape[-1])
    yield Seen(name, model.config.seed, view, tags, rankings, {"": classifiers.by_words(model, batch)})


def of_summarizer(name: str, model: Summarizer, documents: Sequence[Text]) -> Iterator[Seen]:
    """Yield every block of heads, with all heads of a block together, and the copying alone.

    They decide the words of the true summary, each given those before it.
    """
    model = exact(model)
    batch = model.collate(documents)
    tags = numbers([[OF_UD.get(tag, "X") for tag in d.tags] for d in documents], batch.source.shape[1])
    for block in (*model.blocks, summarizers.COPY):
        view = summarizers.view(model, batch, block)
        yield Seen(f"{name}, {block}", model.config.seed, view, tags, {"attention": _mean_attention(view)})


VIEWS = {Parser: of_parser, Classifier: of_classifier, Summarizer: of_summarizer}


def _mean_attention(view: AttentionView) -> Tensor:
    """Return what each key gets from all heads and queries together, [B, T]."""
    return pool_queries(view.weights, view.query_mask, view.key_mask).mean(1)


def numbers(rows: Sequence[Sequence[str]], length: int, first: int = 0) -> Tensor:
    """Return the places of tags in UNIVERSAL, [B, length], from position `first` on; -1 where there is no word, or no tag."""
    return pad([[-1] * first + [UNIVERSAL.index(tag) for tag in row] for row in rows], length, -1)


# ---------------------------------------------------------------- the study


def study(
    parsers: Sequence[str], kinds: Sequence[str], variants: Sequence[str], seeds: Sequence[int], folder: str | Path, *,
    data: str = "subjectivity", sentences: int = 0, train: int = 0, epochs: int = 0, texts: int = 40, rounds: int = 20,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """Train classifiers and summarizers unless that is done already, and `compare` them with parsers.

    Args:
        parsers: Shipped parsers or folders. They read the dev and test parts of the sample treebank, which they never saw. With
            several seeds of one parser, write NAME=FOLDER.
        kinds, variants: Of classifiers and summarizers, as in their studies.
        folder: Of the trainings.
        data: A data set of the classifiers.
        sentences: Number of sentences for the parsers, the first ones; 0 means all.
        train, epochs: Number of training texts and epochs of classifiers and summarizers; 0 means the usual number.
        texts: Number of test texts of classifiers and summarizers.
        rounds: Number of permutations.
    """

    def systems() -> Iterator[tuple[str, Any, Sequence]]:
        treebank = [s for part in ("dev", "test") for s in load_treebank("sample", part).sentences]
        for name, place in map(name_and_place, parsers):
            yield f"parser, {name or place}", Parser.load(place), treebank[: sentences or None]
        settings = {"epochs": str(epochs)} if epochs else {}
        known = classifiers.with_tags(load(data).shortened(train))
        for kind, seed in product(kinds, seeds):
            run, _ = classifiers.trained(folder, known, kind, seed, settings)
            yield f"LSTM, {kind}", Classifier.load(run), known.test[:texts]
        articles, config = news().shortened(train), SummarizerConfig(epochs=epochs or SummarizerConfig.epochs)
        for variant, seed in product(variants, seeds):
            run = summarizer_heads.trained(folder, articles, variant, seed, config)
            yield f"summarizer, {variant}", Summarizer.load(run), articles.test[:texts]

    return compare(systems(), rounds)
