"""The figures of the companion studies, from tables; and the page on which readers compare the attention of two models.

Each kind of classifier (Mohankumar et al. 2020) has one colour in all figures. The heads of a summarizer (Baan et al. 2019) are
squares of a grid, bars over parts of speech, and lines over the price of an open head.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Sized
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lalkit.draw.figures import BLUE, GREEN, GREY, HEAT, ORANGE, PURPLE, RED, SKY, side_by_side
from lalkit.draw.pages import asset

COLOURS = {"vanilla": BLUE, "diversity": ORANGE, "orthogonal": GREEN, "mlp": PURPLE, "sparsemax": RED}
MARKERS = {"vanilla": "o", "diversity": "s", "orthogonal": "^", "mlp": "D", "sparsemax": "v"}
HEAD_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
MARKS = ("o", "s", "^", "D", "v", "P", "X")  # one more than there are colours, so that no two of 42 lines look the same
# A panel of `head_grids`: its title, and the value of its darkest colour (None: the largest value).
PANELS = {
    "pos_kl": ("POS-KL (nats)", None),
    "ne_ratio": ("attention on names", None),
    "position": ("relative position", 1.0),
    "difference": ("ROUGE-1 points lost", None),
}
NEEDED = ("item", "words", "question", "label", "left", "right")


def erasure_boxes(table: pd.DataFrame) -> Figure:
    """Mohankumar et al., figure 3: the share of a text's words that are erased before the decision changes.

    The words are erased by attention (in colour) or at random (grey). table: data, system, ranking (erased or erased_random),
    p5, low, median, high, p95. Whiskers end at p5 and p95.
    """
    names, systems = table["data"].unique(), list(table["system"].unique())
    figure, axes = _row(len(names), 1.0 + 0.85 * len(systems))
    for axis, name in zip(axes, names):
        for row in table[table["data"] == name].itertuples():
            random = row.ranking == "erased_random"
            stats = {"whislo": row.p5, "q1": row.low, "med": row.median, "q3": row.high, "whishi": row.p95}
            place = systems.index(row.system) + (0.2 if random else -0.2)
            box = axis.bxp([stats], positions=[place], widths=0.34, patch_artist=True, showfliers=False)
            box["boxes"][0].set(facecolor=GREY if random else COLOURS.get(row.system, RED), alpha=0.7)
            box["medians"][0].set(color="black", lw=2)
        axis.set_xticks(range(len(systems)), systems, fontsize=8)
        axis.set(title=name, ylim=(-0.03, 1.03))
    axes[0].set_ylabel("share of words erased\nbefore the decision changes", fontsize=9)
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=colour, alpha=0.7) for colour in (BLUE, GREY)]
    _legend(figure, handles, ["by attention (in each model's colour)", "at random"])
    return figure


def permutation_lines(table: pd.DataFrame) -> Figure:
    """Mohankumar et al., figure 4: the median change when attention is permuted, for texts grouped by their largest weight.

    Bars are quartiles, and numbers count the texts. table: data, system, bin, n, low, median, high. A bin without texts is empty.
    """
    names, systems, bins = (table[column].unique() for column in ("data", "system", "bin"))
    figure, axes = _row(len(names), 3.4)
    for axis, name in zip(axes, names):
        for system, offset in zip(systems, _offsets(systems, 0.24)):
            rows = table[(table["data"] == name) & (table["system"] == system)].set_index("bin").reindex(bins)
            x = np.arange(len(bins)) + offset
            errors = [rows["median"] - rows["low"], rows["high"] - rows["median"]]
            colour, mark = COLOURS.get(system, RED), MARKERS.get(system, "o")
            axis.errorbar(x, rows["median"], errors, fmt=mark, color=colour, ms=6, capsize=2, label=system)
            for at, top, n in zip(x, rows["high"], rows["n"]):
                if n:
                    axis.text(at, min(top, 1) + 0.03, f"{n:,.0f}", ha="center", fontsize=6, rotation=90, va="bottom")
        axis.set_xticks(range(len(bins)), bins, fontsize=7)
        axis.set_xlabel("largest weight of the text", fontsize=9)
        axis.set(title=name, xlim=(-0.5, len(bins) - 0.5), ylim=(-0.03, 1.25), yticks=np.arange(0, 1.01, 0.2))
    axes[0].set_ylabel("change of the output (TVD, median\nof the permutations)", fontsize=9)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def attention_by_tag(table: pd.DataFrame) -> Figure:
    """Mohankumar et al., figure 5: percent of all attention on each part of speech, and its percent of all words (black mark).

    table: data, system, tag, attention, words.
    """
    names, systems = table["data"].unique(), table["system"].unique()
    figure, axes = _row(len(names), 0.26 * table["tag"].nunique() + 1.6, wide=3.6)
    for axis, name in zip(axes, names):
        here = table[table["data"] == name]
        words = here.groupby("tag")["words"].mean().sort_values(ascending=False)
        means = here.groupby(["system", "tag"])["attention"].mean()
        _tag_bars(axis, {system: (means[system], COLOURS.get(system, RED)) for system in systems}, words, 14)
        axis.set(title=name)
    _legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def tag_bars(tables: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Baan et al., figures 2 and 5: the share of a head's attention on each part of speech, and its share of words (black mark).

    tables: (title, table with head, tag, share, tokens) for each panel. A panel has at most six heads.
    """
    size = 4.4 * len(tables) + 0.4, 0.3 * tables[0][1]["tag"].nunique() + 1.6
    figure, axes = side_by_side(len(tables), *size)
    for axis, (name, table) in zip(axes, tables):
        words = 100 * table.groupby("tag")["tokens"].mean().sort_values(ascending=False)
        shares = 100 * table.set_index(["head", "tag"])["share"]
        _tag_bars(axis, {h: (shares[h], c) for h, c in zip(table["head"].unique(), cycle(HEAD_COLOURS))}, words, 13)
        axis.set_title(name, fontsize=9)
        axis.legend(fontsize=7, loc="lower right", frameon=False)
    return figure


def _tag_bars(axis: Axes, bars: dict[str, tuple[pd.Series, str]], words: pd.Series, mark: float) -> None:
    """Draw a group of bars for each part of speech. bars: name -> (percent by tag, colour); words: percent by tag, in order."""
    height = 0.8 / len(bars)
    for (name, (percent, colour)), offset in zip(bars.items(), _offsets(bars, height)):
        axis.barh(np.arange(len(words)) + offset, percent.reindex(words.index), height, color=colour, label=name)
    axis.plot(words, range(len(words)), "|", color="black", ms=mark, mew=2, label="share of words")
    axis.set_yticks(range(len(words)), words.index, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("percent", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(axis="x", alpha=0.3)


def word_heat(rows: Sequence[tuple[str, Sequence[str], Sequence[float]]]) -> Figure:
    """Draw weights as shades behind words, in rows of (name, words, weights). The largest weight of all rows is darkest."""
    longest = max(len(words) for _, words, _ in rows)
    figure, axis = plt.subplots(figsize=(min(0.63 * longest + 1.4, 15), 0.36 * len(rows) + 0.3), layout="constrained")
    most, grey = max(max(weights) for *_, weights in rows) or 1, plt.get_cmap("Greys")
    for y, (_, words, weights) in enumerate(rows):
        for x, (word, weight) in enumerate(zip(words, weights)):
            share = weight / most
            axis.add_patch(plt.Rectangle((x, y), 1, 1, facecolor=grey(0.85 * share), edgecolor="white"))
            _centred(axis, x + 0.5, y + 0.5, word, "white" if share > 0.6 else "black")
    axis.set(xlim=(0, longest), ylim=(len(rows), 0), xticks=[])
    axis.set_yticks([y + 0.5 for y in range(len(rows))], [name for name, _, _ in rows], fontsize=8)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return figure


def samples(table: pd.DataFrame, wide: int = 12) -> Figure:
    """Mohankumar et al., table 1: texts under their questions, with the attention and the answer of each model.

    table: a row for each word: example, question, label, system, said, word, attention. wide: the words in a line.
    """
    rows: list[tuple[str, Sequence[str], Sequence[float]]] = []
    for (_, question, label), example in table.groupby(["example", "question", "label"], sort=False):
        asked = f"{question} → {label}".split()
        lines = [("right answer", asked, [0.0] * len(asked))]
        for (system, said), words in example.groupby(["system", "said"], sort=False):
            lines.append((f"{system}: {said}", list(words["word"]), list(words["attention"])))
        for name, words, weights in lines:
            for start in range(0, len(words), wide):
                rows.append((name if start == 0 else "", words[start : start + wide], weights[start : start + wide]))
        rows.append(("", [""], [0.0]))
    return word_heat(rows[:-1])


def head_grids(tables: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Baan et al., figures 3, 4, 6 and 7: a row of panels for each table, with layers down and heads across.

    A star marks a significant loss, a cross a head that is cut out; an empty square was not measured. A loss is positive.
    The colours of a panel are the same in all rows. tables: (name, table with head, the columns of `PANELS`, p_holm and cut).
    """
    size = 2.75 * len(PANELS) + 0.5, 2.15 * len(tables) + 0.5
    figure, axes = plt.subplots(len(tables), len(PANELS), figsize=size, squeeze=False, layout="constrained")
    for column, (panel, (title, most)) in enumerate(PANELS.items()):
        grids = [_grid(table, panel) for _, table in tables]
        largest = max(np.nanmax(np.append(values, 0.0)) for values, *_ in grids)
        scale, digits = Normalize(0, most or max(largest, 1e-9)), 1 if largest >= 10 else 2
        for row, ((name, _), (values, marks, blocks)) in enumerate(zip(tables, grids)):
            axis = axes[row, column]
            image = axis.imshow(values, cmap=HEAT, norm=scale, aspect="auto")
            for (y, x), value in np.ndenumerate(values):
                empty = np.isnan(value)
                text = "" if empty else f"{np.round(value, digits) + 0.0:.{digits}f}"  # + 0.0: not -0.00
                _centred(axis, x, y, text + marks[y][x], "black" if empty or scale(value) > 0.55 else "white")
            axis.set_facecolor("#E5E5E5")
            axis.set_yticks(range(len(blocks)), blocks if column == 0 else [""] * len(blocks), fontsize=8)
            axis.set_xticks(range(values.shape[1]), range(values.shape[1]), fontsize=8)
            axis.tick_params(length=0)
            if column == 0:
                axis.set_ylabel(name, fontsize=9)
        axes[0, column].set_title(title, fontsize=9)
        axes[-1, column].set_xlabel("head", fontsize=8)
        bar = figure.colorbar(image, ax=axes[:, column], location="bottom", shrink=0.85, aspect=25)
        bar.ax.tick_params(labelsize=7)
    return figure


def _grid(table: pd.DataFrame, panel: str) -> tuple[np.ndarray, list[list[str]], list[str]]:
    """Return (values, marks, names of blocks). Values and marks have a row for each block, and a column for each head."""
    parts = table["head"].str.rsplit(".", n=1, expand=True)
    blocks, count = list(parts[0].unique()), parts[1].astype(int).max() + 1
    values = np.full((len(blocks), count), np.nan)
    marks = [[""] * count for _ in blocks]
    for block, head, row in zip(parts[0], parts[1].astype(int), table.itertuples()):
        y = blocks.index(block)
        if row.cut:
            marks[y][head] = "×"
            continue
        value = getattr(row, panel, np.nan)
        values[y, head] = -value if panel == "difference" else value
        if panel == "difference" and getattr(row, "p_holm", np.nan) < 0.05 and value < 0:
            marks[y][head] = "*"
    return values, marks, blocks


def price_lines(table: pd.DataFrame) -> Figure:
    """Draw how many heads are kept at each price, and the ROUGE-1 then, with a line for each seed. The control is dashed.

    table: seed, price (a number; nan: the control), kept, rouge1.
    """
    figure, (left, right) = side_by_side(2, 8.2, 3.1)
    for (seed, rows), colour, mark in zip(table.groupby("seed", sort=False), cycle(HEAD_COLOURS), cycle(MARKS)):
        gated = rows[rows["price"].notna()].sort_values("price")
        control = rows.loc[rows["price"].isna(), "rouge1"]
        for axis, column in ((left, "kept"), (right, "rouge1")):
            axis.plot(gated["price"], gated[column], f"-{mark}", color=colour, label=f"seed {seed}")
        if len(control):
            right.axhline(float(control.iloc[0]), color=colour, ls="--", lw=1, label=f"seed {seed}, no gates")
    prices = sorted(table["price"].dropna().unique())
    for axis, name in ((left, "heads kept"), (right, "ROUGE-1, percent")):
        axis.set_xscale("log")
        axis.set_xticks(prices, [f"{p:g}" for p in prices])
        axis.minorticks_off()
        axis.set_xlabel("price of an open head (lambda)", fontsize=9)
        axis.set_ylabel(name, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, frameon=False)
    left.set_ylim(bottom=0)
    return figure


def attention_of_heads(table: pd.DataFrame) -> Figure:
    """Baan et al., figure 1: what queries (rows) attend to (columns), with a panel for each head.

    table: head, row and asks (the number and the name of a query), column and word (of what is attended to), weight.
    """
    heads = table.groupby("head", sort=False)
    tall = (heads["row"].max() + 1).tolist()
    size = min(0.25 * table["column"].max() + 2.5, 14), 0.15 * sum(tall) + 1.2 * len(tall)
    figure, axes = plt.subplots(len(tall), 1, figsize=size, squeeze=False, layout="constrained", height_ratios=tall)
    for axis, (title, cells) in zip(axes[:, 0], heads):
        weights = cells.pivot(index="row", columns="column", values="weight")
        axis.imshow(weights, cmap="Greys", vmin=0, vmax=max(cells["weight"].max(), 1e-9), aspect="auto")
        words, queries = (cells.drop_duplicates(by)[name] for by, name in (("column", "word"), ("row", "asks")))
        axis.set_xticks(range(len(words)), words, rotation=60, ha="right", fontsize=7, rotation_mode="anchor")
        axis.set_yticks(range(len(queries)), queries, fontsize=6.5)
        axis.set_title(title, fontsize=9)
        axis.tick_params(length=0, pad=2)
    return figure


def system_points(table: pd.DataFrame, measures: Sequence[tuple[str, str]]) -> Figure:
    """Draw a point for each row of a table in the line of its system, with a panel for each measure (column, title).

    table: system (its kind stands before the comma), group, and the columns. Rows of a group have one colour. If the columns
    NAME_low and NAME_high exist, the points of NAME have intervals.
    """
    systems = list(table["system"].unique())
    shape = -(-len(measures) // 3), min(len(measures), 3)
    size = 2.15 * shape[1] + 2.6, (0.27 * len(systems) + 0.8) * shape[0] + 0.5
    figure, axes = plt.subplots(*shape, figsize=size, sharey=True, squeeze=False, layout="constrained")
    kinds = np.array([system.partition(",")[0] for system in systems])
    for axis, (column, title) in zip(axes.flat, measures):
        for (group, rows), colour, mark in zip(table.groupby("group", sort=False), cycle(HEAD_COLOURS), cycle(MARKS)):
            y = [systems.index(system) for system in rows["system"]]
            axis.plot(rows[column], y, mark, color=colour, ms=5, alpha=0.8, label=group)
            if f"{column}_low" in rows:
                axis.hlines(y, rows[f"{column}_low"], rows[f"{column}_high"], color=colour, lw=1)
        axis.set_yticks(range(len(systems)), systems, fontsize=8)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        for last in np.flatnonzero(kinds[1:] != kinds[:-1]):
            axis.axhline(last + 0.5, color=GREY, lw=0.8)
    axes[0, 0].invert_yaxis()
    _legend(figure, *axes[0, 0].get_legend_handles_labels())
    return figure


def preference_page(items: Sequence[dict]) -> str:
    """Return an HTML page on which readers choose the more helpful of two shadings of a text, and save their choices as CSV.

    items: as `lalkit.companions.classifiers.faithfulness.blinded` draws them, each with item (its number), words, question,
    label, left and right (a weight for every word). Only these fields are written, so the page cannot tell which model is on
    which side.
    """
    data = json.dumps([{name: item[name] for name in NEEDED} for item in items])
    return asset("preference.html").replace("ITEMS", data.replace("<", "\\u003c"))


def _row(count: int, height: float, wide: float = 3.3) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side. height: inches of the figure; wide: inches of a panel."""
    figure, axes = side_by_side(count, max(wide * count + 0.6, 5), height)
    for axis in axes:
        axis.tick_params(labelsize=8)
        axis.grid(axis="y", alpha=0.3)
    return figure, list(axes)


def _legend(figure: Figure, handles: list, labels: list[str]) -> None:
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=len(labels), frameon=False)


def _offsets(group: Sized, step: float) -> np.ndarray:
    """Return the places of a group's members around its middle."""
    return step * (np.arange(len(group)) - (len(group) - 1) / 2)


def _centred(axis: Axes, x: float, y: float, text: str, colour: str) -> None:
    axis.text(x, y, text, ha="center", va="center", fontsize=7, color=colour)
