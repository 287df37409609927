"""Products of per-head vectors and matrices whose gradients are made where they are kept.

The forward passes are einsums. Left to autograd, the gradient of a [H, o, d] matrix comes out transposed and is copied (a fifth
of a training step of the layer), and that of the folded query is a matrix product with an inner axis of one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def fold(query: Float[Tensor, "h k"], key: Float[Tensor, "h k d"]) -> Float[Tensor, "h d"]:
    """W_h^T q_h for every head: u_h."""
    return _Fold.apply(*_cast(query, key))


def per_head(x: Float[Tensor, "b h d"], weight: Float[Tensor, "h o d"]) -> Float[Tensor, "b h o"]:
    """W_h x_h for every head."""
    return _PerHead.apply(*_cast(x, weight))


def _cast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """What autocast does for operations it knows."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return tuple(x.to(torch.get_autocast_dtype(device)) for x in tensors)


class _Fold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor) -> Tensor:
        ctx.save_for_backward(query, key)
        return torch.einsum("hk,hkd->hd", query, key)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        query, key = ctx.saved_tensors
        return torch.einsum("hd,hkd->hk", grad, key), query[:, :, None] * grad[:, None]


class _PerHead(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.einsum("bhd,hod->bho", x, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return torch.einsum("bho,hod->bhd", grad, weight), grad.permute(1, 2, 0) @ x.transpose(0, 1)
