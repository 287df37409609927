"""Typed text -> sentences without trees: raw (tokenised here), tokens between spaces, or word_TAG pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import ESCAPES
from lalkit.treebank.tree import WHITE, Sentence

Form = Literal["raw", "tokens", "tagged"]


def read_line(line: str, form: Form = "raw", id: str = "") -> Sentence | None:
    """One sentence a line; None for a line without words. Raises TreebankError for word_TAG pairs that are none."""
    if not line.strip(WHITE):
        return None
    if form == "raw":
        words = tokenize(line)  # none in a line of unusual spaces, such as U+00A0, which only raw text is split at
        return Sentence(words, id=id) if words else None
    tokens = [token for token in line.replace("\t", " ").strip(WHITE).split(" ") if token]
    if form == "tokens":
        return Sentence(tuple(tokens), id=id)
    pairs = [token.rpartition("_") for token in tokens]
    wrong = next((token for token, (word, _, tag) in zip(tokens, pairs) if not word or not tag), None)
    if wrong is not None:
        raise TreebankError(
            f"{wrong!r} is no word_TAG pair", where=id, remedy="Tagged text looks like: The_DT end_NN ._."
        )
    return Sentence(tuple(p[0] for p in pairs), tuple(p[2] for p in pairs), id=id)


def read_lines(lines: Iterable[str], form: Form = "raw", place: str = "", first: int = 1) -> Iterator[Sentence | None]:
    """Sentences with ids `place:line`, None for every empty line, so that the output can keep its place.

    first: the number of the first line.
    """
    for number, line in enumerate(lines, first):
        where = f"{place}:{number}" if place else str(number)
        try:
            yield read_line(line, form, where)
        except TreebankError as error:
            raise error if error.where else error.at(where) from None


def tokenize(text: str) -> tuple[str, ...]:
    """Penn Treebank tokens: do n't, `` quoted '', -LRB- for brackets."""
    from nltk.tokenize import NLTKWordTokenizer

    return tuple(ESCAPES.get(token, token) for token in NLTKWordTokenizer().tokenize(text))
