"""Errors a user can act on: each says where the trouble is and what to do about it."""

from __future__ import annotations


class LalkitError(Exception):
    """Base of every error lalkit raises on purpose; the command line turns it into exit code 2."""

    def __init__(self, problem: str, *, where: str = "", remedy: str = ""):
        self.problem, self.where, self.remedy = problem, where, remedy
        super().__init__(problem)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.problem}" + (f"\n  {self.remedy}" if self.remedy else "")

    def at(self, where: str) -> "LalkitError":
        """The same error, with its place (file, line, sentence) put in front."""
        return type(self)(self.problem, where=f"{where}: {self.where}" if self.where else where, remedy=self.remedy)


class TreebankError(LalkitError, ValueError):
    """A tree, a dependency structure or a treebank file that cannot be what it claims to be."""


class JointError(TreebankError):
    """A sentence whose two layers cannot be one simplified-HPSG tree."""


class CorpusError(LalkitError):
    """A named corpus that is not on this machine; the remedy is the command that gets it."""


class ModelError(LalkitError):
    """A model, checkpoint or configuration that cannot be used as asked."""


class TooLongError(LalkitError):
    """A sentence for which the charts do not fit into memory."""


class ParameterError(LalkitError):
    """A notebook or command-line parameter that is unknown or of the wrong type."""
