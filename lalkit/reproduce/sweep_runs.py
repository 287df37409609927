"""All runs of a plan that are not finished: processes on this machine, or a cluster's; and how far they are.

Every run is a process of its own with one thread, wherever it is computed, so that its numbers and its memory are its own.

What a run leaves in its folder: result.json, the last to be written, which says whether it counts.

Runs on the workers of a dask cluster, from two processes on one machine to SLURM jobs (dask-jobqueue).

lalkit, the corpora and the sweep's folder must be found on every worker under the same paths. Every thread of a worker
computes one run at a time, in a process of its own that ends with the worker; dask gives the run to another worker then,
which goes on where that one was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from pathlib import Path

from lalkit.chart.machine import ONE_THREAD
from lalkit.config import to_dict
from lalkit.errors import LalkitError, ParameterError
from lalkit.files import write_json
from lalkit.parsing.cluster import connect
from lalkit.reproduce.sweep_plan import Plan, Run

RESULT = "result.json"
FAILED = 3  # exit code of a run that has said there why it failed


def read_result(folder: str | Path) -> dict | None:
    """None where there is none, or none that is whole."""
    try:
        found = json.loads((Path(folder) / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def finished(folder: str | Path, key: str) -> dict | None:
    """The result of a run that is done and has this key; a failed one is not done."""
    found = read_result(folder)
    return found if found and found.get("status") == "ok" and found.get("key") == key else None


def write_failure(folder: str | Path, task: dict, error: str) -> None:
    """Leaves word of a run that came to no end."""
    write_json(Path(folder) / RESULT, {**task, "status": "failed", "error": error})


@contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """Waits until no other process works in the folder: one that lost its sweep may be about to end. A process that dies
    lets go. (Without file locks, on Windows, nobody waits.)"""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / ".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


Task = tuple[
    str, dict
]  # the run's folder, and what it is to do there (JSON): see `lalkit.reproduce.sweep_run.carry_out`


def sweep(
    plan: Plan, out: str | Path, *, jobs: int = 1, cluster: str | None = None, say: Callable[[str], None] = print
) -> list[tuple[Run, dict]]:
    """Computes what is missing of a plan (made with hashes) in the folder `out`. Every run with its result, in the plan's
    order; those that failed too: their status says so.

    jobs: runs at the same time, here. cluster: the address of a dask scheduler whose workers do it instead; `out` must be
    the same folder on all of them. Raises ParameterError where `out` holds another sweep. An interruption loses nothing:
    the same call goes on.
    """
    if jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, not {jobs}")
    out = Path(out).resolve()
    _claim(plan, out)
    missing = {str(out / run.folder): run for run in plan.runs if not finished(out / run.folder, run.key)}
    say(f"{plan.name}: {len(plan.runs)} runs, {len(plan.runs) - len(missing)} of them finished; in {out}")
    if missing:
        tasks = [(folder, task(run, plan.code)) for folder, run in missing.items()]
        progress = Progress(len(plan.runs), len(missing), say)
        with closing(_elsewhere(cluster, tasks) if cluster else here(tasks, jobs)) as ended:
            for folder in ended:
                progress.tick(missing[folder], read_result(folder) or {})
    return [(run, read_result(out / run.folder) or _no_result()) for run in plan.runs]


def task(run: Run, code: str) -> dict:
    """A run as it is handed to another process."""
    return {
        "cell": run.cell, "seed": run.seed, "key": run.key, "treebank": run.treebank, "code_sha256": code,
        "config": to_dict(run.config),
    }  # fmt: skip


def here(tasks: Sequence[Task], jobs: int) -> Iterator[str]:
    """Folders of runs, as they end; closed, it ends those that are at work."""
    stopped, working = threading.Event(), set()
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(launch, *each, stopped, working): each[0] for each in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(working):
                process.kill()


def launch(
    folder: str,
    task: dict,
    stopped: threading.Event | None = None,
    working: set | None = None,
    where: str | None = None,
) -> None:
    """One run in a process of its own; returns when it has ended, with its result.json there. It says what it says in
    log.txt. A process that dies has failed, unless `stopped` is set: then it was to. where: its current folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "lalkit.reproduce.sweep_run", folder, json.dumps(task)]
    working = set() if working is None else working
    with open(Path(folder) / "log.txt", "ab") as log:
        process = subprocess.Popen(  # its standard input ends with us, and it with that
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **ONE_THREAD}, cwd=where
        )
        with process:
            working.add(process)
            if stopped and stopped.is_set():
                process.kill()
            code = process.wait()
            working.discard(process)
    if code not in (0, FAILED) and not (stopped and stopped.is_set()) and not finished(folder, task["key"]):
        write_failure(folder, task, f"its process died (exit code {code}); did memory run out? See log.txt.")


class Progress:
    """A line for every run that ends, with the time left at the rate of this start so far."""

    def __init__(
        self, total: int, missing: int, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ):
        self.total, self.missing, self.say, self.clock = total, missing, say, clock
        self.ended, self.begun = 0, clock()

    def tick(self, run: Run, result: dict) -> None:
        self.ended += 1
        left = self.missing - self.ended
        seconds = (self.clock() - self.begun) / self.ended * left
        when = f"; about {seconds / 60:.1f} min left" if left else ""
        self.say(f"[{self.total - left}/{self.total}] {run}: {outcome(result)}{when}")


def outcome(result: dict) -> str:
    """A result in a few words."""
    if result.get("status") != "ok":
        return "failed: " + " ".join((result.get("error") or _no_result()["error"]).split())
    dev = result["scores"]["dev"]
    scores = [f"{name} {dev[key]:.2f}" for name, key in (("F1", "f1"), ("LAS", "las")) if dev[key] is not None]
    return f"dev {', '.join(scores)}, {result['seconds'] / 60:.1f} min"


def _no_result() -> dict:
    return {"status": "failed", "error": "left no result; is its folder seen by this machine and by all workers?"}


def _claim(plan: Plan, out: Path) -> None:
    """Writes sweep.json; raises ParameterError where another sweep's is."""
    file = out / "sweep.json"
    if file.exists():
        try:
            theirs = json.loads(file.read_text(encoding="utf-8"))
            same = (theirs["name"], theirs["profile"]) == (plan.name, plan.profile)
        except (ValueError, KeyError, TypeError):
            same = False
        if not same:
            raise ParameterError("holds another sweep", where=str(out), remedy="Give another --out.")
    write_json(file, plan.to_dict())


def _elsewhere(address: str, tasks: Sequence[Task]) -> Iterator[str]:
    return compute(address, tasks)


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
