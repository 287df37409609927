"""Folders -> runs with the name of their system: NAME=FOLDER, FOLDER (named by its config), or a sweep's folder, whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lalkit.checkpoint import read_content
from lalkit.config import Config
from lalkit.errors import ParameterError
from lalkit.settings import from_dict
from lalkit.sweep.table import read_sweep


@dataclass(frozen=True)
class HeadsRun:
    """A trained parser."""

    system: str
    seed: int
    folder: Path


def read_runs(places: Sequence[str]) -> list[HeadsRun]:
    """Raises ParameterError where two runs are of one system and seed or there is none, ModelError where there is no parser."""
    found: list[HeadsRun] = []
    for place in places:
        name, equals, folder = place.rpartition("=")
        if (Path(folder) / "sweep.json").exists():
            sweep = read_sweep(folder)
            for run in sweep.runs:
                cell = ", ".join(run["cell"].values())
                found.append(_run(f"{name}{': ' * bool(equals)}{cell}", sweep.folder / run["folder"] / "parser"))
        else:
            found.append(_run(name, Path(folder)))
    if not found:
        raise ParameterError("no run to compare", remedy="Give folders that `lalkit train` or `lalkit sweep` wrote.")
    for i, run in enumerate(found):
        for other in found[:i]:
            if (other.system, other.seed) == (run.system, run.seed):
                raise ParameterError(
                    f"two runs are {run.system!r}, seed {run.seed}: {other.folder} and {run.folder}",
                    remedy="Name them apart: NAME=FOLDER.",
                )
    return found


def _run(name: str, folder: Path) -> HeadsRun:
    config = from_dict(Config, read_content(folder, "model")["config"], f"{folder}/model.json: config")
    return HeadsRun(name or system_of(config), config.train.seed, folder)


def system_of(config: Config) -> str:
    """What a parser is called that was given no name."""
    inside = config.model.span_attention
    if inside:
        attention = {"learned": "", "none": ", no attention"}.get(inside.attention, f", {inside.attention} attention")
        return f"span {inside.boundary}{attention}"
    layers = f"{config.model.layers} self-attention layer" + "s" * (config.model.layers > 1)
    return "paper's layer" if config.model.label_attention else f"none, {layers}"
