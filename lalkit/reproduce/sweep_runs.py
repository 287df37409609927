"""Carry out the runs of a plan that are not finished, on this machine or on the workers of a dask cluster.

Every run is a process of its own with one thread, wherever it is computed, so that its numbers and its memory are its own:
`python -m lalkit.reproduce.sweep_runs FOLDER TASK`. It trains, chooses the best epoch on dev, scores dev and test, and writes
result.json last: that file says whether the run counts. An interrupted training goes on where it was.

A dask cluster may be two processes on one machine or SLURM jobs (dask-jobqueue). lalkit, the corpora and the sweep's folder
must have the same paths on every worker. Every thread of a worker carries out one run at a time. The run's process ends with
its worker; then dask gives the run to another worker, which goes on where the first one was.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from lalkit.chart.machine import ONE_THREAD, keep_memory, progress
from lalkit.config import MOST_PROCESSES, read_saved, to_dict
from lalkit.corpus import connect
from lalkit.errors import LalkitError, ModelError, ParameterError, whole_number
from lalkit.evaluation import provenance
from lalkit.files import find_json, lock, remove_parts, write_bytes, write_json, write_text
from lalkit.reproduce.sweep_plan import Plan, Run
from lalkit.training.loop import Epoch, Scores

logger = logging.getLogger(__name__)

RESULT = "result.json"
FAILED = 3  # exit code of a run that has written down why it failed
RETRIES = 2  # of a run whose process could not be started; dask itself counts the deaths of workers (allowed-failures)
THREADS = 1  # of every run, so that its numbers do not depend on how many run beside it
NO_RESULT = {"status": "failed", "error": "left no result; is its folder seen by this machine and by all workers?"}


@dataclass
class Result:
    """What result.json holds at least of a run that ended well."""

    status: Literal["ok"]
    key: str
    seed: int
    scores: dict[Literal["dev", "test"], Scores]
    parameters: int
    seconds: float
    peak_memory_mb: float | None
    best_epoch: int
    history: list[Epoch]


Task = tuple[str, dict]  # a run's folder, and what is to be done there (JSON): see `carry_out`


def sweep(plan: Plan, out: str | Path, *, jobs: int = 1, cluster: str | None = None) -> list[tuple[Run, dict]]:
    """Carry out what is missing of a plan, and return every run with its result, in the plan's order.

    An interruption loses nothing: the same call goes on. A run that another sweep beside `out` has finished is copied from
    there, so that a cell that two tables share is trained once.

    Args:
        plan: the runs, see `lalkit.reproduce.sweep_plan.plan`.
        out: the sweep's folder; with a cluster, the same folder on all its workers.
        jobs: how many runs at the same time on this machine.
        cluster: the address of a dask scheduler whose workers carry out the runs instead.

    Returns:
        Pairs of run and result. The result of a failed run says so in its status.

    Raises:
        ParameterError: `out` holds another sweep, or `jobs` is less than 1 or far too large.
    """
    whole_number("--jobs", jobs, 1, MOST_PROCESSES)
    out, total = Path(out).resolve(), len(plan.runs)
    _claim(plan, out)
    for run in plan.runs:
        _take_over(run, out)
    missing = {str(out / run.folder): run for run in plan.runs if not finished(out / run.folder, run.key)}
    for run in plan.runs:
        if str(out / run.folder) not in missing:
            clear_away(out / run.folder)
    before = total - len(missing)
    logger.info("%s: %d runs, %d of them finished; in %s", plan.name, total, before, out)
    if missing:
        tasks = [(folder, task(run, plan.code)) for folder, run in missing.items()]
        folders = on_cluster(cluster, tasks) if cluster else here(tasks, jobs)
        with closing(folders), progress(total=len(missing), desc=plan.name, unit="run") as bar:
            for number, folder in enumerate(folders, before + 1):
                bar.update()
                logger.info("[%d/%d] %s: %s", number, total, missing[folder], outcome(read_result(folder)))
    return [(run, read_result(out / run.folder) or NO_RESULT) for run in plan.runs]


def read_result(folder: str | Path) -> dict:
    """Return the result of a run, empty if there is none, or only a damaged one."""
    return find_json(Path(folder) / RESULT) or {}


def finished(folder: str | Path, key: str) -> dict | None:
    """Return the result of a run that has this key, did not fail, and is not damaged; otherwise None."""
    result = find_json(Path(folder) / RESULT, form=Result)
    return result if result and result["key"] == key and "dev" in result["scores"] else None


def outcome(result: dict) -> str:
    """Describe a result in a few words."""
    if result.get("status") != "ok":
        return "failed: " + " ".join(str(result.get("error") or NO_RESULT["error"]).split())
    dev = result["scores"]["dev"]
    scores = [f"{name} {dev[key]:.2f}" for name, key in (("F1", "f1"), ("LAS", "las")) if dev[key] is not None]
    return f"dev {', '.join(scores)}, {result['seconds'] / 60:.1f} min"


def _claim(plan: Plan, out: Path) -> None:
    """Write sweep.json. Raises ParameterError if that of another sweep is there."""
    file = out / "sweep.json"
    if file.exists():
        theirs = find_json(file) or {}
        if (theirs.get("name"), theirs.get("profile", "")) != (plan.name, plan.profile):
            raise ParameterError("holds another sweep", where=str(out), remedy="Give another --out.")
    write_json(file, plan.to_dict())
    remove_parts(out)


def _take_over(run: Run, out: Path) -> None:
    """Copy a run that is missing here from another sweep beside this one, if it is finished there."""
    there = (folder for folder in sorted(out.parent.glob(f"*/{run.folder}")) if finished(folder, run.key))
    if not finished(out / run.folder, run.key) and (folder := next(there, None)):
        shutil.rmtree(out / run.folder, ignore_errors=True)
        shutil.copytree(folder, out / run.folder, ignore=shutil.ignore_patterns(RESULT))
        write_bytes(out / run.folder / RESULT, (folder / RESULT).read_bytes())  # last: it says that the run counts


def task(run: Run, code: str) -> dict:
    """Return a run as it is handed to another process."""
    return {
        "cell": run.cell, "seed": run.seed, "key": run.key, "treebank": run.treebank, "scored": run.scored,
        "code_sha256": code, "config": to_dict(run.config),
    }  # fmt: skip


def here(tasks: Sequence[Task], jobs: int) -> Generator[str, None, None]:
    """Carry out runs on this machine, and yield their folders as they end. Closing it ends the runs at work."""
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


def on_cluster(address: str, tasks: Sequence[Task]) -> Generator[str, None, None]:
    """Carry out runs on the workers of a dask cluster, and yield their folders as they end.

    Raises LalkitError without dask, scheduler or workers, and if the scheduler goes away.
    """
    client = connect(address)
    from distributed import KilledWorker, as_completed

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
            except (OSError, LalkitError) as error:
                write_failure(folder, task, f"could not be started on a worker: {error}")
            except CancelledError as error:
                remedy = "Start it again, and give the same command: what is finished is not repeated."
                raise LalkitError(f"the scheduler is gone ({error})", where=address, remedy=remedy) from None
            yield folder
    finally:
        client.close()


def launch(
    folder: str,
    task: dict,
    stopped: threading.Event | None = None,
    working: set | None = None,
    where: str | None = None,
) -> None:
    """Carry out one run in a process of its own, and return when it has ended and left its result.json.

    Args:
        folder: the run's folder. The process writes its messages to log.txt there.
        task: what to do, see `carry_out`.
        stopped: if set, the process was ended on purpose; otherwise a process that dies has failed.
        working: the processes at work; this one is in it while it runs.
        where: the process's current folder.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "lalkit.reproduce.sweep_runs", folder, json.dumps(task)]
    working, stopped = set() if working is None else working, stopped or threading.Event()
    with open(Path(folder) / "log.txt", "ab") as log:
        process = subprocess.Popen(  # when we end, its standard input closes, and then it ends: _end_with_starter
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **ONE_THREAD}, cwd=where
        )
        with process:
            working.add(process)
            if stopped.is_set():
                process.kill()
            code = process.wait()
            working.discard(process)
    if code not in (0, FAILED) and not stopped.is_set() and not finished(folder, task["key"]):
        write_failure(folder, task, f"its process died (exit code {code}); did memory run out? See log.txt.")


def write_failure(folder: str | Path, task: dict, error: str) -> None:
    """Write down that a run failed, and why."""
    write_json(Path(folder) / RESULT, {**task, "status": "failed", "error": error})


def carry_out(folder: Path, task: dict) -> None:
    """Train a parser, score it on dev and test, and write result.json. A finished run is not repeated.

    In the folder it leaves the parser (parser/), the counts of every sentence, without its text (dev.csv, test.csv), and
    last result.json.

    Args:
        folder: the run's folder.
        task: cell, seed, key, config (as saved), treebank (to train on), scored (the treebank whose dev and test parts count),
            and `code_sha256`, the hash of the source it was planned with.

    Raises:
        ModelError: the code that trains has changed since. All errors of training are raised too.
    """
    from lalkit.evaluation.scores import evaluate
    from lalkit.network.predict import predict
    from lalkit.training.checkpoint import load_model, read_content
    from lalkit.training.loop import train
    from lalkit.treebank.corpora import repository

    if finished(folder, task["key"]):
        return
    if provenance.training_hash() != task["code_sha256"]:
        problem = "the code that trains is not what it was when the sweep was planned"
        raise ModelError(problem, remedy="Start the sweep again.")
    parser = folder / "parser"
    if not any(parser.glob("resume-*.safetensors")):  # someone deleted the result.json of a finished run: train again
        shutil.rmtree(parser, ignore_errors=True)
    train(read_saved(task["config"]), task["treebank"], parser, resume=True)
    begun = time.perf_counter()
    loaded, state = load_model(parser), read_content(parser, "resume")["state"]
    lam, scores = loaded.config.train.lam, {}
    for split, gold in provenance.splits(task["scored"], loaded.config.model.task, ("dev", "test")).items():
        parses = predict(loaded.network, loaded.collator, gold, lam=lam, threads=THREADS)
        evaluation = evaluate(gold, [p.sentence for p in parses])
        scores[split] = evaluation.summary()
        write_text(folder / f"{split}.csv", evaluation.table().to_csv(index=False))
    result = {
        **task, "status": "ok", "error": None, "scores": scores, "epochs": state["epoch"],
        "best_epoch": loaded.info["epoch"], "history": state["history"],
        "parameters": sum(p.numel() for p in loaded.network.parameters() if p.requires_grad),  # those trained
        "seconds": round(state["seconds"] + time.perf_counter() - begun, 1),  # without interruptions
        "peak_memory_mb": provenance.peak_memory(), "threads": THREADS,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"), "git": provenance.git_revision(repository()),
        "versions": provenance.versions(), "device": provenance.device(),
    }  # fmt: skip
    write_json(folder / RESULT, result)
    clear_away(folder)


def clear_away(folder: Path) -> None:
    """Remove from the folder of a finished run the state to resume from, which is two thirds of it, and what kills left."""
    for weights in (folder / "parser").glob("resume-*.safetensors"):
        weights.unlink(missing_ok=True)
    remove_parts(folder)


def main() -> None:
    """Carry out the run of the command line. Exit code 0: result.json says ok; FAILED: it says why not."""
    folder, task = Path(sys.argv[1]), json.loads(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us decides
    threading.Thread(target=_end_with_starter, daemon=True).start()
    import torch

    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    keep_memory()
    torch.set_num_threads(THREADS)
    with (folder / ".lock").open("w") as file:
        lock(file, wait=True)  # a process that lost its sweep may be about to end in this folder
        try:
            carry_out(folder, task)
        except Exception as error:
            traceback.print_exc()
            problem = str(error) if isinstance(error, LalkitError) else f"{type(error).__name__}: {error}"
            write_failure(folder, task, problem)
            sys.exit(FAILED)


def _end_with_starter() -> None:
    """End this process when the one who started it has ended: then nobody holds the other end of our standard input."""
    while os.read(0, 1):  # not sys.stdin: a thread may not hold its lock when Python ends
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
