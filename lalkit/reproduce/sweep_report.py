"""Report finished sweeps: tables as CSV, Markdown and LaTeX, a figure, and one HTML page with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from lalkit.config import flatten
from lalkit.draw.figures import learning_curves, seed_points
from lalkit.draw.pages import png, render
from lalkit.errors import ParameterError
from lalkit.files import write_bytes, write_text
from lalkit.reproduce import sweep_table
from lalkit.reproduce.sweep_table import COUNTED, SCORES, Sweep, read_sweep

NAMES = {"f1": "F1", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}


def report(folders: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Write the report of sweeps into a folder, and return its files.

    For every sweep: NAME-runs.csv, NAME-cells.csv, NAME-tests.csv, NAME-claims.csv, NAME-curves.csv, NAME.png,
    NAME-curves.png, NAME.md and NAME.tex; and report.html with all of them. Raises ParameterError as `read_sweep` does, and for
    two sweeps of one name, before it writes.
    """
    sweeps: dict[str, Sweep] = {}
    for sweep in map(read_sweep, folders):
        name = "-".join(filter(None, (sweep.name, sweep.profile)))
        if name in sweeps:
            problem = f"two sweeps are called {name}, and files are named so: {sweeps[name].folder} and {sweep.folder}"
            raise ParameterError(problem, remedy="Report them apart, each with an --out of its own.")
        sweeps[name] = sweep
    out, written, pages = Path(out), [], []
    for name, sweep in sweeps.items():
        split, question = sweep_table.split_of(sweep), sweep.content["question"]
        tables = {
            "runs": sweep_table.run_table(sweep), "cells": sweep_table.cell_table(sweep, split),
            "tests": sweep_table.all_pairs(sweep, split), "claims": sweep_table.judge(sweep, split),
            "curves": sweep_table.curve_table(sweep),
        }  # fmt: skip
        points = seed_points(tables["runs"].query("split == @split"), sweep.axes, COUNTED)
        curves = learning_curves(tables["curves"], sweep.axes, COUNTED)
        pictures = {
            f"{name}.png": ("F1, UAS and LAS of every run", png(points)),
            f"{name}-curves.png": ("dev scores of every run by epoch", png(curves)),
        }
        parts = _parts(sweep, split, tables)
        first = "\n\n".join(f"![{alt}]({file})" for file, (alt, _) in pictures.items())
        page = render("reproduce/report.md.jinja", title=question, first=first, parts=parts)
        for kind, table in tables.items():
            written.append(write_text(out / f"{name}-{kind}.csv", table.to_csv(index=False, float_format="%.6g")))
        written += [
            *(write_bytes(out / file, picture) for file, (_, picture) in pictures.items()),
            write_text(out / f"{name}.md", page),
            write_text(out / f"{name}.tex", _latex(parts["What the cells reached"])),
        ]
        pages.append({"question": question, "pictures": pictures.values(), "parts": parts})
    page = render("reproduce/report.html.jinja", title=", ".join(sweep.name for sweep in sweeps.values()), sweeps=pages)
    return [*written, write_text(out / "report.html", page)]


def _parts(sweep: Sweep, split: str, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame | str]:
    """Return what the report shows: heading -> a table of text, or a sentence."""
    first, seeds = sweep.runs[0], sorted({run["seed"] for run in sweep.runs})
    epochs = " or ".join(map(str, sorted({run["config"]["train"]["epochs"] for run in sweep.runs})))
    devices = " or ".join(sorted({run["device"] for run in sweep.runs}))
    parts: dict[str, pd.DataFrame | str] = {
        "Setting": f"{first.get('scored', first['treebank'])}, {split}; {len(sweep.runs)} runs, seeds "
        f"{', '.join(map(str, seeds))}, epochs of each: {epochs}, one thread, {devices}. Percent; mean and standard deviation "
        "over seeds. The paper's figures are of other treebanks, encoders and sizes: compare differences at most."
    }
    if sweep.missing:
        parts["Not in the tables"] = "; ".join(sweep.missing) + "."
    parts["What the cells reached"] = _reached(sweep, tables["cells"])
    if len(claims := tables["claims"]):
        columns = {
            "claim": claims["says"], "by": claims["by"].map(NAMES), "closest": claims["against"].astype(object).fillna(""),
            "points ahead": _ahead(claims), "p (Holm)": _text(claims["p_holm"], 4), "verdict": claims["verdict"],
        }  # fmt: skip
        parts["What is claimed"] = pd.DataFrame(columns)
    pairs = tables["tests"]
    measure = next((measure for measure in COUNTED if measure in set(pairs["measure"])), "f1")  # F1, if anyone has it
    pairs = pairs[pairs["measure"] == measure]
    columns = {"points ahead": _ahead(pairs), "p": _text(pairs["p"], 4), "p (Holm)": _text(pairs["p_holm"], 4)}
    parts[f"Every pair, by {NAMES[measure]}"] = pairs[["first", "second"]].assign(**columns)
    parts["What differs"] = _settings(sweep)
    return parts


def _reached(sweep: Sweep, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the table of cells as text, with the standard deviation behind every mean."""
    table = cells[[*sweep.axes, "seeds"]].astype(str)
    for name in SCORES:
        spreads = [f" ± {spread}" if spread else "" for spread in _text(cells[f"{name} sd"], 2)]
        table[NAMES.get(name, name)] = [mean + spread for mean, spread in zip(_text(cells[name], 2), spreads)]
    table["weights"] = [f"{value / 1e6:.2f} M" for value in cells["parameters"]]
    table["minutes"] = _text(cells["minutes"], 1)
    for name in COUNTED:
        if f"paper {name}" in cells:
            table[f"paper {NAMES[name]}"] = _text(cells[f"paper {name}"], 2)
    return table


def _settings(sweep: Sweep) -> pd.DataFrame:
    """Return a row per cell with every setting in which the runs' configs differ, except for the seed."""
    configs = [flatten(run["config"]) | {"train.seed": None} for run in sweep.runs]
    differing = sorted({key for c in configs for key in c if any(o.get(key) != c[key] for o in configs)})
    rows = [run["cell"] | {key: str(c.get(key, "")) for key in differing} for run, c in zip(sweep.runs, configs)]
    return pd.DataFrame(rows).drop_duplicates(list(sweep.axes))


def _text(values: Iterable[float], digits: int) -> list[str]:
    """Return numbers as text; a missing one is empty."""
    return ["" if pd.isna(value) else f"{value:.{digits}f}" for value in values]


def _ahead(table: pd.DataFrame) -> list[str]:
    """Return each difference with its range over the seeds, as text."""
    return [
        "" if pd.isna(difference) else f"{difference:+.2f} ({least:+.2f} to {most:+.2f}, seeds: {seeds:.0f})"
        for difference, least, most, seeds in zip(*(table[c] for c in ("difference", "least", "most", "seeds")))
    ]


def _latex(table: pd.DataFrame) -> str:
    text = table.map(lambda cell: str(cell).replace("±", "+-"))
    return text.to_latex(index=False, escape=True).replace("+-", "$\\pm$")
