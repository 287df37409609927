"""Gates and sparse normalisers: vectors from the papers, Monte Carlo, and integrals."""

import math

import pytest
import torch
from scipy.integrate import quad

from lalkit.companions.summarizers.pruning import BETA, HardConcreteGate
from lalkit.network.label_attention import NORMALISERS, normalise


def gate(log_a, size=1):
    found = HardConcreteGate(size)
    torch.nn.init.constant_(found.log_a, log_a)
    return found


@pytest.mark.parametrize(("log_a", "chance", "mean"), [(-3, 0.0990, 0.0506), (0, 0.6881, 0.5), (2, 0.9422, 0.8749)])
def test_chance_to_be_open_and_mean(log_a, chance, mean):
    some = gate(float(log_a), 10**6)
    torch.manual_seed(0)
    drawn = some.train()().detach()
    assert float(some.open()[0].detach()) == pytest.approx(chance, abs=1e-4)
    assert float((drawn > 0).float().mean()) == pytest.approx(chance, abs=0.002)

    def above(x):  # P(g > x), by inverting the stretched concrete distribution
        s = (x + 0.1) / 1.2
        return 1 / (1 + math.exp(-(log_a - BETA * math.log(s / (1 - s)))))

    assert quad(above, 0, 1)[0] == pytest.approx(mean, abs=1e-4)
    assert float(drawn.mean()) == pytest.approx(mean, abs=0.002)


def test_in_evaluation_gates_close_and_open_exactly():
    for log_a, wanted in ((-3, 0), (-2.399, 0), (0, 0.5), (2.399, 1), (4, 1)):
        assert gate(float(log_a)).eval()().item() == pytest.approx(wanted, abs=1e-7)
    assert gate(-2.39).eval()().item() > 0 and gate(2.39).eval()().item() < 1


def test_gradients_reach_a_gate_that_is_half_open_and_training_draws():
    some = gate(0.0, 200).train()
    torch.manual_seed(0)
    first, second = some(), some()
    assert not torch.equal(first, second)
    first.sum().backward()
    assert (some.log_a.grad >= 0).all() and (some.log_a.grad > 0).any()


def test_sparsemax_as_in_the_paper():
    for scores, wanted in (
        ([0, 0], [0.5, 0.5]), ([0.5, 0], [0.75, 0.25]), ([1, 0], [1, 0]), ([0.1, 1.1, 0.2], [0, 0.95, 0.05]),
        ([1, 0.8, 0.1], [0.6, 0.4, 0]),
    ):  # fmt: skip
        z = torch.tensor(scores, dtype=torch.float64)
        for shifted in (z, z + 5):
            found = normalise(shifted, torch.ones_like(z, dtype=torch.bool), "sparsemax")
            assert found.tolist() == pytest.approx(wanted, abs=1e-9)
    p = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    assert torch.allclose(normalise(p, p > 0, "sparsemax"), p)  # the identity on the simplex


@pytest.mark.parametrize("kind", NORMALISERS)
def test_every_normaliser_leaves_padding_out_and_has_gradients(kind):
    scores = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4), requires_grad=True)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False], [False, True, False, True, True]])
    found = normalise(scores, mask, kind)
    assert torch.allclose(found.sum(-1), torch.ones(3, dtype=torch.float64)) and (found[~mask] == 0).all()
    alone = normalise(scores[1:2, :2], mask[1:2, :2], kind)
    assert torch.allclose(found[1, :2], alone[0])
    assert torch.autograd.gradcheck(lambda z: normalise(z, mask, kind), scores)
    nothing = normalise(scores, torch.zeros_like(mask), kind)
    assert (nothing == 0).all()  # a row without keys: zeros, not nan


def test_an_unknown_normaliser():
    with pytest.raises(ValueError, match="softmax, entmax15, sparsemax"):
        normalise(torch.zeros(2), torch.ones(2).bool(), "hardmax")
