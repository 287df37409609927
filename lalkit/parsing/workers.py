"""Processes on this machine, one thread each: faster than one process with threads, since whole batches are shared out.

A worker that dies is replaced and its batch is computed again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait

import torch

from lalkit.chart.machine import map_large
from lalkit.errors import LalkitError
from lalkit.network.predict import Prediction
from lalkit.parsing.compute import Found, Group, Here, Source, Task, answer

FALSE_STARTS = 3  # deaths in a row of workers that had not even loaded the parser


class Worker:
    """A process and the task it has. It says None when the parser is loaded, then answers every batch."""

    def __init__(self, source: Source):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, source), daemon=True)
        self.process.start()
        theirs.close()  # so that its death ends the pipe
        self.ready, self.task = False, None

    def give(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # it is dead, and `wait` will say so
            self.pipe.send(task.sentences)

    def stop(self) -> None:
        """An idle worker leaves when its pipe ends, and cleans up; one at work, or deaf, is killed."""
        self.pipe.close()
        if self.task is None:
            self.process.join(5)
        self.process.kill()
        self.process.join()


class Workers:
    """`size` processes with a parser each, started when the first batches come."""

    device = "cpu"

    def __init__(self, source: Source, size: int, say: Callable[[str], None] = lambda text: None):
        if size < 1:
            raise LalkitError(f"--workers must be at least 1, not {size}")
        self.source, self.size, self.say = source, size, say
        self.workers: list[Worker] = []
        self.false_starts = 0

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        found = Found(groups)
        waiting = deque(found.tasks)
        self.workers += [Worker(self.source) for _ in range(min(self.size, len(groups)) - len(self.workers))]
        while found:
            for worker in self.workers:
                if worker.ready and worker.task is None and waiting:
                    worker.give(waiting.popleft())
            heard = wait([worker.pipe for worker in self.workers])
            for worker in [worker for worker in self.workers if worker.pipe in heard]:
                try:
                    answered = worker.pipe.recv()
                except (EOFError, OSError):
                    waiting.extendleft(reversed(self._replace(worker)))
                    continue
                if isinstance(answered, Exception):
                    raise answered
                task, worker.task = worker.task, None
                if worker.ready:
                    yield from found.add(task, answered)
                worker.ready, self.false_starts = True, 0

    def _replace(self, worker: Worker) -> list[Task]:
        """Another worker in its place; what is to be done again."""
        worker.process.join(5)
        worker.stop()
        self.false_starts += not worker.ready
        if self.false_starts >= FALSE_STARTS:
            raise LalkitError(
                f"{self.false_starts} workers died before they had loaded the parser",
                remedy="Most likely the memory is too small for so many: give fewer --workers.",
            )
        self.say(f"a worker died (exit code {worker.process.exitcode}); another takes its place")
        self.workers[self.workers.index(worker)] = Worker(self.source)
        return worker.task.again() if worker.task else []

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.workers = []


def serve(pipe: Connection, source: Source) -> None:
    """A worker's life; it ends when the other end of the pipe does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us decides
    torch.set_num_threads(1)
    map_large()
    here = Here(source, device="cpu", threads=1)
    with contextlib.suppress(EOFError, OSError):
        pipe.send(answer(lambda: here.loaded and None))
        while True:
            sentences = pipe.recv()
            pipe.send(answer(lambda: here.parse(sentences)))  # noqa: B023 (called at once)
