"""Figures 3 to 5 show what their tables say, and the page of pairs what it was given."""

import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lalkit.draw.companion_figures import attention_by_tag, erasure_boxes, permutation_lines, preference_page, word_heat


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_boxes_stand_at_their_quartiles():
    rows = [(d, s, r, 0.1, 0.2, m, 0.8, 0.9) for d in ("one", "two") for s, r, m in
            (("vanilla", "erased", 0.7), ("vanilla", "erased_random", 0.75), ("diversity", "erased", 0.3))]  # fmt: skip
    columns = ["data", "system", "ranking", "p5", "low", "median", "high", "p95"]
    figure = erasure_boxes(pd.DataFrame(rows, columns=columns))
    assert [axis.get_title() for axis in figure.axes] == ["one", "two"]
    axis = figure.axes[0]
    medians = {
        round(line.get_xdata().mean(), 6): line.get_ydata()[0] for line in axis.lines if line.get_linewidth() == 2
    }
    assert medians == {-0.2: 0.7, 0.2: 0.75, 0.8: 0.3}
    heights = [patch.get_path().get_extents() for patch in axis.patches]
    assert all((box.y0, box.y1) == (0.2, 0.8) for box in heights) and len(heights) == 3
    assert [t.get_text() for t in axis.get_xticklabels()] == ["vanilla", "diversity"]


def test_lines_leave_empty_bins_empty():
    rows = [
        ("d", s, b, n, 0.1, m, 0.9) for s, m in (("vanilla", 0.2), ("orthogonal", 0.6)) for b, n in (("a", 5), ("b", 0))
    ]
    table = pd.DataFrame(rows, columns=["data", "system", "bin", "n", "low", "median", "high"])
    table.loc[table["n"] == 0, ["low", "median", "high"]] = np.nan
    axis = permutation_lines(table).axes[0]
    drawn = np.array([line.get_ydata() for line in axis.lines if line.get_marker() in ("o", "^")], dtype=float)
    assert drawn[:, 0].tolist() == [0.2, 0.6] and np.isnan(drawn[:, 1]).all()
    assert [t.get_text() for t in axis.texts] == ["5", "5"]


def test_bars_and_marks_of_tags():
    rows = [
        ("d", s, t, a, w)
        for s, a0 in (("vanilla", 60), ("diversity", 20))
        for t, a, w in (("NOUN", a0, 70), (".", 100 - a0, 30))
    ]
    axis = attention_by_tag(pd.DataFrame(rows, columns=["data", "system", "tag", "attention", "words"])).axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["NOUN", "."]
    assert sorted(p.get_width() for p in axis.patches) == [20, 40, 60, 80]
    assert list(axis.lines[-1].get_xdata()) == [70, 30]


def test_heat_shades_by_weight():
    axis = word_heat([("vanilla", ["a", "b"], [0.9, 0.1]), ("other", ["a"], [1.0])]).axes[0]
    shades = [sum(patch.get_facecolor()[:3]) for patch in axis.patches]
    assert shades[1] > shades[0] > shades[2] and [t.get_text() for t in axis.texts] == ["a", "b", "a"]
    assert len(word_heat([("nothing", ["a"], [0.0])]).axes[0].patches) == 1


ITEMS = [{"item": i, "words": ["</script>", "word"], "question": "", "label": "good", "left": [0.9, 0.1], "right": [0.2, 0.8],
          "secret": "vanilla"} for i in (1, 2)]  # fmt: skip


def test_the_page_holds_its_items_and_nothing_that_tells_sides_apart():
    page = preference_page(ITEMS)
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert found == [{k: v for k, v in item.items() if k != "secret"} for item in ITEMS]
    assert "vanilla" not in page and "http" not in page


@pytest.mark.slow
def test_answers_are_saved_as_a_csv(open_page):
    page = open_page(preference_page(ITEMS))
    page.check("input[name='1,overall'][value=left]")
    page.check("input[name='2,correctness'][value=skip]")
    page.check("input[name='1,overall'][value=right]")  # a changed mind
    assert page.inner_text("#done") == "2 of 6 answered"
    page.fill("#judge", "Zoë B/2")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "answers-Zoë-B-2.csv"
    assert download.value.path().read_text() == "item,criterion,choice\n1,overall,right\n2,correctness,skip\n"
