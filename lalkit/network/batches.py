"""Sentences -> batches: which sentences are computed together, and their tensors (`Batch`, `Collator`).

Masks mark the padding of a batch. Padding must never change a score.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lalkit.chart.joint_torch import to_device
from lalkit.config import EncoderConfig
from lalkit.errors import ModelError, ParameterError
from lalkit.network.alignment import SubWords, load_tokenizer
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.joint import to_joint
from lalkit.treebank.text import normalise
from lalkit.treebank.tree import Sentence

# Words of a batch in parsing. On a CPU: a number that fits into a core's caches, with little padding. With 500, en-news took 5%
# longer on an AMD EPYC, and 10% in bf16; with 2,000 it took 6% and 3% longer, and on another processor 20%.
USUAL = {"cpu": 1000}
MOST = 4000  # on other devices; a GPU holds up to three batches, see `Model.predict` [D]
PART = 48  # the cost of one more part, in sub-words; training steps of MiniLM were equally fast with 24 to 96
PAD, UNK = 0, 1  # the first two entries of every list of words or characters, see `Vocab`
IGNORE = -100  # a target that does not count


def usual(device: str) -> int:
    """Return how many words a batch has in parsing on a device of this type."""
    return USUAL.get(device, MOST)


def batches(
    lengths: Sequence[int], budget: int, seed: int | None = None, epoch: int = 0, kinds: Sequence | None = None
) -> list[list[int]]:
    """Group sentences of similar length so that sentences x longest <= budget. Return the groups' indices.

    A sentence that is longer than the budget is a batch by itself. With seed None the longest sentences come first, for
    evaluation: the peak of memory then comes first. With a seed, lengths are blurred by up to 10%, so that the groups differ
    between epochs, and the batches are shuffled. The same seed and epoch give the same batches. kinds: the kind of each
    sentence; a batch has sentences of one kind.
    """
    kinds = kinds or [0] * len(lengths)
    rng = random.Random(f"{seed}/{epoch}")
    blur = (lambda: 1.0) if seed is None else (lambda: rng.uniform(0.9, 1.1))
    order = sorted(range(len(lengths)), key=lambda i: (kinds[i], -lengths[i] * blur(), i))
    groups: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if groups and kinds[groups[-1][0]] == kinds[i] and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
            longest = lengths[i]
    if seed is not None:
        rng.shuffle(groups)
    return groups


def parts(lengths: Sequence[int], cost: int = PART) -> list[list[int]]:
    """Group rows of similar length at the least total cost, longest first. Return the groups' indices.

    The cost of a group is its rows times its longest row, plus `cost`. Dynamic programming over the different lengths finds
    the least sum.
    """
    sizes = sorted(set(lengths), reverse=True)
    rows = {size: [i for i, length in enumerate(lengths) if length == size] for size in sizes}
    best: list[tuple[int, int]] = [(0, 0)]  # for the k longest sizes: (the least total, the start of the last group)
    for k in range(1, len(sizes) + 1):
        within, choices = 0, []
        for first in range(k - 1, -1, -1):
            within += len(rows[sizes[first]])
            choices.append((best[first][0] + within * sizes[first] + cost, first))
        best.append(min(choices))
    groups, k = [], len(sizes)
    while k:
        first = best[k][1]
        groups.append([i for size in sizes[first:k] for i in rows[size]])
        k = first
    return groups[::-1]


@dataclass
class Batch:
    """b sentences of at most n words; t = n + 2 with START and STOP; r rows of at most s sub-words; c characters of a word.

    places: (row, first, last) of the sub-words of each of the t positions. tags, heads and arc_labels are IGNORE where there
    is no word or no gold. heads are 1-based, and 0 is the root. spans: each sentence's gold (start, end, label index).
    """

    lengths: Int[Tensor, "b"]
    mask: Bool[Tensor, "b t"]
    tags: Int[Tensor, "b n"]
    subwords: Int[Tensor, "r s"] | None = None
    subword_mask: Bool[Tensor, "r s"] | None = None
    places: Int[Tensor, "b t 3"] | None = None
    words: Int[Tensor, "b n"] | None = None
    chars: Int[Tensor, "b n c"] | None = None
    heads: Int[Tensor, "b n"] | None = None
    arc_labels: Int[Tensor, "b n"] | None = None
    spans: list[list[tuple[int, int, int]]] | None = None

    @property
    def word_mask(self) -> Bool[Tensor, "b n"]:
        return torch.arange(self.mask.shape[1] - 2, device=self.lengths.device) < self.lengths[:, None]

    def to(self, device) -> "Batch":
        """Return the batch on a device; a GPU copies it while the host goes on."""
        moved: dict[str, Any] = {k: to_device(v, device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


class Collator:
    """Turn sentences into batches for an encoder: sub-words for a pretrained one, else words and characters."""

    def __init__(self, vocab: Vocab, config: EncoderConfig):
        self.vocab, self.config = vocab, config
        self.tokenizer = load_tokenizer(config.pretrained) if config.pretrained else None
        self.subwords = SubWords(self.tokenizer) if config.pretrained else None

    def pieces(self, words: list[str]) -> list[list[int]]:
        """Return the sub-words of each word, for a pretrained encoder."""
        return self.tokenizer(words, add_special_tokens=False)["input_ids"]

    def __call__(self, sentences: Sequence[Sentence], gold: bool = False) -> Batch:
        """Return a batch. gold: with the targets for training; a label that the vocabulary lacks then raises ModelError."""
        lengths = torch.tensor([len(s) for s in sentences])
        n = int(lengths.max())
        tags = pad([[self.vocab.tag_index.get(t, IGNORE) for t in s.tags or ()] for s in sentences], n, IGNORE)
        batch = Batch(lengths=lengths, mask=torch.arange(n + 2) < lengths[:, None] + 2, tags=tags)
        if self.subwords is not None:
            batch.subwords, batch.subword_mask, batch.places = self.subwords(sentences)
        else:
            self._words(batch, sentences, n)
        if gold:
            self._targets(batch, sentences, n)
        return batch

    def _words(self, batch: Batch, sentences: Sequence[Sentence], n: int) -> None:
        word, char = self.vocab.word_index, self.vocab.char_index
        forms = [[normalise(w) for w in s.words] for s in sentences]
        batch.words = pad([[word.get(w, UNK) for w in row] for row in forms], n, PAD)
        chars = pad([[char.get(x, UNK) for x in w] for row in forms for w in row])
        batch.chars = torch.full((len(sentences), n, chars.shape[1]), PAD)
        batch.chars[batch.word_mask] = chars

    def _targets(self, batch: Batch, sentences: Sequence[Sentence], n: int) -> None:
        """Add the targets. A layer that no sentence has stays None."""
        if any(s.heads is not None for s in sentences):
            batch.heads = pad([s.heads for s in sentences], n, IGNORE)
        arcs = [[self._index("arc_label", a, s) for a in s.arc_labels or ()] for s in sentences]
        batch.arc_labels = pad(arcs, n, IGNORE)
        if any(s.constituents is not None for s in sentences):
            batch.spans = [
                [(x[0], x[1], self._index("label", x[2], s)) for x in (to_joint(s) if s.heads else s.constituents)]
                for s in sentences
            ]

    def _index(self, kind: str, name: str, sentence: Sentence) -> int:
        index = getattr(self.vocab, f"{kind}_index")
        if name not in index:
            problem = f"the {kind.replace('_', ' ')} {name!r} is not in the parser's vocabulary"
            remedy = "Train on a treebank with the same labels, or start a new run."
            raise ModelError(problem, where=sentence.where, remedy=remedy)
        return index[name]


def subwords_of_words(batch: Batch) -> Bool[Tensor, "t s"]:
    """Return which sub-words stand for each word of the one sentence of a batch.

    Raises ParameterError for several sentences, and for a sentence that the encoder reads in several rows.
    """
    if len(batch.places) > 1 or len(batch.subwords) > 1:
        raise ParameterError("words need one sentence, in one row of sub-words", remedy="Give them one by one.")
    places, column = batch.places[0], torch.arange(batch.subwords.shape[1], device=batch.places.device)
    return (column >= places[:, 1:2]) & (column <= places[:, 2:])


def pad(rows: Sequence[Sequence[int]], width: int | None = None, value: int = PAD, device=None) -> Tensor:
    """Return lists of different lengths as one tensor [rows, width], filled up with `value`.

    width: longer lists are cut off. None: the length of the longest list.
    """
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    width = int(sizes.max()) if width is None else width
    filled = np.full((len(rows), width), value)
    kept = chain.from_iterable(row[:width] for row in rows)
    filled[np.arange(width) < sizes[:, None]] = np.fromiter(kept, np.int64)
    return torch.from_numpy(filled).to(device or "cpu")
