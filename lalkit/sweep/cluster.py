"""Runs on the workers of a dask cluster, from two processes on one machine to SLURM jobs (dask-jobqueue).

lalkit, the corpora and the sweep's folder must be found on every worker under the same paths. Every thread of a worker
computes one run at a time, in a process of its own that ends with the worker; dask gives the run to another worker then,
which goes on where that one was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

from lalkit.errors import LalkitError
from lalkit.stream.cluster import connect
from lalkit.sweep.execute import Task, launch
from lalkit.sweep.result import write_failure

RETRIES = 2  # of a run whose process could not be started; deaths of workers are counted by dask (allowed-failures)


def compute(address: str, tasks: Sequence[Task]) -> Iterator[str]:
    """Folders of runs, as they end. Raises LalkitError without dask, scheduler or workers, or when the scheduler goes."""
    from distributed import KilledWorker, as_completed

    client = connect(address)
    try:
        futures = {
            client.submit(launch, folder, task, where=os.getcwd(), pure=False, retries=RETRIES): (folder, task)
            for folder, task in tasks
        }
        for future in as_completed(futures, loop=client.loop):
            folder, task = futures[future]
            try:
                future.result()
            except KilledWorker as error:
                write_failure(folder, task, f"the workers that had it died: {error}")
            except OSError as error:
                write_failure(folder, task, f"could not be started on a worker: {error}")
            except CancelledError as error:
                raise LalkitError(
                    f"the scheduler is gone ({error})",
                    where=address,
                    remedy="Start it again, and give the same command: what is finished is not repeated.",
                ) from None
            yield folder
    finally:
        client.close()
