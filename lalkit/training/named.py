"""Find trained parsers: shipped in data/models, installed by pip, in a folder, or on the Hugging Face hub.

`pip install lalkit-models-NAME` brings one parser: a folder of the package lalkit_models, made by tools/model_wheel.py.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, fields
from importlib.util import find_spec
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Annotated, Literal

from pydantic import NonNegativeInt, PositiveInt, StringConstraints

from lalkit.errors import ModelError
from lalkit.files import read_json
from lalkit.training.hub import HUB, download
from lalkit.treebank.corpora import shipped

DEFAULT = "en"  # the shipped parser that is used where none is named
IN_THE_WHEEL = "en-span"  # the one that a wheel of lalkit has (setup.py)
# Each of these parsers serves both for parsing and for interpretation. It has no feed-forward and no residual dropout after the
# label attention, so what every label head adds to a score can be told, and nothing was lost by it (data/models/README.md).
ALIASES = {"default": DEFAULT, "en-craft-x": "en-craft", "en-news-x": "en-news"}
MORE = "The other parsers of lalkit are in its repository, and in wheels: pip install lalkit-models-NAME"


@dataclass(frozen=True)
class Profile:
    """What profile.json holds: how often each label head leads each label in a corpus."""

    corpus: str
    norm: Literal["raw", "minmax", "softmax", "share", "exact"]
    spans: PositiveInt
    labels: list[str]
    led: list[list[NonNegativeInt]]  # [label heads][labels]
    all: list[PositiveInt]  # [labels]


@dataclass(frozen=True)
class Licence:
    """What card.json holds at least."""

    licence: Annotated[str, StringConstraints(min_length=1)]


@dataclass(frozen=True)
class Card:
    """What is known of a shipped parser: its folder, and what card.json in it holds."""

    folder: Path
    facts: dict

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


def folder() -> Path:
    """Return the folder of the shipped parsers."""
    return shipped() / "models"


def places() -> dict[str, Path]:
    """Return the folder of every parser that can be named here, shipped or installed, by its name, without other names."""
    installed = find_spec("lalkit_models")
    folders = [*(map(Path, installed.submodule_search_locations) if installed else ()), folder()]
    found = {
        file.parent.name.replace("_", "-"): file.parent for place in folders for file in place.glob("*/model.json")
    }
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Return the names of the parsers that can be named here, without their other names."""
    return list(places())


def choices() -> str:
    """Return advice about which parsers can be named here. A wheel of lalkit has only a small one; a checkout has all."""
    known = names()
    known += [alias for alias, name in ALIASES.items() if name in known]
    here = f"one of {', '.join(known)}" if known else "train one"
    advice = f"Give a folder written by `lalkit train`, hf:owner/name, or {here}."
    return advice if (shipped().parent / "pyproject.toml").is_file() else f"{advice} {MORE}"


def find(name: str | Path, **hub) -> Path:
    """Return the folder of a parser: a folder, a shipped parser's name, or a repository on the hub ('hf:owner/name').

    hub: options of `lalkit.training.hub.download`. Raises ModelError if there is none, or if a shipped or downloaded one has no
    card with a licence.
    """
    if not isinstance(name, str | PathLike):
        remedy = f"Give a name as text, or a folder: {DEFAULT}."
        problem = f"the name of a parser must be text, not {type(name).__name__}"
        raise ModelError(problem, where=reprlib.repr(name), remedy=remedy)
    if str(name) and isdir(name):  # False, too, for a text that cannot be a path
        return Path(name)
    if str(name).startswith(HUB):
        return read_card(download(str(name).removeprefix(HUB), **hub)).folder
    here = places()
    place = here.get(ALIASES.get(str(name), str(name)))
    if place := place or (here.get(IN_THE_WHEEL) if str(name) == "default" else None):
        return read_card(place).folder
    problem = "no parser here, and none is shipped under this name"
    raise ModelError(problem, where=str(name), remedy=choices())


def read_card(folder: Path) -> Card:
    """Read a parser's card. Raises ModelError if card.json is missing or damaged, or names no licence.

    A parser without a licence must not be passed on.
    """
    file = folder / "card.json"
    remedy = "Get the folder again, or write its card with `lalkit models ship`."
    facts = read_json(file, remedy, ModelError)
    if not facts.get("licence"):
        raise ModelError("names no licence", where=str(file), remedy=remedy)
    return Card(folder, read_json(file, remedy, ModelError, form=Licence))


def read_profile(folder: Path) -> dict | None:
    """Return profile.json, which counts the labels that each label head led in a corpus; None if there is none.

    Raises ModelError if it is damaged.
    """
    file = folder / "profile.json"
    if not file.exists():
        return None
    remedy = "Get it again, or delete it."
    profile = read_json(file, remedy, ModelError, form=Profile)
    if not profile["led"] or {len(counts) for counts in (*profile["led"], profile["all"])} != {len(profile["labels"])}:
        raise ModelError("is damaged: it has not one count for every label", where=str(file), remedy=remedy)
    return {field.name: profile[field.name] for field in fields(Profile)}
