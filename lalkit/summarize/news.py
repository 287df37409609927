"""Short news, made up, with headlines: several things happened, and the headline tells the one that weighs most.

The names are new in every article, so that most of a headline cannot be known and must be copied. Which names belong into it is
said by one sentence among several of the same forms: a headline needs the event whose verb has most weight, its two sides in
their order (a passive turns them round), and its place (others only come from one). Tags (Universal Dependencies') and entities
are known by construction.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lalkit.summarize.documents import Dataset, Document

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
