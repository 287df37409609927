"""The explorer as a reader and a lecturer use it, in a real browser: what it says is compared with the data it was made from."""

import copy
import itertools
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest

from lalkit.draw import draw_joint, explorer, svg, tree
from lalkit.draw.explorer import tree_page
from lalkit.treebank.corpora import load
from tests.draw.browser import box, overlapping, read, rows
from tests.draw.explorer_data import explorer_data, terms_data
from tests.draw.pictures import SVG
from tests.draw.sentences import random_sentence
from tests.draw.test_explorer import nasty

pytestmark = pytest.mark.slow
DATA = explorer_data()


@pytest.fixture
def page(open_page):
    return open_page(explorer(DATA))


def focused(page):
    return page.evaluate("document.activeElement.dataset.span ?? null")


def check(page, *arguments, kind="heads"):
    assert page.evaluate(Path(__file__).with_name(f"{kind}_checks.js").read_text(encoding="utf-8"), arguments) == []


TERMS = (
    "every_word_and_edge_is_listed_for_either_label_and_their_difference",
    "the_second_label_stands_beside_and_what_is_shaded_is_inside_the_span",
    "what_would_be_without_a_word",
)


@pytest.mark.parametrize("name", TERMS)
def test_the_page_of_terms(open_page, name):
    check(open_page(explorer(terms_data())), name, kind="terms")


def test_what_is_unsure_is_faint_and_can_be_hidden(open_page):
    data = copy.deepcopy(DATA)
    first = data["sentences"][0]
    for k, span in enumerate(first["spans"]):
        span["probability"] = round(0.95 - 0.9 * k / len(first["spans"]), 3)
    first["arc_probabilities"] = [0.3, 0.6, *[0.9] * (len(first["sentence"]) - 2)]
    check(open_page(explorer(data)), "what_is_unsure_is_faint_and_can_be_hidden", None)


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


def address(page) -> dict[str, str]:
    return {key: value for key, (value,) in parse_qs(page.evaluate("location.hash.slice(1)")).items()}


def with_other_tree(data: dict) -> dict:
    """The same sentences from "another parser": in the first, a constituent is not there, and one arc has another label."""
    other = copy.deepcopy(data)
    other["model"] = "another"
    first = other["sentences"][0]
    first["spans"].pop(1)
    words = first["sentence"]
    kept = words.constituents[:1] + words.constituents[2:]
    first["sentence"] = replace(words, constituents=kept, arc_labels=first["gold"].arc_labels)
    return other


# ---------------------------------------------------------------- the address


def test_a_link_shows_the_same(open_page):
    page = open_page(explorer(DATA))
    page.keyboard.press("n")
    box(page, 3).click()
    page.select_option("#norm", "raw")
    page.locator(".bar").nth(2).click()
    head = page.locator('.bar[aria-pressed="true"]').get_attribute("data-head")
    spans = DATA["sentences"][1]["spans"]
    place, folded = next((i, s) for i, s in enumerate(spans) if i > 3 and s["end"] - s["start"] > 1)
    box(page, place).focus()
    page.keyboard.press("f")
    page.keyboard.press("d")
    wanted = {"sentence": "2", "span": f"{spans[3]['start'] + 1}-{spans[3]['end']}", "head": head, "norm": "raw", "dark": "1",
              "fold": f"{folded['start'] + 1}-{folded['end']}"}  # fmt: skip
    assert address(page) == wanted
    seen = "[document.getElementById('panel').innerText, document.querySelector('.parse').outerHTML]"
    before = page.evaluate(seen)
    page.locator("body").click(position={"x": 1, "y": 1})
    page.reload()
    panel, picture = page.evaluate(seen)
    assert panel == before[0]
    assert picture.count("folded") == before[1].count("folded") and "pinned" in picture and "attended" in picture


@pytest.mark.parametrize(
    "wrong",
    ["sentence=99", "sentence=2.5", "span=__proto__&head=__proto__", "head=1e9&norm=l2&least=101", "%", "__proto__=1"],
)
@pytest.mark.parametrize("data", [DATA, terms_data()], ids=["heads", "terms"])
def test_what_cannot_be_in_an_address_is_ignored(open_page, data, wrong):
    page = open_page(explorer(data))
    page.evaluate("hash => { location.hash = hash; }", wrong)
    page.wait_for_timeout(30)
    assert page.locator("#place").inner_text() == "1 of 3"
    assert page.locator('[aria-selected="true"], .folded').count() == 0
    box(page, 1).click()
    assert page.locator(".bar").count() > 1
    assert set(address(page)) == {"sentence", "span"}


# ---------------------------------------------------------------- two panes


@pytest.mark.parametrize("beside", [with_other_tree(DATA), with_other_tree(terms_data())], ids=["heads", "terms"])
def test_two_panes_mark_what_the_other_does_not_have(open_page, beside):
    page = open_page(explorer(DATA, beside))
    assert [page.locator(f"{pane} .parse").count() for pane in ("#drawing", "#drawing-2")] == [1, 1]
    assert page.locator("#drawing-2 .pane").inner_text() == "another"
    here, there = [{(s["start"], s["end"]) for s in one["sentences"][0]["spans"]} for one in (DATA, beside)]
    assert len(here - there) == 1 and not there - here
    wrong = page.locator("#drawing .constituent.wrong")
    assert wrong.count() == 1
    assert wrong.get_attribute("aria-label").endswith("; not in the other tree")
    assert page.locator("#drawing-2 .constituent.wrong").count() == 0
    assert [page.locator(f"{pane} .wrong-label").count() for pane in ("#drawing", "#drawing-2")] == [1, 1]
    page.keyboard.press("e")
    assert wrong.get_attribute("aria-selected") == "true"
    page.locator('#drawing-2 .constituent[data-span="1"]').click()
    assert page.locator("#panel .model").inner_text() == "another"
    (missing,) = read(page, "#missing button", "item => item.textContent")
    start, end = next(iter(here - there))
    assert f"words {start + 1} to {end}" in missing or f"word {end}:" in missing


def test_trees_without_a_parser_are_a_page_too(open_page):
    sentences = [random_sentence(12, 1), random_sentence(25, 2)]
    page = open_page(explorer(tree_page(sentences, "Trees", "a treebank")))
    box(page, 0).click()
    label = page.locator("#constituent").inner_text()
    assert label.startswith(f"{sentences[0].constituents[0].label}: ")
    assert page.locator(".bar").count() == 0


# ---------------------------------------------------------------- keys, search hits, modes


def test_keys_lead_through_differences(open_page):
    spans = [item["spans"] for item in DATA["sentences"]]
    page = open_page(explorer(DATA))

    def here():
        pinned = read(page, '[aria-selected="true"]', "item => Number(item.dataset.span)")
        return int(page.locator("#place").inner_text()[0]) - 1, *pinned

    differing = [(s, i) for s in (0, 1) for i in (1, len(spans[s]) - 1)]
    for wanted in (*differing, differing[-1]):
        page.keyboard.press("e")
        assert here() == wanted
    assert page.locator("#status").inner_text() == "there is no next difference"
    for wanted in differing[-2::-1]:
        page.keyboard.press("E")
        assert here() == wanted


# ---------------------------------------------------------------- words, scores, fonts, constraints


def test_a_click_on_a_word_lists_the_label_heads_that_look_at_it(open_page):
    page = open_page(explorer(DATA))
    page.locator('.heat[data-column="3"]').click()
    column = [row[3] for row in DATA["sentences"][0]["attention"]]
    wanted = sorted(range(len(column)), key=lambda head: -column[head])[:8]
    assert read(page, "#looking .name", "item => item.textContent") == [f"head {head}" for head in wanted]
    assert page.locator("#looking .number").first.inner_text() == f"{100 * column[wanted[0]]:.1f}\u00a0%"
    page.locator("#looking .bar").first.click()
    assert page.locator("#head-title").inner_text() == f"Label head {wanted[0]}"


def test_a_click_on_a_word_lists_what_it_adds_to_the_constituents_around_it(open_page):
    data = terms_data()
    page = open_page(explorer(data))
    page.locator('.heat[data-column="3"]').click()
    around = [span for span in data["sentences"][0]["spans"] if span["start"] < 3 <= span["end"]]
    names = read(page, "#holders .name", "item => item.textContent")
    assert sorted(name.split(",")[0] for name in names) == sorted(span["label"] for span in around)
    page.locator("#holders .bar").last.click()
    assert box(page, 0).get_attribute("aria-selected") == "true"
