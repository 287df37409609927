"""The explorer in a lecture room: two panes, links, modes, keys, search hits, and asking for another parse, in a real browser."""

import copy
import re
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from lalkit.draw import explorer
from lalkit.draw.explorer import tree_page
from lalkit.errors import LalkitError
from tests.draw.browser import box, read
from tests.draw.explorer_data import explorer_data
from tests.draw.sentences import random_sentence
from tests.draw.terms_data import terms_data

pytestmark = pytest.mark.slow
DATA = explorer_data()


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


def test_the_panes_show_the_same_words():
    other = copy.deepcopy(DATA)
    words = other["sentences"][1]["sentence"]
    other["sentences"][1]["sentence"] = replace(words, words=("other", *words.words[1:]))
    with pytest.raises(LalkitError):
        explorer(DATA, other)


def test_trees_without_a_parser_are_a_page_too(open_page):
    sentences = [random_sentence(12, 1), random_sentence(25, 2)]
    page = open_page(explorer(tree_page(sentences, "Trees", "a treebank")))
    box(page, 0).click()
    label = page.locator("#constituent").inner_text()
    assert label.startswith(f"{sentences[0].constituents[0].label}: ")
    assert page.locator(".bar").count() == 0
    with pytest.raises(LalkitError, match="constituents and dependencies"):
        tree_page([replace(sentences[0], heads=None, arc_labels=None)], "t", "m")


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
    page.keyboard.press("?")
    listed = set(re.findall(r"[\w?]+", " ".join(read(page, "#help td:first-child", "item => item.textContent"))))
    assert {"n", "p", "e", "E", "f", "F", "d", "l", "Enter", "Escape"} <= listed
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    assert len(here()) == 2, "Escape closed the list only"


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
