"""The data of the classifiers: three corpora of NLTK, and texts of one's own.

| name                    | from                  | train / dev / test | stands for the paper's |
|-------------------------|-----------------------|--------------------|------------------------|
| sentence_polarity       | NLTK                  | 8 : 1 : 1, ours    | SST (they overlap)     |
| subjectivity            | NLTK                  | 8 : 1 : 1, ours    | 20News, Tweets         |
| movie_reviews           | NLTK, first 200 words | 8 : 1 : 1, ours    | IMDB                   |

A folder has train, dev and test as .csv, .tsv or .jsonl files with the columns text and label, and question for pairs. So bAbI,
SNLI, QQP and others can be given, once their columns have these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lalkit.errors import CorpusError
from lalkit.studies.frame import json_lines


@dataclass(frozen=True)
class Example:
    """One text with its class. Raises CorpusError for an empty text, or for tags that do not fit the words.

    words: the text, on which attention is; tags: a universal part of speech for every word, or nothing.
    """

    words: tuple[str, ...]
    label: str
    question: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.words or self.tags and len(self.tags) != len(self.words):
            problem = f"a text of {len(self.words)} words with {len(self.tags)} tags: {' '.join(self.words[:8])}"
            raise CorpusError(problem, remedy="Leave an empty text out, and give one tag for each word, or none.")


@dataclass(frozen=True)
class Texts:
    """Three parts, and the classes of the training part.

    Raises CorpusError for an empty part, for fewer than two classes, for a class that only dev or test have, and if only some
    examples have a question.
    """

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]

    def __post_init__(self):
        for part in ("train", "dev", "test"):
            examples, problem = getattr(self, part), ""
            if not examples:
                problem = "is empty"
            elif len({bool(example.question) for example in (*examples, self.train[0])}) > 1:
                problem = "has a question with some examples only"
            elif unknown := {example.label for example in examples} - set(self.classes):
                problem = f"has the class {min(unknown)!r}, which train does not have"
            elif len(self.classes) < 2:
                problem = f"has one class only, {self.classes[0]!r}"
            if problem:
                raise CorpusError(f"the part {part} {problem}", where=self.name, remedy="Give other examples.")

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted({example.label for example in self.train}))


def split(name: str, examples: Iterable[Example]) -> Texts:
    """Split examples 8 : 1 : 1 at random, in the same way for every seed of a study. A repeated example counts once."""
    once = list(dict.fromkeys(examples))
    order = np.random.default_rng(0).permutation(len(once))
    tenth = round(0.1 * len(once))
    tested, chosen, trained = (tuple(once[i] for i in part) for part in np.split(order, [tenth, 2 * tenth]))
    return Texts(name, trained, chosen, tested)


def shorten(data: Texts, words: int = 0, train: int = 0, dev: int = 0, test: int = 0) -> Texts:
    """Keep the first `words` words of every text, and the first examples of each part. 0 means all."""

    def cut(e: Example) -> Example:
        most = words or len(e.words)
        return replace(e, words=e.words[:most], tags=e.tags[:most])

    sizes = {"train": train, "dev": dev, "test": test}
    parts = {part: tuple(map(cut, getattr(data, part)[: size or None])) for part, size in sizes.items()}
    return Texts(data.name, **parts)


# ---------------------------------------------------------------- universal parts of speech (Petrov et al. 2012)

UNIVERSAL = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
_PENN = {
    "NOUN": "NN NNS NNP NNPS", "VERB": "VB VBD VBG VBN VBP VBZ MD", "ADJ": "JJ JJR JJS", "ADV": "RB RBR RBS WRB",
    "PRON": "PRP PRP$ WP WP$", "DET": "DT EX PDT WDT", "ADP": "IN", "NUM": "CD", "CONJ": "CC", "PRT": "RP TO POS",
    ".": ". , : `` '' # $ -LRB- -RRB- ( ) -NONE-",
}  # fmt: skip
OF_UD = {
    "PROPN": "NOUN", "AUX": "VERB", "PUNCT": ".", "SYM": ".", "PART": "PRT", "CCONJ": "CONJ", "SCONJ": "ADP", "INTJ": "X",
}  # fmt: skip
OF_PENN = {penn: tag for tag, several in _PENN.items() for penn in several.split()}


def universal(penn: str) -> str:
    """Return the universal tag of a Penn tag. A tag that is not in the table (FW, LS, SYM, UH and unknown ones) has X."""
    return OF_PENN.get(penn, "X")


def of_dependencies(tag: str) -> str:
    """Return the universal tag (one of twelve) of a tag of Universal Dependencies (one of seventeen)."""
    return OF_UD.get(tag, tag if tag in UNIVERSAL else "X")


def tagged(examples: Sequence[Any]) -> list[Any]:
    """Return the examples, or documents, with tags. Tags that are there stay, others come from NLTK's tagger.

    Raises CorpusError if the tagger is needed and is not on this machine.
    """
    if all(example.tags for example in examples):
        return list(examples)
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger()
    except LookupError:
        remedy = "Get it with: python -m nltk.downloader averaged_perceptron_tagger_eng"
        raise CorpusError("NLTK's tagger is not on this machine", remedy=remedy) from None
    return [
        example if example.tags else replace(example, tags=tuple(universal(t) for _, t in tagger.tag(example.words)))
        for example in examples
    ]


# ---------------------------------------------------------------- data by name, and folders

NLTK = ("sentence_polarity", "subjectivity", "movie_reviews")


def load(name: str) -> Texts:
    """Return a data set. Raises CorpusError if it is unknown, not on this machine, or damaged."""
    if Path(name).is_dir():
        return _folder(Path(name))
    if name not in NLTK:
        raise CorpusError(f"there are no data {name!r}", remedy=f"Give one of {', '.join(NLTK)}, or a folder of files.")
    from nltk import corpus

    try:
        reader = getattr(corpus, name)
        if name == "movie_reviews":
            documents = [Example(tuple(reader.words(file)), file.split("/")[0]) for file in reader.fileids()]
            return shorten(split(name, documents), words=200)
        return split(name, [Example(tuple(s), c) for c in reader.categories() for s in reader.sents(categories=c) if s])
    except LookupError:
        remedy = f"Get it with: python -m nltk.downloader {name}   (or set NLTK_DATA to the folder that has it)"
        raise CorpusError(f"NLTK's corpus {name} is not on this machine", remedy=remedy) from None


def _folder(folder: Path) -> Texts:
    """Read a folder of tables, one for each part."""
    parts = {}
    for part in ("train", "dev", "test"):
        files = [file for ending in ("csv", "tsv", "jsonl") for file in folder.glob(f"{part}.{ending}")]
        if len(files) != 1:
            remedy = f"Give {part}.csv, {part}.tsv or {part}.jsonl, one of them."
            raise CorpusError(f"has {len(files)} files for {part}", where=str(folder), remedy=remedy)
        parts[part] = tuple(_examples(files[0]))
    return Texts(folder.name, **parts)


def _examples(file: Path) -> Iterator[Example]:
    """Yield the rows of a table as examples, in small letters. Raises CorpusError that names the file, and the row."""
    from nltk.tokenize import TreebankWordTokenizer

    table = pd.DataFrame([row for _, row in json_lines(file)]) if file.suffix == ".jsonl" else None
    try:
        if table is None:
            table = pd.read_csv(file, sep="," if file.suffix == ".csv" else "\t", dtype=str, keep_default_na=False)
        columns = ["label", "text"] + ["question"] * ("question" in table)
        rows = table[columns].fillna("").astype(str)
    except (KeyError, OSError, ValueError) as error:  # a column is missing, or it is not UTF-8, or not a table
        problem, remedy = (
            " ".join(str(error).split()),
            "Give a complete table in UTF-8 with the columns text and label.",
        )
        raise CorpusError(f"cannot be read ({problem})", where=str(file), remedy=remedy) from None
    for number, (label, *sides) in enumerate(rows.itertuples(index=False, name=None), 1):
        words = [tuple(w.lower() for w in TreebankWordTokenizer().tokenize(side)) for side in sides]
        if not label or not all(words):
            where = f"{file}, row {number}"
            raise CorpusError(f"lacks {' or '.join(columns)}", where=where, remedy="Complete the row, or leave it out.")
        yield Example(words[0], label, *words[1:])
