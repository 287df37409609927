"""What the runs of a sweep reached: a row per run, a row per cell, and the counts that tests are made of.

What is claimed of a sweep's cells, judged by its runs: holds, does not hold, or cannot be told at this size.

One cell is better than another where the difference of their corpus scores, over the seeds both have, has the same sign for
every seed, and the randomisation test over sentences (the counts of all seeds added up sentence by sentence) finds it
significant at 5% after Holm's correction for all comparisons made. The first asks whether another training would say the
same, the second whether other sentences would; neither alone is enough.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.errors import ParameterError
from lalkit.evaluation.statistics import f1_test, holm
from lalkit.reproduce.sweep_plan import ALL_OTHERS
from lalkit.reproduce.sweep_runs import read_result
from lalkit.treebank.corpora import repository

SCORES = ("f1", "exact", "uas", "las", "tag_accuracy")
# measure -> columns of a run's table of sentences: (right, in gold, predicted)
COUNTED = {
    "f1": ("matched", "gold", "predicted"),
    "uas": ("arcs_right", "arcs", "arcs"),
    "las": ("labels_right", "arcs", "arcs"),
}


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder, read. content: its file; axes: names; runs: results of those that ended well, in the plan's order;
    missing: what is to be said of the others."""

    folder: Path
    name: str
    profile: str | None
    content: dict
    axes: tuple[str, ...]
    runs: tuple[dict, ...]
    missing: tuple[str, ...]

    @property
    def cells(self) -> list[dict[str, str]]:
        """Those with a run, in the plan's order."""
        return list({tuple(run["cell"].items()): run["cell"] for run in self.runs}.values())

    def of(self, cell: dict) -> dict[int, dict]:
        """seed -> run of a cell; values are compared as text."""
        wanted = {str(axis): str(value) for axis, value in cell.items()}
        return {run["seed"]: run for run in self.runs if run["cell"] == wanted}


def read_sweep(folder: str | Path) -> Sweep:
    """Raises ParameterError where the folder holds no sweep, or none of its runs has ended well."""
    folder = Path(folder)
    try:
        plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
        planned, content = plan["runs"], plan["file"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f"holds no sweep ({getattr(error, 'strerror', None) or error})",
            where=str(folder),
            remedy="Give the folder that `lalkit sweep` wrote, such as runs/sweeps/ablation-1-sample.",
        ) from None
    runs, missing = [], []
    for run in planned:
        result = read_result(folder / run["folder"])
        if result.get("status") == "ok" and result.get("key") == run["key"]:
            # its key says that it is this run's, though another sweep, with other names for it, may have made it
            runs.append(result | {"cell": run["cell"], "folder": run["folder"]})
        else:
            cell = ", ".join(f"{axis}: {value}" for axis, value in run["cell"].items())
            missing.append(f"{cell}, seed {run['seed']}: {'failed' if result.get('status') == 'failed' else 'not run'}")
    if not runs:
        raise ParameterError("no run of it has ended well", where=str(folder), remedy="Give `lalkit sweep` again.")
    return Sweep(
        folder, plan["name"], plan["profile"], content, tuple(runs[0]["cell"]), tuple(runs), tuple(missing)
    )  # fmt: skip


def split_of(sweep: Sweep) -> str:
    """test where the treebank has one, else dev."""
    return "test" if all("test" in run["scores"] for run in sweep.runs) else "dev"


def run_table(sweep: Sweep) -> pd.DataFrame:
    """A row per run and split: the axes, seed, split, scores in percent, weights trained, minutes, peak MB, best epoch."""
    rows = []
    for run in sweep.runs:
        for split, scores in run["scores"].items():
            rows.append(
                {
                    **run["cell"],
                    "seed": run["seed"],
                    "split": split,
                    **{name: scores[name] for name in SCORES},
                    "parameters": run["parameters"],
                    "minutes": round(run["seconds"] / 60, 1),
                    "peak_mb": run["peak_memory_mb"],
                    "best_epoch": run["best_epoch"],
                }
            )
    return pd.DataFrame(rows)


def cell_table(sweep: Sweep, split: str) -> pd.DataFrame:
    """A row per cell: the axes, seeds, mean and standard deviation (n - 1) of every score, weights, minutes and peak MB in the
    mean, and the paper's scores where the sweep's file says which row is meant (`paper f1` and so on)."""
    table = run_table(sweep)
    table = table[table["split"] == split]
    rows = []
    for cell in sweep.cells:
        of_cell = table[(table[list(sweep.axes)] == pd.Series(cell)).all(axis=1)]
        row: dict = {**cell, "seeds": len(of_cell)}
        for name in SCORES:
            values = of_cell[name].to_numpy(float)
            row[name] = values.mean()
            row[f"{name} sd"] = values.std(ddof=1) if len(values) > 1 else np.nan
        row |= {name: of_cell[name].mean() for name in ("parameters", "minutes", "peak_mb")}
        rows.append(row | paper_scores(sweep, cell))
    return pd.DataFrame(rows)


def paper_scores(sweep: Sweep, cell: dict[str, str]) -> dict[str, float]:
    """The paper's f1, uas and las for a cell, prefixed 'paper '; empty where it has none."""
    paper = sweep.content.get("paper")
    if not paper:
        return {}
    file = repository() / "data" / "paper" / f"{paper['table']}.csv"
    if not file.is_file():
        raise ParameterError("is not there", where=str(file), remedy="`paper: table` names a file of data/paper.")
    table = pd.read_csv(file, dtype=str)
    for axis, place in paper["rows"].items():
        wanted = {str(name): value for name, value in place["values"].items()}.get(cell.get(axis))
        table = table[table[place["column"]] == str(wanted)]
    return {f"paper {name}": float(table[name].iloc[0]) for name in COUNTED} if len(table) == 1 else {}


def counts(sweep: Sweep, run: dict, split: str, measure: str) -> np.ndarray:
    """[N, 3] of a run's sentences: right, in gold, predicted; the ratios `f1_test` is about."""
    table = pd.read_csv(sweep.folder / run["folder"] / f"{split}.csv")
    return table[list(COUNTED[measure])].fillna(0).to_numpy(float)


LEVEL = 0.05
HOLDS, NOT, UNKNOWN, ABSENT = "holds", "does not hold", "cannot be told at this size", "not in this sweep"


def compare(sweep: Sweep, first: dict, second: dict, measure: str, split: str) -> dict | None:
    """{seeds, difference (of mean scores, points, first minus second), least, most (of the seeds' differences), p}; None where
    no seed has both cells, with this score: a parser of one layer lacks the other's."""
    one, other = sweep.of(first), sweep.of(second)
    both = sorted(set(one) & set(other))
    seeds = [s for s in both if all(runs[s]["scores"][split][measure] is not None for runs in (one, other))]
    if not seeds:
        return None
    own = [counts(sweep, one[seed], split, measure) for seed in seeds]
    their = [counts(sweep, other[seed], split, measure) for seed in seeds]
    differences = [one[s]["scores"][split][measure] - other[s]["scores"][split][measure] for s in seeds]
    found = f1_test(sum(own), sum(their))
    return {
        "seeds": len(seeds), "difference": float(np.mean(differences)), "least": min(differences),
        "most": max(differences), "p": found.p,
    }  # fmt: skip


def all_pairs(sweep: Sweep, split: str) -> pd.DataFrame:
    """Every pair of cells by every measure: as `compare`, with the cells' names and p corrected within each measure."""
    rows = []
    for measure in COUNTED:
        for first, second in combinations(sweep.cells, 2):
            if found := compare(sweep, first, second, measure, split):
                rows.append({"first": name(first), "second": name(second), "measure": measure, **found})
    table = pd.DataFrame(rows, columns=["first", "second", "measure", "seeds", "difference", "least", "most", "p"])
    table["p_holm"] = table.groupby("measure")["p"].transform(lambda p: holm(p.to_numpy()))
    return table


def judge(sweep: Sweep, split: str) -> pd.DataFrame:
    """A row per claim of the sweep's file: says, by, against (the cell in `than`; of all others, the closest), seeds, difference,
    least, most, p, p_holm, verdict.

    A claim about all others holds if it holds against each of them, and does not hold if it does not against one.
    """
    claims = sweep.content.get("claims") or []
    compared = [
        (i, other, compare(sweep, c["better"], other, c["by"], split)) for i, c, other in _against(sweep, claims)
    ]
    compared = [(i, other, found) for i, other, found in compared if found]
    corrected = holm([found["p"] for _, _, found in compared]) if compared else []
    for (_, _, found), p in zip(compared, corrected):
        found["p_holm"] = float(p)
    rows = []
    for i, claim in enumerate(claims):
        own = [(other, found) for j, other, found in compared if j == i]
        row = {"says": claim["says"], "by": claim["by"]}
        if own:
            other, closest = min(own, key=lambda pair: pair[1]["difference"])
            row |= {"against": name(other), **closest}
        rows.append(row | {"verdict": _together([verdict(found) for _, found in own])})
    columns = ["says", "by", "against", "seeds", "difference", "least", "most", "p", "p_holm", "verdict"]
    return pd.DataFrame(rows).reindex(columns=columns)


def verdict(found: dict) -> str:
    """Of one comparison with its corrected p. One seed shows nothing of what another training would say."""
    sure = found["p_holm"] < LEVEL and found["seeds"] > 1
    if sure and found["least"] > 0:
        return HOLDS
    return NOT if sure and found["most"] < 0 else UNKNOWN


def name(cell: dict) -> str:
    return ", ".join(f"{axis}: {value}" for axis, value in cell.items())


def _against(sweep: Sweep, claims: list[dict]):
    """(claim's number, claim, a cell that it is held against)."""
    for i, claim in enumerate(claims):
        better = {str(axis): str(value) for axis, value in claim["better"].items()}
        others = [c for c in sweep.cells if c != better] if claim["than"] == ALL_OTHERS else [claim["than"]]
        yield from ((i, claim, other) for other in others)


def _together(verdicts: list[str]) -> str:
    if not verdicts:
        return ABSENT
    if NOT in verdicts:
        return NOT
    return HOLDS if set(verdicts) == {HOLDS} else UNKNOWN
