"""Is it data the explorer can show? Every complaint names the place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lalkit.errors import LalkitError

NORMS = {
    "raw": "raw: the sum over the label head's slice of the span vector.",
    "minmax": "minmax: raw, scaled to 0..1 over the label heads of the span (the paper's).",
    "softmax": "softmax: the softmax of raw over the label heads.",
    "share": "share: the size of raw, |raw|, divided by the sum of all label heads' |raw|.",
    "exact": "exact: how much lower the label's score is without the label head.",
}
CLOSE = 0.01  # how far from one a row of attention may add up to: rows may have been rounded


def check(data: dict) -> None:
    """Raises LalkitError unless data is what `explorer` describes."""
    if not isinstance(data, dict):
        raise LalkitError(f"the explorer takes a dict, not {type(data).__name__}")
    for key in ("title", "model", "norm"):
        _text(data, key, "data")
    if data.get("note") is not None:
        _text(data, "note", "data")
    norms = _list(data, "norms", "data")
    if not norms or len(set(map(str, norms))) < len(norms):
        raise LalkitError(f"norms is {norms!r}", where="data", remedy="Name at least one norm, each once.")
    for norm in norms:
        if norm not in NORMS:
            raise LalkitError(f"there is no norm {norm!r}", where="data", remedy=f"The norms are {', '.join(NORMS)}.")
    if data["norm"] not in norms:
        raise LalkitError(f"the norm shown first, {data['norm']!r}, is not among the norms {norms}", where="data")
    sentences = _list(data, "sentences", "data")
    if not sentences:
        raise LalkitError("there is no sentence to show", where="data")
    heads = None
    for i, sentence in enumerate(sentences):
        where = f"sentences[{i}]"
        if isinstance(sentence, dict) and sentence.get("id"):
            where += f" ({sentence['id']})"
        heads = _sentence(sentence, norms, heads, where)
    if data.get("profile") is not None:
        _profile(data["profile"], heads)


def _sentence(sentence: dict, norms: Sequence[str], heads: int | None, where: str) -> int:
    """Returns the number of label heads, which has to be `heads` where that is known."""
    _text(sentence, "id", where, empty=True)
    n = len(_list(sentence, "words", where))
    for key in ("words", "tags", "heads", "arc_labels"):
        _whole(_list(sentence, key, where, n), 0, n, f"{where}.{key}") if key == "heads" else _texts(
            _list(sentence, key, where, n), f"{where}.{key}"
        )
    attention = _list(sentence, "attention", where, heads, "label heads")
    if not attention:
        raise LalkitError("there is no label head", where=f"{where}.attention")
    for h, row in enumerate(attention):
        place = f"{where}.attention[{h}]"
        _numbers(row, n + 2, place, "columns (START, words, STOP)")
        if min(row) < 0 or abs(sum(row) - 1) > CLOSE:
            raise LalkitError(f"the row is no distribution: it adds up to {sum(row):.4g}", where=place)
    for k, span in enumerate(_list(sentence, "spans", where)):
        place = f"{where}.spans[{k}]"
        _span(span, n, place)
        head = span.get("head")
        if head is not None:
            _whole([head], span["start"] + 1, span["end"], f"{place}.head")
        values = span.get("values")
        if not isinstance(values, dict):
            raise LalkitError("values has to be a dict from norm to numbers", where=place)
        for norm in norms:
            if norm not in values:
                raise LalkitError(f"there are no values by {norm!r}", where=place)
        for norm, row in values.items():
            if norm not in norms:
                raise LalkitError(f"there are values by {norm!r}, which is not among the norms", where=place)
            _numbers(row, len(attention), f"{place}.values[{norm!r}]", "label heads")
    if sentence.get("gold") is not None:
        _gold(sentence["gold"], n, f"{where}.gold")
    return len(attention)


def _gold(gold: dict, n: int, where: str) -> None:
    seen = set()
    for k, span in enumerate(_list(gold, "spans", where)):
        _span(span, n, f"{where}.spans[{k}]")
        pair = span["start"], span["end"]
        if pair in seen:
            raise LalkitError(f"two gold constituents over {pair}", where=where, remedy="Join a unary chain with '::'.")
        seen.add(pair)
    _whole(_list(gold, "heads", where, n), 0, n, f"{where}.heads")
    _texts(_list(gold, "arc_labels", where, n), f"{where}.arc_labels")


def _profile(profile: dict, heads: int) -> None:
    where = "profile"
    _text(profile, "corpus", where)
    labels = _list(profile, "labels", where)
    _texts(labels, f"{where}.labels")
    every = _list(profile, "all", where, len(labels), "labels")
    _whole([profile.get("spans")], 0, math.inf, f"{where}.spans")
    _whole(every, 0, math.inf, f"{where}.all")
    for h, row in enumerate(_list(profile, "led", where, heads, "label heads")):
        place = f"{where}.led[{h}]"
        if not isinstance(row, (list, tuple)) or len(row) != len(labels):
            raise LalkitError(f"the row does not have {len(labels)} numbers, one per label", where=place)
        _whole(row, 0, math.inf, place)
        for label, led, total in zip(labels, row, every):
            if led > total:
                raise LalkitError(f"it leads {led} {label}, but there are {total}", where=place)
    if profile.get("norm") is not None:
        _text(profile, "norm", where)


def _span(span: dict, n: int, where: str) -> None:
    _text(span, "label", where)
    _whole([span.get("start")], 0, n - 1, f"{where}.start")
    _whole([span.get("end")], span["start"] + 1, n, f"{where}.end")


def _get(holder: Any, key: str, where: str) -> Any:
    if not isinstance(holder, dict):
        raise LalkitError(f"it has to be a dict, not {type(holder).__name__}", where=where)
    if key not in holder:
        raise LalkitError(f"{key!r} is missing", where=where)
    return holder[key]


def _text(holder: dict, key: str, where: str, empty: bool = False) -> None:
    value = _get(holder, key, where)
    if not isinstance(value, str) or not (value or empty):
        raise LalkitError(f"{key} is {value!r}, not a text", where=where)


def _texts(values: Sequence, where: str) -> None:
    for value in values:
        if not isinstance(value, str) or not value:
            raise LalkitError(f"{value!r} is not a text", where=where)


def _list(holder: dict, key: str, where: str, length: int | None = None, of: str = "words") -> list | tuple:
    value = _get(holder, key, where)
    if not isinstance(value, (list, tuple)):
        raise LalkitError(f"{key} has to be a list, not {type(value).__name__}", where=where)
    if length is not None and len(value) != length:
        raise LalkitError(f"{key} has {len(value)} entries for {length} {of}", where=where)
    return value


def _whole(values: Sequence, low: int, high: float, where: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            limits = f"of {low} or more" if high == math.inf else f"from {low} to {high}"
            raise LalkitError(f"{value!r} is not a whole number {limits}", where=where)


def _numbers(values: Any, length: int, where: str, of: str) -> None:
    if not isinstance(values, (list, tuple)) or len(values) != length:
        found = f"{len(values)} entries" if isinstance(values, (list, tuple)) else type(values).__name__
        raise LalkitError(f"{found} for {length} {of}", where=where)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise LalkitError(f"{value!r} is not a finite number", where=where)
