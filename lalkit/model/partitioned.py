"""Linear maps that keep content and position apart (Kitaev and Klein 2018: two blocks, no weights between them)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PartitionedLinear(nn.Module):
    """[.., content + position] -> [.., out_content + out_position], each half from its own half; `heads` copies if given.

    heads: the output is [.., heads, out], each head's matrix initialised as the matrix it is.
    """

    def __init__(self, d_in: tuple[int, int], d_out: tuple[int, int], heads: int | None = None, bias: bool = False):
        super().__init__()
        self.d_in, self.d_out, self.heads = d_in, d_out, heads
        lead = () if heads is None else (heads,)
        self.content = nn.Parameter(xavier(*lead, d_out[0], d_in[0]))
        self.position = nn.Parameter(xavier(*lead, d_out[1], d_in[1]))
        self.bias = nn.Parameter(torch.zeros(*lead, sum(d_out))) if bias else None

    @property
    def blocks(self) -> tuple[Tensor, Tensor]:
        """The matrices of content and of position, [(heads,) out, in] each."""
        return self.content, self.position

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
        index = "...d,od->...o" if self.heads is None else "...d,hod->...ho"
        out = block_einsum(index, x, self.blocks, self.d_in)
        return out if self.bias is None else out + self.bias

    def per_head(self, x: Float[Tensor, "... h d"]) -> Float[Tensor, "... h o"]:
        """Head h's matrix applied to head h's vector (with heads None: the one matrix to all)."""
        index = "...hd,od->...ho" if self.heads is None else "...hd,hod->...ho"
        return block_einsum(index, x, self.blocks, self.d_in)


def block_einsum(index: str, x: Tensor, blocks: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """The same product for each part of x's last axis with its own matrix, side by side."""
    return torch.cat([torch.einsum(index, part, block) for part, block in zip(x.split(sizes, dim=-1), blocks)], dim=-1)


def xavier(*shape: int) -> Tensor:
    """Glorot-uniform over the last two axes: every head's matrix as a matrix of its own."""
    bound = (6.0 / (shape[-1] + shape[-2])) ** 0.5
    return torch.empty(*shape).uniform_(-bound, bound)


def halve(size: int) -> tuple[int, int]:
    return size - size // 2, size // 2
