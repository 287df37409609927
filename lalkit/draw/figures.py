"""Draw statistical figures with seaborn: sweeps and charts of spans. Tables in, matplotlib figures out.

Colours are seaborn's palette for colour-blind people. Heat maps can be read in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lalkit.draw.svg import use_fonts
from lalkit.evaluation.statistics import mean_of_runs

PALETTE = "colorblind"
NAMES = ["blue", "orange", "green", "red", "purple", "brown", "pink", "grey", "yellow", "sky"]
COLOURS = SimpleNamespace(**dict(zip(NAMES, sns.color_palette(PALETTE).as_hex())))  # such as COLOURS.blue


def sweep_figure(runs: pd.DataFrame, curves: pd.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> Figure:
    """Draw a sweep: above, a row for each cell, with a point for each seed and the mean with its 95 % interval; below, the scores
    on dev by epoch, as the mean of the seeds and a band from the least to the greatest.

    Each column of panels shows one measure.

    Args:
        runs: the columns of `axes`, and the measures in percent. Rows with the same values of `axes` are the seeds of one cell.
        curves: the columns of `axes`, seed, epoch, and the measures in percent; without rows, the panels below are left out.
        axes, measures: names of columns: of the grid, and scores such as f1. A measure that no run has is left out.
    """
    runs, curves = (table.assign(cell=table[list(axes)].astype(str).agg(", ".join, axis=1)) for table in (runs, curves))
    cells, measures = list(dict.fromkeys(runs["cell"])), [name for name in measures if runs[name].notna().any()]
    colours = dict(zip(cells, sns.color_palette(PALETTE, len(cells))))
    heights = [0.36 * len(cells) + 1.0, max(3.0, 0.2 * len(cells) + 0.6)][: 1 + (len(curves) > 0)]
    size, rows = (2.9 * len(measures) + 2, sum(heights)), len(heights)
    figure, panels = side_by_side(rows * len(measures), *size, words=cells, rows=rows, height_ratios=heights)
    panels = panels.reshape(len(heights), -1)
    for panel, measure in zip(panels[0], measures):
        style = {"data": runs, "x": measure, "y": "cell", "order": cells, "ax": panel}
        sns.stripplot(**style, hue="cell", palette=colours, jitter=False, size=7, alpha=0.8, legend=False)
        sns.pointplot(
            **style, errorbar=lambda values: mean_of_runs(values)[1:], err_kws={"lw": 1.2}, color="black", markers="|",
            markersize=12, linestyle="none",
        )  # fmt: skip
        panel.set(xlabel=f"{measure.upper()}, percent; mean and 95 %", ylabel="")
        panel.locator_params(axis="x", nbins=4)  # more numbers touch those of the next panel
        panel.grid(axis="x", alpha=0.3)
        panel.tick_params(axis="y", labelleft=panel is panels[0, 0])
    panels[0, 0].set_title(", ".join(axes), loc="left", fontsize=10)
    for panel, measure in zip(panels[-1] if len(curves) else (), measures):
        # The palette has ten colours: the lines of more cells are dashed.
        dashes = dict.fromkeys(cells, (3, 2)) | dict.fromkeys(cells[:10], "")
        sns.lineplot(
            curves, x="epoch", y=measure, hue="cell", style="cell", hue_order=cells, palette=colours, dashes=dashes,
            errorbar=("pi", 100), err_kws={"alpha": 0.15}, lw=1.2, ax=panel,
        )  # fmt: skip
        panel.set(ylabel="", title=f"{measure.upper()} on dev, percent")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
        lines = panel.get_legend_handles_labels()
        panel.get_legend().remove()
    if len(curves):
        figure.legend(*lines, title=", ".join(axes), fontsize=10, title_fontsize=10, loc="outside right lower")
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
        texts: (start, end) -> the text in the cell; by default the value.
        outlined: the spans with a thick edge, for instance those of a tree.
        limit: the value with the strongest colour; None: the greatest size of a value.
    """
    outlined, limit = set(outlined), limit or max(map(abs, values.values()), default=0) or 1
    for (i, j), value in sorted(values.items(), key=lambda item: item[0] in outlined):  # thick edges on top
        x, y, thick, strength = (i + j) / 2, j - i, (i, j) in outlined, np.clip(value / limit, -1, 1)
        colour, ink = plt.get_cmap("PuOr")((1 + 0.8 * strength) / 2), "white" if strength > 0.6 else "black"
        edge, width = ("black", 2.6) if thick else (COLOURS.grey, 0.5)
        axis.add_patch(Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, facecolor=colour, edgecolor=edge, lw=width))
        text = texts.get((i, j), "") if texts else f"{value:g}"
        axis.text(x, y, text, ha="center", va="center", fontsize=10, color=ink)
    for k, word in enumerate(words):
        axis.text(k + 0.5, 0.3, word, ha="center", va="center", fontsize=10)
    for k in range(len(words) + 1):
        axis.text(k, 0.02, str(k), ha="center", va="center", fontsize=10, color=COLOURS.grey)
    axis.set(xlim=(-0.1, len(words) + 0.1), ylim=(-0.15, len(words) + 0.55))
    axis.axis("off")


def save(figure: Figure, table: pd.DataFrame, path: Path) -> None:
    """Save a figure as PATH.png, and beside it the table that it shows as PATH.csv, with the names of its rows if it has any."""
    figure.savefig(f"{path}.png", dpi=150)
    table.to_csv(f"{path}.csv", index=not isinstance(table.index, pd.RangeIndex))


def side_by_side(
    count: int, width: float, height: float, words: Iterable[str] = (), rows: int = 1, **options
) -> tuple[Figure, np.ndarray]:
    """Return a figure (width, height in inches) and its panels: `count`, or more to fill all rows. words: for fonts."""
    use_fonts(words)
    size: dict = {"figsize": (width, height), "squeeze": False, "layout": "constrained"}
    figure, panels = plt.subplots(rows, -(-count // rows), **size, **options)
    return figure, panels.ravel()
