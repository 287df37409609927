"""Turn an explanation into the data of the page to explore. `lalkit.draw.explorer` says what the data mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lalkit.errors import LalkitError
from lalkit.interpret.explanation import BOUNDARY, PARTS, WORD, Explained
from lalkit.interpret.tables import NORMS, normalise

if TYPE_CHECKING:
    from lalkit.interpret.explanation import Explanation
    from lalkit.treebank.tree import Sentence

TITLES = {"heads": "Which label heads made this?", "terms": "Which words made this?"}  # of each kind of pane


def page(
    explanation: Explanation, model: str, title: str | None = None, gold: Sentence | None = None, norm: str = "exact"
) -> dict:
    """Return the data of the page.

    Args:
        explanation: Of one sentence or many, with both layers.
        model: The name of the parser.
        title: None: the question that the page answers.
        gold: The sentence with its gold trees, if there is only one.
        norm: The norm that is shown first, with the paper's layer.

    Raises:
        LalkitError: There is no sentence, or a parse has no dependencies.
    """
    pane = "terms" if explanation.head_labels else "heads"
    if not explanation.sentences:
        raise LalkitError("there is no sentence to show", remedy="Give at least one.")
    if any(parse.heads is None for parse in explanation.parses):
        problem = "a page to explore shows both layers, and this parser gives constituents alone"
        raise LalkitError(problem, remedy="Use a parser of the task joint.")
    data = {"pane": pane, "title": title or TITLES[pane], "model": model, "against": explanation.against}
    if pane == "heads":
        data |= {"norm": norm, "norms": NORMS, "profile": explanation.profile}
    else:
        data["boundary"] = "full" if any(BOUNDARY in one.parts.part for one in explanation.sentences) else "glass"
    return data | {"sentences": [{**_sentence(explanation, one), "gold": gold} for one in explanation.sentences]}


def _sentence(explanation: Explanation, one: Explained) -> dict:
    confidence, against = one.prediction.confidence, explanation.against
    spans = [_span(one, one.places[span], against, explanation.labels) for span in one.constituents()]
    shown = {"sentence": one.prediction.sentence, "spans": spans}
    if one.attention is not None:
        shown["attention"] = one.attention.tolist()
    if confidence:
        shown["arc_probabilities"] = [round(p, 4) for p in confidence.arcs]
        probabilities = {span[:3]: round(p, 4) for span, p in zip(one.prediction.spans, confidence.spans)}
        for span in spans:
            span["probability"] = probabilities[span["start"], span["end"], span["label"]]
    return shown


def _span(one: Explained, place: int, against: str | None, labels: Sequence[str]) -> dict:
    """Return one constituent. With label attention inside the span it has two readings: its own label, and another one."""
    (start, end, label), parts = one.spans[place], one.of(place)
    head = next((span.head for span in one.prediction.spans if span[:3] == (start, end, label)), 0) or None
    span = {"start": start, "end": end, "label": label, "head": head, "score": round(float(one.scores[place]), 4)}
    if against:
        span["against"] = one.difference(place, against).tolist()
    if parts.attention is None:
        raw, exact = one.sums[place], parts.effect[:-1]
        return span | {"values": {norm: normalise(raw, exact, norm).tolist() for norm in NORMS}}
    other = one.second(place) if against in (None, label) else one.places[start, end, against]
    readings = [_reading(one, k) for k in (place, other) if k is not None]
    words = parts.where(parts.part == WORD)
    return span | {"readings": readings, "then": [*zip((labels[k] for k in words.then), _rounded(words.then_score))]}


def _reading(one: Explained, place: int) -> dict:
    """Return the parts of one label's score: those of words, and the rest."""
    parts = one.of(place)
    words, rest = parts.where(parts.part == WORD), parts.where(parts.part != WORD)
    reading = {"label": one.spans[place][2], "score": _rounded(one.scores[[place]])[0]}
    reading |= {name: _rounded(getattr(words, name)) for name in ("attention", "evidence", "value")}
    return {**reading, "rest": dict(zip((PARTS[part][0] for part in rest.part), _rounded(rest.value)))}


def _rounded(values: np.ndarray) -> list[float]:
    """Round to six digits after the point, so that the parts still add up."""
    return [round(value, 6) for value in values.tolist()]
