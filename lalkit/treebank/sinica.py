"""The Sinica Treebank sample of NLTK: 10,000 clauses of traditional Chinese with heads and roles.

A line is `#3:3.[39029] S(theme:NP(...)|Head:VC1:住在|goal:NP(...))#，(COMMACATEGORY)`: a constituent is role:LABEL(child|child),
a word role:TAG:word; the root has no role, and the punctuation after the clause is no part of it. Names can carry features in
square brackets (VE2[+DE], topic[+theme]), which are dropped: most occur a few times only. NLTK's own reader throws roles and
heads away, so ours reads the file `parsed` (`raw` is damaged).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import tree_to_sentence
from lalkit.treebank.tree import Node, Sentence

LINE = re.compile(r"#[^ ]* (.*)#[^#]*")
PIECE = re.compile(r"[()|]|[^()|]+")
REMAINDERS = {"train": range(8), "dev": (8,), "test": (9,)}  # of the line's number (from 0) by ten


def read(text: str, split: str, place: str) -> Iterator[Sentence | TreebankError]:
    """The sentences of a split, or in the place of one the error that spoils it. Sentences get longer through the file, so
    lines are dealt out in turn. Ids are sinica.LINE (from 1): those in the file are not unique."""
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        if number % 10 in REMAINDERS[split]:
            try:
                yield read_line(line.removesuffix("\r"), f"sinica.{number + 1}")
            except TreebankError as error:
                yield error.at(f"{place}, line {number + 1}")


def read_line(line: str, id: str = "") -> Sentence:
    """One line. Raises TreebankError, with the piece at which its brackets or fields go wrong.

    The head word of a constituent is that of its child in the role Head: the last of several (coordination); without one,
    the last `head`; without that, the last child. The head words of the other children depend on it, their roles being
    the arc labels. So heads and constituents are one joint tree by construction.
    """
    found = LINE.fullmatch(line)
    if found is None:
        raise TreebankError(f"no line of the form #NUMBER TREE#PUNCTUATION: {line[:40]!r}")
    nodes, roles, root = _scan(found.group(1))
    words: list[int] = [0] * len(nodes)  # the head word (1-based) of each node
    heads, labels = [], []
    for at, node in enumerate(nodes):  # children before parents
        if isinstance(node[1], str):
            heads.append(0)
            labels.append("ROOT")
            words[at] = len(heads)
            continue
        children = node[1]
        chosen = _head(children, roles)
        words[at] = words[chosen]
        for child in children:
            if child != chosen:
                heads[words[child] - 1], labels[words[child] - 1] = words[chosen], roles[child]
    built: list[Node] = []
    for label, content in nodes:
        built.append(
            Node(label, word=content) if isinstance(content, str) else Node(label, tuple(built[c] for c in content))
        )
    plain = tree_to_sentence(built[root])
    return Sentence(plain.words, plain.tags, plain.constituents, tuple(heads), tuple(labels), id)


def _head(children: list[int], roles: list[str]) -> int:
    for wanted in ("Head", "head"):
        named = [child for child in children if roles[child] == wanted]
        if named:
            return named[-1]
    return children[-1]


def _scan(text: str) -> tuple[list[tuple[str, str | list[int]]], list[str], int]:
    """The nodes in post-order as (label, word or positions of the children), their roles, and the root's position."""
    nodes: list[tuple[str, str | list[int]]] = []
    roles: list[str] = []
    open_: list[tuple[str, str, list[int]]] = [("", "", [])]
    name = ""  # what was read since the last bracket or bar

    def add(role: str, label: str, content: str | list[int]) -> None:
        open_[-1][2].append(len(nodes))
        nodes.append((label, content))
        roles.append(role)

    for piece in PIECE.findall(text):
        if piece == "(":
            fields = name.split(":")
            if len(fields) > 2 or len(fields) != min(len(open_), 2):
                raise TreebankError(f"no role:CATEGORY before a bracket: {name!r}")
            open_.append((_bare(fields[0]) if len(fields) == 2 else "", _bare(fields[-1]), []))
            name = ""
        elif piece in ")|":
            if name:
                add(*_word(name))
                name = ""
            elif not open_[-1][2]:
                raise TreebankError(f"an empty constituent {open_[-1][1]!r}")
            if len(open_) == 1:
                raise TreebankError(f"a {piece} outside all brackets")
            if piece == ")":
                add(*open_.pop())
        else:
            name = piece
    if name or len(open_) != 1 or len(open_[0][2]) != 1:
        raise TreebankError("the brackets do not close, or there is more than one tree")
    return nodes, roles, open_[0][2][0]


def _word(text: str) -> tuple[str, str, str]:
    fields = text.split(":")
    if len(fields) == 4 and fields[0].lower() == "head":  # two words of the file name their role twice
        fields = fields[1:]
    if len(fields) != 3 or not all(fields):
        raise TreebankError(f"no role:TAG:word: {text!r}")
    return _bare(fields[0]), _bare(fields[1]), fields[2]


def _bare(name: str) -> str:
    """Without features: topic[+theme] -> topic."""
    return name.split("[")[0]
