"""Texts with a class or a summary: three corpora of NLTK, and made-up news.

| name                                            | from                        | for         | stands for the paper's |
|-------------------------------------------------|-----------------------------|-------------|------------------------|
| sentence_polarity, subjectivity, movie_reviews  | NLTK, split 8 : 1 : 1 by us | classifiers | SST, tweets, IMDB      |
| news                                            | made up by us               | summarizers | CNN/DailyMail          |

The news. In each article two or three things happen, and the headline tells the one with most weight. Every article has new
names, so most of a headline cannot be known and must be copied. One sentence tells which names belong in the headline, among
several sentences of the same form. A headline needs the event whose verb has most weight, its two sides in their order (a passive
exchanges them), and its place (other places only tell where somebody comes from). The verbs by weight: arrest, sue, fire, buy,
close, hire, leave, join, criticize, meet, praise, visit. Tags (of Universal Dependencies) and entities are known, because a
program wrote the articles.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lalkit.errors import CorpusError


@dataclass(frozen=True)
class Text:
    """One text, with its class or its summary. Raises CorpusError without words, or if tags or entities do not fit the words.

    tags: a part of speech for every word; entities: whether a word is part of a name. Both are empty if they are not known.
    """

    words: tuple[str, ...]
    label: str = ""
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entities: tuple[bool, ...] = ()
    id: str = ""

    def __post_init__(self):
        if not self.words or {len(self.tags), len(self.entities)} - {0, len(self.words)}:
            remedy = "Give it words, and one tag and one entity for each word, or none."
            raise CorpusError("a text without words, or with too few tags or entities", where=self.id, remedy=remedy)


@dataclass(frozen=True)
class Texts:
    """Texts in three parts. No model learns from the test part, or is chosen by it."""

    name: str
    train: tuple[Text, ...]
    dev: tuple[Text, ...]
    test: tuple[Text, ...]

    def shortened(self, train: int = 0, dev: int = 0, test: int = 0) -> Texts:
        """Keep the first texts of each part; 0 means all. If that leaves any out, the data get another name."""
        counts = {"train": train, "dev": dev, "test": test}
        parts = {name: getattr(self, name)[: count or None] for name, count in counts.items()}
        if replace(self, **parts) == self:
            return self
        return Texts("-".join([self.name, *(str(len(part)) for part in parts.values())]), **parts)


# ---------------------------------------------------------------- universal parts of speech (Petrov et al. 2012)

UNIVERSAL = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
_PENN = {
    "NOUN": "NN NNS NNP NNPS", "VERB": "VB VBD VBG VBN VBP VBZ MD", "ADJ": "JJ JJR JJS", "ADV": "RB RBR RBS WRB",
    "PRON": "PRP PRP$ WP WP$", "DET": "DT EX PDT WDT", "ADP": "IN", "NUM": "CD", "CONJ": "CC", "PRT": "RP TO POS",
    ".": ". , : `` '' # $ -LRB- -RRB- ( ) -NONE-",
}  # fmt: skip
OF_PENN = {penn: tag for tag, several in _PENN.items() for penn in several.split()}


# ---------------------------------------------------------------- data by name

NLTK = ("sentence_polarity", "subjectivity", "movie_reviews")


def load(name: str) -> Texts:
    """Return a corpus of NLTK, whose texts have classes. Raises CorpusError if it is unknown, or not on this machine."""
    from nltk import corpus

    if name not in NLTK:
        raise CorpusError("there is no such corpus of texts", where=name, remedy=f"Give {', '.join(NLTK)}.")
    reader = getattr(corpus, name)
    try:
        if name == "movie_reviews":
            texts = [Text(tuple(reader.words(file)), file.split("/")[0]) for file in reader.fileids()]
            return split(name, texts, 200)
        return split(name, [Text(tuple(s), c) for c in reader.categories() for s in reader.sents(categories=c) if s])
    except LookupError:
        remedy = f"Get it with: python -m nltk.downloader {name}   (or set NLTK_DATA to the folder that has it)"
        raise CorpusError(f"NLTK's corpus {name} is not on this machine", remedy=remedy) from None


def split(name: str, texts: Iterable[Text], most: int | None = None) -> Texts:
    """Split texts 8 : 1 : 1 at random, always in the same way. A repeated text counts once. most: words to keep of each."""
    once = list(dict.fromkeys(texts))
    order, tenth = np.random.default_rng(0).permutation(len(once)), round(0.1 * len(once))
    mixed = tuple(replace(once[i], words=once[i].words[:most]) for i in order)
    return Texts(name, mixed[2 * tenth :], mixed[tenth : 2 * tenth], mixed[:tenth])


# ---------------------------------------------------------------- news

# All words of the news that are not part of a name, by their tag.
WORDS = {
    "ADJ": "surprised", "ADP": "by from in of on", "ADV": "ago long", "AUX": "did was were", "DET": "a the", "PART": "not",
    "NOUN": "airline bank banker club coach doctor friends hospital lawyer mayor minister museum newspaper painter pilot school "
    "singer union writer", "PUNCT": ", .", "VERB": "abandoned acquired applauded arrested attacked bought closed comment "
    "criticized detained dismissed employed entered fired founded hired joined left met praised prosecuted received shut sued "
    "toured visited",
}  # fmt: skip
OF_WORDS = {word: tag for tag, words in WORDS.items() for word in words.split()}


def news() -> Texts:
    """Return 5,200 articles of about 35 tokens, with headlines of 5 or 6 words. No two headlines are the same.

    A line of their file is an article and its events, in the order of the article, each with the number of its verb.
    """
    articles = []
    with gzip.open(Path(__file__).with_name("news.txt.gz"), "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            article, *events = line.rstrip("\n").split("\t")
            # The event whose verb has the most weight, and so the smallest number, is the headline.
            words, (_, *headline) = tuple(article.split()), min(map(str.split, events), key=lambda event: int(event[0]))
            tags = tuple(OF_WORDS.get(word.lower(), "PROPN") for word in words)
            names = tuple(tag == "PROPN" for tag in tags)
            articles.append(Text(words, "", tuple(headline), tags, names, f"news-{number}"))
    return Texts("news", *map(tuple, (articles[:4000], articles[4000:4200], articles[4200:])))
