"""Measure attention weights alone (Baan et al. 2019, section 4), and conicity; `look_at` makes one table of them.

Besides: rankings of words by gradients (Mohankumar et al. 2020, table 4), and how far they agree with attention.

Conicity (Chandrahas et al. 2018) measures how similar vectors are. Mohankumar et al. (2020) use it to show why attention can
be a wrong explanation. weights [B, H, Q, T]; masks are True where there is a word. Padding never counts.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, tidy

ZERO = 1e-12  # a vector with a smaller norm has no direction; it is far below the norm of any state
METHODS = ("gradient", "integrated")
STEPS = 50


def share(mass: Tensor) -> Tensor:
    """Divide by the sum over the last axis. The result is nan where that sum is 0."""
    total = mass.sum(-1, keepdim=True)
    return mass / total.where(total > 0, torch.nan)


def entropy(weights: Tensor, query_mask: Tensor) -> Tensor:
    """Return the entropy [B, H, Q] in nats, from 0 (one key) to log T (uniform). It is nan for a query that is padding."""
    return torch.special.entr(weights).sum(-1).masked_fill(~query_mask[:, None], torch.nan)


def sparsity(weights: Tensor, key_mask: Tensor, query_mask: Tensor) -> Tensor:
    """Return the share [H] of exact zeros among the weights between valid queries and keys."""
    valid = (key_mask[:, None, None] & query_mask[:, None, :, None]).expand_as(weights)
    return ((weights == 0) & valid).sum((0, 2, 3)) / valid.sum((0, 2, 3))


def pool_queries(weights: Tensor, query_mask: Tensor, key_mask: Tensor) -> Tensor:
    """Return the share of attention of each key, from all valid queries together: [B, H, T]. It sums to 1, or is nan."""
    return share(torch.einsum("bhqt,bq,bt->bht", weights, query_mask.to(weights.dtype), key_mask.to(weights.dtype)))


def tag_histogram(pooled: Tensor, tags: Tensor, size: int) -> Tensor:
    """Return the weight on each tag, [B, H, size]. pooled [B, H, T]; tags [B, T]: -1 on padding and on words without a tag."""
    counted = pooled * (tags >= 0)[:, None]
    empty = pooled.new_zeros(*pooled.shape[:2], size)
    return empty.scatter_add(-1, tags.clamp(min=0)[:, None].expand_as(pooled), counted)


def pos_kl(pooled: Tensor, tags: Tensor, size: int) -> Tensor:
    """Return KL(q || p) in nats, [B, H]: q is the attention's distribution over tags, p that of the document's words.

    The paper does not say in which direction it takes the divergence. This direction is finite for sparse heads too; its largest
    value is -log p(tag). Words without a tag are left out. It is nan if no word has a tag, or if the head gives them nothing.
    """
    q = share(tag_histogram(pooled, tags, size))
    p = share(tag_histogram(torch.ones_like(pooled), tags, size))
    return torch.where(q > 0, q * (q / p.where(p > 0, 1.0)).log(), 0.0 * q).sum(-1)


def mass_ratio(pooled: Tensor, flags: Tensor) -> Tensor:
    """Return the weight on flagged keys (such as names, or a rationale), [B, H]. It is nan if no key is flagged."""
    mass = torch.einsum("bht,bt->bh", pooled, flags.to(pooled.dtype))
    return mass.masked_fill(~flags.any(-1)[:, None], torch.nan)


def relative_position(
    weights: Tensor, reference: Tensor, key_mask: Tensor, query_mask: Tensor, offsets: tuple[int, ...] = (-1, 1)
) -> Tensor:
    """Return the share of queries whose most attended key is at reference + offset: [H, offsets]. k equal keys count 1/k each.

    reference [B, Q]: a position, for an encoder that of the query; -1: the query has none. Queries for which `places_near`
    finds no place are left out. It is nan if none is left.
    """
    valid = weights.masked_fill(~key_mask[:, None, None], -torch.inf)
    credit = (valid == valid.amax(-1, keepdim=True)).to(weights.dtype)
    credit = credit / credit.sum(-1, keepdim=True)
    shares = []
    for offset in offsets:
        target, inside = places_near(reference, offset, key_mask, query_mask)
        index = target[:, None, :, None].expand(*credit.shape[:3], 1)
        hit = credit.gather(-1, index)[..., 0] * inside[:, None]
        count = inside.sum()
        shares.append(hit.sum((0, 2)) / count.where(count > 0, torch.nan))
    return torch.stack(shares, dim=-1)


def places_near(reference: Tensor, offset: int, key_mask: Tensor, query_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places reference + offset [B, Q], and where they exist [B, Q]: at a word of the text, for a valid query."""
    target = reference + offset
    inside = (target >= 0) & (target < key_mask.shape[1]) & (reference >= 0) & query_mask
    target = target.clamp(0, key_mask.shape[1] - 1)
    return target, inside & key_mask.gather(1, target)


def conicity(values: Tensor, mask: Tensor, absolute: bool = False) -> Tensor:
    """Return the mean over valid t of cos(v_t, mean of all v), [B, H].

    values [B, H, T, D], mask [B, T]. It is 1 for equal directions and for a single vector, exactly 1/sqrt(m) for m orthonormal
    vectors, and about 1/sqrt(T) for random ones. A zero vector and a zero mean have the cosine 0. It is nan without a valid key.
    absolute: take |cos|, as a loss must; the paper's formula is signed. The conicity of a corpus is the mean over its sentences.
    """
    valid = mask[:, None, :].to(values.dtype)
    count = valid.sum(-1)
    mean = torch.einsum("bht,bhtd->bhd", valid.expand(values.shape[:3]), values) / count[..., None]
    product = torch.einsum("bhtd,bhd->bht", values, mean)
    norms = values.square().sum(-1), mean.square().sum(-1)[..., None]
    there = (norms[0] > ZERO**2) & (norms[1] > ZERO**2) & mask[:, None, :]
    # Replace norms of zero vectors before the root, because its gradient at 0 is infinite.
    sizes = [torch.where(there, norm, 1.0).sqrt() for norm in norms]
    cosines = torch.where(there, product / (sizes[0] * sizes[1]), 0.0)
    return (cosines.abs() if absolute else cosines).sum(-1) / count


def diversity_loss(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean conicity with absolute cosines, for a loss. values [B, H, T, D], mask [B, T]."""
    return conicity(values, mask, absolute=True).mean()


def look_at(view: AttentionView, **labels) -> pd.DataFrame:
    """Measure the attention of heads: entropy, largest weight, sparsity, and conicity (signed and absolute) of the mixed vectors.

    labels: system, seed.
    """
    measures = {
        "entropy": ("bhq", entropy(view.weights, view.query_mask)),
        "max_attention": ("bhq", view.weights.amax(-1)),
        "sparsity": ("h", sparsity(view.weights, view.key_mask, view.query_mask)),
        "conicity": ("bh", conicity(view.values, view.key_mask, absolute=True)),
        "conicity_signed": ("bh", conicity(view.values, view.key_mask)),
    }
    tables = [tidy(value, axes, name, view, **labels) for name, (axes, value) in measures.items()]
    return pd.concat(tables, ignore_index=True)


# ---------------------------------------------------------------- rankings of words


def attribute(
    function: Callable[..., Tensor], embedded: Tensor, target: Tensor, method: str = "gradient", *rest: Tensor
) -> Tensor:
    """Return for each word the signed attribution of the target, summed over the vector's dimensions: [B, T].

    Args:
        function: Embedded words [B, T, e] and the rest -> probabilities [B, C].
        embedded: [B, T, e].
        target: Classes [B].
        method: "gradient" (times the input) or "integrated" (gradients integrated from zero vectors); else ValueError.
        rest: More arguments of the function, whose first axis is B.

    Integrated gradients use the rule of Gauss and Legendre with 50 steps. They add up to f(x) - f(0) within 1e-5, unless the
    function detaches its attention.
    """
    from captum.attr import InputXGradient, IntegratedGradients

    if method not in METHODS:
        raise ValueError(f"no method {method!r}: {' or '.join(METHODS)}")
    explainer, settings = InputXGradient(function), {}
    if method == "integrated":
        explainer = IntegratedGradients(function)
        settings = {"n_steps": STEPS, "method": "gausslegendre", "internal_batch_size": max(len(embedded), 512)}
    settings |= {"target": target, "additional_forward_args": rest or None}
    return explainer.attribute(embedded.detach().requires_grad_(), **settings).sum(-1).detach()


def agree(attributions: Tensor, attention: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return Pearson's correlation and Jensen-Shannon divergence, [B, U] each, of |attributions| [B, U, T] and attention [B, T].

    Both sides are normalised over valid words. The divergence is in nats, from 0 to log 2. Both are nan if all attributions are
    zero; the correlation also for fewer than three words, and if one side does not vary.
    """
    valid = mask[:, None].to(attributions.dtype)
    a = share(attributions.abs() * valid)
    b = attention[:, None] * valid
    b = b / b.sum(-1, keepdim=True)
    count = valid.sum(-1, keepdim=True)
    x, y = ((v - v.sum(-1, keepdim=True) / count) * valid for v in (a, b))
    sizes = [v.square().sum(-1) for v in (x, y)]
    # Equal weights can differ in their last bit. So a side that varies by less than 1e-12 counts as not varying.
    varies = (sizes[0] > 1e-24) & (sizes[1] > 1e-24) & (count[..., 0] >= 3)
    pearson = (x * y).sum(-1) / (sizes[0] * sizes[1]).sqrt().where(varies, torch.nan)
    middle = (a + b) / 2
    jsd = (torch.special.entr(middle) - (torch.special.entr(a) + torch.special.entr(b)) / 2).sum(-1)
    return pearson, jsd.clamp(min=0)
