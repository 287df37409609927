"""Is it data the explorer can show? Every complaint names the place.

Of what form is a value? Every complaint names the place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lalkit.errors import LalkitError


def get(holder: Any, key: str, where: str) -> Any:
    if not isinstance(holder, dict):
        raise LalkitError(f"it has to be a dict, not {type(holder).__name__}", where=where)
    if key not in holder:
        raise LalkitError(f"{key!r} is missing", where=where)
    return holder[key]


def text(holder: dict, key: str, where: str, empty: bool = False) -> None:
    value = get(holder, key, where)
    if not isinstance(value, str) or not (value or empty):
        raise LalkitError(f"{key} is {value!r}, not a text", where=where)


def texts(values: Sequence, where: str) -> None:
    for value in values:
        if not isinstance(value, str) or not value:
            raise LalkitError(f"{value!r} is not a text", where=where)


def listed(holder: dict, key: str, where: str, length: int | None = None, of: str = "words") -> list | tuple:
    value = get(holder, key, where)
    if not isinstance(value, (list, tuple)):
        raise LalkitError(f"{key} has to be a list, not {type(value).__name__}", where=where)
    if length is not None and len(value) != length:
        raise LalkitError(f"{key} has {len(value)} entries for {length} {of}", where=where)
    return value


def whole(values: Sequence, low: int, high: float, where: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            limits = f"of {low} or more" if high == math.inf else f"from {low} to {high}"
            raise LalkitError(f"{value!r} is not a whole number {limits}", where=where)


def numbers(values: Any, length: int, where: str, of: str) -> None:
    if not isinstance(values, (list, tuple)) or len(values) != length:
        found = f"{len(values)} entries" if isinstance(values, (list, tuple)) else type(values).__name__
        raise LalkitError(f"{found} for {length} {of}", where=where)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise LalkitError(f"{value!r} is not a finite number", where=where)


NORMS = {
    "raw": "raw: the sum over the label head's slice of the span vector.",
    "minmax": "minmax: raw, scaled to 0..1 over the label heads of the span (the paper's).",
    "softmax": "softmax: the softmax of raw over the label heads.",
    "share": "share: the size of raw, |raw|, divided by the sum of all label heads' |raw|.",
    "exact": "exact: how much lower the label's score is without the label head.",
}
BOUNDARIES = ("full", "lean", "glass")
CLOSE = 0.01  # how far from one a row of attention may add up to, or terms from their score: they may have been rounded


def check(data: dict) -> None:
    """Raises LalkitError unless data is what `explorer` describes."""
    if not isinstance(data, dict):
        raise LalkitError(f"the explorer takes a dict, not {type(data).__name__}")
    terms = "boundary" in data
    for key in ("title", "model", "boundary" if terms else "norm"):
        text(data, key, "data")
    if data.get("note") is not None:
        text(data, "note", "data")
    if terms and data["boundary"] not in BOUNDARIES:
        raise LalkitError(f"boundary is {data['boundary']!r}", where="data", remedy=f"One of {', '.join(BOUNDARIES)}.")
    if not terms:
        _norms(data)
    sentences = listed(data, "sentences", "data")
    if not sentences:
        raise LalkitError("there is no sentence to show", where="data")
    heads = None
    for i, sentence in enumerate(sentences):
        where = f"sentences[{i}]"
        if isinstance(sentence, dict) and sentence.get("id"):
            where += f" ({sentence['id']})"
        n = _layers(sentence, where)
        heads = None if terms else _attention(sentence, n, heads, where)
        for k, span in enumerate(listed(sentence, "spans", where)):
            place = f"{where}.spans[{k}]"
            _span(span, n, place)
            if span.get("head") is not None:
                whole([span["head"]], span["start"] + 1, span["end"], f"{place}.head")
            if terms:
                _readings(span, place)
            else:
                _values(span, data["norms"], heads, place)
        if sentence.get("gold") is not None:
            _gold(sentence["gold"], n, f"{where}.gold")
    if data.get("profile") is not None:
        _profile(data["profile"], heads)


def _norms(data: dict) -> None:
    norms = listed(data, "norms", "data")
    if not norms or len(set(map(str, norms))) < len(norms):
        raise LalkitError(f"norms is {norms!r}", where="data", remedy="Name at least one norm, each once.")
    for norm in norms:
        if norm not in NORMS:
            raise LalkitError(f"there is no norm {norm!r}", where="data", remedy=f"The norms are {', '.join(NORMS)}.")
    if data["norm"] not in norms:
        raise LalkitError(f"the norm shown first, {data['norm']!r}, is not among the norms {norms}", where="data")


def _layers(sentence: dict, where: str) -> int:
    """Returns the number of words."""
    text(sentence, "id", where, empty=True)
    n = len(listed(sentence, "words", where))
    for key in ("words", "tags", "heads", "arc_labels"):
        values = listed(sentence, key, where, n)
        whole(values, 0, n, f"{where}.{key}") if key == "heads" else texts(values, f"{where}.{key}")
    return n


def _attention(sentence: dict, n: int, heads: int | None, where: str) -> int:
    """Returns the number of label heads, which has to be `heads` where that is known."""
    attention = listed(sentence, "attention", where, heads, "label heads")
    if not attention:
        raise LalkitError("there is no label head", where=f"{where}.attention")
    for h, row in enumerate(attention):
        _distribution(row, n + 2, f"{where}.attention[{h}]", "columns (START, words, STOP)")
    return len(attention)


def _distribution(row: Sequence, length: int, where: str, of: str) -> None:
    numbers(row, length, where, of)
    if min(row) < 0 or abs(sum(row) - 1) > CLOSE:
        raise LalkitError(f"the row is no distribution: it adds up to {sum(row):.4g}", where=where)


def _values(span: dict, norms: Sequence[str], heads: int, where: str) -> None:
    values = span.get("values")
    if not isinstance(values, dict):
        raise LalkitError("values has to be a dict from norm to numbers", where=where)
    for norm in norms:
        if norm not in values:
            raise LalkitError(f"there are no values by {norm!r}", where=where)
    for norm, row in values.items():
        if norm not in norms:
            raise LalkitError(f"there are values by {norm!r}, which is not among the norms", where=where)
        numbers(row, heads, f"{where}.values[{norm!r}]", "label heads")


def _readings(span: dict, where: str) -> None:
    k, readings = span["end"] - span["start"], listed(span, "readings", where)
    if len(readings) not in (1, 2) or get(readings[0], "label", where) != span["label"]:
        raise LalkitError("readings are the span's own label's and, if there is one, the second's", where=where)
    for i, reading in enumerate(readings):
        place = f"{where}.readings[{i}]"
        text(reading, "label", place)
        _distribution(listed(reading, "attention", place), k, f"{place}.attention", "words")
        for key in ("evidence", "value"):
            numbers(get(reading, key, place), k, f"{place}.{key}", "words")
        rest, score = get(reading, "rest", place), get(reading, "score", place)
        numbers([*rest.values(), score], len(rest) + 1, place, "edges and a score")
        if abs(sum(reading["value"]) + sum(rest.values()) - score) > CLOSE * max(1, abs(score)):
            raise LalkitError("the terms do not add up to the score", where=place)
    for label, score in listed(span, "then", where, k):
        texts([label], f"{where}.then")
        numbers([score], 1, f"{where}.then", "score")


def _gold(gold: dict, n: int, where: str) -> None:
    seen = set()
    for k, span in enumerate(listed(gold, "spans", where)):
        _span(span, n, f"{where}.spans[{k}]")
        pair = span["start"], span["end"]
        if pair in seen:
            raise LalkitError(f"two gold constituents over {pair}", where=where, remedy="Join a unary chain with '::'.")
        seen.add(pair)
    whole(listed(gold, "heads", where, n), 0, n, f"{where}.heads")
    texts(listed(gold, "arc_labels", where, n), f"{where}.arc_labels")


def _profile(profile: dict, heads: int) -> None:
    where = "profile"
    text(profile, "corpus", where)
    labels = listed(profile, "labels", where)
    texts(labels, f"{where}.labels")
    every = listed(profile, "all", where, len(labels), "labels")
    whole([profile.get("spans")], 0, math.inf, f"{where}.spans")
    whole(every, 0, math.inf, f"{where}.all")
    for h, row in enumerate(listed(profile, "led", where, heads, "label heads")):
        place = f"{where}.led[{h}]"
        if not isinstance(row, (list, tuple)) or len(row) != len(labels):
            raise LalkitError(f"the row does not have {len(labels)} numbers, one per label", where=place)
        whole(row, 0, math.inf, place)
        for label, led, total in zip(labels, row, every):
            if led > total:
                raise LalkitError(f"it leads {led} {label}, but there are {total}", where=place)
    if profile.get("norm") is not None:
        text(profile, "norm", where)


def _span(span: dict, n: int, where: str) -> None:
    text(span, "label", where)
    whole([span.get("start")], 0, n - 1, f"{where}.start")
    whole([span.get("end")], span["start"] + 1, n, f"{where}.end")
