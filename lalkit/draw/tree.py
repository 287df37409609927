"""Draw a sentence as an SVG: constituents above the words, dependencies below them, or one of the two.

Constituents: every subtree has a box of its own, at least as wide as its label, so nothing can overlap. A constituent stands one
level above its highest child. A line leaves its parent at a slant, reaches the next level, and goes straight down from there, so
that no line crosses a label. Thick lines lead to the head child.

Dependencies: every word has one bracket-shaped arc, from its head word to it, with the arc's label on it. An arc runs below all
arcs that it spans. If several arcs meet a word, they stand side by side, the longest nearest the word's centre, so that the
arcs of a projective tree never cross. Words move apart until every label fits on its arc. The page to explore lays out its trees
in the same way (explorer/layout.js; a test compares them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lalkit.draw import svg
from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.joint import external_head
from lalkit.treebank.tree import Node, Sentence

WORD, TAG, LABEL, NOTE, ARC_LABEL = 15, 12, 14, 10, 12  # font sizes
LEVEL = 42  # from one level of labels to the next
LINE_GAP = 5  # between a label and the line below it
NOTE_LINE = 13  # how much higher a level is if there are notes below the labels
TAG_TO_WORD = 19
GAP = 14  # between neighbouring boxes
LONG = 25  # words; in a longer sentence, words and arcs stand closer
MARGIN = 16
UNDER_WORDS = 8  # from the words' baseline to where the arcs begin
FIRST = 24  # from there to the first level of arcs
STEP = 21  # from one level of arcs to the next
LEG = 7  # between arcs that meet the same word
CLOSE = 5  # both gaps in a long sentence
CORNER = 6
ARROW = 7
PAD = 3  # white around the label of an arc


@dataclass
class Placed:
    """A node of the tree and its place in the drawing.

    level: 0 for a word. start, end: it covers words[start:end]. head: its head word (0-based) if that is known. note: a few
    characters below its label. x: the centre of its label.
    """

    node: Node
    level: int = 0
    start: int = 0
    end: int = 0
    head: int | None = None
    note: str = ""
    x: float = 0.0
    children: list[Placed] = field(default_factory=list)

    @property
    def room(self) -> float:
        """The width that the label and the note of a constituent need."""
        return max(svg.text_width(self.node.label, LABEL), svg.text_width(self.note, NOTE)) + GAP


@dataclass
class Arc:
    """The arc from a head word (0 for the root) to its dependent, both 1-based.

    level: 1 for the arcs nearest the words. offsets: word -> how far from its centre the arc meets it, for the arc's two words.
    """

    dependent: int
    head: int
    label: str
    level: int
    offsets: dict[int, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return min(self.dependent, self.head)

    @property
    def right(self) -> int:
        return max(self.dependent, self.head)

    @property
    def room(self) -> float:
        """How wide the arc must be for its label."""
        return svg.text_width(self.label, ARC_LABEL) + 2 * (CORNER + PAD) if self.label else 2.0 * CORNER


class Layers(NamedTuple):
    """What is drawn of a sentence. The words are as they were written, without the treebank's escapes.

    root: of the constituents; without constituents a node over all words, which is not drawn.
    """

    words: list[str]
    tags: tuple[str, ...] | None
    heads: tuple[int, ...] | None
    root: Placed


def draw_tree(sentence: Sentence | Node, notes: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return the constituents as an SVG. If the sentence has heads, thick lines lead from each constituent to its head word.

    notes: (start, end) -> a few characters to write below that constituent's label; in a unary chain, below the top label.
    Raises TreebankError for a Sentence without constituents.
    """
    layers, unused = read(sentence), dict(notes or {})
    for item in walk(layers.root):  # a unary chain is met from its top
        if item.children:
            item.note = unused.pop((item.start, item.end), "")
    return _document("Constituents", layers, [])


def draw_arcs(sentence: Sentence) -> str:
    """Return words, tags and dependencies as an SVG. Raises TreebankError if there are no heads."""
    arcs, leaves = read_arcs(sentence), (Node(tag, word=word) for word, tag in _tagged(sentence.words, sentence.tags))
    flat = read(Node("", tuple(leaves)))
    flat.root.level = 0  # it is not drawn
    return _document("Dependencies", flat._replace(tags=sentence.tags, heads=sentence.heads), arcs)


def draw_joint(sentence: Sentence) -> str:
    """Return tree, words and arcs as one SVG. Raises TreebankError if the sentence lacks constituents or heads."""
    return _document("Joint parse", read(sentence), read_arcs(sentence))


def draw_layers(sentence: Sentence) -> str:
    """Return the layers that the sentence has as one SVG: the joint tree, or its constituents or dependencies alone."""
    if sentence.constituents is None:
        return draw_arcs(sentence)
    return draw_tree(sentence) if sentence.heads is None else draw_joint(sentence)


def _document(title: str, layers: Layers, arcs: Sequence[Arc]) -> str:
    """Return the constituents above the words and the dependencies below them. The root's arc is the last one."""
    level = LEVEL + NOTE_LINE if any(item.note for item in walk(layers.root)) else LEVEL
    gap, tagged = gap_of(layers.words), _tagged(layers.words, layers.tags)
    slots = [max(svg.text_width(svg.shorten(word), WORD), svg.text_width(tag, TAG)) + gap for word, tag in tagged]
    for word, offset in (pair for arc in arcs for pair in arc.offsets.items()):
        slots[word - 1] = max(slots[word - 1], 2 * abs(offset) + gap)  # the ends of its arcs stand within it
    xs, width = spread(layers.root, slots, arcs)
    base = MARGIN + (LABEL + layers.root.level * level if layers.root.level else TAG)
    height = base + TAG_TO_WORD + MARGIN - 4
    parts = [*_tree_parts(layers, base, level), *_word_parts(layers, xs, base)]
    if arcs:
        under = base + TAG_TO_WORD + UNDER_WORDS
        parts += _arc_parts(arcs, xs, under)
        height = under + FIRST + (arcs[-1].level - 1) * STEP + ARC_LABEL + MARGIN
    return svg.document(width, height, parts, f"{title}: " + " ".join(layers.words))


# ---------------------------------------------------------------- what is to be drawn


def read(sentence: Sentence | Node) -> Layers:
    """Return the layers of a sentence; the nodes of the tree have levels and head words, but no places yet."""
    tree, heads = (sentence, None) if isinstance(sentence, Node) else (sentence.tree, sentence.heads)
    root = Placed(tree)
    order, words = [], []
    for item in walk(root):
        item.children = [Placed(child) for child in item.node.children]
        order.append(item)
    for item in reversed(order):  # children before their parent, from left to right
        if item.children:
            item.start, item.end = item.children[0].start, item.children[-1].end
            item.level = 1 + max(child.level for child in item.children)
        else:
            item.start, item.end = len(words), len(words) + 1
            words.append(unescape(item.node.word))
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


def read_arcs(sentence: Sentence) -> list[Arc]:
    """Return the arcs with levels and offsets, short ones first. The last is the root's. Raises TreebankError without heads."""
    if sentence.heads is None:
        remedy = "Draw its tree, or parse it with a parser that gives dependencies."
        raise TreebankError("this sentence has no dependencies to draw", where=sentence.id, remedy=remedy)
    labels = sentence.arc_labels or ("",) * len(sentence)
    # Arcs nest. Read from short to long, an arc lies one level beyond the farthest arc inside it.
    arcs: list[Arc] = []
    pairs = [(i, head) for i, head in enumerate(sentence.heads, 1) if head]
    for i, head in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), pair)):
        arc = Arc(i, head, labels[i - 1], level=1)
        inside = [inner.level for inner in arcs if arc.left <= inner.left and inner.right <= arc.right]
        arc.level += max(inside, default=0)
        arcs.append(arc)
    root = sentence.heads.index(0) + 1
    leg = min(LEG, gap_of(sentence.words))
    for word in range(1, len(sentence) + 1):
        first = leg if word == root else leg / 2  # the root's own line stands in the centre
        for side in (-1, 1):
            meeting = [arc for arc in arcs if (arc.right if side < 0 else arc.left) == word]
            for k, arc in enumerate(sorted(meeting, key=lambda arc: arc.left - arc.right)):
                arc.offsets[word] = side * (first + k * leg)
    level = 1 + max((arc.level for arc in arcs), default=0)
    return [*arcs, Arc(root, 0, labels[root - 1] or "root", level, {root: 0.0})]


def _tagged(words: Sequence[str], tags: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    return zip(words, tags or [""] * len(words))


# ---------------------------------------------------------------- where it is drawn


def gap_of(words: Sequence[str]) -> int:
    """Return the gap between the boxes of neighbouring words; in a long sentence also that between arcs."""
    return GAP if len(words) <= LONG else CLOSE


def spread(root: Placed, slots: Sequence[float], arcs: Sequence[Arc]) -> tuple[list[float], float]:
    """Place every node so that each label fits over its words and on its arc. slots: the widths of the words.

    What is added for one label takes nothing from another, so that one round is enough, from short to long.
    Returns the centres of the words, and the width of the drawing.
    """
    left, right = [width / 2 for width in slots], [width / 2 for width in slots]  # of each word's centre
    items = [item for item in walk(root) if item.children]
    for item in sorted(items, key=lambda item: item.end - item.start):
        missing = item.room - sum(left[item.start : item.end]) - sum(right[item.start : item.end])
        left[item.start] += max(missing, 0.0) / 2
        right[item.end - 1] += max(missing, 0.0) / 2
    for arc in arcs:
        start, end = max(arc.left - 1, 0), arc.right - 1
        between = sum(right[start:end]) + sum(left[start + 1 : end + 1])
        if arc.head:
            left[end] += max(arc.room - between - arc.offsets[arc.right] + arc.offsets[arc.left], 0.0)
        else:  # the label of the root may reach beyond the first word
            left[0] += max(arc.room / 2 - between - left[0], 0.0)
    xs = [MARGIN + sum(left[: k + 1]) + sum(right[:k]) for k in range(len(slots))]
    for item in reversed(list(walk(root))):
        if item.children:
            middle = (item.children[0].x + item.children[-1].x) / 2
            first, last = xs[item.start] - left[item.start], xs[item.end - 1] + right[item.end - 1]
            item.x = min(max(middle, first + item.room / 2), last - item.room / 2)
        else:
            item.x = xs[item.start]
    ends = [xs[arc.dependent - 1] + arc.room / 2 for arc in arcs if not arc.head]
    return xs, max(xs[-1] + right[-1], *ends, 0.0) + MARGIN


# ---------------------------------------------------------------- how it is drawn


def _tree_parts(layers: Layers, base: float, level: float) -> list[str]:
    """Return lines and labels of all constituents. base: the y of the tags' baseline, even if there are no tags."""
    plain, thick, labels = [], [], []
    n = svg.number
    for item in walk(layers.root):
        if not item.level:
            continue
        y = base - item.level * level
        start = y + LINE_GAP
        tooltip = f"{item.node.label or 'unlabelled'}: words {item.start + 1} to {item.end}"
        labels.append(svg.text(item.x, y, item.node.label, LABEL, bold=True, tip=tooltip))
        if item.note:
            start += NOTE_LINE
            labels.append(svg.text(item.x, start - 2, item.note, NOTE, colour=svg.GREY))
        for child in item.children:
            size = LABEL if child.children else TAG if layers.tags else 0
            end = base - child.level * level - size + (0 if size else TAG_TO_WORD - WORD)
            # The line slants down to the next level's labels, and goes straight down from there.
            bend = end if item.level - child.level == 1 else y + level - LABEL
            line = f"M{n(item.x)} {n(start)} L{n(child.x)} {n(bend)}" + (f" V{n(end)}" if end > bend else "")
            if item.head is not None and child.head == item.head:
                thick.append(svg.path(line, colour=svg.BLUE, width=2.6, kind="head"))
            else:
                plain.append(svg.path(line))
    return plain + thick + labels


def _word_parts(layers: Layers, xs: Sequence[float], base: float) -> list[str]:
    """Return tags and words; the root of the dependencies is underlined."""
    parts = []
    for i, (word, x) in enumerate(zip(layers.words, xs)):
        is_root = layers.heads is not None and layers.heads[i] == 0
        colour = svg.VERMILION if is_root else svg.BLACK
        if layers.tags:
            parts.append(svg.text(x, base, layers.tags[i], TAG, colour=svg.GREY))
        y, short = base + TAG_TO_WORD, svg.shorten(word)
        parts.append(svg.text(x, y, short, WORD, bold=is_root, colour=colour, tip=f"{i + 1}: {word}"))
        if is_root:
            half = svg.text_width(short, WORD) / 2 - 2
            line = f"M{svg.number(x - half)} {svg.number(y + 4)} H{svg.number(x + half)}"
            parts.append(svg.path(line, colour=svg.VERMILION, width=1.6))
    return parts


def _arc_parts(arcs: Sequence[Arc], xs: Sequence[float], base: float) -> list[str]:
    """Return arcs and labels, from the line y = base down."""
    lines, labels = [], []
    n = svg.number
    for arc in arcs:
        tip_x, tip_y = xs[arc.dependent - 1] + arc.offsets[arc.dependent], base + 2
        neck, far = tip_y + ARROW, base + FIRST + (arc.level - 1) * STEP
        if arc.head:
            colour, text_colour, from_x = svg.BLUE, svg.BLACK, xs[arc.head - 1] + arc.offsets[arc.head]
            turn, way, middle = far - CORNER, CORNER if tip_x > from_x else -CORNER, (from_x + tip_x) / 2
            line = f"M{n(from_x)} {n(tip_y)} V{n(turn)} Q{n(from_x)} {n(far)} {n(from_x + way)} {n(far)} "
            line += f"H{n(tip_x - way)} Q{n(tip_x)} {n(far)} {n(tip_x)} {n(turn)} V{n(neck)}"
        else:
            colour = text_colour = svg.VERMILION
            line, middle = f"M{n(tip_x)} {n(far)} V{n(neck)}", tip_x
        lines.append(svg.path(line, colour=colour))
        points = f"{n(tip_x)},{n(tip_y)} {n(tip_x - 3.5)},{n(neck)} {n(tip_x + 3.5)},{n(neck)}"
        lines.append(svg.element("polygon", points=points, fill=colour))
        if arc.label:
            half, top = svg.text_width(arc.label, ARC_LABEL) / 2 + PAD, far - ARC_LABEL / 2 - 2
            place = {"x": middle - half, "y": top, "width": 2 * half, "height": ARC_LABEL + 4}
            labels.append(svg.element("rect", **place, fill="white"))
            labels.append(svg.text(middle, far + 0.34 * ARC_LABEL, arc.label, ARC_LABEL, colour=text_colour))
    return lines + labels
