"""A parse explained: in a sentence of words, and as the data of a page (`draw.explorer`).

A parse by label attention inside the span explained: in words, and as the data of a page (`draw.explorer`).

A score is a sum of terms (`span_terms`), so nothing here is estimated: what a word adds is what the score is less without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError
from lalkit.interpret.contributions import NORMS, normalise
from lalkit.interpret.errors import gold_spans
from lalkit.interpret.paper_layer import Look
from lalkit.interpret.span_layer import Terms
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

UNITS = {"exact": "{:+.2f}", "share": "{:.0%} of the sum", "softmax": "{:.0%}", "raw": "{:+.2f}", "minmax": "{:.2f}"}


def explain(
    seen: Look, label: str | None = None, norm: str = "exact", top: int = 3, profile: dict | None = None
) -> str:
    """What stands behind each constituent of a label (None: of all), a paragraph each.

    profile: how often each head leads each label in a corpus (`tables.profile`), to hold the answer against. Raises
    LalkitError for a label that the parse does not have, and where top is no number of heads.
    """
    if top < 1:
        raise LalkitError(f"top must be at least 1, not {top}")
    if profile and profile["norm"] != norm:
        profile = None  # it counts by another norm
    own = [(place, span) for place, span in enumerate(seen.spans) if label in (None, span[2])]
    if not own:
        there = ", ".join(dict.fromkeys(name for *_, name in seen.spans))
        raise LalkitError(f"there is no {label} in this parse", remedy=f"It has: {there}.")
    values = normalise(seen.raw, seen.exact, norm)
    return "\n\n".join(_paragraph(seen, place, values[place], norm, top, profile) for place, _ in own)


def _paragraph(seen: Look, place: int, values: np.ndarray, norm: str, top: int, profile: dict | None) -> str:
    span = start, end, label = seen.spans[place]
    words = seen.sentence.words
    order = np.argsort(-values, kind="stable")[:top]
    first = int(order[0])
    by = [f"label head {h} ({UNITS[norm].format(values[h])})" for h in order]
    focus = int(seen.attention[first].argmax())
    looked = ("the start", *(f"“{word}”" for word in words), "the end")[focus]
    head = next((s.head for s in seen.prediction.spans if (s.start, s.end, s.label) == span), None)
    text = (
        f"{label} “{' '.join(words[start:end])}”"
        + (f", head word “{words[head - 1]}”" if head else "")
        + f", score {seen.scores[place]:.2f}: most by {by[0]}"
        + (f", then {', '.join(by[1:])}" if by[1:] else "")
        + f". Head {first} attends most to {looked} ({seen.attention[first, focus]:.0%}), for this span as for every other of "
        "the sentence."
    )
    return text + _corpus(first, label, profile)


def _corpus(head: int, label: str, profile: dict | None) -> str:
    """How far the head stands for the label, over a corpus."""
    if profile is None or label not in profile["labels"]:
        return ""
    k = profile["labels"].index(label)
    led, spans = profile["led"][head][k], profile["all"][k]
    everything, of_all = sum(profile["led"][head]), profile["spans"]
    share, overall = led / spans, everything / of_all
    lift = f", {share / overall:.1f} times its share of all spans ({overall:.0%})" if everything else ""
    return f" In {profile['corpus']} it is on top of {share:.0%} of {label}{lift}."


def notes(seen: Look, norm: str = "share") -> dict[tuple[int, int], str]:
    """(start, end) -> the top label head of each span and its contribution, short enough to stand on a tree (`draw_tree`)."""
    values = normalise(seen.raw, seen.exact, norm)
    unit = "{:.0%}" if norm in ("share", "softmax") else UNITS[norm]
    return {
        (start, end): f"head {row.argmax()} {unit.format(row.max())}"
        for (start, end, label), row in zip(seen.spans, values)
        if label != GROUP
    }


def page(
    looks: Sequence[Look],
    *,
    title: str,
    model: str,
    gold: Sequence[Sentence] | None = None,
    profile: dict | None = None,
    norm: str = "exact",
    note: str | None = None,
) -> dict:
    """The data that `draw.explorer.explorer` shows: plain lists and numbers."""
    if not looks:
        raise LalkitError("there is no sentence to show", remedy="Give at least one.")
    norms = [name for name in NORMS if name != "exact" or looks[0].exact is not None]
    return {
        "title": title,
        "model": model,
        "note": note,
        "norm": norm if norm in norms else norms[0],
        "norms": norms,
        "profile": profile,
        "sentences": [_sentence(seen, gold[i] if gold else None, norms) for i, seen in enumerate(looks)],
    }


def _sentence(seen: Look, gold: Sentence | None, norms: Sequence[str]) -> dict:
    heads = {(span.start, span.end, span.label): span.head for span in seen.prediction.spans if span.label != GROUP}
    values = {norm: normalise(seen.raw, seen.exact, norm) for norm in norms}
    spans = [
        {
            "start": span[0], "end": span[1], "label": span[2], "head": heads[span],
            "score": float(f"{seen.scores[place]:.4g}"),
            "values": {norm: _numbers(values[norm][place]) for norm in norms},
        }
        for place, span in enumerate(seen.spans) if span in heads
    ]  # fmt: skip
    return {**frame(seen.sentence, gold), "spans": spans, "attention": [_numbers(row) for row in seen.attention]}


def frame(s: Sentence, gold: Sentence | None) -> dict:
    """What every page shows of a sentence: words, tags, arcs, and gold's layers. Raises LalkitError where there are no arcs."""
    if s.heads is None:
        raise LalkitError("a page to explore shows both layers, and this parser gives constituents alone", where=s.id)
    right = gold and {
        "spans": [{"start": a, "end": b, "label": label} for a, b, label in gold_spans([gold])[0]],
        "heads": list(gold.heads or ()),
        "arc_labels": list(gold.arc_labels or ()),
    }
    blank = ["_"] * len(s)
    return {
        "id": s.id, "words": list(s.words), "tags": list(s.tags or blank), "heads": list(s.heads),
        "arc_labels": list(s.arc_labels or blank), "gold": right,
    }  # fmt: skip


def _numbers(values: np.ndarray) -> list[float]:
    """Four significant digits: a page of 40 sentences stays below a few megabytes."""
    return [float(f"{value:.4g}") for value in values]


EDGES = {"first": "its first word", "last": "its last word", "constant": "a constant", "boundary": "its boundaries"}


def explain_terms(found: Terms, label: str | None = None, top: int = 3) -> str:
    """Which words made each constituent of a label (None: of all), a paragraph each, against the label that comes second.

    Raises LalkitError for a label that the parse does not have, and where top is no number of words.
    """
    if top < 1:
        raise LalkitError(f"top must be at least 1, not {top}")
    own = found.table[found.table["role"] == "parse"]
    if not (own["label"] == label).any() and label is not None:
        there = ", ".join(own["label"].unique())
        raise LalkitError(f"there is no {label} in this parse", remedy=f"It has: {there}.")
    spans = own[own["label"] == label] if label else own
    return "\n\n".join(
        _terms_paragraph(found, terms, top) for _, terms in spans.groupby(["start", "end", "label"], sort=False)
    )


def _terms_paragraph(found: Terms, terms: pd.DataFrame, top: int) -> str:
    start, end, label, score = terms[["start", "end", "label", "score"]].iloc[0]
    words, rest = terms[terms["term"] == "word"], terms[terms["term"] != "word"]
    head, second = _head_word(found, start, end, label), _second(found, start, end)
    best = words.loc[words["value"].abs().sort_values(ascending=False, kind="stable").index[:top]]
    said = [f"“{r.word}” {r.value:+.2f} ({r.attention:.0%} of the attention)" for r in best.itertuples()]
    edges = ", ".join(f"{EDGES[r.term]} {r.value:+.2f}" for r in rest.itertuples())
    text = (
        f"{label} “{' '.join(found.prediction.sentence.words[start:end])}”"
        + (f", head word “{head}”" if head else "")
        + f", score {score:.2f}: its words give {words['value'].sum():+.2f} ({', '.join(said)}), {edges}."
    )
    if second is None:
        return text
    first = best.iloc[0]
    there = second[second["position"].eq(first["position"]) & (second["term"] == "word")]
    left = first["score"] - first["value"], there["score"].iloc[0] - there["value"].iloc[0]
    other = second["label"].iloc[0]
    return text + (
        f" {other} comes second with {second['score'].iloc[0]:.2f}. Without the evidence of “{first['word']}” {label} would "
        f"score {left[0]:.2f} and {other} {left[1]:.2f}: {first['then']} would "
        + ("still " * (first["then"] == label))
        + ("come first." if first["then"] in (label, other) else f"come first with {first['then_score']:.2f}.")
    )


def page_of_terms(
    found: Sequence[Terms],
    *,
    title: str,
    model: str,
    boundary: str,
    gold: Sequence[Sentence] | None = None,
    note: str | None = None,
) -> dict:
    """The data that `draw.explorer.explorer` shows. boundary: `config.SpanAttentionConfig.boundary`."""
    sentences = [
        {**frame(terms.prediction.sentence, gold[i] if gold else None), "spans": _spans(terms)}
        for i, terms in enumerate(found)
    ]
    return {"title": title, "model": model, "note": note, "boundary": boundary, "sentences": sentences}


def _spans(found: Terms) -> list[dict]:
    """Of each constituent its readings: of its own label, then of the label that comes second."""
    spans: dict[tuple[int, int], dict] = {}
    for (start, end, label, role), terms in found.table.groupby(["start", "end", "label", "role"], sort=False):
        words, rest = terms[terms["term"] == "word"], terms[terms["term"] != "word"]
        if role == "parse":
            head = next(s.head for s in found.prediction.spans if (s.start, s.end, s.label) == (start, end, label))
            then = list(zip(words["then"], _terms_numbers(words["then_score"])))
            spans[start, end] = {
                "start": start, "end": end, "label": label, "head": head or None, "readings": [], "then": then
            }  # fmt: skip
        if role != "asked":
            reading = {"label": label, "score": _number(terms["score"].iloc[0])}
            reading |= {key: _terms_numbers(words[key]) for key in ("attention", "evidence", "value")}
            spans[start, end]["readings"].append(
                {**reading, "rest": dict(zip(rest["term"], _terms_numbers(rest["value"])))}
            )
    return list(spans.values())


def _head_word(found: Terms, start: int, end: int, label: str) -> str | None:
    head = next((s.head for s in found.prediction.spans if (s.start, s.end, s.label) == (start, end, label)), 0)
    return found.prediction.sentence.words[head - 1] if head else None


def _second(found: Terms, start: int, end: int) -> pd.DataFrame | None:
    table = found.table
    rows = table[(table["start"] == start) & (table["end"] == end) & (table["role"] == "second")]
    return rows if len(rows) else None


def _terms_numbers(values: pd.Series) -> list[float]:
    return [_number(value) for value in values]


def _number(value: float) -> float:
    """Six digits after the point: what is added up again still adds up."""
    return round(float(value), 6)
