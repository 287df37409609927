"""Figures 3, 4 and 5 of Mohankumar et al. (2020): tables in, matplotlib figures out. One colour a system, in all of them."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lalkit.draw.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED

COLOURS = {"vanilla": BLUE, "diversity": ORANGE, "orthogonal": GREEN, "mlp": PURPLE}
MARKERS = {"vanilla": "o", "diversity": "s", "orthogonal": "^", "mlp": "D"}


def erasure_boxes(table: pd.DataFrame) -> Figure:
    """Figure 3: how much goes before the decision changes, by attention (in colour) and at random (grey). table: data, system,
    ranking (erased or erased_random), p5, low, median, high, p95: shares of a text's words; whiskers end at p5 and p95."""
    names, systems = _in_order(table, "data"), _in_order(table, "system")
    figure, axes = _row(len(names), 1.0 + 0.85 * len(systems))
    for axis, name in zip(axes, names):
        for row in table[table["data"] == name].itertuples():
            random = row.ranking == "erased_random"
            place = systems.index(row.system) + (0.2 if random else -0.2)
            _box(axis, row, place, GREY if random else _colour(row.system))
        axis.set_xticks(range(len(systems)), systems, fontsize=8)
        axis.set(title=name, ylim=(-0.03, 1.03))
    axes[0].set_ylabel("share of words erased\nbefore the decision changes", fontsize=9)
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=colour, alpha=0.7) for colour in (BLUE, GREY)]
    named = ["by attention (in each model's colour)", "at random"]
    figure.legend(handles, named, fontsize=8, loc="outside lower center", ncols=2, frameon=False)
    return figure


def permutation_lines(table: pd.DataFrame) -> Figure:
    """Figure 4: the median change when attention is permuted (bars: quartiles), for texts by their largest weight, with their
    number. table: data, system, bin, n, low, median, high; bins without texts stay empty."""
    names, systems = _in_order(table, "data"), _in_order(table, "system")
    bins = _in_order(table, "bin")
    figure, axes = _row(len(names), 3.4)
    for axis, name in zip(axes, names):
        for place, system in enumerate(systems):
            some = table[(table["data"] == name) & (table["system"] == system)].set_index("bin").reindex(bins)
            x = np.arange(len(bins)) + 0.24 * (place - (len(systems) - 1) / 2)
            errors = [some["median"] - some["low"], some["high"] - some["median"]]
            axis.errorbar(
                x,
                some["median"],
                errors,
                fmt=MARKERS.get(system, "o"),
                color=_colour(system),
                ms=6,
                capsize=2,
                label=system,
            )
            for at, top, n in zip(x, some["high"], some["n"]):
                if n:
                    axis.text(at, min(top, 1) + 0.03, f"{n:,.0f}", ha="center", fontsize=6, rotation=90, va="bottom")
        axis.set_xticks(range(len(bins)), bins, fontsize=7)
        axis.set_xlabel("largest weight of the text", fontsize=9)
        axis.set(title=name, xlim=(-0.5, len(bins) - 0.5), ylim=(-0.03, 1.25), yticks=np.arange(0, 1.01, 0.2))
    axes[0].set_ylabel("change of the output (TVD, median\nof the permutations)", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(systems), frameon=False)
    return figure


def attention_by_tag(table: pd.DataFrame) -> Figure:
    """Figure 5: percent of all attention on each part of speech, beside its percent of all words (black mark). table: data,
    system, tag, attention, words."""
    names, systems = _in_order(table, "data"), _in_order(table, "system")
    figure, axes = _row(len(names), 0.26 * table["tag"].nunique() + 1.6, wide=3.6)
    for axis, name in zip(axes, names):
        here = table[table["data"] == name]
        tags = here.groupby("tag")["words"].mean().sort_values(ascending=False).index
        height = 0.8 / len(systems)
        for place, system in enumerate(systems):
            some = here[here["system"] == system].groupby("tag")["attention"].mean().reindex(tags)
            y = np.arange(len(tags)) + height * (place - (len(systems) - 1) / 2)
            axis.barh(y, some, height=height, color=_colour(system), label=system)
        words = here.groupby("tag")["words"].mean().reindex(tags)
        axis.plot(words, range(len(tags)), "|", color="black", ms=14, mew=2, label="share of words")
        axis.set_yticks(range(len(tags)), tags, fontsize=8)
        axis.invert_yaxis()
        axis.set(title=name)
        axis.set_xlabel("percent", fontsize=9)
        axis.grid(axis="x", alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def word_heat(rows: Sequence[tuple[str, Sequence[str], Sequence[float]]]) -> Figure:
    """Weights as shades behind words, a row each: (name, words, weights). The darkest shade is the largest weight of all rows."""
    longest = max(len(words) for _, words, _ in rows)
    figure, axis = plt.subplots(figsize=(min(0.75 * longest + 1.6, 15), 0.42 * len(rows) + 0.3), layout="constrained")
    most = max(max(weights) for _, _, weights in rows)
    for y, (_, words, weights) in enumerate(rows):
        for x, (word, weight) in enumerate(zip(words, weights)):
            share = weight / most
            axis.add_patch(
                plt.Rectangle((x, y), 1, 1, facecolor=plt.get_cmap("Greys")(0.85 * share), edgecolor="white")
            )
            axis.text(
                x + 0.5, y + 0.5, word, ha="center", va="center", fontsize=7, color="white" if share > 0.6 else "black"
            )
    axis.set(xlim=(0, longest), ylim=(len(rows), 0))
    axis.set_yticks([y + 0.5 for y in range(len(rows))], [name for name, _, _ in rows], fontsize=8)
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return figure


def _row(count: int, height: float, wide: float = 3.3) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(
        1, count, figsize=(max(wide * count + 0.6, 5), height), squeeze=False, layout="constrained"
    )
    for axis in axes[0]:
        axis.tick_params(labelsize=8)
        axis.grid(axis="y", alpha=0.3)
    return figure, list(axes[0])


def _box(axis: Axes, row, place: float, colour: str) -> None:
    stats = {"whislo": row.p5, "q1": row.low, "med": row.median, "q3": row.high, "whishi": row.p95}
    box = axis.bxp([stats], positions=[place], widths=0.34, patch_artist=True, showfliers=False)
    box["boxes"][0].set(facecolor=colour, alpha=0.7)
    box["medians"][0].set(color="black", lw=2)


def _in_order(table: pd.DataFrame, column: str) -> list[str]:
    return list(dict.fromkeys(table[column]))


def _colour(system: str) -> str:
    return COLOURS.get(system, RED)
