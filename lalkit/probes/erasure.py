"""How much must be taken away, in the order of the weights, before the decision changes? (Serrano and Smith 2019.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, chosen

MOST = 2**22  # numbers of a chunk of weights
DRAWS = 5  # random rankings of an example


@dataclass(frozen=True)
class Erasure:
    """fraction [B, U]: of the keys that had to go before the decision of the unit changed, 1 where it never did; nan on padding.

    exhausted [B, U]: it never did, and before the keys ran out nothing had any weight (sparse attention).
    """

    fraction: Tensor
    exhausted: Tensor


def erasure_flip(
    view: AttentionView,
    ranking: str | Tensor = "attention",
    heads: int | Sequence[int] | None = None,
    seed: int = 0,
) -> Erasure:
    """The smallest k, as a share of T, with another decision when the first k keys are gone and the rest is normalised again.

    ranking: "attention" (each row by its own weights, equal ones from left to right), "random" or "ties" (by weights, equal
    ones at random), both the mean over 5 draws; or scores [B, H, Q, T], first the largest. k runs from 1 to T - 1: with
    nothing left there is no decision. A decision that is wrong from the start is kept, as in the paper.
    """
    if isinstance(ranking, str) and ranking in ("random", "ties"):
        runs = [_flip(view, _drawn(view, seed + draw, ranking), heads) for draw in range(DRAWS)]
        fractions, exhausted = (torch.stack([getattr(r, name) for r in runs]) for name in ("fraction", "exhausted"))
        return Erasure(fractions.mean(0), exhausted.all(0))
    if isinstance(ranking, str) and ranking != "attention":
        raise ValueError(f"no ranking {ranking!r}: attention, random, ties, or scores")
    return _flip(view, view.weights if isinstance(ranking, str) else ranking, heads)


def _flip(view: AttentionView, scores: Tensor, heads: int | Sequence[int] | None) -> Erasure:
    base, which = view.predict(view.weights), chosen(view, heads)
    length = view.key_mask.sum(-1)
    shape = *view.weights.shape[:3], view.weights.shape[3]
    rank = ranks(scores.expand(shape), view.key_mask)
    first = torch.zeros_like(base.decision)  # the k of the first flip, 0: none yet
    empty = torch.zeros_like(view.key_mask[:, 0])
    step = max(1, MOST // view.weights.numel())
    for start in range(1, int(length.max()), step):
        k = torch.arange(start, min(start + step, int(length.max())), device=rank.device)
        rest = view.weights * (rank >= k[:, None, None, None, None])
        mass = rest.sum(-1, keepdim=True)
        gone = ((mass[..., 0] <= 0) & which[..., 0] & view.query_mask[:, None]).any(-1).any(-1)
        weights = torch.where(which, rest / mass.where(mass > 0, 1.0), view.weights)
        decision = view.predict(weights).decision
        usable = (k[:, None] < length) & ~gone
        flips = (decision != base.decision) & usable[..., None]
        at = torch.where(flips, k[:, None, None], shape[3] + 1).amin(0)
        first = torch.where((first == 0) & (at <= shape[3]), at, first)
        empty |= (gone & (k[:, None] < length)).any(0)
    fraction = torch.where(first > 0, first.to(view.weights.dtype) / length[:, None], 1.0)
    fraction = fraction.masked_fill(~base.unit_mask, torch.nan)
    return Erasure(fraction, (first == 0) & empty[:, None] & base.unit_mask)


def ranks(scores: Tensor, key_mask: Tensor) -> Tensor:
    """[B, H, Q, T]: the place of each valid key when keys are ordered by falling score, equal ones from left to right."""
    last = scores.masked_fill(~key_mask[:, None, None], -torch.inf)
    return torch.argsort(torch.argsort(last, dim=-1, descending=True, stable=True), dim=-1, stable=True)


def _drawn(view: AttentionView, seed: int, kind: str) -> Tensor:
    """[B, H, Q, T]: random scores; for "ties" the number of keys with less weight, plus a random number below 1."""
    b, h, q, t = view.weights.shape
    found = np.zeros((b, h, q, t))
    for i, example in enumerate(view.examples):
        queries, keys = (mask[i].nonzero()[:, 0].cpu().numpy() for mask in (view.query_mask, view.key_mask))
        rng = np.random.default_rng([seed, example])
        found[i][np.ix_(range(h), queries, keys)] = rng.random((h, len(queries), len(keys)))
    drawn = torch.from_numpy(found).to(view.weights.device)
    if kind == "random":
        return drawn
    valid = view.key_mask[:, None, None, None]
    return ((view.weights[..., :, None] > view.weights[..., None, :]) & valid).sum(-1) + drawn
