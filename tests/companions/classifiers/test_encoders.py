"""The orthogonal LSTM is orthogonal, whatever the scale; and every encoder is blind to padding."""

import pytest
import torch
from torch import nn

from lalkit.companions.classifiers.classifier import ENCODERS, OrthogonalLSTM, last
from tests.reference.orthogonal_literal import orthogonal

LENGTHS = torch.tensor([50, 1, 2, 7, 31, 50])
MASK = torch.arange(50)[None] < LENGTHS[:, None]


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("scale", [0.01, 1, 10])
def test_every_state_is_orthogonal_to_the_sum_before_it(dtype, most, scale):
    torch.manual_seed(0)
    encoder = OrthogonalLSTM(16, 24).to(dtype)
    x = scale * torch.randn(6, 50, 16, dtype=dtype)
    states = encoder(x, MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        h = states[b, :length]
        before = h.cumsum(0)[:-1]
        cosines = torch.cosine_similarity(h[1:].double(), before.double(), dim=-1)
        assert cosines.abs().max() <= most if length > 1 else len(cosines) == 0
        # Pythagoras, step by step: |S_t|^2 is the sum of all |h|^2.
        assert torch.allclose(h.cumsum(0).square().sum(-1), h.square().sum(-1).cumsum(0), rtol=1e-4)
        cell = nn.LSTMCell(16, 24, dtype=dtype)
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in encoder.lstm.state_dict().items()})
        assert torch.allclose(h[0], cell(x[b, :1])[0][0], atol=1e-6)
        assert torch.equal(states[b, length:], h[-1:].expand(50 - length, -1))  # padding carries the last state on


def test_against_gram_schmidt():
    torch.manual_seed(1)
    encoder = OrthogonalLSTM(6, 5).double()
    x = torch.randn(6, 50, 6, dtype=torch.float64)
    found = encoder(x, MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        assert torch.allclose(found[b, :length], orthogonal(encoder.lstm, x[b, :length]), atol=1e-10)


def test_its_gradients():
    encoder = OrthogonalLSTM(3, 4).double()
    x, mask = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), MASK[[0, 2], :4]
    assert torch.autograd.gradcheck(lambda x: encoder(x, mask) * mask[..., None], x)


@pytest.mark.parametrize("kind", ENCODERS)
def test_what_stands_behind_a_text_does_not_reach_it(kind):
    torch.manual_seed(0)
    encoder = ENCODERS[kind](5, 6)
    x = torch.randn(6, 50, 5)
    states = encoder(x, MASK)
    end = last(states, MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        alone = encoder(x[b : b + 1, :length], MASK[b : b + 1, :length])
        assert torch.allclose(states[b, :length], alone[0], atol=1e-6)
        assert torch.allclose(end[b], alone[0, -1], atol=1e-6)
