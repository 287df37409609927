"""Computers of a dask cluster, from two processes on one machine to SLURM jobs: --cluster tcp://host:8786.

dask gives the batches of workers that die to others. lalkit and the parser's folder must be found on every worker under
the same path, and be the same: the fingerprint is compared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import torch

from lalkit.errors import LalkitError
from lalkit.predict import Prediction
from lalkit.stream.compute import Found, Group, Here, Source, Task

PATIENCE = 60  # seconds until a scheduler without workers is an error
INSTALL = "Install it: pip install 'lalkit[cluster]'"


def connect(address: str, patience: float = PATIENCE):
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

    def __init__(self, source: Source, address: str, patience: float = PATIENCE):
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
