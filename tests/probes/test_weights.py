"""Measures of attention weights alone, and conicity: identities, and the definitions written out."""

import pytest
import torch

from lalkit.probes import weights as measures
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
    assert float(measures.conicity(values, mask).mean()) == pytest.approx(float(measures.isotropic(mask)[0]), rel=0.05)


def test_the_loss_has_gradients_even_where_vectors_are_zero():
    values = torch.randn(2, 1, 4, 3, dtype=torch.float64)
    values[1] = 0
    values.requires_grad_()
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    measures.diversity_loss(values, mask).backward()
    assert values.grad.isfinite().all() and values.grad[0, 0, :3].abs().sum() > 0 == values.grad[0, 0, 3].abs().sum()
    free = torch.randn(1, 1, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: measures.diversity_loss(x, torch.ones(1, 4, dtype=torch.bool)), free)
