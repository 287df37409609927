"""How much must be taken away, in the order of the weights, before the decision changes? (Serrano and Smith 2019.)

Does it matter which word has which weight? Weights permuted (Jain and Wallace 2019; Mohankumar et al. 2020, section 5.2).

Heads taken away, or made to look elsewhere: which of their parts is gone is part of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, Outcome, chosen

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
    view: AttentionView, ranking: str | Tensor = "attention", heads: int | Sequence[int] | None = None, seed: int = 0
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


BINS = (0.0, 0.25, 0.5, 0.75, 1.0)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """0.5 sum_c |p_c - q_c|, over the last axis: in [0, 1]."""
    return 0.5 * (p - q).abs().sum(-1)


def permutation_tvd(
    view: AttentionView, rounds: int = 100, heads: int | Sequence[int] | None = None, seed: int = 0
) -> Tensor:
    """[B, U]: the median over so many uniform permutations of TVD(outcome, outcome with the weights permuted).

    Each row of the chosen heads is permuted among its valid keys. Texts of one word give 0 (leave them out of statistics);
    nan for units that are padding.
    """
    base = view.predict(view.weights)
    which, order = chosen(view, heads), key_order(view)
    step = max(1, MOST // view.weights.numel())
    streams = [np.random.default_rng([seed, example]) for example in view.examples]
    found = []
    for start in range(0, rounds, step):
        size = min(step, rounds - start)
        permuted = torch.where(which, permute(view, size, streams, order), view.weights)
        found.append(total_variation(view.predict(permuted).probs, base.probs))
    median = torch.cat(found).quantile(0.5, dim=0)
    return median.masked_fill(~base.unit_mask, torch.nan)


def key_order(view: AttentionView) -> Tensor:
    """[B, T]: positions, the valid ones first, each group from left to right."""
    return torch.argsort(~view.key_mask, dim=-1, stable=True)


def permute(view: AttentionView, size: int, streams: Sequence[np.random.Generator], order: Tensor) -> Tensor:
    """[size, B, H, Q, T]: the weights, each row permuted among its valid keys, by each example's own random numbers."""
    b, h, q, t = view.weights.shape
    places = np.broadcast_to(np.arange(t), (size, b, h, q, t)).copy()
    counts, queries = view.key_mask.sum(-1).tolist(), view.query_mask.sum(-1).tolist()
    for i, stream in enumerate(streams):
        drawn = stream.random((size, h, queries[i], counts[i])).argsort(-1)
        places[:, i, :, view.query_mask[i].cpu().numpy(), : counts[i]] = np.moveaxis(drawn, 2, 0)
    source = order[:, None, None].expand(b, h, q, t)
    sorted_first = view.weights.gather(-1, source).expand(size, b, h, q, t)
    moved = sorted_first.gather(-1, torch.from_numpy(places).to(order.device))
    return torch.empty_like(moved).scatter_(-1, source.expand_as(moved), moved)


def by_max_attention(table: pd.DataFrame, value: str = "tvd", by: Sequence[str] = ("system",)) -> pd.DataFrame:
    """Figure 4: median and quartiles of `value` for texts whose largest weight lies in each quarter of [0, 1], with their
    number; bins without texts stay, their statistics nan. table: max_attention, length, `value` and the columns `by`; texts
    of one word are left out."""
    rows, names = [], [f"[{a:g}, {b:g}{']' if b == 1 else ')'}" for a, b in zip(BINS, BINS[1:])]
    for key, group in table[table["length"] > 1].groupby(list(by), sort=False):
        place = np.minimum((group["max_attention"].to_numpy() * 4).astype(int), 3)
        for i, name in enumerate(names):
            some = group[value].to_numpy()[place == i]
            low, median, high = np.nanquantile(some, [0.25, 0.5, 0.75]) if len(some) else [np.nan] * 3
            rows.append({**dict(zip(by, key)), "bin": name, "n": len(some), "low": low, "median": median, "high": high})
    return pd.DataFrame(rows)


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
