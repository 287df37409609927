"""What heads look at: measures of attention weights alone (Baan et al. 2019, section 4).

weights [B, H, Q, T]; masks are True where something is. Padding has no part in any of them.

How alike vectors are: conicity (Chandrahas et al. 2018), by which Mohankumar et al. (2020) explain attention's opacity.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMOOTH = 1e-6  # added to a histogram that must not be zero


def entropy(weights: Tensor, query_mask: Tensor) -> Tensor:
    """[B, H, Q] in nats, from 0 (one key) to log T (uniform); nan for a query that is padding."""
    found = torch.special.entr(weights).sum(-1)
    return found.masked_fill(~query_mask[:, None], torch.nan)


def sparsity(weights: Tensor, key_mask: Tensor, query_mask: Tensor) -> Tensor:
    """[H]: the share of exact zeros among the weights between valid queries and keys."""
    valid = (key_mask[:, None, None] & query_mask[:, None, :, None]).expand_as(weights)
    return ((weights == 0) & valid).sum((0, 2, 3)) / valid.sum((0, 2, 3))


def pool_queries(weights: Tensor, query_mask: Tensor, key_mask: Tensor) -> Tensor:
    """m [B, H, T], what each key gets of all valid queries together: sums to 1; nan for a head with no weight on any key."""
    total = torch.einsum("bhqt,bq,bt->bht", weights, query_mask.to(weights.dtype), key_mask.to(weights.dtype))
    return total / total.sum(-1, keepdim=True).where(total.sum(-1, keepdim=True) > 0, torch.nan)


def tag_histogram(pooled: Tensor, tags: Tensor, size: int) -> Tensor:
    """[B, H, size]: the weight on each tag. pooled [B, H, T]; tags [B, T], -1 on padding and on words without a tag."""
    found = pooled.new_zeros(*pooled.shape[:2], size)
    counted = pooled * (tags >= 0)[:, None]
    return found.scatter_add(-1, tags.clamp(min=0)[:, None].expand_as(pooled), counted)


def pos_kl(pooled: Tensor, tags: Tensor, size: int, direction: str = "attention_doc") -> Tensor:
    """[B, H]: KL(q || p) in nats, q the attention's histogram over tags, p the document's; -log p(tag) at most.

    The paper leaves the direction open; this one is finite for sparse heads too. direction "doc_attention": KL(p || q), both
    smoothed by 1e-6. Words without a tag are left out; nan where no word has one, or the head gives them nothing.
    """
    if direction not in ("attention_doc", "doc_attention"):
        raise ValueError(f"no direction {direction!r}: attention_doc or doc_attention")
    q = tag_histogram(pooled, tags, size)
    p = tag_histogram(torch.ones_like(pooled), tags, size)
    q, p = (x / x.sum(-1, keepdim=True).where(x.sum(-1, keepdim=True) > 0, torch.nan) for x in (q, p))
    if direction == "doc_attention":
        p, q = ((x + SMOOTH) / (1 + SMOOTH * size) for x in (q, p))
    return torch.where(q > 0, q * (q / p.where(p > 0, 1.0)).log(), 0.0 * q).sum(-1)


def mass_ratio(pooled: Tensor, flags: Tensor) -> Tensor:
    """[B, H]: the weight on flagged keys (names, punctuation, the root, a rationale); nan where none is flagged."""
    mass = torch.einsum("bht,bt->bh", pooled, flags.to(pooled.dtype))
    return mass.masked_fill(~flags.any(-1)[:, None], torch.nan)


def relative_position(
    weights: Tensor, reference: Tensor, key_mask: Tensor, query_mask: Tensor, offsets: tuple[int, ...] = (-1, 1)
) -> Tensor:
    """[H, O]: the share of queries whose most attended key is reference + offset; k tied keys have 1/k of it each.

    reference [B, Q]: a position, for an encoder the query's own; -1: the query has none and is left out. Queries for which
    reference + offset is outside the text are left out for that offset; nan where none is left.
    """
    valid = weights.masked_fill(~key_mask[:, None, None], -torch.inf)
    credit = (valid == valid.amax(-1, keepdim=True)).to(weights.dtype)
    credit = credit / credit.sum(-1, keepdim=True)
    found = []
    for offset in offsets:
        target = reference + offset
        inside = (target >= 0) & (target < weights.shape[-1]) & (reference >= 0) & query_mask
        target = target.clamp(0, weights.shape[-1] - 1)
        inside = inside & key_mask.gather(1, target)
        index = target[:, None, :, None].expand(*credit.shape[:3], 1)
        hit = credit.gather(-1, index)[..., 0] * inside[:, None]
        count = inside.sum()
        found.append(hit.sum((0, 2)) / count.where(count > 0, torch.nan))
    return torch.stack(found, dim=-1)


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
