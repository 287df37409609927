"""Draw dependency arcs as an SVG, alone or below the constituents of the same sentence.

Every word has one bracket-shaped arc, from its head word to it, with the arc's label on it. An arc runs above (or below) all
arcs that it spans. If several arcs meet a word, they stand side by side, the longest nearest the word's centre, so that the
arcs of a projective tree never cross. Words move apart until every label fits on its arc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from lalkit.draw import svg, tree
from lalkit.draw.tree import GAP, MARGIN, TAG_TO_WORD
from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Sentence

SIZE = 12  # font size of the labels
STEP = 21  # from one level of arcs to the next
FIRST = 24  # from the words to the lowest arc
LEG = 7  # between arcs that meet the same word
CORNER = 6
ARROW = 7
PAD = 3  # white around a label
UNDER_WORDS = 8  # in a joint drawing: from the words' baseline to where the arcs begin


@dataclass
class Arc:
    """The arc from a head word (0 for the root) to its dependent, both 1-based.

    level: 1 for the lowest arcs. offsets: word -> how far from the word's centre the arc meets it, for the arc's two words.
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


class JointDrawing(NamedTuple):
    """The parts of a joint drawing and where they are: xs are the words' centres, base is the baseline of the tags."""

    parts: list[str]
    xs: list[float]
    base: float
    width: float
    height: float


def draw_arcs(sentence: Sentence) -> str:
    """Return the dependencies as an SVG, arcs above the words and tags below. Raises TreebankError if there are no heads."""
    arcs = read_arcs(sentence)
    layers = tree.Layers([unescape(word) for word in sentence.words], sentence.tags, sentence.heads)
    slots = arc_slots(tree.slot_widths(layers), arcs)
    xs = spread(arcs, lambda pads: in_a_row(slots, pads))
    base = MARGIN + arcs_height(arcs)
    words = tree.word_parts(layers, xs, base, tag_shift=2 * TAG_TO_WORD)
    parts = [*arc_parts(arcs, xs, base, upwards=True), *words]
    height = base + TAG_TO_WORD * (2 if sentence.tags else 1) + MARGIN - 4
    return svg.document(arcs_width(arcs, xs, slots), height, parts, "Dependencies: " + " ".join(layers.words))


def draw_joint(sentence: Sentence) -> str:
    """Return tree, words and arcs as one SVG. Raises TreebankError if the sentence lacks constituents or heads."""
    layers = tree.read(sentence)
    drawing = joint_drawing(layers, read_arcs(sentence), UNDER_WORDS)
    return svg.document(drawing.width, drawing.height, drawing.parts, "Joint parse: " + " ".join(layers.words))


def draw_layers(sentence: Sentence) -> str:
    """Return the layers that the sentence has as one SVG: the joint tree, or its constituents or dependencies alone."""
    if sentence.constituents is None:
        return draw_arcs(sentence)
    return tree.draw_tree(sentence) if sentence.heads is None else draw_joint(sentence)


def joint_drawing(
    layers: tree.Layers, arcs: Sequence[Arc], under_words: float, kinds: Mapping[int, str] | None = None
) -> JointDrawing:
    """Lay out the constituents above the words and the dependencies below them.

    Args:
        layers, arcs: of one sentence; the layout leaves room for their labels.
        under_words: from the words' baseline to where the arcs begin.
        kinds: dependent -> a class for the line of its arc, for the style sheet of a page. If this is given, all parts of an arc
            also have its dependent and its head as attributes.
    """
    word_slots = tree.slot_widths(layers)
    slots = arc_slots(word_slots, arcs)
    xs = spread(arcs, lambda pads: tree.place(layers.root, slots, pads))
    base = MARGIN + tree.LABEL + layers.root.level * tree.LEVEL
    under = base + TAG_TO_WORD + under_words
    above = [*tree.tree_parts(layers, base), *tree.word_parts(layers, xs, base)]
    parts = [*above, *arc_parts(arcs, xs, under, upwards=False, kinds=kinds)]
    width = max(tree.tree_width(layers.root, word_slots), arcs_width(arcs, xs, slots))
    return JointDrawing(parts, xs, base, width, under + arcs_height(arcs) + MARGIN)


def read_arcs(sentence: Sentence) -> list[Arc]:
    """Return the arcs with levels and offsets, short ones first and the root's last. A missing label is ''."""
    if sentence.heads is None:
        remedy = "Draw its tree, or parse it with a parser that gives dependencies."
        raise TreebankError("this sentence has no dependencies to draw", where=sentence.id, remedy=remedy)
    labels = sentence.arc_labels or ("",) * len(sentence)
    # Arcs nest. Read from short to long, an arc lies one level above the highest arc inside it.
    arcs: list[Arc] = []
    pairs = [(i, head) for i, head in enumerate(sentence.heads, 1) if head]
    for i, head in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), pair)):
        arc = Arc(i, head, labels[i - 1], level=1)
        inside = [inner.level for inner in arcs if arc.left <= inner.left and inner.right <= arc.right]
        arc.level += max(inside, default=0)
        arcs.append(arc)
    root = sentence.heads.index(0) + 1
    for word in range(1, len(sentence) + 1):
        first = LEG if word == root else LEG / 2  # the root's own line stands in the centre
        for side in (-1, 1):
            meeting = [arc for arc in arcs if (arc.right if side < 0 else arc.left) == word]
            for k, arc in enumerate(sorted(meeting, key=lambda arc: arc.left - arc.right)):
                arc.offsets[word] = side * (first + k * LEG)
    level = 1 + max((arc.level for arc in arcs), default=0)
    return [*arcs, Arc(root, 0, labels[root - 1] or "root", level, {root: 0.0})]


def arc_slots(slots: Sequence[float], arcs: Sequence[Arc]) -> list[float]:
    """Return the room each word needs if the ends of its arcs are to stand within it."""
    wide = list(slots)
    for word, offset in (pair for arc in arcs for pair in arc.offsets.items()):
        wide[word - 1] = max(wide[word - 1], 2 * abs(offset) + GAP)
    return wide


def in_a_row(slots: Sequence[float], pads: Sequence[float]) -> list[float]:
    """Return the words' centres, side by side from MARGIN on. pads: extra room to the left of each word."""
    lefts = accumulate((pad + slot for slot, pad in zip(slots, pads)), initial=float(MARGIN))
    return [left + pad + slot / 2 for left, slot, pad in zip(lefts, slots, pads)]


def spread(arcs: Sequence[Arc], place: Callable[[list[float]], list[float]]) -> list[float]:
    """Return the words' centres, far enough apart for every label. place: extra room left of each word -> centres."""
    pads = [0.0] * max(arc.right for arc in arcs)
    xs = place(pads)
    root = arcs[-1]
    # A layout may swallow part of the room at first. Each round leaves at most half of what is missing.
    for _ in range(200):
        beyond = MARGIN - (xs[root.dependent - 1] - label_room(root) / 2)  # the root's label may be wider than its word
        too_narrow = beyond > 0.01
        pads[0] += max(beyond, 0.0)
        moved = list(xs)
        for arc in arcs[:-1]:
            start, end = (moved[word - 1] + arc.offsets[word] for word in (arc.left, arc.right))
            missing = label_room(arc) - (end - start)
            if missing > 0.01:
                too_narrow = True
                pads[arc.right - 1] += missing
                moved[arc.right - 1 :] = [x + missing for x in moved[arc.right - 1 :]]
        if not too_narrow:
            break
        xs = place(pads)
    return xs


def label_room(arc: Arc) -> float:
    """Return how wide an arc must be for its label."""
    return svg.text_width(arc.label, SIZE) + 2 * (CORNER + PAD) if arc.label else 2.0 * CORNER


def arcs_height(arcs: Sequence[Arc]) -> float:
    """Return the height from the words' edge to the outer edge of the outermost label, which is the root's."""
    return FIRST + (arcs[-1].level - 1) * STEP + SIZE


def arcs_width(arcs: Sequence[Arc], xs: Sequence[float], slots: Sequence[float]) -> float:
    """Return the width of the drawing. Only the root's label can reach beyond the last word."""
    return max(xs[-1] + slots[-1] / 2, xs[arcs[-1].dependent - 1] + label_room(arcs[-1]) / 2) + MARGIN


def arc_parts(
    arcs: Sequence[Arc], xs: Sequence[float], base: float, upwards: bool, kinds: Mapping[int, str] | None = None
) -> list[str]:
    """Return arcs and labels, from the line y = base away from the words. The other arguments: see `joint_drawing`."""
    sign = -1 if upwards else 1
    n = svg.number
    lines, labels = [], []
    for arc in arcs:
        far = base + sign * (FIRST + (arc.level - 1) * STEP)
        words: dict[str, Any] = {} if kinds is None else {"data_arc": arc.dependent, "data_head": arc.head}
        tip_x, tip_y = xs[arc.dependent - 1] + arc.offsets[arc.dependent], base + sign * 2
        neck = tip_y + sign * ARROW
        if arc.head:
            colour, text_colour = svg.BLUE, svg.BLACK
            from_x = xs[arc.head - 1] + arc.offsets[arc.head]
            turn, way = far - sign * CORNER, CORNER if tip_x > from_x else -CORNER
            line = f"M{n(from_x)} {n(tip_y)} V{n(turn)} Q{n(from_x)} {n(far)} {n(from_x + way)} {n(far)} "
            line += f"H{n(tip_x - way)} Q{n(tip_x)} {n(far)} {n(tip_x)} {n(turn)} V{n(neck)}"
            middle = (from_x + tip_x) / 2
        else:
            colour = text_colour = svg.VERMILION
            line, middle = f"M{n(tip_x)} {n(far)} V{n(neck)}", tip_x
        lines.append(svg.path(line, colour=colour, kind=(kinds or {}).get(arc.dependent, ""), **words))
        points = f"{n(tip_x)},{n(tip_y)} {n(tip_x - 3.5)},{n(neck)} {n(tip_x + 3.5)},{n(neck)}"
        lines.append(svg.element("polygon", points=points, fill=colour, **words))
        if arc.label:
            half, top = svg.text_width(arc.label, SIZE) / 2 + PAD, far - SIZE / 2 - 2
            labels.append(
                svg.element("rect", x=middle - half, y=top, width=2 * half, height=SIZE + 4, fill="white", **words)
            )
            labels.append(svg.text(middle, far + 0.34 * SIZE, arc.label, SIZE, colour=text_colour, **words))
    return lines + labels
