"""Wrong sentences are refused with a message that says what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import TreebankError
from lalkit.treebank.tree import Node, Sentence, Span, check_heads, find_crossing


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Node("NP"), "is empty"),
        (lambda: Node("NP", word="a b"), "white space"),
        (lambda: Node("NP", word="a\0"), "NUL"),
        (lambda: Sentence(()), "at least one word"),
        (lambda: Sentence(("a", "")), "empty word"),
        (lambda: Sentence(("a", "b"), tags=("X",)), "1 tags for 2 words"),
        (lambda: Sentence(("a", "b"), heads=(2,)), "1 heads for 2 words"),
        (lambda: Sentence(("a", "b"), heads=(2, 1)), "cycle: 1 -> 2 -> 1"),
        (lambda: Sentence(("a",), heads=(1,)), "cycle: 1 -> 1"),
        (lambda: Sentence(("a", "b"), heads=(0, 0)), "2 roots"),
        (lambda: Sentence(("a", "b"), heads=(0, 3)), "head 3"),
        (lambda: Sentence(("a", "b", "c", "d"), heads=(3, 0, 2, 1)), "cross"),
        (lambda: Sentence(("a", "b", "c"), heads=(3, 0, 2)), "cross"),  # an arc over the root
        (lambda: Sentence(("a", "b", "c"), constituents=(Span(0, 2, "A"), Span(1, 3, "B"))), "cross"),
        (lambda: Sentence(("a", "b"), constituents=(Span(0, 3, "A"),)), "does not fit"),
        (lambda: Sentence(("a", "b"), constituents=(Span(1, 1, "A"),)), "does not fit"),
        (lambda: Sentence(("a", "b"), constituents=(Span(0, 2, "A"), Span(0, 2, "B"))), "A::B"),
        (lambda: Sentence(("a",), arc_labels=("X",)), "no heads"),
    ],
)
def test_wrong_trees_and_sentences_are_refused(build, says):
    with pytest.raises(TreebankError, match=says):
        build()


def test_the_message_names_the_sentence():
    with pytest.raises(TreebankError, match="sentence news-7: the dependencies contain a cycle"):
        Sentence(("a", "b"), heads=(2, 1), id="news-7")


def test_tree_expands_chains_and_keeps_words():
    s = Sentence(("She", "left"), ("PRP", "VBD"), (Span(1, 2, "VP"), Span(0, 2, "S"), Span(0, 1, "NP::NP")))
    assert str(s.tree) == "(S (NP (NP (PRP She))) (VP (VBD left)))"
    assert s.constituents[0] == (0, 2, "S"), "pre-order"


def test_a_deep_tree():
    n = 3000
    s = Sentence(("w",) * n, ("T",) * n, tuple(Span(i, n, "X") for i in range(n - 1)))
    assert len(s.tree.leaves()) == n


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_heads_against_the_definition(heads):
    """check_heads accepts exactly: heads in range, one root, every word reaches it, no two arcs (root arc included) cross."""
    n = len(heads)
    valid = all(0 <= h <= n for h in heads) and heads.count(0) == 1
    if valid:
        for i in range(1, n + 1):
            node = i
            for _ in range(n):
                node = heads[node - 1] if node else 0
            valid &= node == 0
    arcs = [tuple(sorted((i, h))) for i, h in enumerate(heads, 1)]
    crossing = any(a < c < b < d for a, b in arcs for c, d in arcs)
    if all(0 <= h <= n for h in heads):
        assert (find_crossing(tuple(heads)) is not None) == crossing
    if valid and not crossing:
        check_heads(tuple(heads))
    else:
        with pytest.raises(TreebankError):
            check_heads(tuple(heads))
