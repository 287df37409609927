"""Linear maps that learn a difference of low rank and keep their own weights: W + U D (Hu et al. 2021, LoRA [D]).

What is learned is a small part of a layer's weights, and only that is saved with a parser.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize


class LowRank(nn.Module):
    """W -> W + U D. U begins at zero, so that nothing is changed before training."""

    def __init__(self, weight: Float[Tensor, "out in"], rank: int):
        super().__init__()
        self.up = nn.Parameter(weight.new_zeros(weight.shape[0], rank))
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / weight.shape[1] ** 0.5)

    def forward(self, weight: Float[Tensor, "out in"]) -> Float[Tensor, "out in"]:
        return weight + self.up @ self.down


def learn_low_rank(module: nn.Module, rank: int) -> None:
    """From now on every linear map in the module that is trained learns a difference of this rank, where that is less than
    the whole; biases and norms are trained as they are."""
    for linear in [m for m in module.modules() if isinstance(m, nn.Linear) and m.weight.requires_grad]:
        if rank < min(linear.weight.shape):
            weight = linear.weight.requires_grad_(False)
            parametrize.register_parametrization(linear, "weight", LowRank(weight, rank))
