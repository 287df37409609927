"""Penn Treebank brackets in and out, and the normalisation that turns a treebank's tree into a `Sentence`.

Tokens are separated by ASCII space, tab and newline only: CRAFT has words that contain U+2009 or U+00A0.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from pathlib import Path

from lalkit.errors import TreebankError
from lalkit.treebank.tree import UNARY, Node, Sentence, Span

TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
TOPS = ("", "TOP", "ROOT", "S1", "VROOT")  # labels of a top bracket that is layout, not syntax
ESCAPES = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
UNESCAPES = {escaped: plain for plain, escaped in ESCAPES.items()}


def parse_tree(text: str) -> Node:
    """One bracketed tree. Raises TreebankError with the token number where the brackets go wrong."""
    trees = [tree for _, tree in scan_trees(text)]
    if len(trees) != 1:
        raise TreebankError(f"expected one tree, found {len(trees)}: {text[:60]!r}")
    return trees[0]


def scan_trees(text: str, place: str = "") -> Iterator[tuple[int, Node]]:
    """The trees of a text, each with the line (1-based) on which it starts; trees may span lines.

    place names the source in error messages. Raises TreebankError at the first bracket that does not fit.
    """
    for line, item in scan_leniently(text, place):
        if isinstance(item, TreebankError):
            raise item
        yield line, item


def scan_leniently(text: str, place: str = "") -> Iterator[tuple[int, Node | TreebankError]]:
    """Like `scan_trees`, but a malformed tree comes back as its error, and reading goes on with the next line at depth 0.

    Where the brackets of the whole text do not balance, a '(' in the first column of a line starts a new tree even if the
    one before it is still open: that is how one missing bracket is kept from swallowing the rest of a file.
    """
    balanced = text.count("(") == text.count(")")
    stack: list[list] = []  # open phrases: [label, children]
    line, start, number, skip = 1, 1, 0, False
    previous = 0

    def problem(what: str) -> TreebankError:
        where = f"{place + ', ' if place else ''}line {start}, tree {number}"
        return TreebankError(what, where=where, remedy="Every ( needs a label or word and its ).")

    for match in TOKEN.finditer(text):
        token = match.group()
        line += text.count("\n", previous, match.start())
        previous = match.start()
        first_column = match.start() == 0 or text[match.start() - 1] == "\n"
        if token == "(" and first_column and stack and not balanced:
            yield start, problem(f"{len(stack)} bracket(s) never closed, near ({stack[-1][0]}")
            stack = []
        if skip and not (token == "(" and first_column):
            continue
        skip = False
        try:
            if token == "(":
                if not stack:
                    start, number = line, number + 1
                stack.append([None, []])
            elif token == ")":
                if not stack:
                    number += 1
                    start = line
                    raise problem("a ) without its (")
                node = _close(*stack.pop())
                if stack:
                    if stack[-1][0] is None:
                        stack[-1][0] = ""
                    stack[-1][1].append(node)
                else:
                    yield start, node
            elif not stack:
                number, start = number + 1, line
                raise problem(f"text outside brackets: {token!r}")
            elif stack[-1][0] is None:
                stack[-1][0] = token
            else:
                stack[-1][1].append(token)
        except TreebankError as error:
            yield start, error if error.where else problem(error.problem)
            stack, skip = [], True
    if stack:
        yield start, problem(f"{len(stack)} bracket(s) never closed at the end, near ({stack[-1][0]}")


def _close(label: str | None, items: list) -> Node:
    words = [item for item in items if isinstance(item, str)]
    if words:
        if len(items) > 1:
            raise TreebankError(f"({label} ...) mixes words and constituents or has several words: {words}")
        return Node(label, word=words[0])
    return Node(label or "", tuple(items))


def read_trees(path: str | Path, encoding: str = "utf-8") -> Iterator[tuple[int, Node]]:
    """The trees of a file with their line numbers, as `scan_trees`."""
    return scan_trees(read_text(path, encoding), str(path))


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """A text file, or one clear error for a missing file, a wrong encoding or NUL bytes."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TreebankError(f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path.") from None
    return decode(raw, str(path), encoding)


def decode(raw: bytes, place: str, encoding: str = "utf-8", first_line: int = 1) -> str:
    """Bytes -> text, naming the line of the first byte that is not in the encoding, or of the first NUL.

    first_line: the number of the line the bytes begin with; a byte order mark is dropped only where a file begins.
    """
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + first_line
        raise TreebankError(
            f"byte 0x{raw[error.start]:02x} is not {encoding}",
            where=f"{place}, line {line}",
            remedy="Convert the file first, for example: iconv -f latin1 -t utf-8 FILE > NEW",
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + first_line
        raise TreebankError("a NUL byte", where=f"{place}, line {line}", remedy="Is this a text file? Remove the byte.")
    return text.removeprefix("\ufeff") if first_line == 1 else text


def format_tree(tree: Node) -> str:
    """A tree on one line: (S (NP (DT The) (NN end)))."""
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


def indent_tree(tree: Node, width: int = 88, depth: int = 0) -> str:
    """A tree over several lines, as in the Penn Treebank's own files: what fits the width stays on one line."""
    flat = format_tree(tree)
    if tree.is_leaf or len(flat) + depth <= width:
        return " " * depth + flat
    children = [indent_tree(child, width, depth + 2) for child in tree.children]
    return " " * depth + f"({escape(tree.label)}\n" + "\n".join(children) + ")"


def escape(word: str) -> str:
    """A round bracket in a word or a tag would break the brackets of the tree: -LRB-, -RRB-. All others are left as they are."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def unescape(word: str) -> str:
    """-LRB- -> (, and so on: the word as it stands in raw text."""
    return UNESCAPES.get(word, word)


def strip_function(label: str) -> str:
    """NP-SBJ-1 -> NP, NP=2 -> NP, ADVP|PRT -> ADVP; labels that start with '-' (-LRB-, -NONE-) stay."""
    return label if label.startswith("-") else re.split(r"[-=|]", label, maxsplit=1)[0]


def drop_empty(tree: Node) -> Node | None:
    """The tree without -NONE- leaves and without the phrases they leave empty; None if nothing is left."""
    nodes, kept = [tree], {}
    for node in nodes:  # parents before their children; no recursion: a tree may be deeper than Python's stack
        nodes.extend(node.children)
    for node in reversed(nodes):
        children = tuple(child for child in map(kept.get, map(id, node.children)) if child is not None)
        if node.is_leaf:
            kept[id(node)] = None if node.label == "-NONE-" else node
        elif len(children) == len(node.children) and all(map(operator.is_, children, node.children)):
            kept[id(node)] = node
        else:
            kept[id(node)] = Node(node.label, children) if children else None
    return kept[id(tree)]


def drop_top(tree: Node, unwrap: tuple[str, ...] = ()) -> Node:
    """The tree below its layout bracket(s): an unlabelled or TOP node, or a label of `unwrap`, over a single phrase."""
    layout = (*TOPS, *unwrap)
    while len(tree.children) == 1 and tree.label in layout and not tree.children[0].is_leaf:
        tree = tree.children[0]
    return tree


def clean(tree: Node, unwrap: tuple[str, ...] = ()) -> Node:
    """What a parser sees of a treebank's tree, function tags still on: no traces, no layout bracket.

    unwrap: labels of wrappers that are layout, not syntax (CRAFT's TITLE, HEADING, CAPTION), dropped over a whole line.
    Raises TreebankError for a tree of traces only.
    """
    kept = drop_empty(tree)
    if kept is None:
        raise TreebankError(f"the tree has no words: {format_tree(tree)[:60]}")
    kept = drop_top(kept, unwrap)
    return Node("TOP", kept.children) if kept.label in TOPS and not kept.is_leaf else kept


def tree_to_sentence(tree: Node, id: str = "") -> Sentence:
    """A cleaned tree -> words, tags, constituents; function tags stripped, unary chains joined by '::'."""
    words, tags, spans = [], [], []
    stack: list[tuple[Node, str] | tuple[int, str]] = [(tree, "")]
    while stack:
        item, chain = stack.pop()
        if isinstance(item, int):
            spans.append(Span(item, len(words), chain))
            continue
        if item.is_leaf:
            if chain:
                spans.append(Span(len(words), len(words) + 1, chain))
            words.append(item.word)
            tags.append(item.label)
            continue
        label = strip_function(item.label)
        if UNARY in label:
            raise TreebankError(f"the label {label} contains '{UNARY}', which lalkit needs for unary chains")
        chain = f"{chain}{UNARY}{label}" if chain else label
        if len(item.children) == 1:
            stack.append((item.children[0], chain))
        else:
            stack.append((len(words), chain))
            stack.extend((child, "") for child in reversed(item.children))
    return Sentence(tuple(words), tuple(tags), tuple(spans), id=id)
