"""Of what form is a value? Every complaint names the place."""

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
