"""The book: every notebook, card and page is in a table of contents, and Sphinx makes pages without a warning."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("myst_nb"), reason="sphinx is not installed: pip install -e .[book]")
def test_sphinx_makes_the_pages_without_a_warning(tmp_path):
    (BOOK / "pages" / "explorer.html").touch()
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", BOOK, ROOT, tmp_path]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert re.search(r"\d\d+ pages, .*\n0 broken links\n0 parts from a network\n0 functions", made.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("docutils"), reason="no docutils: pip install -e .[book]")
def test_slides_load_nothing_from_a_network(tmp_path):
    command = ["-m", "nbconvert", "--config", "book/slides.py", "--to", "slides", "--output-dir", tmp_path]
    subprocess.run([sys.executable, *command, "notebooks/05_decoding_by_hand.ipynb"], cwd=ROOT, check=True)
    page = (tmp_path / "05_decoding_by_hand.slides.html").read_text(encoding="utf-8")
    files = re.findall(r"<(?:script|link)[^>]*(?:src|href)=\"([^\"]*)", page)
    assert files and all(file.startswith("sphinx_revealjs/") for file in files)
    assert "<math" in page and "$n$" not in page and 'alt="Chart. The best label of every span' in page
