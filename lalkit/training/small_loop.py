"""Training of the companions' small models, epoch by epoch: the best on dev is kept, a killed run goes on with the same bits.

What is random in an epoch depends on (seed, epoch) and nothing else, so that the state after one is weights, Adam's moments
and a few numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from lalkit import __version__
from lalkit.errors import ModelError
from lalkit.files import write_json
from lalkit.training.checkpoint import load_tensors, save_tensors

MOMENTS = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    out: str | Path,
    task: dict,
    *,
    epochs: int,
    one_epoch: Callable[[int], float],
    score: Callable[[], float],
    kept: dict,
    stop_at: float = float("inf"),
    last: bool = False,
    resume: bool = False,
    name: str = "",
    say: Callable[[str], None] = print,
) -> dict:
    """Leaves in `out` the best model by score: model.json, its weights, config.json, resume.json. Returns the run's state: epoch,
    best, seconds, history (epoch, loss, dev).

    task: format, and what must be equal for a run to go on: config, data (their name) and data_sha256 (of all that is trained on
    or chosen by: `lalkit.evaluation.provenance.parts_hash`); one_epoch: its number from 0 -> the mean loss; score: on dev, from 0 to 1;
    kept: what model.json needs besides. stop_at: a score that is enough; last: keep the last model, not the best. Raises
    ModelError where `out` holds another run, or a loss is no number.
    """
    out, task = Path(out), {"lalkit": __version__, **task}
    there = (out / "resume.json").exists()
    if there and not resume:
        raise ModelError("holds a run already", where=str(out), remedy="Add --resume, or give another --out.")
    state: dict = {"epoch": 0, "best": -1.0, "seconds": 0.0, "history": []}
    if there:
        state = _resume(out, task, model, optimizer)
    else:
        write_json(out / "config.json", task)
    while state["epoch"] < epochs and state["best"] < stop_at:
        begun = time.perf_counter()
        model.train()
        loss = one_epoch(state["epoch"])
        if not loss < float("inf"):
            raise ModelError(f"the loss is {loss} in epoch {state['epoch'] + 1}", remedy="Lower the rate.")
        found = score()
        state["epoch"] += 1
        state["seconds"] += time.perf_counter() - begun
        state["history"].append({"epoch": state["epoch"], "loss": loss, "dev": found})
        bar = "#" * (20 * state["epoch"] // epochs)
        say(
            f"{name}: epoch {state['epoch']}/{epochs} [{bar:20}] loss {loss:.3f}  dev {100 * found:.1f}%  "
            f"{state['seconds']:.0f} s"
        )
        tag = f"{state['epoch']:03d}"
        if last or found > state["best"]:
            state["best"] = max(found, state["best"])
            save_tensors(out, "model", tag, _tensors(model), {**task, "dev": found, "epoch": state["epoch"], **kept})
        moments = {f"adam.{k}.{n}": v for n, k, v in _moments(model, optimizer)}
        save_tensors(out, "resume", tag, {**_tensors(model), **moments}, {**task, "state": state})
    return state


def read_fitted(folder: str | Path, format: str, what: str, remedy: str) -> tuple[dict, dict]:
    """(content of model.json, tensors). Raises ModelError unless it is a whole model of this format; what: its kind in a word."""
    return _read(folder, "model", format, what, remedy)


def fill(model: nn.Module, tensors: dict, folder: str | Path) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise ModelError("the weights do not fit the config", where=str(folder), remedy="Train it again.") from None


def _read(folder: str | Path, name: str, format: str, what: str, remedy: str) -> tuple[dict, dict]:
    try:
        content, tensors = load_tensors(folder, name)
    except ModelError as error:
        raise ModelError(f"no {what} here, or not a whole one", where=error.where, remedy=remedy) from None
    if content.get("format") != format:
        raise ModelError(f"is no {format} but {content.get('format')!r}", where=f"{folder}/{name}.json", remedy=remedy)
    return content, tensors


def _resume(out: Path, task: dict, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    content, tensors = _read(out, "resume", task["format"], "run", "Give another --out.")
    if content.get("config") != task["config"]:
        raise ModelError("was started with another config", where=str(out), remedy="Give another --out.")
    if any(content.get(key) != task[key] for key in ("data", "data_sha256")):
        raise ModelError(
            f"is of other data than this {task['data']!r}, or was trained before lalkit took note of what data are",
            where=str(out),
            remedy="Give another --out, or move that folder away to train it again.",
        )
    fill(model, {k: v for k, v in tensors.items() if not k.startswith("adam.")}, out)
    for name, p in model.named_parameters():
        kept = {k: tensors[f"adam.{k}.{name}"] for k in MOMENTS if f"adam.{k}.{name}" in tensors}
        if kept:
            optimizer.state[p] = kept
    return content["state"]


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer):
    for name, p in model.named_parameters():
        for key, value in optimizer.state.get(p, {}).items():
            yield name, key, value.detach().contiguous()


def _tensors(model: nn.Module) -> dict:
    return {k: v.detach().contiguous() for k, v in model.state_dict().items()}
