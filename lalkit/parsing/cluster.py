"""Computers of a dask cluster, from two processes on one machine to SLURM jobs: --cluster tcp://host:8786.

dask gives the batches of workers that die to others. lalkit and the parser's folder must be found on every worker under
the same path, and be the same: the fingerprint is compared.

Processes started by `accelerate launch`, one per GPU, on one or several machines: every rank holds the parser and takes
its share of each window; the first reads and writes.

If one dies, its launcher ends all; --resume goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import torch

from lalkit.chart.machine import cpu_count
from lalkit.errors import LalkitError
from lalkit.network.predict import Prediction
from lalkit.parsing.compute import Found, Group, Here, Source, Task, answer
from lalkit.training.parallel import PATIENCE

SILENCE = 60  # seconds until a scheduler without workers is an error
INSTALL = "Install it: pip install 'lalkit[cluster]'"


def connect(address: str, patience: float = SILENCE):
    """A client of a scheduler that has workers. Raises LalkitError without dask, scheduler or workers."""
    try:
        from distributed import Client
    except ImportError:
        raise LalkitError("--cluster needs dask.distributed", remedy=INSTALL) from None
    try:
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LalkitError(
            f"no dask scheduler answers ({error})", where=address, remedy="Start one: dask scheduler"
        ) from None
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        client.close()
        raise LalkitError(
            "the scheduler has no workers", where=address, remedy=f"Start some: dask worker {address} --nthreads 1"
        ) from None
    return client


class Cluster:
    """The workers of a scheduler. Each computes one batch at a time with one thread, so start them as
    `dask worker ADDRESS --nworkers N --nthreads 1`. Raises as `connect` does."""

    device = "cpu"  # most likely; only the size of batches depends on it

    def __init__(self, source: Source, address: str, patience: float = SILENCE):
        self.source, self.address = source, address
        self.client = connect(address, patience)
        self.size = len(self.client.nthreads())

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        from distributed import KilledWorker, as_completed

        found = Found(groups)
        tasks = {self._submit(task): task for task in found.tasks}
        done = as_completed(tasks, loop=self.client.loop)
        for future in done:
            task = tasks.pop(future)
            try:
                predictions = future.result()
            except KilledWorker:  # several workers have died with it, though perhaps of another
                for smaller in task.again(most=int(len(task.sentences) == 1)):
                    again = self._submit(smaller)
                    tasks[again] = smaller
                    done.add(again)
                continue
            except CancelledError as error:
                raise LalkitError(
                    f"the scheduler is gone ({error})", where=self.address, remedy="Start it again, then --resume."
                ) from None
            yield from found.add(task, predictions)

    def _submit(self, task: Task):
        return self.client.submit(compute, self.source, task.sentences, pure=False)

    def close(self) -> None:
        self.client.close()


_lock = threading.Lock()  # a worker may have several threads; a tokenizer serves one at a time
_here: Here | None = None


def compute(source: Source, sentences: Group) -> list[Prediction]:
    """In a worker: the parser is loaded once and kept."""
    global _here
    with _lock:
        if _here is None or _here.source != source:
            torch.set_num_threads(1)
            _here = Here(source, threads=1)
        return _here.parse(sentences)


class Ranks:
    """This process's place among them. Only the first calls it with batches; the others `serve`."""

    def __init__(self, source: Source):
        import torch
        from accelerate import PartialState

        self.state = PartialState(cpu=not torch.cuda.is_available(), timeout=PATIENCE)
        self.size, self.first = self.state.num_processes, self.state.is_main_process
        threads = cpu_count() // int(os.environ.get("LOCAL_WORLD_SIZE", self.size)) or 1
        self.here = Here(source, self.state.device, threads)
        self.device = self.here.device

    def __call__(self, groups: Sequence[Group]) -> Iterator[tuple[int, list[Prediction]]]:
        yield from self._together((self.here.source, groups))

    def serve(self) -> None:
        """What every rank but the first does, until the first closes."""
        while self._together(None) is not None:
            pass

    def close(self) -> None:
        if self.first:
            self._together(None)
        self.state.destroy_process_group()

    def _together(self, task: tuple[Source, Sequence[Group]] | None) -> list[tuple[int, list[Prediction]]] | None:
        """The first rank's groups, shared out, computed and brought together; None where the first has no more."""
        from accelerate.utils import broadcast_object_list, gather_object

        box = [task]
        broadcast_object_list(box)
        if box[0] is None:
            return None
        self.here.source, groups = box[0]  # the first's fingerprint: all must have the same parser
        mine = range(self.state.process_index, len(groups), self.size)
        answers = gather_object([answer(lambda: [(number, self.here.parse(groups[number])) for number in mine])])
        if not self.first:
            return []
        for found in answers:
            if isinstance(found, Exception):
                raise found
        return [item for found in answers for item in found]
