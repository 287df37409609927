"""Trained parsers by name: those shipped in data/models, a folder, or a repository on the Hugging Face hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lalkit.errors import ModelError
from lalkit.treebank.corpora import repository

# One parser serves reading and interpretation: without feed-forward and residual dropout nothing was lost
# (data/models/README.md), and every label head's part in a score can be told.
ALIASES = {"en-craft-x": "en-craft", "en-news-x": "en-news"}
HUB = "hf:"


@dataclass(frozen=True)
class Card:
    """What is known of a shipped parser: its folder, and card.json in it."""

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
    return repository() / "data" / "models"


def names() -> list[str]:
    """Those shipped, without their other names."""
    return sorted(file.parent.name for file in folder().glob("*/model.json"))


def find(name: str | Path) -> Path:
    """The folder of a parser: itself a folder, or shipped under this name, or downloaded from the hub ('hf:owner/name').

    Raises ModelError where there is none, and where a shipped or downloaded one has no card with a licence.
    """
    if str(name) and Path(name).is_dir():
        return Path(name)
    if str(name).startswith(HUB):
        return read_card(_download(str(name).removeprefix(HUB))).folder
    found = folder() / ALIASES.get(str(name), str(name))
    if found.parent == folder() and found.is_dir():
        return read_card(found).folder
    raise ModelError(
        "no parser here, and none is shipped under this name",
        where=str(name),
        remedy=f"Give a folder written by `lalkit train`, or one of {', '.join([*names(), *ALIASES])}.",
    )


def read_card(folder: Path) -> Card:
    """Raises ModelError where card.json is missing, damaged, or names no licence: such a parser is not to be passed on."""
    file = folder / "card.json"
    remedy = "Get the folder again, or write its card with `lalkit models ship`."
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        licence = facts.get("licence")
    except OSError as error:
        raise ModelError(f"cannot be read ({error.strerror})", where=str(file), remedy=remedy) from None
    except (ValueError, AttributeError):
        raise ModelError("is damaged or not lalkit's", where=str(file), remedy=remedy) from None
    if not licence:
        raise ModelError("names no licence", where=str(file), remedy=remedy)
    return Card(folder, facts)


def read_profile(folder: Path) -> dict | None:
    """profile.json, if there is one: which labels each label head led in a corpus. Raises ModelError where it is damaged."""
    file = folder / "profile.json"
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {key: found[key] for key in ("corpus", "norm", "spans", "labels", "led", "all")}
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError("is damaged or not lalkit's", where=str(file), remedy="Get it again, or delete it.") from None


def _download(repository: str) -> Path:
    """What a parser consists of, from the hub, or from its cache."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, allow_patterns=["*.json", "*.safetensors", "README.md"]))
    except Exception as error:
        raise ModelError(
            f"cannot be downloaded ({type(error).__name__}: {str(error).splitlines()[0][:120]})",
            where=f"{HUB}{repository}",
            remedy="Check the name and the network, or give a folder.",
        ) from None
