"""Trees and sentences that are checked when they are built.

There are two kinds of objects:

* `Node` is an ordered tree as a treebank file has it, with function tags, traces and unary chains;
* `Sentence` is a list of words with up to two layers over them: constituents and dependencies. It is what a parser sees.

Places in a sentence are counted in two ways. Spans use fenceposts, the places between words: (start, end) covers
words[start:end], and a sentence of n words has the fenceposts 0 to n. Heads use word numbers from 1, and 0 stands for the
root.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

from lalkit.errors import TreebankError, finite

TEXTS = ("words", "tags", "arc_labels", "upos")  # layers of a sentence that are texts
UNARY = "::"  # joins the labels of a unary chain, the top label first: S::VP
GROUP = "<H>"  # the label of a group of words in the joint form, which is no constituent: see `treebank.joint`
CORRECT = "Correct one of them, or leave the sentence out."
WHITE = " \t\r\n\f\v"  # ASCII white space: the only characters that separate tokens


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One node of a bracketed tree: a phrase with `children`, or a leaf with a `word` and its tag as `label`.

    Nothing here is recursive, because a tree may be very deep: nodes are compared, hashed, pickled and copied as the list of
    all nodes below. Raises TreebankError for a phrase without children, and for a word that could not be written into a file.
    """

    label: str
    children: tuple["Node", ...] = ()
    word: str | None = None

    def __post_init__(self):
        if self.word is None and not self.children:
            raise TreebankError(f"the constituent ({self.label} ) is empty", "Give it a word, or leave it out.")
        if self.word is not None and self.children:
            raise TreebankError(f"the node {self.label} has both a word and children", "Give it one of the two.")
        if self.word is not None:
            check_token(self.word, "word")

    @property
    def is_leaf(self) -> bool:
        return self.word is not None

    def nodes(self) -> Iterator["Node"]:
        """Yield every node, parents before children, from left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> list["Node"]:
        """Return the leaves below this node, from left to right."""
        return [node for node in self.nodes() if node.is_leaf]

    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves()]

    def __str__(self) -> str:
        return format_tree(self)

    def __repr__(self) -> str:
        return f"Node({format_tree(self)})"

    def _flat(self) -> tuple[tuple[str, int, str | None], ...]:
        """Return label, number of children and word of every node, in the order of `nodes`. This determines the tree."""
        return tuple((node.label, len(node.children), node.word) for node in self.nodes())

    def __eq__(self, other: object) -> bool:
        return self._flat() == other._flat() if isinstance(other, Node) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._flat())

    def __reduce__(self):
        return from_flat, (self._flat(),)


def from_flat(flat: Sequence[tuple[str, int, str | None]]) -> Node:
    """Return the tree of its nodes in the order of `Node.nodes`: label, number of children and word of each."""
    built: list[Node] = []  # subtrees that have no parent yet, the leftmost last
    for label, count, word in reversed(flat):
        children = tuple(built.pop() for _ in range(count))
        built.append(Node(label, children, word))
    return built[0]


def format_tree(tree: Node) -> str:
    """Write a tree on one line: (S (NP (DT The) (NN end)))."""
    pieces: list[str] = []
    stack: list[Node | str] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif item.is_leaf:
            pieces.append(f"({escape(item.label)} {escape(item.word)})")
        else:
            pieces.append(f"({escape(item.label)}")
            stack.append(")")
            stack.extend(reversed(item.children))
    return " ".join(pieces).replace(" )", ")")


def escape(word: str) -> str:
    """Replace round brackets in a word or a tag by -LRB- and -RRB-: they would break the brackets of the tree."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


class Span(NamedTuple):
    """A labelled constituent: it covers words[start:end]."""

    start: int
    end: int
    label: str


def _as_span(constituent: tuple[int, int, str]) -> Span:
    start, end, label = constituent
    return Span(int(start), int(end), str(label))


@dataclass(frozen=True)
class Sentence:
    """Words, and over them tags, constituents and dependencies. Each layer may be missing (None).

    constituents: spans in pre-order (by start, the longest first). There is one span for each (start, end): a unary chain is
    one span whose label joins the labels of the chain with '::', the top label first. heads: heads[i] is the head word of
    word i, counted from 1; 0 is the root. arc_labels: arc_labels[i] names that arc. place: the file and line from which the
    sentence was read; sentences of different places can be equal. free_arcs: people drew the arcs without regard to constituents,
    as in Universal Dependencies: arcs may cross, and a constituent may disagree with them. upos: the universal part of speech of
    each word, beside its tag. text: the sentence as it was written, of which the words are slices. rows: its lines in a file of
    CoNLL-U, comments among them, to write back what lalkit does not know. Raises TreebankError if a layer does not fit the words,
    if constituents cross, or if the heads are not one tree, which without free_arcs must be projective.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    constituents: tuple[Span, ...] | None = None
    heads: tuple[int, ...] | None = None
    arc_labels: tuple[str, ...] | None = None
    id: str = ""
    place: str = field(default="", compare=False, repr=False)
    free_arcs: bool = field(default=False, compare=False, repr=False)
    upos: tuple[str, ...] | None = field(default=None, compare=False, repr=False)
    text: str | None = field(default=None, compare=False, repr=False)
    rows: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def trusted(cls, words: tuple[str, ...], **layers) -> Sentence:
        """Return a sentence without a check of its layers: what a decoder made is a tree already.

        words: those of a Sentence. layers: other fields, in the form that the checks would give them: tuples, with constituents
        as Spans in pre-order. A dictionary of fields takes a hundredth of the time of the checks.
        """
        sentence = object.__new__(cls)
        vars(sentence).update(EMPTY, words=words, **layers)
        return sentence

    def __post_init__(self):
        try:
            self._convert()
            self._check()
        except TreebankError as error:
            raise error.at(f"sentence {self.id}") if self.id else error from None

    def _convert(self):
        """Make every layer a tuple of its kind."""
        text = str.__str__  # it takes a text only, while str() would make a text of anything
        kinds = {"constituents": _as_span, "heads": operator.index, **dict.fromkeys(TEXTS, text)}
        for name, kind in kinds.items():
            if getattr(self, name) is None:
                continue
            layer = []
            for number, value in enumerate(in_order(getattr(self, name), name), 1):
                try:
                    layer.append(kind(value))
                except (TypeError, ValueError):
                    remedy = "Give lists: texts; for constituents (start, end, label); for heads the numbers of words."
                    raise TreebankError(f"number {number} of the {name} is {reprlib.repr(value)}", remedy) from None
            object.__setattr__(self, name, tuple(layer))

    def _check(self):
        if not self.words:
            raise TreebankError("a sentence needs at least one word", remedy="Give a word, or leave the sentence out.")
        for word in self.words:
            check_token(word, "word")
        for name in ("tags", "heads", "arc_labels", "upos"):
            layer = getattr(self, name)
            if layer is not None and len(layer) != len(self.words):
                problem = f"{len(layer)} {name} for {len(self.words)} words"
                raise TreebankError(problem, "Give one for each word, or None for all.")
        for token in (self.tags or ()) + (self.arc_labels or ()) + (self.upos or ()):
            check_token(token, "tag or arc label")
        if self.constituents is not None:
            ordered = sorted(self.constituents, key=lambda c: (c.start, -c.end))
            object.__setattr__(self, "constituents", tuple(ordered))
            check_spans(self.constituents, len(self.words))
        if self.heads is not None:
            check_heads(self.heads, self.free_arcs)
        elif self.arc_labels is not None:
            raise TreebankError("there are arc labels, but no heads", remedy="Give the heads, or leave the labels out.")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def where(self) -> str:
        """The name of the sentence in errors: its place, else its id, else its first words."""
        return self.place or f"sentence {self.id or ' '.join(self.words[:8])}"

    @cached_property
    def offsets(self) -> tuple[tuple[int, int], ...] | None:
        """The first character of each word in the text, and the one after its last; None without a text."""
        if self.text is None:
            return None
        places, end, text = [], 0, self.text.replace("\u00a0", " ")  # CoNLL-U may have a space in a word
        for word in self.words:
            start = text.index(word.replace("\u00a0", " "), end)
            places.append((start, end := start + len(word)))
        return tuple(places)

    @cached_property
    def tree(self) -> Node:
        """The constituents as a Node, each unary chain as several nodes. Where tags are missing, the tag is XX.

        Several words without a constituent over all of them get a constituent TOP. Raises TreebankError without constituents.
        """
        if self.constituents is None:
            remedy = "Use its dependencies, or a treebank or a parser with constituents."
            raise TreebankError("this sentence has no constituents", remedy, where=self.id)
        tags = self.tags or ("XX",) * len(self.words)
        leaves = [Node(tag, word=word) for tag, word in zip(tags, self.words)]
        spans = list(self.constituents)
        if not spans or spans[0][:2] != (0, len(self.words)):
            if len(leaves) == 1:
                return leaves[0]
            spans.insert(0, Span(0, len(self.words), "TOP"))
        return _build_tree(spans, leaves)


EMPTY = {field.name: field.default for field in fields(Sentence)}


def in_order(values: Any, kind: str) -> Iterator:
    """Iterate over values that have an order. Raises TreebankError for a text, a set, a dictionary, a table or a number."""
    unordered = isinstance(values, str | bytes | bytearray | set | frozenset | Mapping)
    with suppress(TypeError):
        if not unordered and getattr(values, "ndim", 1) == 1:
            return iter(values if hasattr(values, "__len__") else finite(values, kind))
    problem = f"{reprlib.repr(values)} (of type {type(values).__name__}) is not a list of {kind}"
    raise TreebankError(problem, f"Give the {kind} as a list, a tuple, an array or a pandas Series.")


def _build_tree(spans: list[Span], leaves: list[Node]) -> Node:
    """Build the tree of nested spans (in pre-order, the first covers all). No recursion: a tree may be very deep."""
    open_spans: list[tuple[Span, list[Node]]] = []  # with the children so far
    waiting = spans[::-1]
    for i, leaf in enumerate(leaves):
        while waiting and waiting[-1].start == i:
            open_spans.append((waiting.pop(), []))
        open_spans[-1][1].append(leaf)
        while open_spans and open_spans[-1][0].end == i + 1:
            span, children = open_spans.pop()
            for label in reversed(span.label.split(UNARY)):
                children = [Node(label, tuple(children))]
            if open_spans:
                open_spans[-1][1].extend(children)
    return children[0]


def check_token(token: str, kind: str) -> None:
    """Raise TreebankError for a token that cannot be written: empty, or with ASCII white space, NUL or a lone surrogate."""
    if not token:
        raise TreebankError(f"an empty {kind}", remedy="Write at least one character.")
    if any(c in token for c in WHITE) or "\0" in token:
        raise TreebankError(f"the {kind} {token!r} has white space or a NUL byte", "Split it, or remove the character.")
    try:
        token.encode()
    except UnicodeEncodeError:
        remedy = "Perhaps the text was decoded wrongly: read it again as UTF-8."
        raise TreebankError(f"the {kind} {token!r} has half a character (a lone surrogate)", remedy) from None


def check_spans(spans: tuple[Span, ...], n: int) -> None:
    """Raise TreebankError unless spans in pre-order lie in [0, n], are distinct, labelled and nested.

    A label may not be <H>, also in a unary chain: on the way back from the joint form the constituent would be lost.
    """
    open_spans: list[Span] = []
    for span in spans:
        if not 0 <= span.start < span.end <= n:
            raise TreebankError(f"the span {tuple(span)} does not fit {n} words", f"Give 0 <= start < end <= {n}.")
        check_token(span.label, "label")
        if GROUP in span.label.split(UNARY):
            raise TreebankError(f"a constituent has the label {GROUP}, which lalkit needs itself", "Rename the label.")
        while open_spans and open_spans[-1].end <= span.start:
            open_spans.pop()
        if open_spans and open_spans[-1].end < span.end:
            raise TreebankError(f"the constituents {tuple(open_spans[-1])} and {tuple(span)} cross", CORRECT)
        if open_spans and open_spans[-1][:2] == span[:2]:
            remedy = f"Give one label for a unary chain: {open_spans[-1].label}{UNARY}{span.label}."
            raise TreebankError(f"two constituents over ({span.start}, {span.end})", remedy=remedy)
        open_spans.append(span)


def check_heads(heads: tuple[int, ...], may_cross: bool = False) -> None:
    """Raise TreebankError unless heads are one projective tree with one root. The message names the words, from 1.

    may_cross: the tree need not be projective.
    """
    n = len(heads)
    for i, head in enumerate(heads, 1):
        if not 0 <= head <= n:
            remedy = f"Give a word number from 1 to {n}, or 0 for the root."
            raise TreebankError(f"word {i} has head {head}, but the sentence has {n} words", remedy)
    reaches_root: set[int] = {0}
    for i in range(1, n + 1):
        path = []
        while i not in reaches_root:
            if i in path:
                cycle = " -> ".join(map(str, path[path.index(i) :] + [i]))
                raise TreebankError(f"the dependencies contain a cycle: {cycle}", CORRECT)
            path.append(i)
            i = heads[i - 1]
        reaches_root.update(path)
    roots = [str(i) for i, head in enumerate(heads, 1) if head == 0]
    if len(roots) != 1:
        problem = f"the dependencies have {len(roots)} roots (words {', '.join(roots)}) instead of one"
        raise TreebankError(problem, "Give exactly one word the head 0.")
    crossing = None if may_cross else find_crossing(heads)
    if crossing:
        (a, b), (c, d) = crossing
        raise TreebankError(f"the arcs {b} -> {a} and {d} -> {c} cross: lalkit parses projective trees", CORRECT)


def find_crossing(heads: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the first two crossing arcs as ((dependent, head), (dependent, head)), or None. The root's arc starts at 0."""
    arcs = sorted(((min(i, h), max(i, h), i, h) for i, h in enumerate(heads, 1)), key=lambda a: (a[0], -a[1]))
    open_arcs: list[tuple[int, int, int, int]] = []
    for arc in arcs:
        while open_arcs and open_arcs[-1][1] <= arc[0]:
            open_arcs.pop()
        if open_arcs and open_arcs[-1][0] < arc[0] and open_arcs[-1][1] < arc[1]:
            return open_arcs[-1][2:], arc[2:]
        open_arcs.append(arc)
    return None
