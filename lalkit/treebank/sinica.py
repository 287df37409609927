"""Read the Sinica Treebank sample of NLTK: 10,000 clauses of traditional Chinese with heads and roles.

A line is `#3:3.[39029] S(theme:NP(...)|Head:VC1:住在|goal:NP(...))#，(COMMACATEGORY)`. A constituent is role:LABEL(child|child),
a word is role:TAG:word, and the root has no role. The punctuation after the second # belongs to no tree. Names can carry
features in square brackets (VE2[+DE], topic[+theme]); they are dropped, because most occur only a few times. NLTK's own
reader ignores roles and heads. So this module reads the file `parsed` itself (`raw` is damaged).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.tree import Node, Sentence

LINE = re.compile(r"#[^ ]* (.*)#[^#]*")
PHRASE, WORD = re.compile(r"([^()|\s]+)\("), re.compile(r"([^()|\s]+):([^()|\s:]+)(?=[|)])")
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
                yield TreebankError(error.problem, where=f"{place}, line {number + 1}", remedy=REMEDY)


def read_line(line: str, id: str = "") -> Sentence:
    """Read one line. Raises TreebankError if brackets or fields go wrong.

    A line is turned into brackets, whose labels are role:LABEL and role:TAG. The head child of a constituent is its last child in
    the role Head (a coordination has several); else the last one in `head`; else the last child. The head words of the other
    children depend on its head word, and their roles are the arc labels. So both layers always fit into one joint tree.
    """
    match = LINE.fullmatch(line)
    tree = parse_tree(WORD.sub(r"(\1 \2)", PHRASE.sub(r"(\1 ", match[1])).replace("|", " ") if match else line)
    nodes = list(tree.nodes())
    word = sum(node.is_leaf for node in nodes)
    heads, labels = [0] * word, ["ROOT"] * word
    waiting: list[tuple[str, int, Node]] = []  # role, head word and tree of what has no parent yet, the leftmost last
    for node in reversed(nodes):  # children before parents
        role, _, label = (name.split("[")[0] for name in node.label.rpartition(":"))
        if node.is_leaf and role.lower().startswith("head:"):  # two words of the file name their role twice
            role = role.partition(":")[2]
        if ":" in role or not label or bool(role) != (node is not tree) or (node is tree and tree.is_leaf):
            raise TreebankError(f"{node.label!r} is not role:LABEL, or LABEL of the root", REMEDY)
        if node.is_leaf:
            head, plain = word, Node(label, word=node.word)
            word -= 1
        else:
            children = [waiting.pop() for _ in node.children]
            head = max((role == "Head", role == "head", number) for role, number, _ in children)[2]
            for role_of_child, number, _ in children:
                if number != head:
                    heads[number - 1], labels[number - 1] = head, role_of_child
            plain = Node(label, tuple(child for _, _, child in children))
        waiting.append((role, head, plain))
    return replace(tree_to_sentence(plain, id), heads=tuple(heads), arc_labels=tuple(labels))
