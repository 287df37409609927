"""Label heads under controls: the table of `lalkit heads` in, one figure out."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lalkit.draw import fonts
from lalkit.draw.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

TRAINED, REMOVED = "as trained", ("head at its mean", "head out")
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = "os^Dv<>P"  # one more than colours, so that the eighth system is not drawn as the first


def heads_figure(table: pd.DataFrame) -> Figure:
    """Four panels. How far F1 falls under each control at test, a point a seed; how far the F1 of a label falls with its head at
    its mean, and with its head out (hollow: of all other labels); how often the label's head attends most to the span's head
    word, beside chance (bar). table: system, seed, what, label, measure, value."""
    systems = _names(table[table["what"] != TRAINED], "system")  # others have no heads
    labels = [name for name in _names(table, "label") if name]
    fonts.use(labels)
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
