"""The three systems under the same probes: label attention of a parser, attention of LSTM classifiers, heads of a summarizer.

Each function gives the long table of `lalkit.probes.tables.probe_all`; put together, `overview` has a row for each. Tags are the
twelve universal ones in all of them, so that POS-KL means the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lalkit.api import Parser
from lalkit.companions.classifiers.classifier import Classifier, usual
from lalkit.companions.classifiers.classifier import exact as exact_classifier
from lalkit.companions.classifiers.classifier import view as classifier_view
from lalkit.companions.classifiers.classifier_study import with_tags
from lalkit.companions.classifiers.classifier_training import load_classifier
from lalkit.companions.classifiers.classifier_training import train as train_classifier
from lalkit.companions.classifiers.examples import UNIVERSAL, Example, of_dependencies, universal
from lalkit.companions.classifiers.examples import Dataset as Examples
from lalkit.companions.classifiers.examples import shorten as shorten_examples
from lalkit.companions.classifiers.text_corpora import load as load_examples
from lalkit.companions.summarizers.documents import Dataset as Documents
from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.documents import load as load_documents
from lalkit.companions.summarizers.summarizer import COPY, Summarizer, SummarizerConfig
from lalkit.companions.summarizers.summarizer import exact as exact_summarizer
from lalkit.companions.summarizers.summarizer import view as summarizer_view
from lalkit.companions.summarizers.summarizer_study import VARIANTS, Size
from lalkit.companions.summarizers.summarizer_study import shorten as shorten_documents
from lalkit.companions.summarizers.summarizer_training import load_summarizer
from lalkit.companions.summarizers.summarizer_training import train as train_summarizer
from lalkit.probes.tables import probe_all
from lalkit.treebank.tree import Sentence


def of_parser(parser: Parser, sentences: Sequence[Sentence], rounds: int = 100, name: str = "parser") -> pd.DataFrame:
    """The label attention, all heads at once; it decides the labels of the parse's spans. Tags: Penn's."""
    seen = parser.view(sentences)
    tags = numbers([[universal(tag) for tag in s.tags] for s in sentences], seen.weights.shape[-1], first=1)
    return probe_all(seen, rounds, tags, len(UNIVERSAL), system=name)


def of_classifier(model: Classifier, examples: Sequence[Example], rounds: int = 100) -> pd.DataFrame:
    """Its one head, which decides the class. Tags: universal ones."""
    batch = model.vocabulary.collate(examples)
    seen = classifier_view(exact_classifier(model), batch)
    tags = numbers([example.tags for example in examples], seen.weights.shape[-1])
    return probe_all(seen, rounds, tags, len(UNIVERSAL), system=f"LSTM, {model.config.model}", seed=model.config.seed)


def of_summarizer(
    model: Summarizer, documents: Sequence[Document], rounds: int = 100, name: str = "summarizer"
) -> pd.DataFrame:
    """Every block of heads, all of a block at once, and the copying alone; they decide the words of the true summary, each given
    those before it. Tags: those of Universal Dependencies."""
    batch, parts = model.vocabulary.collate(documents, model.config), []
    tags = numbers([[of_dependencies(t) for t in d.tags or ()] for d in documents], batch.source.shape[1])
    model = exact_summarizer(model)
    for block in (*model.blocks, COPY):
        seen = summarizer_view(model, batch, block)
        labels = {"system": f"{name}, {block}", "seed": model.config.seed}
        parts.append(probe_all(seen, rounds, tags, len(UNIVERSAL), **labels))
    return pd.concat(parts, ignore_index=True)


def numbers(rows: Sequence[Sequence[str]], length: int, first: int = 0) -> Tensor:
    """[B, length]: places in UNIVERSAL, from position `first` on; -1 where there is no word, or no tag is known."""
    found = torch.full((len(rows), length), -1)
    for i, row in enumerate(rows):
        known = [UNIVERSAL.index(tag) for tag in row][: length - first]
        found[i, first : first + len(known)] = torch.tensor(known, dtype=torch.long)
    return found


def trained_classifier(
    folder: str | Path, data: str, kind: str, seed: int, size: int = 0, epochs: int = 0
) -> tuple[Classifier, Examples]:
    """(a classifier, its data with tags), trained in folder/DATA/KIND-SEED unless it is there; size, epochs: 0: all, the usual
    number."""
    known = with_tags(shorten_examples(load_examples(data), train=size))
    config = usual(known.name, kind, seed)
    run = Path(folder) / known.name / f"{kind}-{seed}"
    train_classifier(replace(config, epochs=epochs or config.epochs), known, run, resume=True)
    return load_classifier(run), known


def trained_summarizer(
    folder: str | Path, variant: str, seed: int, size: int = 0, dev: int = 0, epochs: int = 0
) -> tuple[Summarizer, Documents]:
    """(a summarizer of a variant of `lalkit.companions.summarizers.summarizer_study`, the news), as `trained_classifier`."""
    news = shorten_documents(load_documents("news"), Size(train=size, dev=dev))
    config = replace(SummarizerConfig(), seed=seed, **VARIANTS[variant])
    run = Path(folder) / news.name / f"{variant}-{seed}"
    train_summarizer(replace(config, epochs=epochs or config.epochs), news, run, resume=True)
    return load_summarizer(run), news
