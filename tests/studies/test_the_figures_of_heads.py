"""figures/heads: the page and the figure belong to their table."""

from pathlib import Path

import pandas as pd
import pytest

from lalkit.draw.figures import drawn, heads_figure
from lalkit.draw.svg import chinese
from lalkit.studies.label_heads import page
from lalkit.studies.label_heads import tests as make_tests
from tests.draw.drawn import MOST, assert_drawn

FOLDER = Path(__file__).resolve().parents[2] / "figures" / "heads"
HEADS = sorted(path.parent for path in FOLDER.glob("*/table.csv"))


@pytest.mark.parametrize("folder", HEADS, ids=lambda folder: folder.name)
def test_the_tests_the_page_and_the_figure_belong_to_their_table(folder):
    table = pd.read_csv(folder / "table.csv", keep_default_na=False, na_values={"value": [""]})
    tests = pd.read_csv(folder / "tests.csv")
    pd.testing.assert_frame_equal(make_tests(table), tests, check_dtype=False, rtol=1e-4)
    text = (folder / "heads.md").read_text(encoding="utf-8")
    assert page(table, tests, text.splitlines()[0][2:]) == text
    # Without a font for Chinese, the labels are wider, and everything stands beside its place.
    most = 0.03 if folder.name == "chinese" and chinese() is None else MOST
    assert_drawn(heads_figure(drawn(table)), folder / "heads.png", most)
