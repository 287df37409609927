"""Typed text -> sentences without trees: running text (split into sentences here), raw sentences (tokenised here), tokens
between spaces, or word_TAG pairs.

Chinese text: what is Chinese, and which ways of writing a word are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, get_args

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import ESCAPES
from lalkit.treebank.tree import WHITE, Sentence

HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# A hyphenation point, a bullet, a Katakana dot: all are written between the parts of a foreign name.
DOTS = dict.fromkeys(map(ord, "\u2027\u2022\u2219\u22c5\u30fb\uff65"), "·")


def is_chinese(text: str) -> bool:
    """Whether a Han character is in it (Japanese Kanji too)."""
    return HAN.search(text) is not None


def normalise(word: str) -> str:
    """One form for a word that can be written in several: full-width letters, digits and signs as half-width ones, compatibility
    ideographs as those they stand for, one middle dot. Simplified and traditional characters are different words.

    For looking a word up; in trees and results words stay as they were written.
    """
    if word.isascii():
        return word
    narrow = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in word)
    return unicodedata.normalize("NFC", narrow).translate(DOTS)


Form = Literal["text", "raw", "tokens", "tagged"]


def read_line(line: str, form: Form = "raw", id: str = "") -> Sentence | None:
    """One sentence a line; None for a line without words. Raises TreebankError for word_TAG pairs that are none, or a form that
    there is not."""
    if form not in get_args(Form):
        raise TreebankError(f"there is no form {form!r}", where=id, remedy=f"Forms: {', '.join(get_args(Form))}.")
    if not line.strip(WHITE):
        return None
    if form in ("text", "raw"):
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


def read_lines(
    lines: Iterable[str], form: Form = "raw", place: str = "", first: int = 1
) -> Iterator[list[Sentence | None]]:
    """The sentences of every line: one, or in running text any number; [None] for an empty line, so that it keeps its place.

    first: the number of the first line. Ids are `place:line`; of running text `place:line.1` and so on.
    """
    for number, line in enumerate(lines, first):
        where = f"{place}:{number}" if place else str(number)
        try:
            yield read_text(line, where) or [None] if form == "text" else [read_line(line, form, where)]
        except TreebankError as error:
            raise error if error.where else error.at(where) from None


def read_text(text: str, id: str = "") -> list[Sentence]:
    """The sentences of running text, their ids `id.1`, `id.2` and so on."""
    sentences = [read_line(part, "raw") for part in split_sentences(text)]
    return [replace(s, id=f"{id}.{i}" if id else str(i)) for i, s in enumerate(filter(None, sentences), 1)]


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Running text -> sentences, by the rules of sentencex (abbreviations, quotations, numbers) for a language."""
    from sentencex import segment

    return [part.strip() for part in segment(language, text) if part.strip()]


def tokenize(text: str) -> tuple[str, ...]:
    """Penn Treebank tokens: do n't, `` quoted '', -LRB- for brackets. Raises TreebankError for text that is mostly Chinese."""
    letters = [character for character in text if character.isalnum()]
    if 2 * sum(map(is_chinese, letters)) > len(letters):
        raise TreebankError(
            f"Chinese is written without spaces, and lalkit cannot tell its words apart: {text.strip()[:20]!r}",
            remedy="Put spaces between the words, and say so: --form tokens (or --form tagged).",
        )
    from nltk.tokenize import NLTKWordTokenizer

    return tuple(ESCAPES.get(token, token) for token in NLTKWordTokenizer().tokenize(text))
