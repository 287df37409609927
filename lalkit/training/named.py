"""Find trained parsers, and put them on the Hugging Face hub.

Where a parser comes from (`lalkit doctor` prints it): a folder is used as it is, and `hf:owner/name` comes from the hub and stays
in its cache. A name is looked up in lalkit's own data/models (a checkout has all parsers there, a wheel of lalkit only en-span),
then among the installed wheels lalkit_models_NAME, which tools/ship.py makes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import isdir
from pathlib import Path
from typing import Annotated, Literal

from pydantic import NonNegativeInt, PositiveInt, StringConstraints

from lalkit.errors import ModelError, ParameterError, checked, did_you_mean, warn_once
from lalkit.files import read_json
from lalkit.treebank.corpora import shipped
from lalkit.treebank.text import COMMON

DEFAULTS = ("en", "en-span")  # the default parser is the first of them that is here
LANGUAGES = {"english": "en", "chinese": "zh-sinica"}  # what a user may type
ENGLISH = {"craft", "ewt", "gum", "masc", "ptb-sample"}  # treebanks whose commonest words are `COMMON`
HUB = "hf:"
HUB_FILES = ["*.json", "*.safetensors", "README.md", "encoder/*"]
WHEEL = "pip install FOLDER/lalkit_models_{}-*.whl (a file beside the wheel of lalkit; in a checkout, tools/ship.py makes it)"


@dataclass(frozen=True)
class Profile:
    """The content of profile.json: how often each label head leads each label in a corpus."""

    corpus: str
    norm: Literal["raw", "minmax", "softmax", "share", "exact"]
    spans: PositiveInt
    labels: list[str]
    led: list[list[NonNegativeInt]]  # [label heads][labels]
    all: list[PositiveInt]  # [labels]


@dataclass(frozen=True)
class Licence:
    """The entry that card.json must have."""

    licence: Annotated[str, StringConstraints(min_length=1)]


@dataclass(frozen=True)
class Card:
    """The card of a shipped parser: its folder, and the content of card.json in it."""

    folder: Path
    facts: dict


def folders() -> list[Path]:
    """Return the folders in which a name is looked up, in this order: lalkit's own, then those of installed wheels."""
    installed = find_spec("lalkit_models")
    return [shipped() / "models", *(map(Path, installed.submodule_search_locations) if installed else ())]


def places() -> dict[str, Path]:
    """Return the folder of every parser that can be named here, by its name."""
    files = [file for place in reversed(folders()) for file in place.glob("*/model.json")]
    here = {file.parent.name.replace("_", "-"): file.parent for file in files}
    return dict(sorted(here.items()))


def default() -> str:
    """Return the name of the default parser here. If `en` is not installed, a warning says once which parser it is."""
    name = next((name for name in DEFAULTS if name in places()), usual := DEFAULTS[0])
    if name != usual:
        warn_once(f"the default parser is {name} here: {usual} is not installed. To get it: {WHEEL.format(usual)}")
    return name


@checked
def find(name: str | Path, **hub) -> Path:
    """Return the folder of a parser: a folder, a shipped parser's name, or a repository on the hub ('hf:owner/name').

    hub: options of `huggingface_hub.snapshot_download`, such as revision. Raises ModelError if there is no parser, if it
    cannot be downloaded, or if a shipped or downloaded one has no card with a licence.
    """
    if str(name) and isdir(name):  # False, too, for a text that cannot be a path
        return Path(name)
    if str(name).startswith(HUB):
        import huggingface_hub

        try:
            repository = str(name).removeprefix(HUB)
            place = checked(huggingface_hub.snapshot_download)(repository, allow_patterns=HUB_FILES, **hub)
        except ParameterError:
            raise
        except Exception as error:
            problem = f"cannot be downloaded ({type(error).__name__}: {str(error).partition(chr(10))[0][:120]})"
            remedy = "Check the name and the network (`hf auth login` for your own repositories), or use a folder."
            raise ModelError(problem, where=str(name), remedy=remedy) from None
        return read_card(Path(place)).folder
    if hub:
        problem = f"{' and '.join(hub)} cannot be given: the parser is not on the hub"
        raise ParameterError(problem, where=str(name), remedy=f"Leave them out, or name the parser {HUB}owner/name.")
    here = places()
    wanted = default() if str(name) == "default" else str(name)
    if wanted in here:
        return read_card(here[wanted]).folder
    near = did_you_mean(LANGUAGES.get(str(name).lower(), str(name)), ["default", *here])
    advice = f"Give a folder of `lalkit train`, hf:owner/name, or one of these names: {', '.join(here) or 'none'}."
    remedy = f"{near}{advice} To get another parser of lalkit: {WHEEL.format('NAME')}"
    raise ModelError("no parser here, and none is shipped under this name", where=str(name), remedy=remedy)


def read_card(folder: Path) -> Card:
    """Read a parser's card. Raises ModelError if card.json is missing or damaged, or names no licence.

    A parser without a licence must not be passed on.
    """
    remedy = "Get the folder again, or write its card with tools/ship.py."
    return Card(folder, read_json(folder / "card.json", remedy, ModelError, form=Licence))


def read_profile(folder: Path) -> dict | None:
    """Return profile.json, which counts the labels that each label head led in a corpus; None if there is none.

    Raises ModelError if it is damaged.
    """
    file, remedy = folder / "profile.json", "Get it again, or delete it."
    if not file.exists():
        return None
    profile = read_json(file, remedy, ModelError, form=Profile)
    if not profile["led"] or {len(counts) for counts in (*profile["led"], profile["all"])} != {len(profile["labels"])}:
        raise ModelError("is damaged: it has not one count for every label", where=str(file), remedy=remedy)
    return profile


def sources(treebank: str) -> list[str]:
    """Return the names of the treebanks of a mixture, without layers, genres and weights."""
    return [re.split("[:*/]", part)[0] for part in treebank.split("+")]


def common_words(info: dict) -> set[str]:
    """Return the commonest words of a parser's training part, or of English for an English treebank; none if not known."""
    english = not ENGLISH.isdisjoint(sources(info.get("treebank", "")))
    return set(info.get("common") or COMMON * english)
