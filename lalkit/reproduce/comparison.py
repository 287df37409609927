"""Compare runs under all controls: one table with a number a row, and tests of which differences are more than chance.

`read_runs` finds the runs. `compare_heads` measures each of them. It keeps what it measured, one file for each run, so that an
interrupted comparison, or one with another run, goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.api import Parser
from lalkit.config import Config, read_saved
from lalkit.errors import CorpusError, LalkitError, ParameterError
from lalkit.evaluation.provenance import code_hash, json_hash
from lalkit.evaluation.statistics import COUNTS, f1_of_sums, holm, paired_test, score_test
from lalkit.files import find_json, write_json
from lalkit.interpret import layer_of
from lalkit.interpret.controls import TESTED
from lalkit.reproduce.comparison_measures import TRAINED, Row, measure, usual_labels
from lalkit.reproduce.report import read_sweep
from lalkit.training.checkpoint import fingerprint, read_content
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

MEANS = 200  # training sentences over which means are taken
COLUMNS = ("system", "seed", "what", "label", "measure", "value")
COUNTED = list(dict.fromkeys(column for score in TESTED for column in COUNTS[score]))


@dataclass(frozen=True)
class HeadsRun:
    """A trained parser, with the name of its system."""

    system: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Compared:
    """Hold the result of a comparison.

    table: the `COLUMNS`, a number in each row. tests: family, system, what (a control, or the other system), measure, seeds,
    difference (in points, the system as trained less `what`), p (randomisation test over sentences, whose counts are added up
    over seeds), p_holm (corrected within the family), seeds_difference, seeds_p (t-test over seeds; missing for one seed).
    """

    table: pd.DataFrame
    tests: pd.DataFrame


def read_runs(places: Sequence[str]) -> list[HeadsRun]:
    """Find runs. A place is NAME=FOLDER, FOLDER (named by its config), or the folder of a sweep, which gives all its runs.

    Raises ParameterError if there is no run, or if two runs have the same system and seed; ModelError for a folder without a
    parser.
    """
    runs: list[HeadsRun] = []
    for place in places:
        name, folder = name_and_place(place)
        if (Path(folder) / "sweep.json").exists():
            sweep = read_sweep(folder)
            for row in sweep.runs.to_dict("records"):
                cell = ", ".join(row[axis] for axis in sweep.axes)
                runs.append(_run(f"{name}{': ' * bool(name)}{cell}", Path(folder) / "runs" / row["run"] / "parser"))
        else:
            runs.append(_run(name, Path(folder)))
    if not runs:
        raise ParameterError("no run to compare", remedy="Give folders that `lalkit train` or `lalkit sweep` wrote.")
    for run, other in combinations(runs, 2):
        if (other.system, other.seed) == (run.system, run.seed):
            problem = f"two runs are {run.system!r}, seed {run.seed}: {run.folder} and {other.folder}"
            remedy = "Name them apart: NAME=FOLDER."
            raise ParameterError(problem, remedy=remedy)
    return runs


def name_and_place(text: str) -> tuple[str, str]:
    """Split NAME=FOLDER. The name is empty if there is none, as in the path of a file or folder that has a = in its own name."""
    name, _, place = ("", "", text) if Path(text).exists() else text.rpartition("=")
    return name, place


def with_constituents(treebank: str, split: str, size: int) -> list[Sentence]:
    """Return `size` sentences from all over a split; 0 means all. Raises CorpusError if one has no constituents."""
    sentences = subset(load(treebank, split).sentences, size)
    if any(sentence.constituents is None for sentence in sentences):
        remedy = "Give a treebank with constituents, such as sample or ptb-sample."
        raise CorpusError("there are sentences without constituents", where=f"{treebank} {split}", remedy=remedy)
    return sentences


def _run(name: str, folder: Path) -> HeadsRun:
    config = read_saved(read_content(folder, "model")["config"], f"{folder}/model.json: config")
    return HeadsRun(name or system_of(config), config.train.seed, folder)


def system_of(config: Config) -> str:
    """Return the name of a parser that the user did not name."""
    if layer := layer_of(config.model):
        return layer.system(config.model)
    return f"none, {config.model.layers} self-attention layer{'s' * (config.model.layers > 1)}"


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
) -> Compared:
    """Measure every run on a split of a treebank, and test the differences.

    Args: runs: the first run's system is the one that the others are tested against. sentences: the number of sentences, spread
        evenly over the split; 0 means all. labels: those whose heads are taken out; None: the most frequent. probed: the number
        of sentences for the probes. rounds: permutations of each attention. keep: a folder for what was measured of each run.
    Raises: LalkitError, with the run's folder, if its heads are mixed; for a label that the sentences do not have; and for
        sentences without constituents.
    """
    gold = with_constituents(treebank, split, sentences)
    train = subset(load(treebank, "train").sentences, MEANS)
    labels = list(labels) if labels else usual_labels(gold)
    there = {c.label for s in gold for c in s.constituents}
    if absent := [label for label in labels if label not in there]:
        raise LalkitError(
            f"no constituent of these sentences is {absent[0]!r}", where=f"{treebank} {split}",
            remedy=f"Labels: {', '.join(usual_labels(gold, None))}.",
        )  # fmt: skip
    rows, counts = [], {}
    kept = None if keep is None else Kept(keep, gold, train, (labels, probed, rounds))
    for run in runs:
        measured = kept.find(run.folder) if kept else None
        logger.info("%s, seed %s ...%s", run.system, run.seed, " measured before" if measured else "")
        if measured is None:
            try:
                measured = measure(Parser.load(run.folder), gold, train, labels, probed, rounds)
            except LalkitError as error:
                raise error.at(str(run.folder)) from None
            if kept:
                kept.keep(run.folder, measured)
        rows += [(run.system, run.seed, *row) for row in measured[0]]
        counts[run.system, run.seed] = measured[1]
    return Compared(pd.DataFrame(rows, columns=list(COLUMNS)), tests(counts))


Measured = tuple[list[Row], dict[str, pd.DataFrame]]  # what `measure` returns; the tables need the COUNTED columns only


class Kept:
    """Keep measurements in a folder, one file for each parser.

    The name of a file is a hash of everything that the measurements depend on: the parser, the sentences, the settings and the
    code of lalkit.
    """

    def __init__(self, folder: str | Path, gold: Sequence[Sentence], train: Sequence[Sentence], settings: Sequence):
        self.folder = Path(folder)
        self.common = json_hash([[repr(s) for s in gold], [repr(s) for s in train], list(settings), code_hash()])

    def path(self, parser: str | Path) -> Path:
        return self.folder / f"{json_hash([fingerprint(parser), self.common])[:16]}.json"

    def find(self, parser: str | Path) -> Measured | None:
        """Return the measurements of a parser; None if there are none, or the file is damaged."""
        content = find_json(self.path(parser), nan=True)
        if content is None or not {"rows", "tables"} <= set(content):
            return None
        tables = {name: pd.DataFrame(counts) for name, counts in content["tables"].items()}
        return [tuple(row) for row in content["rows"]], tables

    def keep(self, parser: str | Path, measured: Measured) -> None:
        rows, tables = measured
        counts = {name: table[COUNTED].fillna(0).astype(int).to_dict("list") for name, table in tables.items()}
        write_json(self.path(parser), {"rows": [(*row[:3], float(row[3])) for row in rows], "tables": counts})


def tests(counts: dict[tuple[str, int], dict[str, pd.DataFrame]]) -> pd.DataFrame:
    """Test every control against the parser as trained, and every other system against the first one.

    counts: (system, seed) -> control -> the table of its sentences. Returns the table that `Compared` describes.
    """
    systems = list(dict.fromkeys(system for system, _ in counts))
    seeds = {system: [seed for name, seed in counts if name == system] for system in systems}
    controls, others = [], []
    for system in systems:
        runs = [counts[system, seed] for seed in seeds[system]]
        names = dict.fromkeys(name for tables in runs for name in tables if name != TRAINED)
        for name, score in product(names, TESTED):
            pairs = [(tables[TRAINED], tables[name]) for tables in runs]
            controls.append({"family": "control", "system": system, "what": name, **_test(pairs, score)})
    for other, score in product(systems[1:], TESTED):
        common = [seed for seed in seeds[systems[0]] if seed in seeds[other]]
        if common:
            pairs = [(counts[systems[0], seed][TRAINED], counts[other, seed][TRAINED]) for seed in common]
            others.append({"family": "system", "system": systems[0], "what": other, **_test(pairs, score)})
    tables = [pd.DataFrame(family) for family in (controls, others) if family]
    if not tables:
        return pd.DataFrame()
    return pd.concat([table.assign(p_holm=holm(table["p"])) for table in tables], ignore_index=True)


def _test(pairs: list[tuple[pd.DataFrame, pd.DataFrame]], score: str) -> dict:
    """Test one score on pairs of tables of sentences, one pair for each seed."""
    ours, theirs = zip(*pairs)
    over_sentences = score_test(ours, theirs, score)
    scores = [
        [f1_of_sums(table[COUNTS[score]].fillna(0).to_numpy(float).sum(0)) for table in side] for side in (ours, theirs)
    ]
    over_seeds = paired_test(scores[0], scores[1], rounds=1) if len(pairs) > 1 else None
    return {
        "measure": score, "seeds": len(pairs), "difference": over_sentences.difference, "p": over_sentences.p,
        "seeds_difference": over_seeds.difference if over_seeds else np.nan,
        "seeds_p": over_seeds.t_p if over_seeds else np.nan,
    }  # fmt: skip
