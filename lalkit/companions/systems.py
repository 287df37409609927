"""Three systems under the same probes: the label attention of a parser, the attention of LSTM classifiers, a summarizer's heads.

Each function `of_` returns the long table of `probes.perturbation.probe_all`, and `overview` of all of them has a row for each
system. Tags are the twelve universal ones in every system, so that POS-KL means the same. Each function `faithful_` returns the
long table of `lalkit.probes.removal.faithfulness`, for its `areas` and, if the truth is known, its `grades`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lalkit.api import Parser
from lalkit.chart.machine import progress
from lalkit.companions.classifiers import classifier, classifier_study, text_corpora
from lalkit.companions.classifiers.classifier import Classifier
from lalkit.companions.classifiers.classifier_training import load_classifier
from lalkit.companions.classifiers.examples import UNIVERSAL, Example, of_dependencies, shorten, universal
from lalkit.companions.classifiers.examples import Dataset as Texts
from lalkit.companions.frame import exact, in_order, pad
from lalkit.companions.summarizers import summarizer, summarizer_study
from lalkit.companions.summarizers.documents import Dataset as News
from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.documents import load as load_news
from lalkit.companions.summarizers.summarizer import Summarizer
from lalkit.companions.summarizers.summarizer_training import load_summarizer
from lalkit.interpret.span_layer import STRIDE, SpanLayer
from lalkit.probes.attribution import METHODS, attribute
from lalkit.probes.perturbation import overview, permutation_tvd, probe_all
from lalkit.probes.removal import TRUTH, areas, by_weights, faithfulness, grades
from lalkit.probes.view import AttentionView, tidy
from lalkit.probes.weights import conicity, pool_queries
from lalkit.treebank.tree import Sentence

SIZE = 20  # sentences in a batch


def of_parser(parser: Parser, sentences: Sequence[Sentence], rounds: int = 100, name: str = "parser") -> pd.DataFrame:
    """Probe all heads of the label attention together. They decide the labels of the spans.

    The sentences have Penn tags; they become universal ones. With label attention inside the span, a unit is a span with its
    words. The examples of the table are the sentences anyway.
    """
    all_tags, inside, tables = [[universal(tag) for tag in s.tags] for s in sentences], _inside(parser), []
    for seen in _views(parser, sentences):
        cut = [(e // STRIDE, e % STRIDE // 1000, e % 1000) if inside else (e, 0, None) for e in seen.examples]
        tags = numbers([all_tags[i][a:b] for i, a, b in cut], seen.weights.shape[-1], first=0 if inside else 1)
        table = probe_all(seen, rounds, tags, len(UNIVERSAL), system=name, seed=parser.config.train.seed)
        tables.append(table.assign(example=table["example"] // STRIDE) if inside else table)
    return pd.concat(tables, ignore_index=True)


def of_heads(parser: Parser, sentences: Sequence[Sentence], rounds: int = 20, name: str = "parser") -> pd.DataFrame:
    """Measure each label head alone: how similar the vectors are that it mixes, and what permuting its attention changes.

    Returns: system, seed, head, conicity and tvd (of the labels of spans), means over sentences. The first companion paper
        expects a low tvd where conicity is high.
    """
    tables: list[pd.DataFrame] = []
    for seen in _views(parser, sentences):
        alike = conicity(seen.values, seen.key_mask, absolute=True)
        moved = torch.stack([permutation_tvd(seen, rounds, heads=[h]).nanmean(-1) for h in range(len(seen.heads))], 1)
        tables += [tidy(alike, "bh", "conicity", seen), tidy(moved, "bh", "tvd", seen)]
    means = pd.concat(tables).groupby(["head", "measure"])["value"].mean().unstack("measure").reset_index()
    means.insert(0, "system", name)
    means.insert(1, "seed", parser.config.train.seed)
    return means


def of_classifier(
    model: Classifier, examples: Sequence[Example], rounds: int = 100, name: str = "classifier"
) -> pd.DataFrame:
    """Probe the one head of a classifier, which decides the class. Tags: universal ones."""
    seen = classifier.view(exact(model), model.vocabulary.collate(examples))
    tags = numbers([example.tags for example in examples], seen.weights.shape[-1])
    return probe_all(seen, rounds, tags, len(UNIVERSAL), system=name, seed=model.config.seed)


def of_summarizer(
    model: Summarizer, documents: Sequence[Document], rounds: int = 100, name: str = "summarizer"
) -> pd.DataFrame:
    """Probe every block of heads, with all heads of a block together, and the copying alone.

    They decide the words of the true summary, each given those before it. Tags: those of Universal Dependencies.
    """
    batch = model.collate(documents)
    rows = [[of_dependencies(t) for t in d.tags or ()] for d in documents]
    tags = numbers(rows, batch.source.shape[1], device=batch.source.device)
    tables = [
        probe_all(seen, rounds, tags, len(UNIVERSAL), system=f"{name}, {block}", seed=model.config.seed)
        for block, seen in summarizer.views(exact(model), batch)
    ]
    return pd.concat(tables, ignore_index=True)


def faithful_parser(parser: Parser, sentences: Sequence[Sentence], name: str = "parser") -> pd.DataFrame:
    """Measure how faithful rankings of words are to the labels of spans. Intervals are over sentences.

    With label attention inside the span, the head of a span's label is asked. There the truth is known: a word adds its term,
    attention times evidence, to the label's score. Words are removed in two ways: as always, so that the weights of the others
    sum to 1, and so that the terms of the others stay ("terms"). The two ways can prefer different words, because only in the
    second a term is what a word adds. With the paper's layer, the ranking is by the mean attention of all heads.
    """
    tables, seed = [], parser.config.train.seed
    for seen in _views(parser, sentences):
        if not _inside(parser):
            tables.append(faithfulness(seen, {"attention": _mean_attention(seen)}, system=name, seed=seed))
            continue
        decision = seen.predict(seen.weights).decision[:, 0]
        spans, heads = torch.arange(len(decision)), (decision - 1).clamp(min=0)
        attention, evidence = seen.weights[spans, heads, 0], seen.values[spans, heads, :, 0]
        rankings = {"attention": attention, "evidence": evidence, "terms": attention * evidence}
        texts = [example // STRIDE for example in seen.examples]
        # Where no label is best, there is none to explain.
        labelled = torch.tensor(seen.examples)[decision > 0].tolist()
        for way, p in ((name, by_weights(seen)), (f"{name}, terms", by_weights(seen, normalised=False))):
            table = faithfulness(seen, rankings, p, attention * evidence, texts, way, seed)
            tables.append(table[table["example"].isin(labelled)])
    return pd.concat(tables, ignore_index=True)


def faithful_classifier(model: Classifier, examples: Sequence[Example], name: str = "classifier") -> pd.DataFrame:
    """Measure how faithful attention and gradients (times the input) are to the class. Words are taken out of the text."""
    model = exact(model)
    batch = model.vocabulary.collate(examples)
    seen, every = classifier.view(model, batch), torch.arange(len(examples))
    rankings, decision = {"attention": seen.weights[:, 0, 0]}, seen.predict(seen.weights).decision
    for method in METHODS:
        given = classifier.from_words(model, batch), model.words(batch.x), decision, method, every
        rankings[method] = attribute(*given)[:, 0]
    return faithfulness(seen, rankings, classifier.by_words(model, batch), system=name, seed=model.config.seed)


def faithful_summarizer(model: Summarizer, documents: Sequence[Document], name: str = "summarizer") -> pd.DataFrame:
    """Measure how faithful the mean attention of each block, and of the copying, is to the words of the true summary."""
    tables = [
        faithfulness(seen, {"attention": _mean_attention(seen)}, system=f"{name}, {block}", seed=model.config.seed)
        for block, seen in summarizer.views(exact(model), model.collate(documents))
    ]
    return pd.concat(tables, ignore_index=True)


def compare(systems: Iterable[tuple[str, Any, Sequence]], rounds: int = 100) -> dict[str, pd.DataFrame]:
    """Apply the same probes to all systems, and return the tables of notebook 19.

    Args:
        systems: The name of each, such as "LSTM, vanilla"; a parser, a classifier or a summarizer; and its texts. Several seeds
            of a system have one name. What stands before the comma is its group.
        rounds: Number of permutations.

    Returns: systems, a row for each system and seed (see `overview`); systems-faithful, the `areas` over all seeds;
        systems-grades, the `grades` of the systems that know their truth; and systems-heads, `of_heads` of the parsers with the
        paper's layer, with a quarter of the permutations, since there are so many heads.
    """
    probed, removed, heads = [], [], [pd.DataFrame(columns=["system", "seed", "head", "conicity", "tvd"])]
    for name, model, texts in progress(systems, desc="systems", unit="system"):
        asked, faithful = next(how for kind, how in ASKED.items() if isinstance(model, kind))
        probed.append(asked(model, texts, rounds, name))
        removed.append(faithful(model, texts, name))
        if isinstance(model, Parser) and not _inside(model):
            heads.append(of_heads(model, texts, max(1, rounds // 4), name))
    seen, lost = (pd.concat(tables, ignore_index=True) for tables in (probed, removed))
    rows = [overview(table).assign(seed=seed) for (_, seed), table in seen.groupby(["system", "seed"], sort=False)]
    table = pd.concat(rows, ignore_index=True)
    known = lost["system"].isin(lost["system"][lost["measure"] == TRUTH])
    table["group"] = table["system"].str.partition(",")[0]
    heads = pd.concat(heads[1:] or heads, ignore_index=True)
    return {
        "systems": table, "systems-faithful": areas(lost), "systems-grades": grades(lost[known]), "systems-heads": heads,
    }  # fmt: skip


ASKED: dict[type, tuple[Callable[..., pd.DataFrame], Callable[..., pd.DataFrame]]] = {
    Parser: (of_parser, faithful_parser),
    Classifier: (of_classifier, faithful_classifier),
    Summarizer: (of_summarizer, faithful_summarizer),
}


def _views(parser: Parser, sentences: Sequence[Sentence]) -> Iterator[AttentionView]:
    """Yield the views of groups of sentences of similar length. Sentences keep their numbers."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    yield from (parser.view([sentences[i] for i in group], examples=group) for group in in_order(order, SIZE))


def _inside(parser: Parser) -> bool:
    return isinstance(parser.attribution, SpanLayer)


def _mean_attention(view: AttentionView) -> Tensor:
    """Return what each key gets from all heads and queries together, [B, T]."""
    return pool_queries(view.weights, view.query_mask, view.key_mask).mean(1)


def numbers(rows: Sequence[Sequence[str]], length: int, first: int = 0, device: torch.device | None = None) -> Tensor:
    """Return the places of tags in UNIVERSAL, [B, length], from position `first` on; -1 where there is no word, or no tag."""
    return pad([[-1] * first + [UNIVERSAL.index(tag) for tag in row] for row in rows], length, -1, device)


def trained_classifier(
    folder: str | Path, data: str, kind: str, seed: int, size: int = 0, epochs: int = 0
) -> tuple[Classifier, Texts]:
    """Return a classifier and its data with tags. It is trained in FOLDER/DATA/KIND-SEED, unless it is there already.

    size: number of training examples; epochs: of the training. 0 means all, or the usual number.
    """
    known = classifier_study.with_tags(shorten(text_corpora.load(data), train=size))
    return load_classifier(classifier_study.trained(folder, known, kind, seed, epochs)), known


def trained_summarizer(
    folder: str | Path, variant: str, seed: int, size: int = 0, dev: int = 0, epochs: int = 0
) -> tuple[Summarizer, News]:
    """Return a summarizer of a variant of the study, and the news. It is trained as by `trained_classifier`."""
    news = summarizer_study.shorten(load_news("news"), summarizer_study.Size(train=size, dev=dev))
    config = replace(summarizer.SMALL, epochs=epochs or summarizer.SMALL.epochs)
    return load_summarizer(summarizer_study.trained(folder, news, variant, seed, config)), news
