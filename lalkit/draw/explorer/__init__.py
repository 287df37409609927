"""Make the explorer: one HTML file in which a reader points at a constituent and sees the label heads and words behind it.

The page is put together from the files beside this one (explorer.html, one of two panels, style sheets, scripts). It loads
nothing from the network; a policy in its head forbids it. What it shows was computed before: the data hold results only.

The data are plain dicts, lists and numbers; those marked with * may be missing.

- A page: title, model, sentences; *norm (the one shown first), *norms (of NORMS: those that can be chosen), *profile (corpus,
  spans, labels, led [label heads][labels], all [labels], norm), *boundary (full, lean or glass), *constrain. Without norms and
  without a boundary it shows trees alone (`tree_page`).
- A sentence of n words: id, words, tags, heads, arc_labels, spans; *attention (of each label head, over START, the words and
  STOP; the sum is 1), *arc_probabilities, *gold (spans, heads and arc_labels), *matches ([start, end] of what a search found).
- A span, which is a constituent: start, end, label; *head, *probability (what is unsure is drawn faint, and a slider hides it),
  *score. The paper's layer gives values (norm -> a number for each label head). Label attention inside the span gives readings
  (of the span's own label, and of the label with the second best score) and then (for each word: the best label, and its score,
  without the word's evidence).
- A reading, the terms of one label's score for k words: label, score, attention, evidence and value (k numbers each; value =
  attention * evidence), rest (boundary; or, for the boundary `glass`, first, last and constant). Value and rest add up to score.

Spans are over fenceposts (the places between words). Heads, and a span's head word, count words from 1 (0: the root); label heads
are counted from 0. All spans are constituents: joint spans with the group label <H> are not among them.

With "constrain" the page asks the page around it, by postMessage, to parse again: {"forbid": "NP(2,4)"} or
{"require": "VP(2,4)"}, in the notation of `lalkit.chart.constraints`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from lalkit.draw import svg
from lalkit.draw.explorer.picture import compare, in_order, picture
from lalkit.draw.pages import asset
from lalkit.errors import LalkitError, whole_number
from lalkit.treebank.brackets import unescape
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Sentence

NORMS = {
    "raw": "raw: the sum over the label head's slice of the span vector.",
    "minmax": "minmax: raw, scaled to 0..1 over the label heads of the span (the paper's).",
    "softmax": "softmax: the softmax of raw over the label heads.",
    "share": "share: the size of raw, |raw|, divided by the sum of all label heads' |raw|.",
    "exact": "exact: how much lower the label's score is without the label head.",
}


# The kinds of panes: the panel, its name for screen readers, its scripts, and what a reader must not conclude.
KINDS = {
    "heads": (
        "heads.html", "Label heads", ("bars.js", "head.js"),
        "<strong>A large share by itself proves nothing.</strong> Compare what a label head adds with the controls in "
        "notebook 09.",
    ),
    "terms": (
        "terms.html", "Terms of scores", ("terms.js", "word.js"),
        "<strong>A term is exact, but it is not the whole story.</strong> A word adds its term through a vector that the encoder "
        "made from the whole sentence: see notebook 13.",
    ),
    "plain": ("plain.html", "Constituent", ("plain.js",), ""),
}  # fmt: skip
FOLDER = "explorer/"
DIGITS = 4  # significant digits of the numbers of a page, so that a page of 40 sentences stays below a few megabytes


def explorer(data: dict, beside: dict | None = None) -> str:
    """Return the complete page of the data.

    beside: data of the same sentences for a second pane, such as another parser's or gold's. Each pane then marks what the other
    does not have; a "gold" in the data is not shown. Raises LalkitError if the sentences of both panes have other words.
    """
    panes, other = [data], "gold"
    if beside is not None:
        panes, other = [_against(data, beside), _against(beside, data)], "the other tree"
    kinds = ["terms" if "boundary" in pane else "heads" if "norms" in pane else "plain" for pane in panes]
    drawings, payload = [], []
    for p, (pane, kind) in enumerate(zip(panes, kinds)):
        sentences = []
        for i, sentence in enumerate(pane["sentences"]):
            spans = in_order(sentence["spans"])
            comparison = compare({**sentence, "spans": spans}, other)
            drawing = picture(sentence, spans, comparison)
            drawings.append(f'<template data-pane="{p}" data-sentence="{i}">{drawing}</template>')
            sentences.append(_sentence(sentence, spans, comparison))
        norms = {norm: NORMS[norm] for norm in pane.get("norms", ())}
        fields = {"norm": pane.get("norm"), "norms": norms, "profile": pane.get("profile")} if kind == "heads" else {}
        fields |= {"boundary": pane["boundary"]} if kind == "terms" else {}
        payload.append({"kind": kind, "model": pane["model"], "other": other, **fields, "sentences": sentences})
    shown = list(dict.fromkeys(kinds))
    panels, aside, scripts, cautions = zip(*(KINDS[kind] for kind in shown))
    parts = {
        "title": svg.escape(data["title"]),
        "model": svg.escape(" | ".join(pane["model"] for pane in panes)),
        "page_style": asset(FOLDER + "page.css").replace("FONTS", svg.CSS),
        "tree_style": asset(FOLDER + "tree.css"),
        "aside": ", ".join(aside),
        "install": svg.INSTALL,
        "other": other,
        "panels": "\n".join(
            f'<template id="panel-{k}">\n{asset(FOLDER + panel)}</template>' for k, panel in zip(shown, panels)
        ),
        "caution": "".join(f"<p>{caution}</p>" for caution in cautions),
        "drawings": "\n".join(drawings),
        "data": _json({"constrain": bool(data.get("constrain")), "panes": payload}),
        "script": "\n".join(
            [_scripts("write.js"), *_kinds(dict(zip(shown, scripts))), _scripts("main.js", "save.js", "constrain.js")]
        ),
    }
    # One pass: a {{name}} inside a part is text of the data and stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset(FOLDER + "explorer.html"))


def explorer_frame(html: str, height: int = 900, title: str = "Label head explorer") -> str:
    """Return the page inside an <iframe>, for a notebook: IPython.display.HTML(explorer_frame(html)). height: in pixels.

    The frame is sandboxed: the page's script cannot reach the notebook around it; saving and printing are allowed.
    """
    height = whole_number("height", height, 1)
    return svg.element(
        "iframe", "", title=title, sandbox="allow-scripts allow-downloads allow-modals",
        style=f"width: 100%; height: {height}px; border: 1px solid #8C8C8C", srcdoc=html,
    )  # fmt: skip


def tree_page(sentences: Iterable[Sentence], title: str, model: str) -> dict:
    """Return the data of a page of trees without a parser, such as gold trees. Each sentence needs both layers.

    model: a few words that say where the trees come from.
    """
    pages = []
    for s in sentences:
        if s.constituents is None or s.heads is None:
            remedy = "Give a Sentence of a treebank with both layers."
            raise LalkitError("a page to explore needs constituents and dependencies", where=s.id, remedy=remedy)
        heads = [external_head(s.heads, c.start, c.end) for c in s.constituents]
        spans = [
            {"start": c.start, "end": c.end, "label": c.label} | ({} if head is None else {"head": head + 1})
            for c, head in zip(s.constituents, heads)
        ]
        tags, arc_labels = (list(names or ["_"] * len(s)) for names in (s.tags, s.arc_labels))
        layers = {"tags": tags, "heads": list(s.heads), "arc_labels": arc_labels}
        pages.append({"id": s.id, "words": list(s.words), **layers, "spans": spans})
    return {"title": title, "model": model, "sentences": pages}


def _against(data: dict, other: dict) -> dict:
    """Return the data with the other pane's trees in the place of gold."""
    nothing: dict[str, Any] = {"id": "", "words": []}
    pairs = list(zip_longest(data["sentences"], other["sentences"], fillvalue=nothing))
    for mine, theirs in pairs:
        if list(mine["words"]) != list(theirs["words"]):
            remedy = "Give the same sentences twice."
            raise LalkitError("the two panes show other words", where=mine["id"], remedy=remedy)
    layers = ("spans", "heads", "arc_labels")
    return {**data, "sentences": [{**mine, "gold": {key: theirs[key] for key in layers}} for mine, theirs in pairs]}


def _scripts(*names: str) -> str:
    return "\n".join(asset(FOLDER + name) for name in names)


def _kinds(scripts: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the scripts of the panes, each kind as one function, so that two kinds can stand side by side."""
    kinds = []
    for kind, names in scripts.items():
        content = _scripts("state.js", "fold.js", "tree.js", *names, "pane.js")
        kinds.append(f"{kind}: (data, drawing, panel, place) => {{\n{content}}},")
    return ["const kinds = {", *kinds, "};"]


def _sentence(sentence: dict, spans: list[dict], comparison: dict | None) -> dict:
    """Return what the page's script needs of a sentence."""
    status = comparison["status"] if comparison else [None] * len(spans)
    return {
        "id": sentence["id"],
        "words": [unescape(word) for word in sentence["words"]],
        "spans": [
            {key: span[key] for key in ("start", "end", "label", "parent", "level")}
            | {"head": span.get("head"), "gold": span_status, **_behind(span)}
            | ({} if span.get("probability") is None else {"probability": span["probability"]})
            for span, span_status in zip(spans, status)
        ],
        "attention": [_rounded(row) for row in sentence.get("attention", ())],
        "comparison": comparison and {key: comparison[key] for key in ("line", "missing", "differs")},
        "matches": sentence.get("matches"),
    }


def _behind(span: dict) -> dict:
    """Return what the panel lists for a constituent."""
    if "readings" in span:
        return {key: span[key] for key in ("readings", "then")}
    values = {norm: _rounded(values) for norm, values in span.get("values", {}).items()}
    return {"values": values} | ({"score": span["score"]} if "score" in span else {})


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _json(payload: dict) -> str:
    """Return JSON that may stand inside a <script>: without <, > and &."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
