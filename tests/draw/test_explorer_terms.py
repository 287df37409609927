"""The explorer's page of terms: wrong data is refused; in a browser, what it says is what the data say."""

import re

import pytest

from lalkit.draw import explorer
from tests.draw.browser import box, read, rows
from tests.draw.terms_data import terms_data

DATA = terms_data()


# ---------------------------------------------------------------- in a browser


@pytest.fixture
def page(open_page):
    return open_page(explorer(DATA))


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("+", "").replace("\u00a0%", ""))


def bars(page) -> list[tuple[str, float]]:
    texts = "item => [...item.querySelectorAll('.name, .number')].map(x => x.textContent)"
    found = read(page, "#bars .bar:not(.score)", texts)
    return [(name, number(value)) for name, value in found]


def terms(span: dict, words: list[str], which: int) -> list[tuple[str, float]]:
    """(name, value) of all terms in the sentence's order; which: a reading, or 2 for own less second."""
    own, second = span["readings"]
    chosen = own if which == 0 else second
    value, rest = chosen["value"], chosen["rest"]
    if which == 2:
        value = [a - b for a, b in zip(own["value"], second["value"])]
        rest = {key: own["rest"][key] - second["rest"][key] for key in rest}
    names = [f"first word: {words[span['start']]}", f"last word: {words[span['end'] - 1]}", "constant"]
    return [*zip(words[span["start"] : span["end"]], value), *zip(names, rest.values())]


def agree(shown, wanted) -> None:
    assert [name for name, _ in shown] == [name for name, _ in wanted]
    assert [value for _, value in shown] == pytest.approx([value for _, value in wanted], abs=0.00051, rel=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2])
def test_every_word_and_edge_is_listed_for_either_label_and_their_difference(page, which):
    sentence = DATA["sentences"][0]
    span = sentence["spans"][0]
    box(page, 0).hover()
    page.select_option("#reading", str(which))
    page.select_option("#order", "place")
    page.click("#more-terms")
    wanted = terms(span, sentence["sentence"].words, which)
    agree(bars(page), wanted)
    assert len(wanted) == 13
    total = sum(value for _, value in wanted)
    said = page.locator("#terms-say").inner_text()
    assert number(re.search(r"together (\S+)\. ", said)[1]) == pytest.approx(total, abs=0.01)
    page.select_option("#order", "size")
    agree(bars(page), sorted(wanted, key=lambda item: -abs(item[1])))
    assert [row[4] for row in rows(page, "#terms")] == [
        f"{'+' if v > 0 else ''}{v:.{2 if abs(v) >= 1 else 3}f}".replace("-", "\u2212") for _, v in wanted
    ]


@pytest.mark.slow
def test_the_second_label_stands_beside_and_what_is_shaded_is_inside_the_span(page):
    sentence = DATA["sentences"][0]
    span = sentence["spans"][2]
    own, second = span["readings"]
    box(page, 2).click()
    said = page.locator("#scores").inner_text()
    assert said.startswith(f"{own['label']} scores ") and f"{second['label']} comes second with" in said
    fills = dict(read(page, ".heat", "item => [item.dataset.column, item.style.fill]"))
    numbers = dict(read(page, ".parse .number", "item => [item.dataset.column, item.textContent]"))
    inside = {str(k + 1) for k in range(span["start"], span["end"])}
    assert {column for column, fill in fills.items() if fill} == inside
    size = sum(map(abs, own["value"]))
    for k, value in enumerate(own["value"]):
        column = str(span["start"] + k + 1)
        red, _, blue = (int(part) for part in re.findall(r"\d+", fills[column]))
        assert red >= blue if value < 0 else blue >= red
        assert number(numbers[column] or "0") == pytest.approx(100 * value / size, abs=0.51)
    page.select_option("#shading", "attention")
    numbers = dict(read(page, ".parse .number", "item => [item.dataset.column, item.textContent]"))
    for k, share in enumerate(own["attention"]):
        assert number(numbers[str(span["start"] + k + 1)] or "0") == pytest.approx(100 * share, abs=0.51)
    assert page.locator(".end").first.evaluate("item => getComputedStyle(item).visibility") == "hidden"


@pytest.mark.slow
def test_what_would_be_without_a_word(page):
    sentence = DATA["sentences"][0]
    changed, kept = None, None
    for i, span in enumerate(sentence["spans"]):
        for k, (label, _) in enumerate(span["then"]):
            changed = changed or ((i, k) if label != span["label"] else None)
            kept = kept or ((i, k) if label == span["label"] else None)
    for i, k in (changed, kept):
        span = sentence["spans"][i]
        box(page, i).click()
        page.select_option("#order", "place")
        page.locator("button.bar").nth(k).click()
        own, second = span["readings"]
        label, score = span["then"][k]
        said = page.locator("#word-says").inner_text()
        verdict = "would still come first" if label == span["label"] else f"would come first instead of {span['label']}"
        assert f"{label} {verdict}" in said
        for row, one in zip(rows(page, "#without"), (own, second), strict=True):
            assert row[0] == one["label"]
            found = [number(cell) for cell in row[2:]]
            wanted = [one["score"], one["score"] - one["value"][k], -one["value"][k]]
            assert found == pytest.approx(wanted, abs=0.0051)
        assert ("less than 0" in said) == (score < 0)
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
    assert page.locator("#word-title").inner_text() == "Without a word"
