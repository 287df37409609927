"""The parts that both companion studies share: padding, batches, the training loop, run folders, kept tables, expectations.

A study has the same steps in `classifiers` and in `summarizers`. It loads data, trains one run for every kind of model and
seed (`*_training`), measures each run once (`kept_tables`), and compares the results with what was expected (`judge`). The study
supplies the data, the model and the measures. Everything else is here.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TypeVar

import pandas as pd
import torch
from torch import Tensor, nn

from lalkit import __version__
from lalkit.chart.machine import progress
from lalkit.errors import CorpusError, ModelError
from lalkit.files import parse_json, write_json, write_text
from lalkit.training import checkpoint
from lalkit.treebank.brackets import read_text

logger = logging.getLogger(__name__)
Model = TypeVar("Model", bound=nn.Module)

PADDING, UNKNOWN = 0, 1  # ids that every vocabulary has


# ---------------------------------------------------------------- words and batches


def frequent(texts: Iterable[Sequence[str]], least: int) -> dict[str, int]:
    """Return the words that occur at least `least` times in the texts, each with its number of occurrences."""
    counts = Counter(word for words in texts for word in words)
    return {word: n for word, n in counts.items() if n >= least}


def pad(
    rows: Sequence[Sequence[int]], length: int | None = None, value: int = PADDING, device: torch.device | None = None
) -> Tensor:
    """Write rows of numbers into one tensor [B, T] and fill the rest with `value`.

    Args:
        rows: B rows of any length.
        length: T. What is longer is cut off. None: the length of the longest row.
        value: The number that stands where a row has none.
        device: Where the tensor is.
    """
    length = max(map(len, rows)) if length is None else length
    padded = torch.full((len(rows), length), value, device=device)
    for i, row in enumerate(rows):
        part = row[:length]
        padded[i, : len(part)] = torch.tensor(part, dtype=torch.long, device=device)
    return padded


def in_order(items: Sequence, size: int) -> Iterator[Sequence]:
    """Yield the items in groups of `size`, in their order."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def text_lines(path: str | Path) -> list[str]:
    """Return the lines of a file, the last of which may be empty. Raises TreebankError if it cannot be read, or is not UTF-8."""
    # Only \n ends a line. `splitlines` also cuts inside of texts, for example at U+2028.
    return [line.removesuffix("\r") for line in read_text(path).split("\n")]


def json_lines(path: Path) -> Iterator[tuple[str, dict]]:
    """Yield (file and line, object) for every line of a .jsonl file.

    Raises CorpusError for a line that is not a JSON object, and TreebankError as `text_lines` does.
    """
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            where = f"{path}, line {number}"
            row = None
            with suppress(ValueError):
                row = parse_json(line)
            if not isinstance(row, dict):
                raise CorpusError("is no JSON object", where=where, remedy="Write one object on each line.")
            yield where, row


# ---------------------------------------------------------------- training


def one_epoch(
    optimizer: torch.optim.Optimizer,
    groups: Iterable[Sequence],
    loss_of: Callable[[Sequence], Tensor],
    clip: tuple[Sequence[nn.Parameter], float] | None = None,
) -> float:
    """Take one optimizer step for each group of examples, and return the mean loss. clip: (parameters, largest norm)."""
    total, count = 0.0, 0
    for group in groups:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(group)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(*clip)
        optimizer.step()
        total, count = total + float(loss.detach()), count + 1
    return total / count


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    out: str | Path,
    task: dict,
    *,
    epochs: int,
    run_epoch: Callable[[int], float],
    score: Callable[[], float],
    kept: dict,
    stop_at: float = float("inf"),
    last: bool = False,
    resume: bool = False,
    name: str = "",
) -> dict:
    """Train epoch by epoch and leave the best model in `out`: model.json, its weights, config.json and resume.json.

    A run that was stopped goes on with the same bits, because everything random in an epoch depends on its seed and number
    alone. So weights, Adam's moments and a few numbers are all that must be saved after an epoch.

    Args:
        task: The format, and what must be equal for a run to go on: config, data (the name), data_sha256 (a hash of all
            examples that the run learns from or is chosen by, `lalkit.evaluation.provenance.parts_hash`), and of a pruning
            summarizer_sha256 (a hash of the weights that it begins with).
        run_epoch: Trains the epoch of this number (the first is 0) and returns the mean loss.
        score: Returns the score on dev, from 0 to 1.
        kept: What model.json needs besides.
        stop_at: Training ends when the score reaches this.
        last: Keep the last model instead of the best one.
        resume: Go on with the run in `out`, if there is one.
        name: The name of the run in messages.

    Returns: the state of the run: epoch, best, seconds, and history (epoch, loss, dev).

    Raises: ModelError if `out` holds another run, or if a loss is not a number.
    """
    out, task = Path(out), {"lalkit": __version__, **task}
    exists = (out / "resume.json").exists()
    if exists and not resume:
        raise ModelError("holds a run already", where=str(out), remedy="Add --resume, or give another --out.")
    if exists:
        state = _resume(out, task, model, optimizer)
    else:
        state = {"epoch": 0, "best": -1.0, "seconds": 0.0, "history": []}
        write_json(out / "config.json", task)
    while state["epoch"] < epochs and state["best"] < stop_at:
        start = time.perf_counter()
        model.train()
        loss = run_epoch(state["epoch"])
        if not loss < float("inf"):
            raise ModelError(f"the loss is {loss} in epoch {state['epoch'] + 1}", remedy="Lower the rate.")
        dev = score()
        state["epoch"] += 1
        state["seconds"] += time.perf_counter() - start
        state["history"].append({"epoch": state["epoch"], "loss": loss, "dev": dev})
        numbers = state["epoch"], epochs, loss, 100 * dev, state["seconds"]
        logger.info("%s: epoch %d/%d, loss %.3f, dev %.1f%%, %.0f s", name, *numbers)
        tag = f"{state['epoch']:03d}"
        if last or dev > state["best"]:
            state["best"] = max(dev, state["best"])
            chosen = {**task, "dev": dev, "epoch": state["epoch"], **kept}
            checkpoint.save_tensors(out, "model", tag, _tensors(model), chosen)
        tensors = _tensors(model) | checkpoint.adam_tensors(model, optimizer)
        checkpoint.save_tensors(out, "resume", tag, tensors, {**task, "state": state})
    return state


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}


def _resume(out: Path, task: dict, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    """Fill the model and the optimizer from resume.json, and return the state of the run."""
    content, tensors = read_run(out, task["format"], "run", "Give another --out.", "resume")
    if content.get("config") != task["config"]:
        raise ModelError("was started with another config", where=str(out), remedy="Give another --out.")
    data, remedy = f"data than this {task['data']!r}", "Give another --out, or move that folder away to train it again."
    for key, what in (("data", data), ("data_sha256", data), ("summarizer_sha256", "weights than this summarizer's")):
        if content.get(key) != task.get(key):
            problem = f"is of other {what}, or of a lalkit that did not take note of them"
            raise ModelError(problem, where=str(out), remedy=remedy)
    fill(model, {name: tensor for name, tensor in tensors.items() if not name.startswith("adam.")}, out)
    checkpoint.restore_adam(model, optimizer, tensors, f"{out}/{content['weights']}")
    return content["state"]


# ---------------------------------------------------------------- run folders


def run_folder(folder: str | Path, data: str, kind: str, seed: int) -> Path:
    """Return where a study keeps a run: FOLDER/DATA/KIND-SEED."""
    return Path(folder) / data / f"{kind}-{seed}"


def read_run(
    folder: str | Path, format: str, what: str, remedy: str, name: str = "model"
) -> tuple[dict, dict[str, Tensor]]:
    """Return (the content of name.json, the tensors). Raises ModelError unless the folder holds a whole `what` of this format."""
    try:
        content, tensors = checkpoint.load_tensors(folder, name)
    except ModelError as error:
        raise ModelError(f"no {what} here, or not a whole one", where=error.where, remedy=remedy) from None
    if content.get("format") != format:
        problem = f"has the format {content.get('format')!r}, not {format}"
        raise ModelError(problem, where=f"{folder}/{name}.json", remedy=remedy)
    return content, tensors


def fill(model: Model, tensors: dict[str, Tensor], folder: str | Path) -> Model:
    """Load the weights of a run into a model, and return it ready for evaluation.

    Raises ModelError if they do not fit, or if one is not a finite number.
    """
    checkpoint.check_numbers(tensors, float("inf"), str(folder), "Train it again.")
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise ModelError("the weights do not fit the config", where=str(folder), remedy="Train it again.") from None
    return model.eval()


def exact(model: Model) -> Model:
    """Return a copy in float64 for probes. Padding then changes no number by more than 1e-12, and near-ties stay as they are."""
    return copy.deepcopy(model).double().eval()


# ---------------------------------------------------------------- studies


def grid(what: str, kinds: Sequence[str], known: Iterable[str], seeds: Sequence[int]) -> Iterable[tuple[int, str]]:
    """Return the runs of a study, (seed, kind) of each, with a progress bar. Raises ModelError for a kind that is not known."""
    for kind in kinds:
        if kind not in known:
            raise ModelError(f"there is no {what} {kind!r}", remedy=f"Choose from: {', '.join(known)}.")
    return progress(list(product(seeds, kinds)), desc=f"{what}s", unit="run")


def kept_tables(
    run: Path, names: Sequence[str], task: list, measure: Callable[[], dict[str, pd.DataFrame]]
) -> dict[str, pd.DataFrame]:
    """Return the tables of a trained run. Measure them only if the run's folder does not have them yet.

    Args:
        run: The folder of the run. A table is RUN/NAME-KEY.csv. The key is a hash of the model and of `task`.
        names: The names of the tables.
        task: All settings and hashes of data that the tables depend on, as JSON values.
        measure: Computes the tables, by their names.
    """
    key = hashlib.sha256(json.dumps([checkpoint.fingerprint(run), *task]).encode()).hexdigest()[:12]
    files = {name: run / f"{name}-{key}.csv" for name in names}
    if not all(file.exists() for file in files.values()):
        logger.info("measuring %s", run)
        tables = measure()
        for name, file in files.items():
            write_text(file, tables[name].to_csv(index=False))
    return {name: pd.read_csv(file) for name, file in files.items()}


def judge(lines: Sequence[tuple], *keys: str) -> pd.DataFrame:
    """Return a study's expectations as a table: the keys, what, is (">=" or "<="), wanted, found, and holds (True or False)."""
    table = pd.DataFrame(lines, columns=[*keys, "what", "is", "wanted", "found"])
    above, below = table["found"] >= table["wanted"], table["found"] <= table["wanted"]
    return table.assign(holds=above.where(table["is"] == ">=", below))
