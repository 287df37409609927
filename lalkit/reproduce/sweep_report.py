"""A sweep's folder -> its report: tables as CSV, Markdown and LaTeX, a figure, and one HTML page with all of it."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lalkit.draw.figures import seed_points
from lalkit.errors import ParameterError
from lalkit.files import write_bytes, write_text
from lalkit.reproduce.sweep_table import (
    COUNTED,
    SCORES,
    Sweep,
    all_pairs,
    cell_table,
    judge,
    read_sweep,
    run_table,
    split_of,
)

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 Helvetica, Arial, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #111 }}
table {{ border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }}
th, td {{ padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #ccc; font-variant-numeric: tabular-nums }}
img {{ max-width: 100% }} pre {{ background: #f4f4f4; padding: .6rem; overflow-x: auto }}
</style>{body}</html>
"""


def report(folders: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Writes NAME-runs.csv, NAME-cells.csv, NAME-tests.csv, NAME-claims.csv, NAME.png, NAME.md and NAME.tex for every sweep,
    and report.html with all of them; returns the files. Raises ParameterError as `read_sweep` does, and for two sweeps of one
    name, before it writes."""
    out, written, body = Path(out), [], []
    sweeps = {}
    for folder in folders:
        sweep = read_sweep(folder)
        name = "-".join(filter(None, (sweep.name, sweep.profile)))
        if name in sweeps:
            raise ParameterError(
                f"two sweeps are called {name}, and files are named so: {sweeps[name].folder} and {sweep.folder}",
                remedy="Report them apart, each with an --out of its own.",
            )
        sweeps[name] = sweep
    for name, sweep in sweeps.items():
        split = split_of(sweep)
        runs, cells, pairs, claims = (
            run_table(sweep),
            cell_table(sweep, split),
            all_pairs(sweep, split),
            judge(sweep, split),
        )
        for kind, table in (("runs", runs), ("cells", cells), ("tests", pairs), ("claims", claims)):
            written.append(write_text(out / f"{name}-{kind}.csv", table.to_csv(index=False, float_format="%.6g")))
        figure = seed_points(runs[runs["split"] == split], sweep.axes, COUNTED)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150)
        written.append(write_bytes(out / f"{name}.png", picture.getvalue()))
        parts = _parts(sweep, split, cells, pairs, claims)
        written.append(write_text(out / f"{name}.md", _markdown(sweep, name, parts)))
        written.append(write_text(out / f"{name}.tex", _latex(parts["What the cells reached"])))
        body.append(_html(sweep, picture.getvalue(), parts))
    title = ", ".join(sweep.name for sweep in sweeps.values())
    written.append(write_text(out / "report.html", PAGE.format(title=html.escape(title), body="".join(body))))
    return written


def _parts(
    sweep: Sweep, split: str, cells: pd.DataFrame, pairs: pd.DataFrame, claims: pd.DataFrame
) -> dict[str, pd.DataFrame | str]:
    """Heading -> a table of text, or a sentence."""
    first = sweep.runs[0]
    seeds = sorted({run["seed"] for run in sweep.runs})
    about = (
        f"{first['treebank']}, {split}; {len(sweep.runs)} runs, seeds {', '.join(map(str, seeds))}, "
        f"epochs of each: {first['config']['train']['epochs']}, one thread, {first['device']}. Percent; mean and standard "
        "deviation over seeds. The paper's figures are of other treebanks, encoders and sizes: compare differences at most."
    )
    parts: dict[str, pd.DataFrame | str] = {"Setting": about}
    if sweep.missing:
        parts["Not in the tables"] = "; ".join(sweep.missing) + "."
    parts["What the cells reached"] = _readable(sweep, cells)
    if len(claims):
        parts["What is claimed"] = pd.DataFrame(
            {
                "claim": claims["says"],
                "by": claims["by"].str.upper(),
                "closest": claims["against"].astype(object).fillna(""),
                "points ahead": [_signed(row) for _, row in claims.iterrows()],
                "p (Holm)": [_p(value) for value in claims["p_holm"]],
                "verdict": claims["verdict"],
            }
        )
    measure = next((measure for measure in COUNTED if measure in set(pairs["measure"])), "f1")  # F1, if anyone has it
    parts[f"Every pair, by {_NAMES[measure]}"] = pd.DataFrame(
        {
            "first": (shown := pairs[pairs["measure"] == measure])["first"],
            "second": shown["second"],
            "points ahead": [_signed(row) for _, row in shown.iterrows()],
            "p": [_p(value) for value in shown["p"]],
            "p (Holm)": [_p(value) for value in shown["p_holm"]],
        }
    )
    parts["What differs"] = _settings(sweep)
    return parts


def _readable(sweep: Sweep, cells: pd.DataFrame) -> pd.DataFrame:
    table = cells[[*sweep.axes, "seeds"]].astype(str)
    for name in SCORES:
        table[_NAMES.get(name, name)] = [
            "" if pd.isna(mean) else f"{mean:.2f}" + (f" ± {sd:.2f}" if pd.notna(sd) else "")
            for mean, sd in zip(cells[name], cells[f"{name} sd"])
        ]
    table["weights"] = [f"{value / 1e6:.2f} M" for value in cells["parameters"]]
    table["minutes"] = [f"{value:.1f}" for value in cells["minutes"]]
    for name in COUNTED:
        if f"paper {name}" in cells:
            table[f"paper {_NAMES[name]}"] = [
                "" if pd.isna(value) else f"{value:.2f}" for value in cells[f"paper {name}"]
            ]
    return table


_NAMES = {"f1": "F1", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}


def _settings(sweep: Sweep) -> pd.DataFrame:
    """Every setting in which the runs' configs differ, by cell; the seed left out."""
    configs = [_flat(run["config"]) | {"train.seed": None} for run in sweep.runs]
    differing = sorted({key for c in configs for key in c if any(o.get(key) != c[key] for o in configs)})
    rows = {}
    for run, config in zip(sweep.runs, configs):
        rows[tuple(run["cell"].values())] = {**run["cell"], **{key: str(config.get(key, "")) for key in differing}}
    return pd.DataFrame(list(rows.values()))


def _flat(tree: dict, before: str = "") -> dict:
    found = {}
    for key, value in tree.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found


def _signed(row: pd.Series) -> str:
    if pd.isna(row["difference"]):
        return ""
    return f"{row['difference']:+.2f} ({row['least']:+.2f} to {row['most']:+.2f}, seeds: {row['seeds']:.0f})"


def _p(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.4f}"


def _markdown(sweep: Sweep, name: str, parts: dict) -> str:
    lines = [f"# {sweep.content['question']}", "", f"![F1, UAS and LAS of every run]({name}.png)"]
    for heading, part in parts.items():
        lines += ["", f"## {heading}", "", part if isinstance(part, str) else _rows(part)]
    return "\n".join(lines) + "\n"


def _rows(table: pd.DataFrame) -> str:
    def line(cells) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(table.columns), line("---" for _ in table.columns), *map(line, table.to_numpy())])


def _latex(table: pd.DataFrame) -> str:
    text = table.map(lambda cell: str(cell).replace("±", "+-"))
    return text.to_latex(index=False, escape=True).replace("+-", "$\\pm$")


def _html(sweep: Sweep, picture: bytes, parts: dict) -> str:
    image = base64.b64encode(picture).decode()
    found = [
        f"<h1>{html.escape(sweep.content['question'])}</h1>",
        f'<p><img alt="F1, UAS and LAS of every run" src="data:image/png;base64,{image}"></p>',
    ]
    for heading, part in parts.items():
        shown = f"<p>{html.escape(part)}</p>" if isinstance(part, str) else part.to_html(index=False, border=0)
        found.append(f"<h2>{heading}</h2>{shown}")
    return "".join(found)
