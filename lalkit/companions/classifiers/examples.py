"""The examples of a classifier: a text, for some tasks a question about it, and the right class.

Texts without parts of speech get universal ones (Petrov et al. 2012) from NLTK's tagger and a table of the Penn tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lalkit.errors import CorpusError


@dataclass(frozen=True)
class Example:
    """One text with its class.

    words: the text, on which attention is; supports: the positions of the facts that give the answer, if the data name them;
    tags: a universal part of speech for every word, or nothing. Raises CorpusError for an empty text, or for tags that do not
    fit the words.
    """

    words: tuple[str, ...]
    label: str
    question: tuple[str, ...] = ()
    supports: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.words:
            raise CorpusError("an empty text: there is nothing to attend to", remedy="Leave it out of the data.")
        if self.tags and len(self.tags) != len(self.words):
            problem = f"{len(self.words)} words with {len(self.tags)} tags: {' '.join(self.words[:8])}"
            raise CorpusError(problem, remedy="Give one tag for each word, or no tags.")


@dataclass(frozen=True)
class Dataset:
    """Three parts, and the classes of the training part.

    extractive: the answer is a word of the text, so a class that the text does not name is impossible [C, for CNN]. Raises
    CorpusError for an empty part, for a class that only dev or test have, and if only some examples have a question.
    """

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    extractive: bool = False

    def __post_init__(self):
        for part in ("train", "dev", "test"):
            examples = getattr(self, part)
            if not examples:
                raise CorpusError(f"the {part} part of {self.name} is empty", remedy="Give it at least one example.")
            if len({bool(example.question) for example in examples} | {self.paired}) > 1:
                problem = f"some examples of {self.name} {part} have a question and others do not"
                raise CorpusError(problem, remedy="Give every example a question, or none of them.")
            unknown = sorted({example.label for example in examples} - set(self.classes))
            if unknown:
                problem = f"the class {unknown[0]!r} is in {part} and not in train: it can never be predicted"
                remedy = "Leave its examples out, or split the data anew."
                raise CorpusError(f"{self.name}: {problem}", remedy=remedy)
        if len(self.classes) < 2:
            problem = f"{self.name} has one class only: {self.classes[0]!r}"
            raise CorpusError(problem, remedy="Add examples of a second class.")

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted({example.label for example in self.train}))

    @property
    def paired(self) -> bool:
        return bool(self.train[0].question)


def split(name: str, examples: Iterable[Example]) -> Dataset:
    """Split examples 8 : 1 : 1 at random, in the same way for every seed of a study. Take a repeated example once."""
    once = list(dict.fromkeys(examples))
    order = np.random.default_rng(0).permutation(len(once))
    tenth = round(0.1 * len(once))
    tested, chosen, trained = (tuple(once[i] for i in part) for part in np.split(order, [tenth, 2 * tenth]))
    return Dataset(name, trained, chosen, tested)


def unseen(examples: Iterable[Example], seen: Sequence[Example]) -> tuple[Example, ...]:
    """Return the examples whose text and question are not among those seen."""
    known = {(example.words, example.question) for example in seen}
    return tuple(example for example in examples if (example.words, example.question) not in known)


def shorten(data: Dataset, words: int = 0, train: int = 0, dev: int = 0, test: int = 0) -> Dataset:
    """Keep the first `words` words of every text, and the first examples of each part. 0 means all.

    In an extractive task, an example is left out if its shorter text no longer contains the answer.
    """

    def cut(e: Example) -> Example:
        most = words or len(e.words)
        return replace(e, words=e.words[:most], supports=tuple(i for i in e.supports if i < most), tags=e.tags[:most])

    sizes = {"train": train, "dev": dev, "test": test}
    parts = {part: map(cut, getattr(data, part)[: size or None]) for part, size in sizes.items()}
    kept = {k: tuple(e for e in part if not data.extractive or e.label in e.words) for k, part in parts.items()}
    return Dataset(data.name, **kept, extractive=data.extractive)


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
    """Return the examples, or documents, with tags. Tags that are there stay.

    Raises CorpusError if NLTK's tagger is not on this machine.
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
