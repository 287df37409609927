"""Find places in trees with patterns of tgrep, as NLTK reads them, and with conditions on words and arcs beside the pattern.

`SBAR < (IN < that)` finds clauses that begin with the word *that*; `S < (NP=who $.. VP)` also captures the NP. The syntax is in
notebooks/patterns.md. A pattern sees `Sentence.tree`: without function tags, each unary chain as several nodes, and round
brackets as -LRB- and -RRB-.

NLTK does the matching. Two of its results differ, because we give it other nodes. For NLTK a word is a bare string without a
parent, so that `that > IN` finds nothing; here a word is a node, as in Tregex. And NLTK takes two subtrees for one if they are
written in the same way, so that `>>,` and `>>'` find too much; here each node is itself only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nltk import tgrep  # it needs pyparsing, which matplotlib brings
from nltk.tree import ParentedTree

from lalkit.errors import ParameterError
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import UNARY, Node, Sentence, Span, escape

REMEDY = 'A pattern looks like SBAR < (IN < that). Signs stand between quotes: ",". See notebooks/patterns.md.'
LABEL = r"[^][\s;:.,&|<>()$!@%'^=]+"
QUOTED = r'"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\])*/'
NODE = re.compile(rf"(@?)((?:i@)?(?:{QUOTED})|\*|{LABEL})(=[A-Za-z0-9]+)?")  # mark of a macro, node, name
DEEPEST = 50  # brackets inside each other
LITERAL = re.compile(r'[^][\s;:.,&|<>()$!@%\'^=/"*\\]+|"[^"\\]+"')  # a label or a word
# A pattern with one of these can match although a label or word that it names does not occur.
CHOICES = {"|", "!", "[", ";", "@", "N("}


class Place(ParentedTree):
    """A node as NLTK's tgrep sees it, over words[start:end]. A word is a node without children."""

    start: int
    end: int
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.label())


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
    """A compiled tree pattern with its conditions. All of them must hold."""

    def __init__(
        self,
        text: str,
        head: str | None = None,
        arc: str | None = None,
        word: str | None = None,
        tag: str | None = None,
    ):
        """Compile a pattern. Each condition is a text, or a regular expression between slashes: /^th/.

        Args:
            text: The pattern, in the syntax of tgrep.
            head: The head word of the match.
            arc: The label of the arc from the head word to its own head.
            word: A word of the match.
            tag: The tag of a word of the match; with `word`, of the same word.

        Raises:
            ParameterError: The pattern or a condition cannot be read. The message names the character.
        """
        self.text = text
        conditions = {"head": head, "arc": arc, "word": word, "tag": tag}
        self._conditions = {name: _condition(name, value) for name, value in conditions.items() if value is not None}
        _check_brackets(text)
        tokens = _parse(text, text, False)
        _check_names(tokens, text)
        self.names = tuple(dict.fromkeys(name for equals, name in zip(tokens, tokens[1:]) if equals == "="))
        parts = _parse(_with_macros(text), text, True)
        self._macros = {name: macro for part in parts if isinstance(part, dict) for name, macro in part.items()}
        self._expressions = [part for part in parts if callable(part)]
        literals = {t.strip('"') for before, t in zip(["", *tokens], tokens) if before != "=" and LITERAL.fullmatch(t)}
        self._needed = set() if CHOICES & set(tokens) else literals - {"__"}

    def find(self, sentence: Sentence | Node) -> Iterator[Match]:
        """Yield the matches in a sentence or a tree: parents before children, from left to right.

        Raises LalkitError for a sentence without constituents, and for the conditions head and arc without dependencies.
        """
        where, heads, arcs = "", None, None
        if isinstance(sentence, Sentence):
            where, heads, arcs = sentence.where, sentence.heads, sentence.arc_labels
        if ("head" in self._conditions and heads is None) or ("arc" in self._conditions and arcs is None):
            problem = "the conditions head and arc need dependencies, and this sentence has none"
            raise ParameterError(problem, where=where, remedy="Leave them out, or search a treebank of both layers.")
        if isinstance(sentence, Sentence) and sentence.constituents and not self._needed <= _occurring(sentence):
            return
        tree = sentence.tree if isinstance(sentence, Sentence) else sentence
        leaves = tree.leaves()
        for place in _places(tree):
            labels: dict[str, Place] = {}
            if not any(self._ask(expression, place, labels, where) for expression in self._expressions):
                continue
            head = external_head(heads, place.start, place.end) if heads else None
            of_head = {} if head is None else {"head": leaves[head].word, "arc": arcs[head] if arcs else ""}
            of_words = [{"word": leaf.word, "tag": leaf.label} for leaf in leaves[place.start : place.end]]
            if self._hold(of_head, "head", "arc") and any(self._hold(values, "word", "tag") for values in of_words):
                captures = {name: node.span for name, node in labels.items()}
                yield Match(*place.span, None if head is None else head + 1, captures)

    def _ask(self, expression: Callable, place: Place, labels: dict[str, Place], where: str) -> bool:
        try:
            return bool(expression(place, self._macros, labels))
        except (tgrep.TgrepException, TimeoutError, RecursionError) as error:
            problem = "the tree is too deep to search" if isinstance(error, RecursionError) else str(error)
            raise _wrong(problem, self.text).at(where) from None

    def _hold(self, values: dict[str, str], *names: str) -> bool:
        return all(
            name in values and self._conditions[name](values[name]) for name in names if name in self._conditions
        )


def _occurring(sentence: Sentence) -> set[str]:
    """Return the words, tags and labels of a sentence, and those that `Sentence.tree` puts where they are missing."""
    labels = UNARY.join(span.label for span in sentence.constituents).split(UNARY)
    return {"TOP", "XX", *map(escape, (*labels, *sentence.words, *(sentence.tags or ())))}


def _places(tree: Node) -> list[Place]:
    """Return the nodes of a tree, and its words, in pre-order. No recursion: a tree may be very deep."""
    nodes = list(tree.nodes())
    position = sum(node.is_leaf for node in nodes)
    places: list[Place] = []
    waiting: list[Place] = []  # subtrees that have no parent yet, the leftmost last
    for node in reversed(nodes):
        if node.is_leaf:
            word = Place(escape(node.word), ())
            place, position = Place(escape(node.label), (word,)), position - 1
            word.start = place.start = position
            word.end = place.end = position + 1
            places.append(word)
        else:
            place = Place(escape(node.label), [waiting.pop() for _ in node.children])
            place.start, place.end = place[0].start, place[-1].end
        waiting.append(place)
        places.append(place)
    return places[::-1]


def _condition(name: str, value: str) -> Callable[[str], bool]:
    """Return the test of a condition. Raises ParameterError for a regular expression that cannot be read."""
    if not isinstance(value, str) or not value:
        remedy = "Give a text, or a regular expression: /^th/."
        raise ParameterError(f"the condition {name} is {value!r}", remedy=remedy)
    if len(value) < 3 or value[0] != "/" or value[-1] != "/":
        return lambda text: escape(text) == escape(value)
    (test,) = _parse(value, value, True)  # as a pattern of tgrep: NLTK stops a regular expression that takes too long
    return lambda text: bool(test(text))


def _check_brackets(text: str) -> None:
    """Raise ParameterError for an empty pattern, and for brackets that do not match."""
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(f"the pattern is {text!r}", remedy=REMEDY)
    opened: list[int] = []
    bare = NODE.sub(lambda match: "_" * len(match[0]), text)
    for at, character in enumerate(bare):
        if character in "([":
            opened.append(at)
            if len(opened) > DEEPEST:
                raise _wrong(f"more than {DEEPEST} brackets are open", text, at)
        elif character in ")]" and (not opened or bare[opened.pop()] + character not in ("()", "[]")):
            raise _wrong(f"this {character} closes no bracket of its kind", text, at)
    if opened:
        raise _wrong(f"this {bare[opened[-1]]} is never closed", text, opened[-1])


def _check_names(tokens: list[str], text: str) -> None:
    """Raise ParameterError for the use of a name that the pattern gives to no node, and of a macro that it does not define."""
    for mark, what in (("=", "names no node"), ("@", "defines no macro")):
        known = {after for token, after in zip(tokens, tokens[1:]) if token == mark}
        for token in tokens:
            if token[0] == mark and token != mark and token[1:] not in known:
                raise _wrong(f"the pattern {what} {token[1:]!r}", text, text.find(token))


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


def _parse(text: str, shown: str, predicates: bool) -> list:
    """Return the tokens of a pattern; with predicates, its macros and what to ask of a node.

    Raises ParameterError with the place in `shown` if NLTK cannot read it.
    """
    grammar = tgrep._build_tgrep_parser(predicates)
    grammar.set_parse_action(None)  # without NLTK's last step, which hides the nodes that have names
    try:
        return list(grammar.parse_with_tabs().parse_string(text, parse_all=True))
    except tgrep.pyparsing.ParseBaseException as error:
        raise _wrong("it cannot be read from here on", shown, error.loc) from None
    except (tgrep.TgrepException, ValueError, RecursionError, AssertionError) as error:
        quoted = re.search(r"[\"'](.*)[\"']", str(error))  # the operator or regular expression that NLTK refuses
        at = shown.find(quoted[1]) if quoted else 0
        raise _wrong(str(error) or "a quotation is never closed", shown, at) from None


def _wrong(problem: str, text: str, at: int | None = None) -> ParameterError:
    place = "" if at is None else f", character {at + 1} (before {text[at : at + 20]!r})"
    return ParameterError(problem, where=f"pattern {text[:80]!r}{place}", remedy=REMEDY)
