"""A real browser for pages: playwright's package with a Chromium that is installed already; skipped where either is missing."""

import shutil

import pytest

from tests.draw.browser import watched

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH")
    with playwright.sync_playwright() as driver:
        # --no-sandbox: Chromium refuses to run as root otherwise, and what it opens is our own page.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a page from a file; at the end there must have been no complaint and no request but for files."""
    size, files = {"width": 1280, "height": 900}, ("file:", "data:", "blob:", "about:")
    with watched(browser, files, seconds=10, viewport=size, reduced_motion="reduce") as new_page:

        def open_(text: str):
            file = tmp_path / "page.html"
            file.write_text(text, encoding="utf-8")
            page = new_page()
            page.goto(file.as_uri())
            return page

        yield open_
