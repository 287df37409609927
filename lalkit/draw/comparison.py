"""Compare two parses of the same sentences: a table of what differs, and the two trees of a sentence side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from lalkit.chart.constraints import ArcItem, Item, SpanItem, items_of
from lalkit.draw.tree import draw_layers
from lalkit.errors import LalkitError, whole_number
from lalkit.evaluation.scores import evaluate
from lalkit.treebank.tree import Sentence

SIGN = "≠"  # before the label of what only one of the two parses has
STYLE = (
    ".side-by-side { display: flex } .side-by-side figure { flex: 1; min-width: 0; margin: 0 }"
    ".side-by-side svg { max-width: 100%; height: auto }"
)
SHOWN = 20  # rows of the table that a notebook displays


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two parses of each of some sentences. A notebook displays the table, and the trees of the first sentence that differs."""

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
            only = [
                sorted(_only(*pair), key=lambda item: (isinstance(item, ArcItem), item[::-1])) for pair in zip(*sides)
            ]
            columns[name] = [" ".join(map(str, items)) for items in only]
        return pd.DataFrame(columns)

    @property
    def differs(self) -> pd.Series:
        """For each sentence, whether the two parses differ."""
        return self.table["only_first"] + self.table["only_second"] != ""

    def picture(self, sentence: int | None = None) -> str:
        """Return the trees of a sentence side by side, as HTML. What only one of them has is marked with ≠.

        sentence: its number in the table; None: the first that differs.
        """
        number = int(self.differs.argmax()) if sentence is None else sentence
        number = whole_number("sentence", number, 0, len(self.first) - 1)
        first, second = self.first[number], self.second[number]
        sides = {"first": _marked(first, second), "second": _marked(second, first)}
        boxes = (f"<figure><figcaption>{name}</figcaption>{draw_layers(s)}</figure>" for name, s in sides.items())
        return f'<style>{STYLE}</style><div class="side-by-side">{"".join(boxes)}</div>'

    def __repr__(self) -> str:
        return f"Comparison of {len(self.first)} sentences: {self.differs.sum()} differ"

    def _repr_html_(self) -> str:
        return self.table.to_html(max_rows=SHOWN) + self.picture()


def _only(one: Sentence, other: Sentence) -> frozenset[Item]:
    """Return the constituents and arcs that only the first of two sentences has."""
    first, second = (items_of(s.constituents or (), s.heads or ()) for s in (one, other))
    return first - second


def _marked(one: Sentence, other: Sentence) -> Sentence:
    """Return a sentence with SIGN before the labels of the constituents and arcs that only this sentence has."""
    only, spans = _only(one, other), one.constituents
    if spans is not None:
        spans = tuple(c._replace(label=SIGN * (SpanItem(c.label, c.start + 1, c.end) in only) + c.label) for c in spans)
    pairs = enumerate(zip(one.heads or (), one.arc_labels or ("_",) * len(one)), 1)
    labels = tuple(SIGN * (ArcItem(word, head) in only) + label for word, (head, label) in pairs)
    return replace(one, constituents=spans, arc_labels=labels or None)
