"""Three systems under the same probes: the label attention of a parser, the attention of LSTM classifiers, a summarizer's heads.

Each function returns the long table of `lalkit.probes.tables.probe_all`. `overview` of all of them has a row for each system.
Tags are the twelve universal ones in every system, so that POS-KL means the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from torch import Tensor

from lalkit.companions.classifiers import classifier, classifier_study, text_corpora
from lalkit.companions.classifiers.classifier_training import load_classifier
from lalkit.companions.classifiers.examples import UNIVERSAL, Example, of_dependencies, shorten, universal
from lalkit.companions.classifiers.examples import Dataset as Texts
from lalkit.companions.frame import pad
from lalkit.companions.summarizers import summarizer, summarizer_study
from lalkit.companions.summarizers.documents import Dataset as News
from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.documents import load as load_news
from lalkit.companions.summarizers.summarizer_training import load_summarizer
from lalkit.probes.tables import probe_all
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    from lalkit.api import Parser


def of_parser(parser: Parser, sentences: Sequence[Sentence], rounds: int = 100, name: str = "parser") -> pd.DataFrame:
    """Probe all heads of the label attention together. They decide the labels of the spans. Tags: those of Penn."""
    seen = parser.view(sentences)
    tags = numbers([[universal(tag) for tag in s.tags] for s in sentences], seen.weights.shape[-1], first=1)
    return probe_all(seen, rounds, tags, len(UNIVERSAL), system=name)


def of_classifier(model: classifier.Classifier, examples: Sequence[Example], rounds: int = 100) -> pd.DataFrame:
    """Probe the one head of a classifier, which decides the class. Tags: universal ones."""
    seen = classifier.view(classifier.exact(model), model.vocabulary.collate(examples))
    tags = numbers([example.tags for example in examples], seen.weights.shape[-1])
    return probe_all(seen, rounds, tags, len(UNIVERSAL), system=f"LSTM, {model.config.model}", seed=model.config.seed)


def of_summarizer(
    model: summarizer.Summarizer, documents: Sequence[Document], rounds: int = 100, name: str = "summarizer"
) -> pd.DataFrame:
    """Probe every block of heads, with all heads of a block together, and the copying alone.

    They decide the words of the true summary, each given those before it. Tags: those of Universal Dependencies.
    """
    batch, tables = model.vocabulary.collate(documents, model.config), []
    tags = numbers([[of_dependencies(t) for t in d.tags or ()] for d in documents], batch.source.shape[1])
    model = summarizer.exact(model)
    for block in (*model.blocks, summarizer.COPY):
        seen = summarizer.view(model, batch, block)
        labels = {"system": f"{name}, {block}", "seed": model.config.seed}
        tables.append(probe_all(seen, rounds, tags, len(UNIVERSAL), **labels))
    return pd.concat(tables, ignore_index=True)


def numbers(rows: Sequence[Sequence[str]], length: int, first: int = 0) -> Tensor:
    """Return the places of tags in UNIVERSAL, [B, length], from position `first` on; -1 where there is no word, or no tag."""
    return pad([[UNIVERSAL.index(tag) for tag in row] for row in rows], length, -1, first)


def trained_classifier(
    folder: str | Path, data: str, kind: str, seed: int, size: int = 0, epochs: int = 0
) -> tuple[classifier.Classifier, Texts]:
    """Return a classifier and its data with tags. It is trained in FOLDER/DATA/KIND-SEED, unless it is there already.

    size: number of training examples; epochs: of the training. 0 means all, or the usual number.
    """
    known = classifier_study.with_tags(shorten(text_corpora.load(data), train=size))
    return load_classifier(classifier_study.trained(folder, known, kind, seed, epochs)), known


def trained_summarizer(
    folder: str | Path, variant: str, seed: int, size: int = 0, dev: int = 0, epochs: int = 0
) -> tuple[summarizer.Summarizer, News]:
    """Return a summarizer of a variant of the study, and the news. It is trained as by `trained_classifier`."""
    news = summarizer_study.shorten(load_news("news"), summarizer_study.Size(train=size, dev=dev))
    return load_summarizer(summarizer_study.trained(folder, news, variant, seed, epochs)), news
