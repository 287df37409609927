"""Short news, made up, with headlines: who did what to whom and where, beside others who are only mentioned.

The names are new in every article, so that most of a headline cannot be known and must be copied; which of the names belongs
into it is said by the event's sentence alone. Tags (Universal Dependencies') and entities are known by construction.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lalkit.summarize.documents import Dataset, Document

Token = tuple[str, str, bool]  # word, tag, part of an entity

STARTS = (
    "B",
    "Br",
    "C",
    "D",
    "Dr",
    "F",
    "G",
    "H",
    "J",
    "K",
    "L",
    "M",
    "N",
    "P",
    "R",
    "S",
    "St",
    "T",
    "Tr",
    "V",
    "W",
    "Z",
)
VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
MIDDLES = ("l", "n", "r", "s", "m", "nd", "rt", "ll", "v", "b", "k", "ss", "th")
ENDS = ("n", "r", "l", "s", "ck", "tt", "m", "nd", "rd", "st", "ville", "ton", "berg", "sen", "ova")
FIRST = (
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Frank",
    "Grace",
    "Hugo",
    "Irene",
    "Jonas",
    "Karin",
    "Leo",
    "Maria",
    "Nils",
)
ROLES = ("minister", "singer", "lawyer", "coach", "writer", "mayor", "banker", "painter", "doctor", "pilot")
KINDS = ("bank", "club", "museum", "airline", "school", "union", "hospital", "newspaper")
# past, as it stands in the article; present, as in the headline; what is done to: a person or an organisation
VERBS = (
    ("hired", "hires", "person"), ("sued", "sues", "any"), ("praised", "praises", "any"), ("left", "leaves", "organisation"),
    ("bought", "buys", "organisation"), ("met", "meets", "person"), ("joined", "joins", "organisation"),
    ("criticized", "criticizes", "any"), ("visited", "visits", "any"), ("thanked", "thanks", "any"),
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def news(train: int = 4000, dev: int = 200, test: int = 500, seed: int = 0) -> Dataset:
    """Articles of about 30 tokens with headlines of about 6; no two headlines are the same."""
    draw, seen, found = random.Random(seed), set(), []
    while len(found) < train + dev + test:
        document = article(draw, f"news-{seed}-{len(found)}")
        if document.summary not in seen:
            seen.add(document.summary)
            found.append(document)
    return Dataset(f"news-{seed}", tuple(found[:train]), tuple(found[train : train + dev]), tuple(found[train + dev :]))


def article(draw: random.Random, name: str = "") -> Document:
    """One article: the event, and one or two sentences about others, in any order."""
    event, headline = _event(draw)
    sentences = [event, *(draw.choice((_comment, _background, _rumour))(draw) for _ in range(draw.randint(1, 2)))]
    draw.shuffle(sentences)
    tokens = [token for sentence in sentences for token in sentence]
    words, tags, entities = zip(*tokens)
    return Document(words, tuple(headline), tags, entities, name)


def _event(draw: random.Random) -> tuple[list[Token], list[str]]:
    past, present, wants = draw.choice(VERBS)
    who = _person(draw)
    whom = _organisation(draw) if wants == "organisation" or (wants == "any" and draw.random() < 0.5) else _person(draw)
    where = _name(draw)
    on = [("on", "ADP", False), (draw.choice(DAYS), "PROPN", True)] if draw.random() < 0.5 else []
    place = [("in", "ADP", False), (where, "PROPN", True)]
    body = [*who[0], (past, "VERB", False), *whom[0]]
    if on and draw.random() < 0.5:
        on[0] = ("On", "ADP", False)
        sentence = [*on, (",", "PUNCT", False), *_small(body), *place]
    else:
        sentence = [*body, *on, *place]
    headline = [who[1], present, *whom[1].split(), "in", where]
    return [*sentence, (".", "PUNCT", False)], headline


def _comment(draw: random.Random) -> list[Token]:
    who = _person(draw)[0]
    return [*who, ("did", "AUX", False), ("not", "PART", False), ("comment", "VERB", False), (".", "PUNCT", False)]


def _background(draw: random.Random) -> list[Token]:
    what = _organisation(draw)[0]
    return [
        *what, ("was", "AUX", False), ("founded", "VERB", False), ("in", "ADP", False), (_name(draw), "PROPN", True),
        ("long", "ADV", False), ("ago", "ADV", False), (".", "PUNCT", False),
    ]  # fmt: skip


def _rumour(draw: random.Random) -> list[Token]:
    return [
        ("Friends", "NOUN", False), ("of", "ADP", False), (_name(draw), "PROPN", True), ("were", "AUX", False),
        ("surprised", "ADJ", False), (".", "PUNCT", False),
    ]  # fmt: skip


def _person(draw: random.Random) -> tuple[list[Token], str]:
    """(how the article has it, the name that a headline has)."""
    last = _name(draw)
    full = [(draw.choice(FIRST), "PROPN", True), (last, "PROPN", True)]
    if draw.random() < 0.5:
        return [("The", "DET", False), (draw.choice(ROLES), "NOUN", False), *full], last
    return full, last


def _organisation(draw: random.Random) -> tuple[list[Token], str]:
    name, kind = _name(draw), draw.choice(KINDS)
    return [("The", "DET", False), (kind, "NOUN", False), (name, "PROPN", True)], f"{kind} {name}"


def _small(tokens: Sequence[Token]) -> list[Token]:
    """As it stands inside a sentence."""
    (word, tag, entity), *rest = tokens
    return [(word if tag == "PROPN" else word.lower(), tag, entity), *rest]


def _name(draw: random.Random) -> str:
    name = draw.choice(STARTS) + draw.choice(VOWELS) + draw.choice(MIDDLES)
    if draw.random() < 0.5:
        name += draw.choice(VOWELS) + draw.choice(MIDDLES)
    return name + draw.choice(VOWELS) + draw.choice(ENDS)
