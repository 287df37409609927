"""A parse by label attention inside the span explained: in words, and as the data of a page (`draw.explorer`).

A score is a sum of terms (`span_terms`), so nothing here is estimated: what a word adds is what the score is less without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lalkit.errors import LalkitError
from lalkit.interpret.explain import frame
from lalkit.interpret.span_terms import Terms
from lalkit.treebank.tree import Sentence

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
        _paragraph(found, terms, top) for _, terms in spans.groupby(["start", "end", "label"], sort=False)
    )


def _paragraph(found: Terms, terms: pd.DataFrame, top: int) -> str:
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
            then = list(zip(words["then"], _numbers(words["then_score"])))
            spans[start, end] = {
                "start": start, "end": end, "label": label, "head": head or None, "readings": [], "then": then
            }  # fmt: skip
        if role != "asked":
            reading = {"label": label, "score": _number(terms["score"].iloc[0])}
            reading |= {key: _numbers(words[key]) for key in ("attention", "evidence", "value")}
            spans[start, end]["readings"].append({**reading, "rest": dict(zip(rest["term"], _numbers(rest["value"])))})
    return list(spans.values())


def _head_word(found: Terms, start: int, end: int, label: str) -> str | None:
    head = next((s.head for s in found.prediction.spans if (s.start, s.end, s.label) == (start, end, label)), 0)
    return found.prediction.sentence.words[head - 1] if head else None


def _second(found: Terms, start: int, end: int) -> pd.DataFrame | None:
    table = found.table
    rows = table[(table["start"] == start) & (table["end"] == end) & (table["role"] == "second")]
    return rows if len(rows) else None


def _numbers(values: pd.Series) -> list[float]:
    return [_number(value) for value in values]


def _number(value: float) -> float:
    """Six digits after the point: what is added up again still adds up."""
    return round(float(value), 6)
