"""Read the Sinica Treebank sample of NLTK: 10,000 clauses of traditional Chinese with heads and roles.

A line is `#3:3.[39029] S(theme:NP(...)|Head:VC1:住在|goal:NP(...))#，(COMMACATEGORY)`. A constituent is role:LABEL(child|child),
a word is role:TAG:word, and the root has no role. The punctuation after the second # belongs to no tree. Names can carry
features in square brackets (VE2[+DE], topic[+theme]); they are dropped, because most occur only a few times. NLTK's own
reader ignores roles and heads. So this module reads the file `parsed` itself (`raw` is damaged).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import tree_to_sentence
from lalkit.treebank.tree import Node, Sentence

LINE = re.compile(r"#[^ ]* (.*)#[^#]*")
PIECE = re.compile(r"[()|]|[^()|]+")
REMEDY = "A line is #NUMBER TREE#PUNCTUATION, a constituent role:LABEL(child|child), a word role:TAG:word."
REMAINDERS = {"train": range(8), "dev": (8,), "test": (9,)}  # which line numbers (from 0), modulo ten, a split has


def read(text: str, split: str, place: str) -> Iterator[Sentence | TreebankError]:
    """Yield the sentences of a split; a line that cannot be read gives its error.

    Sentences get longer through the file, so each split takes its lines from all over the file. The id is sinica.LINE (from 1):
    the ids in the file are not unique.
    """
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        if number % 10 in REMAINDERS[split]:
            try:
                yield read_line(line.removesuffix("\r"), f"sinica.{number + 1}")
            except TreebankError as error:
                yield error.at(f"{place}, line {number + 1}")


class Child(NamedTuple):
    """A finished part of the tree: its role under its parent, its tree, and its head word (from 1)."""

    role: str
    tree: Node
    head_word: int


def read_line(line: str, id: str = "") -> Sentence:
    """Read one line. The TreebankError it raises names the piece at which brackets or fields go wrong.

    The head word of a constituent is the head word of its head child (`_head_child`). The head words of the other children
    depend on it, and their roles are the arc labels. So heads and constituents always fit into one joint tree.
    """
    match = LINE.fullmatch(line)
    if match is None:
        raise _wrong(line[:40])
    heads: list[int] = []
    labels: list[str] = []
    open_phrases: list[tuple[str, str, list[Child]]] = [("", "", [])]  # role, label, children; the first holds the root
    name = ""  # the text since the last bracket or bar
    for piece in PIECE.findall(match.group(1)):
        if piece == "(":
            fields = [_drop_features(field) for field in name.split(":")]
            if len(fields) != min(len(open_phrases), 2):
                raise _wrong(f"{name}(")
            open_phrases.append((fields[0] if len(fields) == 2 else "", fields[-1], []))
            name = ""
        elif piece in ")|":
            role, label, children = open_phrases[-1]
            if name:
                heads.append(0)
                labels.append("ROOT")
                children.append(_word(name, len(heads)))
                name = ""
            if len(open_phrases) == 1 or not children:
                raise _wrong(f"{label}{piece}")
            if piece == ")":
                open_phrases.pop()
                head = _head_child(children)
                for child in children:
                    if child is not head:
                        heads[child.head_word - 1], labels[child.head_word - 1] = head.head_word, child.role
                node = Node(label, tuple(child.tree for child in children))
                open_phrases[-1][2].append(Child(role, node, head.head_word))
        else:
            name = piece
    roots = open_phrases[0][2]
    if name or len(open_phrases) != 1 or len(roots) != 1:
        raise _wrong("not one tree, with all its brackets closed")
    plain = tree_to_sentence(roots[0].tree)
    return Sentence(plain.words, plain.tags, plain.constituents, tuple(heads), tuple(labels), id)


def _wrong(piece: str) -> TreebankError:
    return TreebankError(f"this line has not the form of the Sinica Treebank: {piece!r}", remedy=REMEDY)


def _head_child(children: list[Child]) -> Child:
    """Return the last child in the role Head (a coordination has several); else the last one in `head`; else the last child."""
    return max(children, key=lambda child: (child.role == "Head", child.role == "head", child.head_word))


def _word(text: str, number: int) -> Child:
    """Return the word of role:TAG:word."""
    fields = text.split(":")
    if len(fields) == 4 and fields[0].lower() == "head":  # two words of the file name their role twice
        fields = fields[1:]
    if len(fields) != 3 or not all(fields):
        raise _wrong(text)
    return Child(_drop_features(fields[0]), Node(_drop_features(fields[1]), word=fields[2]), number)


def _drop_features(name: str) -> str:
    """Return a name without its features: topic[+theme] -> topic."""
    return name.split("[")[0]
