"""Read a sweep's results: a row per run, a row per cell, every pair of cells compared, and its claims judged.

A cell is one combination of the grid's values. One cell is better than another if both of the following hold. The difference of
their corpus scores has the same sign for every seed that both have. And the randomisation test over sentences, with the counts
of all seeds added up sentence by sentence, finds it significant at 5% after Holm's correction for all comparisons made. The first
asks whether another training would show the same, the second whether other sentences would; neither is enough alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.errors import ParameterError
from lalkit.evaluation.statistics import COUNTS, holm, score_test
from lalkit.files import read_json
from lalkit.reproduce.sweep_plan import ALL_OTHERS, KEYS, check_content, describe, read_paper
from lalkit.reproduce.sweep_runs import finished, read_result

SCORES = ("f1", "exact", "uas", "las", "tag_accuracy")
COUNTED = tuple(COUNTS)  # the scores that are compared
LEVEL = 0.05
HOLDS, NOT, UNKNOWN, ABSENT = "holds", "does not hold", "cannot be told at this size", "not in this sweep"
COMPARED = ["seeds", "difference", "least", "most", "p"]


@dataclass
class PlannedRun:
    """What sweep.json holds at least of every run."""

    cell: dict[str, str]
    seed: int
    key: str
    folder: str


@dataclass
class Record:
    """What sweep.json holds at least."""

    name: str
    profile: str | None
    file: dict
    runs: list[PlannedRun]


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder, read.

    content: its file; axes: their names; runs: the results of the runs that ended well, in the plan's order; missing: for
    each of the others, a few words.
    """

    folder: Path
    name: str
    profile: str | None
    content: dict
    axes: tuple[str, ...]
    runs: tuple[dict, ...]
    missing: tuple[str, ...]
    _counts: dict[Path, pd.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def cells(self) -> list[dict[str, str]]:
        """The cells that have a run, in the plan's order."""
        return list({tuple(run["cell"].items()): run["cell"] for run in self.runs}.values())

    def of(self, cell: dict) -> dict[int, dict]:
        """Return seed -> run of a cell. Values are compared as text."""
        wanted = {str(axis): str(value) for axis, value in cell.items()}
        return {run["seed"]: run for run in self.runs if run["cell"] == wanted}

    def counts(self, run: dict, split: str) -> pd.DataFrame:
        """Return the counts of a run's sentences. Its file is read once. Raises ParameterError if there are no numbers in it."""
        file = self.folder / run["folder"] / f"{split}.csv"
        if file not in self._counts:
            try:
                self._counts[file] = pd.read_csv(file, usecols=list(set().union(*COUNTS.values())), dtype=float)
            except (OSError, ValueError, KeyError) as error:
                remedy = "Delete the result.json beside it, and run `lalkit sweep` again."
                raise ParameterError(f"is not the table of a run: {error}", where=str(file), remedy=remedy) from None
        return self._counts[file]


def read_sweep(folder: str | Path) -> Sweep:
    """Read a sweep's folder. Raises ParameterError if it holds no sweep, or if none of its runs ended well."""
    folder = Path(folder)
    remedy = "Give the folder that `lalkit sweep` wrote, such as runs/sweeps/ablation-1-sample."
    if not (folder / "sweep.json").exists():
        raise ParameterError("holds no sweep", where=str(folder), remedy=remedy)
    plan = read_json(folder / "sweep.json", remedy, ParameterError, form=Record)
    check_content(plan["file"], KEYS, f"{folder}/sweep.json: file")
    if len({tuple(run["cell"]) for run in plan["runs"]}) > 1 or any(not run["cell"] for run in plan["runs"]):
        raise ParameterError("is damaged: not all runs have the same axes", where=f"{folder}/sweep.json", remedy=remedy)
    runs, missing = [], []
    for run in plan["runs"]:
        if result := finished(folder / run["folder"], run["key"]):
            # By its key it is this run's result, even if another sweep, with other names of cells, made it.
            runs.append(result | {"cell": run["cell"], "folder": run["folder"]})
        else:
            failed = read_result(folder / run["folder"]).get("status") == "failed"
            missing.append(f"{describe(run['cell'])}, seed {run['seed']}: {'failed' if failed else 'not run'}")
    if not runs:
        raise ParameterError("no run of it has ended well", where=str(folder), remedy="Run `lalkit sweep` again.")
    axes = tuple(runs[0]["cell"])
    return Sweep(folder, plan["name"], plan["profile"], plan["file"], axes, tuple(runs), tuple(missing))


def split_of(sweep: Sweep) -> str:
    """Return the split that is reported: test if the treebank has one, else dev."""
    return "test" if all("test" in run["scores"] for run in sweep.runs) else "dev"


def run_table(sweep: Sweep) -> pd.DataFrame:
    """Return a row per run and split: the axes, seed, split, scores in percent, weights trained, minutes, peak MB, best epoch."""
    rows = [
        {
            **run["cell"], "seed": run["seed"], "split": split, **{name: scores[name] for name in SCORES},
            "parameters": run["parameters"], "minutes": round(run["seconds"] / 60, 1),
            "peak_mb": run["peak_memory_mb"], "best_epoch": run["best_epoch"],
        }
        for run in sweep.runs for split, scores in run["scores"].items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def curve_table(sweep: Sweep) -> pd.DataFrame:
    """Return a row per run and epoch, with the scores on dev: the axes, seed, epoch, f1, uas, las."""
    names = ("epoch", *COUNTED)
    return pd.DataFrame(
        {**run["cell"], "seed": run["seed"], **{name: epoch[name] for name in names}}
        for run in sweep.runs for epoch in run["history"]
    )  # fmt: skip


def cell_table(sweep: Sweep, split: str) -> pd.DataFrame:
    """Return a row per cell: the axes, number of seeds, mean and standard deviation (n - 1) of every score, and means of
    weights, minutes and peak MB; with `paper f1` and so on where the sweep's file names a row of the paper."""
    table, sizes = run_table(sweep), ["parameters", "minutes", "peak_mb"]
    table = table[table["split"] == split].astype(dict.fromkeys(SCORES, float))
    groups = table.groupby(list(sweep.axes), sort=False)
    spreads = groups[list(SCORES)].std(ddof=1).add_suffix(" sd")
    cells = pd.concat([groups.size().rename("seeds"), groups[[*SCORES, *sizes]].mean(), spreads], axis=1)
    columns = [column for score in SCORES for column in (score, f"{score} sd")]
    papers = pd.DataFrame([paper_scores(sweep, cell) for cell in sweep.cells])
    return pd.concat([cells[["seeds", *columns, *sizes]].reset_index(), papers], axis=1)


def paper_scores(sweep: Sweep, cell: dict[str, str]) -> dict[str, float]:
    """Return the paper's f1, uas and las for a cell, prefixed 'paper '; nothing if it has none."""
    table, rows = read_paper(sweep.content, f"{sweep.folder}/sweep.json: file")
    if table is None:
        return {}
    for axis, place in rows.items():
        wanted = {str(name): value for name, value in place["values"].items()}.get(cell.get(axis))
        table = table[table[place["column"]] == str(wanted)]
    return {f"paper {name}": float(table[name].iloc[0]) for name in COUNTED} if len(table) == 1 else {}


def compare(sweep: Sweep, first: dict, second: dict, measure: str, split: str) -> dict | None:
    """Compare two cells by one measure, over the seeds that both have.

    Returns:
        seeds (their number); difference, of the mean scores in points, first minus second; least and most, of the
        differences of the seeds; p. None if no seed has both cells with this score: a parser of one layer lacks the scores of
        the other.
    """
    both = [sweep.of(cell) for cell in (first, second)]
    scores = [{seed: run["scores"][split][measure] for seed, run in runs.items()} for runs in both]
    seeds = [s for s in sorted(set(scores[0]) & set(scores[1])) if None not in (scores[0][s], scores[1][s])]
    if not seeds:
        return None
    differences = [scores[0][s] - scores[1][s] for s in seeds]
    one, other = [[sweep.counts(runs[s], split) for s in seeds] for runs in both]
    if len({len(table) for table in (*one, *other)}) > 1:
        remedy = "Delete the result.json of the run that differs, and run `lalkit sweep` again."
        raise ParameterError(f"the runs do not have equally many sentences of {split}", where=sweep.name, remedy=remedy)
    return {
        "seeds": len(seeds), "difference": float(np.mean(differences)), "least": min(differences),
        "most": max(differences), "p": score_test(one, other, measure).p,
    }  # fmt: skip


def all_pairs(sweep: Sweep, split: str) -> pd.DataFrame:
    """Compare every pair of cells by every measure, as `compare` does, with p corrected within each measure."""
    rows = [
        {"first": describe(first), "second": describe(second), "measure": measure, **compared}
        for measure in COUNTED
        for first, second in combinations(sweep.cells, 2)
        if (compared := compare(sweep, first, second, measure, split))
    ]
    table = pd.DataFrame(rows, columns=["first", "second", "measure", *COMPARED])
    table["p_holm"] = table.groupby("measure")["p"].transform(lambda p: holm(p.to_numpy()))
    return table


def judge(sweep: Sweep, split: str) -> pd.DataFrame:
    """Return a row per claim of the sweep's file, with its verdict.

    The columns are says, by, against (the cell it is compared with; of all others, the closest), those of `compare`, p_holm
    and verdict. A claim about all others holds if it holds against each of them; it does not hold if it does not against one.
    """
    rows = []
    compared = _claims_compared(sweep, split)
    for number, claim in enumerate(sweep.content.get("claims") or []):
        against = [comparison for comparison in compared if comparison["claim"] == number]
        closest = min(against, key=lambda comparison: comparison["difference"], default={})
        verdicts = {verdict(comparison) for comparison in against}
        together = next((v for v in (NOT, UNKNOWN, HOLDS) if v in verdicts), ABSENT)
        rows.append({"says": claim["says"], "by": claim["by"], **closest, "verdict": together})
    return pd.DataFrame(rows).reindex(columns=["says", "by", "against", *COMPARED, "p_holm", "verdict"])


def _claims_compared(sweep: Sweep, split: str) -> list[dict]:
    """Compare the cell of every claim with each cell that it names: the claim's number, `against`, and p_holm over all."""
    rows = []
    for number, claim in enumerate(sweep.content.get("claims") or []):
        better = {str(axis): str(value) for axis, value in claim["better"].items()}
        others = [c for c in sweep.cells if c != better] if claim["than"] == ALL_OTHERS else [claim["than"]]
        for other in others:
            if comparison := compare(sweep, better, other, claim["by"], split):
                rows.append({"claim": number, "against": describe(other), **comparison})
    corrected = holm([row["p"] for row in rows])
    return [row | {"p_holm": float(p)} for row, p in zip(rows, corrected)]


def verdict(comparison: dict) -> str:
    """Judge one comparison with its corrected p. One seed says nothing about another training."""
    sure = comparison["p_holm"] < LEVEL and comparison["seeds"] > 1
    if sure and comparison["least"] > 0:
        return HOLDS
    return NOT if sure and comparison["most"] < 0 else UNKNOWN
