"""Every wrong span is in one class of errors, and is traced to its label heads and words."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.api import Parser
from lalkit.errors import LalkitError
from lalkit.interpret.contributions import contributions
from lalkit.interpret.errors import (
    classify,
    errors,
    gold_spans,
    missed,
    nearest,
    renamed,
    top_heads,
    trace,
    word_shares,
)
from lalkit.treebank.tree import GROUP, Sentence


@pytest.mark.parametrize(
    ("missing", "extra", "expected"),
    [
        ([(0, 3, "NP")], [(0, 3, "VP")], [("relabelled", (0, 3, "NP"), (0, 3, "VP"))]),
        ([(0, 3, "S::VP")], [(0, 3, "VP")], [("unary", (0, 3, "S::VP"), (0, 3, "VP"))]),
        ([(0, 3, "S::VP")], [(0, 3, "VP::S")], [("relabelled", (0, 3, "S::VP"), (0, 3, "VP::S"))]),
        ([(0, 3, "NP")], [(0, 5, "NP")], [("attachment", (0, 3, "NP"), (0, 5, "NP"))]),
        ([(1, 5, "NP")], [(0, 5, "NP")], [("attachment", (1, 5, "NP"), (0, 5, "NP"))]),
        ([(1, 4, "NP")], [(0, 5, "NP")], [("extra", None, (0, 5, "NP")), ("missing", (1, 4, "NP"), None)]),
        ([(0, 3, "NP"), (0, 9, "NP")], [(0, 4, "NP")],
         [("attachment", (0, 3, "NP"), (0, 4, "NP")), ("missing", (0, 9, "NP"), None)]),
        ([], [(2, 3, "X")], [("extra", None, (2, 3, "X"))]),
    ],
)  # fmt: skip
def test_classes(missing, extra, expected):
    assert list(classify(set(missing), set(extra))) == expected


CLASSES = {"relabelled", "unary", "attachment", "extra", "missing", "wrong arc", "wrong arc label"}
SPANS = st.sets(st.tuples(st.integers(0, 3), st.integers(4, 6), st.sampled_from(["A", "B", "A::B"])), max_size=6)


@given(SPANS, SPANS)
def test_every_wrong_span_is_in_one_error(gold, found):
    rows = list(classify(gold - found, found - gold))
    assert Counter(g for _, g, _ in rows if g) == Counter(gold - found)
    assert Counter(p for _, _, p in rows if p) == Counter(found - gold)
    assert {kind for kind, *_ in rows} <= CLASSES


@pytest.fixture(scope="module")
def seen(tiny_parser, sample):
    parser, gold = Parser.load(tiny_parser), sample[:40]
    looks = parser.look(gold, besides=gold_spans(gold))
    return gold, looks, contributions(looks, gold)


def test_errors_of_a_corpus(seen):
    gold, looks, _ = seen
    table = errors(gold, [s.sentence for s in looks])
    assert set(table["class"]) <= CLASSES and len(table) > 20
    arcs = table[table["class"] == "wrong arc"]
    expected = sum(a != b for g, s in zip(gold, looks) for a, b in zip(g.heads, s.sentence.heads))
    assert len(arcs) == expected
    row = arcs.iloc[0]
    assert gold[row["sentence"]].heads[row["end"] - 1] == row["gold_start"] != row["start"]
    assert gold[row["sentence"]].words[row["end"] - 1] == row["text"]
    assert errors(gold, gold).empty


def test_parses_without_arc_labels_have_wrong_arcs_only():
    gold = Sentence(("She", "works"), heads=(2, 0), arc_labels=("SBJ", "ROOT"))
    assert errors([gold], [replace(gold, arc_labels=None)]).empty
    assert errors([gold], [replace(gold, heads=(0, 1), arc_labels=None)])["class"].tolist() == ["wrong arc"] * 2
    assert errors([replace(gold, arc_labels=None)], [replace(gold, arc_labels=None)]).empty


def test_missed_spans_and_their_top_heads(seen):
    gold, looks, found = seen
    table = missed(found, "share").set_index("label")
    np_ = table.loc["NP"]
    assert np_["gold"] == sum(label == "NP" for spans in gold_spans(gold) for *_, label in spans)
    heads = top_heads(found.parsed, "share", "NP")
    assert np_["heads"] == heads and len(heads) == 2, "the paper follows two heads of NP, and four of other labels"
    assert max(map(len, table["heads"])) == 4
    correct = found.where((found.spans["parsed"] & found.spans["gold"]).to_numpy(bool))
    by_correct = missed(found, "share", chosen_from="correct").set_index("label")
    assert by_correct["heads"].tolist() == [top_heads(correct, "share", label) for label in by_correct.index]
    assert by_correct["heads"].tolist() != table["heads"].tolist(), "some label has other heads when the parse is right"
    lost = found.where(
        ((found.spans["label"] == "NP") & found.spans["gold"] & ~found.spans["parsed"]).to_numpy(dtype=bool)
    )
    assert np_["missed"] == len(lost.spans) > 0
    assert np_["still"] == sum(top in heads for top in lost.top("share"))
    everyone = missed(found, "share", count=6).set_index("label").loc["NP"]
    assert everyone["heads"][: len(heads)] == heads and everyone["percent"] >= np_["percent"]
    one = missed(found, "share", count=1).set_index("label").loc["NP"]
    assert 0 < one["by_chance"] < np_["by_chance"], "the more heads are called top heads, the less it says"


def test_a_span_is_traced(seen):
    _, looks, found = seen
    span = looks[3].spans[0]
    table = trace(looks, found, "exact", 3, span, count=6)
    assert table["contribution"].is_monotonic_decreasing and sorted(table["head"]) == list(range(6))
    row = table.iloc[0]
    words = ["<START>", *looks[3].sentence.words, "<STOP>"]
    assert row["word"] == words[int(np.argmax(looks[3].attention[row["head"]]))]
    assert row["contribution"] == pytest.approx(looks[3].exact[0].max())
    with pytest.raises(LalkitError, match="there is no sentence 40\n.*0 to 39"):
        trace(looks, found, "exact", 40, span)
    with pytest.raises(LalkitError, match="no span .* was looked at\n.*These were"):
        trace(looks, found, "exact", 3, (0, 1, "NO"))


@pytest.mark.parametrize("of_gold", [False, True])
def test_heads_at_the_root_and_at_nouns(seen, of_gold):
    gold, looks, found = seen
    trees = gold if of_gold else [s.sentence for s in looks]
    table = word_shares(looks, found, "share", 6, gold if of_gold else None).set_index("spans")
    right = found.parsed.spans["gold"].to_numpy(dtype=bool)
    few = word_shares(looks, found, "share", 1, gold if of_gold else None).set_index("spans")
    kinds = {
        "root": lambda tree, word: tree.heads[word - 1] == 0,
        "noun": lambda tree, word: tree.tags[word - 1].startswith("N"),
    }
    for kind, holds in kinds.items():
        at = [
            [0 < row.argmax() <= len(tree) and holds(tree, int(row.argmax())) for row in look.attention]
            for tree, look in zip(trees, looks)
        ]
        assert (
            table.loc["all heads", kind] == pytest.approx(100 * np.mean(at)) and 0 < table.loc["all heads", kind] < 100
        )
        expected = [np.mean(at[place]) for place in found.parsed.spans["sentence"]]
        wrong = 100 * np.mean(np.array(expected)[~right])
        assert table.loc["wrong", kind] == pytest.approx(wrong), "six of six heads: all of them"
        assert few.loc["wrong", "count"] == (~right).sum() and few.loc["wrong", kind] != table.loc["wrong", kind]


def test_the_root_is_that_of_the_parse_or_of_gold(seen):
    gold, looks, found = seen
    place = next(i for i, (g, look) in enumerate(zip(gold, looks)) if g.heads.index(0) != look.sentence.heads.index(0))
    span = looks[place].spans[0]
    for trees, root in ((None, looks[place].sentence.heads.index(0)), (gold, gold[place].heads.index(0))):
        # All heads attend to this word.
        attention = np.zeros_like(looks[place].attention)
        attention[:, root + 1] = 1
        changed = [*looks[:place], replace(looks[place], attention=attention), *looks[place + 1 :]]
        assert trace(changed, found, "exact", place, span, 3, trees)["root"].all()
        other = gold if trees is None else None
        assert not trace(changed, found, "exact", place, span, 3, other)["root"].any()


def test_constituents_that_the_parse_calls_something_else(seen):
    gold, looks, found = seen
    labels = {part for s in gold for c in s.constituents for part in c.label.split("::")}
    for label in sorted(labels):
        expected = [
            (place, start, end, right, guess)
            for place, (tree, look) in enumerate(zip(gold, looks))
            for start, end, guess in ((s.start, s.end, s.label) for s in look.prediction.spans)
            for right in [c.label for c in tree.constituents if (c.start, c.end) == (start, end)]
            if label in right.split("::") and label not in guess.split("::") and guess != GROUP
        ]
        table = renamed(looks, found, "exact", gold, label)
        named = table[["sentence", "start", "end", "gold_label", "label"]]
        assert sorted(named.itertuples(index=False, name=None)) == sorted(expected)
        if expected:
            break
    # All heads attend to the root of the gold tree, so all top heads do, and any others.
    changed = []
    for look, tree in zip(looks, gold):
        attention = np.zeros_like(look.attention)
        attention[:, tree.heads.index(0) + 1] = 1
        changed.append(replace(look, attention=attention))
    table = renamed(changed, found, "exact", gold, label, 3)
    assert expected and (table["root"] == 3).all() and table["root_by_chance"].to_numpy() == pytest.approx(3)


def test_a_parse_without_dependencies_has_no_root(seen):
    _, looks, found = seen
    bare = replace(looks[3].sentence, heads=None, arc_labels=None)
    looks = [*looks[:3], replace(looks[3], prediction=replace(looks[3].prediction, sentence=bare)), *looks[4:]]
    for ask in (lambda: trace(looks, found, "exact", 3, looks[3].spans[0]), lambda: word_shares(looks, found, "share")):
        with pytest.raises(LalkitError, match="constituents alone: no word is the root\n.*both layers"):
            ask()


def test_nearest_spans_are_right_and_of_other_sentences(seen):
    _, looks, found = seen
    span = looks[3].spans[0]
    table = nearest(found, "share", 3, span, 4)
    assert len(table) == 4 and (table["sentence"] != 3).all() and table["gold"].all() and table["parsed"].all()
    assert table["likeness"].is_monotonic_decreasing and table["likeness"].iloc[0] <= 1 + 1e-6
    with pytest.raises(LalkitError, match="was looked at"):
        nearest(found, "share", 3, (0, 1, "NO"))
