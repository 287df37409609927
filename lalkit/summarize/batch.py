"""Documents -> ids, in two kinds: those the network knows, and those of an extended vocabulary, to which a batch's unknown words
are added so that they can be copied."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.summarize.config import SummarizerConfig
from lalkit.summarize.documents import Document

PAD, UNKNOWN, START, STOP = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


@dataclass(frozen=True)
class Batch:
    """b documents of at most t words, summaries of at most q - 1, V known words, o unknown ones in the whole batch.

    source [B, T] known ids; extended [B, T] ids below V + o; mask [B, T]; before [B, Q] known ids of START and the summary;
    target [B, Q] extended ids of the summary and STOP, PAD beyond; unknown: the o words, by their order.
    """

    source: Tensor
    extended: Tensor
    mask: Tensor
    before: Tensor
    target: Tensor
    unknown: tuple[str, ...]

    @property
    def target_mask(self) -> Tensor:
        return self.target != PAD


@dataclass(frozen=True)
class Vocabulary:
    """Words with ids, the four special ones first."""

    words: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "index", {word: i for i, word in enumerate(self.words)})

    @classmethod
    def build(cls, documents: Sequence[Document], config: SummarizerConfig) -> Vocabulary:
        """The words of documents and summaries, the most frequent first; equals in the order of the alphabet."""
        counts = Counter(word for d in documents for word in (*d.words, *d.summary) if word not in SPECIAL)
        frequent = sorted((word for word, n in counts.items() if n >= config.min_count), key=lambda w: (-counts[w], w))
        return cls((*SPECIAL, *frequent[: config.vocabulary]))

    def __len__(self) -> int:
        return len(self.words)

    def collate(self, documents: Sequence[Document], config: SummarizerConfig) -> Batch:
        """Raises ModelError for no document. What is longer than the config's source or target is cut, with a warning."""
        if not documents:
            raise ModelError("there is no document", remedy="Give at least one.")
        sources = [_cut(d.words, config.source, f"{d.id}: the document") for d in documents]
        targets = [_cut(d.summary, config.target, f"{d.id}: the summary") for d in documents]
        unknown = tuple(dict.fromkeys(w for words in sources for w in words if w not in self.index))
        extra = {word: len(self) + i for i, word in enumerate(unknown)}
        known = [[self.index.get(w, UNKNOWN) for w in words] for words in sources]
        extended = [[self.index.get(w, extra.get(w, UNKNOWN)) for w in words] for words in sources]
        before = [[START, *(self.index.get(w, UNKNOWN) for w in words)] for words in targets]
        # A word that is unknown and not in this document cannot be said: <unk> is wanted there.
        wanted = [
            [*(self.index.get(w, extra.get(w, UNKNOWN) if w in own else UNKNOWN) for w in words), STOP]
            for words, own in zip(targets, map(set, sources))
        ]
        source = _pad(known)
        return Batch(source, _pad(extended), source != PAD, _pad(before), _pad(wanted), unknown)

    def word(self, index: int, batch: Batch) -> str:
        """Of an extended id."""
        return self.words[index] if index < len(self) else batch.unknown[index - len(self)]


def _cut(words: Sequence[str], most: int, what: str) -> Sequence[str]:
    if len(words) > most:
        warnings.warn(f"{what} has {len(words)} tokens; {most} of them are read", stacklevel=3)
    return words[:most]


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    found = torch.full((len(rows), max(map(len, rows))), PAD)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found
