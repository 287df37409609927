"""Draw figures of label heads, errors and sweeps: tables in, matplotlib figures out.

Colours are those of Okabe and Ito (2008), which colour-blind people can tell apart. Heat maps can be read in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from scipy.cluster.hierarchy import leaves_list, linkage

from lalkit.draw.svg import use_fonts

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#7F7F7F"
HEAT = "cividis"
NOTHING = "nothing"  # in the flow of errors: what a missing span becomes, and what an extra span comes from
TRAINED, REMOVED = "as trained", ("head at its mean", "head out")
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY)
FEW_CELLS = 8  # the lines of more runs would hide each other
FEW_PARTS = 10  # a share of fewer parts says little, and is not drawn
CALIBRATED = {"span": "constituents", "arc": "arcs", "tree": "whole trees"}  # kinds of parts, and their titles
MARKERS = "os^Dv<>P"  # one more than colours, so that the eighth system does not look like the first


def head_bars(
    table: pd.DataFrame, value: str, labels: Sequence[str], top: int = 8, beside: str | None = None
) -> Figure:
    """Draw, for each label, its `top` label heads by `value` as bars with intervals (the paper's figure 8).

    Args:
        table: the columns label, head, `value`, low and high; with a column spans, a label's title says how many it has.
        labels: one panel each.
        beside: a column that is drawn as a mark beside the bar, such as the label head's share of all spans.
    """
    figure, panels = side_by_side(len(labels), 2.3 * len(labels) + 0.6, 0.27 * top + 1.3, words=labels)
    for axis, label in zip(panels, labels):
        rows = table[table["label"] == label].nlargest(top, value).reset_index(drop=True)
        axis.barh(rows.index, rows[value], color=BLUE, height=0.7)
        axis.hlines(rows.index, rows["low"], rows["high"], color="black", lw=1)
        if beside:
            axis.plot(rows[beside], rows.index, "D", color=ORANGE, ms=5, label=f"{beside} (all spans)")
        axis.set_title(f"{label} ({rows['spans'].iloc[0]:,} spans)" if "spans" in rows else label, fontsize=9)
        _name_rows(axis, [f"head {head}" for head in rows["head"]], value)
        axis.invert_yaxis()
    if beside:
        figure.legend(*panels[0].get_legend_handles_labels(), fontsize=7, loc="outside lower right", frameon=False)
    return figure


def label_by_head(table: pd.DataFrame, value: str, title: str = "") -> Figure:
    """Draw labels by label heads as a heat map. A clustering orders both, so that rows and columns that are alike are neighbours.

    table: the columns label, head and `value`. A label head that a label does not have counts as 0.
    """
    grid = table.pivot_table(index="label", columns="head", values=value, fill_value=0.0)
    values = grid.to_numpy(float)
    rows, columns = _order(values), _order(values.T)
    size = min(0.16 * values.shape[1] + 2.2, 13), 0.24 * values.shape[0] + 1.6
    figure, axis = _heat_map(values[np.ix_(rows, columns)], grid.index[rows], value, size, words=grid.index, cmap=HEAT)
    axis.set_xticks(range(len(columns)), grid.columns[columns], fontsize=6, rotation=90)
    axis.set(xlabel="label head", title=title)
    return figure


def attention_heat(
    attention: np.ndarray, words: Sequence[str], heads: Sequence[int], marks: Sequence[int] = ()
) -> Figure:
    """Draw what label heads attend to as a heat map: a row for each of `heads`, columns START, words, STOP.

    attention: [label heads, words + 2]. marks: columns to draw in a frame, such as that of the root.
    """
    names = ["START", *words, "STOP"]
    size = min(0.42 * len(names) + 1.8, 16), 0.28 * len(heads) + 1.4
    colours = {"cmap": "Greys", "vmin": 0, "vmax": max(attention.max(), 1e-9)}
    rows = [f"head {h}" for h in heads]
    figure, axis = _heat_map(attention[list(heads)], rows, "attention", size, words=words, **colours)
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    for column in marks:
        axis.axvspan(column - 0.5, column + 0.5, fill=False, edgecolor=RED, lw=1.5)
    return figure


def error_flow(table: pd.DataFrame, most: int = 12) -> Figure:
    """Draw wrong spans as ribbons from the gold label (left) to the label of the parse (right).

    The width of a ribbon is the number of spans.

    'nothing' on the left stands for an extra span, on the right for a missing one. Wrong arcs are left out.

    Args:
        table: as `interpret.errors.errors` returns it.
        most: the number of labels, the most frequent ones, that keep their names. All others are drawn as 'others'.
    """
    spans = table[~table["class"].str.contains("arc")]
    sides = [spans[column].fillna(NOTHING) for column in ("gold_label", "label")]
    frequent = {NOTHING, *pd.concat(sides).value_counts().drop(NOTHING, errors="ignore").index[:most]}
    sides = [side.where(side.isin(frequent), "others").rename(name) for side, name in zip(sides, ("gold", "parse"))]
    flows = pd.concat(sides, axis=1).value_counts()
    figure, (axis,) = side_by_side(1, 7, max(0.3 * len(frequent) + 2, 4), words=frequent)
    starts, bottom = [], 0.0
    for x, align, step in ((0, "right", -0.02), (1, "left", 0.02)):
        sizes = flows.groupby(level=x).sum()
        sizes = sizes.loc[sorted(sizes.index, key=lambda label: (label == NOTHING, -sizes[label]))]  # 'nothing' is last
        starts.append((sizes + 0.02 * flows.sum()).cumsum().shift(fill_value=0.0))
        for label, start in starts[x].items():
            end = start + sizes[label]
            axis.plot([x, x], [start, end], color="black", lw=3, solid_capstyle="butt")
            axis.text(x + step, (start + end) / 2, f"{label} ({sizes[label]})", ha=align, va="center", fontsize=8)
            bottom = max(bottom, end)
    for x, name in enumerate(flows.index.names):
        axis.text(x, -bottom * 0.04, name, ha="center", fontsize=9)
    for (gold, parse), count in flows.sort_index().items():
        left, right = starts[0][gold], starts[1][parse]
        axis.add_patch(_ribbon(left, right, count, GREY if NOTHING in (gold, parse) else BLUE))
        starts[0][gold], starts[1][parse] = left + count, right + count
    axis.set(xlim=(-0.35, 1.35), ylim=(bottom * 1.02, -bottom * 0.02))
    axis.axis("off")
    return figure


def seed_points(table: pd.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> Figure:
    """Draw a sweep: a row for each cell, a point for each seed, a stroke at their mean, and a panel for each measure.

    table: the columns of `axes`, and the measures in percent. Rows with the same values of `axes` are the seeds of one cell.
    """
    cells = table.groupby(table[list(axes)].astype(str).agg(", ".join, axis=1), sort=False)
    figure, panels = side_by_side(len(measures), 3.1 * len(measures) + 1.6, 0.38 * len(cells) + 1.2, sharey=True)
    for panel, measure, colour in zip(panels, measures, cycle((BLUE, RED, GREEN))):
        for y, (_, rows) in enumerate(cells):
            panel.plot(rows[measure], [y] * len(rows), "o", color=colour, alpha=0.75, ms=7)
            panel.plot(rows[measure].mean(), y, "|", color="black", ms=20)
        panel.set_xlabel(f"{measure.upper()}, percent")
        panel.margins(x=0.15)
        panel.locator_params(axis="x", nbins=5)  # more numbers touch those of the next panel
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(cells)), [name for name, _ in cells])
    panels[0].set_ylim(len(cells) - 0.5, -0.5)
    panels[0].set_title(", ".join(axes), loc="left", fontsize=9)
    return figure


def learning_curves(table: pd.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> Figure:
    """Draw how the scores on dev grow with the epochs: a colour for each cell, a line for each run, a panel for each measure.

    With more cells than FEW_CELLS, a line is the mean over the seeds of a cell.

    table: the columns of `axes`, seed, epoch, and the measures in percent.
    """
    cells = table.groupby(table[list(axes)].astype(str).agg(", ".join, axis=1), sort=False)
    line, kind = ("seed", "") if len(cells) <= FEW_CELLS else (lambda row: 0, ", mean of seeds")
    figure, panels = side_by_side(len(measures), 3.4 * len(measures) + 1.6, max(3.2, 0.23 * len(cells) + 0.6))
    for panel, measure in zip(panels, measures):
        for k, (name, rows) in enumerate(cells):
            for number, (_, runs) in enumerate(rows.groupby(line)):
                curve, label = runs.groupby("epoch")[measure].mean(), None if number else name
                panel.plot(curve.index, curve, label=label, **_style(k), ms=4, lw=1, alpha=0.8)
        panel.set(xlabel="epoch", title=f"{measure.upper()} on dev, percent{kind}")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
    lines = panels[0].get_legend_handles_labels()
    figure.legend(*lines, title=", ".join(axes), fontsize=8, title_fontsize=8, loc="outside right upper")
    return figure


def heads_figure(table: pd.DataFrame) -> Figure:
    """Draw what label heads are worth, in four panels; every point is one seed.

    The first panel shows how far F1 changes under each control at test. The next two show how far the F1 of a label changes with
    its label head at its mean, and without its label head; hollow points are the F1 of all other labels. The last panel shows how
    often the label's head attends most to the span's head word, and a bar for chance.

    table: the columns system, seed, what, label, measure and value, as `lalkit heads` writes them.
    """
    keys = ["system", "seed", "label", "measure"]
    table = table.merge(table.loc[table["what"] == TRAINED, [*keys, "value"]], "left", keys, suffixes=("", "_trained"))
    table["change"] = table["value"] - table["value_trained"]
    points = dict(list(table.groupby(["system", "what", "label", "measure"])))
    systems = table[table["what"] != TRAINED]["system"].unique()  # the others have no label heads
    labels = [label for label in table["label"].unique() if label]
    controls = [what for what in table[table["measure"] == "f1"]["what"].unique() if what != TRAINED]
    height = 1.9 + (0.2 + 0.1 * len(systems)) * max(len(controls), len(labels))  # a lane for each system
    figure, panels = side_by_side(4, 14, height, words=labels)
    for k, system in enumerate(systems):
        style = {**_style(k), "ls": "", "ms": 5.5, "alpha": 0.8}
        hollow, shift = {**style, "mfc": "none"}, 0.7 * ((k + 0.5) / len(systems) - 0.5)
        panels[0].plot([], [], label=system, **style)
        for y, control in enumerate(controls):
            _points(panels[0], points.get((system, control, "", "f1")), "change", y + shift, style)
        for y, label in enumerate(labels):
            for axis, what in zip(panels[1:3], REMOVED):
                _points(axis, points.get((system, what, label, "label_f1_of_others")), "change", y + shift, hollow)
                _points(axis, points.get((system, what, label, "label_f1")), "change", y + shift, style)
            _points(panels[3], points.get((system, TRAINED, label, "on_head_word")), "value", y + shift, style)
    chance = table[table["measure"] == "on_head_word_chance"].groupby("label")["value"].mean()
    panels[3].plot(chance.reindex(labels), range(len(labels)), "|", color="black", ms=22, mew=2)
    captions = [
        "F1, change in points: contexts, or A,\nchanged at test",
        *(f"F1 of the label, change in points, {what}\n(hollow: of all other labels)" for what in REMOVED),
        "percent of spans whose most attended word\nis the head word (bar: chance)",
    ]
    for axis in panels[:3]:
        axis.axvline(0, color="black", lw=0.8)
    for axis, names, caption in zip(panels, (controls, labels, labels, labels), captions):
        _name_rows(axis, names, caption)
        axis.set_ylim(len(names) - 0.4, -0.6)
        for y in range(1, len(names)):
            axis.axhline(y - 0.5, color="#DDDDDD", lw=0.6)
    _legend_below(figure, panels[0])
    return figure


def top_heads_of_seeds(table: pd.DataFrame, labels: Sequence[str]) -> Figure:
    """Draw how often the top label head of each label leads its constituents: a panel for each measure, a mark for each parser.

    table: the columns model, norm, label, head, share, low, high and overall; the first row of a label is its top head.
    """
    first = table.groupby(["model", "norm", "label"], sort=False).head(1)
    models, norms = list(first["model"].unique()), list(first["norm"].unique())
    size = 4.2 * len(norms) + 1, (0.2 * len(models) + 0.25) * len(labels) + 1.5
    figure, panels = side_by_side(len(norms), *size, words=labels, sharey=True)
    for panel, norm in zip(panels, norms):
        for k, model in enumerate(models):
            rows = first[(first["model"] == model) & (first["norm"] == norm)].set_index("label").reindex(labels)
            places = np.arange(len(labels)) + 0.75 * ((k + 0.5) / len(models) - 0.5)
            panel.hlines(places, rows["low"], rows["high"], color=_style(k)["color"], lw=1.5)
            panel.plot(rows["share"], places, ls="", ms=6, label=model, **_style(k))
            chance = {"label": "the same head, of all constituents"} if k + 1 == len(models) else {}
            panel.plot(rows["overall"], places, "|", color="black", ms=8, **chance)
        panel.set_title(f"by {norm}", fontsize=9)
        _name_rows(panel, labels, "percent of the label's constituents that its top head leads")
        panel.set_xlim(0, 100)
    panels[0].invert_yaxis()
    _legend_below(figure, panels[0])
    return figure


def calibration_figure(table: pd.DataFrame) -> Figure:
    """Draw whether probabilities are right, a column for each kind of parts: constituents, arcs and whole trees.

    Above: the share of right parts by their probability (reliability), before (hollow) and after the temperature was fitted.
    On the diagonal a probability is right. Bins of fewer than FEW_PARTS parts are left out. Below: the errors that are left if
    only the surest parts count, after the fit.

    table: the columns parser, kind, fitted, curve ("reliability" or "risk"), x, y, parts.
    """
    use_fonts(())
    figure, panels = plt.subplots(2, 3, figsize=(10.8, 7.4), layout="constrained")
    for column, (kind, title) in zip(panels.T, CALIBRATED.items()):
        column[0].plot([0, 1], [0, 1], color="black", lw=0.8)
        for k, (parser, rows) in enumerate(table[table["kind"] == kind].groupby("parser", sort=False)):
            colour, line = _style(k)["color"], "-" if k < len(COLOURS) else "--"
            for fitted, face in ((False, "none"), (True, colour)):
                points = rows.query("curve == 'reliability' and fitted == @fitted and parts >= @FEW_PARTS")
                style = {**_style(k), "mfc": face, "ms": 4.5, "ls": line, "lw": 1.2 if fitted else 0.6}
                column[0].plot(points["x"], points["y"], label=parser if fitted else None, alpha=0.85, **style)
            points = rows[(rows["curve"] == "risk") & rows["fitted"]]
            column[1].plot(100 * points["x"], 100 * points["y"], color=colour, ls=line, lw=1.4)
        column[0].set_title(title)
        column[0].set_xlabel("probability", fontsize=8)
        column[1].set_xlabel("coverage: percent of parts, the surest first", fontsize=8)
        column[1].set_ylim(bottom=0)
        for axis in column:
            axis.grid(alpha=0.3)
            axis.tick_params(labelsize=8)
    panels[0, 0].set_ylabel("share that is right (hollow: before the fit)", fontsize=8)
    panels[1, 0].set_ylabel("risk: percent of errors among them", fontsize=8)
    _legend_below(figure, panels[0, 0])
    return figure


def readings_figure(table: pd.DataFrame) -> Figure:
    """Draw the most probable readings of sentences as bars, a panel for each sentence.

    table: the columns sentence, reading (a text that says what differs from the first), and probability.
    """
    groups = list(table.groupby("sentence", sort=False))
    use_fonts(table["sentence"])
    size, heights = (10, 0.36 * len(table) + 0.75 * len(groups)), [len(rows) for _, rows in groups]
    figure, panels = plt.subplots(len(groups), figsize=size, squeeze=False, layout="constrained", height_ratios=heights)
    for axis, (sentence, rows) in zip(panels[:, 0], groups):
        axis.barh(range(len(rows)), 100 * rows["probability"], color=[BLUE] + [SKY] * (len(rows) - 1), height=0.7)
        for y, probability in enumerate(rows["probability"]):
            axis.text(100 * probability, y, f" {100 * probability:.1f} %", va="center", fontsize=8)
        axis.set_title(sentence, loc="left", fontsize=10)
        axis.set_yticks(range(len(rows)), rows["reading"], fontsize=8)
        axis.set(xlim=(0, 112 * rows["probability"].max()), xticks=[])
        axis.spines[["top", "right", "bottom"]].set_visible(False)
        axis.invert_yaxis()
    return figure


def span_triangle(
    axis: Axes,
    words: Sequence[str],
    values: Mapping[tuple[int, int], float],
    texts: Mapping[tuple[int, int], str] | None = None,
    outlined: Iterable[tuple[int, int]] = (),
    limit: float | None = None,
) -> None:
    """Draw a value of every span as a triangle of cells: words and fenceposts below, the whole sentence on top.

    Args:
        axis: where to draw.
        words: the words of the sentence.
        values: (start, end) -> the number that colours the cell: purple above 0, orange below. Other cells stay white.
        texts: (start, end) -> what is written in the cell; by default the value.
        outlined: the spans with a thick edge, for instance those of a tree.
        limit: the value with the strongest colour; None: the greatest size of a value.
    """
    outlined, limit = set(outlined), limit or max(map(abs, values.values()), default=0) or 1
    for (i, j), value in sorted(values.items(), key=lambda item: item[0] in outlined):  # thick edges on top
        x, y, thick, strength = (i + j) / 2, j - i, (i, j) in outlined, np.clip(value / limit, -1, 1)
        colour, ink = plt.get_cmap("PuOr")((1 + 0.8 * strength) / 2), "white" if strength > 0.6 else "black"
        edge, width = ("black", 2.6) if thick else (GREY, 0.5)
        axis.add_patch(Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, facecolor=colour, edgecolor=edge, lw=width))
        text = texts.get((i, j), "") if texts else f"{value:g}"
        axis.text(x, y, text, ha="center", va="center", fontsize=9, color=ink)
    for k, word in enumerate(words):
        axis.text(k + 0.5, 0.3, word, ha="center", va="center", fontsize=10)
    for k in range(len(words) + 1):
        axis.text(k, 0.02, str(k), ha="center", va="center", fontsize=7, color=GREY)
    axis.set(xlim=(-0.1, len(words) + 0.1), ylim=(-0.15, len(words) + 0.55))
    axis.axis("off")


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of label heads that `heads_figure` draws."""
    return table[table["measure"].isin(["f1", "label_f1", "label_f1_of_others", "on_head_word", "on_head_word_chance"])]


def side_by_side(
    count: int, width: float, height: float, words: Iterable[str] = (), **options
) -> tuple[Figure, np.ndarray]:
    """Return a figure (in inches) and its panels, side by side. words: those that it will show, in whatever script."""
    use_fonts(words)
    figure, panels = plt.subplots(1, count, figsize=(width, height), squeeze=False, layout="constrained", **options)
    return figure, panels[0]


def _heat_map(
    values: np.ndarray, rows: Sequence[str], label: str, size: tuple[float, float], words: Iterable[str], **colours
) -> tuple[Figure, Axes]:
    figure, (axis,) = side_by_side(1, *size, words=words)
    image = axis.imshow(values, aspect="auto", **colours)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    figure.colorbar(image, ax=axis, label=label, shrink=0.9)
    return figure, axis


def _name_rows(axis: Axes, names: Sequence[str], measure: str) -> None:
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xlabel(measure, fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", alpha=0.3)


def _legend_below(figure: Figure, panel: Axes) -> None:
    figure.legend(*panel.get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4, frameon=False)


def _style(k: int) -> dict:
    """Return the colour and the marker of the k-th group."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def _points(axis: Axes, rows: pd.DataFrame | None, column: str, y: float, style: dict) -> None:
    if rows is not None:
        axis.plot(rows[column], [y] * len(rows), **style)


def _order(values: np.ndarray) -> np.ndarray:
    """Return an order of the rows in which rows that are alike are neighbours."""
    if len(values) < 3:
        return np.arange(len(values))
    sizes = np.linalg.norm(values, axis=1, keepdims=True)
    return leaves_list(linkage(values / np.maximum(sizes, 1e-12), "average", optimal_ordering=True))


def _ribbon(left: float, right: float, size: float, colour: str) -> PathPatch:
    """Return a ribbon that leads from y = left at x = 0 to y = right at x = 1."""
    points = [
        (0, left), (0.5, left), (0.5, right), (1, right), (1, right + size), (0.5, right + size), (0.5, left + size),
        (0, left + size), (0, left),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    return PathPatch(Path(points, codes), facecolor=colour, alpha=0.45, edgecolor="none")
