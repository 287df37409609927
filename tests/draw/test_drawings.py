"""All three drawings: valid XML that says every word; nothing overlaps, is cut off or crossed out."""

import itertools

import pytest

from lalkit.draw import draw_arcs, draw_joint, draw_tree
from lalkit.errors import TreebankError
from lalkit.treebank.tree import Sentence, Span
from tests.draw.pictures import SVG, crosses, lines, read
from tests.draw.sentences import random_sentence

SIZES = [(1, 0), (2, 1), (3, 2), (7, 3), (12, 4), (25, 5), (25, 6), (60, 7), (60, 8)]
CAT = Sentence(
    ("The", "cat", "sleeps", "."),
    ("DT", "NN", "VBZ", "."),
    (Span(0, 4, "S"), Span(0, 2, "NP"), Span(2, 3, "VP")),
    (2, 3, 0, 3),
    ("det", "nsubj", "root", "punct"),
)


@pytest.mark.parametrize("draw", [draw_tree, draw_arcs, draw_joint])
@pytest.mark.parametrize(("n", "seed"), SIZES)
def test_nothing_overlaps_is_cut_off_or_crossed_out(draw, n, seed):
    """Only an arc passes behind its own label, which stands on a white box."""
    sentence = random_sentence(n, seed)
    root, boxes = read(draw(sentence))
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 <= box.left and box.right <= width and 0 <= box.top and box.bottom <= height for box in boxes)
    assert not [(a, b) for a, b in itertools.combinations(boxes, 2) if a.meets(b)]
    for box in boxes:
        behind = [piece for piece in lines(root) if crosses(piece, box)]
        if box.text not in sentence.arc_labels:
            assert not behind, box
        elif sentence.arc_labels[sentence.heads.index(0)] != box.text:
            assert len(behind) <= 1 and all(start[1] == end[1] for start, end in behind), box


@pytest.mark.parametrize("draw", [draw_tree, draw_arcs, draw_joint])
def test_every_drawing_is_white_has_a_title_and_says_every_word(draw):
    root, boxes = read(draw(CAT))
    assert root.find(f"{SVG}title").text == root.get("aria-label")
    assert root.find(f"{SVG}rect").get("fill") == "white"
    shown = [box.text for box in boxes]
    assert set(CAT.words) <= set(shown)
    assert {"DT", "NN", "VBZ"} <= set(shown)
    assert min(float(item.get("font-size")) for item in root.iter(f"{SVG}text")) >= 12


def test_the_joint_drawing_has_the_tree_above_and_the_arcs_below_the_words():
    _, boxes = read(draw_joint(CAT))
    y = {box.text: box.bottom for box in boxes}
    x = {box.text: (box.left + box.right) / 2 for box in boxes}
    assert y["S"] < y["NP"] == y["VP"] < y["NN"] < y["cat"] < y["det"] == y["nsubj"] < y["root"]
    assert x["The"] < x["NP"] < x["cat"] < x["sleeps"]
    assert x["VP"] == x["VBZ"] == x["sleeps"] == x["root"]
    _, boxes = read(draw_arcs(CAT))
    y = {box.text: box.bottom for box in boxes}
    assert y["root"] < y["nsubj"] == y["det"] < y["cat"] < y["NN"]


def test_a_missing_layer_raises_an_error():
    bare = Sentence(CAT.words)
    with pytest.raises(TreebankError, match="no constituents"):
        draw_tree(bare)
    with pytest.raises(TreebankError, match="no dependencies"):
        draw_arcs(bare)


def test_only_characters_that_xml_cannot_hold_are_replaced():
    words = ("<b>&\"'", "\x01\ufffe", "\u2009", "x" * 80)
    spans = (Span(0, 4, "A&B"),)
    sentence = Sentence(words, ("<", ">", "&", '"'), spans, (2, 0, 2, 2), ("<", "&", ">", '"'))
    for draw in (draw_tree, draw_arcs, draw_joint):
        root, boxes = read(draw(sentence))
        shown = [box.text for box in boxes]
        assert words[0] in shown
        assert "\ufffd\ufffd" in shown
        assert "x" * 31 + "…" in shown  # cut; the whole word is in its tooltip
        assert any(tip.text == "4: " + "x" * 80 for tip in root.iter(f"{SVG}title"))
