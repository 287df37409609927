"""The parts that all studies share: padded batches, the training loop, folders of runs, and tables that are measured once.

A study loads data, trains one run for every kind of model and seed, and measures each run. A finished training or table is
read and not repeated. Each run has a folder with its weights, its config and its tables: FOLDER/DATA/KIND-SEED.
"""

from __future__ import annotations

import copy
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, product
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lalkit import __version__
from lalkit.chart.machine import progress
from lalkit.config import from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.evaluation.provenance import json_hash, parts_hash
from lalkit.files import check_form, write_json, write_text
from lalkit.network.encoder import HookedModule, fill
from lalkit.studies.texts import Text, Texts
from lalkit.training import checkpoint

logger = logging.getLogger(__name__)

PADDING, UNKNOWN = 0, 1  # ids that every vocabulary has
WINDOW = 50  # batches in which texts are sorted by length, so that there is little padding


# ---------------------------------------------------------------- words and batches


def frequent(texts: Iterable[Sequence[str]], least: int) -> dict[str, int]:
    """Return the words that occur at least `least` times in the texts, each with its number of occurrences."""
    return {word: n for word, n in Counter(chain(*texts)).items() if n >= least}


def in_order(items: Sequence, size: int) -> Iterator[Sequence]:
    """Yield the items in groups of `size`, in their order."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


# ---------------------------------------------------------------- training


class Trained(HookedModule):
    """Base of the models that studies train.

    A subclass sets `form`, the format of its files, and the classes Config and Vocabulary. It has `collate` (texts -> a batch),
    `loss` (of a batch), `score` (texts -> a number from 0 to 1, by which the best epoch is chosen on dev) and `optimizer`.
    """

    form: str
    Config: Any
    Vocabulary: Any

    def __init__(self, config: Any, vocabulary: Any):
        super().__init__()
        self.config, self.vocabulary = config, vocabulary

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return the model of a run. Raises ModelError unless the folder holds a complete model of this kind."""
        content, tensors = read_run(folder, cls.form)
        config = from_dict(cls.Config, content.get("config"), f"{folder}/model.json: config")
        try:
            check_form(content.get("vocabulary"), cls.Vocabulary)
            vocabulary = cls.Vocabulary(**{name: tuple(words) for name, words in content["vocabulary"].items()})
            if any(len(set(words)) < len(words) for words in asdict(vocabulary).values()):
                raise ValueError("a word is there twice")
        except (TypeError, ValueError) as error:
            problem, remedy = f"has no whole vocabulary: {error}", "Train it again."
            raise ModelError(problem, where=f"{folder}/model.json", remedy=remedy) from None
        return fill(cls(config, vocabulary), tensors, str(folder), "Train it again.").eval()


def train(kind: type[Trained], config: Any, data: Texts, out: str | Path) -> dict:
    """Train a model epoch by epoch and leave the best one in `out`: model.json, and its weights.

    A finished run is not repeated. A run that was stopped begins again: it takes minutes.

    config: it has seed, epochs and batch; perhaps clip (the largest norm of the gradients) and stop_at (training ends when the
    score reaches this).

    Returns: the state of the run: epoch, best, and history (epoch, loss, dev).

    Raises: ModelError if `out` holds another run, or if a loss is not a number.
    """
    # What is learned does not depend on where the texts are kept.
    known = parts_hash((part, [replace(text, id="") for text in getattr(data, part)]) for part in ("train", "dev"))
    task = {"format": kind.form, "data": data.name, "data_sha256": known, "config": to_dict(config)}
    if (Path(out) / "model.json").exists():
        content, _ = read_run(out, kind.form)
        if "state" not in content or any(content.get(key) != task[key] for key in ("config", "data_sha256")):
            problem = "is a run of other settings or data, or of an older lalkit"
            raise ModelError(problem, where=str(out), remedy="Give another folder, or move this one away.")
        return content["state"]
    torch.manual_seed(config.seed)
    model: Any = kind(config, kind.Vocabulary.build(data.train, config))
    optimizer = model.optimizer()
    clip, stop_at = (getattr(config, name, math.inf) for name in ("clip", "stop_at"))
    state: dict[str, Any] = {"epoch": 0, "best": -1.0, "history": []}
    weights: dict[str, Tensor] = {}
    while state["epoch"] < config.epochs and state["best"] < stop_at:
        model.train()
        torch.manual_seed((config.seed << 20) + state["epoch"])
        losses = []
        for group in shuffled(data.train, config.batch, config.seed, state["epoch"]):
            optimizer.zero_grad(set_to_none=True)
            loss = model.loss(model.collate(group))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            losses.append(float(loss.detach()))
        mean, state["epoch"] = sum(losses) / len(losses), state["epoch"] + 1
        if not mean < float("inf"):
            raise ModelError(f"the loss is {mean} in epoch {state['epoch']}", remedy="Lower the rate.")
        state["history"].append({"epoch": state["epoch"], "loss": mean, "dev": model.score(data.dev)})
        dev = state["history"][-1]["dev"]
        numbers = out, state["epoch"], config.epochs, mean, 100 * dev
        logger.info("%s: epoch %d/%d, loss %.3f, dev %.1f%%", *numbers)
        if dev > state["best"]:
            state["best"] = dev
            weights = {name: t.detach().clone() for name, t in model.state_dict().items()}
    content = {"lalkit": __version__, **task, "state": state, "vocabulary": asdict(model.vocabulary)}
    checkpoint.save_tensors(out, "model", "best", weights, content)
    return state


def shuffled(texts: Sequence[Text], size: int, seed: int, epoch: int) -> Iterator[list[Text]]:
    """Yield the batches of an epoch in a random order. Texts of similar length are together.

    The batches depend on the seed and on the number of the epoch alone.
    """
    rng = np.random.default_rng([seed, epoch])
    groups = []
    for window in in_order(rng.permutation(len(texts)).tolist(), size * WINDOW):
        groups += in_order(sorted(window, key=lambda i: len(texts[i].words)), size)
    for g in rng.permutation(len(groups)):
        yield [texts[i] for i in groups[g]]


# ---------------------------------------------------------------- runs and their tables


def read_run(folder: str | Path, form: str) -> tuple[dict, dict[str, Tensor]]:
    """Return (the content of model.json, the tensors). Raises ModelError unless the folder holds a complete run of the format."""
    content, tensors = checkpoint.load_tensors(folder, "model")
    if content.get("format") != form:
        remedy = "Give a folder that `lalkit.study` wrote, or move this one away and train again."
        raise ModelError(f"is no {form}", where=f"{folder}/model.json", remedy=remedy)
    return content, tensors


def exact(model: Any) -> Any:
    """Return a copy in float64 for probes. Padding then changes no number by more than 1e-12, and near-ties stay as they are."""
    return copy.deepcopy(model).double().eval()


def grid(kinds: Sequence[str], known: Iterable[str], seeds: Sequence[int]) -> Iterable[tuple[int, str]]:
    """Return the runs of a study, (seed, kind) of each, with a progress bar. Raises ModelError for an unknown kind."""
    if not set(kinds) <= set(known):
        raise ModelError(f"not all models are known: {', '.join(kinds)}", remedy=f"Choose from: {', '.join(known)}.")
    return progress(list(product(seeds, kinds)), desc="runs", unit="run")


def kept_tables(run: Path, task: list, measure: Callable[[], dict[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """Return the tables of a trained run. Measure them only if the run's folder does not have them yet.

    Args:
        run: The folder of the run. Its tables are in RUN/tables-KEY. The key is a hash of the model and of `task`.
        task: All settings and hashes of data that the tables depend on, as JSON values.
        measure: Computes the tables, by their names.
    """
    key = json_hash([checkpoint.fingerprint(run), *task])[:12]
    folder = run / f"tables-{key}"
    if not (folder / "complete.json").exists():
        logger.info("measuring %s", run)
        tables = measure()
        for name, table in tables.items():
            write_text(folder / f"{name}.csv", table.to_csv(index=False))
        write_json(folder / "complete.json", {"tables": list(tables)})
    names = json.loads((folder / "complete.json").read_text(encoding="utf-8"))["tables"]
    return {name: pd.read_csv(folder / f"{name}.csv") for name in names}
