"""A sweep's file -> its runs: every combination of the grid's values with every seed, each a whole config, checked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from lalkit.config import Config, override, preset, to_dict
from lalkit.errors import LalkitError
from lalkit.evaluation.provenance import code_hash, data_hash
from lalkit.reproduce.sweep_file import SweepFile, read

# Settings that a sweep sets itself, or that would make two runs of it incomparable.
KEPT = {
    "train.seed": "The seeds of a sweep are its `seeds`.",
    "train.max_minutes": "A schedule that follows the clock cannot be repeated; set train.epochs.",
}


@dataclass(frozen=True)
class Run:
    """One training of a sweep. cell: axis -> name of its value; key: SHA-256 of all that its numbers depend on (of
    nothing where the plan was made without hashes: "")."""

    cell: dict[str, str]
    seed: int
    config: Config
    treebank: str
    key: str = ""

    @property
    def folder(self) -> str:
        """Its place in the sweep's folder."""
        return f"runs/{self.key[:12]}"

    def __str__(self) -> str:
        return f"{describe(self.cell)}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """A sweep that can begin. content: the file as it was read; code, data: hashes, "" without."""

    name: str
    profile: str | None
    content: dict
    runs: tuple[Run, ...]
    code: str = ""
    data: str = ""

    def to_dict(self) -> dict:
        """What sweep.json holds."""
        runs = [
            {"cell": r.cell, "seed": r.seed, "treebank": r.treebank, "key": r.key, "folder": r.folder}
            for r in self.runs
        ]
        return {
            "name": self.name, "profile": self.profile, "code_sha256": self.code, "data_sha256": self.data,
            "file": self.content, "runs": runs,
        }  # fmt: skip


def describe(cell: dict[str, str]) -> str:
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def plan(path: str | Path, profile: str | None = None, *, hashes: bool = True) -> Plan:
    """All runs of a sweep's file in one of its profiles (None: the file as it stands), seed by seed, so that a sweep
    still under way has seen every cell.

    hashes: False leaves keys empty and asks for no treebank. Raises ParameterError naming the file, the key and the remedy
    for whatever is wrong with the file; CorpusError or TreebankError (hashes) where its treebank cannot be read.
    """
    file = read(path, profile)
    base = _base(file)
    cells = _cells(file, base)
    treebank, seeds = file.chosen["treebank"], file.chosen["seeds"]
    runs = [
        Run(cell, seed, override(config, {"train.seed": seed}), treebank) for seed in seeds for cell, config in cells
    ]
    tasks = {run.config.model.task for run in runs}
    code, data = (code_hash(), data_hash(treebank, tasks)) if hashes else ("", "")
    if hashes:
        runs = [replace(run, key=_key(run, data, code)) for run in runs]
    return Plan(file.content["name"], profile, file.content, tuple(runs), code, data)


def _key(run: Run, data: str, code: str) -> str:
    parts = [to_dict(run.config), run.treebank, data, code]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _base(file: SweepFile) -> Config:
    """The preset with the settings that all cells have."""
    try:
        config = preset(file.chosen["preset"])
    except LalkitError as error:
        raise file.error(file.sources["preset"], error.problem, error.remedy) from None
    for name, value in file.chosen["set"].items():
        config = _apply(file, config, {name: value}, file.sources.get(f"set.{name}", "set"))
    return config


def _cells(file: SweepFile, base: Config) -> list[tuple[dict[str, str], Config]]:
    """(axis -> value's name, config) of every combination, the last axis fastest."""
    grid, place = file.chosen["grid"], file.sources["grid"]
    _check_axes(file, grid, place)
    found: list[tuple[dict[str, str], Config]] = []
    for names in product(*grid.values()):
        config = base
        for axis, name in zip(grid, names):
            config = _apply(file, config, grid[axis][name], f"{place}: {axis}: {name}")
        cell = {axis: str(name) for axis, name in zip(grid, names)}
        same = next((other for other, theirs in found if theirs == config), None)
        if same is not None:
            raise file.error(
                place, f"two cells are one: ({describe(same)}) and ({describe(cell)})", "Give them different settings."
            )
        found.append((cell, config))
    return found


def _check_axes(file: SweepFile, grid: dict, place: str) -> None:
    """Raises ParameterError where two axes set the same: the second would undo the first."""
    owner: dict[str, str] = {}
    for axis, values in grid.items():
        for setting in {setting for settings in values.values() for setting in settings}:
            if owner.setdefault(setting, axis) != axis:
                raise file.error(
                    f"{place}: {axis}", f"sets {setting}, as does {owner[setting]}", "Make one axis of the two."
                )


def _apply(file: SweepFile, config: Config, settings: dict, place: str) -> Config:
    """`override`, with the place in the file put before its errors."""
    for name in settings:
        if name in KEPT:
            raise file.error(place, f"{name} cannot be set here", KEPT[name])
    try:
        return override(config, settings)
    except LalkitError as error:
        raise file.error(place, error.problem, error.remedy) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise file.error(place, f"{', '.join(settings)}: {error}") from None
