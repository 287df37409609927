"""What the runs of a sweep reached: a row per run, a row per cell, and the counts that tests are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.errors import ParameterError
from lalkit.sweep.result import read_result
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
        result = read_result(folder / run["folder"]) or {}
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
