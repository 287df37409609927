"""Constituent trees: as an SVG (labels above, words below, the line to each head child thick) and as text.

Layout: every subtree has a box of its own, as wide as its label and its children's boxes side by side, so nothing can
overlap. A constituent stands one level above its highest child; lines leave their parent at a slant, within one level,
and then go straight down, so that no line crosses a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lalkit.draw import svg
from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Node, Sentence

WORD, TAG, LABEL, NOTE = 15, 12, 14, 10  # font sizes
LEVEL = 42  # from one level of labels to the next
LINE_GAP = 5  # between a label and the line below it
NOTE_LINE = 13  # what a note below a label adds to a level
TAG_TO_WORD = 19
GAP = 14  # between neighbouring boxes
MARGIN = 16


@dataclass
class Placed:
    """A node with its place: x of its centre, level (0: a word), words[start:end], head word (0-based) if known; note: what
    stands below its label."""

    node: Node
    level: int = 0
    start: int = 0
    end: int = 0
    x: float = 0.0
    head: int | None = None
    note: str = ""
    children: list["Placed"] = field(default_factory=list)


def draw_tree(sentence: Sentence | Node, notes: Mapping[tuple[int, int], str] | None = None) -> str:
    """An SVG of the constituents. Where a Sentence has heads, thick lines lead from a constituent to its head word.

    notes: (start, end) -> a few characters below that constituent's label; of a unary chain's, the outermost's. Raises
    TreebankError for a Sentence without constituents.
    """
    root, words, heads = read(sentence)
    level = LEVEL + NOTE_LINE if notes else LEVEL
    for item in outermost(root):
        item.note = (notes or {}).get((item.start, item.end), "")
    tags = [leaf.node.label for leaf in leaves(root)] if shows_tags(sentence) else None
    xs = place(root, slot_widths(words, tags))
    top = MARGIN + LABEL
    base = top + root.level * level
    parts = [*tree_parts(root, base, tags is not None, level), *word_parts(words, xs, base, tags, heads)]
    width = total_width(root, words, tags)
    return svg.document(width, base + TAG_TO_WORD + MARGIN - 4, parts, "Constituents: " + " ".join(words))


def text_tree(sentence: Sentence | Node) -> str:
    """The constituents as indented text; * marks each head child where the sentence has heads.

    S
    ├── NP
    │   ├── DT The
    │   └── NN end *
    └── VP *
    """
    root, words, _ = read(sentence)
    tags = shows_tags(sentence)
    lines = []
    stack = [(root, "", "", False)]
    while stack:
        item, lead, indent, is_head = stack.pop()
        leaf = words[item.start] if item.node.is_leaf else ""
        label = item.node.label if tags or not leaf else ""
        lines.append(lead + " ".join(filter(None, (label, leaf, "*" if is_head else ""))))
        for i, child in reversed(list(enumerate(item.children))):
            last = i == len(item.children) - 1
            marked = child.head is not None and child.head == item.head and len(item.children) > 1
            stack.append((child, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   "), marked))
    return "\n".join(lines) + "\n"


def read(sentence: Sentence | Node) -> tuple[Placed, list[str], tuple[int, ...] | None]:
    """The tree as Placed nodes with levels and heads (x still 0), the words as raw text, the heads if there are any."""
    tree, heads = (sentence, None) if isinstance(sentence, Node) else (sentence.tree, sentence.heads)
    root = Placed(tree)
    order, stack, words = [], [root], []
    while stack:
        item = stack.pop()
        order.append(item)
        item.start = len(words)
        if item.node.is_leaf:
            words.append(unescape(item.node.word))
        item.children = [Placed(child) for child in item.node.children]
        stack.extend(reversed(item.children))
    for item in reversed(order):  # children before parents
        if item.node.is_leaf:
            item.end, item.head = item.start + 1, item.start if heads else None
            continue
        item.end = item.children[-1].end
        item.level = 1 + max(child.level for child in item.children)
        if heads:
            item.head = external_head(heads, item.start, item.end)
    return root, words, heads


def external_head(heads: Sequence[int], start: int, end: int) -> int | None:
    """The word (0-based) of words[start:end] whose head lies outside; None unless there is exactly one."""
    outside = [i for i in range(start, end) if not start < heads[i] <= end]
    return outside[0] if len(outside) == 1 else None


def shows_tags(sentence: Sentence | Node) -> bool:
    return isinstance(sentence, Node) or sentence.tags is not None


def leaves(root: Placed) -> list[Placed]:
    """The words' places, from left to right."""
    found, stack = [], [root]
    while stack:
        item = stack.pop()
        found += [item] if item.node.is_leaf else []
        stack.extend(reversed(item.children))
    return found


def outermost(root: Placed) -> list[Placed]:
    """The constituents, of each unary chain the outermost one only."""
    found, stack = [], [(root, None)]
    while stack:
        item, above = stack.pop()
        if not item.node.is_leaf:
            found += [item] if (item.start, item.end) != above else []
            stack.extend((child, (item.start, item.end)) for child in item.children)
    return found


def label_width(item: Placed) -> float:
    """The room a constituent's label needs, its note included."""
    return max(svg.text_width(item.node.label, LABEL), svg.text_width(item.note, NOTE)) + GAP


def slot_widths(words: Sequence[str], tags: Sequence[str] | None) -> list[float]:
    """The room each word needs, its tag included."""
    wide = [svg.text_width(svg.shorten(word), WORD) for word in words]
    if tags:
        wide = [max(w, svg.text_width(tag, TAG)) for w, tag in zip(wide, tags)]
    return [w + GAP for w in wide]


def place(root: Placed, slots: Sequence[float], pads: Sequence[float] | None = None) -> list[float]:
    """Sets every x, the drawing starting at MARGIN; returns those of the words.

    slots: width per word. pads: extra room to the left of each word.
    """
    pads = pads or [0.0] * len(slots)
    order, stack = [], [root]
    while stack:
        item = stack.pop()
        order.append(item)
        stack.extend(item.children)
    widths = {}
    for item in reversed(order):
        if item.node.is_leaf:
            widths[id(item)] = slots[item.start] + pads[item.start]
        else:
            widths[id(item)] = max(label_width(item), sum(widths[id(child)] for child in item.children))
    xs = [0.0] * len(slots)
    lefts = {id(root): float(MARGIN)}
    for item in order:
        left, width = lefts[id(item)], widths[id(item)]
        if item.node.is_leaf:
            item.x = xs[item.start] = left + pads[item.start] + slots[item.start] / 2
        at = left + (width - sum(widths[id(child)] for child in item.children)) / 2
        for child in item.children:
            lefts[id(child)] = at
            at += widths[id(child)]
    for item in reversed(order):
        if not item.node.is_leaf:
            left, half = lefts[id(item)], label_width(item) / 2
            middle = (item.children[0].x + item.children[-1].x) / 2
            item.x = min(max(middle, left + half), left + widths[id(item)] - half)
    return xs


def total_width(root: Placed, words: Sequence[str], tags: Sequence[str] | None) -> float:
    """The width of the drawing: to the right edge of the rightmost text."""
    slots = slot_widths(words, tags)
    edge = max(leaf.x + slots[leaf.start] / 2 for leaf in leaves(root))
    stack = [root]
    while stack:
        item = stack.pop()
        stack.extend(item.children)
        if not item.node.is_leaf:
            edge = max(edge, item.x + label_width(item) / 2)
    return edge + MARGIN


def tree_parts(root: Placed, base: float, tags: bool, level: float = LEVEL) -> list[str]:
    """Lines and labels of all constituents; base is the baseline of the tags, or of the line where they would stand."""
    plain, thick, labels = [], [], []
    stack = [root]
    while stack:
        item = stack.pop()
        stack.extend(item.children)
        if item.node.is_leaf:
            continue
        y = base - item.level * level
        start = y + LINE_GAP
        span = f"{item.node.label or 'unlabelled'}: words {item.start + 1} to {item.end}"
        labels.append(svg.text(item.x, y, item.node.label, LABEL, bold=True, tip=span))
        if item.note:
            start += NOTE_LINE
            labels.append(svg.text(item.x, start - 2, item.note, NOTE, colour=svg.GREY))
        for child in item.children:
            size = (TAG if tags else 0) if child.node.is_leaf else LABEL
            end = base - child.level * level - size + (0 if size else TAG_TO_WORD - WORD)
            # Slanted down to the next level's labels, from there straight down.
            bend = end if item.level - child.level == 1 else y + level - LABEL
            line = f"M{svg.number(item.x)} {svg.number(start)} L{svg.number(child.x)} {svg.number(bend)}"
            line += f" V{svg.number(end)}" if end > bend else ""
            if item.head is not None and child.head == item.head:
                thick.append(svg.path(line, colour=svg.BLUE, width=2.6, kind="head"))
            else:
                plain.append(svg.path(line))
    return plain + thick + labels


def word_parts(
    words: Sequence[str],
    xs: Sequence[float],
    base: float,
    tags: Sequence[str] | None,
    heads: Sequence[int] | None,
    tag_shift: float = 0.0,
) -> list[str]:
    """Tags on the line base + tag_shift, words TAG_TO_WORD below base; the sentence's root is underlined."""
    parts = []
    for i, (word, x) in enumerate(zip(words, xs)):
        tip = f"{i + 1}: {word}"
        is_root = heads is not None and heads[i] == 0
        if tags:
            parts.append(svg.text(x, base + tag_shift, tags[i], TAG, colour=svg.GREY))
        y = base + TAG_TO_WORD
        shown = svg.shorten(word)
        parts.append(svg.text(x, y, shown, WORD, bold=is_root, colour=svg.VERMILION if is_root else svg.BLACK, tip=tip))
        if is_root:
            half = svg.text_width(shown, WORD) / 2 - 2
            line = f"M{svg.number(x - half)} {svg.number(y + 4)} H{svg.number(x + half)}"
            parts.append(svg.path(line, colour=svg.VERMILION, width=1.6))
    return parts
