"""Make the explorer: one HTML file in which a reader points at a constituent and sees the label heads and words behind it.

The page is put together from the files beside this one (explorer.html, one of two panels, style sheets, scripts). It loads
nothing from the network; a policy in its head forbids it. What it shows was computed before: the data hold results only.

The data are plain dicts, lists and numbers, and Sentences; those marked with * may be missing.

- A page: pane (heads, terms or plain), title, model, sentences; *norm (the one shown first), *norms (those that can be chosen:
  name -> its meaning), *profile (corpus, spans, labels, led [label heads][labels], all [labels], norm), *boundary (full or
  glass), *constrain, *against (the label that is compared with the label of each constituent).
  A plain pane shows trees alone (`tree_page`); `lalkit.interpret.explanation.page` makes the others.
- A sentence of n words: sentence (both layers), gold (both layers, or None), spans; *attention (of each label head, over START,
  the words and STOP; the sum is 1), *arc_probabilities, *layers (of self-attention: name -> [heads][from][to], likewise).
- A span, which is a constituent: start, end, label; *head, *probability (a low one is drawn faint, and a slider hides it),
  *score. The paper's layer gives values (norm -> a number for each label head). Label attention inside the span gives readings
  (of the span's own label, and of `against` or of the label with the second best score) and then (for each word: the best label,
  and its score, without the word's evidence). *against: what each part (head or word, then the rest) adds to the label, less
  what it adds to the label `against`; the sum is the difference of both scores.
- A reading, the terms of one label's score for k words: label, score, attention, evidence and value (k numbers each; value =
  attention * evidence), rest (boundary; or, for the boundary `glass`, first, last and constant). Value and rest add up to score.

Spans are over fenceposts (the places between words). A span's head word counts words from 1; label heads are counted from 0. All
spans are constituents: joint spans with the group label <H> are not among them.

With "constrain" the page asks the page around it, by postMessage, to parse again: {"forbid": "NP(2,4)"} or
{"require": "VP(2,4)"}, in the notation of `lalkit.chart.constraints`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from lalkit.draw import svg
from lalkit.draw.pages import asset
from lalkit.errors import LalkitError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Sentence

# The kinds of panes: the panel, its name for screen readers, its scripts, and a caution for the reader.
KINDS = {
    "heads": (
        "heads.html", "Label heads", ("bars.js", "head.js"),
        "<strong>A large share by itself proves nothing.</strong> Compare what a label head adds with the controls in "
        "notebook 09.",
    ),
    "terms": (
        "terms.html", "Terms of scores", ("terms.js", "word.js"),
        "<strong>A term is exact, but it is not the whole story.</strong> A word adds its term through a vector that the encoder "
        "made from the whole sentence: see notebook 11.",
    ),
    "plain": ("plain.html", "Constituent", ("plain.js",), ""),
}  # fmt: skip
FOLDER = "explorer/"
EXTRA, OTHER = "\u00d7", "\u2260"  # × not in gold; ≠ gold has another label there. The drawing has them, too
DIGITS = 4  # significant digits of the numbers of a page, so that a page of 40 sentences stays below a few megabytes


def explorer(data: dict, beside: dict | None = None) -> str:
    """Return the complete page of the data.

    beside: data of the same sentences for a second pane, such as another parser's or gold's. Each pane then marks the parts
    that the other lacks; a "gold" in the data is not shown. Raises LalkitError if the words of the two panes differ.
    """
    panes, other = [data], "gold"
    if beside is not None:
        panes, other = [_against(data, beside), _against(beside, data)], "the other tree"
    payload = []
    for pane in panes:
        fields = {key: pane[key] for key in ("norm", "norms", "profile", "boundary", "against") if key in pane}
        sentences = []
        for shown in pane["sentences"]:
            spans = in_order(shown["spans"])
            sentences.append(_sentence(shown, spans, compare(shown["sentence"], spans, shown["gold"], other)))
        payload.append({"kind": pane["pane"], "model": pane["model"], "other": other, **fields, "sentences": sentences})
    kinds = {pane["kind"]: KINDS[pane["kind"]] for pane in payload}
    panels = [f'<template id="panel-{kind}">\n{asset(FOLDER + file)}</template>' for kind, (file, *_) in kinds.items()]
    content = {"constrain": bool(data.get("constrain")), "panes": payload}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    parts = {
        "title": svg.escape(data["title"]),
        "model": svg.escape(" | ".join(pane["model"] for pane in panes)),
        "style": asset(FOLDER + "page.css").replace("FONTS", svg.CSS),
        "aside": ", ".join(aside for _, aside, *_ in kinds.values()),
        "other": other,
        "panels": "\n".join(panels),
        "caution": "".join(f"<p>{caution}</p>" for *_, caution in kinds.values()),
        # JSON that may stand inside a <script>: without <, > and &.
        "data": text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        "script": _script(kinds),
    }
    # One pass: a {{name}} inside a part is text of the data and stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset(FOLDER + "explorer.html"))


def explorer_frame(html: str) -> str:
    """Return the page inside an <iframe>, for a notebook: IPython.display.HTML(explorer_frame(html)).

    The frame is sandboxed: the page's script cannot reach the notebook around it; saving and printing are allowed.
    """
    return svg.element(
        "iframe", "", title="Label head explorer", sandbox="allow-scripts allow-downloads allow-modals",
        style=f"width: 100%; height: 900px; border: 1px solid {svg.LINE}", srcdoc=html,
    )  # fmt: skip


def tree_page(sentences: Iterable[Sentence], title: str, model: str) -> dict:
    """Return the data of a page of trees without a parser, such as gold trees. Each sentence needs both layers.

    model: a few words that say where the trees come from. Raises LalkitError for a sentence without one of the layers.
    """
    pages = []
    for s in sentences:
        if s.constituents is None or s.heads is None:
            remedy = "Give a Sentence of a treebank with both layers."
            raise LalkitError("a page to explore needs constituents and dependencies", where=s.id, remedy=remedy)
        heads = [external_head(s.heads, c.start, c.end) for c in s.constituents]
        spans = [{**c._asdict(), "head": None if head is None else head + 1} for c, head in zip(s.constituents, heads)]
        pages.append({"sentence": s, "gold": None, "spans": spans})
    return {"pane": "plain", "title": title, "model": model, "sentences": pages}


def _against(data: dict, other: dict) -> dict:
    """Return the data with the other pane's trees in the place of gold."""
    mine, theirs = ([shown["sentence"] for shown in pane["sentences"]] for pane in (data, other))
    if [s.words for s in mine] != [s.words for s in theirs]:
        raise LalkitError("the two panes show other words", remedy="Give the same sentences twice.")
    return {**data, "sentences": [{**shown, "gold": s} for shown, s in zip(data["sentences"], theirs)]}


def _script(kinds: dict) -> str:
    """Return the script of the page. Each kind of panes is one function, so that two kinds can stand side by side."""
    parts = [*(asset(FOLDER + name) for name in ("write.js", "layout.js", "draw.js")), "const kinds = {"]
    for kind, (_, _, files, _) in kinds.items():
        content = "\n".join(asset(FOLDER + name) for name in ("state.js", "tree.js", *files, "pane.js"))
        parts.append(f"{kind}: (data, drawing, panel, place) => {{\n{content}}},")
    parts += ["};", *(asset(FOLDER + name) for name in ("constrain.js", "layers.js", "main.js", "save.js"))]
    return "\n".join(parts)


def _sentence(shown: dict, spans: list[dict], comparison: dict | None) -> dict:
    """Return the data of a sentence that the page's script reads."""
    status = comparison["status"] if comparison else [None] * len(spans)
    rows = [{**span, "gold": span_status} for span, span_status in zip(spans, status)]
    for row in rows:
        row.setdefault("head", None)
        if "values" in row:
            row["values"] = {norm: _rounded(values) for norm, values in row["values"].items()}
            row |= {"against": _rounded(row["against"])} if "against" in row else {}
    sentence = shown["sentence"]
    return {
        **{name: getattr(sentence, name) for name in ("id", "tags", "heads", "arc_labels")},
        **{name: shown.get(name) for name in ("arc_probabilities", "layers")},
        "words": [unescape(word) for word in sentence.words],
        "spans": rows,
        "attention": [_rounded(row) for row in shown.get("attention", ())],
        "comparison": comparison and {key: comparison[key] for key in ("line", "missing", "differs", "arcs")},
    }


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


# ---------------------------------------------------------------- beside gold, and in the order of the page


def compare(sentence: Sentence, spans: list[dict], gold: Sentence | None, name: str = "gold") -> dict | None:
    """Compare a parse with gold; a unary chain counts as one constituent. Returns None if there is no gold, else

    status: for each span "same", "extra" (not in gold), or {"label": gold's label over the same words};
    arcs: for each word "same", "head" (the head is wrong) or "label" (only the label is wrong);
    missing: the constituents of gold that the parse does not have; line: the counts, as sentences for the page; differs:
    whether there is any difference. name: the name of gold on the page.
    """
    if gold is None:
        return None
    labels = {(c.start, c.end): c.label for c in gold.constituents}
    mine = {(span["start"], span["end"]): span["label"] for span in spans}
    status = [
        "extra" if place not in labels else "same" if labels[place] == label else {"label": labels[place]}
        for place, label in mine.items()
    ]
    missing = [c._asdict() for c in gold.constituents if mine.get((c.start, c.end)) != c.label]
    blank = ("_",) * len(sentence)
    pairs = zip(sentence.heads, gold.heads, sentence.arc_labels or blank, gold.arc_labels or blank)
    arcs = ["head" if head != right else "same" if a == b else "label" for head, right, a, b in pairs]
    extra, same, heads = status.count("extra"), status.count("same"), len(arcs) - arcs.count("head")
    line = (
        f"Constituents: {same} of {len(status)} are in {name}. For {len(status) - same - extra} of them, {name} has another "
        f"label over the same words ({OTHER}). For {extra} of them, {name} has no constituent over these words ({EXTRA}). "
        f"{len(missing)} of the {len(labels)} constituents in {name} are missing here. Arcs: {heads} of {len(arcs)} words have "
        f"the same head word as in {name}, and {arcs.count('same')} words also have the same arc label. Punctuation counts."
    )
    differs = bool(missing) or any(item != "same" for item in [*status, *arcs])
    return {"status": status, "arcs": arcs, "missing": missing, "differs": differs, "line": line}


def in_order(spans: list[dict]) -> list[dict]:
    """Return the spans in pre-order, each with its parent (index or None) and its level (1: outermost)."""
    ordered, open_ = [], []
    for span in sorted(spans, key=lambda s: (s["start"], -s["end"])):
        while open_ and ordered[open_[-1]]["end"] <= span["start"]:
            open_.pop()
        ordered.append({**span, "parent": open_[-1] if open_ else None, "level": len(open_) + 1})
        open_.append(len(ordered) - 1)
    return ordered
