"""Constituent trees: which lines lead where, head marks, trees of odd forms, and the text version."""

from xml.etree import ElementTree

from lalkit.draw import draw_tree, text_tree
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.tree import Node, Sentence, Span
from tests.draw.pictures import SVG, crosses, lines, read

TEXT = "(S (NP (DT The) (NN end)) (VP (VBZ is) (ADJP (JJ near))) (. .))"
END = tree_to_sentence(parse_tree(TEXT))
HEADED = Sentence(END.words, END.tags, END.constituents, (2, 3, 0, 3, 3))


def test_lines_start_below_their_parent_and_end_above_their_child():
    root, boxes = read(draw_tree(END))
    centre = {box.text: ((box.left + box.right) / 2, box.top, box.bottom) for box in boxes}
    paths = [item.get("d") for item in root.iter(f"{SVG}path")]
    pieces = [lines(ElementTree.fromstring(f'<svg xmlns="{SVG[1:-1]}"><path d="{d}"/></svg>')) for d in paths]
    edges = {(round(p[0][0][0]), round(p[-1][1][0])): p for p in pieces}
    wanted = [("S", "NP"), ("S", "VP"), ("NP", "DT"), ("NP", "NN"), ("VP", "VBZ"), ("VP", "ADJP"), ("ADJP", "JJ")]
    assert len(paths) == len(wanted) + 1  # and S to the full stop
    for parent, child in wanted:
        piece = edges[round(centre[parent][0]), round(centre[child][0])]
        assert centre[parent][2] <= piece[0][0][1] <= centre[parent][2] + 8
        assert centre[child][1] - 8 <= piece[-1][1][1] <= centre[child][1]


def test_thick_lines_lead_from_every_constituent_to_its_head_word():
    root, boxes = read(draw_tree(HEADED))
    x = {box.text: round((box.left + box.right) / 2, 1) for box in boxes}
    thick = [item.get("d") for item in root.iter(f"{SVG}path") if item.get("class") == "head"]
    ends = {(float(d.split()[0][1:]), float(d.split("L")[1].split()[0])) for d in thick}
    wanted = {("S", "VP"), ("NP", "NN"), ("VP", "VBZ"), ("ADJP", "JJ")}
    assert ends == {(x[parent], x[child]) for parent, child in wanted}
    (bold,) = (item for item in root.iter(f"{SVG}text") if item.get("font-weight") and item.get("fill") != "#000000")
    assert "".join(child.tail for child in bold) == "is"
    assert 'class="head"' not in draw_tree(END)


def test_tags_and_heads_may_be_missing_and_nodes_are_drawn_as_they_are():
    root, boxes = read(draw_tree(Sentence(("a", "b"), None, (Span(0, 2, "X"),))))
    assert [box.text for box in boxes] == ["X", "a", "b"]
    _, boxes = read(draw_tree(parse_tree("( (NP-SBJ=1 (-LRB- -LRB-) (NN x)))")))
    assert [box.text for box in boxes] == ["", "NP-SBJ=1", "-LRB-", "(", "NN", "x"]


def test_a_tree_deeper_than_pythons_recursion_limit_is_drawn():
    tree = Node("NN", word="x")
    for _ in range(3000):
        tree = Node("NP", (tree,))
    assert draw_tree(tree).count(">NP</text>") == 3000
    assert len(text_tree(tree).splitlines()) == 3001


def test_the_text_tree():
    assert text_tree(HEADED) == (
        "S\n"
        "├── NP\n"
        "│   ├── DT The\n"
        "│   └── NN end *\n"
        "├── VP *\n"
        "│   ├── VBZ is *\n"
        "│   └── ADJP\n"
        "│       └── JJ near\n"
        "└── . .\n"
    )
    assert "*" not in text_tree(END)
    assert text_tree(parse_tree(TEXT)) == text_tree(END)


def test_notes_stand_below_their_labels_and_nothing_meets_them():
    chain = parse_tree("(S (VP (VB Go) (NP (NP (DT the) (NN way)) (PP (IN of) (NP (NN dust))))))")
    notes = {(0, 5): "head 12 40%", (1, 5): "head 1 9%", (1, 3): "a longer note than that", (3, 5): "head 3 8%"}
    root, boxes = read(draw_tree(tree_to_sentence(chain), notes))
    shown = [box for box in boxes if box.text in notes.values()]
    assert sorted(box.text for box in shown) == sorted(notes.values())
    for note in shown:
        assert not any(note.meets(box) for box in boxes if box is not note)
        assert not any(crosses(piece, note) for piece in lines(root))
    above = {box.text: box for box in boxes}
    assert above["S"].bottom < above["head 12 40%"].top < above["VP"].top  # a chain's note is its outermost's
    assert len(boxes) == len(read(draw_tree(tree_to_sentence(chain)))[1]) + len(notes)
