"""Write a comparison down: tables, a figure, a page in Markdown, and sentences with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lalkit.draw.figures import drawn, heads_figure
from lalkit.draw.pages import png, render
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


def write(comparison: Compared, out: str | Path, title: str) -> list[Path]:
    """Write table.csv, tests.csv, heads.md, heads.png, and heads.csv with the rows of the figure, into a folder."""
    out = Path(out)
    return [
        write_text(out / "table.csv", comparison.table.to_csv(index=False)),
        write_text(out / "tests.csv", comparison.tests.to_csv(index=False)),
        write_text(out / "heads.md", page(comparison, title)),
        write_text(out / "heads.csv", drawn(comparison.table).to_csv(index=False)),
        write_bytes(out / "heads.png", png(heads_figure(comparison.table))),
    ]


def page(comparison: Compared, title: str) -> str:
    """Return a page in Markdown: means over seeds, with the standard deviation (n - 1) if there are several."""
    parts = {name: table for name, table in summaries(comparison).items() if len(table)}
    first = "Means over seeds (± standard deviation)."
    return render("reproduce/report.md.jinja", title=title, first=first, parts=parts)


def summaries(comparison: Compared) -> dict[str, pd.DataFrame]:
    """Return the tables of the page by their titles, with cells as text."""
    table, tests = comparison.table, comparison.tests
    trained = table[(table["what"] == TRAINED) & (table["label"] == "")]
    scores = table[(table["measure"] == "f1") & (table["label"] == "")]
    removed = table[table["measure"].isin(REMOVED)]
    labelled = table[(table["what"] == TRAINED) & (table["label"] != "")]
    whats = dict.fromkeys(removed["what"])
    removed = removed.assign(measure=removed["measure"].map(REMOVED) + ", " + removed["what"])
    removals = {f"{name}, {what}": None for name in REMOVED.values() for what in whats}
    controls, names = scores.assign(measure=scores["what"]), dict.fromkeys(scores["what"])
    return {
        "Systems": _means(trained, ["system"], SIZES),
        "F1 with other attention or contexts at test": _means(controls, ["system"], names),
        "Label heads": _means(labelled, ["label", "system"], HEADS),
        "A label without its head": _means(removed, ["label", "system"], removals),
        "Probes of attention (gold spans)": _means(table[table["what"] == "probe"], ["system"], PROBES),
        "Tests": tests.round(4) if len(tests) else tests,
    }


def seen(comparison: Compared) -> list[str]:
    """Return what the runs show, as a few sentences for each system.

    They give the scores, the control that costs most, what each label loses with its head at its mean, and how often its head
    attends most to the head word, in the lowest and the highest of the seeds.
    """
    sentences = []
    for system, rows in comparison.table.groupby("system", sort=False):
        scores = rows[(rows["what"] == TRAINED) & (rows["label"] == "")].groupby("measure")["value"].mean()
        seeds = rows["seed"].nunique()
        sentences.append(f"{system}: F1 {scores['f1']:.2f}, UAS {scores['uas']:.2f} ({seeds} seed{'s' * (seeds > 1)}).")
        parts = (*_controls_seen(comparison.tests, system), *_removal_seen(rows), *_head_words_seen(rows))
        sentences += [f"{system}: {part}" for part in parts]
    return sentences


def _controls_seen(tests: pd.DataFrame, system: str) -> Iterator[str]:
    if len(tests):
        tests = tests[(tests["system"] == system) & (tests["family"] == "control") & (tests["measure"] == "f1")]
    if len(tests):
        worst = tests.loc[tests["difference"].idxmax()]
        yield (
            f"of {len(tests)} controls at test, '{worst['what']}' costs most, {worst['difference']:.2f} F1 (p after Holm "
            f"{worst['p_holm']:.3f}); {(tests['p_holm'] < 0.05).sum()} of them differ by more than chance at 0.05."
        )


def _removal_seen(rows: pd.DataFrame) -> Iterator[str]:
    labels = dict.fromkeys(rows.loc[(rows["what"] == REMOVAL) & (rows["measure"] == "label_f1"), "label"])
    if labels:
        means = rows.groupby(["what", "measure", "label"])["value"].mean()
        before, lost = means[TRAINED], means[TRAINED] - means[REMOVAL]
        others = lost.get("label_f1_of_others", {})  # A sentence with one label only has no others.
        parts = [
            f"{label} {lost['label_f1', label]:.1f} of {before['label_f1', label]:.1f} ({others.get(label, np.nan):.1f})"
            for label in labels
        ]
        yield f"F1 that a label loses with its head at its mean (that all others lose): {', '.join(parts)}."


def _head_words_seen(rows: pd.DataFrame) -> Iterator[str]:
    parts = []
    for label, shares in rows[rows["measure"] == "on_head_word"].groupby("label", sort=False)["value"]:
        chance = rows.loc[(rows["label"] == label) & (rows["measure"] == "on_head_word_chance"), "value"].mean()
        parts.append(f"{label} {shares.min():.0f} to {shares.max():.0f}% (chance {chance:.0f})")
    if parts:
        yield f"spans whose most attended word is their head word, least to most over seeds: {', '.join(parts)}."


def _means(table: pd.DataFrame, by: list[str], names: Mapping[str, str | None]) -> pd.DataFrame:
    """Return a row for each group and a column for each measure, with cells as text.

    names: the measures in their order, with the names of their columns; None keeps the name of the measure.
    """
    if not len(table):
        return table
    groups = table.groupby([*by, "measure"], sort=False)["value"]
    wide = pd.DataFrame({"mean": groups.mean(), "sd": groups.std(ddof=1)}).apply(_cell, axis=1).unstack("measure")
    wide = wide[[name for name in names if name in wide.columns]].rename(columns={k: v or k for k, v in names.items()})
    order = {column: list(dict.fromkeys(table[column])) for column in by}
    wide = wide.reset_index().sort_values(by, key=lambda column: column.map(order[column.name].index))
    return wide.fillna("").reset_index(drop=True).rename_axis(columns=None)


def _cell(row: pd.Series) -> str:
    if not np.isfinite(row["mean"]):
        return ""
    digits = 0 if abs(row["mean"]) >= 1000 else 1 if abs(row["mean"]) >= 10 else 2
    spread = f" ± {row['sd']:,.{digits}f}" if np.isfinite(row["sd"]) and row["sd"] > 0 else ""
    return f"{row['mean']:,.{digits}f}{spread}"
