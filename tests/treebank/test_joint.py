"""A sentence stays the same when it is turned into joint spans and back: any sentence with a joint form, and the corpora."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import JointError
from lalkit.treebank.joint import GROUP, from_joint, to_joint
from lalkit.treebank.tree import Sentence, Span
from tests.corpora import needs


def words(n):
    return tuple(f"w{i}" for i in range(1, n + 1))


def test_groups_in_groups():
    """A flat constituent in which 1 -> 2 -> 3 -> 5 and 4 -> 5: a chain of sibling heads, to any depth."""
    s = Sentence(words(5), constituents=(Span(0, 5, "NP"),), heads=(2, 3, 5, 5, 0))
    joint = to_joint(s)
    assert joint == ((0, 5, "NP", 5), (0, 3, GROUP, 3), (0, 2, GROUP, 2))
    assert from_joint(s.words, joint, s.heads) == s


@pytest.mark.parametrize("n", [2, 60, 400])
def test_a_chain_of_any_length(n):
    s = Sentence(words(n), constituents=(Span(0, n, "X"),), heads=(*range(2, n + 1), 0))
    assert [j.end for j in to_joint(s)] == list(range(n, 1, -1))


@pytest.mark.parametrize(
    ("spans", "heads", "says"),
    [
        ((Span(0, 3, "S"), Span(0, 2, "NP")), (3, 3, 0), "2 words with a head outside it"),
        ((Span(0, 2, "S"),), (2, 3, 0), "no constituent covers"),
        ((Span(0, 4, "S"), Span(0, 2, "NP")), (0, 1, 2, 1), "which is not its head word"),
        ((), (0,), "no constituent covers"),
    ],
)
def test_the_error_says_why_there_is_no_joint_form(spans, heads, says):
    with pytest.raises(JointError, match=says):
        to_joint(Sentence(words(len(heads)), constituents=spans, heads=heads))


@st.composite
def joint_sentences(draw, most=12):
    """A projective tree grown from derivations: a head takes left and right dependents; some partial spans are labelled."""
    n = draw(st.integers(1, most))
    heads, spans = [0] * n, {(0, n): "TOP"}

    def grow(start, end, parent):
        head = draw(st.integers(start, end - 1))
        heads[head] = parent
        left, right = head, head + 1
        while left > start or right < end:
            if right == end or (left > start and draw(st.booleans())):
                cut = draw(st.integers(start, left - 1))
                grow(cut, left, head + 1)
                left = cut
            else:
                cut = draw(st.integers(right + 1, end))
                grow(right, cut, head + 1)
                right = cut
            if draw(st.booleans()):
                spans[left, right] = draw(st.sampled_from(["A", "B", "A::B"]))
        if end - start == 1 and draw(st.booleans()):
            spans[start, end] = "C"

    grow(0, n, 0)
    return Sentence(words(n), constituents=tuple(Span(*k, v) for k, v in spans.items()), heads=tuple(heads))


@given(joint_sentences())
def test_identity(sentence):
    joint = to_joint(sentence)
    assert from_joint(sentence.words, joint, sentence.heads) == sentence
    for start, end, _, head in joint:  # every span has exactly this one word whose head is outside
        assert [i for i in range(start, end) if not start < sentence.heads[i] <= end] == [head - 1]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "split", "size"), [("ptb-sample", "train", 3401), ("ptb-sample", "dev", 268), ("ptb-sample", "test", 245)]
)
@pytest.mark.slow
def test_identity_on_the_corpora(name, split, size):
    corpus = needs(name, split)
    assert len(corpus) == size and not corpus.problems
    for s in corpus.sentences:
        assert from_joint(s.words, to_joint(s), s.heads, s.tags, s.arc_labels, s.id) == s
