"""Products of heads: those of einsum, with gradients in the layout of the weights."""

import torch

from lalkit.network.label_attention import fold, per_head


def given(*shapes):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def test_fold():
    query, key = given((5, 3), (5, 3, 4))
    torch.testing.assert_close(fold(query, key), torch.stack([key[h].T @ query[h] for h in range(5)]))
    assert torch.autograd.gradcheck(fold, (query, key))


def test_per_head():
    x, weight = given((2, 5, 4), (5, 3, 4))
    expected = torch.stack([torch.stack([weight[h] @ x[b, h] for h in range(5)]) for b in range(2)])
    torch.testing.assert_close(per_head(x, weight), expected)
    assert torch.autograd.gradcheck(per_head, (x, weight))
