"""The two figures of the studies that need more than a line of seaborn: words with shades, and grids of heads."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

# A panel of `head_grids`: its title, and the value of its darkest colour (None: the largest value).
PANELS = {
    "pos_kl": ("POS-KL (nats)", None),
    "ne_ratio": ("attention on names", None),
    "position": ("relative position", 1.0),
    "difference": ("ROUGE-1 points lost", None),
}


def word_heat(rows: Sequence[tuple[str, Sequence[str], Sequence[float]]]) -> Figure:
    """Draw weights as shades behind words, in rows of (name, words, weights). The largest weight of all rows is darkest."""
    longest, names = max(len(words) for _, words, _ in rows), [name for name, _, _ in rows]
    words = pd.DataFrame([[*words, *[""] * (longest - len(words))] for _, words, _ in rows], names)
    weights = pd.DataFrame([[*weights, *[0.0] * (longest - len(weights))] for *_, weights in rows], names)
    figure, axis = plt.subplots(figsize=(min(0.63 * longest + 1.4, 15), 0.36 * len(rows) + 0.6), layout="constrained")
    most = (weights.max(axis=None) or 1) / 0.85
    sns.heatmap(
        weights, vmin=0, vmax=most, cmap="Greys", annot=words, fmt="", annot_kws={"size": 7}, linewidths=0.5, cbar=False,
        xticklabels=False, ax=axis,
    )  # fmt: skip
    axis.tick_params(length=0, labelsize=8, rotation=0)
    return figure


def head_grids(table: pd.DataFrame) -> Figure:
    """Baan et al., figures 3, 4, 6 and 7: a row of panels for each run, with layers down and heads across.

    A star marks a significant loss, a cross a head that is cut out; an empty square was not measured. A loss is positive.
    The colours of a panel are the same in all rows. table: panel (the name of the run), head, the columns of `PANELS`, p_holm
    and cut.
    """
    parts, cut = table["head"].str.rsplit(".", n=1, expand=True), table["cut"].astype(bool)
    table = table.assign(block=parts[0], number=parts[1].astype(int), difference=-table["difference"])
    stars, runs = (table["p_holm"] < 0.05) & (table["difference"] > 0), table["panel"].unique()
    size = 2.75 * len(PANELS) + 0.5, 2.0 * len(runs) + 0.5
    figure, axes = plt.subplots(len(runs), len(PANELS), figsize=size, squeeze=False, layout="constrained")
    for column, (panel, (title, most)) in enumerate(PANELS.items()):
        values = table[panel].mask(cut)
        most, digits = most or max(values.max(), 1e-9), 1 if values.max() >= 10 else 2
        texts = values.map(f"{{:.{digits}f}}".format) + np.where(stars & (panel == "difference"), "*", "")
        cells = table.assign(value=values, text=texts.mask(values.isna(), "").mask(cut, "×"))
        for axis, (run, here) in zip(axes[:, column], cells.groupby("panel", sort=False)):
            grid, text = (here.pivot(index="block", columns="number", values=of) for of in ("value", "text"))
            order = here["block"].unique()
            grid, text = grid.reindex(order), text.reindex(order)
            last = run == runs[-1]
            sns.heatmap(grid, vmin=0, vmax=most, cmap="cividis", annot=text, fmt="", annot_kws={"size": 7}, ax=axis, cbar=last,
                        cbar_kws={"location": "bottom", "shrink": 0.85})  # fmt: skip
            for y, x in np.argwhere(text.to_numpy() == "×"):
                axis.text(x + 0.5, y + 0.5, "×", ha="center", va="center", fontsize=7)
            axis.set(
                facecolor="#E5E5E5", xlabel="", ylabel=run if column == 0 else "", title=title if run == runs[0] else ""
            )
            axis.tick_params(length=0, labelsize=8, rotation=0)
    return figure
