"""Texts with a class or a summary: three corpora of NLTK, folders of your own, and made-up news.

| name                                            | from                        | for         | stands for the paper's |
|-------------------------------------------------|-----------------------------|-------------|------------------------|
| sentence_polarity, subjectivity, movie_reviews  | NLTK, split 8 : 1 : 1 by us | classifiers | SST, tweets, IMDB      |
| news                                            | made up here                | summarizers | CNN/DailyMail          |

A folder is for classifiers. It has train, dev and test, each as one .csv or .tsv file with the columns text and label.

The news. In each article several things happen, and the headline tells the one with most weight. Every article has new names, so
most of a headline cannot be known and must be copied. One sentence tells which names belong into the headline, among several
sentences of the same form. A headline needs the event whose verb has most weight, its two sides in their order (a passive turns
them round), and its place (other places only tell where somebody comes from). Tags (of Universal Dependencies) and entities are
known by construction.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

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

    @property
    def parts(self) -> dict[str, tuple[Text, ...]]:
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def shortened(self, train: int = 0, dev: int = 0, test: int = 0) -> Texts:
        """Keep the first texts of each part; 0 means all. If that leaves any out, the data get another name."""
        counts = {"train": train, "dev": dev, "test": test}
        parts = {name: part[: counts[name] or None] for name, part in self.parts.items()}
        if parts == self.parts:
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
OF_UD = {tag: tag for tag in UNIVERSAL} | {
    "PROPN": "NOUN", "AUX": "VERB", "PUNCT": ".", "SYM": ".", "PART": "PRT", "CCONJ": "CONJ", "SCONJ": "ADP",
}  # fmt: skip


def annotated(texts: Sequence[Text]) -> tuple[Text, ...]:
    """Return the texts with tags: those of NLTK's tagger, as universal ones.

    Raises CorpusError if the tagger is not on this machine.
    """
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger()
    except LookupError:
        remedy = "Get it with: python -m nltk.downloader averaged_perceptron_tagger_eng"
        raise CorpusError("NLTK's tagger is not on this machine", remedy=remedy) from None
    tags = ([OF_PENN.get(tag, "X") for _, tag in tagger.tag(text.words)] for text in texts)
    return tuple(replace(text, tags=tuple(own)) for text, own in zip(texts, tags))


# ---------------------------------------------------------------- data by name, and folders

NLTK = ("sentence_polarity", "subjectivity", "movie_reviews")
FILES = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}


def load(name: str) -> Texts:
    """Return texts with classes: a corpus of NLTK, or a folder.

    Raises CorpusError if they are unknown, not on this machine, or damaged, if a part is empty, if there are fewer than two
    classes, and for a class that only dev or test have.
    """
    data = _of_nltk(name) if name in NLTK and not Path(name).is_dir() else _folder(name)
    classes = {text.label for text in data.train}
    for part, texts in data.parts.items():
        if len(classes) < 2 or not texts or not {text.label for text in texts} <= classes:
            remedy = "Give every part texts, and all classes, two or more, to train."
            raise CorpusError(f"{part} has no texts, or other classes than train", where=name, remedy=remedy)
    return data


def _of_nltk(name: str) -> Texts:
    from nltk import corpus

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
    """Split texts 8 : 1 : 1 at random, always in the same way. A repeated text counts once. most: words that are kept of each."""
    once = list(dict.fromkeys(texts))
    order, tenth = np.random.default_rng(0).permutation(len(once)), round(0.1 * len(once))
    mixed = tuple(replace(once[i], words=once[i].words[:most]) for i in order)
    return Texts(name, mixed[2 * tenth :], mixed[tenth : 2 * tenth], mixed[:tenth])


def _folder(name: str) -> Texts:
    """Read a folder of tables, one for each part."""
    parts = {}
    for part, names in FILES.items():
        files = [file for stem in names for end in ("csv", "tsv") for file in Path(name).glob(f"{stem}.{end}")]
        if len(files) != 1:
            folder = "a folder with train, dev and test, each as one .csv or .tsv file"
            remedy = f"Give {', '.join(NLTK)}, or {folder}."
            raise CorpusError(f"has {len(files)} files for {part}", where=name, remedy=remedy)
        parts[part] = _texts(files[0])
    return Texts(Path(name).name, **parts)


def _texts(file: Path) -> tuple[Text, ...]:
    texts, rows = [], None
    try:
        table = pd.read_csv(file, sep="," if file.suffix == ".csv" else "\t", dtype=str, keep_default_na=False)
        for row in (rows := table.to_dict("records")):
            texts.append(_labelled(row))
    except (ValueError, KeyError, OSError, CorpusError):
        where = str(file) if rows is None else f"{file}, row {len(texts) + 1}"
        remedy = "Give a complete table in UTF-8, with text and label: see data/README.md."
        raise CorpusError("is not a text with its class", where=where, remedy=remedy) from None
    return tuple(texts)


def _labelled(row: dict) -> Text:
    from nltk.tokenize import TreebankWordTokenizer

    if not row["label"]:
        raise ValueError("no class")
    return Text(tuple(word.lower() for word in TreebankWordTokenizer().tokenize(row["text"])), row["label"])


# ---------------------------------------------------------------- news

Token = tuple[str, str, bool]  # word, tag, whether it is part of an entity

# The words of the news. The verbs are ordered by weight, the heaviest first: `past` in the article, `present` in the headline,
# and to whom it is done. `others` are the sentences about other people.
NEWS = json.loads(Path(__file__).with_name("news.json").read_text(encoding="utf-8"))
VERBS = NEWS["verbs"]


def news(train: int = 4000, dev: int = 200, test: int = 1000, seed: int = 0) -> Texts:
    """Return articles of about 35 tokens with headlines of 5 or 6 words. No two headlines are the same."""
    draw, headlines, articles = random.Random(seed), set(), []
    while len(articles) < train + dev + test:
        document = article(draw, f"news-{seed}-{len(articles)}")
        if document.summary not in headlines:
            headlines.add(document.summary)
            articles.append(document)
    parts = articles[:train], articles[train : train + dev], articles[train + dev :]
    return Texts(f"news-{seed}", *map(tuple, parts))


def article(draw: random.Random, name: str = "") -> Text:
    """Return an article of two events (sometimes three) and a sentence about other people, in any order."""
    verbs = draw.sample(range(len(VERBS)), 3 if draw.random() < 0.25 else 2)
    events = [_event(draw, verb) for verb in verbs]
    _, headline = events[verbs.index(min(verbs))]
    sentences = [*(event for event, _ in events), _other(draw)]
    draw.shuffle(sentences)
    words, tags, entities = zip(*(token for sentence in sentences for token in _written(sentence)))
    return Text(words, "", tuple(headline), tags, entities, name)


def _event(draw: random.Random, verb: int) -> tuple[list[Token], list[str]]:
    """Return the sentence of an event, and its headline."""
    pasts, present, wants = VERBS[verb].values()
    who, short = _person(draw)
    organisation = wants == "organisation" or (wants == "any" and draw.random() < 0.5)
    whom, second = _organisation(draw) if organisation else _person(draw)
    where, past = _place(draw), _plain(f"{draw.choice(pasts)}/VERB")
    body = [*whom, *_plain("was/AUX"), *past, *_plain("by/ADP"), *who] if draw.random() < 0.3 else [*who, *past, *whom]
    place, on = [*_plain("in/ADP"), *_names(where)], []
    if draw.random() < 0.4:
        on = [*_plain("on/ADP"), *_names(draw.choice(NEWS["days"]))]
    first = draw.choice(([], on, place))
    sentence = [*first, *_plain(",/PUNCT"), *body] if first else body
    for part in (on, place):
        sentence = sentence if part is first else [*sentence, *part]
    return sentence, [short, present, *second.split(), "in", where]


def _other(draw: random.Random) -> list[Token]:
    """Return a sentence about other people."""
    tokens: list[Token] = []
    for part in draw.choice(NEWS["others"]).split():
        phrase = {"PERSON": _person, "ORGANISATION": _organisation}.get(part)
        tokens += phrase(draw)[0] if phrase else _names(_place(draw)) if part == "PLACE" else _plain(part)
    return tokens


def _person(draw: random.Random) -> tuple[list[Token], str]:
    """Return how the article calls a person, and the name that a headline uses."""
    last, role = _name(draw), draw.choice(NEWS["roles"])
    full, form = _names(draw.choice(NEWS["first"]), last), draw.random()
    if form < 0.4:
        return [*_plain(f"the/DET {role}/NOUN"), *full], last
    if form < 0.55:
        comma = _plain(",/PUNCT")
        return [*full, *comma, *_plain(f"a/DET {role}/NOUN from/ADP"), *_names(_place(draw)), *comma], last
    return full, last


def _organisation(draw: random.Random) -> tuple[list[Token], str]:
    name, kind = _name(draw), draw.choice(NEWS["kinds"])
    return [*_plain(f"the/DET {kind}/NOUN"), *_names(name)], f"{kind} {name}"


def _place(draw: random.Random) -> str:
    """Return a town that is often in the news, or a new name."""
    return draw.choice(NEWS["towns"]) if draw.random() < 0.5 else _name(draw)


def _name(draw: random.Random) -> str:
    name = draw.choice(NEWS["starts"]) + draw.choice(NEWS["vowels"]) + draw.choice(NEWS["middles"])
    if draw.random() < 0.5:
        name += draw.choice(NEWS["vowels"]) + draw.choice(NEWS["middles"])
    return name + draw.choice(NEWS["vowels"]) + draw.choice(NEWS["ends"])


def _plain(text: str) -> list[Token]:
    """'the/DET bank/NOUN' -> tokens that are part of no entity."""
    return [(word, tag, False) for word, tag in (pair.split("/") for pair in text.split())]


def _names(*words: str) -> list[Token]:
    return [(word, "PROPN", True) for word in words]


def _written(tokens: Sequence[Token]) -> list[Token]:
    """Give a sentence its capital and its full stop. A comma right before the full stop is left out."""
    kept = [t for t, after in zip(tokens, (*tokens[1:], (".", "PUNCT", False))) if (t[0], after[0]) != (",", ".")]
    (word, tag, entity), *rest = kept
    return [(word[0].upper() + word[1:], tag, entity), *rest, (".", "PUNCT", False)]
