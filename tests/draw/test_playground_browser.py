"""The page on which sentences are typed, in a real browser."""

from urllib.parse import quote

import pytest

import lalkit
from tests.draw.browser import watched
from tests.draw.local_clients import MARKUP

pytestmark = pytest.mark.slow
TEXT = "She saw the man with the telescope."


@pytest.fixture(scope="module")
def server():
    server = lalkit.load("en-news-span").playground()
    yield server
    server.close()


@pytest.fixture
def page(browser, server):
    """The page, open. At the end there must have been no complaint, no dialog, and no request but to the server."""
    size, allowed = {"width": 1280, "height": 720}, (server.address, "data:", "blob:")
    with watched(browser, allowed, "400 (Bad Request)", viewport=size, reduced_motion="reduce") as new_page:
        page = new_page()
        page.goto(server.address)
        yield page


def explorer(page):
    return page.frame_locator("#explorer")


def submit(page, **fields):
    page.evaluate("document.getElementById('options').open = true")
    for name, text in fields.items():
        page.locator(f"[name={name}]").fill(text)
    page.click("button")
    page.locator("#trees a[aria-current]").wait_for()


def constituents(page, drawing="#drawing"):
    """The labels and words of the constituents that a drawing in the frame shows."""
    explorer(page).locator(f"{drawing} .constituent").first.wait_for()
    names = explorer(page).locator(f"{drawing} .constituent").evaluate_all("boxes => boxes.map(box => box.ariaLabel)")
    return {name.split(";")[0].split(", head word")[0] for name in names}


def share(probability: float) -> str:
    return f"{100 * probability:#.3g}".rstrip(".") if probability >= 1e-4 else "< 0.01"


LONG_NP = "NP, words 3 to 7: the man with the telescope"


def test_typing_forbidding_and_choosing_another_tree(page):
    submit(page, text=TEXT)
    assert LONG_NP in constituents(page)
    assert "text=She+saw" in page.url and "forbid" not in page.url, "empty fields are not in the address"
    trees = page.locator("#trees a").all_inner_texts()
    result = lalkit.load("en-news-span").parse(TEXT)
    wanted = result.alternatives(5)
    shares, words = [tree.reading.probability for tree in wanted], ("root", *result.sentence.words)
    assert [text.split(" %")[0] for text in trees] == [f"{i}: {share(one)}" for i, one in enumerate(shares, 1)]
    for text, tree in zip(trees, wanted):
        assert all(f"{words[arc.head]} \u2192 {words[arc.dependent]}" in text for arc in tree.reading.added)
    said = page.locator("#facts").inner_text()
    assert said.startswith(f"These 5 structures have {share(sum(shares))} % of the probability together; ")

    page.locator("#trees a").nth(1).click()
    page.wait_for_url("**tree=2**")
    page.locator("#trees li:nth-child(2) a[aria-current]").wait_for()
    spans = [span for span in wanted[1].spans if span.label != "<H>"]
    explorer(page).locator(".constituent").first.wait_for()
    assert explorer(page).locator(".constituent").count() == len(spans) and LONG_NP not in constituents(page)

    submit(page, forbid="NP(3,7)")
    assert "forbid=NP%283%2C7%29" in page.url and "tree=" not in page.url
    assert LONG_NP not in constituents(page)
    assert "The constraints cost" in page.locator("#facts").inner_text()
    address, shown = page.url, constituents(page)
    page.goto("about:blank")
    page.goto(address)
    page.locator("#trees a[aria-current]").wait_for()
    assert constituents(page) == shown, "a link shows the same"
    assert page.locator("[name=forbid]").input_value() == "NP(3,7)"


def test_what_is_clicked_in_the_explorer_becomes_a_constraint(page):
    for button, constraint in (("forbid-label", "NP(3,7)"), ("forbid", "*(3,7)")):
        submit(page, text=TEXT, forbid="")
        constituents(page)
        explorer(page).locator('.constituent[aria-label^="NP, words 3 to 7"]').click()
        with page.expect_navigation():
            explorer(page).locator(f"#constrain #{button}").click()
        page.locator("#trees a[aria-current]").wait_for()
        assert page.locator("[name=forbid]").input_value() == constraint and LONG_NP not in constituents(page)
    assert not any("words 3 to 7" in name for name in constituents(page)), "whatever its label"
    assert "whatever its label: *(3,7)" in page.locator("#facts").inner_text()
    page.evaluate("window.postMessage({forbid: 'S(1,8)'}, '*')")
    page.evaluate("window.postMessage(null, '*')")
    page.wait_for_timeout(200)
    assert page.locator("[name=forbid]").input_value() == "*(3,7)", "only the explorer may say so"


def test_a_phrase_shows_the_words_that_it_could_depend_on(page):
    submit(page, text=TEXT)
    wanted = lalkit.load("en-news-span").parse(TEXT).attachments("with the telescope").head(5)
    explorer(page).locator('.constituent[aria-label^="PP, words 5 to 7"]').click()
    bars = explorer(page).locator("#attachments .bar").evaluate_all("bars => bars.map(bar => bar.ariaLabel)")
    wanted = wanted[(wanted["probability"] >= 0.0005) | (wanted.index < 2)]
    names = [f"{row[3]} (word {row.head}): " if row.head else "none: the root: " for row in wanted.itertuples()]
    assert [bar.startswith(name) for bar, name in zip(bars, names, strict=True)] == [True] * len(wanted)
    numbers = [float(bar.rpartition(": ")[2].removesuffix("\u00a0%")) / 100 for bar in bars]
    assert numbers == pytest.approx(wanted["probability"].tolist(), abs=0.0006)


def test_one_of_several_sentences_is_shown(page):
    submit(page, text=f"It rained. {TEXT} We left!", forbid="NP(1,1)")
    options = ["1 of 3: It rained.", f"2 of 3: {TEXT}", "3 of 3: We left!"]
    assert page.locator("#sentence option").all_inner_texts() == options
    with page.expect_navigation():
        page.select_option("#sentence", "2")
    page.locator("#trees a[aria-current]").wait_for()
    assert LONG_NP in constituents(page) and "forbid" not in page.url and page.locator("#sentence").input_value() == "2"
    submit(page, forbid="*(3,7)")
    assert LONG_NP not in constituents(page) and "sentence=2" in page.url, "the same text keeps its sentence"
    submit(page, text="Yes.", forbid="")
    assert page.locator("#choose").is_hidden() and "sentence" not in page.url


def test_a_mistake_is_explained_and_the_sentence_stays(page):
    page.fill("#text", TEXT)
    page.click("#options > summary")
    page.fill("[name=require]", "NP(9")
    page.click("button")
    page.locator("#status.problem").wait_for()
    assert "is no constraint\nWrite NP(3,5)" in page.locator("#status").inner_text().replace("\n  ", "\n")
    assert page.locator("#text").input_value() == TEXT and page.locator("#answer").is_hidden()


def test_nothing_that_is_typed_is_executed(page, server):
    for name in ("text", "forbid", "form", "without"):
        page.goto(f"{server.address}?text={quote('a' if name != 'text' else MARKUP)}&{name}={quote(MARKUP)}")
        page.locator("#trees a[aria-current], #status.problem").first.wait_for()
        if name == "text":
            assert any("<script>" in text or "script" in text for text in constituents(page))
    page.goto(f"{server.address}explore?text={quote(MARKUP)}")
    assert page.evaluate("self.origin") == "null" and page.locator("img").count() == 0, "alone, it is in a box, too"


def test_why_not_compares_each_label_with_another(page):
    submit(page, text=TEXT, against="S")
    explorer(page).locator('.constituent[aria-label^="NP, words 3 to 7"]').click()
    (one,) = lalkit.load("en-news-span").parse(TEXT).explain(against="S").sentences
    difference = one.difference(one.places[2, 7, "NP"], "S").sum()
    assert f"Score of NP minus S: {difference:.2f}" in explorer(page).locator("#bars").inner_text()
