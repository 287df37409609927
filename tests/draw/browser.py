"""What tests ask of a page in the browser (`conftest.open_page`)."""

from contextlib import contextmanager


def box(page, index: int):
    return page.locator(f'.constituent[data-span="{index}"]')


@contextmanager
def watched(browser, allowed: tuple[str, ...], ignored: str | None = None, seconds: int = 60, **options):
    """Give what opens an empty page. At the end the pages must have requested only what begins in an allowed way, and have
    complained of nothing but what is ignored: by a message, an error or a dialog."""
    context, complaints, requests = browser.new_context(**options), [], []

    def new_page():
        page = context.new_page()
        page.set_default_timeout(1000 * seconds)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        return page

    yield new_page
    context.close()
    assert [text for text in complaints if not ignored or ignored not in text] == []
    assert requests and [url for url in requests if not url.startswith(allowed)] == []


def read(page, selector: str, function: str) -> list:
    """What a function says of every element, in one call to the browser."""
    return page.locator(selector).evaluate_all(f"items => items.map({function})")


def rows(page, table: str) -> list[list[str]]:
    return read(page, f"{table} tbody tr", "item => [...item.cells].map(cell => cell.textContent)")


def overlapping(page) -> list[list[str]]:
    """Texts of the drawing, two by two, that cover each other where they can be seen; a line is higher than its letters."""
    return page.evaluate("""() => {
        const all = [...document.querySelectorAll(".parse text")]
            .filter((item) => item.textContent && getComputedStyle(item).visibility === "visible")
            .map((item) => [item.textContent, item.getBoundingClientRect()]);
        const shrink = 3;
        return all.flatMap(([a, x], i) => all.slice(i + 1).filter(([b, y]) =>
            x.left < y.right && y.left < x.right && x.top + shrink < y.bottom - shrink && y.top + shrink < x.bottom - shrink)
            .map(([b]) => [a, b]));
    }""")
