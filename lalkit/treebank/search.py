"""Find places in trees with patterns of tgrep, as NLTK reads them.

`SBAR < (IN < that)` finds clauses that begin with the word *that*; `S < (NP=who $.. VP)` also captures the NP. The syntax is in
notebooks/patterns.md. A pattern sees `Sentence.tree`: without function tags, each unary chain as several nodes, and round
brackets as -LRB- and -RRB-.

NLTK does the matching. Two of its results differ, because we give it other nodes. For NLTK a word is a bare string without a
parent, so that `that > IN` finds nothing; here a word is a node, as in Tregex. And NLTK takes two subtrees for one if they are
written in the same way, so that `>>,` and `>>'` find too much; here each node is only equal to itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html import escape as escape_html
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from nltk import tgrep
from nltk.tree import ParentedTree

from lalkit.errors import ParameterError, checked, shown
from lalkit.treebank.brackets import unescape
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Node, Sentence, Span, escape

if TYPE_CHECKING:  # it loads slowly
    import pandas as pd

REMEDY = 'A pattern looks like SBAR < (IN < that). Signs stand between quotes: ",". See notebooks/patterns.md.'
QUOTED = r'"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\])*/'
# Mark of a macro, node, name
NODE = re.compile(rf"(@?)((?:i@)?(?:{QUOTED})|\*|[^][\s;:.,&|<>()$!@%'^=]+)(=[A-Za-z0-9]+)?")
MOST_BRACKETS = 50
UNREADABLE = tgrep.pyparsing.ParseBaseException, tgrep.TgrepException, ValueError, RecursionError, AssertionError
COLUMNS = "sentence id start end label text head head_word".split()
SHOWN = 50  # lines of a concordance in a notebook
NAME = 16  # characters of a sentence's id in a concordance


# ---------------------------------------------------------------- patterns


class Place(ParentedTree):
    """A node as NLTK's tgrep sees it, over words[start:end]. A word is a node without children."""

    start: int
    end: int
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.label())

    @classmethod
    def of(cls, node: Node, start: int = 0) -> Place:
        """Convert a node, whose first word has the number `start`, and all nodes below it."""
        if node.is_leaf:
            children = [cls(escape(node.word), [])]
            children[0].start, children[0].end = start, start + 1
        else:
            children = []
            for child in node.children:
                children.append(cls.of(child, children[-1].end if children else start))
        place = cls(escape(node.label), children)
        place.start, place.end = start, children[-1].end
        return place


@dataclass(frozen=True)
class Match:
    """A node that a pattern found: words[start:end] with its label. The label of a word is the word itself.

    head: the head word (from 1), the only word of the node with a head outside; None if there is none, or no dependencies.
    captures: the nodes that the pattern names with =name.
    """

    start: int
    end: int
    label: str
    head: int | None = None
    captures: dict[str, Span] = field(default_factory=dict)


class Pattern:
    """A compiled tree pattern."""

    @checked
    def __init__(self, text: str):
        """Compile a pattern in the syntax of tgrep. Raises ParameterError for one that cannot be read."""
        if not text.strip() or text.count("(") + text.count("[") > MOST_BRACKETS:
            problem = f"a pattern is a text with at most {MOST_BRACKETS} brackets"
            raise ParameterError(problem, where=f"pattern {shown(text)}", remedy=REMEDY)
        self.text = text
        tokens = _parse(text, False)
        self.names = tuple(dict.fromkeys(name for equals, name in zip(tokens, tokens[1:]) if equals == "="))
        parts = _parse(_with_macros(text), True)
        self._macros = {name: macro for part in parts if isinstance(part, dict) for name, macro in part.items()}
        self._expressions = [part for part in parts if callable(part)]

    def find(self, sentence: Sentence | Node) -> Iterator[Match]:
        """Yield the matches in a sentence or a tree: parents before children, from left to right.

        Raises LalkitError for a sentence without constituents.
        """
        where, heads, tree = "", None, sentence
        if isinstance(sentence, Sentence):
            where, heads, tree = sentence.where, sentence.heads, sentence.tree
        try:
            for place in Place.of(tree).subtrees():  # type: ignore[arg-type]
                labels: dict[str, Place] = {}
                if not any(expression(place, self._macros, labels) for expression in self._expressions):
                    continue
                head = external_head(heads, place.start, place.end) if heads else None
                captures = {name: node.span for name, node in labels.items()}
                yield Match(place.start, place.end, place.label(), None if head is None else head + 1, captures)
        except (tgrep.TgrepException, TimeoutError, RecursionError) as error:
            problem = "the tree is too deep to search" if isinstance(error, RecursionError) else str(error)
            raise ParameterError(problem, where=f"{where}: pattern {self.text[:80]!r}", remedy=REMEDY) from None


def _with_macros(text: str) -> str:
    """Define each node that has a name as a macro. Otherwise NLTK fails for it (NLTK's issue 1276)."""
    macros: list[str] = []

    def use(match: re.Match) -> str:
        if match[1] or not match[3]:
            return match[0]
        macros.append(f"@ {{{len(macros)}}} {match[2]}; ")
        return f"@{{{len(macros) - 1}}}{match[3]}"

    uses = NODE.sub(use, text)
    return "".join(macros) + uses


def _parse(text: str, predicates: bool) -> list:
    """Return the tokens of a pattern; with predicates, its macros and the functions that test a node.

    Raises ParameterError with the place if NLTK cannot read the pattern.
    """
    grammar = tgrep._build_tgrep_parser(predicates)
    grammar.set_parse_action(None)  # without NLTK's last step, which hides the nodes that have names
    try:
        return list(grammar.parse_with_tabs().parse_string(text, parse_all=True))
    except UNREADABLE as error:
        loc = getattr(error, "loc", None)
        problem = (str(error) or "a quotation is never closed") if loc is None else "it cannot be read from here on"
        place = "" if loc is None else f", character {loc + 1} (before {text[loc : loc + 20]!r})"
        raise ParameterError(problem, where=f"pattern {text[:80]!r}{place}", remedy=REMEDY) from None


# ---------------------------------------------------------------- matches


@dataclass(frozen=True)
class Hits:
    """The matches of a pattern. `table` has a row for each match; `print` shows each match between its neighbouring words.

    matches: the number of the sentence (from 0), the sentence, and the match.
    """

    pattern: Pattern
    matches: tuple[tuple[int, Sentence, Match], ...]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each match: sentence (its number), id, start, end, label, text, head (from 1), head_word; then a column
        for each node that the pattern names, with its words."""
        import pandas as pd

        rows = []
        for number, s, match in self.matches:
            word = unescape(s.words[match.head - 1]) if match.head else None
            spans = [match.captures.get(name) for name in self.pattern.names]
            named = [span and _text(s, span.start, span.end) for span in spans]
            text = _text(s, match.start, match.end)
            rows.append((number, s.id, match.start, match.end, match.label, text, match.head, word, *named))
        table = pd.DataFrame(rows, columns=[*COLUMNS, *(f"={name}" for name in self.pattern.names)])
        return table.astype({"sentence": int, "start": int, "end": int, "head": "Int64"})

    @cached_property
    def sentences(self) -> dict[int, Sentence]:
        """The sentences with matches, by their numbers."""
        return {number: sentence for number, sentence, _ in self.matches}

    def concordance(self, width: int = 120) -> str:
        """Return a line for each match: the id, the words before it, the match in [ ], the words after it. Matches stand in
        one column. width: characters of a line."""
        before = (width - NAME) // 3
        lines = []
        for _, s, match in self.matches:
            left = _cut(_text(s, 0, match.start), before, left=True)
            rest = f"[{_text(s, match.start, match.end)}] {_text(s, match.end, len(s))}"
            lines.append(f"{_cut(s.id, NAME, left=True)} {left} {_cut(rest, width - NAME - before - 2)}".rstrip())
        return "".join(f"{line}\n" for line in lines)

    def __len__(self) -> int:
        return len(self.matches)

    def __str__(self) -> str:
        return self.concordance()

    def __repr__(self) -> str:
        return f"{len(self)} matches of {self.pattern.text!r} in {len(self.sentences)} sentences"

    def _repr_html_(self) -> str:
        """Show the first matches in a notebook."""
        lines = self.concordance().splitlines()[:SHOWN]
        return f"<p>{escape_html(repr(self))}</p><pre>{escape_html(chr(10).join(lines))}</pre>"


def search(sentences: Iterable[Sentence], pattern: str | Pattern) -> Hits:
    """Search sentences with a pattern. Raises ParameterError for a wrong pattern, LalkitError for missing constituents."""
    compiled = pattern if isinstance(pattern, Pattern) else Pattern(pattern)
    found = ((number, s, match) for number, s in enumerate(sentences) for match in compiled.find(s))
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
