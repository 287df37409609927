"""Parse the batches of a window, in this process or in several worker processes of this machine.

Several processes with one thread each are faster than one process with several threads, because whole batches are shared
out. A worker that dies is replaced, and its batch is computed again. Everybody who computes gets the same batches and
gives the same trees. The workers of other machines are in `cluster`.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection, wait

import torch

from lalkit.chart.machine import give_back, map_large
from lalkit.config import MOST_PROCESSES
from lalkit.errors import LalkitError, ModelError, TooLongError, whole_number
from lalkit.interpret.alternatives import decoder
from lalkit.network.confidence import check_joint
from lalkit.network.precision import Precision
from lalkit.network.predict import Prediction, predict
from lalkit.training.checkpoint import Loaded, fingerprint, load_model
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

REST = 10  # after this many batches, free memory is given back to the system
FALSE_STARTS = 3  # this many workers may die, one after the other, before they have loaded the parser
SPLIT = "Split the sentence, or parse on a machine with more memory."
# Torch's messages for a failed allocation, where the error is not a torch.OutOfMemoryError.
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed", "bad_alloc")


@dataclass
class Task:
    """Sentences to parse as one batch, with their places in the window. deaths: how many processes died of them."""

    places: Sequence[int]
    sentences: Sequence[Sentence]
    deaths: int = 0

    def again(self, most: int = 1) -> list[Task]:
        """Return what to do after one more process has died with this task.

        The first `most` times that is the same task, then its two halves: most likely the system killed the process
        because memory ran out. Raises TooLongError if one sentence alone has killed more processes than that.
        """
        self.deaths += 1
        if self.deaths <= most:
            return [self]
        if len(self.sentences) == 1:
            (sentence,) = self.sentences
            problem = f"{self.deaths} processes died of these {len(sentence)} words; perhaps memory ran out"
            remedy = f"Use fewer processes, so that each has more memory. {SPLIT}"
            raise TooLongError(problem, where=sentence.id, remedy=remedy)
        middle = len(self.sentences) // 2
        return [Task(self.places[part], self.sentences[part]) for part in (slice(middle), slice(middle, None))]


Results = Iterator[tuple[Task, list[Prediction]]]


class Compute:
    """Parse tasks. Its kinds differ in who computes.

    size: how many tasks it works on at the same time. device: "cpu" or "cuda", which decides the size of batches.
    """

    size, device = 1, "cpu"

    def __call__(self, tasks: Sequence[Task]) -> Results:
        """Yield tasks with the predictions of their sentences, in any order. A task may come back as several parts.

        Raises LalkitError with the file and line of a sentence that cannot be parsed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Stop every process that was started."""


@dataclass(frozen=True)
class Source:
    """The folder of a trained parser, as it is sent to other processes, and how it decodes.

    sha256: its fingerprint; None: do not compare. decode: see `lalkit.interpret.alternatives.decoder`. confidence: whether to
    compute probabilities. precision: see `lalkit.network.precision`.
    """

    folder: str
    sha256: str | None = None
    decode: str = "best"
    confidence: bool = False
    precision: Precision = "fp32"

    def load(self) -> Loaded:
        """Load the parser. Raises ModelError if there is none, or if its fingerprint is another one."""
        loaded = load_model(self.folder)
        if self.sha256 is not None and fingerprint(self.folder) != self.sha256:
            remedy = "Perhaps it was trained in the meantime. Copy a parser before you parse with it, and start again."
            raise ModelError("is not the parser that this run started with", where=self.folder, remedy=remedy)
        return loaded


def usual_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


class ThisProcess(Compute):
    """Parse batches in this process. The parser is loaded when the first batch comes."""

    def __init__(self, source: Source, device: str | torch.device | None = None, threads: int | None = None):
        """device: by default a GPU if there is one. threads: for decoding; None: one per core."""
        self.source, self.threads, self.batches = source, threads, 0
        self.torch_device = torch.device(device or usual_device())
        self.device = self.torch_device.type

    @cached_property
    def loaded(self) -> Loaded:
        loaded = self.source.load()
        loaded.network.to(self.torch_device)
        # What this parser cannot do is not the fault of a sentence, so it is found here and not in `in_halves`.
        decoder(self.source.decode, loaded.network, loaded.vocab.labels)
        if self.source.confidence:
            check_joint(loaded.config.model.task)
        return loaded

    def parse(self, sentences: Sequence[Sentence]) -> list[Prediction]:
        """Parse one batch, in smaller parts if the memory is too small for it."""
        loaded = self.loaded  # outside `in_halves`: an error in the parser is not the fault of a sentence

        def predict_once(part: Sequence[Sentence]) -> list[Prediction]:
            budget = len(part) * max(map(len, part))  # so that it stays one batch
            lam = loaded.config.train.lam
            temperature = loaded.temperature
            decode = decoder(self.source.decode, loaded.network, loaded.vocab.labels, temperature)
            return predict(
                loaded.network, loaded.collator, part, lam=lam, budget=budget, threads=self.threads, decode=decode,
                temperature=temperature if self.source.confidence else None, precision=self.source.precision,
            )  # fmt: skip

        self.batches += 1
        if self.batches % REST == 0:
            give_back()
        return in_halves(predict_once, sentences)

    def __call__(self, tasks: Sequence[Task]) -> Results:
        for task in tasks:
            yield task, self.parse(task.sentences)


def in_halves(parse: Callable, sentences: Sequence[Sentence]) -> list[Prediction]:
    """Parse a batch, and if this fails, its two halves, and so on.

    So a batch that is too large for the memory is parsed in parts, and a sentence that cannot be parsed is found.
    Raises LalkitError with the id (file and line) of that sentence; TooLongError if memory runs out for it alone.
    """
    try:
        return parse(sentences)
    except (MemoryError, RuntimeError, LalkitError) as error:
        if not (isinstance(error, LalkitError) or out_of_memory(error)):
            raise
        if len(sentences) == 1:
            if not isinstance(error, LalkitError):
                error = TooLongError(f"{len(sentences[0])} words do not fit into memory", remedy=SPLIT)
            raise type(error)(error.problem, where=sentences[0].id, remedy=error.remedy) from None
    # Only here, after the `except` block, are the error, its frames and their tensors gone.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    middle = len(sentences) // 2
    return [*in_halves(parse, sentences[:middle]), *in_halves(parse, sentences[middle:])]


def out_of_memory(error: BaseException) -> bool:
    """Return whether the error means that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError | TooLongError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in NO_MEMORY)


def answer(compute: Callable):
    """Return the result of `compute`, or its error in a form that can be sent to another process."""
    try:
        return compute()
    except LalkitError as error:
        return error
    except Exception:
        return RuntimeError(f"in another process:\n{traceback.format_exc()}")


class Worker:
    """A process and its present task. It sends None when it has loaded the parser, then an answer to every task."""

    def __init__(self, source: Source):
        context = multiprocessing.get_context("spawn")
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=serve, args=(other_end, source), daemon=True)
        self.process.start()
        other_end.close()  # only the worker holds it now, so the pipe ends when the worker dies
        self.ready = False
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # the worker is dead; `wait` will report it
            self.pipe.send(task.sentences)

    def stop(self) -> None:
        """Stop the process. An idle worker ends by itself when its pipe does; a busy one is killed."""
        self.pipe.close()
        if self.task is None:
            self.process.join(5)
        self.process.kill()
        self.process.join()


class Workers(Compute):
    """Parse batches in `size` processes with a parser each. They are started when the first batches come."""

    def __init__(self, source: Source, size: int):
        self.source, self.size = source, whole_number("--workers", size, 1, MOST_PROCESSES)
        self.workers: list[Worker] = []
        self.false_starts = 0

    def __call__(self, tasks: Sequence[Task]) -> Results:
        waiting, missing = deque(tasks), sum(len(task.sentences) for task in tasks)
        self.workers += [Worker(self.source) for _ in range(min(self.size, len(tasks)) - len(self.workers))]
        while missing:
            for worker in self.workers:
                if worker.ready and worker.task is None and waiting:
                    worker.give(waiting.popleft())
            speaking = wait([worker.pipe for worker in self.workers])
            for worker in [worker for worker in self.workers if worker.pipe in speaking]:
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    waiting.extendleft(reversed(self._replace(worker)))
                    continue
                if isinstance(message, Exception):
                    raise message
                task, worker.task = worker.task, None
                if worker.ready:
                    missing -= len(message)
                    yield task, message
                worker.ready, self.false_starts = True, 0

    def _replace(self, worker: Worker) -> list[Task]:
        """Start another worker in the place of a dead one. Return the tasks to do again."""
        worker.process.join(5)
        worker.stop()
        self.false_starts += not worker.ready
        if self.false_starts >= FALSE_STARTS:
            problem = f"{self.false_starts} workers died before they had loaded the parser"
            raise LalkitError(problem, remedy="The memory may be too small for so many: give fewer --workers.")
        logger.info("a worker died (exit code %s); another takes its place", worker.process.exitcode)
        self.workers[self.workers.index(worker)] = Worker(self.source)
        return worker.task.again() if worker.task else []

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.workers = []


def serve(pipe: Connection, source: Source) -> None:
    """Run a worker until the other end of its pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C the main process decides
    torch.set_num_threads(1)
    map_large()
    here = ThisProcess(source, device="cpu", threads=1)
    with contextlib.suppress(EOFError, OSError):
        pipe.send(answer(lambda: here.loaded and None))
        while True:
            sentences = pipe.recv()
            pipe.send(answer(lambda: here.parse(sentences)))  # noqa: B023 (called at once)
