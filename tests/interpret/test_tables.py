"""Shares and lifts are right on contributions with a known answer; heads of two parsers are paired."""

import numpy as np
import pandas as pd
import pytest

from lalkit.errors import LalkitError
from lalkit.interpret.tables import Contributions, agreement, matched_by_chance, profile, top_shares


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
    turned = Contributions(found.spans, found.raw, -found.exact)
    assert agreement(turned, ("raw",))["rho"].to_numpy() == pytest.approx(-1)


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
