"""Compare two parses of the same sentences: a table of what differs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from lalkit.chart.constraints import ArcItem, Item, items_of
from lalkit.errors import LalkitError
from lalkit.evaluation.scores import evaluate
from lalkit.treebank.tree import Sentence

SHOWN = 20  # rows of the table that a notebook displays


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two parses of each of some sentences. A notebook displays the table."""

    first: tuple[Sentence, ...]
    second: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        if not self.first or [s.words for s in self.first] != [s.words for s in self.second]:
            remedy = "Give the same sentences on both sides, in the same order."
            raise LalkitError("the two sides have different sentences, or none", remedy=remedy)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each sentence.

        sentence, id, text; f1, uas: agreement in percent, as if the first side were gold, without punctuation; only_first,
        only_second: the constituents and arcs that only this side has, in the notation of `lalkit.chart.constraints`.
        """
        scores = evaluate(self.first, self.second).table()
        columns = {"sentence": range(len(self.first)), "id": scores["id"]}
        columns |= {"text": [" ".join(s.words) for s in self.first], "f1": scores["f1"]}
        columns["uas"] = 100 * (scores["arcs_right"] / scores["arcs"]).astype(float)
        for name, sides in (("only_first", (self.first, self.second)), ("only_second", (self.second, self.first))):
            columns[name] = [" ".join(map(str, _only(*pair))) for pair in zip(*sides)]
        return pd.DataFrame(columns)

    @property
    def differs(self) -> pd.Series:
        """For each sentence, whether the two parses differ."""
        return self.table["only_first"] + self.table["only_second"] != ""

    def __repr__(self) -> str:
        return f"Comparison of {len(self.first)} sentences: {self.differs.sum()} differ"

    def _repr_html_(self) -> str:
        return self.table.to_html(max_rows=SHOWN)


def _only(one: Sentence, other: Sentence) -> list[Item]:
    """Return the constituents, and then the arcs, that only the first of two sentences has."""
    first, second = (items_of(s.constituents or (), s.heads or ()) for s in (one, other))
    return sorted(first - second, key=lambda item: (isinstance(item, ArcItem), item[::-1]))
