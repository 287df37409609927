"""The book: every notebook, card and page is in a table of contents. `make book` itself fails on a warning or a broken link."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BOOK = ROOT / "book"


def named_in_contents():
    """Every file that a table of contents of a page names, with its patterns expanded."""
    files = set()
    for page in BOOK.glob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for entry in (line for line in block.splitlines() if line and line[0] != ":"):
                place = (BOOK / entry).resolve().relative_to(ROOT).as_posix()
                found = {file for suffix in (".md", ".ipynb", ".rst") for file in ROOT.glob(place + suffix)}
                # make book writes book/reference
                assert found or "reference/" in entry, f"{page.name}: there is no {entry}"
                files |= found
    return files


def test_the_contents_name_every_notebook_card_and_page():
    wanted = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "notebooks").glob("*.md"), *BOOK.glob("*.md")]
    wanted += [*BOOK.glob("solutions/*"), *(ROOT / "data").rglob("README.md"), *(ROOT / "figures").rglob("*.md")]
    assert {path.relative_to(ROOT).as_posix() for path in {*wanted} - named_in_contents()} == {"book/index.md"}
