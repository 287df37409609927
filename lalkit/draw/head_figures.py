"""Figures of a summarizer's heads (Baan et al. 2019): a square a head, parts of speech as bars, prices of heads as lines."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lalkit.draw.figures import BLUE, GREEN, GREY, HEAT, ORANGE, PURPLE, RED, SKY

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
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
        for place, (head, colour) in enumerate(zip(heads, COLOURS)):
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
    for (seed, some), colour, mark in zip(table.groupby("seed", sort=False), COLOURS, MARKS):
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
        for group, colour, mark in zip(groups, COLOURS, MARKS):
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
