"""Examples -> padded tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.transparent.config import ClassifierConfig
from lalkit.transparent.examples import Dataset, Example

PADDING, UNKNOWN = 0, 1
WINDOW = 50  # batches among which examples are sorted by length, so that little is padded


@dataclass(frozen=True)
class Batch:
    """x [B, T], mask [B, T] (True: a word); question [B, m] and its mask, or None; label [B]; allowed [B, C] or None: the
    classes that an extractive task's text speaks of."""

    examples: tuple[Example, ...]
    x: Tensor
    mask: Tensor
    question: Tensor | None
    question_mask: Tensor | None
    label: Tensor
    allowed: Tensor | None

    def rows(self, index: Tensor) -> Batch:
        """The batch of some of its examples, in the order of index [K], which may repeat."""
        tensors = (self.x, self.mask, self.question, self.question_mask, self.label, self.allowed)
        picked = [None if tensor is None else tensor[index] for tensor in tensors]
        return Batch(tuple(self.examples[i] for i in index.tolist()), *picked)


@dataclass(frozen=True)
class Vocabulary:
    """words: of texts; asked: of questions; both without padding and the unknown word, whose indices are 0 and 1."""

    words: tuple[str, ...]
    asked: tuple[str, ...]
    classes: tuple[str, ...]
    extractive: bool = False

    def __post_init__(self):
        for name in ("words", "asked"):
            index = {word: i for i, word in enumerate(getattr(self, name), 2)}
            object.__setattr__(self, f"_{name}", index)
        object.__setattr__(self, "_classes", {c: i for i, c in enumerate(self.classes)})

    @classmethod
    def build(cls, data: Dataset, config: ClassifierConfig) -> Vocabulary:
        """Of the training part."""
        counts: list[dict[str, int]] = [{}, {}]
        for example in data.train:
            for count, words in zip(counts, (example.words, example.question)):
                for word in words:
                    count[word] = count.get(word, 0) + 1
        kept = [tuple(sorted(w for w, n in count.items() if n >= config.min_count)) for count in counts]
        return cls(*kept, data.classes, data.extractive)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Raises ModelError for no examples at all, or a class that the classifier does not know."""
        if not examples:
            raise ModelError("a batch of no examples")
        for example in examples:
            if example.label not in self._classes:
                raise ModelError(f"the classifier knows no class {example.label!r}", remedy=f"It knows {self.classes}.")
        x = _pad([[self._words.get(w, UNKNOWN) for w in e.words] for e in examples])
        asked = bool(examples[0].question)
        question = _pad([[self._asked.get(w, UNKNOWN) for w in e.question] for e in examples]) if asked else None
        allowed = None
        if self.extractive:
            allowed = torch.tensor([[c in set(e.words) for c in self.classes] for e in examples])
        return Batch(
            tuple(examples), x, x != PADDING, question, question != PADDING if asked else None,
            torch.tensor([self._classes[e.label] for e in examples]), allowed,
        )  # fmt: skip


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    found = torch.full((len(rows), max(map(len, rows))), PADDING)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found


def shuffled(examples: Sequence[Example], size: int, seed: int, epoch: int) -> Iterator[list[Example]]:
    """The batches of an epoch, a function of seed and epoch alone: like lengths together, in a random order."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(examples))
    groups = []
    for start in range(0, len(order), size * WINDOW):
        window = sorted(order[start : start + size * WINDOW], key=lambda i: len(examples[i].words))
        groups += [window[i : i + size] for i in range(0, len(window), size)]
    for g in rng.permutation(len(groups)):
        yield [examples[i] for i in groups[g]]


def in_order(examples: Sequence[Example], size: int) -> Iterator[list[Example]]:
    for start in range(0, len(examples), size):
        yield list(examples[start : start + size])
