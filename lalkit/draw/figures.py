"""Draw statistical figures with seaborn: label heads, errors, sweeps, calibration. Tables in, matplotlib figures out.

Colours are seaborn's palette for colour-blind people. Heat maps can be read in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from scipy.cluster.hierarchy import leaves_list, linkage

from lalkit.draw.svg import use_fonts
from lalkit.evaluation.statistics import mean_of_runs

PALETTE = "colorblind"
BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY, YELLOW, SKY = sns.color_palette(PALETTE).as_hex()
HEAT = "cividis"
NOTHING = "nothing"  # in the flow of errors: what a missing span becomes, and where an extra span comes from
TRAINED, REMOVED = "as trained", ("head at its mean", "head out")
FEW_CELLS = 8  # the lines of more runs would hide each other
FEW_PARTS = 10  # a share of fewer parts says little, and is not drawn
CALIBRATED = {"span": "constituents", "arc": "arcs", "tree": "whole trees"}  # kinds of parts, and their titles
MARKERS = ["o", "s", "^", "D", "v", "<", "P", ">", "X", "p"]


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
        sns.barplot(
            rows, x=value, y=[f"head {head}" for head in rows["head"]], color=BLUE, width=0.7, errorbar=None, ax=axis
        )
        axis.hlines(rows.index, rows["low"], rows["high"], color="black", lw=1)
        if beside:
            axis.plot(rows[beside], rows.index, "D", color=ORANGE, ms=5, label=f"{beside} (all spans)")
        axis.set_title(f"{label} ({rows['spans'].iloc[0]:,} spans)" if "spans" in rows else label, fontsize=9)
        _small_labels(axis, value)
    if beside:
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, fontsize=7, loc="outside lower right", frameon=False)
    return figure


def label_by_head(table: pd.DataFrame, value: str, title: str = "") -> Figure:
    """Draw labels by label heads as a heat map. A clustering orders both, so that similar rows and columns are neighbours.

    table: the columns label, head and `value`. A label head that a label does not have counts as 0.
    """
    grid = table.pivot_table(index="label", columns="head", values=value, fill_value=0.0).astype(float)
    grid = grid.iloc[_order(grid.to_numpy()), _order(grid.to_numpy().T)]
    figure, (axis,) = side_by_side(1, min(0.16 * grid.shape[1] + 2.2, 13), 0.24 * len(grid) + 1.6, words=grid.index)
    sns.heatmap(grid, cmap=HEAT, ax=axis, xticklabels=1, yticklabels=1, cbar_kws={"label": value, "shrink": 0.9})
    axis.tick_params(axis="x", labelsize=6, rotation=90)
    axis.tick_params(axis="y", labelsize=8, rotation=0)
    axis.set(xlabel="label head", ylabel="", title=title)
    return figure


def attention_heat(
    attention: np.ndarray, words: Sequence[str], heads: Sequence[int], marks: Sequence[int] = ()
) -> Figure:
    """Draw what label heads attend to as a heat map: a row for each of `heads`, columns START, words, STOP.

    attention: [label heads, words + 2]. marks: columns to draw in a frame, such as that of the root.
    """
    names, rows = ["START", *words, "STOP"], [f"head {head}" for head in heads]
    figure, (axis,) = side_by_side(1, min(0.42 * len(names) + 1.8, 16), 0.28 * len(heads) + 1.4, words=words)
    colours = {"cmap": "Greys", "vmin": 0, "vmax": max(attention.max(), 1e-9)}
    bar = {"label": "attention", "shrink": 0.9}
    sns.heatmap(attention[list(heads)], xticklabels=names, yticklabels=rows, cbar_kws=bar, ax=axis, **colours)
    axis.set_xticks(axis.get_xticks(), names, rotation=60, ha="right", fontsize=8)
    axis.tick_params(axis="y", labelsize=8, rotation=0)
    for column in marks:
        axis.axvspan(column, column + 1, fill=False, edgecolor=RED, lw=1.5)
    return figure


def error_flow(table: pd.DataFrame, most: int = 12) -> Figure:
    """Draw wrong spans as ribbons from the gold label (left) to the label of the parse (right).

    The width of a ribbon is the number of spans.

    'nothing' on the left stands for an extra span, on the right for a missing span. Wrong arcs are left out.

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


def sweep_figure(runs: pd.DataFrame, curves: pd.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> Figure:
    """Draw a sweep: above, a row for each cell, with a point for each seed and the mean with its 95 % interval; below, the scores
    on dev by epoch.

    A column of panels is a measure. A curve is a run; with more cells than FEW_CELLS, it is the mean over the seeds of a cell.

    Args:
        runs: the columns of `axes`, and the measures in percent. Rows with the same values of `axes` are the seeds of one cell.
        curves: the columns of `axes`, seed, epoch, and the measures in percent; without rows, the panels below are left out.
        measures: such as f1, uas and las. One that no run has is left out.
    """
    runs, curves = (table.assign(cell=table[list(axes)].astype(str).agg(", ".join, axis=1)) for table in (runs, curves))
    cells, measures = list(dict.fromkeys(runs["cell"])), [name for name in measures if runs[name].notna().any()]
    colours = dict(zip(cells, sns.color_palette(PALETTE, len(cells))))
    heights = [0.36 * len(cells) + 1.0, max(3.0, 0.2 * len(cells) + 0.6)][: 1 + (len(curves) > 0)]
    use_fonts(cells)
    figure, panels = plt.subplots(
        len(heights), len(measures), figsize=(3.4 * len(measures) + 2.2, sum(heights)), squeeze=False, layout="constrained",
        height_ratios=heights,
    )  # fmt: skip
    for panel, measure in zip(panels[0], measures):
        style = {"data": runs, "x": measure, "y": "cell", "order": cells, "ax": panel}
        sns.stripplot(**style, hue="cell", palette=colours, jitter=False, size=7, alpha=0.8, legend=False)
        sns.pointplot(
            **style, errorbar=lambda values: mean_of_runs(values)[1:], err_kws={"lw": 1.2}, color="black", markers="|",
            markersize=12, linestyle="none",
        )  # fmt: skip
        panel.set(xlabel=f"{measure.upper()}, percent; mean and 95 %", ylabel="")
        panel.locator_params(axis="x", nbins=5)  # more numbers touch those of the next panel
        panel.grid(axis="x", alpha=0.3)
        if panel is not panels[0, 0]:
            panel.set_yticklabels([])
    panels[0, 0].set_title(", ".join(axes), loc="left", fontsize=9)
    few, dashes = len(cells) <= FEW_CELLS, [""] * 10 + [(3, 2)] * len(cells)  # the palette has ten colours
    for panel, measure in zip(panels[1] if len(curves) else (), measures):
        each = {"units": "seed", "estimator": None} if few else {"errorbar": None}
        sns.lineplot(
            curves, x="epoch", y=measure, hue="cell", style="cell", hue_order=cells, style_order=cells, palette=colours,
            markers=MARKERS[: len(cells)] if few else False, dashes=False if few else dashes[: len(cells)], lw=1, ms=5,
            alpha=0.8, ax=panel, **each,
        )  # fmt: skip
        panel.set(ylabel="", title=f"{measure.upper()} on dev, percent{'' if few else ', mean of seeds'}")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
        lines = panel.get_legend_handles_labels()
        panel.get_legend().remove()
    if len(curves):
        figure.legend(*lines, title=", ".join(axes), fontsize=8, title_fontsize=8, loc="outside right lower")
    return figure


def heads_figure(table: pd.DataFrame) -> Figure:
    """Draw how much label heads matter, in four panels; every point is one seed.

    The first panel shows how much F1 changes under each control at test. The next two show how much the F1 of a label changes
    with its label head at its mean, and without its label head; crosses are the F1 of all other labels. The last panel shows how
    often the label's head attends most to the span's head word, and a bar for chance.

    table: the columns system, seed, what, label, measure and value, as `lalkit study heads` writes them.
    """
    keys = ["system", "seed", "label", "measure"]
    table = table.merge(table.loc[table["what"] == TRAINED, [*keys, "value"]], "left", keys, suffixes=("", "_trained"))
    table["change"] = table["value"] - table["value_trained"]
    systems = list(table[table["what"] != TRAINED]["system"].unique())  # the others have no label heads
    labels = [label for label in table["label"].unique() if label]
    controls = [what for what in table[table["measure"] == "f1"]["what"].unique() if what != TRAINED]
    height = 1.9 + (0.2 + 0.1 * len(systems)) * max(len(controls), len(labels))  # a lane for each system
    figure, panels = side_by_side(4, 14, height, words=labels)
    table = table[table["system"].isin(systems)]
    changed = table[(table["label"] == "") & (table["what"] != TRAINED) & (table["measure"] == "f1")]
    _strips(panels[0], changed, "change", "what", controls, systems)
    for axis, removed in zip(panels[1:3], REMOVED):
        rows = table[table["what"] == removed]
        _strips(axis, rows[rows["measure"] == "label_f1_of_others"], "change", "label", labels, systems, "x")
        _strips(axis, rows[rows["measure"] == "label_f1"], "change", "label", labels, systems)
    _strips(panels[3], table[table["measure"] == "on_head_word"], "value", "label", labels, systems)
    chance = table[table["measure"] == "on_head_word_chance"].groupby("label")["value"].mean()
    panels[3].plot(chance.reindex(labels), range(len(labels)), "|", color="black", ms=22, mew=2)
    captions = [
        "F1, change in points: contexts, or A,\nchanged at test",
        *(f"F1 of the label, change in points, {what}\n(crosses: of all other labels)" for what in REMOVED),
        "percent of spans whose most attended word\nis the head word (bar: chance)",
    ]
    for axis in panels[:3]:
        axis.axvline(0, color="black", lw=0.8)
    for axis, names, caption in zip(panels, (controls, labels, labels, labels), captions):
        _small_labels(axis, caption)
        for y in range(1, len(names)):
            axis.axhline(y - 0.5, color="#DDDDDD", lw=0.6)
    colours = sns.color_palette(PALETTE, len(systems))
    marks = [plt.Line2D([], [], ls="", marker="o", color=colour) for colour in colours]
    figure.legend(marks, systems, fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _strips(axis: Axes, rows: pd.DataFrame, x: str, y: str, order: list, systems: list, marker: str = "o") -> None:
    """Draw a point for each row: a line of the panel for each value of `order`, and a lane in it for each system."""
    sns.stripplot(
        rows, x=x, y=y, hue="system", order=order, hue_order=systems, palette=sns.color_palette(PALETTE, len(systems)),
        dodge=len(systems) > 1, jitter=False, size=5.5, marker=marker, linewidth=1.2 if marker == "x" else 0, alpha=0.8,
        legend=False, ax=axis,
    )  # fmt: skip


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
            colour = sns.color_palette(PALETTE)[k]
            panel.hlines(places, rows["low"], rows["high"], color=colour, lw=1.5)
            panel.plot(rows["share"], places, ls="", ms=6, label=model, color=colour, marker=MARKERS[k])
            chance = {"label": "the same head, of all constituents"} if k + 1 == len(models) else {}
            panel.plot(rows["overall"], places, "|", color="black", ms=8, **chance)
        panel.set_title(f"by {norm}", fontsize=9)
        panel.set_yticks(range(len(labels)), labels)
        _small_labels(panel, "percent of the label's constituents that its top head leads")
        panel.set_xlim(0, 100)
    panels[0].invert_yaxis()
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    return figure


def calibration_figure(table: pd.DataFrame) -> Figure:
    """Draw whether probabilities are right, a column for each kind of parts: constituents, arcs and whole trees.

    Above: the share of right parts by their probability (reliability), before (thin, dotted) and after the temperature was
    fitted. On the diagonal a probability is right. Bins of fewer than FEW_PARTS parts are left out. Below: the errors that are
    left if only the parts with the highest probabilities count, after the fit.

    table: the columns parser, kind, fitted, curve ("reliability" or "risk"), x, y, parts.
    """
    use_fonts(())
    figure, panels = plt.subplots(2, 3, figsize=(10.8, 7.4), layout="constrained")
    parsers = list(table["parser"].unique())
    style = {"hue": "parser", "hue_order": parsers, "palette": sns.color_palette(PALETTE, len(parsers)), "ms": 5}
    style |= {"style": "parser", "style_order": parsers, "dashes": False, "errorbar": None, "estimator": None}
    markers = dict(zip(parsers, MARKERS * len(parsers)))
    for column, (kind, title) in zip(panels.T, CALIBRATED.items()):
        rows, (above, below) = table[table["kind"] == kind], column
        above.plot([0, 1], [0, 1], color="black", lw=0.8)
        shown = rows[(rows["curve"] == "reliability") & (rows["parts"] >= FEW_PARTS)]
        for fitted, line in ((False, {"lw": 0.7, "ls": ":", "alpha": 0.6}), (True, {"lw": 1.3})):
            sns.lineplot(shown[shown["fitted"] == fitted], x="x", y="y", markers=markers, ax=above, **style, **line)
            handles = above.get_legend_handles_labels()
            above.get_legend().remove()
        risk = rows.loc[(rows["curve"] == "risk") & rows["fitted"], ["parser", "x", "y"]]
        risk[["x", "y"]] *= 100
        sns.lineplot(risk, x="x", y="y", markers=False, legend=False, lw=1.4, ax=below, **style)
        above.set(title=title, xlabel="probability", ylabel="")
        below.set(xlabel="coverage: percent of parts, highest probability first", ylabel="", ylim=(0, None))
        for axis in column:
            axis.grid(alpha=0.3)
            axis.tick_params(labelsize=8)
            axis.xaxis.label.set_size(8)
    panels[0, 0].set_ylabel("share that is right (dotted: before the fit)", fontsize=8)
    panels[1, 0].set_ylabel("risk: percent of errors among them", fontsize=8)
    figure.legend(handles[0][-len(parsers) :], parsers, fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    return figure


def readings_figure(table: pd.DataFrame) -> Figure:
    """Draw the most probable readings of sentences as bars, a panel for each sentence.

    table: the columns sentence, reading (a text that says how it differs from the first), and probability.
    """
    groups = list(table.groupby("sentence", sort=False))
    use_fonts(table["sentence"])
    size, heights = (10, 0.36 * len(table) + 0.75 * len(groups)), [len(rows) for _, rows in groups]
    figure, panels = plt.subplots(len(groups), figsize=size, squeeze=False, layout="constrained", height_ratios=heights)
    for axis, (sentence, rows) in zip(panels[:, 0], groups):
        places, percent = [str(k) for k in range(len(rows))], 100 * rows["probability"]
        sns.barplot(
            x=percent, y=places, hue=places, palette=[BLUE] + [SKY] * (len(rows) - 1), width=0.7, legend=False, ax=axis
        )
        for y, value in enumerate(percent):
            axis.text(value, y, f" {value:.1f} %", va="center", fontsize=8)
        axis.set_title(sentence, loc="left", fontsize=10)
        axis.set_yticks(range(len(rows)), rows["reading"], fontsize=8)
        axis.set(xlim=(0, 112 * rows["probability"].max()), xticks=[], xlabel="", ylabel="")
        sns.despine(ax=axis, bottom=True)
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
    """Return a figure (in inches) and its panels, side by side. words: those that it will show, in any script."""
    use_fonts(words)
    figure, panels = plt.subplots(1, count, figsize=(width, height), squeeze=False, layout="constrained", **options)
    return figure, panels[0]


def _small_labels(axis: Axes, measure: str) -> None:
    axis.set_xlabel(measure, fontsize=8)
    axis.set_ylabel("")
    axis.tick_params(labelsize=8)
    axis.grid(axis="x", alpha=0.3)


def _order(values: np.ndarray) -> np.ndarray:
    """Return an order of the rows in which similar rows are neighbours."""
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
