"""The explorer: one HTML file in which a reader points at a constituent and sees the label heads and words behind it.

The page is put together from the files beside this one (explorer.html, one of two panels, style sheets, scripts) and asks no
network for anything: a policy in its head forbids it. What it shows is computed elsewhere; `data` holds results only. For the
paper's layer, a fixed set of label heads for the whole sentence:

    {"title": str, "model": str, "note": str | None,
     "norm": "share", "norms": ["raw", "minmax", "softmax", "share", "exact"],  # shown first; all there are
     "profile": None | {"corpus": str, "spans": int, "labels": [L], "led": [[L]] * H, "all": [L], "norm": str (optional)},
     "sentences": [{"id": str, "words": [n], "tags": [n], "heads": [n], "arc_labels": [n],
                    "spans": [{"start": 0, "end": 2, "label": "NP", "head": 2, "values": {norm: [H]}}],
                    "attention": [[n + 2]] * H,  # START, words, STOP; every row sums to one
                    "gold": None | {"spans": [{"start", "end", "label"}], "heads": [n], "arc_labels": [n]}}]}

For label attention inside the span, the terms of every score (k words of a span; value = attention * evidence):

    {"title", "model", "note", "boundary": "full" | "lean" | "glass",
     "sentences": [{..., "spans": [{"start", "end", "label", "head",
                                    "readings": [{"label", "score", "attention": [k], "evidence": [k], "value": [k],
                                                  "rest": {"boundary": x} or {"first": x, "last": y, "constant": z}}],
                                    "then": [(label, score)] * k}]}]}  # what comes first without the word's evidence

The readings are of the span's own label and, if there is one, of the label that comes second; all of one add up to its score.
Spans are over fenceposts, heads and a span's head word 1-based (0: the root), label heads 0-based. A span with "group": True
is a joint span that is no constituent (<H>): drawn with a dotted outline, and left out of the comparison with gold.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files

from lalkit.draw import svg
from lalkit.draw.explorer.check import NORMS, check
from lalkit.draw.explorer.picture import compare, in_order, picture
from lalkit.draw.svg import CSS
from lalkit.errors import LalkitError
from lalkit.treebank.brackets import unescape

__all__ = ["NORMS", "explorer", "explorer_frame"]

# Of the two kinds of pages: the panel, its name for screen readers, its scripts, and what to beware of.
KINDS = {
    "heads": (
        "heads.html", "Label heads", ("bars.js", "head.js"),
        "<strong>A large share by itself proves nothing.</strong> What a label head adds has to be compared with controls: see "
        "notebook 05.",
    ),
    "terms": (
        "terms.html", "Terms of scores", ("terms.js", "word.js"),
        "<strong>A term is exact, and still not the whole story.</strong> What a word adds it adds by a vector that the encoder "
        "made of the whole sentence: see notebook 13.",
    ),
}  # fmt: skip
DIGITS = 5  # significant digits of the numbers that go into the page


def explorer(data: dict) -> str:
    """The page, complete, as a string. Raises LalkitError where data is not as described above, naming the place."""
    check(data)
    drawings, sentences = [], []
    for i, sentence in enumerate(data["sentences"]):
        spans = in_order(sentence["spans"])
        comparison = compare({**sentence, "spans": spans})
        drawings.append(f'<template data-sentence="{i}">{picture(sentence, spans, comparison)}</template>')
        sentences.append(_sentence(sentence, spans, comparison))
    terms = "boundary" in data
    payload = (
        {"boundary": data["boundary"]}
        if terms
        else {
            "norm": data["norm"],
            "norms": {norm: NORMS[norm] for norm in data["norms"]},
            "profile": data.get("profile"),
        }
    )
    panel, aside, scripts, caution = KINDS["terms" if terms else "heads"]
    note = data.get("note")
    return _fill(
        _asset("explorer.html"),
        {
            "title": svg.escape(data["title"]),
            "model": svg.escape(data["model"]),
            "note": f'<p class="note">{svg.escape(note)}</p>' if note else "",
            "page_style": _asset("page.css").replace("FONTS", CSS),
            "tree_style": _asset("tree.css"),
            "aside": aside,
            "panel": _asset(panel),
            "caution": caution,
            "drawings": "\n".join(drawings),
            "data": _json({**payload, "sentences": sentences}),
            "script": "\n".join(_asset(name) for name in ("state.js", "tree.js", *scripts, "save.js", "main.js")),
        },
    )


def explorer_frame(html: str, height: int = 900, title: str = "Label head explorer") -> str:
    """The page inside an <iframe srcdoc>, for a notebook: IPython.display.HTML(explorer_frame(html)). height in pixels.

    The frame is sandboxed: the page's script cannot reach the notebook around it; saving and printing are allowed.
    """
    if not isinstance(height, int) or height <= 0:
        raise LalkitError(f"the height of the frame is {height!r}", remedy="Give a positive whole number of pixels.")
    return (
        f'<iframe title="{svg.escape(title)}" sandbox="allow-scripts allow-downloads allow-modals" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8C8C8C" srcdoc="{svg.escape(html)}"></iframe>'
    )


def _sentence(sentence: dict, spans: list[dict], comparison: dict | None) -> dict:
    """What the page's script needs of a sentence."""
    status = comparison["status"] if comparison else [None] * len(spans)
    return {
        "id": sentence["id"],
        "words": [unescape(word) for word in sentence["words"]],
        "spans": [
            {
                **{key: span[key] for key in ("start", "end", "label", "parent", "level")},
                "head": span.get("head"),
                "group": bool(span.get("group")),
                "gold": status[i],
                **_behind(span),
            }
            for i, span in enumerate(spans)
        ],
        "attention": [_rounded(row) for row in sentence.get("attention", ())],
        "comparison": comparison and {"line": comparison["line"], "missing": comparison["missing"]},
    }


def _behind(span: dict) -> dict:
    if "readings" in span:
        return {key: span[key] for key in ("readings", "then")}
    return {"values": {norm: _rounded(values) for norm, values in span["values"].items()}}


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _json(payload: dict) -> str:
    """JSON that may stand inside a <script>: no <, > or & in it."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fill(template: str, parts: dict[str, str]) -> str:
    """Every {{name}} replaced, in one pass: what a part contains is never read as a name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
