"""Make the explorer: one HTML file in which a reader points at a constituent and sees the label heads and words behind it.

The page is put together from the files beside this one (explorer.html, one of two panels, style sheets, scripts). It loads
nothing from the network; a policy in its head forbids it. What it shows was computed before: `data` holds results only. For the
paper's layer, which has a fixed set of label heads for the whole sentence, data are

    {"title": str, "model": str, "note": str | None,
     "norm": "share", "norms": ["raw", "minmax", "softmax", "share", "exact"],  # the one shown first; all that can be chosen
     "profile": None | {"corpus": str, "spans": int, "labels": [L], "led": [[L]] * H, "all": [L], "norm": str (optional)},
     "sentences": [{"id": str, "words": [n], "tags": [n], "heads": [n], "arc_labels": [n],
                    "spans": [{"start": 0, "end": 2, "label": "NP", "head": 2, "values": {norm: [H]}}],
                    "attention": [[n + 2]] * H,  # START, words, STOP; every row adds up to 1
                    "gold": None | {"spans": [{"start", "end", "label"}], "heads": [n], "arc_labels": [n]}}]}

For label attention inside the span, data hold the terms of every score (k words in a span; value = attention * evidence):

    {"title", "model", "note", "boundary": "full" | "lean" | "glass",
     "sentences": [{..., "spans": [{"start", "end", "label", "head",
                                    "readings": [{"label", "score", "attention": [k], "evidence": [k], "value": [k],
                                                  "rest": {"boundary": x} or {"first": x, "last": y, "constant": z}}],
                                    "then": [(label, score)] * k}]}]}  # the best label without the word's evidence

The first reading is that of the span's own label; the second, if there is one, is that of the label with the second best score.
The terms of a reading add up to its score. Spans are over fenceposts (the places between words). Heads, and a span's head word,
count words from 1 (0: the root); label heads are counted from 0. A span with "group": True is a joint span that is not a
constituent (<H>): it is drawn with a dotted outline and not compared with gold.

A span can have a "probability", and a sentence "arc_probabilities": [n]. What is unsure is then drawn faint, and a slider hides
constituents below a probability.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files

from lalkit.draw import svg
from lalkit.draw.explorer.check import NORMS, check
from lalkit.draw.explorer.picture import compare, in_order, picture
from lalkit.errors import LalkitError
from lalkit.treebank.brackets import unescape

__all__ = ["NORMS", "explorer", "explorer_frame"]

# The two kinds of pages: the panel, its name for screen readers, its scripts, and what a reader must not conclude.
KINDS = {
    "heads": (
        "heads.html", "Label heads", ("bars.js", "head.js"),
        "<strong>A large share by itself proves nothing.</strong> Compare what a label head adds with the controls in "
        "notebook 05.",
    ),
    "terms": (
        "terms.html", "Terms of scores", ("terms.js", "word.js"),
        "<strong>A term is exact, but it is not the whole story.</strong> A word adds its term through a vector that the encoder "
        "made from the whole sentence: see notebook 13.",
    ),
}  # fmt: skip
DIGITS = 5  # significant digits of the numbers that go into the page


def explorer(data: dict) -> str:
    """Return the complete page. Raises LalkitError, with the place, if data are not as this module describes them."""
    check(data)
    drawings, sentences = [], []
    for i, sentence in enumerate(data["sentences"]):
        spans = in_order(sentence["spans"])
        comparison = compare({**sentence, "spans": spans})
        drawings.append(f'<template data-sentence="{i}">{picture(sentence, spans, comparison)}</template>')
        sentences.append(_sentence(sentence, spans, comparison))
    terms = "boundary" in data
    norms = {norm: NORMS[norm] for norm in data.get("norms", ())}
    heads_payload = {"norm": data.get("norm"), "norms": norms, "profile": data.get("profile")}
    payload = {"boundary": data["boundary"]} if terms else heads_payload
    panel, aside, scripts, caution = KINDS["terms" if terms else "heads"]
    note = data.get("note")
    parts = {
        "title": svg.escape(data["title"]),
        "model": svg.escape(data["model"]),
        "note": f'<p class="note">{svg.escape(note)}</p>' if note else "",
        "page_style": _asset("page.css").replace("FONTS", svg.CSS),
        "tree_style": _asset("tree.css"),
        "aside": aside,
        "panel": _asset(panel),
        "caution": caution,
        "drawings": "\n".join(drawings),
        "data": _json({**payload, "sentences": sentences}),
        "script": "\n".join(
            _asset(name) for name in ("state.js", "fold.js", "tree.js", *scripts, "save.js", "main.js")
        ),
    }
    # One pass: a {{name}} inside a part is text of the data and stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("explorer.html"))


def explorer_frame(html: str, height: int = 900, title: str = "Label head explorer") -> str:
    """Return the page inside an <iframe>, for a notebook: IPython.display.HTML(explorer_frame(html)). height: in pixels.

    The frame is sandboxed: the page's script cannot reach the notebook around it; saving and printing are allowed.
    """
    if not isinstance(height, int) or height <= 0:
        raise LalkitError(f"the height of the frame is {height!r}", remedy="Give a positive whole number of pixels.")
    return svg.element(
        "iframe", "", title=title, sandbox="allow-scripts allow-downloads allow-modals",
        style=f"width: 100%; height: {height}px; border: 1px solid #8C8C8C", srcdoc=html,
    )  # fmt: skip


def _sentence(sentence: dict, spans: list[dict], comparison: dict | None) -> dict:
    """Return what the page's script needs of a sentence."""
    status = comparison["status"] if comparison else [None] * len(spans)
    return {
        "id": sentence["id"],
        "words": [unescape(word) for word in sentence["words"]],
        "spans": [
            {key: span[key] for key in ("start", "end", "label", "parent", "level")}
            | {"head": span.get("head"), "group": bool(span.get("group")), "gold": span_status, **_behind(span)}
            | ({} if span.get("probability") is None else {"probability": span["probability"]})
            for span, span_status in zip(spans, status)
        ],
        "attention": [_rounded(row) for row in sentence.get("attention", ())],
        "comparison": comparison and {"line": comparison["line"], "missing": comparison["missing"]},
    }


def _behind(span: dict) -> dict:
    """Return what the panel lists for a constituent."""
    if "readings" in span:
        return {key: span[key] for key in ("readings", "then")}
    return {"values": {norm: _rounded(values) for norm, values in span["values"].items()}}


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _json(payload: dict) -> str:
    """Return JSON that may stand inside a <script>: without <, > and &."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
