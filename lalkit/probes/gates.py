"""Gates that can close exactly and be learned by gradients: hard-concrete (Louizos et al. 2018), one for every head."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

BETA, LOW, HIGH = 0.33, -0.1, 1.1  # temperature; the ends to which the concrete distribution is stretched
SMALL = 1e-6  # the uniform draw is from [SMALL, 1 - SMALL]


class HardConcreteGate(nn.Module):
    """g [n] in [0, 1]: in training drawn, once for a batch; in evaluation clip(1.2 sigmoid(log a) - 0.1, 0, 1).

    In evaluation a gate is exactly 0 where log a <= -log 11, and exactly 1 where log a >= log 11 (2.398).
    """

    def __init__(self, size: int, start: float = 2.0):
        super().__init__()
        self.log_a = nn.Parameter(torch.full((size,), start))

    def forward(self, noise: Tensor | None = None) -> Tensor:
        """noise: uniform draws to use in training [n]; by default fresh ones."""
        if not self.training and noise is None:
            return stretch(torch.sigmoid(self.log_a))
        u = torch.rand_like(self.log_a) if noise is None else noise
        u = u.clamp(SMALL, 1 - SMALL)
        return stretch(torch.sigmoid((torch.log(u) - torch.log1p(-u) + self.log_a) / BETA))

    def open(self) -> Tensor:
        """[n]: P(g > 0) = sigmoid(log a + beta log 11). Its mean times lambda is what a loss adds."""
        return torch.sigmoid(self.log_a - BETA * math.log(-LOW / HIGH))


def stretch(s: Tensor) -> Tensor:
    return (s * (HIGH - LOW) + LOW).clamp(0, 1)
