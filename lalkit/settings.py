"""Frozen dataclasses of settings, from text and JSON and back: nothing unknown is let through."""

from __future__ import annotations

import dataclasses
import json
import types
from dataclasses import replace
from math import inf
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from lalkit.errors import ModelError

C = TypeVar("C")


def override(config: C, settings: dict[str, Any]) -> C:
    """A config with some values replaced: {'model.label_attention.heads': 32, 'train.seed': 2}.

    Text values are read as the setting's type. Raises ModelError for an unknown setting or a value of the wrong type.
    """
    for path, value in settings.items():
        config = _set(config, path.split("."), value, path)
    return config


def _set(node: Any, path: list[str], value: Any, whole: str) -> Any:
    hints = get_type_hints(type(node)) if dataclasses.is_dataclass(node) else {}
    if path[0] not in hints:
        raise ModelError(f"there is no setting {whole!r}", remedy=f"At this place: {', '.join(hints) or 'none'}.")
    if len(path) > 1:
        return replace(node, **{path[0]: _set(getattr(node, path[0]), path[1:], value, whole)})
    return replace(node, **{path[0]: _read(hints[path[0]], value, whole)})


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value (text, or from JSON) as the type a setting is declared with."""
    if get_origin(kind) is types.UnionType:
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        kind = next(k for k in get_args(kind) if k is not type(None))
    if dataclasses.is_dataclass(kind):
        if isinstance(value, str):  # as JSON, from the command line
            try:
                value = json.loads(value)
            except ValueError:
                raise ModelError(f"{where} is {value!r}", remedy='Give none, or JSON such as {"d_key": 32}.') from None
        return from_dict(kind, value, where)
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ModelError(f"{where} is {value!r}", remedy=f"It is one of {', '.join(get_args(kind))}.")
    if get_origin(kind) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(_read(float, part, where) for part in parts)
    if kind is bool and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind in (int, float, str) and not isinstance(value, bool):
        try:
            if kind is str:
                return str(value)
            if kind is float or float(value) == int(float(value)):
                return _number(kind(float(value)), where)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ModelError(f"{where} must be of type {getattr(kind, '__name__', kind)}, not {value!r}")


def _number(value: float, where: str) -> float:
    if not value >= 0:
        raise ModelError(f"{where} is {value}", remedy="Give 0 or more: no setting is below zero.")
    return value


def within(config: Any, least: float, most: float, *names: str) -> None:
    """For a config's `__post_init__`. Raises ModelError for a setting of these that is out of its range."""
    for name in names:
        value = getattr(config, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not least <= one <= most:
                remedy = f"Give {least:g} or more." if most == inf else f"Give {least:g} to {most:g}."
                raise ModelError(f"the setting {name} is {value}", remedy=remedy)


def to_dict(config: Any) -> dict:
    """A config as plain JSON values."""
    return dataclasses.asdict(config)


def from_dict(kind: type, values: dict, where: str = "config") -> Any:
    """The inverse of `to_dict`. Raises ModelError for anything unknown: a foreign config is not guessed at."""
    hints = get_type_hints(kind)
    if not isinstance(values, dict) or set(values) - set(hints):
        unknown = sorted(set(values) - set(hints)) if isinstance(values, dict) else values
        raise ModelError(f"{where} has unknown settings: {unknown}")
    return kind(**{name: _read(hints[name], value, f"{where}.{name}") for name, value in values.items()})
