"""Who parses the batches of a window. This process, by default; `workers`, `cluster` and `ranks` hold the others.

All get the same batches and give the same trees: a batch does not know who computes it.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch

from lalkit.chart.machine import give_back
from lalkit.errors import LalkitError, ModelError, TooLongError
from lalkit.network.predict import Prediction, predict
from lalkit.training.checkpoint import Loaded, fingerprint, load_model
from lalkit.treebank.tree import Sentence

Group = Sequence[Sentence]  # one batch
REST = 10  # batches between two times at which free memory is given back
SPLIT = "Split the sentence, or parse on a machine with more memory."
# What torch says when an allocation fails and it is not a torch.OutOfMemoryError.
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed", "bad_alloc")


class Compute(Protocol):
    """Parses batches. size: how many are worked on at the same time; device: the type of that which does."""

    size: int
    device: str

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        """(number of the group, its predictions in order), in any order of groups. Raises LalkitError, naming the line,
        for a sentence that cannot be parsed."""

    def close(self) -> None:
        """Stop whatever was started."""


@dataclass(frozen=True)
class Source:
    """A trained parser as it is handed to other processes. sha256: its fingerprint; None: whatever lies there."""

    folder: str
    sha256: str | None = None

    def load(self) -> Loaded:
        """Raises ModelError where there is none, or another one than the fingerprint says."""
        loaded = load_model(self.folder)
        if self.sha256 is not None and fingerprint(self.folder) != self.sha256:
            raise ModelError(
                "is not the parser this run was begun with",
                where=self.folder,
                remedy="Was it trained on meanwhile? Copy a parser before you parse with it, and start again.",
            )
        return loaded


class Here:
    """This process computes; the parser is loaded when the first batch comes.

    device: the default is a GPU where there is one. threads: for decoding; None for one per core.
    """

    size = 1

    def __init__(self, source: Source, device: str | torch.device | None = None, threads: int | None = None):
        self.source, self.threads, self.batches = source, threads, 0
        self.place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.device = self.place.type

    @cached_property
    def loaded(self) -> Loaded:
        loaded = self.source.load()
        loaded.network.to(self.place)
        return loaded

    def parse(self, sentences: Group) -> list[Prediction]:
        """One batch, in as many parts as the memory asks for."""
        self.loaded  # noqa: B018 (what is wrong with the parser is no fault of a sentence)
        self.batches += 1
        if self.batches % REST == 0:
            give_back()
        return in_halves(self._predict, sentences)

    def _predict(self, sentences: Group) -> list[Prediction]:
        one_batch = len(sentences) * max(map(len, sentences))
        return predict(
            self.loaded.network, self.loaded.collator, sentences,
            lam=self.loaded.config.train.lam, budget=one_batch, threads=self.threads,
        )  # fmt: skip

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        for number, group in enumerate(groups):
            yield number, self.parse(group)

    def close(self) -> None:
        pass


def in_halves(parse: Callable[[Group], list[Prediction]], sentences: Group) -> list[Prediction]:
    """parse(sentences), by halves where memory runs out or some sentence cannot be parsed: so the others are, and the
    one that cannot is named. Raises LalkitError with its id (file and line); TooLongError where it does not fit alone."""
    try:
        return parse(sentences)
    except (MemoryError, RuntimeError, LalkitError) as error:
        if not (isinstance(error, LalkitError) or out_of_memory(error)):
            raise
        if len(sentences) == 1:
            raise _named(error, sentences[0]) from None
    # Not before here are the error, its frames and the tensors in them gone.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    middle = len(sentences) // 2
    return [*in_halves(parse, sentences[:middle]), *in_halves(parse, sentences[middle:])]


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError | TooLongError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in NO_MEMORY)


def _named(error: BaseException, sentence: Sentence) -> LalkitError:
    """The error, with the sentence's place instead of its number in a batch of one."""
    if isinstance(error, LalkitError):
        return type(error)(error.problem, where=sentence.id, remedy=error.remedy)
    return TooLongError(f"{len(sentence)} words do not fit into memory", where=sentence.id, remedy=SPLIT)


def answer(compute: Callable):
    """What it returns; or what it raises, in a form that can be sent to another process."""
    try:
        return compute()
    except LalkitError as error:
        return error
    except Exception:
        return RuntimeError(f"in another process:\n{traceback.format_exc()}")


@dataclass
class Task:
    """Neighbouring sentences of a group, from `start` on, on their way to a process that may die of them."""

    group: int
    start: int
    sentences: Group
    deaths: int = 0

    def again(self, most: int = 1) -> list[Task]:
        """What to do after one more death: the same again, at most `most` times, then by halves: most likely the system
        killed the process because memory ran out. Raises TooLongError where one sentence has killed too many."""
        self.deaths += 1
        if self.deaths <= most:
            return [self]
        if len(self.sentences) == 1:
            (sentence,) = self.sentences
            raise TooLongError(
                f"the processes that got these {len(sentence)} words died ({self.deaths} times); did memory run out?",
                where=sentence.id,
                remedy="Fewer processes leave more memory to each. " + SPLIT,
            )
        middle = len(self.sentences) // 2
        return [
            Task(self.group, self.start, self.sentences[:middle]),
            Task(self.group, self.start + middle, self.sentences[middle:]),
        ]


class Found:
    """The predictions of groups that may come back in pieces."""

    def __init__(self, groups: Sequence[Group]):
        self.tasks = [Task(number, 0, group) for number, group in enumerate(groups)]
        self._found: dict[int, list[Prediction | None]] = {n: [None] * len(group) for n, group in enumerate(groups)}

    def add(self, task: Task, predictions: Sequence[Prediction]) -> list[tuple[int, list[Prediction]]]:
        """The task's group, if it is complete now."""
        found = self._found[task.group]
        found[task.start : task.start + len(predictions)] = predictions
        if any(prediction is None for prediction in found):
            return []
        return [(task.group, self._found.pop(task.group))]

    def __bool__(self) -> bool:
        """Is anything still missing?"""
        return bool(self._found)
