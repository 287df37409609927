"""Linear maps that learn a difference of low rank and keep their own weights (Hu et al. 2021, LoRA [D]):

    y = W x + b + U D x

What is learned is a small part of a layer's weights, and only that is saved with a parser. To add U D to W first would cost a
single sentence about as much again as its encoder takes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """In the place of a linear map, whose W it keeps as it is; b is trained, and U begins at zero: nothing is changed before."""

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.weight, self.bias = linear.weight.requires_grad_(False), linear.bias
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.down), self.up)


def learn_low_rank(module: nn.Module, rank: int) -> None:
    """From now on every linear map inside the module that is trained learns a difference of this rank, where that is less than
    the whole; all else is trained as it was."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear) and child.weight.requires_grad and rank < min(child.weight.shape):
                setattr(parent, name, LowRankLinear(child, rank))
