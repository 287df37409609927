"""PNG and PDF show what the SVG shows. Chinese is drawn in a font that has its characters, or a warning says what to install."""

import warnings
from xml.etree import ElementTree

import pytest
from matplotlib import rcParams
from matplotlib.patches import PathPatch, Polygon

from lalkit.draw import draw_joint
from lalkit.draw import svg as fonts
from lalkit.draw.figures import side_by_side
from lalkit.draw.svg import NARROWER, as_figure, redraw
from lalkit.treebank.corpora import load
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


def test_without_a_font_for_chinese_a_warning_says_what_to_install(monkeypatch, chinese):
    monkeypatch.setattr(fonts, "chinese", lambda: None)
    for make in (lambda: as_figure(draw_joint(chinese)), lambda: side_by_side(1, 4, 3, words=chinese.words)):
        with pytest.warns(UserWarning, match="fonts-noto-cjk"):
            make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_figure(draw_joint(load("sample", "dev").sentences[0]))  # English needs none


def test_a_real_font_has_the_characters(chinese):
    if fonts.chinese() is None:
        pytest.skip(f"there is no font for Chinese here: {fonts.INSTALL}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that is missing
        redraw(draw_joint(chinese), "pdf")
        redraw(draw_joint(chinese), "png")
