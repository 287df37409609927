"""Parse batches on several machines: on the workers of a dask cluster, or in the processes of `accelerate launch`.

Dask: --cluster tcp://host:8786 names a scheduler. Its workers may be two processes of one machine or SLURM jobs. When a
worker dies, dask gives its batches to others.

Accelerate: one process per GPU, on one or several machines. Each process (a rank) holds the parser and takes its share of
every window; the first one reads and writes. When a rank dies, its launcher ends all of them, and --resume continues.

Every machine must have lalkit, and the same parser under the same path. The fingerprint of the parser is compared.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from functools import lru_cache

import torch

from lalkit.errors import LalkitError
from lalkit.network.predict import Prediction
from lalkit.parsing.batch_workers import Compute, Results, Source, Task, ThisProcess, answer
from lalkit.training.parallel import Team
from lalkit.treebank.tree import Sentence

SILENCE = 60  # seconds to wait for a scheduler and for its first worker


def connect(address: str, patience: float = SILENCE):
    """Connect to a dask scheduler and return the client.

    Raises LalkitError if dask is not installed, if no scheduler answers, or if it has no workers.
    """
    try:
        from distributed import Client
    except ImportError:
        remedy = "Install it: pip install 'lalkit[cluster]'"
        raise LalkitError("--cluster needs dask.distributed", remedy=remedy) from None
    try:
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"no dask scheduler answers ({error})"
        raise LalkitError(problem, where=address, remedy="Start one: dask scheduler") from None
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        client.close()
        remedy = f"Start some: dask worker {address} --nthreads 1"
        raise LalkitError("the scheduler has no workers", where=address, remedy=remedy) from None
    return client


class Cluster(Compute):
    """Parse batches on the workers of a dask scheduler.

    Each worker computes one batch at a time with one thread, so start them like this:
    `dask worker ADDRESS --nworkers N --nthreads 1`. The size of batches is that of a CPU. Raises LalkitError as `connect`.
    """

    def __init__(self, source: Source, address: str, patience: float = SILENCE):
        self.source, self.address = source, address
        self.client = connect(address, patience)
        self.size = len(self.client.nthreads())

    def __call__(self, tasks: Sequence[Task]) -> Results:
        from distributed import as_completed

        pending = {self._submit(task): task for task in tasks}
        suspects: list[Task] = []
        for future in as_completed(pending, loop=self.client.loop):
            yield from self._result(pending[future], future, suspects)
        while suspects:  # one at a time, so that no task is blamed for the death of a worker that another task killed
            task = suspects.pop()
            yield from self._result(task, self._submit(task), suspects)

    def _result(self, task: Task, future, suspects: list[Task]) -> Results:
        """Yield the result of a task. If its worker died, add what is to be tried again to the suspects."""
        from distributed import KilledWorker

        try:
            yield task, future.result()
        except KilledWorker:
            suspects += task.again(most=int(len(task.sentences) == 1))
        except CancelledError as error:
            problem = f"the scheduler is gone ({error})"
            raise LalkitError(problem, where=self.address, remedy="Start it again, then --resume.") from None

    def _submit(self, task: Task):
        return self.client.submit(compute, self.source, task.sentences, pure=False)

    def close(self) -> None:
        self.client.close()


_lock = threading.Lock()  # a dask worker may have several threads, but a tokenizer serves one at a time


def compute(source: Source, sentences: Sequence[Sentence]) -> list[Prediction]:
    """Parse a batch in a dask worker, which keeps the parser for the next batch."""
    with _lock:
        return _parser(source).parse(sentences)


@lru_cache(maxsize=1)
def _parser(source: Source) -> ThisProcess:
    torch.set_num_threads(1)
    return ThisProcess(source, threads=1)


class Ranks(Compute):
    """Parse batches in all processes of `accelerate launch`. The first one calls it with tasks; the others `serve`."""

    def __init__(self, source: Source, team: Team):
        self.team, self.size, self.first = team, team.size, team.rank == 0
        self.here = ThisProcess(source, team.device, threads=torch.get_num_threads())
        self.device = self.here.device

    def __call__(self, tasks: Sequence[Task]) -> Results:
        yield from self._together((self.here.source, tasks))

    def serve(self) -> None:
        """Compute the shares of this rank until the first rank closes."""
        while self._together(None) is not None:
            pass

    def close(self) -> None:
        if self.first:
            self._together(None)

    def _together(self, work: tuple[Source, Sequence[Task]] | None) -> list[tuple[Task, list[Prediction]]] | None:
        """Share out the tasks of the first rank, and return all predictions there.

        Returns an empty list in the other ranks, and None in all ranks when the first one has no more tasks.
        """
        from accelerate.utils import gather_object

        work = self.team.from_first(work)
        if work is None:
            return None
        self.here.source, tasks = work  # with the fingerprint of the first rank: all must have the same parser
        share = self.team.share(tasks)
        answers = gather_object([answer(lambda: list(self.here(share)))])
        if not self.first:
            return []
        for part in answers:
            if isinstance(part, Exception):
                raise part
        return [result for part in answers for result in part]
