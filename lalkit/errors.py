"""Errors that a user can act on: each says where the problem is, what it is, and what to do about it."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self


class LalkitError(Exception):
    """Base of every error that lalkit raises on purpose. The command line turns it into one message and exit code 2.

    problem: what is wrong; remedy: what the user can do; where: the file, the sentence or the setting.
    """

    def __init__(self, problem: str, remedy: str, *, where: str = ""):
        self.problem, self.where, self.remedy = problem, where, remedy
        super().__init__(problem, remedy)  # an error that comes back from another process is built from these two

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.problem}\n  {self.remedy}"

    def at(self, where: str) -> Self:
        """Return the same error with a place (file, line, sentence) in front of its own."""
        return type(self)(self.problem, where=f"{where}: {self.where}" if self.where else where, remedy=self.remedy)


class TreebankError(LalkitError, ValueError):
    """A tree, a dependency structure or a treebank file is malformed."""


class JointError(TreebankError):
    """The constituents and the dependencies of a sentence do not fit into one joint tree (simplified HPSG)."""


class CorpusError(LalkitError):
    """A named corpus is not on this machine. The remedy is the command that gets it."""


class ModelError(LalkitError):
    """A model, a checkpoint or a configuration cannot be used in the way that was asked for."""


class TooLongError(LalkitError):
    """The charts of a sentence do not fit into memory."""


class ScoreError(LalkitError, ValueError):
    """The scores of a sentence are not finite, so that it has no best tree."""


class ParameterError(LalkitError):
    """A parameter of a notebook or of the command line is unknown, or its value is wrong."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known name that is nearest to an unknown one; an empty text if none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Did you mean {near[0]}? " if near else ""


def whole_number(name: str, value, least: int, most: int | None = None) -> int:
    """Return the value of an option as an int. Raises ParameterError unless it is a whole number within these bounds."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is not None and least <= number and (most is None or number <= most):
        return number
    if number is None:
        problem = f"{name} must be a whole number, not {reprlib.repr(value)}"
    else:  # Python refuses to write a number of more than 4,300 digits
        problem = f"{name} is {number if number.bit_length() < 64 else 'a number of more than 64 bits'}"
    raise ParameterError(problem, remedy=f"Give {least} or more." if most is None else f"Give {least} to {most}.")
