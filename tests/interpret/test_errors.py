"""Every wrong span is in one class of errors, and is traced to its label heads and words."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.api import Parser
from lalkit.errors import LalkitError
from lalkit.interpret.errors import classify, errors, missed, top_heads, trace
from lalkit.treebank.tree import Sentence

CLASSES = {"relabelled", "unary", "attachment", "extra", "missing", "wrong arc", "wrong arc label"}


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
    explained = parser.explain(gold, gold=True)
    return gold, explained, explained.heads()


def test_errors_of_a_corpus(seen):
    gold, explained, _ = seen
    table = errors(gold, explained.parses)
    assert set(table["class"]) <= CLASSES and len(table) > 20
    arcs = table[table["class"] == "wrong arc"]
    expected = sum(a != b for g, s in zip(gold, explained.parses) for a, b in zip(g.heads, s.heads))
    assert len(arcs) == expected
    row = arcs.iloc[0]
    assert gold[row["sentence"]].heads[row["word"] - 1] == row["gold_head"] != row["head"]
    assert gold[row["sentence"]].words[row["word"] - 1] == row["text"] and arcs["start"].isna().all()
    assert errors(gold, gold).empty


def test_arcs_are_left_out_where_labels_are_missing_or_of_another_convention(seen, caplog):
    gold = Sentence(("She", "works"), heads=(2, 0), arc_labels=("SBJ", "ROOT"))
    assert errors([gold], [replace(gold, arc_labels=None)]).empty
    assert errors([gold], [replace(gold, heads=(0, 1), arc_labels=None)])["class"].tolist() == ["wrong arc"] * 2
    trees, explained, _ = seen
    parses = explained.parses
    usual = errors(trees, parses)
    universal = "punct case det nsubj root advmod amod obj obl conj".split()
    other = errors(trees, parses, universal)  # the labels that the parser knows
    assert other.equals(usual[~usual["class"].str.contains("arc")].reset_index(drop=True)) and len(other) < len(usual)
    assert "arcs are left out" in caplog.text and caplog.text.count("\n") == 1
    own = {label for tree in trees for label in tree.arc_labels} | {"x1", "x2", "x3"}  # the parser knows a few more
    assert errors(trees, parses, own).equals(usual)


@pytest.mark.parametrize("among", ["relabelled", "missed"])
def test_missed_spans_and_their_top_heads(seen, among):
    """By default they are counted as in the paper: the parse gives the same words another label."""
    gold, explained, found = seen
    table = missed(found, "share", *[among] * (among == "missed")).set_index("label")
    total, keys = 0, list(found.spans[["sentence", "start", "end", "label"]].itertuples(index=False, name=None))
    for label, row in table.iterrows():
        heads, spans, tops = top_heads(found.parsed, "share", label), 0, []
        for place, (tree, parse) in enumerate(zip(gold, explained.parses)):
            parsed = {span[:2]: span[2] for span in parse.constituents}
            for c in (c for c in tree.constituents if c.label == label):
                spans += 1
                there = parsed.get((c.start, c.end))
                if there != label and (there or among == "missed"):
                    tops.append(found.top("share")[keys.index((place, c.start, c.end, label))])
        assert (row["gold"], row["missed"], row["still"]) == (spans, len(tops), sum(top in heads for top in tops))
        assert row["heads"] == heads
        assert row["by_chance"] == pytest.approx(100 * np.isin(found.parsed.top("share"), heads).mean())
        total += len(tops)
    assert total > 0
    assert len(table.loc["NP", "heads"]) == 2, "the paper follows two heads of NP, and four of other labels"
    assert max(map(len, table["heads"])) == 4


def test_a_span_is_traced(seen):
    gold, explained, found = seen
    one = explained.sentences[3]
    table = trace(explained, "exact", 3, one.spans[0], 6)
    assert table["contribution"].is_monotonic_decreasing and sorted(table["head"]) == list(range(6))
    row = table.iloc[0]
    words = ["<START>", *one.words, "<STOP>"]
    assert row["word"] == words[int(np.argmax(one.attention[row["head"]]))]
    assert row["contribution"] == pytest.approx(one.parts.effect[:6].max())
    for sentence, other in ((40, one.spans[0]), (3, (0, 1, "NO"))):
        with pytest.raises(LalkitError):
            trace(explained, "exact", sentence, other, 6)


def attending(explained, trees):
    """The explanation, with all attention of every head on the root of these trees."""
    changed = []
    for one, tree in zip(explained.sentences, trees):
        attention = np.zeros_like(one.attention)
        attention[:, tree.heads.index(0) + 1] = 1
        changed.append(replace(one, attention=attention))
    return replace(explained, sentences=changed)


def test_heads_at_the_root(seen):
    gold, explained, _ = seen
    for trees, right in ((gold, True), (explained.parses, False)):
        rooted = [
            trace(attending(explained, trees), "exact", k, explained.sentences[k].spans[0], 3)["root"] for k in range(9)
        ]
        assert all(map(all, rooted)) == right, "the root is that of gold"
