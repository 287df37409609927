"""Scores by length and by label add up to those of the whole."""

from dataclasses import replace

import pandas as pd
import pytest

from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import build, load


def sentences(*trees):
    return [build(parse_tree(tree), None, str(i)) for i, tree in enumerate(trees)]


GOLD = sentences("(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))))", "(NP (NP (NN a)) (, ,) (NP (NN b)))")
FOUND = sentences("(S (NP (DT a) (NN b)) (VP (VB c) (PP (NN d))))", "(NP (NN a) (, ,) (NP (NN b)))")


def test_by_label():
    table = by_label(GOLD, FOUND).set_index("label")
    assert table.loc["NP", ["gold", "predicted", "matched"]].tolist() == [5, 3, 3]
    assert table.loc["NP", ["precision", "recall", "f1"]].tolist() == [100, 60, 75]
    assert table.loc["S", "f1"] == 100 and "PP" not in table.index
    assert by_label(GOLD, FOUND, least=2).label.tolist() == ["NP"]
    dotted = sentences("(S (NP (PRP He)) (VP (VBD came)) (. .))")
    untagged = [replace(sentence, tags=None) for sentence in dotted]
    assert set(by_label(untagged, dotted)["f1"]) == {evaluate(untagged, dotted).summary()["f1"]} == {100}
    assert by_label(GOLD, FOUND, least=0).set_index("label").loc["PP", ["gold", "predicted", "recall"]].tolist() == [
        0,
        1,
        0,
    ]


def test_groups_and_labels_add_up_to_the_whole_corpus():
    gold = load("sample", "dev").sentences
    found = [replace(s, constituents=(*s.constituents[:-1], s.constituents[-1]._replace(label="X"))) for s in gold]
    whole = evaluate(gold, found)
    labels = by_label(gold, gold)
    assert labels.matched.sum() == labels.gold.sum() == whole.brackets.gold
    lengths = by_length(whole)
    assert lengths.sentences.sum() == len(gold)
    assert lengths.words.tolist()[:2] == ["1 to 10", "11 to 20"]
    assert whole.summary()["f1"] < 100
    low, high = lengths.f1.min(), lengths.f1.max()
    assert low <= whole.summary()["f1"] <= high


def test_groups_of_length():
    table = by_length(evaluate(GOLD, FOUND))
    assert table.words.tolist() == ["1 to 10"] and table.f1[0] == pytest.approx(100 * 10 / 13)
    assert isinstance(table, pd.DataFrame)
    longest = max(len(s) for s in GOLD)
    trees = [replace(s, heads=None, arc_labels=None) for s in FOUND]
    assert by_length(evaluate(GOLD, trees))[["uas", "las"]].isna().all(axis=None)
    assert by_length(evaluate(GOLD, FOUND), lengths=(longest - 1,)).words.tolist()[-1] == f"over {longest - 1}"
