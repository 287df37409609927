"""Permutation, erasure, ablation and focus: identities, the definitions written out, and the same alone as in a batch."""

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.probes.perturbation import MODES, ablate, ask, erasure_flip, focus, permutation_tvd, uniform
from lalkit.probes.view import COLUMNS, AttentionView, tidy
from lalkit.probes.weights import look_at
from tests.probes.toys import H, Q, predict_alone, texts, view_of
from tests.reference import probes_literal as literal

TEXTS = texts()
IDS = [4, 17, 3, 99, 0]
VIEW = view_of(TEXTS, IDS, size=9, queries=3)


def test_permutation_against_loops():
    found = permutation_tvd(VIEW, 11, seed=5)
    for b, (weights, values) in enumerate(TEXTS):
        wanted = literal.permutation_tvd(weights.numpy(), predict_alone(values), 11, range(H), 5, IDS[b])
        assert found[b, :Q].tolist() == pytest.approx(wanted, abs=1e-12)
    assert found[:, Q:].isnan().all() and ((found[:, :Q] >= 0) & (found[:, :Q] <= 1)).all()
    assert found[1, :Q].tolist() == [0] * Q  # one word only
    assert (found[[0, 2], :Q] > 0.01).all()


def test_chunks_do_not_show(monkeypatch):
    whole = permutation_tvd(VIEW, 9), erasure_flip(VIEW).fraction
    monkeypatch.setattr("lalkit.probes.perturbation.MOST", 2 * VIEW.weights.numel())
    torch.testing.assert_close(permutation_tvd(VIEW, 9)[:, :Q], whole[0][:, :Q], rtol=0, atol=1e-12)  # sizes differ
    assert torch.equal(erasure_flip(VIEW).fraction[:, :Q], whole[1][:, :Q])


RANKINGS = {"attention": None, "given": torch.randn(len(TEXTS), H, 3, 9, dtype=torch.float64)}


@pytest.mark.parametrize("ranking", RANKINGS)
@pytest.mark.parametrize("sparse", [False, True])
def test_erasure_against_loops(ranking, sparse):
    some = texts(seed=3, sparse=sparse)
    view = view_of(some, IDS, size=9, queries=3)
    scores = RANKINGS[ranking]
    found, flipped = erasure_flip(view, "attention" if scores is None else scores), 0
    for b, (weights, values) in enumerate(some):
        n = weights.shape[-1]
        own = weights.numpy() if scores is None else scores[b, :, :Q, :n].numpy()
        fraction, exhausted = literal.erasure(weights.numpy(), predict_alone(values), own, range(H))
        assert found.fraction[b, :Q].tolist() == pytest.approx(fraction, abs=1e-12)
        assert found.exhausted[b, :Q].tolist() == exhausted
        assert all(1 / n <= f <= 1 for f in fraction)
        flipped += sum(f < 1 for f in fraction)
    assert flipped and found.fraction[:, Q:].isnan().all()
    assert sparse or not found.exhausted.any()  # softmax leaves every key something


def test_random_rankings():
    found = erasure_flip(VIEW, "random").fraction[:, :Q]
    assert torch.equal(found, erasure_flip(VIEW, "random").fraction[:, :Q])
    assert not torch.equal(found, erasure_flip(VIEW).fraction[:, :Q])


def test_alone_shuffled_and_padded_all_probes_say_the_same():
    columns = ["measure", "example", "head", "query", "unit"]

    def tables(view):
        parts = pd.concat([look_at(view), ask(view, 25)]).dropna(subset="example")
        return parts.astype(dict.fromkeys(columns, str)).set_index(columns)["value"].sort_index()

    whole = tables(VIEW)
    alone = [tables(view_of([t], [i])) for t, i in zip(TEXTS, IDS)]
    turned = tables(view_of(TEXTS[::-1], IDS[::-1], size=8))
    for other in (pd.concat(alone).sort_index(), turned):
        assert (whole.index == other.index).all()
        assert np.allclose(whole, other, atol=1e-6, equal_nan=True)
    assert set(whole.index.get_level_values("measure")) >= {"tvd", "erased", "erased_random", "entropy"}


def test_ablation_does_what_its_name_says():
    contexts = torch.einsum("bhqt,bhtd->bhqd", VIEW.weights, VIEW.values)
    assert torch.allclose(ablate(VIEW, "context").probs, VIEW.from_contexts(torch.zeros_like(contexts)).probs)
    even = ablate(VIEW).probs
    for b, (weights, values) in enumerate(TEXTS):
        plain = np.full_like(weights.numpy(), 1 / weights.shape[-1])
        assert np.allclose(even[b, :Q], predict_alone(values)(plain))
    assert (uniform(VIEW).sum(-1) - 1).abs().max() < 1e-12
    with pytest.raises(ValueError, match=", ".join(MODES)):
        ablate(VIEW, "halved")


def test_focus_moves_weight_to_a_place():
    position = torch.tensor([2, 0, 6, 1, 0])
    found = focus(VIEW.weights, position, 0.25)
    onehot = torch.nn.functional.one_hot(position, 9)[:, None, None]
    assert torch.allclose(found, 0.75 * VIEW.weights + 0.25 * onehot)
    assert torch.equal(focus(VIEW.weights, position, 0), VIEW.weights)
    assert (focus(VIEW.weights, position, 1) == onehot).all()
    with pytest.raises(ValueError, match="from 0 to 1"):
        focus(VIEW.weights, position, 1.5)


def test_a_view_refuses_attention_to_padding():
    parts = {name: getattr(VIEW, name) for name in ("weights", "values", "key_mask", "query_mask", "heads", "predict")}
    nothing, away = VIEW.key_mask.clone(), VIEW.weights.clone()
    nothing[3] = False
    away[3] = torch.nn.functional.one_hot(torch.tensor(8), 9)  # all attention on padding
    for wrong in ({"key_mask": nothing}, {"weights": away}):
        with pytest.raises(ValueError, match="example 3"):
            AttentionView(**parts | wrong)


def test_tables_leave_out_padding():
    found = tidy(torch.zeros(len(TEXTS), H, 3), "bhq", "m", VIEW, system="s", seed=4)
    assert len(found) == len(TEXTS) * H * Q and set(found["example"]) == set(IDS)  # the third query is padding
    assert found["unit"].isna().all() and set(found["seed"]) == {4}
    assert tuple(found) == COLUMNS
