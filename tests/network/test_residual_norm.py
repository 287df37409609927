"""Residual and norm by our own backward pass, against layer norm by autograd; in pieces; and without tensors of y's size."""

import pytest
import torch
import torch.nn.functional as F

from lalkit.bench import peak_bytes
from lalkit.network import residual_norm as module
from lalkit.network.residual_norm import residual_norm

B, T, H, D = 3, 5, 7, 6


def inputs(dtype=torch.float64):
    torch.manual_seed(0)
    words, heads = torch.randn(B, T, D, dtype=dtype) + 3, 20 * torch.randn(B, H, D, dtype=dtype)
    return [x.requires_grad_() for x in (words, heads, torch.rand(D, dtype=dtype) + 0.5, torch.randn(D, dtype=dtype))]


@pytest.mark.parametrize(
    "piece", [None, 1, 2 * T * H * D, 10**9], ids=["compiled", "a sentence at a time", "two", "all"]
)
def test_outputs_and_gradients(piece, monkeypatch):
    if piece:  # the way of other devices
        monkeypatch.setattr(module, "PIECE", piece)
        monkeypatch.setattr(module, "compiled_usable", lambda tensor: False)
    given, gradient = inputs(), torch.randn(B, T, H, D, dtype=torch.float64)
    words, heads, gain, offset = given
    expected = F.layer_norm(words[:, :, None] + heads[:, None], (D,), gain, offset)
    found = residual_norm(*given)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for one, other in zip(torch.autograd.grad(found, given, gradient), torch.autograd.grad(expected, given, gradient)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_statistics_stay_exact_under_autocast():
    """Where w is near -c, their sum is small: a product in bf16 would lose it."""
    torch.manual_seed(0)
    words = torch.randn(2, 4, 64)
    heads = 1e-2 * torch.randn(2, 4, 64) - words
    exact = module.centred(words, heads)[2]
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module.centred(words, heads)[2], exact)


@pytest.mark.parametrize("compiled", [True, False])
def test_nothing_of_the_outputs_size_beside_it(compiled, monkeypatch):
    b, t, h, d = 8, 30, 40, 64
    if not compiled:
        monkeypatch.setattr(module, "PIECE", t * h * d)  # one sentence
        monkeypatch.setattr(module, "compiled_usable", lambda tensor: False)
    words, heads = torch.randn(b, t, d, requires_grad=True), torch.randn(b, h, d, requires_grad=True)
    gain, offset = torch.ones(d, requires_grad=True), torch.zeros(d, requires_grad=True)
    gradient = torch.randn(b, t, h, d)
    size = gradient.nbytes
    used = peak_bytes(lambda: torch.autograd.grad(residual_norm(words, heads, gain, offset), words, gradient))
    assert used < 1.5 * size  # y itself, and a sentence of it; autograd's layer norm holds three such tensors
