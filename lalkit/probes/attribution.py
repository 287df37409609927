"""Do gradients name the words that attention names? (Mohankumar et al. 2020, table 4.)"""

from __future__ import annotations

from collections.abc import Callable

import torch
from captum.attr import InputXGradient, IntegratedGradients
from torch import Tensor

METHODS = ("gradient", "integrated")
STEPS = 50


def attribute(
    function: Callable[..., Tensor], embedded: Tensor, target: Tensor, method: str = "gradient", *rest: Tensor
) -> Tensor:
    """[B, U, T]: sum_e of gradient x input, or of integrated gradients from zero vectors, of each unit's target, signed.

    function: embedded [B, T, e], *rest (first axis B) -> probabilities [B, U, C]; target [B, U]: classes. Integrated gradients
    by Gauss-Legendre's rule, 50 steps: they add up to f(x) - f(0) to 1e-5, unless the function detaches its attention.
    """
    if method not in METHODS:
        raise ValueError(f"no method {method!r}: {' or '.join(METHODS)}")
    embedded, found = embedded.detach().requires_grad_(), []
    for u in range(target.shape[1]):

        def unit(x: Tensor, *others: Tensor, u: int = u) -> Tensor:
            return function(x, *others)[:, u]

        given = {"target": target[:, u], "additional_forward_args": rest or None}
        if method == "gradient":
            part = InputXGradient(unit).attribute(embedded, **given)
        else:
            part = IntegratedGradients(unit).attribute(
                embedded, n_steps=STEPS, method="gausslegendre", internal_batch_size=max(len(embedded), 512), **given
            )
        found.append(part.sum(-1).detach())
    return torch.stack(found, dim=1)


def agree(attributions: Tensor, attention: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(Pearson's correlation, Jensen-Shannon divergence in nats) of |attributions| [B, U, T] and attention [B, T]: [B, U] each.

    Both are normalised over valid words. nan where attributions are all zero; the correlation also for fewer than three
    words and where either side does not vary. The divergence is in [0, log 2].
    """
    valid = mask[:, None].to(attributions.dtype)
    a = attributions.abs() * valid
    total = a.sum(-1, keepdim=True)
    a = a / total.where(total > 0, torch.nan)
    b = attention[:, None] * valid
    b = b / b.sum(-1, keepdim=True)
    count = valid.sum(-1, keepdim=True)
    x, y = ((v - v.sum(-1, keepdim=True) / count) * valid for v in (a, b))
    sizes = [v.square().sum(-1) for v in (x, y)]
    # Equal weights are not always equal in their last bit: what varies by less than 1e-12 does not vary.
    varies = (sizes[0] > 1e-24) & (sizes[1] > 1e-24) & (count[..., 0] >= 3)
    pearson = (x * y).sum(-1) / (sizes[0] * sizes[1]).sqrt().where(varies, torch.nan)
    middle = (a + b) / 2
    jsd = (torch.special.entr(middle) - (torch.special.entr(a) + torch.special.entr(b)) / 2).sum(-1)
    return pearson, jsd.clamp(min=0)
