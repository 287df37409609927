"""Sentences -> one `Batch` of tensors. Padding is marked by masks and must never change a score.

Batches of like length under a budget of words, the same for the same seed and epoch; and parts of a batch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.network.alignment import Aligned, align
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.joint import to_joint
from lalkit.treebank.text import normalise
from lalkit.treebank.tree import Sentence

# Words of a batch in parsing: on a CPU what a core's caches hold, with little padding (2,000 took 20% longer).
USUAL = {"cpu": 500}
MOST = 8000  # elsewhere
# The price of one more part, in sub-words; training steps of MiniLM told no difference from 24 to 96.
PART = 48


def usual(device: str) -> int:
    """How many words a batch has in parsing, on a device of this type."""
    return USUAL.get(device, MOST)


def batches(lengths: Sequence[int], budget: int, seed: int | None = None, epoch: int = 0) -> list[list[int]]:
    """Indices grouped so that sentences x longest <= budget; one sentence longer than the budget is a batch by itself.

    seed None: longest first, for evaluation (the peak of memory comes first). Otherwise lengths are blurred by +-10% so that
    the groups differ between epochs, and the batches are shuffled.
    """
    rng = random.Random(f"{seed}/{epoch}")
    blur = (lambda: 1.0) if seed is None else (lambda: rng.uniform(0.9, 1.1))
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i] * blur(), i))
    groups: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
            longest = lengths[i]
    if seed is not None:
        rng.shuffle(groups)
    return groups


def parts(lengths: Sequence[int], cost: int = PART) -> list[list[int]]:
    """Indices of rows in parts of like length, longest first: those for which rows x longest, added up over parts, with `cost`
    for each, is least."""
    sizes = sorted(set(lengths), reverse=True)
    rows = {size: [i for i, length in enumerate(lengths) if length == size] for size in sizes}
    best: list[tuple[int, int]] = [(0, 0)]  # of the k longest sizes: the least total, and where the last part begins
    for k in range(1, len(sizes) + 1):
        within, choices = 0, []
        for first in range(k - 1, -1, -1):
            within += len(rows[sizes[first]])
            choices.append((best[first][0] + within * sizes[first] + cost, first))
        best.append(min(choices))
    found, k = [], len(sizes)
    while k:
        first = best[k][1]
        found.append([i for size in sizes[first:k] for i in rows[size]])
        k = first
    return found[::-1]


PAD, UNK = 0, 1  # the first two of every list of words or characters, see `Vocab`
IGNORE = -100  # a target that does not count


@dataclass
class Batch:
    """b sentences of at most n words; t = n + 2 with START and STOP; r rows of at most s sub-words; c characters a word.

    places: for each of the t positions (row, first, last) of its sub-words. tags, heads and arc_labels are IGNORE where
    there is no word or no gold; heads are 1-based, 0 = root. spans: per sentence gold (start, end, label index).
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
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        return Batch(**{k: v.to(device) if isinstance(v, Tensor) else v for k, v in moved.items()})


class Collator:
    """Turns sentences into batches for one encoder: by its tokenizer and window, or (tokenizer None) words and characters.

    remember: keep the sub-words of every sentence met, for one who meets the same sentences in every epoch; memory then
    grows with the number of different sentences.
    """

    def __init__(self, vocab: Vocab, tokenizer=None, window: int = 512, remember: bool = False, long: str = "split"):
        """long: a sentence of more sub-words than the window is 'split', or met with a ModelError ('refuse')."""
        self.vocab, self.tokenizer, self.window, self.remember = vocab, tokenizer, window, remember
        self.split = long == "split"
        self._aligned: dict[tuple[str, ...], Aligned] = {}

    def __call__(self, sentences: Sequence[Sentence], gold: bool = False) -> Batch:
        """gold: with targets for training. Raises ModelError for a gold label, tag or arc label the vocabulary lacks."""
        lengths = torch.tensor([len(s) for s in sentences])
        n = int(lengths.max())
        batch = Batch(
            lengths=lengths,
            mask=torch.arange(n + 2) < lengths[:, None] + 2,
            tags=pad([[self.vocab.tag_index.get(t, IGNORE) for t in s.tags or ()] for s in sentences], n, IGNORE),
        )
        if self.tokenizer is not None:
            self._subwords(batch, sentences, n)
        else:
            self._words(batch, sentences, n)
        if gold:
            self._targets(batch, sentences, n)
        return batch

    def _subwords(self, batch: Batch, sentences: Sequence[Sentence], n: int) -> None:
        aligned = [self._align(sentence) for sentence in sentences]
        rows = [row for a in aligned for row in a.rows]
        width = max(map(len, rows))
        batch.subwords = pad(rows, width, self.tokenizer.pad_token_id or 0)
        batch.subword_mask = torch.arange(width) < torch.tensor([len(r) for r in rows])[:, None]
        batch.places = torch.zeros(len(sentences), n + 2, 3, dtype=torch.long)
        first_row = 0
        for b, a in enumerate(aligned):
            batch.places[b, : len(a.places)] = torch.tensor(a.places) + torch.tensor([first_row, 0, 0])
            first_row += len(a.rows)

    def _align(self, sentence: Sentence) -> Aligned:
        found = self._aligned.get(sentence.words)
        if found is None:
            try:
                found = align(sentence.words, self.tokenizer, self.window, self.split)
            except ModelError as error:
                raise error.at(f"sentence {sentence.id}") if sentence.id else error from None
            if self.remember:
                self._aligned[sentence.words] = found
        return found

    def _words(self, batch: Batch, sentences: Sequence[Sentence], n: int) -> None:
        word, char = self.vocab.word_index, self.vocab.char_index
        forms = [[normalise(w) for w in s.words] for s in sentences]
        batch.words = pad([[word.get(w, UNK) for w in row] for row in forms], n, PAD)
        c = max(len(w) for row in forms for w in row)
        batch.chars = torch.full((len(sentences), n, c), PAD)
        for b, row in enumerate(forms):
            batch.chars[b, : len(row)] = pad([[char.get(x, UNK) for x in w] for w in row], c, PAD)

    def _targets(self, batch: Batch, sentences: Sequence[Sentence], n: int) -> None:
        """A layer that no sentence has stays None."""
        if any(s.heads is not None for s in sentences):
            batch.heads = pad([s.heads for s in sentences], n, IGNORE)
        batch.arc_labels = pad(
            [[self._index("arc_label", a, s) for a in s.arc_labels] if s.arc_labels else () for s in sentences],
            n,
            IGNORE,
        )
        if any(s.constituents is not None for s in sentences):
            batch.spans = [
                [(x[0], x[1], self._index("label", x[2], s)) for x in (to_joint(s) if s.heads else s.constituents)]
                for s in sentences
            ]

    def _index(self, kind: str, name: str, sentence: Sentence) -> int:
        index = getattr(self.vocab, f"{kind}_index")
        if name not in index:
            raise ModelError(
                f"the {kind.replace('_', ' ')} {name!r} is not in the parser's vocabulary",
                where=f"sentence {sentence.id}",
                remedy="Train on a treebank with the same labels, or start a new run.",
            )
        return index[name]


def pad(rows: Sequence[Sequence[int]], width: int, value: int) -> Tensor:
    """Lists of different length -> [rows, width]."""
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long)
