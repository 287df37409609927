"""Short news, made up, with headlines: several things happened, and the headline tells the one that weighs most.

The names are new in every article, so that most of a headline cannot be known and must be copied. Which names belong into it is
said by one sentence among several of the same forms: a headline needs the event whose verb has most weight, its two sides in
their order (a passive turns them round), and its place (others only come from one). Tags (Universal Dependencies') and entities
are known by construction.

Documents with their summaries, and what their tokens are known to be.

The GUM corpus (Zeldes 2017) as documents: gold tags, gold named entities, a summary written by a person.

Download https://github.com/amir-zeldes/gum (folder `dep`); each genre has its own licence, and none of it is shipped.

Documents with summaries by name: made-up news, GUM, a folder of one's own, or a data set of the Hugging Face hub.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lalkit.errors import CorpusError
from lalkit.treebank.text import tokenize


@dataclass(frozen=True)
class Document:
    """words, and a summary of words (empty: none is known); tags and entity flags of the words, where they are known.

    Raises CorpusError for a document without words, or tags or flags of another number.
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
                raise CorpusError(f"{len(values)} {name} for {len(self.words)} words", where=self.id)


@dataclass(frozen=True)
class Dataset:
    """name and parts; test documents are never trained on, nor chosen by."""

    name: str
    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]


PLACE = "LALKIT_DATA"
MARK = re.compile(
    r"\(([^()]+)|([^()]*)\)"
)  # in Entity=: a mention begins; one ends, by its number or the last that began
IDENTITY = 7  # the fields of a mention; the eighth, where there is one, says what it is a name of
GONE = re.compile(r"^\d+[-.]")  # multi-word tokens and empty nodes


def gum(folder: str | Path | None = None) -> tuple[Document, ...]:
    """All documents, in the order of their names. entities: tokens of mentions that are linked to a name, pronouns
    left out.

    folder: of .conllu files; None: `gum/dep` in LALKIT_DATA. Raises CorpusError where there is none, or a file is damaged.
    """
    folder = Path(folder) if folder else Path(os.environ.get(PLACE, "data")) / "gum" / "dep"
    files = sorted(folder.glob("*.conllu"))
    if not files:
        remedy = f"Download GUM, and give its folder `dep`, or set {PLACE} to the folder that has gum/dep."
        raise CorpusError("GUM is not here", where=str(folder), remedy=remedy)
    return tuple(read(path) for path in files)


def read(path: str | Path) -> Document:
    """One document. Raises CorpusError naming the line that is damaged."""
    words, tags, named, open_ = [], [], [], []
    summary: tuple[str, ...] = ()
    for number, line in enumerate(_gum_lines(path), 1):
        if line.startswith("# meta::summary") and not summary and "(human" in line:
            summary = tokenize(line.split(")", 1)[1].strip())
        if not line or line.startswith("#") or GONE.match(line):
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise CorpusError(f"{len(columns)} columns instead of 10", where=f"{path}, line {number}")
        begun, ended = _mentions(columns[9])
        open_ += begun
        words.append(columns[1])
        tags.append(columns[3])
        named.append(columns[3] != "PRON" and any(identity for _, identity in open_))
        for name in ended:
            place = next((i for i in reversed(range(len(open_))) if name == open_[i][0]), None)
            if place is None:
                raise CorpusError(f"mention {name!r} ends before it begins", where=f"{path}, line {number}")
            del open_[place]
    return Document(tuple(words), summary, tuple(tags), tuple(named), Path(path).stem)


def _gum_lines(path: str | Path) -> Iterator[str]:
    try:
        yield from Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read ({error})", where=str(path), remedy="Is it UTF-8?") from None


def _mentions(misc: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """((number, is it a name) of mentions that begin here, numbers of those that end here) of a MISC column. A mention of
    one token begins and ends: `(7-person-...-Name)`."""
    entity = next((part[7:] for part in misc.split("|") if part.startswith("Entity=")), "")
    begun, ended = [], []
    for match in MARK.finditer(entity):
        if match[1]:
            fields = match[1].split("-")
            begun.append((fields[0], len(fields) > IDENTITY))
        else:
            ended.append(match[2] or (begun[-1][0] if begun else "?"))
    return begun, ended


Token = tuple[str, str, bool]  # word, tag, part of an entity

STARTS = "B Br C D Dr F G H J K L M N P R S St T Tr V W Z".split()
VOWELS = "a e i o u ai ea ou".split()
MIDDLES = "l n r s m nd rt ll v b k ss th".split()
ENDS = "n r l s ck tt m nd rd st ville ton berg sen ova".split()
FIRST = "Anna Ben Carla David Elena Frank Grace Hugo Irene Jonas Karin Leo Maria Nils".split()
ROLES = "minister singer lawyer coach writer mayor banker painter doctor pilot".split()
KINDS = "bank club museum airline school union hospital newspaper".split()
TOWNS = "Arlow Benfield Corvale Dunmere Eastry Farholm Gatewick Harrow Ilmouth Kenley Lorne Marwick".split()
# By weight, the heaviest first: what the article may say, what the headline says, what is done to (a person, an organisation).
VERBS = (
    (("arrested", "detained"), "arrests", "person"), (("sued", "prosecuted"), "sues", "any"),
    (("fired", "dismissed"), "fires", "person"), (("bought", "acquired"), "buys", "organisation"),
    (("closed", "shut"), "closes", "organisation"), (("hired", "employed"), "hires", "person"),
    (("left", "abandoned"), "leaves", "organisation"), (("joined", "entered"), "joins", "organisation"),
    (("criticized", "attacked"), "criticizes", "any"), (("met", "received"), "meets", "person"),
    (("praised", "applauded"), "praises", "any"), (("visited", "toured"), "visits", "any"),
)  # fmt: skip
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def news(train: int = 4000, dev: int = 200, test: int = 500, seed: int = 0) -> Dataset:
    """Articles of about 35 tokens with headlines of 5 or 6; no two headlines are the same."""
    draw, seen, found = random.Random(seed), set(), []
    while len(found) < train + dev + test:
        document = article(draw, f"news-{seed}-{len(found)}")
        if document.summary not in seen:
            seen.add(document.summary)
            found.append(document)
    return Dataset(f"news-{seed}", tuple(found[:train]), tuple(found[train : train + dev]), tuple(found[train + dev :]))


def article(draw: random.Random, name: str = "") -> Document:
    """One article: two events, sometimes three, and a sentence about others, in any order."""
    verbs = draw.sample(range(len(VERBS)), 3 if draw.random() < 0.25 else 2)
    events = [_event(draw, verb) for verb in verbs]
    _, headline = events[verbs.index(min(verbs))]
    sentences = [*(event for event, _ in events), draw.choice((_comment, _background, _rumour))(draw)]
    draw.shuffle(sentences)
    tokens = [token for sentence in sentences for token in _whole(sentence)]
    words, tags, entities = zip(*tokens)
    return Document(words, tuple(headline), tags, entities, name)


def _event(draw: random.Random, verb: int) -> tuple[list[Token], list[str]]:
    pasts, present, wants = VERBS[verb]
    who, short = _person(draw)
    organisation = wants == "organisation" or (wants == "any" and draw.random() < 0.5)
    whom, second = _organisation(draw) if organisation else _person(draw)
    where, past = _place(draw), (draw.choice(pasts), "VERB", False)
    if draw.random() < 0.3:
        body = [*whom, ("was", "AUX", False), past, ("by", "ADP", False), *who]
    else:
        body = [*who, past, *whom]
    place, on = [("in", "ADP", False), (where, "PROPN", True)], []
    if draw.random() < 0.4:
        on = [("on", "ADP", False), (draw.choice(DAYS), "PROPN", True)]
    first = draw.choice(([], on, place))
    sentence = [*first, (",", "PUNCT", False), *body] if first else body
    for part in (on, place):
        sentence = sentence if part is first else [*sentence, *part]
    return sentence, [short, present, *second.split(), "in", where]


def _comment(draw: random.Random) -> list[Token]:
    return [*_person(draw)[0], ("did", "AUX", False), ("not", "PART", False), ("comment", "VERB", False)]


def _background(draw: random.Random) -> list[Token]:
    return [
        *_organisation(draw)[0], ("was", "AUX", False), ("founded", "VERB", False), ("in", "ADP", False),
        (_place(draw), "PROPN", True), ("long", "ADV", False), ("ago", "ADV", False),
    ]  # fmt: skip


def _rumour(draw: random.Random) -> list[Token]:
    return [
        ("friends", "NOUN", False), ("of", "ADP", False), *_person(draw)[0], ("were", "AUX", False),
        ("surprised", "ADJ", False),
    ]  # fmt: skip


def _person(draw: random.Random) -> tuple[list[Token], str]:
    """(how the article has it, the name that a headline has)."""
    last, role = _name(draw), (draw.choice(ROLES), "NOUN", False)
    full, form = [(draw.choice(FIRST), "PROPN", True), (last, "PROPN", True)], draw.random()
    if form < 0.4:
        return [("the", "DET", False), role, *full], last
    if form < 0.55:
        comma = (",", "PUNCT", False)
        return [
            *full,
            comma,
            ("a", "DET", False),
            role,
            ("from", "ADP", False),
            (_place(draw), "PROPN", True),
            comma,
        ], last
    return full, last


def _organisation(draw: random.Random) -> tuple[list[Token], str]:
    name, kind = _name(draw), draw.choice(KINDS)
    return [("the", "DET", False), (kind, "NOUN", False), (name, "PROPN", True)], f"{kind} {name}"


def _place(draw: random.Random) -> str:
    """One that is often in the news, or a new one."""
    return draw.choice(TOWNS) if draw.random() < 0.5 else _name(draw)


def _whole(tokens: Sequence[Token]) -> list[Token]:
    """A sentence with a capital and a full stop; the comma after an apposition is not doubled by another stop."""
    kept = [t for t, after in zip(tokens, (*tokens[1:], (".", "PUNCT", False))) if (t[0], after[0]) != (",", ".")]
    (word, tag, entity), *rest = kept
    return [(word[0].upper() + word[1:], tag, entity), *rest, (".", "PUNCT", False)]


def _name(draw: random.Random) -> str:
    name = draw.choice(STARTS) + draw.choice(VOWELS) + draw.choice(MIDDLES)
    if draw.random() < 0.5:
        name += draw.choice(VOWELS) + draw.choice(MIDDLES)
    return name + draw.choice(VOWELS) + draw.choice(ENDS)


PARTS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
TEXTS = (
    ("document", "summary"),
    ("article", "highlights"),
    ("text", "summary"),
)  # as CNN/DailyMail and others call them


def load(name: str) -> Dataset:
    """'news'; 'gum' (test documents only); 'hf:NAME' or 'hf:NAME:CONFIG' through the package `datasets`; or a folder with
    train.jsonl, dev.jsonl and test.jsonl, an object with article and highlights (or document and summary) a line.

    Raises CorpusError naming what is missing or wrong.
    """
    if name == "news":
        return news()
    if name == "gum":
        return Dataset("gum", (), (), gum())
    if name.startswith("hf:"):
        return _hub(name)
    folder = Path(name)
    if not folder.is_dir():
        raise CorpusError(f"there are no documents {name!r}", remedy="news, gum, hf:NAME, or a folder of .jsonl files.")
    parts = {}
    for part, files in PARTS.items():
        found = [folder / f"{file}.jsonl" for file in files if (folder / f"{file}.jsonl").is_file()]
        if not found:
            raise CorpusError(f"has no {part}.jsonl", where=name, remedy="Three files: train, dev, test.")
        parts[part] = tuple(_lines(found[0]))
    return Dataset(folder.name, **parts)


def _lines(path: Path) -> Iterator[Document]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read ({error})", where=str(path), remedy="Is it UTF-8?") from None
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError:
            raise CorpusError("is no JSON", where=where, remedy="One object a line.") from None
        yield _document(row, where)


def _document(row, where: str) -> Document:
    for keys in TEXTS:
        if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in keys):
            return Document(*(tokenize(row[key]) for key in keys), id=str(row.get("id", where)))
    raise CorpusError("has no article with highlights", where=where, remedy="Keys: article and highlights, as texts.")


def _hub(name: str) -> Dataset:
    try:
        import datasets
    except ImportError:
        raise CorpusError("needs the package `datasets`", where=name, remedy="pip install datasets") from None
    _, *asked = name.split(":")
    found = datasets.load_dataset(*asked)
    parts = {}
    for part, names in PARTS.items():
        own = next((split for split in names if split in found), None)
        if own is None:
            raise CorpusError(f"has no part {part}", where=name)
        parts[part] = tuple(_document(row, f"{name} {own} {i}") for i, row in enumerate(found[own]))
    return Dataset(name, **parts)
