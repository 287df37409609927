"""Comprehensiveness and sufficiency against their definitions, and graded on a system whose truth is known."""

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.evaluation.statistics import mean_interval
from lalkit.probes.rankings import SHARES, areas, by_weights, faithfulness, grades, removal
from lalkit.probes.view import linear_view
from tests.probes.toys import LENGTHS, predict_alone, texts, view_of
from tests.reference import probes_literal as literal


@pytest.mark.parametrize("normalised", [True, False])
def test_against_the_definition_text_by_text(normalised):
    some = texts()
    view = view_of(some, tuple(range(len(some))), size=9)
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.integers(0, 4, view.key_mask.shape)).double()  # with ties
    found = removal(by_weights(view, normalised), scores, view.key_mask)
    for i, (weights, values) in enumerate(some):
        predict, n = predict_alone(values), LENGTHS[i]
        decision = predict(weights.numpy()).argmax(-1)

        def p(kept, weights=weights, predict=predict, decision=decision):
            rest = weights.numpy() * [t in kept for t in range(weights.shape[-1])]
            mass = rest.sum(-1, keepdims=True) if normalised else 1.0
            return np.take_along_axis(predict(rest / np.where(mass > 0, mass, 1.0)), decision[:, None], 1)[:, 0]

        wanted = [literal.removal(p, scores[i, :n].tolist(), share) for share in SHARES]
        for k, name in enumerate(("comprehensiveness", "sufficiency")):
            for share, each in zip(SHARES, wanted):
                assert found[f"{name} {share:g}"][i].numpy() == pytest.approx(each[k])
            assert found[name][i].numpy() == pytest.approx(np.mean([each[k] for each in wanted], axis=0))
        assert found["all words"][i].numpy() == pytest.approx(p(set(range(n))) - p(set()))


def additive(count=40, length=6):
    """A system whose score is the sum of weight times value: the truth is known. Its weights say little."""
    rng = torch.Generator().manual_seed(1)
    weights = torch.softmax(torch.randn(count, 1, 1, length, generator=rng, dtype=torch.float64), -1)
    values = 3 * torch.randn(count, 1, length, 1, generator=rng, dtype=torch.float64)
    view = linear_view(weights, values, torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    sign = 1 - 2 * view.predict(weights).decision.double()  # the second class wins where the sum is below 0
    return view, weights[:, 0, 0], weights[:, 0, 0] * values[:, 0, :, 0] * sign


def test_the_true_ranking_wins_and_good_measures_have_good_grades():
    view, attention, truth = additive()
    rankings = {"attention": attention, "truth": truth, "upside down": -truth}
    doubled = tuple(i // 2 for i in range(len(truth)))
    table = faithfulness(view, rankings, by_weights(view, normalised=False), truth, doubled, system="sum", seed=3)
    found = areas(table).set_index(["ranking", "measure"])
    assert set(found["texts"]) == {20} and (found["low"] <= found["high"]).all()
    for measure, side in (("comprehensiveness", 1), ("comprehensiveness, normalised", 1), ("sufficiency", -1)):
        values = side * found["value"].unstack()[measure]
        assert values["truth"] > values[["attention", "random"]].max() > values["upside down"]
    assert found.loc[("truth", "agreement"), "value"] == pytest.approx(1)
    assert found.loc[("upside down", "agreement"), "value"] == pytest.approx(-1)
    whole = found["value"].unstack()
    shares = whole["comprehensiveness"] / whole["all words"]
    assert whole["comprehensiveness, normalised"].to_numpy() == pytest.approx(shares)
    graded = grades(table).set_index("measure")
    assert (graded.loc[["comprehensiveness", "sufficiency"], "low"] > 0.7).all() and (graded["texts"] == 20).all()
    wrong = table.assign(value=table["value"].where(table["measure"] != "agreement", -table["value"]))
    assert grades(wrong)["value"].to_numpy() == pytest.approx(1 - graded["value"].to_numpy())


def test_an_interval_is_that_of_drawing_again():
    rng = np.random.default_rng(2)
    values = rng.normal(5, 2, 400)
    mean, low, high = mean_interval(values)
    assert mean == pytest.approx(values.mean()) and high - low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.1)
    assert mean_interval(values, np.full(400, 2.0)) == pytest.approx((mean / 2, low / 2, high / 2))
    assert np.isnan(mean_interval(pd.Series([], dtype=float))).all()
