"""Read and write the brackets of the Penn Treebank, and turn a treebank's tree into a `Sentence`.

Only ASCII space, tab and newline separate tokens: CRAFT has words that contain U+2009 or U+00A0.
"""

from __future__ import annotations

import codecs
import logging
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

from lalkit.errors import TreebankError
from lalkit.files import reading, regular
from lalkit.treebank.tree import UNARY, Node, Sentence, Span, escape, format_tree

TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
TOPS = ("", "TOP", "ROOT", "S1", "VROOT")  # labels of a top bracket that is layout, not syntax
ESCAPES = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
# With frequent characters
ENCODINGS = {"gb18030": "的一是不了在人有我他这个们中来", "big5": "的一是不了在人有我他這個們中來"}
# The errors of reading a file, also of a file in a damaged archive.
UNREADABLE = (OSError, EOFError, BadZipFile, zlib.error, KeyError, RuntimeError, ValueError)
# The kinds of files that are not text: their first bytes, and the remedy.
PLAIN = "Save it as plain text in UTF-8 first"
NO_TEXT = {
    "compressed by gzip": (rb"\x1f\x8b", "Unpack it first: gunzip FILE"),
    "compressed": (
        rb"BZh\d1AY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf",
        "Unpack it first: bunzip2 FILE, xz -d FILE or zstd -d FILE",
    ),
    "a zip archive, or a file of Word": (rb"PK[\x03\x05]", f"Unpack it: unzip FILE. Or: {PLAIN}."),
    "a file of Word": (rb"\xd0\xcf\x11\xe0|\{\\rtf", f"{PLAIN}."),
    "PDF": (rb"%PDF-", f"{PLAIN}: pdftotext FILE - | lalkit parse --form text"),
    "a picture": (rb"\x89PNG|\xff\xd8\xff|GIF8", f"{PLAIN}."),
}
BALANCE = "Every ( needs a label or word, and its ). Brackets in words are -LRB- and -RRB-. Indent lines inside a tree."
logger = logging.getLogger(__name__)
TRACE = re.compile(r"0|\*(?:[^\s*]+\*)?(?:-\d+)?")  # as a word: an empty element, such as 0, *T*-1 or *con*
UNESCAPES = {escaped: plain for plain, escaped in ESCAPES.items()}


def parse_tree(text: str) -> Node:
    """Read one bracketed tree. Raises TreebankError with the number of the tree in which the brackets go wrong."""
    trees = [tree for _, tree in scan_trees(text)]
    for tree in trees:
        if isinstance(tree, TreebankError):
            raise tree
    if len(trees) != 1:
        raise TreebankError(f"{len(trees)} trees instead of one: {text[:60]!r}", "Give one tree in brackets.")
    return trees[0]  # type: ignore[return-value]


def scan_trees(text: str, place: str = "", plain: bool = True) -> Iterator[tuple[int, Node | TreebankError]]:
    """Yield the trees of a text, each with the line (from 1) on which it starts. A tree may take several lines.

    A malformed tree gives its error, and reading goes on at the next '(' in the first column of a line. Such a '(' starts a new
    tree even if the tree before it is still open, so that one missing bracket does not swallow the rest of a file. But if the
    whole text balances, and most such lines are inside a tree, then a '(' in the first column may also continue a tree.

    place: the name of the file, for error messages. plain: read the Penn Treebank's 1\\/2 as 1/2.
    """
    strict = _starts_trees(text, place)
    open_phrases: list[tuple[list[str], list[Node | str]]] = []  # labels (none or one), children or words
    line, start, number, skipping = 1, 1, 0, False
    previous = 0

    def here() -> str:
        return f"{place + ', ' if place else ''}line {start}, tree {number}"

    for match in TOKEN.finditer(text):
        token = match.group()
        line += text.count("\n", previous, match.start())
        previous = match.start()
        new_start = token == "(" and (match.start() == 0 or text[match.start() - 1] == "\n")
        if new_start and open_phrases and strict:
            yield start, _unclosed(open_phrases).at(here())
            open_phrases = []
        if skipping and not new_start:
            continue
        skipping = False
        if not open_phrases:
            start, number = line, number + 1
        try:
            if token == "(":
                open_phrases.append(([], []))
            elif not open_phrases:
                raise TreebankError(f"{token!r} outside all brackets", BALANCE)
            elif token == ")":
                node = _close(*open_phrases.pop())
                if open_phrases:
                    open_phrases[-1][1].append(node)
                else:
                    yield start, node
            else:
                labels, items = open_phrases[-1]
                (items if labels or items else labels).append(without_slash(token) if plain else token)
        except TreebankError as error:
            yield start, error.at(here())
            open_phrases, skipping = [], True
    if open_phrases:
        yield start, _unclosed(open_phrases).at(here())


def _starts_trees(text: str, place: str) -> bool:
    """Return whether '(' in the first column always starts a tree: if brackets do not balance, or if most do. Else warn."""
    depth, outside, inside = 0, 0, 0
    for number, piece in enumerate(re.split(r"^\(", text, flags=re.M)):
        if number:
            outside, inside, depth = outside + (depth <= 0), inside + (depth > 0), depth + 1
        depth += piece.count("(") - piece.count(")")
    if depth == 0 and inside > outside:
        problem = "lines that begin with ( go on the tree before. Or does one tree lack a ), and another have"
        logger.warning(f"{place + ': ' if place else ''}{inside} {problem} one too many?")
    return depth != 0 or inside <= outside


def _unclosed(open_phrases: list[tuple[list[str], list]]) -> TreebankError:
    near = "".join(open_phrases[-1][0])
    return TreebankError(f"{len(open_phrases)} bracket(s) never closed, near ({near}", BALANCE)


def _close(labels: list[str], items: list[Node | str]) -> Node:
    label = "".join(labels)
    words = [item for item in items if isinstance(item, str)]
    if words and len(items) > 1:
        problem = f"({label} ...) has several words, or words beside constituents: {words}"
        raise TreebankError(problem, "Give every word its own brackets with its tag.")
    return Node(label, tuple(item for item in items if isinstance(item, Node)), words[0] if words else None)


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a text file. Raises TreebankError for a missing file, a wrong encoding or a NUL byte."""
    with reading(path, kind=TreebankError, errors=UNREADABLE):  # path may lead into an archive
        raw = (regular(path) if isinstance(path, Path) else path).read_bytes()
    return decode(raw, str(path), encoding)


def decode(raw: bytes, place: str, encoding: str = "utf-8", first_line: int = 1) -> str:
    """Decode bytes. Raises TreebankError with the line of the first byte that is not in the encoding, or of the first NUL.

    first_line: the number of the line with which the bytes begin. A byte order mark is dropped only at the start of a file.
    """
    for kind, (look, remedy) in NO_TEXT.items() if first_line == 1 else ():
        if re.match(look, raw):
            raise TreebankError(f"this is {kind}, and no plain text", remedy, where=place)
    try:
        text = raw.decode(encoding)
        at, problem = text.find("\0"), "a NUL byte"
        line = text.count("\n", 0, at)
    except UnicodeDecodeError as error:
        at, problem = error.start, f"byte 0x{raw[error.start]:02x} is not {encoding}"
        line = raw.count(b"\n", 0, at)
    if at >= 0:
        guess = guess_encoding(raw)
        why = f". It may be {guess}" if guess else ""
        remedy = f"Convert the file first{why}: iconv -f {guess or 'ENCODING'} -t utf-8 FILE > NEW"
        raise TreebankError(problem, remedy, where=f"{place}, line {line + first_line}")
    return text.removeprefix("\ufeff") if first_line == 1 else text


def guess_encoding(raw: bytes) -> str:
    """Return the likely encoding of bytes that are not UTF-8; "" for none. Chinese is known by its frequent characters.

    In Western European text, letters with accents stand between ASCII characters.
    """
    if b"\0" in raw or raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-32" if b"\0\0" in raw else "utf-16"
    found = {name: sum(map(raw.decode(name, "ignore").count, often)) for name, often in ENCODINGS.items()}
    best = max(found, key=found.__getitem__)
    if 50 * found[best] > sum(byte > 0x7F for byte in raw):
        return best
    runs = re.findall(rb"[\x80-\xff]+", raw)
    return "cp1252" if 4 * sum(len(run) == 1 for run in runs) > 3 * len(runs) else ""


def indent_tree(tree: Node, width: int = 88) -> str:
    """Write a tree over several lines, as the Penn Treebank's files do. A phrase that fits the width stays on one line."""
    lengths: dict[int, int] = {}  # of every node on one line
    for node in reversed(list(tree.nodes())):
        parts = [len(escape(node.word))] if node.is_leaf else [lengths[id(child)] for child in node.children]
        lengths[id(node)] = len(f"({escape(node.label)})") + sum(parts) + len(parts)
    lines = []
    stack = [(tree, 0, "")]  # a node, its indent, and the brackets that close after it
    while stack:
        node, indent, closing = stack.pop()
        if node.is_leaf or lengths[id(node)] + indent <= width:
            lines.append(" " * indent + format_tree(node) + closing)
            continue
        lines.append(" " * indent + f"({escape(node.label)}")
        *before, last = node.children
        stack.append((last, indent + 2, closing + ")"))
        stack.extend((child, indent + 2, "") for child in reversed(before))
    return "\n".join(lines)


def unescape(word: str) -> str:
    """Return the word as it stands in raw text: ( for -LRB-, and so on."""
    return UNESCAPES.get(word, word)


def without_slash(word: str) -> str:
    """Return a word of the Penn Treebank without the backslash before / and *."""
    return word.replace("\\/", "/").replace("\\*", "*")


def strip_function(label: str) -> str:
    """Remove function tags and indices: NP-SBJ-1 -> NP, NP=2 -> NP, ADVP|PRT -> ADVP. Labels that start with '-' stay
    (-LRB-), and those that NLTK made (NP-SBJ|<DT-NN>), which are refused later."""
    return label if label.startswith("-") or "|<" in label else re.split(r"[-=|]", label, maxsplit=1)[0]


def clean(tree: Node, unwrap: tuple[str, ...] = ()) -> Node:
    """Return the tree without traces and without a layout bracket: a top node over a single phrase. Function tags stay.

    unwrap: labels of wrappers that are layout, not syntax (CRAFT's TITLE, HEADING, CAPTION). They go if they cover a whole
    tree. Raises TreebankError for a tree that has only traces.
    """
    kept = drop_empty(tree)
    if kept is None:
        raise TreebankError(f"the tree has no words: {format_tree(tree)[:60]}", "Leave the tree out.")
    while len(kept.children) == 1 and kept.label in (*TOPS, *unwrap) and not kept.children[0].is_leaf:
        kept = kept.children[0]
    return Node("TOP", kept.children) if kept.label in TOPS and not kept.is_leaf else kept


def drop_empty(tree: Node, drop: Collection[str] = ()) -> Node | None:
    """Remove -NONE- leaves, and the phrases that are empty without them. Returns None if nothing is left.

    drop: other tags whose words to remove; "traces" stands for all words that look like a trace.
    """
    gone = {"-NONE-", *drop}
    kept: dict[int, Node | None] = {}
    for node in reversed(list(tree.nodes())):  # children before parents; no recursion: a tree may be very deep
        children = tuple(child for child in map(kept.get, map(id, node.children)) if child is not None)
        if node.is_leaf:
            trace = "traces" in drop and TRACE.fullmatch(node.word)
            kept[id(node)] = None if trace or node.label in gone else node
        else:
            kept[id(node)] = Node(node.label, children) if children else None
    return kept[id(tree)]


def tree_to_sentence(tree: Node, id: str = "") -> Sentence:
    """Return a tree without traces as a Sentence, unary chains joined by '::'. TreebankError for '::' in a label."""
    words, tags, spans = [], [], []
    stack: list[tuple[Node | int, str]] = [(tree, "")]  # a node, or the start of an open span; the unary chain over it
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
            raise TreebankError(f"the label {label} has '{UNARY}', which lalkit needs itself", "Rename the label.")
        chain = f"{chain}{UNARY}{label}" if chain else label
        if len(item.children) == 1:
            stack.append((item.children[0], chain))
        else:
            stack.append((len(words), chain))
            stack.extend((child, "") for child in reversed(item.children))
    return Sentence(tuple(words), tuple(tags), tuple(spans), id=id)


# ---------------------------------------------------------------- the Sinica Treebank sample of NLTK

# A line is `#3:3.[39029] S(theme:NP(...)|Head:VC1:住在|goal:NP(...))#，(COMMACATEGORY)`. The punctuation after the second #
# belongs to no tree. Names can carry features in square brackets (VE2[+DE], topic[+theme]); they are dropped, because most
# occur only a few times. NLTK's own reader ignores roles and heads, so this one reads the file `parsed` (`raw` is damaged).
CLAUSE = re.compile(r"#[^ ]* (.*)#[^#]*")
PHRASE, WORD = re.compile(r"([^()|\s]+)\("), re.compile(r"([^()|\s]+):([^()|\s:]+)(?=[|)])")
A_CLAUSE = "A line is #NUMBER TREE#PUNCTUATION, a constituent role:LABEL(child|child), a word role:TAG:word."
REMAINDERS = {"train": range(8), "dev": (8,), "test": (9,)}  # which line numbers (from 0), modulo ten, a split has


def read_sinica(text: str, split: str, place: str) -> Iterator[Sentence | TreebankError]:
    """Yield the sentences of a split; a line that cannot be read gives its error.

    Sentences get longer through the file, so each split takes its lines from all over the file. The id is sinica.LINE (from 1):
    the ids in the file are not unique.
    """
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        if number % 10 in REMAINDERS[split]:
            try:
                yield read_clause(line.removesuffix("\r"), f"sinica.{number + 1}")
            except TreebankError as error:
                yield TreebankError(error.problem, where=f"{place}, line {number + 1}", remedy=A_CLAUSE)


def read_clause(line: str, id: str = "") -> Sentence:
    """Read one line. Raises TreebankError if brackets or fields go wrong.

    A line is turned into brackets, whose labels are role:LABEL and role:TAG. The head child of a constituent is its last child in
    the role Head (a coordination has several); else the last one in `head`; else the last child. The head words of the other
    children depend on its head word, and their roles are the arc labels. So both layers always fit into one joint tree.
    """
    match = CLAUSE.fullmatch(line)
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
            raise TreebankError(f"{node.label!r} is not role:LABEL, or LABEL of the root", A_CLAUSE)
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
