"""A sweep's file: YAML, read strictly. What it may hold is `KEYS`; what a profile replaces is `REPLACED`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lalkit.errors import ParameterError
from lalkit.reproduce.parameters import suggest

REPLACED = ("treebank", "preset", "seeds", "set", "grid")
KEYS = ("name", "question", *REPLACED, "profiles", "paper", "claims")
NEEDED = ("name", "question", "treebank", "preset", "seeds", "grid")
WANTED = {
    "name": "a word of letters, digits, '.', '_' and '-': it names a folder",
    "question": "text",
    "treebank": "text",
    "preset": "text",
    "seeds": "a list of whole numbers, such as [1, 2, 3]",
    "set": "settings with their values, such as {train.epochs: 3}",
    "grid": "for every axis its values, and for each its settings: {axis: {value: {setting: ...}}}",
    "profiles": f"for every profile what it replaces of {', '.join(REPLACED)}",
    "paper": "table: a file of data/paper without .csv; rows: axis -> {column, values: name of a value -> what stands there}",
    "claims": "a list of {says, better, than, by}: cells (axis -> value; `than` may be: all others) and f1, uas or las",
}
MEASURES = ("f1", "uas", "las")
ALL_OTHERS = "all others"
# What columns of a sweep's tables are called besides its axes.
COLUMNS = (
    "seed", "seeds", "split", "f1", "exact", "uas", "las", "tag_accuracy", "parameters", "minutes", "peak_mb", "best_epoch",
)  # fmt: skip


@dataclass(frozen=True)
class SweepFile:
    """A file as it was read, with the values of one profile in their places.

    content: the whole file; chosen: `REPLACED` -> its value; sources: setting's or part's place in the file, for errors.
    """

    path: str
    profile: str | None
    content: dict
    chosen: dict
    sources: dict[str, str]

    def error(self, place: str, problem: str, remedy: str = "") -> ParameterError:
        return ParameterError(problem, where=f"{self.path}: {place}", remedy=remedy)


def read(path: str | Path, profile: str | None = None) -> SweepFile:
    """A sweep's file with the values of a profile (None: as they stand).

    A profile's `set` is added to the file's and wins over it; all else takes the place of what the file has. Raises
    ParameterError naming the file, the key and what is wanted there; all profiles are looked at, whichever is chosen.
    """
    content = _parse(path)
    _check(content, KEYS, f"{path}")
    for key in NEEDED:
        if key not in content:
            raise ParameterError(f"has no {key!r}", where=str(path), remedy=f"Wanted: {WANTED[key]}.")
    profiles = content.get("profiles") or {}
    for name, values in profiles.items():
        _check(values, REPLACED, f"{path}: profiles.{name}")
    if profile is not None and profile not in profiles:
        remedy = suggest(profile, profiles)
        raise ParameterError(f"there is no profile {profile!r}", where=f"{path}: profiles", remedy=remedy)
    chosen = {key: content[key] for key in REPLACED if key in content}
    sources = {key: key for key in REPLACED}
    replaced = dict(profiles[profile]) if profile else {}
    added = replaced.pop("set", {})
    chosen |= replaced
    sources |= {key: f"profiles.{profile}.{key}" for key in replaced}
    chosen["set"] = content.get("set", {}) | added
    sources |= {f"set.{name}": f"profiles.{profile}.set" for name in added}
    return SweepFile(str(path), profile, content, chosen, sources)


def _check(values: Any, keys: tuple[str, ...], where: str) -> None:
    """Raises ParameterError unless these are values of the keys, each of its kind."""
    if not isinstance(values, dict):
        raise ParameterError(f"is not keys with values but {values!r}", where=where, remedy=f"Keys: {', '.join(keys)}.")
    for key, value in values.items():
        if key not in keys:
            raise ParameterError(f"unknown key {key!r}", where=where, remedy=suggest(str(key), keys))
        if not _fits(key, value):
            raise ParameterError(f"{key} is {value!r}", where=where, remedy=f"Wanted: {WANTED[key]}.")
        if key == "seeds" and len(set(value)) < len(value):
            raise ParameterError(f"a seed is there twice: {value}", where=f"{where}: seeds")
        if key == "grid":
            _check_grid(value, f"{where}: grid")


def _fits(key: str, value: Any) -> bool:
    if key == "name":
        return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*", value, re.ASCII) is not None
    if key in ("question", "treebank", "preset"):
        return isinstance(value, str) and bool(value.strip())
    if key == "seeds":
        return isinstance(value, list) and bool(value) and all(type(seed) is int for seed in value)
    if key == "claims":
        return isinstance(value, list) and all(_is_claim(claim) for claim in value)
    if key == "paper":
        return isinstance(value, dict) and set(value) == {"table", "rows"} and _are_rows(value["rows"])
    return isinstance(value, dict) and (bool(value) or key != "grid") and all(isinstance(name, str) for name in value)


def _is_claim(claim: Any) -> bool:
    return (
        isinstance(claim, dict)
        and set(claim) == {"says", "better", "than", "by"}
        and claim["by"] in MEASURES
        and isinstance(claim["better"], dict)
        and (isinstance(claim["than"], dict) or claim["than"] == ALL_OTHERS)
    )


def _are_rows(rows: Any) -> bool:
    return isinstance(rows, dict) and all(map(_is_row, rows.values()))


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and set(row) == {"column", "values"} and isinstance(row["values"], dict)


def _check_grid(grid: dict, where: str) -> None:
    for axis, values in grid.items():
        if not isinstance(values, dict) or not values:
            raise ParameterError(f"{axis} is {values!r}", where=where, remedy=f"Wanted: {WANTED['grid']}.")
        if axis in COLUMNS:
            raise ParameterError(
                f"no axis can be called {axis}: a column of the tables is", where=where, remedy="Rename it."
            )
        for name, settings in values.items():
            place = f"{where}: {axis}: {name}"
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise ParameterError(
                    f"YAML reads this name as {name!r}",
                    where=place,
                    remedy="Put it into quotes, such as 'yes' or 'no'.",
                )
            if not isinstance(settings, dict) or not all(isinstance(setting, str) for setting in settings):
                raise ParameterError(f"is {settings!r}", where=place, remedy=f"Wanted: {WANTED['set']}; {{}}: none.")


class _Loader(yaml.SafeLoader):
    """YAML without its habit to take the last of two keys of one name."""

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
        return yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ParameterError(problem, where=str(path), remedy="Give a sweep's YAML file.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise ParameterError(
            f"is not the YAML of a sweep: {getattr(error, 'problem', None) or error}",
            where=place,
            remedy="Keys are unique; indent by spaces; see notebooks/sweeps for examples.",
        ) from None
