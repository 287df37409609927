"""Figures show what their tables say: bars as long, cells as bright, ribbons as wide as the numbers."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lalkit import draw
from lalkit.draw.figures import span_triangle, sweep_figure
from lalkit.evaluation.statistics import mean_of_runs


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


TABLE = pd.DataFrame({"label": ["NP", "VP"], "head": [3, 5]})


def texts(figure):
    return {text.get_text() for text in figure.findobj(plt.Text) if text.get_text()}


def cut_off(figure):
    """Does anything that is drawn reach beyond the paper?"""
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0) < -0.02 or box.x1 > width + 0.02 or box.y1 > height + 0.02


@pytest.mark.parametrize("cells", [2, 11])
def test_a_sweep_has_its_points_intervals_and_curves(cells):
    rows = [(f"cell {k}", seed, e, 10 * k + seed * e) for k in range(cells) for seed in (1, 2, 3) for e in (1, 2)]
    curves = pd.DataFrame(rows, columns=["heads", "seed", "epoch", "f1"])
    runs = curves[curves["epoch"] == 2].assign(uas=None)
    figure = sweep_figure(runs, curves, ["heads"], ["f1", "uas"])
    above, below = figure.axes
    points = np.concatenate([part.get_offsets() for part in above.collections])
    assert sorted(points[:, 0]) == sorted(runs["f1"]) and not cut_off(figure)
    drawn = [line.get_ydata().tolist() for line in below.lines if len(line.get_xdata())]
    assert drawn == [[10 * k + 2 * epoch for epoch in (1, 2)] for k in range(cells)], "the means of the seeds"
    assert len(sweep_figure(runs, curves[:0], ["heads"], ["f1"]).axes) == 1
    interval = next(line for line in above.lines if [*line.get_ydata()] == [0, 0])
    assert interval.get_xdata() == pytest.approx(mean_of_runs(runs["f1"][:3])[1:])


def test_a_triangle_has_a_cell_for_every_span_that_is_given():
    figure, axis = plt.subplots()
    values = {(0, 1): 0.0, (1, 2): -2.0, (0, 2): 4.0}
    span_triangle(axis, ["Old", "bells"], values, {(0, 2): "S\n4", (1, 2): "NP"}, outlined=[(0, 2)])
    assert {"Old", "bells", "0", "1", "2", "S\n4", "NP"} == texts(figure)
    cells = {(patch.get_x() + 0.47, round(patch.get_y() + 0.44, 6)): patch for patch in axis.patches}
    assert set(cells) == {(0.5, 1), (1.5, 1), (1.0, 2)}
    assert [cells[place].get_linewidth() > 1 for place in ((0.5, 1), (1.5, 1), (1.0, 2))] == [False, False, True]
    assert not cut_off(figure)


def test_lessons_reach_the_figures_by_one_name_and_a_tree_loads_no_matplotlib():
    assert all(hasattr(draw, name) for name in draw.__all__)
    program = "import sys; from lalkit import draw; draw.draw_joint; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_figure_is_saved_beside_its_table(tmp_path):
    figure, (axis,) = draw.side_by_side(1, 2, 2)
    for table, first in ((TABLE, "label,head"), (TABLE.set_index("label"), "label,head"), (TABLE[["head"]], "head")):
        draw.save(figure, table, tmp_path / "v0.5")
        assert (tmp_path / "v0.5.csv").read_text(encoding="utf-8").startswith(first)
    assert (tmp_path / "v0.5.png").stat().st_size > 500
