"""Read typed text as sentences without trees, and recognise and normalise Chinese words.

A text has one of four forms: running text (split into sentences here), raw sentences (split into tokens here), tokens with
spaces between them, or word_TAG pairs.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import ESCAPES
from lalkit.treebank.tree import WHITE, Sentence, in_order

HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# A hyphenation point, bullets, a dot operator and Katakana dots: all are written between the parts of a foreign name.
DOTS = dict.fromkeys(map(ord, "\u2027\u2022\u2219\u22c5\u30fb\uff65"), "·")
IMPORTING = threading.Lock()  # held while NLTK's packages are empty ones


def is_chinese(text: str) -> bool:
    """Return whether a text contains a Han character (Japanese Kanji are Han characters, too)."""
    return HAN.search(text) is not None


def normalise(word: str) -> str:
    """Return one form for all ways of writing a word, for looking the word up. Trees and results keep the word as it was
    written.

    Full-width letters, digits and signs become half-width ones; compatibility ideographs become the characters for which they
    stand; all middle dots become one. Words in simplified and in traditional characters stay different.
    """
    if word.isascii():
        return word
    narrow = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in word)
    return unicodedata.normalize("NFC", narrow).translate(DOTS)


Form = Literal["text", "raw", "tokens", "tagged"]


def read_sentences(texts: Any, form: Form = "raw") -> list[Sentence]:
    """Return texts, lists of words or Sentences as Sentences: of a list, an array, a column of a table or an iterator.

    Raises TreebankError if an entry is no sentence. The message gives its number.
    """
    return [read_sentence(text, form, number) for number, text in enumerate(in_order(texts, "sentences"), 1)]


def read_sentence(text: Any, form: Form = "raw", number: int = 1) -> Sentence:
    """Return one text, list of words or Sentence as a Sentence. Raises TreebankError if there are no words."""
    if isinstance(text, Sentence):
        return text
    sentence = read_line(text, form, str(number)) if isinstance(text, str) else Sentence(text, id=str(number))
    if sentence is None:
        raise TreebankError("there is nothing to parse", "Give at least one word.", where=f"sentence {number}")
    return sentence


def read_line(line: str, form: Form = "raw", id: str = "") -> Sentence | None:
    """Read a line that is one sentence; None for a line without words.

    Raises TreebankError for an unknown form, or for a token of tagged text that is not word_TAG.
    """
    if form not in get_args(Form):
        raise TreebankError(f"there is no form {form!r}", f"Forms: {', '.join(get_args(Form))}.", where=id)
    if form in ("text", "raw"):
        words = tokenize(line)  # only raw text is also split at unusual spaces, such as U+00A0
        return Sentence(words, id=id) if words else None
    tokens = [token for token in re.split(f"[{WHITE}]", line) if token]
    if form == "tokens" or not tokens:
        return Sentence(tokens, id=id) if tokens else None
    pairs = [token.rpartition("_") for token in tokens]
    if wrong := [token for token, (word, _, tag) in zip(tokens, pairs) if not word or not tag]:
        remedy = "Tagged text looks like: The_DT end_NN ._."
        raise TreebankError(f"{wrong[0]!r} is not a word_TAG pair", remedy, where=id)
    words, _, tags = zip(*pairs)
    return Sentence(words, tags, id=id)


def read_lines(
    lines: Iterable[str], form: Form = "raw", place: str = "", first: int = 1
) -> Iterator[list[Sentence | None]]:
    """Yield the sentences of every line: one, or any number in running text. An empty line gives [None].

    The ids are `place:line`; in running text they are `place:line.1`, `place:line.2` and so on.

    Args:
        lines: the lines.
        form: the form of the text.
        place: the name of the file, for ids and error messages.
        first: the number of the first line.
    """
    for number, line in enumerate(lines, first):
        where = f"{place}:{number}" if place else str(number)
        try:
            yield read_text(line, where) or [None] if form == "text" else [read_line(line, form, where)]
        except TreebankError as error:
            raise error if error.where else error.at(where) from None


def read_text(text: str, id: str = "") -> list[Sentence]:
    """Return the sentences of running text. Their ids are `id.1`, `id.2` and so on."""
    sentences = [read_line(part, "raw") for part in split_sentences(text)]
    return [replace(s, id=f"{id}.{i}" if id else str(i)) for i, s in enumerate(filter(None, sentences), 1)]


def split_sentences(text: str) -> list[str]:
    """Split running text into sentences by the rules of sentencex for English (abbreviations, quotations, numbers)."""
    from sentencex import segment

    return [part.strip() for part in segment("en", text) if part.strip()]


def tokenize(text: str) -> tuple[str, ...]:
    """Split a sentence into Penn Treebank tokens: do n't, `` quoted '', -LRB- for brackets.

    Raises TreebankError for text that is mostly Chinese.
    """
    letters = [character for character in text if character.isalnum()]
    if 2 * sum(map(is_chinese, letters)) > len(letters):
        problem = f"Chinese is written without spaces, and lalkit cannot tell its words apart: {text.strip()[:20]!r}"
        raise TreebankError(problem, "Put spaces between the words, and add --form tokens (or --form tagged).")
    return tuple(ESCAPES.get(token, token) for token in word_tokenizer().tokenize(text))


@cache
def word_tokenizer() -> Any:
    """Return NLTK's tokenizer, from its own file: importing all of NLTK takes as long as importing torch.

    While the file is imported, empty packages stand for `nltk` and `nltk.tokenize`; afterwards they are forgotten.
    """
    with IMPORTING:
        if "nltk" in sys.modules:
            return import_module("nltk.tokenize").NLTKWordTokenizer()
        folder = Path(find_spec("nltk").origin).parent
        try:
            for name, place in (("nltk", folder), ("nltk.tokenize", folder / "tokenize")):
                sys.modules[name] = ModuleType(name)
                sys.modules[name].__path__ = [str(place)]
            return import_module("nltk.tokenize.destructive").NLTKWordTokenizer()
        finally:
            for name in [name for name in sys.modules if f"{name}.".startswith("nltk.")]:
                del sys.modules[name]
