"""Compute the outcomes of other attention weights.

Erasure: how many words must go, in the order of the weights, before the decision changes (Serrano and Smith 2019)? Permutation:
does it matter which word has which weight (Jain and Wallace 2019; Mohankumar et al. 2020, section 5.2)? Ablation: the outcome
without attention. Focus: a head attends to one place. `ask` makes one table of these measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, Outcome, tidy

MOST = 2**22  # numbers in a chunk of weights
DRAWS = 5  # random rankings of an example
MODES = ("context", "uniform")  # the context of a head is zero, or the head attends equally to all keys


class Erasure(NamedTuple):
    """How much had to be erased.

    fraction [B, U]: the share of keys that had to go before the decision changed; 1 if the decision never changed, nan on
    padding. exhausted [B, U]: the decision never changed, and after some removal all remaining keys had weight 0 (as sparse
    attention allows).
    """

    fraction: Tensor
    exhausted: Tensor


def erasure_flip(view: AttentionView, ranking: str | Tensor = "attention") -> Erasure:
    """Find the smallest k, as a share of T, for which the decision changes if the first k keys go and the rest is normalised.

    The keys go in all heads.

    Args:
        ranking: Which keys go first. "attention": those with the largest weight, equal ones from left to right. "random": the
            result is the mean over 5 draws. Or scores [B, H, Q, T], the largest first.

    k runs from 1 to T - 1, because without any key there is no decision. As in the paper, decisions that are wrong from the start
    count too.
    """
    if isinstance(ranking, str) and ranking == "random":
        fractions, exhausted = zip(*(erasure_flip(view, _drawn(view, draw)) for draw in range(DRAWS)))
        return Erasure(torch.stack(fractions).mean(0), torch.stack(exhausted).all(0))
    scores = view.weights if isinstance(ranking, str) else ranking
    base, length, most = view.predict(view.weights), view.key_mask.sum(-1), view.weights.shape[-1]
    rank = ranks(scores.expand(view.weights.shape), view.key_mask)
    first = torch.zeros_like(base.decision)  # the k of the first change; 0: none yet
    empty = torch.zeros_like(view.key_mask[:, 0])
    step = max(1, MOST // view.weights.numel())
    for start in range(1, int(length.max()), step):
        k = torch.arange(start, min(start + step, int(length.max())), device=rank.device)
        rest = view.weights * (rank >= k[:, None, None, None, None])
        mass = rest.sum(-1, keepdim=True)
        gone = ((mass[..., 0] <= 0) & view.query_mask[:, None]).any(-1).any(-1)
        decision = view.predict(rest / mass.where(mass > 0, 1.0)).decision
        flips = (decision != base.decision) & ((k[:, None] < length) & ~gone)[..., None]
        at = torch.where(flips, k[:, None, None], most + 1).amin(0)
        first = torch.where((first == 0) & (at <= most), at, first)
        empty |= (gone & (k[:, None] < length)).any(0)
    fraction = torch.where(first > 0, first.to(view.weights.dtype) / length[:, None], 1.0)
    fraction = fraction.masked_fill(~base.unit_mask, torch.nan)
    return Erasure(fraction, (first == 0) & empty[:, None] & base.unit_mask)


def ranks(scores: Tensor, key_mask: Tensor) -> Tensor:
    """Return the place of each valid key by falling score, equal ones from left to right: [B, H, Q, T]."""
    last = scores.masked_fill(~key_mask[:, None, None], -torch.inf)
    return torch.argsort(torch.argsort(last, dim=-1, descending=True, stable=True), dim=-1, stable=True)


def _drawn(view: AttentionView, seed: int) -> Tensor:
    """Return random scores [B, H, Q, T]."""
    scores = np.zeros(view.weights.shape)
    for i, example in enumerate(view.examples):
        queries, keys = (mask[i].nonzero()[:, 0].cpu().numpy() for mask in (view.query_mask, view.key_mask))
        rng, heads = np.random.default_rng([seed, example]), np.arange(len(view.heads))
        scores[i][np.ix_(heads, queries, keys)] = rng.random((len(heads), len(queries), len(keys)))
    return torch.from_numpy(scores).to(view.weights.device)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """Return 0.5 sum_c |p_c - q_c| over the last axis. It is from 0 to 1."""
    return 0.5 * (p - q).abs().sum(-1)


def permutation_tvd(view: AttentionView, rounds: int = 100, seed: int = 0) -> Tensor:
    """Return the median over random permutations of TVD(outcome, outcome with permuted weights), [B, U].

    Each row of all heads is permuted among its valid keys. A text of one word has 0, so leave it out of statistics. A unit that
    is padding has nan.
    """
    base, step = view.predict(view.weights), max(1, MOST // view.weights.numel())
    streams = [np.random.default_rng([seed, example]) for example in view.examples]
    distances = []
    for start in range(0, rounds, step):
        permuted = permute(view, min(step, rounds - start), streams)
        distances.append(total_variation(view.predict(permuted).probs, base.probs))
    median = torch.cat(distances).quantile(0.5, dim=0)
    return median.masked_fill(~base.unit_mask, torch.nan)


def permute(view: AttentionView, size: int, streams: Sequence[np.random.Generator]) -> Tensor:
    """Permute each row of the weights among its valid keys, `size` times: [size, B, H, Q, T]. streams: one for each example."""
    b, h, q, t = view.weights.shape
    places = np.broadcast_to(np.arange(t), (size, b, h, q, t)).copy()
    counts, queries = view.key_mask.sum(-1).tolist(), view.query_mask.sum(-1).tolist()
    for i, stream in enumerate(streams):
        drawn = stream.random((size, h, queries[i], counts[i])).argsort(-1)
        places[:, i, :, view.query_mask[i].cpu().numpy(), : counts[i]] = np.moveaxis(drawn, 2, 0)
    order = torch.argsort(~view.key_mask, dim=-1, stable=True)  # valid keys first, from left to right
    source = order[:, None, None].expand(b, h, q, t)
    sorted_first = view.weights.gather(-1, source).expand(size, b, h, q, t)
    moved = sorted_first.gather(-1, torch.from_numpy(places).to(order.device))
    return torch.empty_like(moved).scatter_(-1, source.expand_as(moved), moved)


def ablate(view: AttentionView, mode: str = "uniform") -> Outcome:
    """Return the outcome of other weights. mode: "uniform": all equal; "context": all 0. Raises ValueError for others."""
    if mode not in MODES:
        raise ValueError(f"no ablation {mode!r}: give one of {', '.join(MODES)}")
    return view.predict(uniform(view) if mode == "uniform" else torch.zeros_like(view.weights))


def uniform(view: AttentionView) -> Tensor:
    """Return weights of 1/T on every valid key, [B, H, Q, T]."""
    valid = view.key_mask[:, None, None].to(view.weights.dtype)
    return (valid / valid.sum(-1, keepdim=True)).expand_as(view.weights)


def focus(weights: Tensor, position: Tensor, beta: float) -> Tensor:
    """Move a share beta of the attention to position [B]: (1 - beta) w + beta onehot. ValueError unless 0 <= beta <= 1."""
    if not 0 <= beta <= 1:
        raise ValueError(f"beta is {beta}; a share, from 0 to 1, is wanted")
    moved, index = weights * (1 - beta), position[:, None, None, None].expand(*weights.shape[:3], 1)
    return moved.scatter_add(-1, index, torch.full_like(moved[..., :1], beta))


def ask(view: AttentionView, rounds: int = 100, **labels) -> pd.DataFrame:
    """Measure the outcomes of other weights, in all heads together.

    They are permutation TVD, TVD under uniform attention, and erasure by attention and at random; erased_exhausted is 1 where
    no weight was left. labels: system, seed.
    """
    erased, at_random = erasure_flip(view, "attention"), erasure_flip(view, "random")
    base, even = view.predict(view.weights), ablate(view, mode="uniform")
    measures = {
        "tvd": permutation_tvd(view, rounds),
        "tvd_uniform": total_variation(base.probs, even.probs),
        "erased": erased.fraction,
        "erased_random": at_random.fraction,
        "erased_exhausted": erased.exhausted.double(),
    }
    tables = [tidy(value, "bu", name, view, base.unit_mask, **labels) for name, value in measures.items()]
    return pd.concat(tables, ignore_index=True)
