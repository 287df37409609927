"""Write a card for readers: card.json -> README.md, by the template card.md.jinja, with the command behind every number."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence

from lalkit.draw.pages import render
from lalkit.training.hub import metadata
from lalkit.treebank.mixture import parts_of

COLUMNS = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
# Scores of arcs by the conventions of Universal Dependencies.
UNIVERSAL = {
    "ud_uas_all": "UAS, all",
    "ud_las_all": "LAS, all",
    "ud_uas": "UAS",
    "ud_las": "LAS",
    "ud_upos_all": "UPOS",
}
OPTIONS = {"train.epochs": "--epochs"}  # settings with an option of their own
WATTS = 15  # of one core


def page(facts: dict) -> str:
    """Return the card as Markdown, with the front matter that the Hugging Face hub reads."""
    seeds = facts["seeds"]
    best = next(row for row in seeds if row["seed"] == facts["seed"])
    parts = [part for part in ("dev", "test") if best.get(part)]
    hours = [row["hours"] * row["cores"] for row in seeds]
    low, high = (f"{end:.1f}" for end in (min(hours), max(hours)))
    on_dev = {row["treebank"]: row for row in facts.get("parts", ()) if (row["split"], row["of"]) == ("dev", "all")}
    return render(
        "models/card.md.jinja",
        {"number": _number, "spread": _spread, "setting": _setting, "command": command},
        f=facts, metadata=metadata(facts), best=best, parts=parts, split=parts[-1], columns=COLUMNS,
        fp32=on_dev or {facts["treebank"]: best["dev"]}, universal=UNIVERSAL,
        sources=parts_of(facts["treebank"]), mixed="parts" in facts, quoted=shlex.quote(facts["treebank"]),
        cost=low if low == high else f"{low} to {high}", energy=WATTS * sum(hours) / len(hours),
    )  # fmt: skip


def command(facts: dict, seed: int | str, out: str = "") -> str:
    """Return the command that starts a run of the recipe. out: its folder, if it is not named after the parser and the seed."""
    recipe = dict(facts["recipe"])
    treebank = shlex.quote(facts.get("trained_on", facts["treebank"]))
    lines = [f"lalkit train --treebank {treebank} --preset {recipe.pop('preset')} --seed {seed}"]
    lines += [f"{OPTIONS[key]} {value}" for key, value in recipe.items() if key in OPTIONS]
    lines += [f"--set {key}={_setting(value)}" for key, value in recipe.items() if key not in OPTIONS]
    out = out or f"runs/{facts['name']}-{seed}"
    return " \\\n  ".join([*lines, f"--out {out}"])


def _spread(rows: Sequence[dict], key: str) -> str:
    """Return the mean of a score over seeds, with its standard deviation (n - 1) if there are several."""
    values = [row[key] for row in rows]
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _setting(value: object) -> str:
    """Return a setting's value as the command line takes it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
