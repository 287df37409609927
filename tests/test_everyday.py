"""The forty sentences of everyday.tsv: that their claims can be checked, and how many sentences parsers have right."""

import re
from pathlib import Path

import pytest

from lalkit.treebank.tree import UNARY
from tests.command import shipped_parser

RIGHT = {"en": 27, "en-span": 24, "en-large": 31}  # of the shipped parsers, today


def rows():
    """Return (words, claims that must hold, claims that must not) of every line, each claim with its alternatives."""
    lines = Path(__file__).with_name("everyday.tsv").read_text(encoding="utf-8").splitlines()
    parts = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(words.split(), *([c.split(" | ") for c in x.split("; ")] for x in rest)) for _, words, *rest in parts]


def place(name, words):
    """Return where a word is, from 0. Raises ValueError or IndexError if it is not there."""
    word, _, number = name.partition("#")
    return [i for i, other in enumerate(words) if other == word][int(number or 1) - 1]


def fact(claim, words):
    """Return a claim as (first word, last word, label), (word, its head from 1) or (word, tag)."""
    if found := re.fullmatch(r"([A-Z]+)\((\S+)(?: (.*))?\)", claim):
        label, first, rest = found.groups(default="")
        start, inside = place(first, words), rest.split()
        if inside[:1] == [".."]:
            return start, place(inside[1], words) + 1, label
        end = start + 1 + len(inside)
        assert [*words[start + 1 : end]] == [word.partition("#")[0] for word in inside], claim
        return start, end, label
    word, head, tag = re.fullmatch(r"([^<]+?)(?:<(\S+)|/([A-Z$]+))", claim).groups()
    return place(word, words), tag or (0 if head == "ROOT" else place(head, words) + 1)


def wrong(sentence, must, never):
    """Return the claims about a parsed sentence that do not hold; of those that must not hold, the ones that do, after 'not'."""
    true = {(start, end, label) for start, end, chain in sentence.constituents for label in chain.split(UNARY)}
    true |= {*enumerate(sentence.heads), *enumerate(sentence.tags)}
    held = [[fact(c, sentence.words) in true for c in claims] for claims in must + never]
    missing = [" | ".join(claims) for claims, holds in zip(must, held) if not any(holds)]
    return missing + ["not " + " | ".join(claims) for claims, holds in zip(never, held[len(must) :]) if any(holds)]


@pytest.mark.parametrize("name", RIGHT)
def test_a_parser_has_as_many_right_as_before(name):
    results = shipped_parser(name).parse_all([words for words, *_ in rows()])
    failed = [claims for r, (_, *row) in zip(results, rows()) if (claims := wrong(r.sentence, *row))]
    assert len(results) - len(failed) >= RIGHT[name], failed
