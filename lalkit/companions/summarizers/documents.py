"""Documents with summaries, by name: made-up news, the GUM corpus, a folder of your own, or a data set of the Hugging Face hub.

The news. In each article several things happen, and the headline tells the one with most weight. Every article has new names, so
most of a headline cannot be known and must be copied. One sentence tells which names belong into the headline, among several
sentences of the same form. A headline needs the event whose verb has most weight, its two sides in their order (a passive turns
them round), and its place (other places only tell where somebody comes from). Tags (of Universal Dependencies) and entities are
known by construction.

GUM (Zeldes 2017). It has gold tags, gold named entities, and summaries written by people. Download it from
https://github.com/amir-zeldes/gum (folder `dep`). Each genre has its own licence, and we ship none of it.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

from lalkit.companions.classifiers.examples import tagged
from lalkit.companions.frame import json_lines, text_lines
from lalkit.errors import CorpusError
from lalkit.files import write_text
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
        if not self.words:
            raise CorpusError("a document has no words", where=self.id, remedy="Leave it out.")
        for name in ("tags", "entities"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.words):
                remedy = "Give one for each word, or None for all."
                raise CorpusError(f"{len(values)} {name} for {len(self.words)} words", where=self.id, remedy=remedy)


@dataclass(frozen=True)
class Dataset:
    """Documents in three parts. No model learns from the test part, or is chosen by it."""

    name: str
    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]


PARTS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
KEYS = (("document", "summary"), ("article", "highlights"), ("text", "summary"))  # names in CNN/DailyMail and others


def load(name: str) -> Dataset:
    """Return the documents of a name. Raises CorpusError that names what is missing or wrong.

    name: 'news'; 'gum' (test documents only); 'hf:NAME' or 'hf:NAME:CONFIG', which needs the package `datasets`; or a folder with
    train.jsonl, dev.jsonl and test.jsonl. Each line is an object with article and highlights, or document and summary. It can
    also have tags and entities (true or false), lists with one value for each word of the article between spaces.
    """
    if name == "news":
        return news()
    if name == "gum":
        return Dataset("gum", (), (), gum())
    rows, whose = _hub(name) if name.startswith("hf:") else _folder(Path(name))
    parts = {}
    for part, names in PARTS.items():
        split_name = next((n for n in names if n in rows), None)
        if split_name is None:
            raise CorpusError(f"has no part {part}", where=name, remedy=f"It needs {whose.format(' or '.join(names))}.")
        parts[part] = tuple(_document(row, where) for where, row in rows[split_name])
    return Dataset(name if name.startswith("hf:") else Path(name).name, **parts)


Rows = Mapping[str, Iterable[tuple[str, dict]]]  # part -> (where it is, row)


def _folder(folder: Path) -> tuple[Rows, str]:
    if not folder.is_dir():
        remedy = "news, gum, hf:NAME, or a folder of .jsonl files."
        raise CorpusError(f"there are no documents {str(folder)!r}", remedy=remedy)
    return {file.stem: json_lines(file) for file in folder.glob("*.jsonl")}, "a file {}, with the ending .jsonl"


def _hub(name: str) -> tuple[Rows, str]:
    try:
        import datasets
    except ImportError:
        raise CorpusError("needs the package `datasets`", where=name, remedy="pip install datasets") from None
    splits = datasets.load_dataset(*name.split(":")[1:])
    rows = {split: ((f"{name} {split} {i}", row) for i, row in enumerate(splits[split])) for split in splits}
    return rows, "a split that is called {}"


def _document(row: dict, where: str) -> Document:
    for keys in KEYS:
        if all(isinstance(row.get(key), str) for key in keys):
            tags, names = (row.get(name) or [] for name in ("tags", "entities"))
            lists = isinstance(tags, list) and isinstance(names, list)
            if not lists or not all(isinstance(tag, str) for tag in tags) or not all(flag in (0, 1) for flag in names):
                remedy = "Give tags as a list of texts, and entities as a list of true and false; or leave them out."
                raise CorpusError("has tags that cannot be read", where=where, remedy=remedy)
            words, summary = (tuple(row[key].split()) if tags or names else tokenize(row[key]) for key in keys)
            return Document(words, summary, tuple(tags) or None, tuple(names) or None, str(row.get("id", where)))
    raise CorpusError("has no article with highlights", where=where, remedy="Keys: article and highlights, as texts.")


def save(data: Dataset, folder: str | Path) -> None:
    """Write documents as train.jsonl, dev.jsonl and test.jsonl, in the form that `load` reads from a folder."""
    for part in PARTS:
        rows = [
            {"id": d.id, "article": " ".join(d.words), "highlights": " ".join(d.summary), "tags": d.tags, "entities": d.entities}
            for d in getattr(data, part)
        ]  # fmt: skip
        write_text(Path(folder) / f"{part}.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


NOTE = ", tags: NLTK's, names: capitals"  # on the figures of documents that `annotated` had to complete


def annotated(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with tags and entities. Those that are there stay.

    Else tags are those of NLTK's tagger (universal ones), and an entity is a word with a capital that does not begin a sentence.
    Raises CorpusError if the tagger is needed and is not on this machine.
    """
    capitals = [
        [w[0].isupper() and b not in (*".!?:", "``", "''") for b, w in zip((".", *d.words), d.words)] for d in documents
    ]
    return tuple(replace(d, entities=d.entities or tuple(c)) for d, c in zip(tagged(documents), capitals))


def sentences(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sentences of a text. A sentence ends with . ! or ?."""
    ends = [0, *(place for place, word in enumerate(words, 1) if word in (".", "!", "?")), len(words)]
    return [tuple(words[start:end]) for start, end in pairwise(ends) if start < end]


def extracts(document: Document, most: int = 100) -> Iterator[Document]:
    """Yield the passages of a document, with the sentence of the passage that is most like the document's summary (ROUGE-1).

    So a few documents with summaries give many passages with sentences to copy. A passage is as many whole sentences as fit into
    `most` words, and two at least (the last passage: one). Raises CorpusError without a summary.
    """
    from rouge_score.rouge_scorer import RougeScorer

    if not document.summary:
        raise CorpusError("has no summary", where=document.id, remedy="Leave the document out.")
    scorer, passage = RougeScorer(["rouge1"], use_stemmer=True), list[tuple[str, ...]]()
    summary = " ".join(document.summary)
    for sentence in (*sentences(document.words), ()):
        if passage and (not sentence or len(passage) > 1 and len([*chain(*passage, sentence)]) > most):
            best = max(passage, key=lambda one: scorer.score(summary, " ".join(one))["rouge1"].fmeasure)
            yield Document(tuple(chain(*passage)), best, id=document.id)
            passage = []
        passage.append(sentence)


# ---------------------------------------------------------------- GUM

PLACE = "LALKIT_DATA"
# In Entity=: a mention begins, or one ends (by its number, or the last begun).
MARK = re.compile(r"\(([^()]+)|([^()]*)\)")
IDENTITY = 7  # the fields of every mention; a name has an eighth field that tells whose name it is
SKIPPED = re.compile(r"^\d+[-.]")  # multi-word tokens and empty nodes


def gum(folder: str | Path | None = None) -> tuple[Document, ...]:
    """Return all documents of GUM, in the order of their names. Entities are the tokens of linked names, without pronouns.

    folder: of .conllu files; None: `gum/dep` in LALKIT_DATA. Raises CorpusError if there are none; and as `read`.
    """
    folder = Path(folder) if folder else Path(os.environ.get(PLACE, "data")) / "gum" / "dep"
    files = sorted(folder.glob("*.conllu"))
    if not files:
        remedy = f"Download GUM, and give its folder `dep`, or set {PLACE} to the folder that has gum/dep."
        raise CorpusError("GUM is not here", where=str(folder), remedy=remedy)
    return tuple(read(path) for path in files)


def read(path: str | Path) -> Document:
    """Return the document of a file of GUM. Raises CorpusError or TreebankError that names a damaged line."""
    words, tags, named, mentions = [], [], [], []
    summary: tuple[str, ...] = ()
    for number, line in enumerate(text_lines(path), 1):
        if line.startswith("# meta::summary") and not summary and "(human" in line:
            summary = tokenize(line.split(")", 1)[1].strip())
        if not line or line.startswith("#") or SKIPPED.match(line):
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            remedy = "CoNLL-U has ten columns separated by tabs. Download GUM again."
            raise CorpusError(f"{len(columns)} columns instead of 10", where=f"{path}, line {number}", remedy=remedy)
        starts, ends = _mentions(columns[9])
        mentions += starts
        words.append(columns[1])
        tags.append(columns[3])
        named.append(columns[3] != "PRON" and any(is_name for _, is_name in mentions))
        for name in ends:
            place = next((i for i in reversed(range(len(mentions))) if name == mentions[i][0]), None)
            if place is None:
                where, remedy = f"{path}, line {number}", "Download GUM again, or leave this file out."
                raise CorpusError(f"mention {name!r} ends before it begins", where=where, remedy=remedy)
            del mentions[place]
    return Document(tuple(words), summary, tuple(tags), tuple(named), Path(path).stem)


def _mentions(misc: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """Read a MISC column: ((number, whether it is a name) of mentions that begin, numbers of mentions that end).

    A mention of one token begins and ends: `(7-person-...-Name)`.
    """
    entity = next((part[7:] for part in misc.split("|") if part.startswith("Entity=")), "")
    starts, ends = [], []
    for match in MARK.finditer(entity):
        if match[1]:
            fields = match[1].split("-")
            starts.append((fields[0], len(fields) > IDENTITY))
        else:
            ends.append(match[2] or (starts[-1][0] if starts else "?"))
    return starts, ends


# ---------------------------------------------------------------- news

Token = tuple[str, str, bool]  # word, tag, whether it is part of an entity

# The words of the news. The verbs are ordered by weight, the heaviest first: `past` in the article, `present` in the headline,
# and to whom it is done. `others` are the sentences about other people.
NEWS = json.loads(Path(__file__).with_name("news.json").read_text(encoding="utf-8"))
VERBS = NEWS["verbs"]


def news(train: int = 4000, dev: int = 200, test: int = 1000, seed: int = 0) -> Dataset:
    """Return articles of about 35 tokens with headlines of 5 or 6 words. No two headlines are the same."""
    draw, headlines, articles = random.Random(seed), set(), []
    while len(articles) < train + dev + test:
        document = article(draw, f"news-{seed}-{len(articles)}")
        if document.summary not in headlines:
            headlines.add(document.summary)
            articles.append(document)
    parts = articles[:train], articles[train : train + dev], articles[train + dev :]
    return Dataset(f"news-{seed}", *map(tuple, parts))


def article(draw: random.Random, name: str = "") -> Document:
    """Return an article of two events (sometimes three) and a sentence about other people, in any order."""
    verbs = draw.sample(range(len(VERBS)), 3 if draw.random() < 0.25 else 2)
    events = [_event(draw, verb) for verb in verbs]
    _, headline = events[verbs.index(min(verbs))]
    sentences = [*(event for event, _ in events), _other(draw)]
    draw.shuffle(sentences)
    words, tags, entities = zip(*(token for sentence in sentences for token in _whole(sentence)))
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


def _whole(tokens: Sequence[Token]) -> list[Token]:
    """Give a sentence its capital and its full stop. A comma right before the full stop is left out."""
    kept = [t for t, after in zip(tokens, (*tokens[1:], (".", "PUNCT", False))) if (t[0], after[0]) != (",", ".")]
    (word, tag, entity), *rest = kept
    return [(word[0].upper() + word[1:], tag, entity), *rest, (".", "PUNCT", False)]
