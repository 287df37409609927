"""Check that data have the form that the explorer can show. Every error names its place, such as sentences[1].spans[0].end.

The form is written as tables of fields, which `verify` walks through. Rules about several fields at once follow each table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from lalkit.errors import LalkitError

NORMS = {
    "raw": "raw: the sum over the label head's slice of the span vector.",
    "minmax": "minmax: raw, scaled to 0..1 over the label heads of the span (the paper's).",
    "softmax": "softmax: the softmax of raw over the label heads.",
    "share": "share: the size of raw, |raw|, divided by the sum of all label heads' |raw|.",
    "exact": "exact: how much lower the label's score is without the label head.",
}
# boundary -> the terms of a score besides those of words
EDGES = {"full": ["boundary"], "lean": ["boundary"], "glass": ["first", "last", "constant"]}
CLOSE = 0.01  # a sum may be wrong by this much, because the numbers may have been rounded


class Value(NamedTuple):
    """The form of a single value: what it has to be, in words, and the test for it."""

    what: str
    test: Callable[[Any], bool]


class Many(NamedTuple):
    """The form of a list.

    entry: the form of each entry. length: the number of entries (None: any), one for each `of`, a noun for the error message.
    least: the smallest number of entries. distribution: the entries are numbers of 0 or more that add up to 1.
    """

    entry: Any
    length: int | None = None
    of: str = "words"
    least: int = 0
    distribution: bool = False


TEXT = Value("a text", lambda value: isinstance(value, str) and value != "")
STRING = Value("a text", lambda value: isinstance(value, str))
FLAG = Value("True or False", lambda value: isinstance(value, bool))
NUMBER = Value("a finite number", lambda x: isinstance(x, (int, float)) and type(x) is not bool and math.isfinite(x))
PROBABILITY = Value("a probability from 0 to 1", lambda x: NUMBER.test(x) and 0 <= x <= 1)
LABEL_AND_SCORE = Value(
    "a label and its score",
    lambda x: isinstance(x, (list, tuple)) and len(x) == 2 and TEXT.test(x[0]) and NUMBER.test(x[1]),
)


def whole(low: int, high: float = math.inf) -> Value:
    limits = f"of {low} or more" if high == math.inf else f"from {low} to {high}"
    return Value(f"a whole number {limits}", lambda value: type(value) is int and low <= value <= high)


def one_of(names: Iterable[str]) -> Value:
    return Value(f"one of {', '.join(names)}", lambda value: value in list(names))


def _wrong(problem: str, where: str) -> LalkitError:
    return LalkitError(problem, where=where, remedy="Give data as help(lalkit.draw.explorer.explorer) describes them.")


def verify(value: Any, form: Value | Many | dict, where: str = "") -> None:
    """Raise LalkitError unless a value has this form.

    A dict as a form names the fields that a dict must have, and their forms. It may have other fields too. A field whose name
    ends in "?" may be missing or None.
    """
    if isinstance(form, Value):
        if not form.test(value):
            raise _wrong(f"{value!r} is not {form.what}", where)
    elif isinstance(form, Many):
        if not isinstance(value, (list, tuple)):
            raise _wrong(f"this has to be a list, not {type(value).__name__}", where)
        if form.length not in (None, len(value)):
            raise _wrong(f"{len(value)} entries for {form.length} {form.of}", where)
        if len(value) < form.least:
            raise _wrong("the list is empty", where)
        for i, entry in enumerate(value):
            verify(entry, form.entry, f"{where}[{i}]")
        if form.distribution and (min(value) < 0 or abs(sum(value) - 1) > CLOSE):
            problem = f"these are not numbers of 0 or more that add up to 1: the sum is {sum(value):.4g}"
            raise _wrong(problem, where)
    else:
        if not isinstance(value, dict):
            raise _wrong(f"this has to be a dict, not {type(value).__name__}", where)
        for key, field in form.items():
            name = key.removesuffix("?")
            if name == key and name not in value:
                raise _wrong(f"{name!r} is missing", where)
            if name == key or value.get(name) is not None:
                verify(value[name], field, f"{where}.{name}".lstrip("."))


def check(data: dict) -> None:
    """Raise LalkitError unless the data are what `explorer` describes."""
    sentences = Many({"id": STRING, "words": Many(TEXT)}, least=1)
    verify(data, {"title": TEXT, "model": TEXT, "constrain?": FLAG, "sentences": sentences})
    terms, label_heads = "boundary" in data, None
    if terms:
        verify(data, {"boundary": one_of(EDGES)})
    elif "norms" in data:
        verify(data, {"norms": Many(one_of(NORMS), least=1)})
        verify(data, {"norm": one_of(data["norms"])})
    for i, sentence in enumerate(data["sentences"]):
        where = f"sentences[{i}]" + (f" ({sentence['id']})" if sentence["id"] else "")
        _check_layers(sentence, where)
        if terms:
            for k, span in enumerate(sentence["spans"]):
                _check_readings(span, EDGES[data["boundary"]], f"{where}.spans[{k}]")
        elif "norms" in data:
            label_heads = _check_label_heads(sentence, data["norms"], label_heads, where)
    if data.get("profile") is not None:
        _check_profile(data["profile"], label_heads)


def _check_layers(sentence: dict, where: str) -> None:
    n = len(sentence["words"])
    span = {"label": TEXT, "start": whole(0, n - 1), "end": whole(1, n), "head?": whole(1, n)}
    span |= {"probability?": PROBABILITY, "score?": NUMBER}
    layers = {"heads": Many(whole(0, n), n), "arc_labels": Many(TEXT, n), "spans": Many(span)}
    form = {"tags": Many(TEXT, n), **layers, "gold?": layers, "arc_probabilities?": Many(PROBABILITY, n)}
    verify(sentence, form | {"matches?": Many(Many(whole(0, n), 2, "fenceposts"))}, where)
    for k, match in enumerate(sentence.get("matches") or ()):
        verify(match[1], whole(match[0] + 1, n), f"{where}.matches[{k}][1]")
    gold = (sentence.get("gold") or {"spans": ()})["spans"]
    for name, spans in (("spans", sentence["spans"]), ("gold.spans", gold)):
        for k, span in enumerate(spans):
            start, end = span["start"], span["end"]
            verify(span, {"end": whole(start + 1, n), "head?": whole(start + 1, end)}, f"{where}.{name}[{k}]")
    ends = [(span["start"], span["end"]) for span in gold]
    for pair in ends:
        if ends.count(pair) > 1:
            raise LalkitError(f"two gold constituents over {pair}", where=where, remedy="Join a unary chain with '::'.")


def _check_label_heads(sentence: dict, norms: Sequence[str], label_heads: int | None, where: str) -> int:
    """Check attention and values, and return the number of label heads. It has to be `label_heads`, unless that is None."""
    row = Many(NUMBER, len(sentence["words"]) + 2, "columns (START, words, STOP)", distribution=True)
    verify(sentence, {"attention": Many(row, label_heads, "label heads", least=1)}, where)
    label_heads = len(sentence["attention"])
    values = dict.fromkeys(norms, Many(NUMBER, label_heads, "label heads"))
    verify(sentence, {"spans": Many({"values": values})}, where)
    return label_heads


def _check_readings(span: dict, edges: Sequence[str], where: str) -> None:
    k = span["end"] - span["start"]
    words = {"attention": Many(NUMBER, k, distribution=True), "evidence": Many(NUMBER, k), "value": Many(NUMBER, k)}
    reading = {"label": TEXT, "score": NUMBER, **words, "rest": dict.fromkeys(edges, NUMBER)}
    verify(span, {"readings": Many(reading, least=1), "then": Many(LABEL_AND_SCORE, k)}, where)
    if len(span["readings"]) > 2 or span["readings"][0]["label"] != span["label"]:
        raise _wrong("readings are the span's own label's and, if there is one, the second label's", where)
    for i, reading in enumerate(span["readings"]):
        terms, score = [*reading["value"], *reading["rest"].values()], reading["score"]
        if abs(sum(terms) - score) > CLOSE * max(1, abs(score)):
            raise _wrong("the terms do not add up to the score", f"{where}.readings[{i}]")


def _check_profile(profile: dict, label_heads: int | None) -> None:
    verify(profile, {"corpus": TEXT, "labels": Many(TEXT), "spans": whole(0), "norm?": TEXT}, "profile")
    counts = Many(whole(0), len(profile["labels"]), "labels")
    verify(profile, {"all": counts, "led": Many(counts, label_heads, "label heads")}, "profile")
    for h, row in enumerate(profile["led"]):
        for label, led, total in zip(profile["labels"], row, profile["all"]):
            if led > total:
                raise _wrong(f"it leads {led} {label}, but there are {total}", f"profile.led[{h}]")
