"""The explorer's page as text: one file, nothing from the network, all text escaped, wrong data refused; its drawing."""

import html
import json
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lalkit.draw
from lalkit.draw import explorer, explorer_frame
from lalkit.draw.explorer import compare, in_order
from tests.draw.explorer_data import explorer_data, sentence

NASTY = ("</script><script>alert(1)</script>", "</script/", "<!--<script/", "{{data}}", "\"&'", "\u2029", "<b>")


class Page(HTMLParser):
    """Tags with their attributes, and the text of each script."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, text):
        if self.tags and self.tags[-1][0] == "script" and not self.scripts[-1]:
            self.scripts[-1] = text


def payload(page: str) -> dict:
    return json.loads(Page(page).scripts[0])["panes"][0]


def nasty() -> dict:
    data = explorer_data()
    data["title"] = data["model"] = "".join(NASTY)
    first = data["sentences"][0]
    labels = tuple(c._replace(label="</svg><script>") for c in first["sentence"].constituents)
    texts, other = tuple(NASTY[i % len(NASTY)] for i in range(10)), ("</template><img/src=x>",) * 10
    layers = {"words": texts, "tags": other, "arc_labels": other, "constituents": labels}
    first["sentence"] = replace(first["sentence"], **layers, id="</option>&")
    for span in first["spans"]:
        span["label"] = "</svg><script>"
    return data


def test_the_page_is_one_file_that_asks_for_nothing():
    page = explorer(explorer_data())
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bfetch\(|XMLHttpRequest|import\(|\{\{", page)
    tags = Page(page).tags
    assert not [tag for tag, attributes in tags if tag in ("link", "img", "iframe", "object") or "src" in attributes]
    (policy,) = (a["content"] for tag, a in tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_markup_in_the_data_is_shown_as_text():
    data = nasty()
    plain, page = explorer(explorer_data()), explorer(data)
    kinds = [[tag for tag, _ in Page(text).tags if tag in ("script", "template", "img", "b")] for text in (plain, page)]
    assert kinds[0] == kinds[1]
    assert payload(page)["sentences"][0]["words"] == list(data["sentences"][0]["sentence"].words)
    assert page.count("<title>" + html.escape(data["title"]).replace("&#x27;", "'")) == 1
    ((tag, attributes),) = Page(explorer_frame(page)).tags
    assert tag == "iframe" and attributes["srcdoc"] == page and "allow-same-origin" not in attributes["sandbox"]


def test_the_page_holds_the_data():
    data, before = explorer_data(), explorer_data()
    found = payload(explorer(data))
    assert data == before and found["norms"] == data["norms"] and found["profile"] == data["profile"]
    for mine, theirs in zip(found["sentences"], data["sentences"], strict=True):
        assert mine["words"] == list(theirs["sentence"].words)
        for row, wanted in zip(mine["attention"], theirs["attention"], strict=True):
            assert row == pytest.approx(wanted, rel=1e-3)
        for span, wanted in zip(mine["spans"], theirs["spans"], strict=True):
            assert all(span[key] == wanted[key] for key in ("start", "end", "label", "head"))
            for norm in data["norms"]:
                assert span["values"][norm] == pytest.approx(wanted["values"][norm], rel=1e-3)


# ---------------------------------------------------------------- gold, and the drawing


def test_gold_is_compared_constituent_by_constituent_and_arc_by_arc():
    data = sentence(30, 4, True)
    spans = in_order(data["spans"])
    found = compare(data["sentence"], spans, data["gold"])
    assert found["status"] == ["same", "extra", *["same"] * (len(spans) - 3), {"label": "XP"}]
    last = spans[-1]
    assert {"start": last["start"], "end": last["end"], "label": "XP"} in found["missing"]
    assert found["arcs"] == ["head", "label", *["same"] * 28]
    assert f"{len(spans) - 2} of {len(spans)} are in gold. For 1 of them, gold has another label" in found["line"]
    assert "29 of 30 words have the same head word as in gold, and 28 words also" in found["line"]
    assert compare(data["sentence"], spans, None) is None


def test_every_file_of_the_page_is_installed():
    room = Path(lalkit.draw.__file__).parent
    project = tomllib.loads((room.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    beside = [path for path in (room / "explorer").iterdir() if path.is_file() and path.suffix != ".py"]
    assert len(beside) >= 9
    assert not [path.name for path in beside if not any(path.match(pattern) for pattern in patterns)]
