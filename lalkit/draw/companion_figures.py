"""Figures of a summarizer's heads (Baan et al. 2019): a square a head, parts of speech as bars, prices of heads as lines.

Figures 3, 4 and 5 of Mohankumar et al. (2020): tables in, matplotlib figures out. One colour a system, in all of them.

A page on which people choose between two shadings of the same text, and save what they chose as a CSV. One HTML file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lalkit.draw.figures import BLUE, GREEN, GREY, HEAT, ORANGE, PURPLE, RED, SKY

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


HEAD_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
MARKS = ("o", "s", "^", "D", "v", "P")
# What a panel shows: its title, and the value that is its darkest colour (None: the largest there is).
PANELS = {
    "pos_kl": ("POS-KL (nats)", None),
    "ne_ratio": ("attention on names", None),
    "position": ("relative position", 1.0),
    "difference": ("ROUGE-1 points lost", None),
}


def head_grids(tables: Sequence[tuple[str, pd.DataFrame]], panels: Sequence[str] = tuple(PANELS)) -> Figure:
    """Figures 3, 4, 6 and 7: a row of panels per table, a square per head: layers down, heads across. tables: (name, head, the
    columns of `panels`, p_holm, cut). A star: the loss is significant; a cross: the head was cut out; empty: not asked.
    Of "difference" the loss is shown, as a positive number. A panel's colours are the same in all its rows."""
    figure, axes = plt.subplots(
        len(tables), len(panels), figsize=(2.75 * len(panels) + 0.5, 2.15 * len(tables) + 0.5), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for column, panel in enumerate(panels):
        title, most = PANELS[panel]
        grids = [_grid(table, panel) for _, table in tables]
        largest = max(np.nanmax(np.append(values, 0.0)) for values, *_ in grids)
        scale, digits = Normalize(0, most or max(largest, 1e-9)), 1 if largest >= 10 else 2
        for row, ((name, _), (values, marks, blocks)) in enumerate(zip(tables, grids)):
            axis = axes[row, column]
            image = axis.imshow(values, cmap=HEAT, norm=scale, aspect="auto")
            for y, x in np.ndindex(values.shape):
                shown = np.round(values[y, x], digits) + 0.0  # not -0.00
                text = marks[y][x] if np.isnan(shown) else f"{shown:.{digits}f}{marks[y][x]}"
                bright = not np.isnan(values[y, x]) and scale(values[y, x]) > 0.55
                empty = np.isnan(values[y, x])
                axis.text(
                    x, y, text, ha="center", va="center", fontsize=7, color="black" if bright or empty else "white"
                )
            axis.set_facecolor("#E5E5E5")
            axis.set_yticks(range(len(blocks)), blocks if column == 0 else [""] * len(blocks), fontsize=8)
            axis.set_xticks(range(values.shape[1]), range(values.shape[1]), fontsize=8)
            axis.tick_params(length=0)
            if row == 0:
                axis.set_title(title, fontsize=9)
            if row == len(tables) - 1:
                axis.set_xlabel("head", fontsize=8)
            if column == 0:
                axis.set_ylabel(name, fontsize=9)
        bar = figure.colorbar(image, ax=axes[:, column], location="bottom", shrink=0.85, aspect=25)
        bar.ax.tick_params(labelsize=7)
    return figure


def tag_bars(tables: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Figures 2 and 5: what share of its attention each head gives to each part of speech, beside the share of words (black
    mark). tables: (name, head, tag, share, tokens), a panel each; heads of at most six kinds of bars."""
    figure, axes = plt.subplots(
        1, len(tables), figsize=(4.4 * len(tables) + 0.4, 0.3 * tables[0][1]["tag"].nunique() + 1.6), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis, (name, table) in zip(axes[0], tables):
        tags = table.groupby("tag")["tokens"].mean().sort_values(ascending=False)
        heads = list(dict.fromkeys(table["head"]))
        height = 0.8 / len(heads)
        for place, (head, colour) in enumerate(zip(heads, HEAD_COLOURS)):
            share = table[table["head"] == head].set_index("tag")["share"].reindex(tags.index)
            y = np.arange(len(tags)) + height * (place - (len(heads) - 1) / 2)
            axis.barh(y, 100 * share, height=height, color=colour, label=head)
        axis.plot(100 * tags, range(len(tags)), "|", color="black", ms=13, mew=2, label="share of words")
        axis.set_yticks(range(len(tags)), tags.index, fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel("percent", fontsize=9)
        axis.set_title(name, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(axis="x", alpha=0.3)
        axis.legend(fontsize=7, loc="lower right", frameon=False)
    return figure


def price_lines(table: pd.DataFrame) -> Figure:
    """How many heads are kept at what price, and what ROUGE-1 is then; a line per seed, in the right panel the control dashed.
    table: seed, price (a number; nan: the control), kept, rouge1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.1), layout="constrained")
    for (seed, some), colour, mark in zip(table.groupby("seed", sort=False), HEAD_COLOURS, MARKS):
        gated = some[some["price"].notna()].sort_values("price")
        control = some.loc[some["price"].isna(), "rouge1"]
        left.plot(gated["price"], gated["kept"], f"-{mark}", color=colour, label=f"seed {seed}")
        right.plot(gated["price"], gated["rouge1"], f"-{mark}", color=colour, label=f"seed {seed}")
        if len(control):
            right.axhline(float(control.iloc[0]), color=colour, ls="--", lw=1, label=f"seed {seed}, no gates")
    for axis, name in ((left, "heads kept"), (right, "ROUGE-1, percent")):
        axis.set_xscale("log")
        prices = sorted(table["price"].dropna().unique())
        axis.set_xticks(prices, [f"{p:g}" for p in prices])
        axis.minorticks_off()
        axis.set_xlabel("price of an open head (lambda)", fontsize=9)
        axis.set_ylabel(name, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, frameon=False)
    left.set_ylim(bottom=0)
    return figure


def attention_of_heads(panels: Sequence[tuple[str, np.ndarray, Sequence[str], Sequence[str]]]) -> Figure:
    """Figure 1: what queries (rows) attend to (columns): (title, weights [Q, T], queries, keys), a panel each, one above the
    other."""
    keys = max(len(keys) for *_, keys in panels)
    heights = [len(queries) for _, _, queries, _ in panels]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(min(0.25 * keys + 2.2, 14), 0.15 * sum(heights) + 1.2 * len(panels)), squeeze=False,
        layout="constrained", gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for axis, (title, weights, queries, names) in zip(axes[:, 0], panels):
        axis.imshow(weights, cmap="Greys", vmin=0, vmax=max(float(np.max(weights)), 1e-9), aspect="auto")
        axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7, rotation_mode="anchor")
        axis.set_yticks(range(len(queries)), queries, fontsize=6.5)
        axis.set_title(title, fontsize=9)
        axis.tick_params(length=0, pad=2)
    return figure


def system_points(table: pd.DataFrame, measures: Sequence[tuple[str, str]]) -> Figure:
    """Systems down, a panel per measure: (column, title). table: system, group (its colour), and the columns."""
    groups = list(dict.fromkeys(table["group"]))
    figure, axes = plt.subplots(
        1, len(measures), figsize=(2.15 * len(measures) + 2.2, 0.29 * len(table) + 1.5), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for axis, (column, title) in zip(axes[0], measures):
        for group, colour, mark in zip(groups, HEAD_COLOURS, MARKS):
            rows = np.flatnonzero(table["group"] == group)
            axis.plot(table[column].to_numpy()[rows], rows, mark, color=colour, ms=6, label=group)
        axis.set_yticks(range(len(table)), table["system"], fontsize=8)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        for y in np.flatnonzero(table["group"].to_numpy()[1:] != table["group"].to_numpy()[:-1]):
            axis.axhline(y + 0.5, color=GREY, lw=0.8)
    axes[0][0].invert_yaxis()
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(groups), frameon=False)
    return figure


def _grid(table: pd.DataFrame, panel: str) -> tuple[np.ndarray, list[list[str]], list[str]]:
    """(values, marks, blocks), all by block and head."""
    parts = table["head"].str.rsplit(".", n=1, expand=True)
    blocks, count = list(dict.fromkeys(parts[0])), parts[1].astype(int).max() + 1
    values = np.full((len(blocks), count), np.nan)
    marks = [[""] * count for _ in blocks]
    for (block, head), row in zip(parts.itertuples(index=False), table.itertuples()):
        y, x = blocks.index(block), int(head)
        if row.cut:
            marks[y][x] = "×"
            continue
        value = getattr(row, panel, np.nan)
        values[y, x] = -value if panel == "difference" else value
        if panel == "difference" and getattr(row, "p_holm", np.nan) < 0.05 and value < 0:
            marks[y][x] = "*"
    return values, marks, blocks


PAGE = Path(__file__).with_name("preference.html")
NEEDED = ("item", "words", "question", "label", "left", "right")


def preference_page(items: Sequence[dict]) -> str:
    """items: item (number), words, question, label, left and right (a weight for every word). Whose side is whose it cannot
    tell, for it is not told: only these fields are written. Raises ValueError for items that lack one, or whose weights are
    not one for each word."""
    for item in items:
        missing = [name for name in NEEDED if name not in item]
        if missing or not len(item["words"]) == len(item["left"]) == len(item["right"]):
            raise ValueError(f"item {item.get('item')}: {missing or 'weights for other words'}")
    data = json.dumps([{name: item[name] for name in NEEDED} for item in items])
    return PAGE.read_text(encoding="utf-8").replace("ITEMS", data.replace("<", "\\u003c"))
