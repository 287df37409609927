"""Words <-> sub-words: one path for every tokenizer.

A sentence becomes one or more rows of sub-word ids (rows, because an encoder reads a limited number of sub-words and a longer
sentence is read in overlapping windows). Every word, and the START and STOP around the sentence, points at the sub-words that
stand for it: (row, first, last).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lalkit.errors import ModelError
from lalkit.treebank.brackets import unescape

QUOTES = {"``": '"', "''": '"'}  # the Penn Treebank's quotes as encoders have read them
OVERLAP = 4  # a window starts a quarter of a window before the last one ended


@dataclass(frozen=True)
class Aligned:
    """rows: sub-word ids with the special tokens; places: n + 2 of (row, first, last), START and STOP included."""

    rows: tuple[tuple[int, ...], ...]
    places: tuple[tuple[int, int, int], ...]


def surface(word: str) -> str:
    """A treebank token as it would stand in raw text."""
    return QUOTES.get(word) or unescape(word)


def align(words: tuple[str, ...], tokenizer, window: int, split: bool = True) -> Aligned:
    """The sub-words of a sentence. Each word is cut up by itself, so that no sub-word belongs to two; one for which the
    tokenizer yields nothing is read as its unknown token.

    window: sub-words in a row, special tokens included. split: read a longer sentence in several rows that overlap. Raises
    ModelError for a word longer than a row and, unless split, for a sentence that is.
    """
    space = " " if wants_space(tokenizer) else ""
    known = tokenizer([space + surface(word) for word in words], add_special_tokens=False)["input_ids"]
    pieces = [ids or [_unknown(tokenizer)] for ids in known]
    before, after = special_tokens(tokenizer)
    room = window - len(before) - len(after)
    longest = max(range(len(words)), key=lambda i: len(pieces[i]))
    if len(pieces[longest]) > room:
        raise ModelError(
            f"word {longest + 1} has {len(pieces[longest])} sub-words; a row takes {room}",
            remedy=f"Is this a word? {words[longest][:40]!r}...",
        )
    total = sum(map(len, pieces))
    if total > room and not split:
        raise ModelError(
            f"the sentence has {total} sub-words; the encoder takes {room}",
            remedy="Shorten it, or have it read in overlapping windows: model.encoder.long=split.",
        )
    rows, places = [], [None] * len(words)
    first = seen = 0  # where this window starts, where the one before it ended
    while True:
        last, size = first, 0
        while last < len(words) and size + len(pieces[last]) <= room:
            size += len(pieces[last])
            last += 1
        row, position = list(before), len(before)
        for i in range(first, last):
            place = (len(rows), position, position + len(pieces[i]) - 1)
            # In the overlap of two windows a word is read where it has more context: past half the overlap, in the later.
            if places[i] is None or i - first > (seen - first) // 2:
                places[i] = place
            row.extend(pieces[i])
            position += len(pieces[i])
        rows.append(tuple(row + after))
        if last == len(words):
            break
        first, seen, overlap = last, last, 0
        while first > 0 and overlap + len(pieces[first - 1]) <= room // OVERLAP:
            first -= 1
            overlap += len(pieces[first])
    start = (0, 0, 0) if before else places[0]
    stop_at = len(rows[-1]) - 1
    return Aligned(tuple(rows), (start, *places, (len(rows) - 1, stop_at, stop_at)))


@lru_cache(maxsize=8)
def wants_space(tokenizer) -> bool:
    """Whether a word has its own sub-words only after a space: byte-level BPE (RoBERTa, GPT-2) writes it as a letter Ġ, and knows
    most words with it; others begin a word with a mark of their own."""
    alone, after = (
        tokenizer.convert_ids_to_tokens(tokenizer.encode(text, add_special_tokens=False)) for text in ("a", " a")
    )
    return alone != after and after[0].startswith("Ġ")


def _unknown(tokenizer) -> int:
    """The id of the token that says least: tokenizers over bytes have no unknown one."""
    ids = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    found = next((id for id in ids if id is not None), None)
    if found is None:
        raise ModelError("the tokenizer yields nothing for a word, and has no token for unknown ones")
    return found


@lru_cache(maxsize=8)
def special_tokens(tokenizer) -> tuple[list[int], list[int]]:
    """The ids a tokenizer puts before and after one sentence ([CLS] ... [SEP]; XLNet: nothing ... <sep><cls>)."""
    plain = tokenizer.encode("a", add_special_tokens=False)
    full = tokenizer.encode("a", add_special_tokens=True)
    at = next((i for i in range(len(full)) if full[i : i + len(plain)] == plain), None)
    if at is None:
        raise ModelError("the tokenizer changes a word when special tokens are added", remedy="Use a fast tokenizer.")
    return full[:at], full[at + len(plain) :]
