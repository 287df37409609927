"""Errors that a user can act on: each says where the problem is, what it is, and what to do about it."""

from __future__ import annotations

import builtins
import inspect
import logging
import operator
import re
import reprlib
import sys
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, wraps
from itertools import islice
from numbers import Real
from os import PathLike, fsencode
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
# Characters that move a terminal's cursor, colour its text, end a line or turn the direction of writing; and lone surrogates.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
warn_once = cache(logging.getLogger("lalkit").warning)  # the same message only the first time
LONGEST = 3_000  # characters of a message, and of its remedy
MOST = 10**9  # the largest whole number of an argument, unless it has another bound


def safe(text: str, keep: str = "") -> str:
    """Return a text that is safe to print: characters that control a terminal become escapes, except the ones in `keep`."""
    return CONTROLS.sub(lambda c: c[0] if c[0] in keep else c[0].encode("unicode_escape").decode(), text)


def shown(value: Any) -> str:
    """Return a short form of any value for a message."""
    try:
        return safe(reprlib.repr(value))
    except Exception:  # Python refuses to write a number of more than 4,300 digits
        return f"a value of type {type(value).__name__} that cannot be written"


class LalkitError(Exception):
    """Base of every error that lalkit raises on purpose. The command line turns it into one message and exit code 2.

    >>> raise lalkit.LalkitError("there is no parser", "Name one.")
    Traceback (most recent call last):
        ...
    lalkit.errors.LalkitError: there is no parser
      Name one.

    problem: what is wrong; remedy: what the user can do; where: the file, the sentence or the setting.
    """

    def __init__(self, problem: str, remedy: str, *, where: str = ""):
        self.problem, self.where, self.remedy = problem, where, remedy
        super().__init__(problem, remedy)  # an error that comes back from another process is built from these two

    def __str__(self) -> str:
        texts = (f"{self.where}: " if self.where else "") + self.problem, self.remedy
        return "\n  ".join(safe(text if len(text) <= LONGEST else f"{text[:LONGEST]} ...") for text in texts)

    def at(self, where: str) -> Self:
        """Return the same error with a place (file, line, sentence) in front of its own."""
        return type(self)(self.problem, where=f"{where}: {self.where}" if self.where else where, remedy=self.remedy)


class TreebankError(LalkitError, ValueError):
    """A tree, a dependency structure or a treebank file is malformed."""


class JointError(TreebankError):
    """The constituents and the dependencies of a sentence do not fit into one joint tree (simplified HPSG)."""


class CorpusError(LalkitError):
    """A corpus, or a part of it, is missing, is empty, or does not fit the task. The remedy says what to get or to use."""


class ModelError(LalkitError):
    """A model, a checkpoint or a configuration is wrong, or cannot be used for this purpose."""


class TooLongError(LalkitError):
    """The charts of a sentence do not fit into memory."""


class ScoreError(LalkitError, ValueError):
    """The scores of a sentence give no best tree: a score is not allowed, for example NaN, or every tree is forbidden."""


class ParameterError(LalkitError):
    """A parameter of a notebook, of a command or of a Python function is unknown, or its value is wrong."""


def reason(error: Exception) -> str:
    """Return the reason of an error in words: the text of the system, or the name of the error's class if it has no text."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known name that is nearest to an unknown one; an empty text if none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Did you mean {near[0]}? " if near else ""


def whole_number(name: str, value, least: int, most: int = MOST) -> int:
    """Return the value of an option as an int. Raises ParameterError unless it is a whole number within these bounds."""
    number = operator.index(value) if _fits(value, int) else None
    if number is not None and least <= number <= most:
        return number
    problem = f"{name} must be a whole number, not {shown(value)}" if number is None else f"{name} is {shown(value)}"
    raise ParameterError(problem, remedy=f"Give {least} or more." if most == MOST else f"Give {least} to {most}.")


# ---------------------------------------------------------------- the arguments of the public interface

KINDS = {
    str: "a text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path", NoneType: "None",
    Iterable: "a list", Sequence: "a list", list: "a list", tuple: "a tuple", Callable: "a function",
}  # fmt: skip


def checked(thing: T) -> T:
    """Check the arguments of a function, or of all public methods of a class, against their type hints at every call.

    The items of a list or tuple are checked, too, unless the hint is Iterable: then the function that reads them checks them.
    An iterator can be read only once, so it becomes a tuple (see `finite`). A call with a wrong, an unknown or a missing
    argument raises a ParameterError that names it.
    """
    function: Any = thing
    if isinstance(thing, type):
        for name, member in list(vars(thing).items()):
            if name[0] != "_" and isinstance(member, FunctionType | classmethod):
                setattr(thing, name, checked(member))
        return thing
    if isinstance(thing, classmethod):
        return classmethod(checked(thing.__func__))  # type: ignore[return-value]
    signature, hints, place = inspect.signature(function), cache(lambda: hints_of(function)), function.__qualname__

    @wraps(function)
    def call(*args, **options):
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise _misfit(str(error), place, list(signature.parameters)[len(args) :], options) from None
        for name, value in bound.arguments.items():
            hint = hints().get(name, Any)
            if isinstance(value, Iterable) and not hasattr(value, "__len__") and _fits((), hint):
                bound.arguments[name] = value = finite(value, name)  # it can be read only once
            if not _fits(value, hint):
                remedy = f"Give {' or '.join(dict.fromkeys(_kinds(hint)))}."
                raise ParameterError(f"{name} cannot be {shown(value)}", where=place, remedy=remedy)
        try:
            return function(*bound.args, **bound.kwargs)
        except ParameterError as error:
            if "names" not in vars(error):
                raise
            names = [*list(hints())[len(args) :], *error.names]  # an option that it passes on
            raise _misfit(error.problem, place, names, options) from None

    return call  # type: ignore[return-value]


def finite(items: Iterable, name: str) -> tuple:
    """Return the items of an iterator as a tuple. Raises ParameterError for an unreadable file, or over a million items."""
    try:
        read = tuple(islice(items, 1_000_001))
    except LalkitError:
        raise
    except (OSError, ValueError) as error:  # a file is closed, or has another encoding
        raise ParameterError(f"the {name} cannot be read: {reason(error)}", remedy="Open the file again.") from error
    if len(read) > 1_000_000:  # it may never end
        raise ParameterError(f"the {name} did not end after a million items", remedy="Give a list, or parse a file.")
    return read


def _misfit(problem: str, where: str, names: list[str], options: Mapping) -> ParameterError:
    """Return the error for a call with unknown or missing arguments. names: the arguments that can be given by name."""
    advice = "".join(did_you_mean(option, names) for option in options if option not in names)
    error = ParameterError(problem, where=where, remedy=f"{advice}The arguments are: {', '.join(names)}.")
    vars(error)["names"] = names
    return error


def hints_of(function: Callable) -> dict[str, Any]:
    """Return the type hints of the parameters of a function, except those of * and **."""
    module = vars(sys.modules[inspect.unwrap(function).__module__])
    names = ChainMap(module, vars(builtins), defaultdict(lambda: Any))  # a name for type checkers alone is of any type
    parameters = inspect.signature(function).parameters.values()
    known = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    hints = {p.name: Any if p.annotation is p.empty else p.annotation for p in known}
    return {name: eval(hint, {}, names) if isinstance(hint, str) else hint for name, hint in hints.items()}


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type that a hint names."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts if part is not str or Path not in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind is Path:
        try:
            return isinstance(value, str | PathLike) and b"\0" not in fsencode(value)
        except UnicodeEncodeError:
            return False
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is int:
        with suppress(TypeError):  # an array has an index if it holds one number
            return operator.index(value) is not None
        return False
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_")  # NumPy's, too
    if kind in (Iterable, Sequence):
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)
        fits = several and (kind is Iterable or hasattr(value, "__getitem__"))
    else:
        fits = kind is Any or not isinstance(kind, type) or isinstance(value, Real if kind is float else kind)
    if not fits or kind is Iterable or not parts or not isinstance(value, list | tuple):
        return fits
    hints = parts if kind is tuple and ... not in parts else parts[:1] * len(value)
    return len(value) == len(hints) and all(map(_fits, value, hints))


def _kinds(hint: Any) -> Iterable[str]:
    """Yield each kind of value that a hint allows, in words."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        for part in parts:
            yield from _kinds(part)
    else:
        known = KINDS.get(kind) or f"a {getattr(kind, '__name__', kind)}"
        yield " or ".join(map(repr, parts)) if kind is Literal else known
