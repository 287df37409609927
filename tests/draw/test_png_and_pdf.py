"""PNG and PDF show what the SVG shows. Chinese is drawn in a font that has its characters, or a warning says what to install."""

import warnings
from xml.etree import ElementTree

import pytest
from matplotlib import rcParams
from matplotlib.patches import PathPatch, Polygon
from matplotlib.text import Text

from lalkit.draw import draw_joint, draw_tree, explorer
from lalkit.draw import svg as fonts
from lalkit.draw.figures import attention_heat
from lalkit.draw.svg import NARROWER, as_figure, redraw
from lalkit.treebank.corpora import load
from tests.draw.explorer_data import explorer_data
from tests.draw.pictures import SVG
from tests.draw.sentences import random_sentence


@pytest.fixture(autouse=True)
def own_settings():
    before = rcParams["font.family"]
    yield
    rcParams["font.family"] = before
    fonts.chinese.cache_clear()


@pytest.fixture(scope="module")
def chinese():
    return max(load("sample-zh", "train").sentences, key=len)


@pytest.mark.parametrize("seed", range(4))
def test_every_text_line_and_arrow_is_where_the_svg_has_it(seed, monkeypatch):
    monkeypatch.setattr(fonts, "chinese", lambda: "DejaVu Sans")
    drawing = draw_joint(random_sentence(3 + 4 * seed, seed))
    root, figure = ElementTree.fromstring(drawing), as_figure(drawing)
    wanted = [
        ("".join([t.text or "", *(c.tail or "" for c in t)]), float(t.get("x")), float(t.get("y")), float(t.get("font-size")))
        for t in root.iter(f"{SVG}text")
    ]  # fmt: skip
    (axis,) = figure.axes
    found = [(t.get_text(), *t.get_position(), t.get_size() / NARROWER) for t in axis.texts]
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in wanted])
    assert len(axis.findobj(PathPatch)) == sum(1 for _ in root.iter(f"{SVG}path"))
    assert len(axis.findobj(Polygon)) == sum(1 for _ in root.iter(f"{SVG}polygon"))
    assert axis.get_xlim() == (0, float(root.get("width"))) and axis.get_ylim() == (float(root.get("height")), 0)


def test_a_line_goes_through_the_points_of_its_path():
    line = "M1 2 H5 Q6 2 6 3 V9 L7 10"
    drawing = (
        f'<svg xmlns="{SVG[1:-1]}" width="20" height="20"><path d="{line}" stroke="#000000" stroke-width="1"/></svg>'
    )
    (patch,) = as_figure(drawing).axes[0].findobj(PathPatch)
    assert patch.get_path().vertices.tolist() == [[1, 2], [5, 2], [6, 2], [6, 3], [6, 9], [7, 10]]
    assert patch.get_path().codes.tolist() == [1, 2, 3, 3, 2, 2]


def test_forms():
    drawing = draw_tree(random_sentence(5, 1))
    assert redraw(drawing, "png").startswith(b"\x89PNG") and redraw(drawing, "pdf").startswith(b"%PDF")


def test_without_a_font_for_chinese_a_warning_says_what_to_install(monkeypatch, chinese):
    monkeypatch.setattr(fonts, "chinese", lambda: None)
    for make in (
        lambda: as_figure(draw_joint(chinese)),
        lambda: attention_heat(chinese_attention(chinese), chinese.words, [0]),
    ):
        with pytest.warns(UserWarning, match="fonts-noto-cjk"):
            make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_figure(draw_joint(load("sample", "dev").sentences[0]))  # English needs none


def chinese_attention(sentence):
    import numpy as np

    return np.full((2, len(sentence) + 2), 0.5)


def test_with_a_font_it_stands_behind_the_usual_one(monkeypatch, chinese):
    monkeypatch.setattr(fonts, "chinese", lambda: "DejaVu Serif")
    figure = as_figure(draw_joint(chinese))
    assert all(
        text.get_fontfamily() == ["DejaVu Sans", "DejaVu Serif"] for text in figure.findobj(Text) if text.get_text()
    )


def test_a_font_that_came_after_matplotlibs_list_is_found(monkeypatch):
    from matplotlib import font_manager

    installed = font_manager.findfont("DejaVu Serif")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [installed])
    monkeypatch.setattr(fonts, "CHINESE", ("Some Song", "DejaVu Serif"))
    fonts.chinese.cache_clear()
    assert fonts.chinese() == "DejaVu Serif"
    monkeypatch.setattr(fonts, "CHINESE", ("Some Song",))
    fonts.chinese.cache_clear()
    assert fonts.chinese() is None


def test_a_real_font_has_the_characters(chinese):
    if fonts.chinese() is None:
        pytest.skip(f"there is no font for Chinese here: {fonts.INSTALL}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that is missing
        redraw(draw_joint(chinese), "pdf")
        redraw(draw_joint(chinese), "png")


def test_browsers_get_the_same_list(chinese):
    for page in (draw_joint(chinese), explorer(explorer_data())):
        assert f"{fonts.CSS}" in page and "FONTS" not in page
    assert "'PingFang SC'" in fonts.CSS and "'Noto Sans CJK SC'" in fonts.CSS
