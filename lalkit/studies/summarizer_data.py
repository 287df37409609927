"""Documents with summaries: made-up news, a folder of your own, or a data set of the Hugging Face hub.

The news. In each article several things happen, and the headline tells the one with most weight. Every article has new names, so
most of a headline cannot be known and must be copied. One sentence tells which names belong into the headline, among several
sentences of the same form. A headline needs the event whose verb has most weight, its two sides in their order (a passive turns
them round), and its place (other places only tell where somebody comes from). Tags (of Universal Dependencies) and entities are
known by construction.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lalkit.errors import CorpusError
from lalkit.studies.classifier_data import tagged
from lalkit.studies.frame import json_lines
from lalkit.treebank.text import tokenize


@dataclass(frozen=True)
class Document:
    """The words of a document, the words of its summary (empty if the summary is not known), and tags and entity flags if known.

    Raises CorpusError for a document without words, and for tags or flags whose number is not that of the words.
    """

    words: tuple[str, ...]
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    entities: tuple[bool, ...] | None = None
    id: str = ""

    def __post_init__(self):
        lengths = {len(values) for values in (self.words, self.tags, self.entities) if values is not None}
        if not self.words or len(lengths) > 1:
            remedy = "Give a document words, and one tag and entity flag for each word, or none."
            raise CorpusError(
                "has no words, or words, tags and entities of different lengths", where=self.id, remedy=remedy
            )


@dataclass(frozen=True)
class Documents:
    """Documents in three parts. No model learns from the test part, or is chosen by it."""

    name: str
    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]


PARTS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
KEYS = (("document", "summary"), ("article", "highlights"), ("text", "summary"))  # names in CNN/DailyMail and others


def load(name: str) -> Documents:
    """Return the documents of a name. Raises CorpusError that names the missing or damaged place.

    name: 'news'; 'hf:NAME' or 'hf:NAME:CONFIG', which needs the package `datasets`; or a folder with
    train.jsonl, dev.jsonl and test.jsonl. Each line is an object with article and highlights, or document and summary. It can
    also have tags and entities (true or false), lists with one value for each word of the article between spaces.
    """
    if name == "news":
        return news()
    if name.startswith("hf:"):
        try:
            import datasets
        except ImportError:
            raise CorpusError("needs the package `datasets`", where=name, remedy="pip install datasets") from None
        splits = datasets.load_dataset(*name.split(":")[1:])
        rows = {split: ((f"{name} {split} {i}", row) for i, row in enumerate(splits[split])) for split in splits}
    else:
        rows = {file.stem: json_lines(file) for file in Path(name).glob("*.jsonl")}
    found = {part: next((n for n in names if n in rows), "") for part, names in PARTS.items()}
    if not all(found.values()):
        remedy = "Give news, hf:NAME, or a folder with train.jsonl, dev.jsonl and test.jsonl."
        raise CorpusError("has no documents in train, dev or test", where=name, remedy=remedy)
    parts = {part: tuple(_document(row, where) for where, row in rows[split]) for part, split in found.items()}
    return Documents(name if name.startswith("hf:") else Path(name).name, **parts)


def _document(row: dict, where: str) -> Document:
    keys = next((keys for keys in KEYS if all(isinstance(row.get(key), str) for key in keys)), None)
    tags, names = (row.get(name) or [] for name in ("tags", "entities"))
    lists = isinstance(tags, list) and isinstance(names, list)
    if not keys or not lists or not all(isinstance(tag, str) for tag in tags) or not set(names) <= {0, 1}:
        remedy = "Give article and highlights as texts; and tags as texts and entities as true or false, or neither."
        raise CorpusError("is not a document with a summary", where=where, remedy=remedy)
    words, summary = (tuple(row[key].split()) if tags or names else tokenize(row[key]) for key in keys)
    return Document(words, summary, tuple(tags) or None, tuple(names) or None, str(row.get("id", where)))


def annotated(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with tags and entities. Those that are there stay.

    Else tags are those of NLTK's tagger (universal ones), and an entity is a word with a capital that does not begin a sentence.
    Raises CorpusError if the tagger is needed and is not on this machine.
    """
    capitals = [
        [w[0].isupper() and b not in (*".!?:", "``", "''") for b, w in zip((".", *d.words), d.words)] for d in documents
    ]
    return tuple(replace(d, entities=d.entities or tuple(c)) for d, c in zip(tagged(documents), capitals))


# ---------------------------------------------------------------- news

Token = tuple[str, str, bool]  # word, tag, whether it is part of an entity

# The words of the news. The verbs are ordered by weight, the heaviest first: `past` in the article, `present` in the headline,
# and to whom it is done. `others` are the sentences about other people.
NEWS = json.loads(Path(__file__).with_name("news.json").read_text(encoding="utf-8"))
VERBS = NEWS["verbs"]


def news(train: int = 4000, dev: int = 200, test: int = 1000, seed: int = 0) -> Documents:
    """Return articles of about 35 tokens with headlines of 5 or 6 words. No two headlines are the same."""
    draw, headlines, articles = random.Random(seed), set(), []
    while len(articles) < train + dev + test:
        document = article(draw, f"news-{seed}-{len(articles)}")
        if document.summary not in headlines:
            headlines.add(document.summary)
            articles.append(document)
    parts = articles[:train], articles[train : train + dev], articles[train + dev :]
    return Documents(f"news-{seed}", *map(tuple, parts))


def article(draw: random.Random, name: str = "") -> Document:
    """Return an article of two events (sometimes three) and a sentence about other people, in any order."""
    verbs = draw.sample(range(len(VERBS)), 3 if draw.random() < 0.25 else 2)
    events = [_event(draw, verb) for verb in verbs]
    _, headline = events[verbs.index(min(verbs))]
    sentences = [*(event for event, _ in events), _other(draw)]
    draw.shuffle(sentences)
    words, tags, entities = zip(*(token for sentence in sentences for token in _written(sentence)))
    return Document(words, tuple(headline), tags, entities, name)


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
