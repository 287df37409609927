"""Drawings of sentences: nothing overlaps; lines and arcs lead from head to dependent; PNG and PDF show what the SVG shows."""

import itertools
import warnings
from collections import defaultdict
from xml.etree import ElementTree

import pytest
from matplotlib import rcParams
from matplotlib.patches import PathPatch, Polygon

from lalkit.draw import draw_arcs, draw_joint, draw_tree
from lalkit.draw import svg as fonts
from lalkit.draw.figures import side_by_side
from lalkit.draw.svg import NARROWER, as_figure, redraw
from lalkit.draw.tree import LEG, read, read_arcs, spread
from lalkit.errors import TreebankError
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Node, Sentence, Span
from tests.draw.pictures import SVG, crosses, lines
from tests.draw.pictures import read as read_drawing
from tests.draw.sentences import random_sentence

KINDS = (draw_tree, draw_arcs, draw_joint)
END = tree_to_sentence(parse_tree("(S (NP (DT The) (NN end)) (VP (VBZ is) (ADJP (JJ near))) (. .))"))
HEADED = Sentence(END.words, END.tags, END.constituents, (2, 3, 0, 3, 3), ("det", "nsubj", "root", "acomp", "punct"))


@pytest.mark.parametrize("draw", KINDS)
@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 1), (7, 3), (25, 5), (25, 6), (60, 7)])
def test_nothing_overlaps_is_cut_off_or_crossed_out(draw, n, seed):
    """Only an arc passes behind its own label, which stands on a white box."""
    sentence = random_sentence(n, seed)
    root, boxes = read_drawing(draw(sentence))
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 <= box.left and box.right <= width and 0 <= box.top and box.bottom <= height for box in boxes)
    assert not [(a, b) for a, b in itertools.combinations(boxes, 2) if a.meets(b)]
    for box in boxes:
        behind = [piece for piece in lines(root) if crosses(piece, box)]
        if box.text not in sentence.arc_labels:
            assert not behind, box
        elif sentence.arc_labels[sentence.heads.index(0)] != box.text:
            assert len(behind) <= 1 and all(start[1] == end[1] for start, end in behind), box


@pytest.mark.parametrize("draw", KINDS)
def test_every_drawing_says_every_word_in_its_order(draw):
    _, boxes = read_drawing(draw(HEADED))
    assert {*HEADED.words, *HEADED.tags} <= {box.text for box in boxes}
    y = {box.text: box.bottom for box in boxes}
    above, below = draw is not draw_arcs, draw is not draw_tree
    assert not above or y["S"] < y["VP"] < y["NP"] == y["ADJP"] < y["NN"]
    assert y["NN"] < y["end"] and (not below or y["end"] < y["det"] == y["nsubj"] < y["root"])
    assert ("S" in y, "det" in y) == (above, below)


def test_a_missing_layer_raises_an_error():
    for draw in KINDS:
        pytest.raises(TreebankError, draw, Sentence(HEADED.words))


def test_only_characters_that_xml_cannot_hold_are_replaced():
    words = ("<b>&\"'", "\x01\ufffe", "\u2009", "x" * 80)
    sentence = Sentence(words, ("<", ">", "&", '"'), (Span(0, 4, "A&B"),), (2, 0, 2, 2), ("<", "&", ">", '"'))
    for draw in KINDS:
        root, boxes = read_drawing(draw(sentence))
        assert {words[0], "\ufffd\ufffd", "x" * 31 + "…"} <= {box.text for box in boxes}
        assert any(tip.text == "4: " + "x" * 80 for tip in root.iter(f"{SVG}title")), "the whole word is in its tooltip"


# ---------------------------------------------------------------- constituents


def test_lines_lead_from_parent_to_child_and_thick_ones_to_the_head_word():
    root, boxes = read_drawing(draw_tree(HEADED))
    centre = {box.text: (round((box.left + box.right) / 2), box.top, box.bottom) for box in boxes}
    edges = {}
    for item in (item for item in root.iter(f"{SVG}path") if "L" in item.get("d")):
        alone = ElementTree.Element("g")
        alone.append(item)
        pieces = lines(alone)
        edges[round(pieces[0][0][0]), round(pieces[-1][1][0])] = pieces, item.get("class") == "head"
    wanted = [("S", "NP", 0), ("S", "VP", 1), ("NP", "DT", 0), ("NP", "NN", 1), ("VP", "VBZ", 1),
              ("VP", "ADJP", 0), ("ADJP", "JJ", 1)]  # fmt: skip
    assert len(edges) == len(wanted) + 1, "and to the full stop"
    for parent, child, thick in wanted:
        pieces, is_thick = edges[centre[parent][0], centre[child][0]]
        assert centre[parent][2] <= pieces[0][0][1] <= centre[parent][2] + 8
        assert centre[child][1] - 8 <= pieces[-1][1][1] <= centre[child][1] and is_thick == thick
    assert 'class="head"' not in draw_tree(END)


def test_trees_of_odd_forms():
    _, boxes = read_drawing(draw_tree(Sentence(("a", "b"), None, (Span(0, 2, "X"),))))
    assert [box.text for box in boxes] == ["X", "a", "b"]
    _, boxes = read_drawing(draw_tree(parse_tree("( (NP-SBJ=1 (-LRB- -LRB-) (NN x)))")))
    assert [box.text for box in boxes] == ["", "NP-SBJ=1", "-LRB-", "(", "NN", "x"]
    tree = Node("NN", word="x")
    for _ in range(3000):  # deeper than Python's recursion limit
        tree = Node("NP", (tree,))
    assert draw_tree(tree).count(">NP</text>") == 3000


def test_notes_stand_below_their_labels_and_nothing_meets_them():
    chain = tree_to_sentence(parse_tree("(S (VP (VB Go) (NP (NP (DT the) (NN way)) (PP (IN of) (NP (NN dust))))))"))
    notes = {(0, 5): "head 12 40%", (1, 5): "head 1 9%", (1, 3): "a longer note than that", (3, 5): "head 3 8%"}
    root, boxes = read_drawing(draw_tree(chain, notes))
    shown = [box for box in boxes if box.text in notes.values()]
    assert sorted(box.text for box in shown) == sorted(notes.values())
    for note in shown:
        assert not any(note.meets(box) for box in boxes if box is not note)
        assert not any(crosses(piece, note) for piece in lines(root))
    above = {box.text: box for box in boxes}
    assert above["S"].bottom < above["head 12 40%"].top < above["VP"].top, "a chain's note is its outermost's"


# ---------------------------------------------------------------- dependencies


def slow_level(arc, arcs) -> int:
    """One more than the deepest chain of arcs inside, straight from the definition."""
    inside = [o for o in arcs if o.head and o is not arc and arc.left <= o.left and o.right <= arc.right]
    return 1 + max((slow_level(o, inside) for o in inside), default=0)


@pytest.mark.parametrize("seed", range(5))
def test_arcs_have_their_levels_their_order_at_a_word_and_room_for_their_labels(seed):
    sentence = random_sentence(14, seed)
    arcs, at = read_arcs(sentence), defaultdict(list)
    assert len(arcs) == 14
    for arc in arcs:
        highest = max(other.level for other in arcs if other.head)
        assert arc.level == (slow_level(arc, arcs) if arc.head else 1 + highest)
        for word, offset in arc.offsets.items():
            other = arc.head if arc.dependent == word else arc.dependent
            at[word].append((offset, 0 if arc.head == 0 else other - word))
    for places in at.values():
        offsets, ways = zip(*sorted(places))
        assert all(b - a >= LEG - 1e-9 for a, b in zip(offsets, offsets[1:]))
        left, right = ([way for way in ways if side * way > 0] for side in (-1, 1))
        assert left == sorted(left, reverse=True) and right == sorted(right, reverse=True), "the nearest is outermost"
    xs, _ = spread(read(sentence).root, [4.0] * 14, arcs)
    for arc in arcs[:-1]:
        start, end = (xs[word - 1] + arc.offsets[word] for word in (arc.left, arc.right))
        assert end - start >= arc.room - 0.02
    assert xs == sorted(xs)


@pytest.fixture(autouse=True)
def own_settings():
    before = rcParams["font.family"]
    yield
    rcParams["font.family"] = before
    fonts.chinese.cache_clear()


@pytest.fixture(scope="module")
def chinese():
    return max(load("sample-zh", "train").sentences, key=len)


@pytest.mark.parametrize("seed", range(4))
def test_every_text_line_and_arrow_is_where_the_svg_has_it(seed, monkeypatch):
    monkeypatch.setattr(fonts, "chinese", lambda: "DejaVu Sans")
    drawing = draw_joint(random_sentence(3 + 4 * seed, seed))
    root, figure = ElementTree.fromstring(drawing), as_figure(drawing)
    wanted = [
        ("".join([t.text or "", *(c.tail or "" for c in t)]), float(t.get("x")), float(t.get("y")), float(t.get("font-size")))
        for t in root.iter(f"{SVG}text")
    ]  # fmt: skip
    (axis,) = figure.axes
    found = [(t.get_text(), *t.get_position(), t.get_size() / NARROWER) for t in axis.texts]
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in wanted])
    assert len(axis.findobj(PathPatch)) == sum(1 for _ in root.iter(f"{SVG}path"))
    assert len(axis.findobj(Polygon)) == sum(1 for _ in root.iter(f"{SVG}polygon"))
    assert axis.get_xlim() == (0, float(root.get("width"))) and axis.get_ylim() == (float(root.get("height")), 0)


def test_without_a_font_for_chinese_a_warning_says_what_to_install(monkeypatch, chinese):
    monkeypatch.setattr(fonts, "chinese", lambda: None)
    for make in (lambda: as_figure(draw_joint(chinese)), lambda: side_by_side(1, 4, 3, words=chinese.words)):
        with pytest.warns(UserWarning, match="fonts-noto-cjk"):
            make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_figure(draw_joint(load("sample", "dev").sentences[0]))  # English needs none


def test_a_real_font_has_the_characters(chinese):
    if fonts.chinese() is None:
        pytest.skip(f"there is no font for Chinese here: {fonts.INSTALL}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that is missing
        redraw(draw_joint(chinese), "pdf")
        redraw(draw_joint(chinese), "png")
