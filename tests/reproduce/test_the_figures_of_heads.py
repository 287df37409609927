"""figures/heads: the page and the figure belong to their table."""

from pathlib import Path

import pandas as pd
import pytest

from lalkit.draw.figures import drawn, heads_figure
from lalkit.draw.svg import chinese
from lalkit.reproduce.comparison import Compared
from lalkit.reproduce.comparison_report import page
from tests.draw.drawn import MOST, assert_drawn

FOLDER = Path(__file__).resolve().parents[2] / "figures" / "heads"
HEADS = sorted(path.parent for path in FOLDER.glob("*/table.csv"))


@pytest.mark.parametrize("folder", HEADS, ids=lambda folder: folder.name)
def test_the_page_and_the_figure_belong_to_their_table(folder):
    table, drawn_table = (
        pd.read_csv(folder / name, keep_default_na=False, na_values={"value": [""]})
        for name in ("table.csv", "heads.csv")
    )
    text = (folder / "heads.md").read_text(encoding="utf-8")
    assert page(Compared(table, pd.read_csv(folder / "tests.csv")), text.splitlines()[0][2:]) == text
    pd.testing.assert_frame_equal(drawn(table).reset_index(drop=True), drawn_table)
    # Without a font for Chinese, the labels are wider, and everything stands beside its place.
    most = 0.03 if folder.name == "chinese" and chinese() is None else MOST
    assert_drawn(heads_figure(drawn(table)), folder / "heads.png", most)
