"""Rankings of words by gradients (Mohankumar et al. 2020, table 4), and how far they agree with attention."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lalkit.probes.weights import share

METHODS = ("gradient", "integrated")
STEPS = 50


def attribute(
    function: Callable[..., Tensor], embedded: Tensor, target: Tensor, method: str = "gradient", *rest: Tensor
) -> Tensor:
    """Return for each word the signed attribution of the target, summed over the vector's dimensions: [B, T].

    Args:
        function: Embedded words [B, T, e] and the rest -> probabilities [B, C].
        embedded: [B, T, e].
        target: Classes [B].
        method: "gradient" (times the input) or "integrated" (gradients integrated from zero vectors).
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
