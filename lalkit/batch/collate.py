"""Sentences -> one `Batch` of tensors. Padding is marked by masks and must never change a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lalkit.batch.align import Aligned, align
from lalkit.batch.vocab import Vocab
from lalkit.errors import ModelError
from lalkit.treebank.chinese import normalise
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence

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
