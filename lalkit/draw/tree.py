"""Draw constituent trees as an SVG (labels above, words below, the line to each head child thick) and as text.

Layout: every subtree has a box of its own, as wide as its label or as the boxes of its children side by side, so nothing can
overlap. A constituent stands one level above its highest child. A line leaves its parent at a slant, reaches the next level,
and goes straight down from there, so that no line crosses a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lalkit.draw import svg
from lalkit.treebank.brackets import unescape
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Node, Sentence

WORD, TAG, LABEL, NOTE = 15, 12, 14, 10  # font sizes
LEVEL = 42  # from one level of labels to the next
LINE_GAP = 5  # between a label and the line below it
NOTE_LINE = 13  # how much higher a level is if there are notes below the labels
TAG_TO_WORD = 19
GAP = 14  # between neighbouring boxes
MARGIN = 16


@dataclass
class Placed:
    """A node of the tree and its place in the drawing.

    level: 0 for a word. start, end: it covers words[start:end]. head: its head word (0-based) if that is known. note: a few
    characters below its label. left, width: of the box that its whole subtree fills. x: the centre of its label. key: its name
    for the script of a page, which can then find its label and its lines.
    """

    node: Node
    level: int = 0
    start: int = 0
    end: int = 0
    head: int | None = None
    note: str = ""
    key: str | None = None
    left: float = 0.0
    width: float = 0.0
    x: float = 0.0
    children: list[Placed] = field(default_factory=list)


class Layers(NamedTuple):
    """What is drawn of a sentence. The words are as they were written, without the treebank's escapes."""

    words: list[str]
    tags: tuple[str, ...] | None
    heads: tuple[int, ...] | None
    root: Placed | None = None


def draw_tree(sentence: Sentence | Node, notes: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return the constituents as an SVG. If the sentence has heads, thick lines lead from each constituent to its head word.

    notes: (start, end) -> a few characters to write below that constituent's label; in a unary chain, below the top label.
    Raises TreebankError for a Sentence without constituents.
    """
    layers = read(sentence)
    level = LEVEL + NOTE_LINE if notes else LEVEL
    unused = dict(notes or {})
    for item in walk(layers.root):  # a unary chain is met from its top
        if not item.node.is_leaf:
            item.note = unused.pop((item.start, item.end), "")
    slots = slot_widths(layers)
    xs = place(layers.root, slots)
    base = MARGIN + LABEL + layers.root.level * level
    parts = [*tree_parts(layers, base, level), *word_parts(layers, xs, base)]
    height = base + TAG_TO_WORD + MARGIN - 4
    return svg.document(tree_width(layers.root, slots), height, parts, "Constituents: " + " ".join(layers.words))


def text_tree(sentence: Sentence | Node) -> str:
    """Return the constituents as indented text. If the sentence has heads, * marks each head child.

    S
    ├── NP
    │   ├── DT The
    │   └── NN end *
    └── VP *
    """
    layers = read(sentence)
    lines = []
    stack = [(layers.root, "", "", False)]
    while stack:
        item, lead, indent, is_head = stack.pop()
        word = layers.words[item.start] if item.node.is_leaf else ""
        label = item.node.label if layers.tags or not word else ""
        lines.append(lead + " ".join(filter(None, (label, word, "*" if is_head else ""))))
        for child in reversed(item.children):
            last = child is item.children[-1]
            marked = child.head is not None and child.head == item.head and len(item.children) > 1
            stack.append((child, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   "), marked))
    return "\n".join(lines) + "\n"


def read(sentence: Sentence | Node) -> Layers:
    """Return the layers of a sentence; the nodes of the tree have levels and head words, but no places yet."""
    tree, heads = (sentence, None) if isinstance(sentence, Node) else (sentence.tree, sentence.heads)
    root = Placed(tree)
    order, words = [], []
    for item in walk(root):
        item.children = [Placed(child) for child in item.node.children]
        order.append(item)
    for item in reversed(order):  # children before their parent, from left to right
        if item.node.is_leaf:
            item.start, item.end = len(words), len(words) + 1
            item.head = item.start if heads else None
            words.append(unescape(item.node.word))
            continue
        item.start, item.end = item.children[0].start, item.children[-1].end
        item.level = 1 + max(child.level for child in item.children)
        item.head = external_head(heads, item.start, item.end) if heads else None
    tags = tuple(leaf.label for leaf in tree.leaves()) if isinstance(sentence, Node) else sentence.tags
    return Layers(words, tags, heads, root)


def walk(root: Placed) -> Iterator[Placed]:
    """Yield every node: parents before their children, and children from right to left."""
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(item.children)


def label_width(item: Placed) -> float:
    """Return the room that a constituent's label and its note need."""
    return max(svg.text_width(item.node.label, LABEL), svg.text_width(item.note, NOTE)) + GAP


def slot_widths(layers: Layers) -> list[float]:
    """Return the room that each word and its tag need."""
    pairs = zip(layers.words, layers.tags or [""] * len(layers.words))
    return [max(svg.text_width(svg.shorten(word), WORD), svg.text_width(tag, TAG)) + GAP for word, tag in pairs]


def place(root: Placed, slots: Sequence[float], pads: Sequence[float] | None = None) -> list[float]:
    """Set every node's place, from MARGIN on, and return the centres of the words.

    slots: the width of each word. pads: extra room to the left of each word.
    """
    pads = pads or [0.0] * len(slots)
    order = list(walk(root))
    for item in reversed(order):
        if item.node.is_leaf:
            item.width = slots[item.start] + pads[item.start]
        else:
            item.width = max(label_width(item), sum(child.width for child in item.children))
    xs = [0.0] * len(slots)
    root.left = float(MARGIN)
    for item in order:
        if item.node.is_leaf:
            item.x = xs[item.start] = item.left + pads[item.start] + slots[item.start] / 2
        left = item.left + (item.width - sum(child.width for child in item.children)) / 2
        for child in item.children:
            child.left = left
            left += child.width
    for item in reversed(order):
        if not item.node.is_leaf:
            half = label_width(item) / 2
            middle = (item.children[0].x + item.children[-1].x) / 2
            item.x = min(max(middle, item.left + half), item.left + item.width - half)
    return xs


def tree_width(root: Placed, slots: Sequence[float]) -> float:
    """Return the width of the drawing: to the right edge of the rightmost text."""
    rooms = ((item, slots[item.start] if item.node.is_leaf else label_width(item)) for item in walk(root))
    return max(item.x + room / 2 for item, room in rooms) + MARGIN


def tree_parts(layers: Layers, base: float, level: float = LEVEL) -> list[str]:
    """Return lines and labels of all constituents. base: the y of the tags' baseline, even if there are no tags."""
    plain, thick, labels = [], [], []
    n = svg.number
    for item in walk(layers.root):
        if item.node.is_leaf:
            continue
        y = base - item.level * level
        start = y + LINE_GAP
        tooltip = f"{item.node.label or 'unlabelled'}: words {item.start + 1} to {item.end}"
        labels.append(svg.text(item.x, y, item.node.label, LABEL, bold=True, tooltip=tooltip, data_of=item.key))
        if item.note:
            start += NOTE_LINE
            labels.append(svg.text(item.x, start - 2, item.note, NOTE, colour=svg.GREY))
        for child in item.children:
            size = (TAG if layers.tags else 0) if child.node.is_leaf else LABEL
            end = base - child.level * level - size + (0 if size else TAG_TO_WORD - WORD)
            # The line slants down to the next level's labels, and goes straight down from there.
            bend = end if item.level - child.level == 1 else y + level - LABEL
            line = f"M{n(item.x)} {n(start)} L{n(child.x)} {n(bend)}" + (f" V{n(end)}" if end > bend else "")
            ends: dict[str, Any] = {"data_of": item.key, "data_to": child.key}
            if item.head is not None and child.head == item.head:
                thick.append(svg.path(line, colour=svg.BLUE, width=2.6, kind="head", **ends))
            else:
                plain.append(svg.path(line, **ends))
    return plain + thick + labels


def word_parts(layers: Layers, xs: Sequence[float], base: float, tag_shift: float = 0.0) -> list[str]:
    """Return tags and words; the root of the dependencies is underlined.

    Args:
        layers: of these the words, tags and heads are used.
        xs: the centre of each word.
        base: the words' baseline is TAG_TO_WORD below this y.
        tag_shift: the tags' baseline is so far below base.
    """
    parts = []
    for i, (word, x) in enumerate(zip(layers.words, xs)):
        is_root = layers.heads is not None and layers.heads[i] == 0
        colour = svg.VERMILION if is_root else svg.BLACK
        if layers.tags:
            parts.append(svg.text(x, base + tag_shift, layers.tags[i], TAG, colour=svg.GREY))
        y, short = base + TAG_TO_WORD, svg.shorten(word)
        parts.append(svg.text(x, y, short, WORD, bold=is_root, colour=colour, tooltip=f"{i + 1}: {word}"))
        if is_root:
            half = svg.text_width(short, WORD) / 2 - 2
            line = f"M{svg.number(x - half)} {svg.number(y + 4)} H{svg.number(x + half)}"
            parts.append(svg.path(line, colour=svg.VERMILION, width=1.6))
    return parts
