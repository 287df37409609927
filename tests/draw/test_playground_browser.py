"""The page on which sentences are typed, in a real browser."""

from urllib.parse import quote

import pytest

import lalkit
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
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    complaints, requests = [], []
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(server.address)
    yield page
    context.close()
    assert [text for text in complaints if "400 (Bad Request)" not in text] == []
    assert [url for url in requests if not url.startswith((server.address, "data:", "blob:"))] == []


def explorer(page):
    return page.frame_locator("#explorer")


def submit(page, **fields):
    for name, text in fields.items():
        page.locator(f"[name={name}]").fill(text)
    page.click("button")
    page.locator("#trees a[aria-current]").wait_for()


def constituents(page, drawing="#drawing"):
    """The labels and words of the constituents that a drawing in the frame shows."""
    explorer(page).locator(f"{drawing} .constituent").first.wait_for()
    names = explorer(page).locator(f"{drawing} .constituent").evaluate_all("boxes => boxes.map(box => box.ariaLabel)")
    return {name.split(";")[0].split(", head word")[0] for name in names}


LONG_NP = "NP, words 3 to 7: the man with the telescope"


def test_typing_forbidding_and_choosing_another_tree(page):
    submit(page, text=TEXT)
    assert LONG_NP in constituents(page)
    assert "text=She+saw" in page.url and "forbid" not in page.url, "empty fields are not in the address"
    trees = page.locator("#trees a").all_inner_texts()
    result = lalkit.load("en-news-span").parse(TEXT)
    wanted = result.alternatives(5)
    assert [text.split(" %")[0] for text in trees] == [
        f"{number}: {100 * tree.reading.probability:#.3g}" for number, tree in enumerate(wanted, 1)
    ]
    assert all(f"\u2212{item}" in text for text, tree in zip(trees, wanted) for item in tree.reading.missing)

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
    assert constituents(page) == shown and page.locator("[name=forbid]").input_value() == "NP(3,7)", (
        "a link shows the same"
    )


def test_heads_are_switched_off(page):
    submit(page, text=TEXT)
    before = constituents(page)
    assert "all heads" not in page.locator("#facts").inner_text()
    submit(page, without="NP")
    facts = page.locator("#facts").inner_text()
    assert "Left: all heads. Right: without NP. The best tree changes: +" in facts
    explorer(page).locator("#drawing-2 .constituent").first.wait_for()
    left, right = (constituents(page, drawing) for drawing in ("#drawing", "#drawing-2"))
    assert left == before != right


def test_what_is_clicked_in_the_explorer_becomes_a_constraint(page):
    submit(page, text=TEXT)
    constituents(page)
    explorer(page).locator('.constituent[aria-label^="NP, words 3 to 7"]').click()
    with page.expect_navigation():
        explorer(page).locator("#constrain #forbid").click()
    page.locator("#trees a[aria-current]").wait_for()
    assert page.locator("[name=forbid]").input_value() == "NP(3,7)" and LONG_NP not in constituents(page)
    page.evaluate("window.postMessage({forbid: 'S(1,8)'}, '*')")
    page.evaluate("window.postMessage(null, '*')")
    page.wait_for_timeout(200)
    assert page.locator("[name=forbid]").input_value() == "NP(3,7)", "only the explorer may say so"


def test_a_mistake_is_explained_and_the_sentence_stays(page):
    page.fill("#text", TEXT)
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
    frame = page.goto(f"{server.address}explore?text={quote(MARKUP)}") and page
    assert frame.evaluate("self.origin") == "null", "a page by itself is in a box, too"
    assert frame.locator("img").count() == 0
