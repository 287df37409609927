"""All runs under all controls: one tidy table, and what of it is more than chance.

Folders -> runs with the name of their system: NAME=FOLDER, FOLDER (named by its config), or a sweep's folder, whole.

What runs said under their controls, a file each: a comparison that was interrupted, or gets another run, goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.api import Parser
from lalkit.config import Config, from_dict
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.provenance import code_hash
from lalkit.evaluation.statistics import f1_test, holm, paired_test
from lalkit.files import write_json
from lalkit.interpret.controls import TESTED
from lalkit.reproduce.comparison_measures import TRAINED, Row, measure, usual_labels
from lalkit.reproduce.sweep_table import read_sweep
from lalkit.training.checkpoint import fingerprint, read_content
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence


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


Measured = tuple[list[Row], dict[str, pd.DataFrame]]  # as `measure` returns; of the tables what tests count
COUNTED = list(dict.fromkeys(column for counts in TESTED.values() for column in counts))


class Kept:
    """Measurements of the same sentences with the same settings, in a folder; None keeps nothing.

    Found again by a hash of all they follow from: the parser, the sentences, the settings and lalkit's code.
    """

    def __init__(
        self, folder: str | Path | None, gold: Sequence[Sentence], train: Sequence[Sentence], settings: Sequence
    ):
        self.folder = None if folder is None else Path(folder)
        self.common = _hash([[repr(s) for s in gold], [repr(s) for s in train], list(settings), code_hash()])

    def path(self, parser: str | Path) -> Path | None:
        return None if self.folder is None else self.folder / f"{_hash([fingerprint(parser), self.common])[:16]}.json"

    def find(self, parser: str | Path) -> Measured | None:
        """None where nothing was kept; what was damaged is measured anew."""
        path = self.path(parser)
        if path is None:
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            tables = {name: pd.DataFrame(counts) for name, counts in content["tables"].items()}
            return [tuple(row) for row in content["rows"]], tables
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def keep(self, parser: str | Path, measured: Measured) -> None:
        path = self.path(parser)
        if path is not None:
            rows, tables = measured
            counts = {name: table[COUNTED].fillna(0).astype(int).to_dict("list") for name, table in tables.items()}
            write_json(path, {"rows": [(*row[:3], float(row[3])) for row in rows], "tables": counts})


def _hash(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


MEANS = 200  # training sentences over which means are taken
COLUMNS = ("system", "seed", "what", "label", "measure", "value")


@dataclass(frozen=True)
class Compared:
    """table: `COLUMNS`, a number a row; tests: family, system, what (control, or the other system), measure, seeds, difference
    (points, system as trained less what), p (randomisation over sentences, counts added up over seeds), p_holm (within the
    family), seeds_difference, seeds_p (t-test over seeds; missing for one)."""

    table: pd.DataFrame
    tests: pd.DataFrame


def compare_heads(
    runs: Sequence[HeadsRun],
    treebank: str,
    split: str = "test",
    *,
    sentences: int = 0,
    labels: Sequence[str] | None = None,
    probed: int = 40,
    rounds: int = 20,
    keep: str | Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Compared:
    """Every run on (so many, 0: all) sentences of a split, evenly spread. labels: those whose heads are taken out (None: the most
    frequent). The first run's system is what the others are tested against. keep: a folder for what each run says, so that none
    is measured twice.

    Raises LalkitError, naming the run, where its heads cannot be told apart; and for labels that the sentences do not have.
    """
    gold = subset(load(treebank, split).sentences, sentences)
    train = subset(load(treebank, "train").sentences, MEANS)
    labels = list(labels) if labels else usual_labels(gold)
    there = {c.label for s in gold for c in s.constituents}
    if absent := [label for label in labels if label not in there]:
        raise LalkitError(
            f"no constituent of these sentences is {absent[0]!r}", where=f"{treebank} {split}",
            remedy=f"Labels: {', '.join(usual_labels(gold, None))}.",
        )  # fmt: skip
    rows, counts = [], {}
    kept = Kept(keep, gold, train, (labels, probed, rounds))
    for run in runs:
        measured = kept.find(run.folder)
        say(f"{run.system}, seed {run.seed} ..." + (" measured before" if measured else ""))
        if measured is None:
            try:
                measured = measure(Parser.load(run.folder), gold, train, labels, probed, rounds)
            except LalkitError as error:
                raise error.at(str(run.folder)) from None
            kept.keep(run.folder, measured)
        found, tables = measured
        rows += [(run.system, run.seed, *row) for row in found]
        counts[run.system, run.seed] = tables
    return Compared(pd.DataFrame(rows, columns=list(COLUMNS)), tests(counts))


def tests(counts: dict[tuple[str, int], dict[str, pd.DataFrame]]) -> pd.DataFrame:
    """counts: (system, seed) -> control -> the table of its sentences."""
    systems = list(dict.fromkeys(system for system, _ in counts))
    seeds = {system: [seed for name, seed in counts if name == system] for system in systems}
    controls, against = [], []
    for system in systems:
        own = {seed: counts[system, seed] for seed in seeds[system]}
        names = list(dict.fromkeys(name for tables in own.values() for name in tables if name != TRAINED))
        for name, score in product(names, TESTED):
            pairs = [(tables[TRAINED], tables[name]) for tables in own.values()]
            controls.append({"family": "control", "system": system, "what": name, **_test(pairs, score)})
    for other, score in product(systems[1:], TESTED):
        common = [seed for seed in seeds[systems[0]] if seed in seeds[other]]
        if common:
            pairs = [(counts[systems[0], seed][TRAINED], counts[other, seed][TRAINED]) for seed in common]
            against.append({"family": "system", "system": systems[0], "what": other, **_test(pairs, score)})
    tables = [pd.DataFrame(family) for family in (controls, against) if family]
    if not tables:
        return pd.DataFrame()
    return pd.concat([table.assign(p_holm=holm(table["p"])) for table in tables], ignore_index=True)


def _test(pairs: list[tuple[pd.DataFrame, pd.DataFrame]], score: str) -> dict:
    sides = [[pair[side][TESTED[score]].fillna(0).to_numpy(float) for pair in pairs] for side in (0, 1)]
    found = f1_test(*(np.sum(side, axis=0) for side in sides))
    each = [[_ratio(counts) for counts in side] for side in sides]
    over = paired_test(*each, rounds=1) if len(pairs) > 1 else None
    return {
        "measure": score, "seeds": len(pairs), "difference": found.difference, "p": found.p,
        "seeds_difference": over.difference if over else np.nan, "seeds_p": over.t_p if over else np.nan,
    }  # fmt: skip


def _ratio(counts: np.ndarray) -> float:
    matched, gold, predicted = counts.sum(0)
    return 200 * matched / max(gold + predicted, 1)
