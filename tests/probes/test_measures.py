"""Measures of weights, attributions and removed words: identities, the definitions written out, and known truths."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.evaluation.statistics import mean_interval
from lalkit.probes import weights as measures
from lalkit.probes.weights import agree, attribute
from tests.probes.toys import H, Q, texts, view_of
from tests.reference import probes_literal as literal

TEXTS = texts()
VIEW = view_of(TEXTS, range(len(TEXTS)), size=9, queries=3)
TAGS = torch.tensor([[0, 1, 0, 2, 1, -1, -1, -1, -1], [2] + [-1] * 8, [0, 0, -1, 2, 1, 1, 0, -1, -1],
                     [1, 1] + [-1] * 7, [0, 2, 2] + [-1] * 6])  # fmt: skip
POOLED = measures.pool_queries(VIEW.weights, VIEW.query_mask, VIEW.key_mask)


def same(found, wanted):
    assert float(found) == pytest.approx(wanted, abs=1e-12)


def test_all_of_the_batch_is_as_the_definitions_say():
    found, kl = measures.entropy(VIEW.weights, VIEW.query_mask), measures.pos_kl(POOLED, TAGS, 4)
    signed, absolute = (measures.conicity(VIEW.values, VIEW.key_mask, kind) for kind in (False, True))
    for b, (weights, values) in enumerate(TEXTS):
        for h in range(H):
            pooled = literal.pool(weights[h].tolist())
            assert POOLED[b, h, : len(pooled)].tolist() == pytest.approx(pooled, abs=1e-12)
            same(kl[b, h], literal.pos_kl(pooled, TAGS[b].tolist()[: len(pooled)]))
            same(signed[b, h], literal.conicity(values[h].tolist()))
            same(absolute[b, h], literal.conicity(values[h].tolist(), True))
            for q in range(Q):
                same(found[b, h, q], literal.entropy(weights[h, q].tolist()))
    assert found[:, :, Q:].isnan().all() and not found[:, :, :Q].isnan().any()


@pytest.mark.parametrize("offset", [-1, 0, 1, 2])
def test_relative_position_against_a_loop_with_ties(offset):
    weights = (VIEW.weights * 4).round() / 4  # many ties
    reference = torch.tensor([[1, 3, 0], [0, 0, 0], [6, -1, 0], [0, 1, 0], [2, 1, 0]])
    found = measures.relative_position(weights, reference, VIEW.key_mask, VIEW.query_mask, (offset,))
    for h in range(H):
        rows = [weights[b, h, :Q, : w.shape[-1]].tolist() for b, (w, _) in enumerate(TEXTS)]
        same(found[h, 0], literal.relative_position(rows, reference[:, :Q].tolist(), offset))


def test_without_tags_or_without_weight_nothing_is_defined():
    pooled = torch.tensor([[[0.5, 0.5, 0.0]]])
    assert measures.pos_kl(pooled, torch.tensor([[-1, -1, -1]]), 3).isnan().all()
    assert measures.pos_kl(pooled, torch.tensor([[-1, -1, 2]]), 3).isnan().all()  # the only tagged word has no weight
    one, three = torch.ones(1, 1).bool(), torch.ones(1, 3).bool()
    assert measures.pool_queries(torch.zeros(1, 1, 1, 3), one, three).isnan().all()
    weights = torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]], [[[1.0, 0.0, 0.0, 0.0]]]])
    keys = torch.tensor([[True, True, True, False], [True, True, False, False]])
    assert measures.sparsity(weights, keys, torch.ones(2, 1, dtype=torch.bool)).tolist() == [pytest.approx(2 / 5)]


def of(vectors):
    values = torch.tensor(vectors, dtype=torch.float64)[None, None]
    return float(measures.conicity(values, torch.ones(1, values.shape[2], dtype=torch.bool)))


def test_conicity_of_known_vectors():
    v = torch.tensor([3.0, -1, 2])
    assert of([(k * v).tolist() for k in (1, 1, 0.1, 7)]) == pytest.approx(1) == of([v.tolist()])
    assert of([v.tolist(), (-v).tolist()]) == 0  # the mean is zero
    assert of([[0.0, 0], [1, 0]]) == pytest.approx(0.5)  # a zero vector has no direction
    torch.manual_seed(0)
    values, mask = torch.randn(50, 1, 20, 300), torch.ones(50, 20, dtype=torch.bool)
    assert float(measures.conicity(values, mask).mean()) == pytest.approx(20**-0.5, rel=0.05)


def test_the_loss_has_gradients_even_where_vectors_are_zero():
    values = torch.randn(2, 1, 4, 3, dtype=torch.float64)
    values[1] = 0
    values.requires_grad_()
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    measures.diversity_loss(values, mask).backward()
    assert values.grad.isfinite().all() and values.grad[0, 0, :3].abs().sum() > 0 == values.grad[0, 0, 3].abs().sum()
    free = torch.randn(1, 1, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: measures.diversity_loss(x, torch.ones(1, 4, dtype=torch.bool)), free)


X = torch.randn(5, 7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_of_a_linear_function_both_methods_are_the_terms_themselves():
    w = torch.randn(7, 4, 2, dtype=torch.float64)

    def linear(x):
        return torch.einsum("bte,tec->bc", x, w)

    target = torch.tensor([0, 1, 0, 1, 1])
    wanted = torch.einsum("bte,tec->btc", X, w).gather(2, target[:, None, None].expand(-1, 7, -1))[..., 0]
    for method in ("gradient", "integrated"):
        assert torch.allclose(attribute(linear, X, target, method), wanted)
    with pytest.raises(ValueError, match="no method 'saliency'"):
        attribute(linear, X, target, "saliency")


def test_agreement_of_a_padded_batch_against_the_definitions():
    torch.manual_seed(3)
    lengths = [3, 6, 9]
    mask = torch.arange(9)[None] < torch.tensor(lengths)[:, None]
    attributions = torch.randn(3, 2, 9, dtype=torch.float64)
    attention = torch.softmax(torch.randn(3, 9, dtype=torch.float64).masked_fill(~mask, -1e9), -1)
    pearson, jsd = agree(attributions, attention, mask)
    for b, n in enumerate(lengths):
        for u in range(2):
            wanted = literal.agree(attributions[b, u, :n].tolist(), attention[b, :n].tolist())
            assert (float(pearson[b, u]), float(jsd[b, u])) == pytest.approx(wanted, abs=1e-12)
    assert ((jsd >= 0) & (jsd <= math.log(2))).all()


def test_what_agreement_is_not_defined_for():
    mask = torch.ones(1, 4, dtype=torch.bool)
    attention = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    pearson, jsd = agree(torch.zeros(1, 1, 4), attention, mask)
    assert pearson.isnan().all() and jsd.isnan().all()  # nothing is attributed
    pearson, jsd = agree(-attention[:, None], attention, mask)
    assert float(pearson) == pytest.approx(1) and float(jsd) == pytest.approx(0, abs=1e-6)
    pearson, jsd = agree(torch.tensor([[[0.1, 0.2, 0.5, 0.4]]]), torch.full((1, 4), 0.25), mask)
    assert pearson.isnan().all() and jsd.isfinite().all()  # attention does not vary
    two = torch.tensor([[True, True, False, False]])
    pearson, jsd = agree(torch.tensor([[[1.0, 2, 0, 0]]]), torch.tensor([[0.3, 0.7, 0, 0]]), two)
    assert pearson.isnan().all() and jsd.isfinite().all()  # two points are always on a line
    pearson, jsd = agree(torch.tensor([[[1.0, 0, 0, 0]]]), torch.tensor([[0.0, 1, 0, 0]]), mask)
    assert float(jsd) == pytest.approx(math.log(2))


def test_an_interval_is_that_of_drawing_again():
    rng = np.random.default_rng(2)
    values = rng.normal(5, 2, 400)
    mean, low, high = mean_interval(values)
    assert mean == pytest.approx(values.mean()) and high - low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.1)
    assert mean_interval(values, np.full(400, 2.0)) == pytest.approx((mean / 2, low / 2, high / 2))
    assert np.isnan(mean_interval(pd.Series([], dtype=float))).all()
