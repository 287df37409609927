"""Shares and lifts have known answers, heads of two parsers are paired, and every wrong span is in one class and is traced."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import LalkitError
from lalkit.interpret.errors import classify, errors, missed, top_heads, trace
from lalkit.interpret.tables import Contributions, agreement, matched_by_chance, profile, top_shares
from lalkit.treebank.tree import Sentence


def made(labels, tops, heads=4, sentences=None, seed=0):
    """Spans with these labels, each led by this head."""
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0, 1, (len(labels), heads))
    raw[np.arange(len(labels)), tops] = 2.0
    spans = pd.DataFrame(
        {
            "sentence": range(len(labels)) if sentences is None else sentences, "id": "s", "start": 0, "end": 1,
            "label": labels, "parsed": True, "gold": True,
        }
    )  # fmt: skip
    return Contributions(spans, raw, raw**3)


LABELS = ["NP"] * 6 + ["VP"] * 4
TOPS = [0, 0, 0, 1, 1, 2, 1, 1, 1, 3]


def test_top_shares():
    table = top_shares(made(LABELS, TOPS), "raw", ["NP", "VP"])
    np_ = table[table["label"] == "NP"].set_index("head")
    assert np_.loc[0, ["spans", "led"]].tolist() == [6, 3] and np_.index.tolist() == [0, 1, 2]
    assert np_.loc[0, ["share", "overall"]].tolist() == [50, 30] and np_.loc[0, "lift"] == pytest.approx(5 / 3)
    assert np_.loc[1, "lift"] == pytest.approx((2 / 6) / 0.5), "a head that leads everything has no lift"
    assert (table["low"] <= table["share"]).all() and (table["share"] <= table["high"]).all()
    assert table[table["label"] == "VP"].iloc[0][["head", "share"]].tolist() == [1, 75]


def test_intervals_are_over_sentences():
    """Six spans of one sentence are one observation: nothing is known of other sentences, and the interval is a point."""
    together = top_shares(made(LABELS, TOPS, sentences=[0] * 10), "raw", ["NP"])
    assert (together["low"] == together["high"]).all()
    apart = top_shares(made(LABELS * 8, TOPS * 8), "raw", ["NP"]).iloc[0]
    wide = top_shares(made(LABELS, TOPS), "raw", ["NP"]).iloc[0]
    assert 0 < apart["high"] - apart["low"] < wide["high"] - wide["low"]


def test_a_head_that_leads_one_span_has_no_interval_of_its_lift():
    """In a third of the rounds its sentence is not drawn, and 0 / 0 is no lift. The other rounds alone would look certain."""
    table = top_shares(made(LABELS, TOPS), "raw", ["NP", "VP"]).set_index(["label", "head"])
    assert table.loc[("NP", 2), ["lift_low", "lift_high"]].isna().all()
    assert table.loc[("NP", 1), "lift_low"] <= table.loc[("NP", 1), "lift"] <= table.loc[("NP", 1), "lift_high"]


def test_unknown_labels_are_refused():
    found = made(LABELS, TOPS)
    with pytest.raises(LalkitError, match="no span is labelled 'QP'\n.*NP, VP"):
        top_shares(found, "raw", ["NP", "QP"])
    with pytest.raises(LalkitError, match="no span is labelled as asked"):
        top_shares(found, "raw", [])


def test_agreement():
    found = made(["NP"] * 30 + ["VP"] * 30, [0, 1, 2] * 20)
    table = agreement(found, ("raw", "share")).set_index(["norm", "label"])
    assert table["rho"].to_numpy() == pytest.approx(1), "exact is a monotone function of raw here"
    assert (table["same_top"] == 100).all()
    assert agreement(replace(found, exact=-found.exact), ("raw",))["rho"].to_numpy() == pytest.approx(-1)
    pytest.raises(LalkitError, agreement, replace(found, exact=None)).match("no exact contributions")


def test_the_number_of_matched_heads_has_its_chance_level():
    """Heads that stand for labels are found again far more often than by chance, random heads are not."""
    rng, labels, numbers = np.random.default_rng(0), [f"L{i % 6}" for i in range(240)], np.arange(240) % 6
    order = rng.permutation(24)
    tops = [np.where(rng.random(240) < 0.7, numbers, rng.integers(0, 24, 240)) for _ in "ab"]
    found = matched_by_chance(*(top_shares(made(labels, t, heads=24), "raw") for t in (tops[0], order[tops[1]])), 200)
    assert found[["labels", "same"]].tolist() == [6, 6] and found["by_chance"] < 5 and found["p"] < 0.05
    random = [top_shares(made(labels, rng.integers(0, 40, 240), heads=40), "raw") for _ in "ab"]
    found = matched_by_chance(*random, 200)
    assert found["low"] <= found["same"] <= found["high"] and found["p"] > 0.05


def test_no_head_leads_a_span_whose_label_the_parser_does_not_know():
    """The exact effects of such a span are nan, and the place of the largest nan is no head."""
    parts = made(LABELS, TOPS)
    parts.exact[6:] = np.nan  # all VPs
    table = top_shares(parts, "exact")
    assert set(table["label"]) == {"NP"} and table.loc[table["head"] == 0, "overall"].item() == 50
    assert profile(parts, "exact", "made up")["led"] == [[3, 0], [2, 0], [1, 0], [0, 0]]


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
def seen(parser, sample):
    explained = parser.explain(sample[:40], gold=True)
    return sample[:40], explained, explained.heads()


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
    inside = replace(explained, sentences=[replace(each, attention=None) for each in explained.sentences])
    for explanation, sentence, label in ((explained, 40, "S"), (explained, 3, "NO"), (inside, 3, one.spans[0][2])):
        pytest.raises(LalkitError, trace, explanation, "exact", sentence, (*one.spans[0][:2], label), 6)


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
        spans, found = [one.spans[0] for one in explained.sentences], attending(explained, trees)
        rooted = [trace(found, "exact", k, spans[k], 3)["root"] for k in range(9)]
        assert all(map(all, rooted)) == right, "the root is that of gold"
