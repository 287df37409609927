"""Figures of label heads and errors: tables in, matplotlib figures out. Okabe and Ito's colours; heat readable in grey.

Label heads under controls: the table of `lalkit heads` in, one figure out.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from scipy.cluster.hierarchy import leaves_list, linkage

from lalkit.draw import svg as fonts

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#7F7F7F",
)  # fmt: skip
HEAT = "cividis"
NOTHING = "nothing"


def head_bars(
    table: pd.DataFrame, value: str, labels: Sequence[str], top: int = 8, beside: str | None = None
) -> Figure:
    """Figure 8: for each label its `top` heads by `value`, with intervals (low, high). table: label, head, `value`, low, high;
    beside: a column drawn as a mark, such as the head's share of all spans."""
    figure, axes = _subplots(
        1,
        len(labels),
        figsize=(2.3 * len(labels) + 0.6, 0.27 * top + 1.3),
        squeeze=False,
        layout="constrained",
        words=labels,
    )
    for axis, label in zip(axes[0], labels):
        some = table[table["label"] == label].nlargest(top, value).reset_index(drop=True)
        axis.barh(some.index, some[value], color=BLUE, height=0.7)
        axis.hlines(some.index, some["low"], some["high"], color="black", lw=1)
        if beside:
            axis.plot(some[beside], some.index, "D", color=ORANGE, ms=5, label=f"{beside} (all spans)")
        axis.set_yticks(some.index, [f"head {h}" for h in some["head"]], fontsize=8)
        axis.invert_yaxis()
        axis.set_title(f"{label} ({some['spans'].iloc[0]:,} spans)" if "spans" in some else label, fontsize=9)
        axis.set_xlabel(value, fontsize=8)
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(axis="x", alpha=0.3)
    if beside:
        figure.legend(*axes[0][-1].get_legend_handles_labels(), fontsize=7, loc="outside lower right", frameon=False)
    return figure


def label_by_head(table: pd.DataFrame, value: str, title: str = "") -> Figure:
    """A heat map, labels by heads, both in the order of a clustering so that structure shows. table: label, head, `value`;
    a head that is missing for a label counts 0."""
    grid = table.pivot_table(index="label", columns="head", values=value, fill_value=0.0)
    values = grid.to_numpy(float)
    rows, columns = _order(values), _order(values.T)
    figure, axis = _subplots(
        figsize=(min(0.16 * values.shape[1] + 2.2, 13), 0.24 * values.shape[0] + 1.6),
        layout="constrained",
        words=[*grid.index],
    )
    image = axis.imshow(values[np.ix_(rows, columns)], aspect="auto", cmap=HEAT)
    axis.set_yticks(range(len(rows)), grid.index[rows], fontsize=8)
    axis.set_xticks(range(len(columns)), grid.columns[columns], fontsize=6, rotation=90)
    axis.set(xlabel="label head", title=title)
    figure.colorbar(image, ax=axis, label=value, shrink=0.9)
    return figure


def attention_heat(
    attention: np.ndarray, words: Sequence[str], heads: Sequence[int], marks: Sequence[int] = ()
) -> Figure:
    """What heads attend to: rows heads, columns START, words, STOP; marks: columns drawn in a frame (the root, say)."""
    shown = ["START", *words, "STOP"]
    figure, axis = _subplots(
        figsize=(min(0.42 * len(shown) + 1.8, 16), 0.28 * len(heads) + 1.4), layout="constrained", words=words
    )
    image = axis.imshow(attention[list(heads)], aspect="auto", cmap="Greys", vmin=0, vmax=max(attention.max(), 1e-9))
    axis.set_xticks(range(len(shown)), shown, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(range(len(heads)), [f"head {h}" for h in heads], fontsize=8)
    for column in marks:
        axis.axvspan(column - 0.5, column + 0.5, fill=False, edgecolor=RED, lw=1.5)
    figure.colorbar(image, ax=axis, label="attention", shrink=0.9)
    return figure


def error_flow(table: pd.DataFrame, most: int = 12) -> Figure:
    """Wrong spans: from the gold label (left) to what the parse has instead (right), as wide as they are many; 'nothing' on
    the left is an extra span, on the right a missing one. table: as `interpret.errors.errors` makes it, arcs left out here.
    Labels beyond the `most` frequent are one, 'others'."""
    spans = table[~table["class"].str.contains("arc")]
    sides = [spans[c].fillna(NOTHING) for c in ("gold_label", "label")]
    frequent = set(pd.concat(sides).value_counts().drop(NOTHING, errors="ignore").index[:most]) | {NOTHING}
    sides = [side.where(side.isin(frequent), "others") for side in sides]
    flows = pd.DataFrame({"gold": sides[0].to_numpy(), "parse": sides[1].to_numpy()}).value_counts()
    figure, axis = _subplots(figsize=(7, max(0.3 * len(frequent) + 2, 4)), layout="constrained", words=frequent)
    gap = 0.02 * flows.sum()
    places = [_stack(flows.groupby(level=side).sum(), gap) for side in (0, 1)]
    reached = [dict(places[0][0]), dict(places[1][0])]
    for (gold, parse), count in flows.sort_index().items():
        left, right = reached[0][gold], reached[1][parse]
        axis.add_patch(_ribbon(left, right, count, BLUE if NOTHING not in (gold, parse) else GREY))
        reached[0][gold], reached[1][parse] = left + count, right + count
    for x, (starts, sizes), align in ((0, places[0], "right"), (1, places[1], "left")):
        for name, start in starts.items():
            axis.plot([x, x], [start, start + sizes[name]], color="black", lw=3, solid_capstyle="butt")
            axis.text(
                x + (0.02 if x else -0.02),
                start + sizes[name] / 2,
                f"{name} ({sizes[name]})",
                ha=align,
                va="center",
                fontsize=8,
            )
    top = max(max(starts[n] + sizes[n] for n in starts) for starts, sizes in places)
    axis.set(xlim=(-0.35, 1.35), ylim=(top * 1.02, -top * 0.02))
    axis.text(0, -top * 0.04, "gold", ha="center", fontsize=9)
    axis.text(1, -top * 0.04, "parse", ha="center", fontsize=9)
    axis.axis("off")
    return figure


def seed_points(table: pd.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> Figure:
    """A sweep: a row per cell, a point per seed, a stroke at their mean; a panel per measure. table: the axes' columns, seed,
    and the measures in percent."""
    cells = table[list(axes)].astype(str).agg(", ".join, axis=1)
    names = list(dict.fromkeys(cells))
    figure, panels = plt.subplots(
        1, len(measures), figsize=(3.1 * len(measures) + 1.6, 0.38 * len(names) + 1.2), squeeze=False, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for panel, measure, colour in zip(panels[0], measures, (BLUE, RED, GREEN)):
        for place, name in enumerate(names):
            values = table.loc[cells == name, measure]
            panel.plot(values, [place] * len(values), "o", color=colour, alpha=0.75, ms=7)
            panel.plot(values.mean(), place, "|", color="black", ms=20)
        panel.set_xlabel(f"{measure.upper()}, percent")
        panel.margins(x=0.15)
        panel.grid(axis="x", alpha=0.3)
    panels[0][0].set_yticks(range(len(names)), names)
    panels[0][0].set_ylim(len(names) - 0.5, -0.5)
    panels[0][0].set_title(", ".join(axes), loc="left", fontsize=9)
    return figure


def _subplots(*shape: int, words: Sequence[str] = (), **options):
    """words: those that the figure will show, in whatever script."""
    fonts.use_fonts(words)
    return plt.subplots(*shape, **options)


def _order(values: np.ndarray) -> np.ndarray:
    """Rows, like beside like."""
    if len(values) < 3:
        return np.arange(len(values))
    sizes = np.linalg.norm(values, axis=1, keepdims=True)
    return leaves_list(linkage(values / np.maximum(sizes, 1e-12), "average", optimal_ordering=True))


def _stack(sizes: pd.Series, gap: float) -> tuple[dict[str, float], dict[str, int]]:
    """({name: where it begins}, {name: size}), the largest first, 'nothing' last."""
    order = sorted(sizes.index, key=lambda name: (name == NOTHING, -sizes[name]))
    starts, reached = {}, 0.0
    for name in order:
        starts[name] = reached
        reached += sizes[name] + gap
    return starts, {name: int(sizes[name]) for name in order}


def _ribbon(left: float, right: float, size: float, colour: str) -> PathPatch:
    points = [
        (0, left), (0.5, left), (0.5, right), (1, right), (1, right + size), (0.5, right + size), (0.5, left + size),
        (0, left + size), (0, left),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    return PathPatch(Path(points, codes), facecolor=colour, alpha=0.45, edgecolor="none")


TRAINED, REMOVED = "as trained", ("head at its mean", "head out")
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = "os^Dv<>P"  # one more than colours, so that the eighth system is not drawn as the first


def heads_figure(table: pd.DataFrame) -> Figure:
    """Four panels. How far F1 falls under each control at test, a point a seed; how far the F1 of a label falls with its head at
    its mean, and with its head out (hollow: of all other labels); how often the label's head attends most to the span's head
    word, beside chance (bar). table: system, seed, what, label, measure, value."""
    systems = _names(table[table["what"] != TRAINED], "system")  # others have no heads
    labels = [name for name in _names(table, "label") if name]
    fonts.use_fonts(labels)
    controls = [name for name in _names(table[table["measure"] == "f1"], "what") if name != TRAINED]
    height = 1.9 + 0.24 * max(len(controls), len(labels)) * max(1, len(systems)) ** 0.5
    figure, axes = plt.subplots(1, 4, figsize=(14, height), layout="constrained")
    for k, system in enumerate(systems):
        own = table[table["system"] == system]
        style = {
            "color": COLOURS[k % len(COLOURS)],
            "marker": MARKERS[k % len(MARKERS)],
            "ls": "",
            "ms": 5.5,
            "alpha": 0.8,
        }
        hollow, shift = {**style, "mfc": "none"}, 0.7 * ((k + 0.5) / len(systems) - 0.5)
        trained = own[own["what"] == TRAINED].set_index(["measure", "label", "seed"])["value"]
        axes[0].plot([], [], label=system, **style)
        for y, control in enumerate(controls):
            _points(axes[0], _change(own, trained, control, "", "f1"), y + shift, style)
        for y, label in enumerate(labels):
            for axis, what in zip(axes[1:3], REMOVED):
                _points(axis, _change(own, trained, what, label, "label_f1_of_others"), y + shift, hollow)
                _points(axis, _change(own, trained, what, label, "label_f1"), y + shift, style)
            _points(axes[3], _values(own, label, "on_head_word"), y + shift, style)
    for y, label in enumerate(labels):
        chance = table[(table["label"] == label) & (table["measure"] == "on_head_word_chance")]["value"]
        axes[3].plot([chance.mean()], [y], "|", color="black", ms=22, mew=2)
    _finish(axes[0], controls, "F1, change in points: contexts, or A,\nchanged at test", zero=True)
    for axis, what in zip(axes[1:3], REMOVED):
        _finish(axis, labels, f"F1 of the label, change in points, {what}\n(hollow: of all other labels)", zero=True)
    _finish(axes[3], labels, "percent of spans whose most attended word\nis the head word (bar: chance)")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    return figure


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that the figure draws."""
    return table[table["measure"].isin(["f1", "label_f1", "label_f1_of_others", "on_head_word", "on_head_word_chance"])]


def _names(table: pd.DataFrame, column: str) -> list[str]:
    return list(dict.fromkeys(table[column]))


def _values(own: pd.DataFrame, label: str, measure: str) -> np.ndarray:
    return own[(own["label"] == label) & (own["measure"] == measure)]["value"].to_numpy(float)


def _change(own: pd.DataFrame, trained: pd.Series, what: str, label: str, measure: str) -> np.ndarray:
    """[seeds]: under `what`, less as trained."""
    rows = own[(own["what"] == what) & (own["label"] == label) & (own["measure"] == measure)]
    return np.array([row.value - trained[measure, label, row.seed] for row in rows.itertuples()])


def _points(axis: Axes, values: np.ndarray, y: float, style: dict) -> None:
    axis.plot(values, [y] * len(values), **style)


def _finish(axis: Axes, names: list[str], says: str, zero: bool = False) -> None:
    if zero:
        axis.axvline(0, color="black", lw=0.8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlabel(says, fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", alpha=0.3)
    for y in range(1, len(names)):
        axis.axhline(y - 0.5, color="#DDDDDD", lw=0.6)
