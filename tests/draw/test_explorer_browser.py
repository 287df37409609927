"""The explorer as a reader uses it, in a real browser: what it says is compared with the data it was made from."""

import copy
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lalkit.draw import draw_joint, explorer, svg, tree
from lalkit.draw.explorer import tree_page
from lalkit.treebank.corpora import load
from tests.draw.browser import box, overlapping, read, rows
from tests.draw.explorer_data import explorer_data
from tests.draw.pictures import SVG
from tests.draw.sentences import random_sentence
from tests.draw.terms_data import terms_data
from tests.draw.test_explorer import nasty

pytestmark = pytest.mark.slow
DATA = explorer_data()


@pytest.fixture
def page(open_page):
    return open_page(explorer(DATA))


def focused(page):
    return page.evaluate("document.activeElement.dataset.span ?? null")


def check(page, *arguments):
    assert page.evaluate(Path(__file__).with_name("heads_checks.js").read_text(encoding="utf-8"), arguments) == []


def test_what_is_unsure_is_faint_and_can_be_hidden(open_page):
    data = copy.deepcopy(DATA)
    first = data["sentences"][0]
    for k, span in enumerate(first["spans"]):
        span["probability"] = round(0.95 - 0.9 * k / len(first["spans"]), 3)
    first["arc_probabilities"] = [0.3, 0.6, *[0.9] * (len(first["sentence"]) - 2)]
    page = open_page(explorer(data))
    check(page, "what_is_unsure_is_faint_and_can_be_hidden", None)
    assert_lines_begin_below_labels(page)


def assert_lines_begin_below_labels(page) -> None:
    """Every line begins just below a label that is shown, and ends above a label or a word that is shown."""
    places = """item => item.tagName === 'path' ? item.getAttribute('d').match(/-?[\\d.]+/g).map(Number)
        : [item.getAttribute('x'), item.getAttribute('y')].map(Number)"""
    labels = {(round(x), round(y)) for x, y in read(page, "#drawing .label", places)}
    columns = {round(x) for x, _ in read(page, "#drawing text:not(.relation)", places)}
    drawn = read(page, "#drawing .line", places)
    for x, y, *_, across, bend, down in ([*d[:-3], *d[-3:]] if len(d) > 4 else [*d, d[-1]] for d in drawn):
        assert {(round(x + dx), round(y - 5)) for dx in (-0.4, 0, 0.4)} & labels
        assert {round(across + dx) for dx in (-0.4, 0, 0.4)} & columns
        assert y <= bend <= down


@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_constituent_can_be_folded_and_opened(page, index):
    """What is folded shows its label and its first and last words; everything else stays, and nothing overlaps."""
    page.select_option("#sentence", str(index))
    words, spans = DATA["sentences"][index]["sentence"].words, DATA["sentences"][index]["spans"]
    texts = sorted(read(page, "#drawing text", "item => item.textContent"))
    for i, span in list(enumerate(spans))[:: 1 + len(spans) // 12]:
        box(page, i).focus()
        page.keyboard.press("f")
        size = span["end"] - span["start"]
        inside = [j for j, s in enumerate(spans) if span["start"] <= s["start"] and s["end"] <= span["end"] and j != i]
        if size == 1:
            assert page.locator(".folded").count() == 0
            assert "cannot be folded" in page.locator("#status").inner_text()
            continue
        kept = set(range(len(spans))) - set(inside)
        assert set(read(page, "#drawing .constituent", "box => Number(box.dataset.span)")) == kept
        said = page.locator(".folded").text_content().split()
        here = list(words[span["start"] : span["end"]])
        assert said == (here if size <= 4 else [*here[:2], "…", *here[-2:]])
        assert overlapping(page) == []
        assert_lines_begin_below_labels(page)
        page.keyboard.press("f")
    assert sorted(read(page, "#drawing text", "item => item.textContent")) == texts


def test_a_tree_is_drawn_as_in_python(open_page, sample, monkeypatch):
    """Every text, line and arrow has the same place. Below the words there is room for numbers; CSS underlines the root."""
    monkeypatch.setattr(tree, "UNDER_WORDS", 24)
    monkeypatch.setattr(svg, "number", repr)
    sentences = [random_sentence(3 + 9 * seed, seed) for seed in range(8)]
    sentences += [*sample[:40], *load("sample-zh", "train").sentences[:5]]
    page = open_page(explorer(tree_page(sentences, "Trees", "a treebank")))
    for i, sentence in enumerate(sentences):
        page.select_option("#sentence", str(i))
        root = ElementTree.fromstring(draw_joint(sentence))
        drawn = [item for item in root if item.get("x") or item.get("d") or item.get("points")]
        drawn = [item for item in drawn if item.tag != f"{SVG}rect" and item.get("stroke-width") != "1.6"]
        texts = ["".join([item.text or "", *(child.tail or "" for child in item)]) for item in drawn]
        places = [map(item.get, ("d", "points", "x", "y")) for item in drawn]
        wanted = [
            (item.tag.removeprefix(SVG), text, item.get("class") or "", *place)
            for item, text, place in zip(drawn, texts, places)
        ]
        found = read(
            page,
            "#drawing :is(text:not(.end, .number), path, polygon)",
            """x => [x.tagName,
            x.tagName === 'text' ? x.lastChild.textContent : '', x.matches('.line.head') ? 'head' : '',
            ...['d', 'points', 'x', 'y'].map((name) => x.getAttribute(name))]""",
        )
        assert sorted(map(placed, found)) == sorted(map(placed, wanted)), sentence.id


def test_every_constituent_is_one_thing_to_point_at_behind_its_labels_and_differences_are_marked(page):
    page.select_option("#sentence", "1")
    spans = DATA["sentences"][1]["spans"]
    assert sum("::" in span["label"] for span in spans) > 0
    seen = """box => { const {x, y, width, height} = box.getBBox();
        return [...document.querySelectorAll('#drawing .label')].filter((label) => label.getAttribute('x') > x
            && label.getAttribute('x') < x + width && label.getAttribute('y') > y && label.getAttribute('y') < y + height)
            .map((label) => label.lastChild.textContent).join('::'); }"""
    marks = {1: " ×", len(spans) - 1: " ≠"}
    wanted = [re.sub("(?=::|$)", marks.get(i, ""), span["label"], count=1) for i, span in enumerate(spans)]
    assert read(page, "#drawing .constituent", seen) == wanted
    said = read(page, "#drawing .relation", "item => item.textContent")
    assert [sum(item.endswith(mark) for item in said) for mark in (" ×", " ≠")] == [1, 1]
    kinds = (".constituent.wrong", ".wrong-head", ".wrong-label")
    assert [page.locator(f"#drawing {kind}").count() for kind in kinds] == [2, 1, 1]


def placed(item) -> tuple:
    tag, text, kind, *places = item
    numbers = re.findall(r"-?[\d.]+", " ".join(filter(None, places)))
    return tag, text, kind, *(round(float(one) + 0.000123, 3) for one in numbers)


@pytest.mark.parametrize("norm", DATA["norms"])
def test_every_norm_shows_its_own_numbers_and_says_what_it_is(page, norm):
    check(page, "a_norm_shows_its_own_numbers_and_says_what_it_is", norm)


def test_a_label_head_shows_its_attention_on_the_words(page):
    check(page, "a_label_head_shows_its_attention_on_the_words", None)


def test_the_whole_way_by_keyboard(page):
    spans = DATA["sentences"][0]["spans"]
    inside = [i for i, s in enumerate(spans) if i and s["end"] <= spans[1]["end"]]
    beside = next(i for i, s in enumerate(spans) if s["start"] >= spans[1]["end"])
    assert len(inside) > 1
    page.locator("#print").focus()
    while focused(page) != "0":
        page.keyboard.press("Tab")
    assert page.locator("#constituent").inner_text().startswith(f"{spans[0]['label']}: ")
    way = [("ArrowUp", 0), ("ArrowDown", 1), ("ArrowRight", beside), ("ArrowRight", beside), ("ArrowLeft", 1),
           ("ArrowDown", 2), ("ArrowUp", 1), ("End", len(spans) - 1), ("Home", 0), ("ArrowDown", 1)]  # fmt: skip
    for key, wanted in way:
        page.keyboard.press(key)
        assert focused(page) == str(wanted), key
    assert page.locator('.constituent[tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    assert box(page, 1).get_attribute("aria-selected") == "true"
    assert page.locator("#status").inner_text().startswith(f"pinned: {spans[1]['label']}, words ")
    page.keyboard.press("ArrowUp")
    assert page.locator("#constituent").inner_text().startswith(f"{spans[1]['label']}: ")  # pinned: the panel stays
    page.keyboard.press("Escape")
    assert page.locator('[aria-selected="true"]').count() == 0
    page.keyboard.press("n")
    assert page.locator("#place").inner_text() == "2 of 3"
    assert focused(page) == "0"


def test_the_tree_as_shown_is_saved_as_svg_and_as_png(page):
    box(page, 2).click()
    page.locator(".bar").first.click()
    with page.expect_download() as svg:
        page.click("#save-svg")
    assert svg.value.suggested_filename == "made-10.svg"
    root = ElementTree.parse(svg.value.path()).getroot()
    kind = "{http://www.w3.org/2000/svg}"
    texts = {"".join([item.text or "", *(child.tail or "" for child in item)]) for item in root.iter(f"{kind}text")}
    listed = read(page, "#bars .name", "item => item.textContent")
    assert {"person", "START", "STOP", *listed} <= texts
    with page.expect_download() as png:
        page.click("#save-png")
    content = png.value.path().read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(2 * float(root.get("width")), abs=1)


def test_nasty_text_is_shown_as_it_is(open_page):
    data = nasty()
    page = open_page(explorer(data))
    assert page.locator("h1").text_content() == data["title"]
    box(page, 0).click()
    page.locator(".bar").first.click()
    names = ["START", *data["sentences"][0]["sentence"].words, "STOP"]
    assert [name for _, name, _ in rows(page, "#attention")] == names
    assert page.locator("img, b b, h1 *").count() == 0


@pytest.mark.parametrize("data", [DATA, terms_data()], ids=["heads", "terms"])
def test_no_text_of_the_drawing_overlaps_and_the_page_is_not_wider_than_the_window(open_page, data):
    page = open_page(explorer(data))
    for width, index in itertools.product((1280, 800), "012"):
        page.set_viewport_size({"width": width, "height": 900})
        page.select_option("#sentence", index)
        box(page, 0).click()
        page.locator("button.bar").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert overlapping(page) == []
