"""Plan the runs of a sweep from its YAML file, and carry them out.

A sweep is a grid of settings and seeds. `Description` is the form of its file. `plan` returns its runs: every combination of
the grid's values with every seed. Each run has a complete config, which is checked before anything starts, and a key: a hash of
everything that its numbers depend on.

`sweep` carries out the runs. Every run is a process of its own with one thread, so that it shares no numbers and no memory with
the others: `python -m lalkit.reproduce.sweep FOLDER TASK`. It trains, chooses the best epoch on dev, scores dev and test, and
writes result.json last: a run counts if this file is there. An interrupted training continues.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lalkit.chart.machine import ONE_THREAD, keep_memory, progress
from lalkit.config import MOST_PROCESSES, Config, Seed, from_dict, import_modules, modules, override, preset, to_dict
from lalkit.errors import LalkitError, ModelError, ParameterError, whole_number
from lalkit.evaluation import provenance
from lalkit.files import find_json, locked_folder, parse_json, remove_parts, write_json, write_text
from lalkit.reproduce.notebook import suggest
from lalkit.treebank.brackets import read_text
from lalkit.treebank.corpora import repository

logger = logging.getLogger(__name__)

TREEBANK = "treebank"  # in a cell: the treebank that its runs are trained on. All runs are scored on that of the sweep.
# A sweep sets the seed itself, and a schedule that follows the clock cannot be repeated.
RESERVED = {"train.seed", "train.max_minutes", "train"}
OF_RUNS = "seed seeds run split f1 exact uas las tag_accuracy parameters minutes epoch epochs best_epoch device curve"
RESULT = "result.json"
FAILED = 3  # exit code of a run that has written why it failed
THREADS = 1  # of every run, so that its numbers do not depend on how many run beside it
MOST_RUNS, MOST_PIECES, MOST_CHARACTERS = 1_000, 100_000, 1_000_000  # of a sweep, and of its file
NO_RESULT = {"status": "failed", "error": "left no result"}

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$")]
Cell = dict[str, str | int]  # axis -> value
# An axis or a value of it, of which paths of studies are made.
Word = Annotated[str, StringConstraints(pattern=r"^[^/\\.\x00-\x1f][^/\\\x00-\x1f]{0,59}$")]
Grid = Annotated[dict[Word, Annotated[dict[Word | int, dict[str, Any]], Field(min_length=1)]], Field(min_length=1)]
Seeds = Annotated[list[Seed], Field(min_length=1)]
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
    """The rows of a table of data/paper that belong to the cells: axis -> its column, and the text there for each value."""

    table: Name
    rows: dict[str, PaperRow]


class Profile(Form):
    """The parts of the file that a profile replaces. Its `set` is added to the file's `set`, and has priority."""

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
    profiles: dict[Name, Profile] = {}
    paper: Paper | None = None
    claims: list[Better | Same] = []

    @classmethod
    def check(cls, content: Any, where: str) -> Description:
        """Return the content of a sweep's file in its form. Raises ParameterError that names the first wrong key."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
            remedy = "Correct the description; notebooks/sweeps has examples."
            raise ParameterError(problem, where=where, remedy=remedy) from None

    def of(self, profile: str | None) -> Description:
        """Return the description with the values of one profile in their places. Raises ParameterError if there is none."""
        if profile is None:
            return self
        if profile not in self.profiles:
            remedy = suggest(profile, self.profiles)
            raise ParameterError(f"there is no profile {profile!r}", where=f"{self.name}: profiles", remedy=remedy)
        replaced = {key: value for key, value in self.profiles[profile] if value is not None}
        return self.model_copy(update=replaced | {"set": self.set | self.profiles[profile].set})

    def cells(self) -> list[tuple[dict[str, str], Config, str]]:
        """Return (axis -> name of its value, config, treebank) for every combination; the last axis changes fastest."""
        whole_number("the number of runs", len(self.seeds) * math.prod(map(len, self.grid.values())), 1, MOST_RUNS)
        if taken := self.grid.keys() & OF_RUNS.split():
            raise ParameterError(f"no axis can be called {min(taken)!r}", where="grid", remedy="Give it another name.")
        base, cells = _apply(preset(self.preset), self.set, "set"), []
        for names in product(*self.grid.values()):
            config, treebank = base, self.treebank
            for axis, name in zip(self.grid, names):
                settings = dict(self.grid[axis][name])
                treebank = str(settings.pop(TREEBANK, treebank))
                config = _apply(config, settings, f"grid: {axis}: {name}")
            cells.append(({axis: str(name) for axis, name in zip(self.grid, names)}, config, treebank))
        return cells


@dataclass(frozen=True)
class Run:
    """One training of a sweep, as it is handed to another process. cell: axis -> name of its value; key: see `plan`.

    treebank: the run is trained on it; scored: the treebank of the sweep, which gives the dev and test parts of all runs.
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


def describe(cell: dict[str, Any]) -> str:
    """Return the values of a cell, or its settings, in words."""
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def plan(path: str | Path, profile: str | None = None) -> Plan:
    """Return all runs of a sweep's file in one of its profiles (None: without a profile).

    >>> runs = lalkit.plan("notebooks/sweeps/trial.yml", "smoke").runs  # doctest: +SKIP

    The runs are in the order of the seeds, so that an unfinished sweep has seen every cell. The key of a run is the SHA-256 of
    its config, its treebank with all sentences, and the code that trains.

    Raises LalkitError with the file and the key for a mistake in the file, CorpusError or TreebankError if the treebank cannot
    be read.
    """
    content, description = read_description(path)
    chosen = description.of(profile)
    try:
        cells = chosen.cells()
        tasks = {config.model.task for _, config, _ in cells}
        treebanks = {chosen.treebank, *(treebank for *_, treebank in cells)}
        hashed = {treebank: provenance.data_hash(treebank, tasks) for treebank in treebanks}
    except LalkitError as error:
        raise error.at(str(path)) from None
    code, data, runs = provenance.training_hash(), hashed[chosen.treebank], []
    for seed, (cell, config, treebank) in product(chosen.seeds, cells):
        config = override(config, {"train.seed": seed})
        parts = [to_dict(config), treebank, hashed[treebank], code] + [data] * (treebank != chosen.treebank)
        runs.append(Run(cell, seed, config, treebank, chosen.treebank, code, provenance.json_hash(parts)))
    if len({run.key for run in runs}) < len(runs):
        problem = "two cells have the same settings, or a seed is there twice"
        raise ParameterError(problem, where=str(path), remedy="Give every run other settings, or another seed.")
    return Plan(description.name, profile, content, tuple(runs))


def _apply(config: Config, settings: dict, where: str) -> Config:
    """Return the config with these settings. Errors get their place in the file."""
    if reserved := RESERVED & settings.keys():
        problem = f"{', '.join(reserved)} cannot be set here"
        raise ParameterError(problem, where=where, remedy="Use `seeds`, and single settings such as train.epochs.")
    try:
        return override(config, settings)
    except ModelError as error:
        raise error.at(where) from None


class _Loader(yaml.SafeLoader):
    """YAML that refuses two keys of one name, instead of taking the last."""

    def construct_mapping(self, node, deep=False):
        # As texts: 1 and '1' would be one name in a table. A list as a key is refused below, and may be endless as a text.
        names = [str(self.construct_object(key)) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            raise yaml.constructor.ConstructorError(None, None, f"a key is there twice: {names}", node.start_mark)
        return super().construct_mapping(node, deep)


def read_description(path: str | Path) -> tuple[Any, Description]:
    """Return the content of a sweep's file, as it is written and in its form.

    Raises ParameterError if it is not YAML, does not fit into JSON, or is not a sweep.
    """
    text = read_text(Path(path))
    try:
        written = []
        if len(text) <= MOST_CHARACTERS:
            content = yaml.load(text, _Loader)
            # It must fit into sweep.json, where what an alias stands for counts every time.
            written = list(islice(json.JSONEncoder().iterencode(content), MOST_PIECES))
        if not 0 < len(written) < MOST_PIECES:
            raise ValueError(f"it holds more than {MOST_PIECES:,} values or {MOST_CHARACTERS:,} characters")
        parse_json("".join(written))
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        remedy = "Keys are unique; indent by spaces; notebooks/sweeps has examples."
        raise ParameterError(f"is no YAML of a sweep: {error}", where=str(path), remedy=remedy) from None
    return content, Description.check(content, str(path))


def sweep(plan: Plan, out: str | Path, *, jobs: int = 1) -> list[tuple[Run, dict]]:
    """Carry out the missing runs of a plan. Return every run with its result, in the plan's order.

    >>> found = lalkit.sweep(lalkit.plan("notebooks/sweeps/trial.yml", "smoke"), "runs/smoke")  # doctest: +SKIP

    An interruption loses nothing: the same call continues.

    Args:
        plan: the runs, see `plan`.
        out: the sweep's folder.
        jobs: the number of runs at the same time.

    Returns:
        Pairs of run and result. The status of a failed run says so.

    Raises:
        ParameterError: `out` holds another sweep, or `jobs` is not in 1..256.
    """
    whole_number("--jobs", jobs, 1, MOST_PROCESSES)
    out, total = Path(out).resolve(), len(plan.runs)
    if (out / "sweep.json").exists():
        there = find_json(out / "sweep.json") or {}
        if (there.get("name"), there.get("profile", "")) != (plan.name, plan.profile):
            raise ParameterError("holds another sweep", where=str(out), remedy="Give another --out.")
    runs = [{"cell": run.cell, "seed": run.seed, "key": run.key, "folder": run.folder} for run in plan.runs]
    write_json(out / "sweep.json", {"name": plan.name, "profile": plan.profile, "file": plan.content, "runs": runs})
    remove_parts(out)
    missing = [run for run in plan.runs if not finished(out / run.folder, run.key)]
    for run in plan.runs:
        if run not in missing:
            clear_away(out / run.folder)
    logger.info("%s: %d runs, %d of them finished; in %s", plan.name, total, total - len(missing), out)
    pool, processes = ThreadPoolExecutor(jobs), set()
    futures = {pool.submit(launch, out / run.folder, asdict(run), processes): run for run in missing}
    try:
        with progress(total=len(missing), unit="run") as bar:
            for number, future in enumerate(as_completed(futures), total - len(missing) + 1):
                future.result()
                bar.update()
                run = futures[future]
                logger.info("[%d/%d] %s: %s", number, total, run, outcome(read_result(out / run.folder)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        while processes:
            processes.pop().kill()
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


def launch(folder: Path, task: dict, processes: set) -> None:
    """Carry out one run in a process of its own, which writes its messages to log.txt in the run's folder.

    Args:
        folder: the run's folder.
        task: the run, see `carry_out`.
        processes: the processes that were started; this one is added.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "lalkit.reproduce.sweep", str(folder), json.dumps(task)]
    with (folder / "log.txt").open("ab") as log:
        # When we end, its standard input closes, and then it ends: _end_with_starter.
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": log, "stderr": log}
        with subprocess.Popen(command, env={**os.environ, **ONE_THREAD, **modules()}, **pipes) as process:
            processes.add(process)
            code = process.wait()
    if process in processes and code not in (0, FAILED) and not finished(folder, task["key"]):  # nobody stopped it
        write_failure(folder, task, f"its process died (exit code {code}); was there enough memory? See log.txt.")


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
    from lalkit.training.checkpoint import load_model, read_content
    from lalkit.training.loop import train

    if finished(folder, task["key"]):
        return
    if provenance.training_hash() != task["code_sha256"]:
        problem = "the code that trains has changed since the sweep was planned"
        raise ModelError(problem, remedy="Start the sweep again.")
    parser = folder / "parser"
    if not any(parser.glob("resume-*.safetensors")):  # someone deleted the result.json of a finished run: train again
        shutil.rmtree(parser, ignore_errors=True)
    train(from_dict(Config, task["config"]), task["treebank"], parser, resume=True)
    begun = time.perf_counter()
    loaded, state = load_model(parser), read_content(parser, "resume")["state"]
    scores = {}
    for split, gold in provenance.splits(task["scored"], loaded.config.model.task, ("dev", "test")).items():
        evaluation = evaluate(gold, [p.sentence for p in loaded.parse(gold, threads=THREADS)])
        scores[split] = evaluation.summary()
        write_text(folder / f"{split}.csv", evaluation.table().to_csv(index=False))
    result = {
        **task, "status": "ok", "error": None, "scores": scores, "epochs": state["epoch"],
        "best_epoch": loaded.info["epoch"], "history": state["history"],
        "parameters": loaded.network.size(),
        "vocabulary": {name: len(entries) for name, entries in loaded.vocab.to_dict().items()},
        "seconds": round(state["seconds"] + time.perf_counter() - begun, 1),  # without interruptions
        "peak_memory_mb": provenance.peak_memory(), "threads": THREADS,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"), "git": provenance.git_revision(repository()),
        "versions": provenance.versions(), "device": provenance.device(),
    }  # fmt: skip
    write_json(folder / RESULT, result)
    clear_away(folder)


def clear_away(folder: Path) -> None:
    """Remove from a finished run its state to resume from (two thirds of the folder), and files that killed processes left."""
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
    with locked_folder(folder, wait=True):  # a process that lost its sweep may be about to end in this folder
        try:
            import_modules()
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
