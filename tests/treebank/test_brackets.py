"""Reading and writing brackets, and preparing a treebank's tree for a parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import TreebankError
from lalkit.treebank import brackets
from lalkit.treebank.tree import Node


def trees(depth=4):
    token = st.text(
        st.characters(blacklist_characters=" \t\r\n\f\v()\0", blacklist_categories=("Cs",)), min_size=1, max_size=4
    )
    leaf = st.builds(lambda t, w: Node(t, word=w), token, token)
    return st.recursive(
        leaf,
        lambda kids: st.builds(
            lambda label, kids: Node(label, tuple(kids)), token, st.lists(kids, min_size=1, max_size=3)
        ),
        max_leaves=8,
    )


@given(trees())
def test_there_and_back(tree):
    assert brackets.parse_tree(brackets.format_tree(tree)) == tree
    assert brackets.parse_tree(brackets.indent_tree(tree, width=10)) == tree


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(S (NP (DT The)) (VP (VBD left))", "line 1, tree 1: 1 bracket"),
        ("(S (X x)))", "without its"),
        ("(S ())", "empty"),
        ("(S)", "empty"),
        ("(S (NP a b))", "several words"),
        ("(S (NP (DT a) b))", "mixes"),
        ("word (S (X x))", "outside"),
        ("(S (X x))\n(S (X y)", "line 2, tree 2"),
    ],
)
def test_bad_brackets_name_their_place(text, says):
    with pytest.raises(TreebankError, match=says):
        brackets.parse_tree(text)


def test_one_missing_bracket_does_not_swallow_the_rest():
    items = [item for _, item in brackets.scan_trees("(S (X a))\n(S (X b)\n(S (X c))\n(S (X d))\n")]
    assert [str(i) if isinstance(i, Node) else "bad" for i in items] == ["(S (X a))", "bad", "(S (X c))", "(S (X d))"]


def test_balanced_trees_may_start_their_lines_anywhere():
    assert str(brackets.parse_tree("(S\n(NP (X a))\n(VP (Y b)))")) == "(S (NP (X a)) (VP (Y b)))"


def test_only_ascii_white_space_separates():
    tree = brackets.parse_tree("(NP (CD 5\u2009mm) (NN x\u00a0y))")
    assert tree.words() == ["5\u2009mm", "x\u00a0y"]


@pytest.mark.parametrize("phrase", ["(S ", "(S (X x) "])
def test_trees_deeper_than_the_stack(phrase):
    tree = brackets.parse_tree(phrase * 1200 + "(S (-NONE- *) (X x))" + ")" * 1200)
    sentence = brackets.tree_to_sentence(brackets.clean(tree))
    assert "*" not in sentence.words and brackets.format_tree(sentence.tree).count("(S ") == 1201


def test_normalisation():
    raw = "( (S (NP-SBJ-1 (NNP Ann)) (VP (VBD was) (VP (VBN seen) (NP=2 (-NONE- *-1)) (ADVP|PRT (RP up)))) (. .)) )"
    s = brackets.tree_to_sentence(brackets.clean(brackets.parse_tree(raw)))
    assert str(s.tree) == "(S (NP (NNP Ann)) (VP (VBD was) (VP (VBN seen) (ADVP (RP up)))) (. .))"
    unary = brackets.tree_to_sentence(brackets.clean(brackets.parse_tree("(S (VP (VB Go)))")))
    assert unary.constituents == ((0, 1, "S::VP"),)
    with pytest.raises(TreebankError, match="no words"):
        brackets.clean(brackets.parse_tree("( (S (-NONE- *)) )"))


@pytest.mark.parametrize(
    ("label", "bare"), [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("ADVP|PRT", "ADVP"), ("-LRB-", "-LRB-"), ("S", "S")]
)
def test_strip_function(label, bare):
    assert brackets.strip_function(label) == bare


def test_wrappers_are_layout():
    tree = brackets.parse_tree("( (TITLE (NP (NN x) (NN y))) )")
    assert str(brackets.clean(tree, ("TITLE",))) == "(NP (NN x) (NN y))"
    assert str(brackets.clean(tree)) == "(TITLE (NP (NN x) (NN y)))"
    single = brackets.parse_tree("( (TITLE (NN x)) )")
    assert str(brackets.clean(single, ("TITLE",))) == "(TITLE (NN x))", (
        "a wrapper over a bare word is all the tree there is"
    )


@pytest.mark.parametrize(
    ("raw", "says"), [(b"(S (X caf\xe9))\n", "line 1: byte 0xe9"), (b"(S\n(X a\0))", "line 2: a NUL")]
)
def test_wrong_bytes(tmp_path, raw, says):
    file = tmp_path / "x.trees"
    file.write_bytes(raw)
    with pytest.raises(TreebankError, match=says):
        brackets.read_text(file)


def test_brackets_inside_words_are_escaped():
    assert str(Node("X", word="a(b")) == "(X a-LRB-b)"
    assert brackets.unescape("-LRB-") == "("
