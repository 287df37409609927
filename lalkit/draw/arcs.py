"""Dependency arcs as an SVG: one bracket-shaped arc per word, from its head to it, with its label on it.

An arc runs above (or below) all arcs it spans. Where several end at a word they stand side by side, the longest nearest
the word's centre, so that arcs of a projective tree never cross; words move apart until every label fits on its arc.

Both layers of a sentence in one SVG: the constituents above the words, the dependencies below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lalkit.draw import svg
from lalkit.draw.tree import (
    GAP,
    LABEL,
    LEVEL,
    MARGIN,
    TAG_TO_WORD,
    place,
    read,
    slot_widths,
    total_width,
    tree_parts,
    word_parts,
)
from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.tree import Sentence

SIZE = 12  # font size of the labels
STEP = 21  # from one level of arcs to the next
FIRST = 24  # from the words to the lowest arc
LEG = 7  # between arcs that end at the same word
CORNER = 6
ARROW = 7
PAD = 3  # white around a label


@dataclass(frozen=True)
class Arc:
    """The arc of a word (1-based) to its head, 0 for the root. level: 1 for the lowest."""

    dependent: int
    head: int
    label: str
    level: int

    @property
    def left(self) -> int:
        return min(self.dependent, self.head)

    @property
    def right(self) -> int:
        return max(self.dependent, self.head)


def draw_arcs(sentence: Sentence) -> str:
    """An SVG of the dependencies, arcs above the words, tags below. Raises TreebankError for lack of heads."""
    arcs = read_arcs(sentence)
    words = [unescape(word) for word in sentence.words]
    offsets = leg_offsets(arcs)
    slots = arc_slots(slot_widths(words, sentence.tags), offsets)
    xs = spread(arcs, offsets, lambda pads: in_a_row(slots, pads))
    words_y = MARGIN + arcs_height(arcs) + TAG_TO_WORD
    base = words_y - TAG_TO_WORD
    parts = [
        *arc_parts(arcs, offsets, xs, base, upwards=True),
        *word_parts(words, xs, base, sentence.tags, sentence.heads, tag_shift=2 * TAG_TO_WORD),
    ]
    height = words_y + (TAG_TO_WORD if sentence.tags else 0) + MARGIN - 4
    width = arcs_width(arcs, xs, slots)
    return svg.document(width, height, parts, "Dependencies: " + " ".join(words))


def read_arcs(sentence: Sentence) -> list[Arc]:
    """The arcs with their levels, short ones first; an unlabelled arc has the label ''."""
    if sentence.heads is None:
        raise TreebankError("this sentence has no dependencies to draw", where=sentence.id)
    labels = sentence.arc_labels or ("",) * len(sentence)
    # Arcs nest: seen from short to long, an arc lies one level above the highest arc inside it.
    arcs: list[Arc] = []
    pairs = [(i, head) for i, head in enumerate(sentence.heads, 1) if head]
    for i, head in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), pair)):
        left, right = min(i, head), max(i, head)
        inside = [arc.level for arc in arcs if left <= arc.left and arc.right <= right]
        arcs.append(Arc(i, head, labels[i - 1], 1 + max(inside, default=0)))
    root = sentence.heads.index(0) + 1
    arcs.append(Arc(root, 0, labels[root - 1] or "root", 1 + max((arc.level for arc in arcs), default=0)))
    return arcs


def leg_offsets(arcs: Sequence[Arc]) -> dict[tuple[int, int, int], float]:
    """(dependent, head, word) -> how far from the word's centre the arc meets it."""
    offsets = {}
    root = next(arc.dependent for arc in arcs if not arc.head)
    for word in sorted({end for arc in arcs for end in (arc.left, arc.right)} - {0}):
        first = LEG if word == root else LEG / 2  # the root's own line stands in the centre
        for side in (-1, 1):
            mine = [a for a in arcs if a.head and (a.right if side < 0 else a.left) == word]
            mine.sort(key=lambda arc: arc.left - arc.right)
            for k, arc in enumerate(mine):
                offsets[arc.dependent, arc.head, word] = side * (first + k * LEG)
        if word == root:
            offsets[word, 0, word] = 0.0
    return offsets


def arc_slots(slots: Sequence[float], offsets: dict[tuple[int, int, int], float]) -> list[float]:
    """The room each word needs if its arcs' ends are to stand within it."""
    wide = list(slots)
    for (_, _, word), offset in offsets.items():
        wide[word - 1] = max(wide[word - 1], 2 * abs(offset) + GAP)
    return wide


def in_a_row(slots: Sequence[float], pads: Sequence[float]) -> list[float]:
    """The words' centres, side by side from MARGIN on."""
    xs, at = [], float(MARGIN)
    for slot, pad in zip(slots, pads):
        xs.append(at + pad + slot / 2)
        at += pad + slot
    return xs


def spread(
    arcs: Sequence[Arc], offsets: dict[tuple[int, int, int], float], place: Callable[[list[float]], list[float]]
) -> list[float]:
    """The words' centres, far enough apart for every label. place: extra room left of each word -> centres."""
    pads = [0.0] * max(arc.right for arc in arcs)
    xs = place(pads)
    for _ in range(200):  # a layout may swallow part of the room at first; each round leaves at most half of what lacks
        root = next(arc for arc in arcs if not arc.head)
        beyond = MARGIN - (xs[root.dependent - 1] - label_room(root) / 2)  # the root's label may be wider than its word
        lacking = beyond > 0.01
        pads[0] += max(beyond, 0.0)
        moved = list(xs)
        for arc in arcs:
            if not arc.head:
                continue
            start, end = (moved[w - 1] + offsets[arc.dependent, arc.head, w] for w in (arc.left, arc.right))
            lack = label_room(arc) - (end - start)
            if lack > 0.01:
                lacking = True
                pads[arc.right - 1] += lack
                moved[arc.right - 1 :] = [x + lack for x in moved[arc.right - 1 :]]
        if not lacking:
            break
        xs = place(pads)
    return xs


def label_room(arc: Arc) -> float:
    """How wide an arc must be for its label."""
    return svg.text_width(arc.label, SIZE) + 2 * (CORNER + PAD) if arc.label else 2.0 * CORNER


def arcs_height(arcs: Sequence[Arc]) -> float:
    """From the words' edge to the outer edge of the outermost label, the root's."""
    return FIRST + (max(arc.level for arc in arcs) - 1) * STEP + SIZE


def arcs_width(arcs: Sequence[Arc], xs: Sequence[float], slots: Sequence[float]) -> float:
    """The width of the drawing; only the root's label can reach beyond the last word."""
    root = next(arc for arc in arcs if not arc.head)
    return max(xs[-1] + slots[-1] / 2, xs[root.dependent - 1] + label_room(root) / 2) + MARGIN


def arc_parts(
    arcs: Sequence[Arc],
    offsets: dict[tuple[int, int, int], float],
    xs: Sequence[float],
    base: float,
    upwards: bool,
    kinds: Mapping[int, str] | None = None,
) -> list[str]:
    """Arcs and labels, from the line y = base away from the words. kinds: a class for the lines of some dependents."""
    sign = -1 if upwards else 1
    kinds = kinds or {}
    n = svg.number
    lines, labels = [], []
    for arc in arcs:
        far = base + sign * (FIRST + (arc.level - 1) * STEP)
        tip_x = xs[arc.dependent - 1] + offsets[arc.dependent, arc.head, arc.dependent]
        tip_y = base + sign * 2
        neck = tip_y + sign * ARROW
        colour = svg.BLUE if arc.head else svg.VERMILION
        if arc.head:
            from_x = xs[arc.head - 1] + offsets[arc.dependent, arc.head, arc.head]
            turn, way = far - sign * CORNER, CORNER if tip_x > from_x else -CORNER
            line = f"M{n(from_x)} {n(tip_y)} V{n(turn)} Q{n(from_x)} {n(far)} {n(from_x + way)} {n(far)} "
            line += f"H{n(tip_x - way)} Q{n(tip_x)} {n(far)} {n(tip_x)} {n(turn)} V{n(neck)}"
            middle = (from_x + tip_x) / 2
        else:
            line, middle = f"M{n(tip_x)} {n(far)} V{n(neck)}", tip_x
        lines.append(svg.path(line, colour=colour, kind=kinds.get(arc.dependent, "")))
        points = f"{n(tip_x)},{n(tip_y)} {n(tip_x - 3.5)},{n(neck)} {n(tip_x + 3.5)},{n(neck)}"
        lines.append(f'<polygon points="{points}" fill="{colour}"/>')
        if arc.label:
            half = svg.text_width(arc.label, SIZE) / 2 + PAD
            place = f'x="{n(middle - half)}" y="{n(far - SIZE / 2 - 2)}" width="{n(2 * half)}" height="{n(SIZE + 4)}"'
            labels.append(f'<rect {place} fill="white"/>')
            colour = svg.BLACK if arc.head else svg.VERMILION
            labels.append(svg.text(middle, far + 0.34 * SIZE, arc.label, SIZE, colour=colour))
    return lines + labels


UNDER_WORDS = 8  # from the words' baseline to where the arcs begin


def draw_joint(sentence: Sentence) -> str:
    """An SVG of tree, words and arcs. Raises TreebankError for a sentence that lacks one of the two layers."""
    root, words, heads = read(sentence)
    arcs = read_arcs(sentence)
    offsets = leg_offsets(arcs)
    slots = arc_slots(slot_widths(words, sentence.tags), offsets)
    xs = spread(arcs, offsets, lambda pads: place(root, slots, pads))
    base = MARGIN + LABEL + root.level * LEVEL
    under = base + TAG_TO_WORD + UNDER_WORDS
    parts = [
        *tree_parts(root, base, sentence.tags is not None),
        *word_parts(words, xs, base, sentence.tags, heads),
        *arc_parts(arcs, offsets, xs, under, upwards=False),
    ]
    width = max(total_width(root, words, sentence.tags), arcs_width(arcs, xs, slots))
    return svg.document(width, under + arcs_height(arcs) + MARGIN, parts, "Joint parse: " + " ".join(words))
