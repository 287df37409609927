"""The layer against its literal twin, for every variant: outputs, attention, all gradients, dropout with given masks."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from lalkit.bench import peak_bytes
from lalkit.config import LabelAttentionConfig
from lalkit.network.label_attention import LabelAttention, Masks
from lalkit.network.residual_norm import centred, residual_norm
from tests.reference.label_attention_literal import literal

NORMALISERS = ("softmax", "entmax15", "sparsemax", "uniform")
VARIANTS = [*itertools.product(("vector", "matrix"), ("concat", "project"), (True, False), NORMALISERS, (False, True))]
FORMS = ["projections", "all", "none"]  # what keeps content and position apart


def layer_and_input(query, combine, shared, normaliser, form=FORMS[0], seed=0, heads=5):
    torch.manual_seed(seed)
    config = LabelAttentionConfig(
        heads=heads, d_kv=6, d_out=8, query=query, combine=combine, shared=shared, normaliser=normaliser,
        residual_dropout=0.4, partition=form,
    )  # fmt: skip
    layer = LabelAttention(config, 7, 4).double()
    for p in layer.parameters():  # trained-size weights: attention far from uniform, gain and offset not trivial
        p.data += 0.5 * torch.randn_like(p)
    x = torch.randn(3, 6, 11, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [4], [3]])
    return layer, x, mask


@pytest.mark.parametrize(
    ("query", "combine", "shared", "normaliser", "dropout", "form"),
    [(*row, form) for row in VARIANTS for form in FORMS if form == FORMS[0] or row[3] == "softmax"],
)
def test_equals_the_equations(query, combine, shared, normaliser, dropout, form):
    layer, x, mask = layer_and_input(query, combine, shared, normaliser, form)
    masks = layer.draw(x) if dropout else Masks()
    if dropout:
        assert (masks.attention == 0).any() and (masks.residual == 0).any()
    results = []
    for function in (lambda x: layer(x, mask, masks), lambda x: literal(layer, x, mask, masks)):
        layer.zero_grad()
        inputs = x.clone().requires_grad_()
        y, attention = function(inputs)
        kept = y * mask[:, :, None, None]  # what the layer says of padding is nobody's business
        seen = attention if attention.dim() == 3 else attention * mask[:, None, :, None]
        torch.manual_seed(1)
        (kept * torch.randn_like(kept)).sum().backward()
        results.append((kept, seen, inputs.grad, {n: p.grad.clone() for n, p in layer.named_parameters()}))
    torch.testing.assert_close(*results, rtol=0, atol=1e-10)
    for name, gradient in results[0][-1].items():
        unused = normaliser == "uniform" and name.split(".")[0] in ("query", "key")
        assert (gradient.abs().max() > 1e-6) != unused, f"{name}: the comparison would prove nothing"


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_cache_gives_the_same_and_is_dropped_when_weights_change(form):
    layer, x, mask = layer_and_input("vector", "concat", True, "softmax", form)
    layer.eval()

    def check():
        expected = literal(layer, x, mask, Masks())
        for _ in range(2):  # the second time from the cache
            with torch.no_grad():
                found = layer(x, mask)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)

    check()
    kept = layer.cached()
    assert layer.cached()[0] is kept[0], "nothing was kept"
    for name, p in layer.named_parameters():
        with torch.no_grad():
            p.add_(0.3 * torch.randn_like(p))  # as an optimizer does
        check()
        assert name in ("gain", "offset") or layer.cached()[0] is not kept[0]
    layer.load_state_dict({k: v + 0.1 for k, v in layer.state_dict().items()})
    check()
    layer.query = torch.nn.Parameter(layer.query.detach() * 2)
    check()
    layer.float(), layer.double()
    check()
    layer.float()
    with torch.no_grad():
        precise = layer(x.float(), mask)[0]
        with torch.autocast("cpu", torch.bfloat16):
            layer(x.float(), mask)  # makes coarser products
        assert torch.equal(layer(x.float(), mask)[0], precise)
    layer(x.float(), mask)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in layer.parameters()), "not from what is kept"
    layer.train()
    assert layer._cached is None


@pytest.mark.parametrize("normaliser", ["entmax15", "sparsemax"])
def test_sparse_attention_adds_up_to_one_under_autocast(normaliser):
    layer, x, mask = layer_and_input("vector", "concat", True, normaliser)
    layer.float()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        sums = layer.attend(4 * x.float(), mask).sum(-1)
    assert sums.dtype == torch.float32
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


def test_the_cache_does_not_take_new_weights_for_those_whose_place_they_have():
    layer, x, mask = layer_and_input("vector", "concat", True, "softmax")
    layer.eval()
    queries = layer.query.detach().clone()
    with torch.no_grad():
        for turn in range(40):  # every tensor of queries is freed before the next one is made, often in its place
            order = torch.arange(len(queries)).roll(turn)
            _, found = functional_call(layer, {"query": queries[order]}, (x, mask))
            layer._cached, kept = None, layer._cached
            _, expected = functional_call(layer, {"query": queries[order]}, (x, mask))
            layer._cached = kept
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_each_head_is_initialised_as_the_matrix_it_is():
    """A three-dimensional Xavier start would make a head's matrix about 8 times too small for 112 heads."""
    layer = LabelAttention(LabelAttentionConfig(), 512, 512)
    expected = (2 / (512 + 64)) ** 0.5
    assert abs(layer.key.content.std().item() / expected - 1) < 0.02


def test_hooks_change_the_layer_only_inside_their_block():
    layer, x, mask = layer_and_input("vector", "concat", True, "softmax")
    layer.eval()
    y, attention = layer(x, mask)
    seen = []
    with layer.hooked(contexts=lambda c: seen.append(c) or c, output=lambda y, a: y.flip(2)):
        same, _ = layer(x, mask)
    assert torch.equal(same, y.flip(2)) and seen[0].shape == (3, 5, 6)
    with layer.hooked(attention=lambda a, m: (m / m.sum(-1, keepdim=True))[:, None].expand_as(a).to(a)):
        with layer.hooked(contexts=torch.zeros_like):
            zero, even = layer(x, mask)
    torch.testing.assert_close(even[0], torch.full_like(even[0], 1 / 6))
    expected = layer.norm(layer.reduce(x))[:, :, None].expand_as(y)
    torch.testing.assert_close(zero, expected, rtol=0, atol=1e-4)
    assert torch.equal(layer(x, mask)[0], y) and not layer.hooks
    # The products of weights that are kept are not used then.
    with torch.no_grad(), layer.hooked(contexts=torch.zeros_like):
        torch.testing.assert_close(layer(x, mask)[0], zero, rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match="no hook point queries: the layer has attention, contexts, output"):
        with layer.hooked(queries=torch.zeros_like):
            pass


# ---------------------------------------------------------------- residual and norm

B, T, H, D = 3, 5, 7, 6


def test_residual_and_norm_and_their_gradients_are_those_of_layer_norm():
    torch.manual_seed(0)
    words, heads = torch.randn(B, T, D).double() + 3, 20 * torch.randn(B, H, D).double()
    inputs = [x.requires_grad_() for x in (words, heads, torch.rand(D).double() + 0.5, torch.randn(D).double())]
    expected = F.layer_norm(words[:, :, None] + heads[:, None], (D,), *inputs[2:])
    found, gradient = residual_norm(*inputs), torch.randn(B, T, H, D).double()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad(y, inputs, gradient) for y in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)
    low = residual_norm(*(x.detach().bfloat16() for x in inputs))
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.double(), expected.detach(), rtol=0.1, atol=0.1)


def test_statistics_stay_exact_under_autocast():
    """Where w is near -c, their sum is small: a product in bf16 would lose it."""
    torch.manual_seed(0)
    words = torch.randn(2, 4, 64)
    heads = 1e-2 * torch.randn(2, 4, 64) - words
    exact = centred(words, heads)[2]
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(centred(words, heads)[2], exact)


def test_nothing_of_the_outputs_size_beside_it():
    b, t, h, d = 8, 30, 40, 64
    words, heads = torch.randn(b, t, d, requires_grad=True), torch.randn(b, h, d, requires_grad=True)
    gain, offset, gradient = torch.ones(d), torch.zeros(d), torch.randn(b, t, h, d)
    used = peak_bytes(lambda: torch.autograd.grad(residual_norm(words, heads, gain, offset), words, gradient))
    assert used < 1.5 * gradient.nbytes  # y itself; autograd's layer norm holds three such tensors
