"""How alike vectors are: conicity (Chandrahas et al. 2018), by which Mohankumar et al. (2020) explain attention's opacity."""

from __future__ import annotations

import torch
from torch import Tensor

ZERO = 1e-12  # a norm below which a vector has no direction; far below any state's


def conicity(values: Tensor, mask: Tensor, absolute: bool = False) -> Tensor:
    """[B, H]: the mean over valid t of cos(v_t, mean of all v).

    values [B, H, T, D], mask [B, T]. 1 for equal directions, and for one vector; exactly 1/sqrt(m) for m orthonormal ones;
    about 1/sqrt(T) for random ones. absolute: |cos|, what a loss must use; the paper's formula is signed. A zero vector, or a
    zero mean, has cosine 0. nan where no key is valid. A corpus's conicity is the mean over its sentences.
    """
    valid = mask[:, None, :].to(values.dtype)
    count = valid.sum(-1)
    mean = torch.einsum("bht,bhtd->bhd", valid.expand(values.shape[:3]), values) / count[..., None]
    product = torch.einsum("bhtd,bhd->bht", values, mean)
    norms = values.square().sum(-1), mean.square().sum(-1)[..., None]
    there = (norms[0] > ZERO**2) & (norms[1] > ZERO**2) & mask[:, None, :]
    # Norms of zero vectors are replaced before the root, whose gradient at 0 is infinite.
    sizes = [torch.where(there, norm, 1.0).sqrt() for norm in norms]
    cosines = torch.where(there, product / (sizes[0] * sizes[1]), 0.0)
    return (cosines.abs() if absolute else cosines).sum(-1) / count


def isotropic(mask: Tensor) -> Tensor:
    """[B]: what random directions would have, about 1/sqrt(T) (the column "Random" of the paper's table 2)."""
    return mask.sum(-1).to(torch.get_default_dtype()).rsqrt()


def diversity_loss(values: Tensor, mask: Tensor) -> Tensor:
    """The mean conicity of absolute cosines, to be added to a loss; values [B, H, T, D], mask [B, T]."""
    return conicity(values, mask, absolute=True).mean()
