"""Search the trees of many sentences, and show what was found: as a table, and each match between its neighbouring words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:  # these load slowly, and most who parse do not need them
    import pandas as pd

    from lalkit.treebank.patterns import Match, Pattern

COLUMNS = "sentence id start end label text head head_word".split()
SHOWN = 50  # lines of a concordance in a notebook
NAME = 16  # characters of a sentence's id in a concordance


@dataclass(frozen=True)
class Hits:
    """What a pattern found. `table` has a row for each match; `print` shows each match between its neighbouring words.

    matches: the number of the sentence (from 0), the sentence, and the match. causes: columns to put beside the table.
    """

    pattern: Pattern
    matches: tuple[tuple[int, Sentence, Match], ...]
    causes: pd.DataFrame | None = field(default=None, repr=False)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each match: sentence (its number), id, start, end, label, text, head (from 1), head_word; then a column
        for each node that the pattern names, with its words, and the columns that were asked for."""
        import pandas as pd

        rows = []
        for number, s, match in self.matches:
            word = unescape(s.words[match.head - 1]) if match.head else None
            spans = [match.captures.get(name) for name in self.pattern.names]
            named = [span and _text(s, span.start, span.end) for span in spans]
            text = _text(s, match.start, match.end)
            rows.append((number, s.id, match.start, match.end, match.label, text, match.head, word, *named))
        table = pd.DataFrame(rows, columns=[*COLUMNS, *(f"={name}" for name in self.pattern.names)])
        table = table.astype({"sentence": int, "start": int, "end": int, "head": "Int64"})
        return table if self.causes is None else table.join(self.causes)

    @cached_property
    def sentences(self) -> dict[int, Sentence]:
        """The sentences with matches, by their numbers."""
        return {number: sentence for number, sentence, _ in self.matches}

    def mark(self, page: dict) -> dict:
        """Mark the matches in the data of a page that shows `sentences`, in this order."""
        for (number, _), shown in zip(self.sentences.items(), page["sentences"]):
            shown["matches"] = [[match.start, match.end] for place, _, match in self.matches if place == number]
        return page

    def concordance(self, width: int = 120) -> str:
        """Return a line for each match: the id, the words before it, the match in [ ], the words after it. Matches stand in
        one column. width: characters of a line."""
        before = (width - NAME) // 3
        lines = []
        for _, s, match in self.matches:
            left = _cut(_text(s, 0, match.start), before, left=True)
            rest = f"[{_text(s, match.start, match.end)}] {_text(s, match.end, len(s))}"
            lines.append(
                f"{_cut(s.id, NAME, left=True)} {left} {_cut(rest, width - NAME - before - 2)}".rstrip() + "\n"
            )
        return "".join(lines)

    def __len__(self) -> int:
        return len(self.matches)

    def __str__(self) -> str:
        return self.concordance()

    def __repr__(self) -> str:
        sentences = len({number for number, _, _ in self.matches})
        return f"{len(self)} matches of {self.pattern.text!r} in {sentences} sentences"

    def _repr_html_(self) -> str:
        """Show the first matches in a notebook."""
        rows = []
        for _, s, m in self.matches[:SHOWN]:
            before, text, after = (
                escape(_text(s, *ends)) for ends in ((0, m.start), (m.start, m.end), (m.end, len(s)))
            )
            left = f"<td>{escape(s.id)}</td><td style='text-align: right'>{before}</td>"
            rows.append(f"<tr>{left}<td style='text-align: left'><b>{text}</b> {after}</td></tr>")
        return f"<p>{escape(repr(self))}</p><table>{''.join(rows)}</table>"


def search(sentences: Iterable[Sentence], pattern: str | Pattern, first: int = 0, **conditions) -> Hits:
    """Search sentences with a pattern. conditions: those of `Pattern`. first: the number of the first sentence."""
    from lalkit.treebank.patterns import Pattern

    compiled = pattern if isinstance(pattern, Pattern) else Pattern(pattern, **conditions)
    found = ((number, s, match) for number, s in enumerate(sentences, first) for match in compiled.find(s))
    return Hits(compiled, tuple(found))


def _text(sentence: Sentence, start: int, end: int) -> str:
    return " ".join(map(unescape, sentence.words[start:end]))


def _cut(text: str, width: int, left: bool = False) -> str:
    """Cut or fill a text, at its end or on its left, to this width on a screen. A Chinese character takes two places there."""
    kept, room = "", width
    for character in reversed(text) if left else text:
        wide = 2 if east_asian_width(character) in "WF" else 1
        if wide > room:
            break
        kept, room = kept + character, room - wide
    return " " * room + kept[::-1] if left else kept + " " * room
