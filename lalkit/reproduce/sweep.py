"""Plan the runs of a sweep from its YAML file, and carry them out on this machine or on the workers of a dask cluster.

A sweep is a grid of settings and seeds. `Description` is the form of its file. `plan` returns its runs: every combination of
the grid's values with every seed. Each run has a complete config, which is checked before anything starts, and a key: a hash of
everything that its numbers depend on.

`sweep` carries out the runs. Every run is a process of its own with one thread, wherever it is computed, so that it shares no
numbers and no memory with the others: `python -m lalkit.reproduce.sweep FOLDER TASK`. It trains, chooses the best epoch on dev,
scores dev and test, and writes result.json last: a run counts if this file is there. An interrupted training continues.

A dask cluster may be two processes on one machine or SLURM jobs (dask-jobqueue). lalkit, the corpora and the sweep's folder
must have the same paths on every worker. The process of a run ends with its worker; then dask gives the run to another worker.
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
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from lalkit.chart.machine import ONE_THREAD, keep_memory, progress
from lalkit.config import MOST_PROCESSES, Config, override, preset, read_saved, to_dict
from lalkit.corpus import connect
from lalkit.errors import LalkitError, ModelError, ParameterError, whole_number
from lalkit.evaluation import provenance
from lalkit.files import find_json, lock, parse_json, remove_parts, write_bytes, write_json, write_text
from lalkit.reproduce.notebook import suggest

logger = logging.getLogger(__name__)

ALL_OTHERS = "all others"
TREEBANK = "treebank"  # in a cell: the treebank that its runs are trained on. All runs are scored on that of the sweep.
# Settings that a sweep sets itself, or that would make two of its runs incomparable.
RESERVED = {
    "train.seed": "The seeds of a sweep are its `seeds`.",
    "train.max_minutes": "A schedule that follows the clock cannot be repeated; set train.epochs.",
}
# The columns of a sweep's tables besides its axes.
COLUMNS = (
    "seed", "seeds", "run", "split", "f1", "exact", "uas", "las", "tag_accuracy", "parameters", "minutes", "peak_mb", "epochs",
    "best_epoch", "device", "commit", "curve", "epoch", "sentence", "measure", "cell",
)  # fmt: skip
RESULT = "result.json"
FAILED = 3  # exit code of a run that has written why it failed
RETRIES = 2  # of a run whose process could not be started; dask itself counts the deaths of workers (allowed-failures)
THREADS = 1  # of every run, so that its numbers do not depend on how many run beside it
NO_RESULT = {"status": "failed", "error": "left no result; do this machine and all workers see its folder?"}

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Cell = dict[str, str | int]  # axis -> value
Grid = Annotated[dict[str, Annotated[dict[str | int, dict[str, Any]], Field(min_length=1)]], Field(min_length=1)]
Seeds = Annotated[list[int], Field(min_length=1)]
Measure = Literal["f1", "uas", "las"]


class Form(BaseModel):
    """Base of the parts of a sweep's file: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Better(Form):
    """One cell is better than another cell, or than all others."""

    says: Text
    better: Cell
    than: Cell | Literal["all others"]
    by: Measure


class Same(Form):
    """Two cells differ by less than a margin, in points."""

    says: Text
    same: Cell
    as_: Cell = Field(alias="as")
    within: Annotated[float, Field(gt=0)]
    by: Measure


class PaperRow(Form):
    column: str
    values: dict[str | int, Any]


class Paper(Form):
    """The rows of a table of data/paper that belong to the cells: axis -> its column, and what stands there for each value."""

    table: Name
    rows: dict[str, PaperRow]


class Profile(Form):
    """What a profile replaces in the file. Its `set` is added to that of the file, and wins."""

    treebank: Text | None = None
    preset: Text | None = None
    seeds: Seeds | None = None
    set: dict[str, Any] = {}
    grid: Grid | None = None


class Description(Form):
    """The file of a sweep."""

    name: Name
    question: Text
    treebank: Text
    preset: Text
    seeds: Seeds
    set: dict[str, Any] = {}
    grid: Grid
    profiles: dict[str, Profile] = {}
    paper: Paper | None = None
    claims: list[Better | Same] = []

    @model_validator(mode="after")
    def _check_names(self):
        for part in (self, *self.profiles.values()):
            if part.seeds and len(set(part.seeds)) < len(part.seeds):
                raise ValueError(f"a seed is there twice: {part.seeds}")
            for axis in part.grid or ():
                if axis in COLUMNS:
                    raise ValueError(f"an axis cannot be called {axis}: a column of the tables has this name")
        return self

    def of(self, profile: str | None) -> Description:
        """Return the description with the values of one profile in their places. Raises ParameterError if there is none."""
        if profile is None:
            return self
        if profile not in self.profiles:
            remedy = suggest(profile, self.profiles)
            raise ParameterError(f"there is no profile {profile!r}", where=f"{self.name}: profiles", remedy=remedy)
        replaced = {key: value for key, value in self.profiles[profile] if value is not None}
        return self.model_copy(update=replaced | {"set": self.set | self.profiles[profile].set})


def check_description(content: Any, where: str) -> Description:
    """Return the content of a sweep's file in its form. Raises ParameterError that names the first wrong key."""
    try:
        return Description.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
        remedy = "Correct the description; notebooks/sweeps has examples."
        raise ParameterError(problem, where=where, remedy=remedy) from None


@dataclass(frozen=True)
class Run:
    """One training of a sweep, as it is handed to another process. cell: axis -> name of its value; key: see `plan`.

    treebank: what it is trained on; scored: the treebank of the sweep, which gives the dev and test parts of all runs.
    """

    cell: dict[str, str]
    seed: int
    config: Config
    treebank: str
    scored: str
    code_sha256: str
    key: str

    @property
    def folder(self) -> str:
        """Its place in the sweep's folder."""
        return f"runs/{self.key[:12]}"

    def __str__(self) -> str:
        return f"{describe(self.cell)}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """A sweep that can begin. content: the file as it was read."""

    name: str
    profile: str | None
    content: dict
    runs: tuple[Run, ...]

    def to_dict(self) -> dict:
        """Return the content of sweep.json."""
        runs = [{"cell": run.cell, "seed": run.seed, "key": run.key, "folder": run.folder} for run in self.runs]
        return {"name": self.name, "profile": self.profile, "file": self.content, "runs": runs}


def describe(cell: dict[str, Any]) -> str:
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def plan(path: str | Path, profile: str | None = None) -> Plan:
    """Return all runs of a sweep's file in one of its profiles (None: the file as it stands).

    The runs are in the order of the seeds, so that an unfinished sweep has seen every cell. The key of a run is the SHA-256 of
    its config, its treebank with all sentences, and the code that trains.

    Raises ParameterError with the file, the key and the remedy for a mistake in the file; CorpusError or TreebankError if the
    treebank cannot be read.
    """
    content = _read(path)
    description = check_description(content, str(path))
    chosen = description.of(profile)
    cells = _cells(chosen, str(path))
    tasks = {config.model.task for _, config, _ in cells}
    treebanks = {chosen.treebank, *(treebank for *_, treebank in cells)}
    hashed = {treebank: provenance.data_hash(treebank, tasks) for treebank in treebanks}
    code, data, runs = provenance.training_hash(), hashed[chosen.treebank], []
    for seed, (cell, config, treebank) in product(chosen.seeds, cells):
        config = override(config, {"train.seed": seed})
        parts = [to_dict(config), treebank, hashed[treebank], code] + [data] * (treebank != chosen.treebank)
        runs.append(Run(cell, seed, config, treebank, chosen.treebank, code, provenance.json_hash(parts)))
    return Plan(description.name, profile, content, tuple(runs))


def _cells(chosen: Description, where: str) -> list[tuple[dict[str, str], Config, str]]:
    """Return (axis -> name of its value, config, treebank) for every combination; the last axis changes fastest."""
    with _errors_at(f"{where}: preset"):
        base = preset(chosen.preset)
    base = _apply(base, chosen.set, f"{where}: set")
    owner: dict[str, str] = {}
    for axis, values in chosen.grid.items():  # if two axes set the same, the second would undo the first
        for setting in {setting for settings in values.values() for setting in settings}:
            if owner.setdefault(setting, axis) != axis:
                problem = f"both {owner[setting]} and {axis} set {setting}"
                raise ParameterError(problem, where=f"{where}: grid", remedy="Make one axis of the two.")
    cells: list[tuple[dict[str, str], Config, str]] = []
    for names in product(*chosen.grid.values()):
        config, treebank = base, chosen.treebank
        for axis, name in zip(chosen.grid, names):
            settings, place = dict(chosen.grid[axis][name]), f"{where}: grid: {axis}: {name}"
            treebank = str(settings.pop(TREEBANK, treebank))
            config = _apply(config, settings, place)
        cell = {axis: str(name) for axis, name in zip(chosen.grid, names)}
        for other, *same in cells:
            if same == [config, treebank]:
                problem = f"two cells are one: ({describe(other)}) and ({describe(cell)})"
                raise ParameterError(problem, where=f"{where}: grid", remedy="Give them different settings.")
        cells.append((cell, config, treebank))
    return cells


def _apply(config: Config, settings: dict, where: str) -> Config:
    """Return the config with these settings. Errors get their place in the file."""
    for name in settings:
        if name in RESERVED:
            raise ParameterError(f"{name} cannot be set here", where=where, remedy=RESERVED[name])
    with _errors_at(where):
        return override(config, settings)


@contextmanager
def _errors_at(where: str) -> Iterator[None]:
    """Turn the errors of a config into a ParameterError with its place in the file."""
    try:
        yield
    except LalkitError as error:
        raise ParameterError(error.problem, where=where, remedy=error.remedy) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(str(error), where=where, remedy="Correct the value.") from None


class _Loader(yaml.SafeLoader):
    """YAML that refuses two keys of one name, instead of taking the last."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key, deep=True)
            if str(name) in seen:  # 1 and '1' would be one name in a table
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} is there twice", key.start_mark)
            seen.add(str(name))
        return super().construct_mapping(node, deep)


def _read(path: str | Path) -> Any:
    """Return the content of a YAML file. Raises ParameterError if it is not YAML, or does not fit into JSON."""
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
        parse_json(json.dumps(content))  # it must fit into sweep.json
        return content
    except (OSError, yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        remedy = "Keys are unique; indent by spaces; notebooks/sweeps has examples."
        raise ParameterError(f"is no YAML of a sweep: {error}", where=str(path), remedy=remedy) from None


def sweep(plan: Plan, out: str | Path, *, jobs: int = 1, cluster: str | None = None) -> list[tuple[Run, dict]]:
    """Carry out the missing runs of a plan, and return every run with its result, in the plan's order.

    An interruption loses nothing: the same call continues. A run that another sweep beside `out` has finished is copied from
    there, so that a cell that two tables share is trained once.

    Args:
        plan: the runs, see `plan`.
        out: the sweep's folder; with a cluster, the same folder on all its workers.
        jobs: the number of runs at the same time on this machine.
        cluster: the address of a dask scheduler whose workers carry out the runs instead.

    Returns:
        Pairs of run and result. The status of a failed run says so.

    Raises:
        ParameterError: `out` holds another sweep, or `jobs` is less than 1 or far too large.
        LalkitError: there is no dask, no scheduler or no worker, or the scheduler stopped.
    """
    whole_number("--jobs", jobs, 1, MOST_PROCESSES)
    out, total = Path(out).resolve(), len(plan.runs)
    if (out / "sweep.json").exists():
        there = find_json(out / "sweep.json") or {}
        if (there.get("name"), there.get("profile", "")) != (plan.name, plan.profile):
            raise ParameterError("holds another sweep", where=str(out), remedy="Give another --out.")
    write_json(out / "sweep.json", plan.to_dict())
    remove_parts(out)
    missing: dict[str, Run] = {}
    for run in plan.runs:
        _copy_from_beside(run, out)
        if finished(out / run.folder, run.key):
            clear_away(out / run.folder)
        else:
            missing[str(out / run.folder)] = run
    before = total - len(missing)
    logger.info("%s: %d runs, %d of them finished; in %s", plan.name, total, before, out)
    if missing:
        tasks = {folder: asdict(run) for folder, run in missing.items()}
        with closing(_carry_out_all(tasks, jobs, cluster)) as folders, progress(total=len(missing), unit="run") as bar:
            for number, folder in enumerate(folders, before + 1):
                bar.update()
                logger.info("[%d/%d] %s: %s", number, total, missing[folder], outcome(read_result(folder)))
    return [(run, read_result(out / run.folder) or NO_RESULT) for run in plan.runs]


def read_result(folder: str | Path) -> dict:
    """Return the result of a run, empty if there is none, or only a damaged one."""
    return find_json(Path(folder) / RESULT) or {}


def finished(folder: str | Path, key: str) -> dict | None:
    """Return the result of a run that has this key and did not fail; otherwise None."""
    result = read_result(folder)
    return result if result.get("status") == "ok" and result.get("key") == key else None


def outcome(result: dict) -> str:
    """Describe a result in a few words."""
    if result.get("status") != "ok":
        return "failed: " + " ".join(str(result.get("error") or NO_RESULT["error"]).split())
    dev = result["scores"]["dev"]
    scores = [f"{name} {dev[key]:.2f}" for name, key in (("F1", "f1"), ("LAS", "las")) if dev[key] is not None]
    return f"dev {', '.join(scores)}, {result['seconds'] / 60:.1f} min"


def _copy_from_beside(run: Run, out: Path) -> None:
    """Copy a run that is missing here from another sweep beside this one, if it is finished there."""
    there = (folder for folder in sorted(out.parent.glob(f"*/{run.folder}")) if finished(folder, run.key))
    if not finished(out / run.folder, run.key) and (folder := next(there, None)):
        shutil.rmtree(out / run.folder, ignore_errors=True)
        shutil.copytree(folder, out / run.folder, ignore=shutil.ignore_patterns(RESULT))
        write_bytes(out / run.folder / RESULT, (folder / RESULT).read_bytes())  # last: now the run counts


def _carry_out_all(tasks: dict[str, dict], jobs: int, cluster: str | None) -> Generator[str, None, None]:
    """Carry out runs, folder -> task, and yield their folders as they end. Closing the generator ends the runs at work here."""
    client, working = (connect(cluster) if cluster else None), set()
    pool = client.get_executor(pure=False, retries=RETRIES) if client else ThreadPoolExecutor(jobs)
    processes = None if client else working  # the processes of workers are out of our reach
    futures: dict[Future, str] = {pool.submit(launch, *each, os.getcwd(), processes): each[0] for each in tasks.items()}
    try:
        for future in as_completed(futures):
            folder = futures[future]
            try:
                code = future.result()
            except CancelledError as error:
                remedy = "Start it again, and give the same command: finished runs are not repeated."
                raise LalkitError(f"the scheduler stopped ({error})", where=str(cluster), remedy=remedy) from None
            except Exception as error:  # dask's KilledWorker, and errors that a worker sends back
                write_failure(folder, tasks[folder], f"the workers that had it died, or could not start it: {error}")
            else:
                if code not in (0, FAILED) and not finished(folder, tasks[folder]["key"]):
                    problem = f"its process died (exit code {code}); was there enough memory? See log.txt."
                    write_failure(folder, tasks[folder], problem)
            yield folder
    finally:
        for waiting in futures:
            waiting.cancel()
        pool.shutdown(wait=False)
        for process in list(working):
            process.kill()
        if client:
            client.close()


def launch(folder: str, task: dict, where: str | None = None, working: set | None = None) -> int:
    """Carry out one run in a process of its own, and return its exit code.

    Args:
        folder: the run's folder. The process writes its messages to log.txt there.
        task: what to do, see `carry_out`.
        where: the process's current folder.
        working: the processes that were started; this one is added.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "lalkit.reproduce.sweep", folder, json.dumps(task)]
    with open(Path(folder) / "log.txt", "ab") as log:
        process = subprocess.Popen(  # when we end, its standard input closes, and then it ends: _end_with_starter
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **ONE_THREAD}, cwd=where
        )
        with process:
            if working is not None:
                working.add(process)
            return process.wait()


def write_failure(folder: str | Path, task: dict, error: str) -> None:
    """Write that a run failed, and why."""
    write_json(Path(folder) / RESULT, {**task, "status": "failed", "error": error})


def carry_out(folder: Path, task: dict) -> None:
    """Train a parser, score it on dev and test, and write result.json. A finished run is not repeated.

    It leaves in the folder the parser (parser/), the counts of every sentence, without its text (dev.csv, test.csv), and last
    result.json.

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
        problem = "the code that trains has changed since the sweep was planned"
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
    """End this process when its starter has ended: then nobody holds the other end of our standard input."""
    while os.read(0, 1):  # not sys.stdin: a thread may not hold its lock when Python ends
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
