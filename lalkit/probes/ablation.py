"""Heads taken away, or made to look elsewhere: which of their parts is gone is part of the result."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, Outcome, chosen

MODES = {
    "context": "what the head attended to, at zero",
    "mean": "what the head attended to, at a given mean",
    "uniform": "the head attends to every key alike",
    "slice": "all that the head hands on, at zero: attention and what goes past it",
}


def ablate(
    view: AttentionView, heads: int | Sequence[int] | None = None, mode: str = "uniform", mean: Tensor | None = None
) -> Outcome:
    """The outcome without the chosen heads (None: all). mean [H, D]: contexts' means on training data, for mode "mean".

    "context", "mean" and "uniform" ask whether attention matters; "slice" whether the head does. Raises ValueError for a
    mode that there is not, that this system does not offer, or that lacks its mean.
    """
    which = chosen(view, heads)
    if mode == "uniform":
        return view.predict(torch.where(which, uniform(view), view.weights))
    if mode == "context":
        return view.predict(torch.where(which, 0.0, view.weights))
    if mode == "mean" and mean is not None and view.from_contexts is not None:
        contexts = torch.einsum("bhqt,bhtd->bhqd", view.weights, view.values)
        return view.from_contexts(torch.where(which, mean[None, :, None].to(contexts), contexts))
    if mode == "slice" and view.without_slices is not None:
        return view.without_slices(which.flatten().nonzero().flatten().tolist())
    reason = "there is no such mode" if mode not in MODES else "no mean was given, or this system has no such ablation"
    raise ValueError(f"ablation {mode!r}: {reason} (modes: {', '.join(MODES)})")


def uniform(view: AttentionView) -> Tensor:
    """[B, H, Q, T]: 1/T on every valid key."""
    valid = view.key_mask[:, None, None].to(view.weights.dtype)
    return (valid / valid.sum(-1, keepdim=True)).expand_as(view.weights)


def focus(weights: Tensor, position: Tensor, beta: float) -> Tensor:
    """(1 - beta) w + beta onehot(position): attention drawn to a place. position [B], or [B, Q]; beta in [0, 1]."""
    if not 0 <= beta <= 1:
        raise ValueError(f"beta is {beta}; a share, from 0 to 1, is wanted")
    index = (position if position.dim() == 2 else position[:, None].expand(-1, weights.shape[2]))[:, None, :, None]
    moved = weights * (1 - beta)
    return moved.scatter_add(-1, index.expand(*weights.shape[:3], 1), torch.full_like(moved[..., :1], beta))
