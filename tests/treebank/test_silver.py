"""The form that silver constituents get: where the Penn Treebank has a WHNP, a WHADVP or a QP."""

from collections import Counter

import pytest

from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.silver import penn_form
from tests.corpora import needs

PAIRS = {
    "a pronoun alone": ("(NP (NP (NN man)) (SBAR (WP who) (S (VP (VBD left)))))", "(SBAR (WHNP (WP who)) (S"),
    "under NP": ("(NP (NP (NN man)) (SBAR (NP (WDT which)) (S (VP (VBD left)))))", "(SBAR (WHNP (WDT which)) (S"),
    "an adverb": ("(SBARQ (WRB When) (SQ (VBZ is) (NP (PRP it))) (. ?))", "(SBARQ (WHADVP (WRB When)) (SQ"),
    "dollars": ("(NP ($ $) (CD 1.5) (CD million))", "(NP (QP ($ $) (CD 1.5) (CD million)))"),
    "people": ("(NP (CD 3) (CD million) (NNS people))", "(NP (QP (CD 3) (CD million)) (NNS people))"),
}
UNCHANGED = {
    "a phrase": "(SBAR (WHNP (WDT which) (NN man)) (S (VP (VBD left))))",
    "no clause": "(NP (WDT which) (NN man))",
    "inside QP": "(NP (QP (RB about) (CD 3) (CD million)) (NNS people))",
    "part of another constituent": "(NP (CD 3) (NP (CD million) (NNS people)))",
    "two years": "(NP (CD 4) (CD 1776))",
    "one word": "(SBAR (WP who))",
}


def form(text: str) -> str:
    return str(penn_form(tree_to_sentence(parse_tree(text))).tree)


@pytest.mark.parametrize("name", PAIRS)
def test_missing_constituents_are_added_once(name):
    before, after = PAIRS[name]
    assert after in form(before) and form(form(before)) == form(before)


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_constituents_stay(name):
    assert form(UNCHANGED[name]) == UNCHANGED[name]


@pytest.mark.data
@pytest.mark.parametrize(("corpus", "most"), [("ptb-sample", 12), ("sample", 0)])
def test_trees_that_people_drew_have_these_constituents_already(corpus, most):
    """Of over a thousand in the Penn Treebank sample: WHNP 664, WHADVP 156, QP 572."""
    added = Counter()
    for sentence in needs(corpus, "train"):
        added += Counter(penn_form(sentence).constituents) - Counter(sentence.constituents)
    assert added.total() <= most
