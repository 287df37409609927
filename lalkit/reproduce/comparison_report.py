"""The comparison on paper: Markdown, and all files of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.draw.figures import drawn, heads_figure
from lalkit.draw.pages import markdown_table, png
from lalkit.files import write_bytes, write_text
from lalkit.reproduce.comparison import Compared
from lalkit.reproduce.comparison_measures import TRAINED

REMOVAL = "head at its mean"
SIZES = {
    "f1": "F1", "uas": "UAS", "las": "LAS", "parameters": "weights", "head_parameters": "of the heads",
    "sentences_per_second": "sentences/s of a core",
}  # fmt: skip
REMOVED = {
    "label_f1": "F1", "label_f1_of_others": "F1 of others", "recall": "recall", "recall_of_others": "recall of others",
}  # fmt: skip
HEADS = {
    "top_share": "top %", "lift": "lift", "on_head_word": "on head word",
    "on_head_word_chance": "chance", "on_head_word_other_heads": "other heads", "on_head_word_best_other": "best other",
}  # fmt: skip
PROBES = {
    "tvd": "permuted: TVD", "tvd_uniform": "uniform: TVD", "erased": "erased by attention", "erased_random": "at random",
    "never_erased": "never changes",
}  # fmt: skip


def write(found: Compared, out: str | Path, title: str) -> list[Path]:
    """table.csv, tests.csv, heads.md, heads.png and heads.csv, which it draws."""
    out = Path(out)
    return [
        write_text(out / "table.csv", found.table.to_csv(index=False)),
        write_text(out / "tests.csv", found.tests.to_csv(index=False)),
        write_text(out / "heads.md", page(found, title)),
        write_text(out / "heads.csv", drawn(found.table).to_csv(index=False)),
        write_bytes(out / "heads.png", png(heads_figure(found.table))),
    ]


def page(found: Compared, title: str) -> str:
    """Markdown: means over seeds, with the standard deviation (n - 1) where there are several."""
    parts = [f"# {title}\n", "Means over seeds (± standard deviation).\n"]
    for name, table in summaries(found).items():
        if len(table):
            parts.append(f"## {name}\n\n{markdown_table(table.columns, table.astype(object).fillna('').to_numpy())}\n")
    return "\n".join(parts)


def summaries(found: Compared) -> dict[str, pd.DataFrame]:
    """The tables of the page, by their titles: cells as text."""
    table, tests = found.table, found.tests
    trained = table[(table["what"] == TRAINED) & (table["label"] == "")]
    scores = table[(table["measure"] == "f1") & (table["label"] == "")]
    removed = table[table["measure"].isin(REMOVED)]
    labelled = table[(table["what"] == TRAINED) & (table["label"] != "")]
    return {
        "Systems": _means(trained, ["system"], SIZES),
        "F1 with other attention or contexts at test": _means(
            scores.assign(measure=scores["what"]), ["system"], dict.fromkeys(scores["what"])
        ),
        "Label heads": _means(labelled, ["label", "system"], HEADS),
        "A label without its head": _means(
            removed.assign(measure=removed["measure"].map(REMOVED) + ", " + removed["what"]),
            ["label", "system"],
            {f"{name}, {what}": None for name in REMOVED.values() for what in dict.fromkeys(removed["what"])},
        ),
        "Probes of attention (gold spans)": _means(table[table["what"] == "probe"], ["system"], PROBES),
        "Tests": tests.round(4) if len(tests) else tests,
    }


def seen(found: Compared) -> list[str]:
    """What the runs say, a few sentences a system, with their numbers: scores; the control that costs most; what each label loses
    with its head at its mean; how often its head looks at the head word, in the least and the most of the seeds."""
    said = []
    for system, own in found.table.groupby("system", sort=False):
        scores = own[(own["what"] == TRAINED) & (own["label"] == "")].groupby("measure")["value"].mean()
        seeds = own["seed"].nunique()
        said.append(f"{system}: F1 {scores['f1']:.2f}, UAS {scores['uas']:.2f} ({seeds} seed{'s' * (seeds > 1)}).")
        said += [*_control_seen(found.tests, system), *_removal_seen(system, own), *_looks_seen(system, own)]
    return said


def _control_seen(tests: pd.DataFrame, system: str) -> Iterator[str]:
    if not len(tests):
        return
    own = tests[(tests["system"] == system) & (tests["family"] == "control") & (tests["measure"] == "f1")]
    if len(own):
        worst = own.loc[own["difference"].idxmax()]
        beyond = own["p_holm"] < 0.05
        yield (
            f"{system}: of {len(own)} controls at test, '{worst['what']}' costs most, {worst['difference']:.2f} F1 (p after Holm "
            f"{worst['p_holm']:.3f}); {beyond.sum()} of them differ by more than chance at 0.05."
        )


def _removal_seen(system: str, own: pd.DataFrame) -> Iterator[str]:
    means = own.groupby(["what", "label", "measure"])["value"].mean()
    labels = dict.fromkeys(own.loc[(own["what"] == REMOVAL) & (own["measure"] == "label_f1"), "label"])
    if labels:
        before, lost = means[TRAINED], (means[TRAINED] - means[REMOVAL]).unstack("measure")
        others = lost.reindex(columns=["label_f1_of_others"]).squeeze("columns")  # nan: sentences of one label
        told = [
            f"{label} {lost.loc[label, 'label_f1']:.1f} of {before[label, 'label_f1']:.1f} ({others[label]:.1f})"
            for label in labels
        ]
        yield f"{system}: F1 that a label loses with its head at its mean (that all others lose): {', '.join(told)}."


def _looks_seen(system: str, own: pd.DataFrame) -> Iterator[str]:
    told = []
    for label, some in own[own["measure"] == "on_head_word"].groupby("label", sort=False)["value"]:
        chance = own.loc[(own["label"] == label) & (own["measure"] == "on_head_word_chance"), "value"].mean()
        told.append(f"{label} {some.min():.0f} to {some.max():.0f}% (chance {chance:.0f})")
    if told:
        yield f"{system}: spans whose most attended word is their head word, least to most over seeds: {', '.join(told)}."


def _means(table: pd.DataFrame, by: list[str], names: dict[str, str | None] | None = None) -> pd.DataFrame:
    """A row per group, a column per measure, as text."""
    if not len(table):
        return table
    names = dict.fromkeys(table["measure"]) if names is None else names
    groups = table.groupby([*by, "measure"], sort=False)["value"]
    cells = pd.DataFrame({"mean": groups.mean(), "sd": groups.std(ddof=1)}).apply(_cell, axis=1)
    wide = cells.unstack("measure")
    order = {column: list(dict.fromkeys(table[column])) for column in by}
    wide = wide[[name for name in names if name in wide.columns]].rename(columns={k: v or k for k, v in names.items()})
    wide = wide.reset_index().sort_values(by, key=lambda column: column.map(order[column.name].index))
    return wide.fillna("").reset_index(drop=True).rename_axis(columns=None)


def _cell(row: pd.Series) -> str:
    if not np.isfinite(row["mean"]):
        return ""
    digits = 0 if abs(row["mean"]) >= 1000 else 1 if abs(row["mean"]) >= 10 else 2
    spread = f" ± {row['sd']:,.{digits}f}" if np.isfinite(row["sd"]) and row["sd"] > 0 else ""
    return f"{row['mean']:,.{digits}f}{spread}"
