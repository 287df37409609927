"""Read a sweep's YAML file strictly, and plan its runs: every combination of the grid's values with every seed.

`KEYS` says what a file may hold, `REPLACED` what a profile of it may replace. Every run has a whole config, checked before
anything starts, and a key: a hash of all that its numbers depend on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from lalkit.config import Config, override, preset, to_dict
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.provenance import data_hash, json_hash, training_hash
from lalkit.evaluation.statistics import COUNTS
from lalkit.files import check_nesting, parse_json
from lalkit.reproduce.notebook import suggest
from lalkit.treebank.corpora import shipped

ALL_OTHERS = "all others"
# What columns of a sweep's tables are called besides its axes.
COLUMNS = (
    "seed", "seeds", "split", "f1", "exact", "uas", "las", "tag_accuracy", "parameters", "minutes", "peak_mb", "best_epoch",
    "epoch", "F1", "UAS", "LAS", "tags", "weights",
)  # fmt: skip
# Settings that a sweep sets itself, or that would make two runs of it incomparable.
RESERVED = {
    "train.seed": "The seeds of a sweep are its `seeds`.",
    "train.max_minutes": "A schedule that follows the clock cannot be repeated; set train.epochs.",
}


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Claim(Form):
    says: Any
    better: dict
    than: dict | Literal["all others"]
    by: Literal["f1", "uas", "las"]


class PaperRow(Form):
    column: Any
    values: dict


class Paper(Form):
    table: Any
    rows: dict[Any, PaperRow]


Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
SETTINGS = "settings with their values, such as {train.epochs: 3}"
TREEBANK = "treebank"  # in a cell: what its runs are trained on. All runs are scored on the `treebank` of the sweep.
GRID = "for every axis its values, and for each its settings: {axis: {value: {setting: ...}}}"
REPLACED = ("treebank", "preset", "seeds", "set", "grid")
NEEDED = ("name", "question", "treebank", "preset", "seeds", "grid")
# What a file may hold: key -> (kind of its value, the same in words).
KEYS: dict[str, tuple[Any, str]] = {
    "name": (Name, "a word of letters, digits, '.', '_' and '-': it names a folder"),
    "question": (Text, "text"),
    "treebank": (Text, "text"),
    "preset": (Text, "text"),
    "seeds": (Annotated[list[int], Field(min_length=1)], "a list of whole numbers, such as [1, 2, 3]"),
    "set": (dict[str, Any], SETTINGS),
    "grid": (Annotated[dict[str, Any], Field(min_length=1)], GRID),
    "profiles": (dict[str, Any], f"for every profile what it replaces of {', '.join(REPLACED)}"),
    "paper": (
        Paper,
        "table: a file of data/paper without .csv; rows: axis -> {column, values: name of a value -> what stands there}",
    ),
    "claims": (
        list[Claim],
        f"a list of {{says, better, than, by}}: cells (axis -> value; `than` may be: {ALL_OTHERS}) and f1, uas or las",
    ),
}


@dataclass(frozen=True)
class Run:
    """One training of a sweep. cell: axis -> name of its value; key: see `plan`.

    treebank: what it is trained on; scored: the treebank of the sweep, which gives the dev and test parts of all runs.
    """

    cell: dict[str, str]
    seed: int
    config: Config
    treebank: str
    scored: str
    key: str

    @property
    def folder(self) -> str:
        """Its place in the sweep's folder."""
        return f"runs/{self.key[:12]}"

    def __str__(self) -> str:
        return f"{describe(self.cell)}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """A sweep that can begin. content: the file as it was read; code, data: their hashes."""

    name: str
    profile: str | None
    content: dict
    runs: tuple[Run, ...]
    code: str
    data: str

    def to_dict(self) -> dict:
        """Return what sweep.json holds."""
        runs = [
            {"cell": r.cell, "seed": r.seed, "treebank": r.treebank, "key": r.key, "folder": r.folder}
            for r in self.runs
        ]
        return {
            "name": self.name, "profile": self.profile, "code_sha256": self.code, "data_sha256": self.data,
            "file": self.content, "runs": runs,
        }  # fmt: skip


def read_paper(content: dict, where: str) -> tuple[pd.DataFrame | None, dict]:
    """Return the table that a sweep's file names under `paper`, and axis -> its column and values; None and {} without one.

    Raises ParameterError, with the place of the content, if the table or one of the columns is not there.
    """
    if not (paper := content.get("paper")):
        return None, {}
    file = shipped() / "paper" / f"{paper['table']}.csv"
    if not file.is_file():
        raise ParameterError(f"{file} is not there", where=where, remedy="`paper: table` names a file of data/paper.")
    table = pd.read_csv(file, dtype=str)
    for column in (*(place["column"] for place in paper["rows"].values()), *COUNTS):
        if column not in list(table):
            remedy = f"Correct `paper` in the file of the sweep. {file.name} has {', '.join(table)}."
            raise ParameterError(f"{file} has no column {column!r}", where=where, remedy=remedy)
    return table, paper["rows"]


def describe(cell: dict[str, Any]) -> str:
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def plan(path: str | Path, profile: str | None = None) -> Plan:
    """Return all runs of a sweep's file in one of its profiles (None: the file as it stands).

    The runs are in the order of the seeds, so that an unfinished sweep has seen every cell. The key of a run is the SHA-256 of
    its config, its treebank with all sentences, and the code that trains.

    Raises ParameterError naming the file, the key and the remedy for whatever is wrong with the file; CorpusError or
    TreebankError if the treebank cannot be read.
    """
    file = SweepFile.read(path, profile)
    cells = _cells(file, _base(file))
    read_paper(file.content, str(path))
    scored = file.chosen[TREEBANK]
    tasks = {config.model.task for _, config, _ in cells}
    hashed = {treebank: data_hash(treebank, tasks) for treebank in {scored, *(treebank for *_, treebank in cells)}}
    code, data, runs = training_hash(), hashed[scored], []
    for seed, (cell, config, treebank) in product(file.chosen["seeds"], cells):
        config = override(config, {"train.seed": seed})
        what = [to_dict(config), treebank, hashed[treebank], code]
        key = json_hash(what + [data] * (treebank != scored))
        runs.append(Run(cell, seed, config, treebank, scored, key))
    return Plan(file.content["name"], profile, file.content, tuple(runs), code, data)


@dataclass(frozen=True)
class SweepFile:
    """A sweep's file with the values of one profile in their places.

    content: the whole file; chosen: `REPLACED` -> its value; places: for errors, where in the file a setting or part stands.
    """

    path: str
    content: dict
    chosen: dict
    places: dict[str, str]

    @classmethod
    def read(cls, path: str | Path, profile: str | None) -> SweepFile:
        """Read a file. The `set` of the profile is added to that of the file and wins; all else replaces what the file has.

        Raises ParameterError naming the file, the key and what is wanted there. All profiles are checked.
        """
        content = _parse(path)
        check_content(content, KEYS, f"{path}")
        for key in NEEDED:
            if key not in content:
                raise ParameterError(f"has no {key!r}", where=str(path), remedy=f"Wanted: {KEYS[key][1]}.")
        profiles = content.get("profiles", {})
        for name, values in profiles.items():
            check_content(values, REPLACED, f"{path}: profiles.{name}")
        if profile is not None and profile not in profiles:
            remedy = suggest(profile, profiles)
            raise ParameterError(f"there is no profile {profile!r}", where=f"{path}: profiles", remedy=remedy)
        replaced = dict(profiles[profile]) if profile else {}
        added = replaced.pop("set", {})
        chosen = {key: content[key] for key in REPLACED if key in content} | replaced
        chosen["set"] = content.get("set", {}) | added
        places = {key: f"profiles.{profile}.{key}" if key in replaced else key for key in REPLACED}
        places |= {f"set.{name}": f"profiles.{profile}.set" for name in added}
        return cls(str(path), content, chosen, places)

    def error(self, place: str, problem: str, remedy: str = "") -> ParameterError:
        return ParameterError(problem, where=f"{self.path}: {place}", remedy=remedy)


def check_content(values: Any, keys: Iterable[str], where: str) -> None:
    """Raise ParameterError unless these are values of the keys, each of its kind."""
    if not isinstance(values, dict):
        raise ParameterError(f"is not keys with values but {values!r}", where=where, remedy=f"Keys: {', '.join(keys)}.")
    for key, value in values.items():
        if key not in keys:
            raise ParameterError(f"unknown key {key!r}", where=where, remedy=suggest(str(key), keys))
        kind, wanted = KEYS[key]
        try:
            TypeAdapter(kind).validate_python(value, strict=True)
        except ValidationError:
            raise ParameterError(f"{key} is {value!r}", where=where, remedy=f"Wanted: {wanted}.") from None
        if key == "seeds" and len(set(value)) < len(value):
            remedy = "Name every seed once."
            raise ParameterError(f"a seed is there twice: {value}", where=f"{where}: seeds", remedy=remedy)
        if key == "grid":
            _check_grid(value, f"{where}: grid")


def _check_grid(grid: dict, where: str) -> None:
    for axis, values in grid.items():
        if not isinstance(values, dict) or not values:
            raise ParameterError(f"{axis} is {values!r}", where=where, remedy=f"Wanted: {GRID}.")
        if axis in COLUMNS:
            problem = f"no axis can be called {axis}: a column of the tables is"
            raise ParameterError(problem, where=where, remedy="Rename it.")
        for name, settings in values.items():
            place = f"{where}: {axis}: {name}"
            if not isinstance(name, str | int) or isinstance(name, bool):
                remedy = "Put it into quotes, such as 'yes' or 'no'."
                raise ParameterError(f"YAML reads this name as {name!r}", where=place, remedy=remedy)
            if not isinstance(settings, dict) or not all(isinstance(setting, str) for setting in settings):
                raise ParameterError(f"is {settings!r}", where=place, remedy=f"Wanted: {SETTINGS}; {{}}: none.")


def _base(file: SweepFile) -> Config:
    """Return the preset with the settings that all cells have."""
    try:
        config = preset(file.chosen["preset"])
    except LalkitError as error:
        raise file.error(file.places["preset"], error.problem, error.remedy) from None
    for name, value in file.chosen["set"].items():
        config = _apply(file, config, {name: value}, file.places.get(f"set.{name}", "set"))
    return config


def _cells(file: SweepFile, base: Config) -> list[tuple[dict[str, str], Config, str]]:
    """Return (axis -> name of its value, config, treebank) for every combination; the last axis changes fastest."""
    grid, place = file.chosen["grid"], file.places["grid"]
    owner: dict[str, str] = {}
    for axis, values in grid.items():  # if two axes set the same, the second would undo the first
        for setting in {setting for settings in values.values() for setting in settings}:
            if owner.setdefault(setting, axis) != axis:
                problem = f"sets {setting}, as does {owner[setting]}"
                raise file.error(f"{place}: {axis}", problem, "Make one axis of the two.")
    cells: list[tuple[dict[str, str], Config, str]] = []
    for names in product(*grid.values()):
        config, treebank = base, file.chosen[TREEBANK]
        for axis, name in zip(grid, names):
            settings, where = dict(grid[axis][name]), f"{place}: {axis}: {name}"
            if not isinstance(treebank := settings.pop(TREEBANK, treebank), str):
                raise file.error(where, f"{TREEBANK} is {treebank!r}", f"Wanted: {KEYS[TREEBANK][1]}.")
            config = _apply(file, config, settings, where)
        cell = {axis: str(name) for axis, name in zip(grid, names)}
        for other, *theirs in cells:
            if theirs == [config, treebank]:
                problem = f"two cells are one: ({describe(other)}) and ({describe(cell)})"
                raise file.error(place, problem, "Give them different settings.")
        cells.append((cell, config, treebank))
    return cells


def _apply(file: SweepFile, config: Config, settings: dict, place: str) -> Config:
    """Return the config with these settings; errors of `override` get the place in the file."""
    for name in settings:
        if name in RESERVED:
            raise file.error(place, f"{name} cannot be set here", RESERVED[name])
    try:
        return override(config, settings)
    except LalkitError as error:
        raise file.error(place, error.problem, error.remedy) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise file.error(place, f"{', '.join(settings)}: {error}") from None


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


def _parse(path: str | Path) -> Any:
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
        check_nesting(content)
        parse_json(json.dumps(content))  # it must fit into sweep.json
        return content
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ParameterError(problem, where=str(path), remedy="Give a sweep's YAML file.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        problem = f"is not the YAML of a sweep: {getattr(error, 'problem', None) or error}"
        remedy = "Keys are unique; indent by spaces; see notebooks/sweeps for examples."
        raise ParameterError(problem, where=place, remedy=remedy) from None
    except (TypeError, ValueError, RecursionError) as error:  # such as a date without such a day
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        problem = f"is not the YAML of a sweep: {reason}"
        raise ParameterError(problem, where=str(path), remedy="Write texts, numbers, lists and keys only.") from None
