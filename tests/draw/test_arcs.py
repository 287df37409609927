"""Dependency arcs: levels, where they meet their words, and room for their labels."""

from collections import defaultdict

import pytest

from lalkit.draw.arcs import LEG, in_a_row, label_room, read_arcs, spread
from tests.draw.sentences import random_sentence


def slow_level(arc, arcs) -> int:
    """One more than the deepest chain of arcs inside, straight from the definition."""
    inside = [o for o in arcs if o.head and o is not arc and arc.left <= o.left and o.right <= arc.right]
    return 1 + max((slow_level(o, inside) for o in inside), default=0)


@pytest.mark.parametrize("seed", range(10))
def test_an_arc_lies_above_the_arcs_it_spans_and_no_higher_than_it_must(seed):
    arcs = read_arcs(random_sentence(12, seed))
    assert len(arcs) == 12
    for arc in arcs:
        if arc.head:
            assert arc.level == slow_level(arc, arcs)
        else:
            assert arc.level == 1 + max(other.level for other in arcs if other.head)


@pytest.mark.parametrize("seed", range(10))
def test_arcs_that_end_at_one_word_stand_apart_in_an_order_that_does_not_cross(seed):
    arcs = read_arcs(random_sentence(20, seed))
    at = defaultdict(list)
    for arc in arcs:
        for word, offset in arc.offsets.items():
            other = arc.head if arc.dependent == word else arc.dependent
            at[word].append((offset, 0 if arc.head == 0 else other - word))
    for places in at.values():
        places.sort()
        offsets = [offset for offset, _ in places]
        assert all(b - a >= LEG - 1e-9 for a, b in zip(offsets, offsets[1:]))
        ways = [way for _, way in places if way]  # nearest word outermost, on both sides
        assert ways == sorted((w for w in ways if w < 0), reverse=True) + sorted(
            (w for w in ways if w > 0), reverse=True
        )


@pytest.mark.parametrize("seed", range(10))
def test_words_move_apart_until_every_label_fits(seed):
    arcs = read_arcs(random_sentence(15, seed))
    narrow = [4.0] * 15
    xs = spread(arcs, lambda pads: in_a_row(narrow, pads))
    for arc in arcs:
        if arc.head:
            start, end = (xs[w - 1] + arc.offsets[w] for w in (arc.left, arc.right))
            assert end - start >= label_room(arc) - 0.02
    assert xs == sorted(xs)
