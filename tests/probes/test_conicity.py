"""Conicity: its identities, and the definition written out."""

import math

import pytest
import torch

from lalkit.probes.weights import conicity, diversity_loss, isotropic
from tests.probes.toys import H, texts, view_of
from tests.reference import probes_literal as literal


def of(vectors, absolute=False):
    values = torch.tensor(vectors, dtype=torch.float64)[None, None]
    return float(conicity(values, torch.ones(1, values.shape[2], dtype=torch.bool), absolute))


def test_what_is_known():
    v = torch.tensor([3.0, -1, 2])
    assert of([(k * v).tolist() for k in (1, 1, 0.1, 7)]) == pytest.approx(1)
    assert of([v.tolist()]) == pytest.approx(1)
    for m in (1, 2, 3, 5, 8):
        assert of(torch.eye(8)[:m].tolist()) == pytest.approx(1 / math.sqrt(m), abs=1e-12)
    assert of([v.tolist(), (-v).tolist()]) == 0  # the mean is zero
    assert of([[-1.0, 0]] * 6 + [[100.0, 0]]) == pytest.approx(-5 / 7)
    assert of([[-1.0, 0]] * 6 + [[100.0, 0]], absolute=True) == pytest.approx(1)
    assert of([[0.0, 0], [1, 0]]) == pytest.approx(0.5)  # a zero vector has no direction


def test_of_equal_norms_it_is_the_length_of_the_mean():
    units = torch.nn.functional.normalize(torch.randn(9, 5, dtype=torch.float64), dim=-1)
    assert of((3 * units).tolist()) == pytest.approx(float(units.mean(0).norm()))


def test_random_vectors_have_about_one_over_the_root_of_their_number():
    torch.manual_seed(0)
    values, mask = torch.randn(50, 1, 20, 300), torch.ones(50, 20, dtype=torch.bool)
    assert float(conicity(values, mask).mean()) == pytest.approx(float(isotropic(mask)[0]), rel=0.05)


@pytest.mark.parametrize("absolute", [False, True])
def test_all_of_a_padded_batch_is_as_the_definition_says(absolute):
    some = texts()
    view = view_of(some, range(len(some)), size=11)
    found = conicity(view.values, view.key_mask, absolute)
    for b, (_, values) in enumerate(some):
        for h in range(H):
            assert float(found[b, h]) == pytest.approx(literal.conicity(values[h].tolist(), absolute), abs=1e-12)


def test_the_loss_has_gradients_even_where_vectors_are_zero():
    values = torch.randn(2, 1, 4, 3, dtype=torch.float64)
    values[1] = 0
    values.requires_grad_()
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    diversity_loss(values, mask).backward()
    assert values.grad.isfinite().all() and values.grad[0, 0, :3].abs().sum() > 0
    assert values.grad[0, 0, 3].abs().sum() == 0
    free = torch.randn(1, 1, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: diversity_loss(x, torch.ones(1, 4, dtype=torch.bool)), free)
