"""Both layers of a sentence in one SVG: the constituents above the words, the dependencies below them."""

from __future__ import annotations

from lalkit.draw import svg
from lalkit.draw.arcs import arc_parts, arc_slots, arcs_height, arcs_width, leg_offsets, read_arcs, spread
from lalkit.draw.tree import (
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
from lalkit.treebank.tree import Sentence

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
