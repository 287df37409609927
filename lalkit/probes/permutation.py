"""Does it matter which word has which weight? Weights permuted (Jain and Wallace 2019; Mohankumar et al. 2020, section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, chosen

MOST = 2**22  # numbers of a chunk of permuted weights
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
