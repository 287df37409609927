"""Trees and sentences that are checked when they are built.

Two objects:

* `Node`: an ordered tree as a treebank file has it (function tags, traces, unary chains and all);
* `Sentence`: words with up to two layers over them, constituents and dependencies, normalised for parsing. Both layers use
  the same words; spans are (start, end) over fenceposts 0..n, heads are 1-based with 0 for the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lalkit.errors import TreebankError

UNARY = "::"  # joins the labels of a unary chain, top first: S::VP
WHITE = " \t\r\n\f\v"  # ASCII white space: the only characters that separate tokens


@dataclass(frozen=True)
class Node:
    """One node of a bracketed tree: a phrase (`children`) or a leaf (`word`, with its tag as `label`).

    Raises TreebankError for a phrase without children and for a leaf with a word that could not be written back.
    """

    label: str
    children: tuple["Node", ...] = ()
    word: str | None = None

    def __post_init__(self):
        if self.word is None and not self.children:
            raise TreebankError(f"the constituent ({self.label} ) is empty")
        if self.word is not None and self.children:
            raise TreebankError(f"the node {self.label} has both a word and children")
        if self.word is not None:
            check_token(self.word, "word")

    @property
    def is_leaf(self) -> bool:
        return self.word is not None

    def leaves(self) -> list["Node"]:
        """The leaves below this node, from left to right."""
        found, stack = [], [self]
        while stack:
            node = stack.pop()
            if node.is_leaf:
                found.append(node)
            else:
                stack.extend(reversed(node.children))
        return found

    def nodes(self) -> Iterator["Node"]:
        """Every node, parents before children, from left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves()]

    def __str__(self) -> str:
        from lalkit.treebank.brackets import format_tree

        return format_tree(self)


class Span(NamedTuple):
    """A labelled constituent over fenceposts: words[start:end]."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Sentence:
    """Words, and over them tags, constituents and dependencies, each layer optional.

    constituents: spans in pre-order (by start, longest first), one per (start, end); a unary chain is one span whose label
    joins the chain with '::', top first. heads[i] is the 1-based head of word i, 0 for the root; arc_labels[i] names that arc.
    Raises TreebankError where a layer does not fit the words, brackets cross, or the heads are not one projective tree.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    constituents: tuple[Span, ...] | None = None
    heads: tuple[int, ...] | None = None
    arc_labels: tuple[str, ...] | None = None
    id: str = ""

    def __post_init__(self):
        for name, kind in (("words", str), ("tags", str), ("heads", int), ("arc_labels", str)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(map(kind, getattr(self, name))))
        try:
            self._check()
        except TreebankError as error:
            raise error.at(f"sentence {self.id}") if self.id else error from None

    def _check(self):
        if not self.words:
            raise TreebankError("a sentence needs at least one word")
        for word in self.words:
            check_token(word, "word")
        for name in ("tags", "heads", "arc_labels"):
            layer = getattr(self, name)
            if layer is not None and len(layer) != len(self.words):
                raise TreebankError(f"{len(layer)} {name} for {len(self.words)} words ({' '.join(self.words[:8])} ...)")
        for token in (self.tags or ()) + (self.arc_labels or ()):
            check_token(token, "tag or arc label")
        if self.constituents is not None:
            ordered = sorted((Span(*c) for c in self.constituents), key=lambda c: (c.start, -c.end))
            object.__setattr__(self, "constituents", tuple(ordered))
            check_spans(self.constituents, len(self.words))
        if self.heads is not None:
            check_heads(self.heads)
        elif self.arc_labels is not None:
            raise TreebankError("arc labels without heads")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def tree(self) -> Node:
        """The constituents as a Node with unary chains expanded; a missing tag is written XX.

        A sentence whose constituents do not cover it as one span gets the unlabelled top bracket of the Penn Treebank.
        """
        if self.constituents is None:
            raise TreebankError("this sentence has no constituents to draw")
        tags = self.tags or ("XX",) * len(self.words)
        leaves = [Node(tag, word=word) for tag, word in zip(tags, self.words)]
        spans = list(self.constituents)
        if not spans or spans[0][:2] != (0, len(self.words)):
            if len(leaves) == 1:
                return leaves[0]
            spans.insert(0, Span(0, len(self.words), "TOP"))
        return _assemble(spans, leaves)


def _assemble(spans: list[Span], leaves: list[Node]) -> Node:
    """Nested spans (pre-order, the first covers all) over leaves -> Node, without recursion."""
    open_, built = [], None
    pending = list(reversed(spans))
    for i in range(len(leaves)):
        while pending and pending[-1].start == i:
            open_.append((pending.pop(), []))
        open_[-1][1].append(leaves[i])
        while open_ and open_[-1][0].end == i + 1:
            span, children = open_.pop()
            labels = span.label.split(UNARY)
            built = Node(labels[-1], tuple(children))
            for label in reversed(labels[:-1]):
                built = Node(label, (built,))
            if open_:
                open_[-1][1].append(built)
    return built


def check_token(token: str, what: str) -> None:
    """A token must be writable: not empty, no ASCII white space, no NUL."""
    if not token:
        raise TreebankError(f"an empty {what}")
    if any(c in token for c in WHITE) or "\0" in token:
        raise TreebankError(f"the {what} {token!r} contains white space or a NUL byte")


def check_spans(spans: tuple[Span, ...], n: int) -> None:
    """Spans sorted in pre-order must lie in [0, n], be distinct, labelled and nested."""
    open_: list[Span] = []
    for span in spans:
        if not 0 <= span.start < span.end <= n:
            raise TreebankError(f"the span {span.label} ({span.start}, {span.end}) does not fit {n} words")
        check_token(span.label, "label")
        while open_ and open_[-1].end <= span.start:
            open_.pop()
        if open_ and open_[-1].end < span.end:
            raise TreebankError(f"the constituents {tuple(open_[-1])} and {tuple(span)} cross")
        if open_ and open_[-1][:2] == span[:2]:
            raise TreebankError(f"two constituents over ({span.start}, {span.end}): join a unary chain with '{UNARY}'")
        open_.append(span)


def check_heads(heads: tuple[int, ...]) -> None:
    """heads must be one single-rooted, acyclic, projective tree; the message names the words concerned (1-based)."""
    n = len(heads)
    for i, head in enumerate(heads, 1):
        if not 0 <= head <= n:
            raise TreebankError(f"word {i} has head {head}, but the sentence has {n} words")
    roots = [i for i, head in enumerate(heads, 1) if head == 0]
    done: set[int] = {0}
    for i in range(1, n + 1):
        path = []
        while i not in done:
            if i in path:
                cycle = path[path.index(i) :] + [i]
                raise TreebankError("the dependencies contain a cycle: " + " -> ".join(map(str, cycle)))
            path.append(i)
            i = heads[i - 1]
        done.update(path)
    if len(roots) != 1:
        raise TreebankError(
            f"the dependencies have {len(roots)} roots (words {', '.join(map(str, roots))}) instead of one"
        )
    crossing = find_crossing(heads)
    if crossing:
        (a, b), (c, d) = crossing
        raise TreebankError(
            f"the arcs {heads[a - 1]} -> {a} and {heads[c - 1]} -> {c} cross: lalkit parses projective trees"
        )


def find_crossing(heads: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The first two crossing arcs as ((dependent, head), (dependent, head)), or None; the root arc starts at 0."""
    arcs = sorted(((min(i, h), max(i, h), i, h) for i, h in enumerate(heads, 1)), key=lambda a: (a[0], -a[1]))
    open_: list[tuple[int, int, int, int]] = []
    for arc in arcs:
        while open_ and open_[-1][1] <= arc[0]:
            open_.pop()
        if open_ and open_[-1][0] < arc[0] and open_[-1][1] < arc[1]:
            return (open_[-1][2:], arc[2:])
        open_.append(arc)
    return None
