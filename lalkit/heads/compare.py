"""All runs under all controls: one tidy table, and what of it is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.api import Parser
from lalkit.errors import LalkitError
from lalkit.heads.kept import Kept
from lalkit.heads.measure import TRAINED, measure, usual_labels
from lalkit.heads.runs import HeadsRun
from lalkit.interpret.controls import TESTED
from lalkit.probes.statistics import f1_test, holm, paired_test
from lalkit.treebank.corpora import load
from lalkit.treebank.trainable import subset

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
