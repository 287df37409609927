"""Trees, brackets and joint spans: wrong ones are refused, right ones survive the way there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import JointError, TreebankError
from lalkit.treebank import brackets
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import GROUP, from_joint, to_joint
from lalkit.treebank.tree import Node, Sentence, Span, check_heads, find_crossing
from tests.draw.sentences import random_sentence


def test_tree_expands_chains():
    s = Sentence(("She", "left"), ("PRP", "VBD"), (Span(1, 2, "VP"), Span(0, 2, "S"), Span(0, 1, "NP::NP")))
    assert str(s.tree) == "(S (NP (NP (PRP She))) (VP (VBD left)))" and s.constituents[0] == (0, 2, "S")


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_heads_against_the_definition(heads):
    """check_heads accepts exactly: heads in range, one root, every word reaches it, no two arcs (root arc included) cross."""
    n = len(heads)
    valid = in_range = all(0 <= h <= n for h in heads)
    for i in range(1, n + 1) if in_range else ():
        node = i
        for _ in range(n):
            node = heads[node - 1] if node else 0
        valid &= node == 0
    arcs = [tuple(sorted((i, h))) for i, h in enumerate(heads, 1)]
    crossing = any(a < c < b < d for a, b in arcs for c, d in arcs)
    assert not in_range or (find_crossing(tuple(heads)) is not None) == crossing
    if valid and heads.count(0) == 1 and not crossing:
        check_heads(tuple(heads))
    else:
        pytest.raises(TreebankError, check_heads, tuple(heads))


# ---------------------------------------------------------------------------------------------------------- brackets


def trees():
    plain = st.characters(blacklist_characters=" \t\r\n\f\v()\0\\", blacklist_categories=("Cs",))
    token = st.text(plain, min_size=1, max_size=4)
    leaf = st.builds(lambda t, w: Node(t, word=w), token, token)
    node = lambda kids: st.builds(lambda t, k: Node(t, tuple(k)), token, st.lists(kids, min_size=1, max_size=3))  # noqa: E731
    return st.recursive(leaf, node, max_leaves=8)


@given(trees())
def test_brackets_there_and_back(tree):
    assert brackets.parse_tree(brackets.format_tree(tree)) == tree
    assert brackets.parse_tree(brackets.indent_tree(tree, width=10)) == tree


def test_cleaning():
    raw = "( (S (NP-SBJ-1 (NNP Ann)) (VP (VBD was) (VP (VBN seen) (NP=2 (-NONE- *-1)) (ADVP|PRT (RP up)))) (. .)) )"
    s = brackets.tree_to_sentence(brackets.clean(brackets.parse_tree(raw)))
    assert str(s.tree) == "(S (NP (NNP Ann)) (VP (VBD was) (VP (VBN seen) (ADVP (RP up)))) (. .))"
    assert brackets.tree_to_sentence(brackets.parse_tree("(S (VP (VB Go)))")).constituents == ((0, 1, "S::VP"),)
    assert [brackets.strip_function(label) for label in ("NP-SBJ-1", "-LRB-", "S")] == ["NP", "-LRB-", "S"]
    titles = {"( (TITLE (NP (NN x) (NN y))) )": "(NP (NN x) (NN y))", "( (TITLE (NN x)) )": "(TITLE (NN x))"}
    for text, unwrapped in titles.items():
        assert str(brackets.clean(brackets.parse_tree(text), ("TITLE",))) == unwrapped
    assert str(Node("X", word="a(b")) == "(X a-LRB-b)" and brackets.unescape("-LRB-") == "("
    with pytest.raises(TreebankError, match="no words"):
        brackets.clean(brackets.parse_tree("( (S (-NONE- *)) )"))


# -------------------------------------------------------------------------------------------------------- joint spans


def words(n):
    return tuple(f"w{i}" for i in range(1, n + 1))


def test_groups_in_groups():
    """A flat constituent in which 1 -> 2 -> 3 -> 5 and 4 -> 5: a chain of sibling heads, to any depth."""
    s = Sentence(words(5), constituents=(Span(0, 5, "NP"),), heads=(2, 3, 5, 5, 0))
    assert to_joint(s) == ((0, 5, "NP", 5), (0, 3, GROUP, 3), (0, 2, GROUP, 2))
    chain = Sentence(words(400), constituents=(Span(0, 400, "X"),), heads=(*range(2, 401), 0))
    assert [j.end for j in to_joint(chain)] == list(range(400, 1, -1))


@pytest.mark.parametrize(
    ("spans", "heads"),
    [
        ((Span(0, 3, "S"), Span(0, 2, "NP")), (3, 3, 0)),  # two words with a head outside
        ((Span(0, 2, "S"),), (2, 3, 0)),  # no constituent covers the sentence
        ((Span(0, 4, "S"), Span(0, 2, "NP")), (0, 1, 2, 1)),  # an outer dependent of a word that is not the head word
    ],
)
def test_what_has_no_joint_form(spans, heads):
    pytest.raises(JointError, to_joint, Sentence(words(len(heads)), constituents=spans, heads=heads))


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_joint_spans_there_and_back(n, seed):
    sentence = random_sentence(n, seed)
    joint = to_joint(sentence)
    others = sentence.heads, sentence.tags, sentence.arc_labels, sentence.id
    assert from_joint(sentence.words, joint, *others) == sentence
    for start, end, _, head in joint:  # every span has exactly this one word whose head is outside
        assert [i for i in range(start, end) if not start < sentence.heads[i] <= end] == [head - 1]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "split"), [("ptb-sample", "dev"), ("ptb-sample", "test"), ("craft", "dev")])
def test_the_corpora_there_and_back(name, split):
    for s in load(name, split):
        assert from_joint(s.words, to_joint(s), s.heads, s.tags, s.arc_labels, s.id) == s
