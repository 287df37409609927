"""Heads tied to labels: an auxiliary loss that gives every label heads of its own, and the ways to say which."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

LEAST = 20  # spans: labels with fewer share the heads that are left


def label_tie_loss(logits: Tensor, labels: Tensor, owned: Tensor) -> Tensor:
    """The mean over spans of -log of the share of softmax(logits) that lies on heads of the span's label.

    logits [S, H]: u . a_l of span and head, u shared by all heads; labels [S]; owned [L, H] bool: which heads are whose. Spans
    of labels without heads (the empty label) are left out; 0 if none is left.
    """
    mine = owned[labels]
    tied = mine.any(-1)
    if not tied.any():
        return logits.sum() * 0
    logits, mine = logits[tied], mine[tied]
    return (logits.logsumexp(-1) - logits.masked_fill(~mine, -torch.inf).logsumexp(-1)).mean()


def tie_by_frequency(counts: Tensor, heads: int, empty: int | None = 0, least: int = LEAST) -> Tensor:
    """[L, H] bool: the most frequent label has head 0, the next head 1, and so on; labels that are rarer than `least`, but
    occur, share the heads that are left. counts [L]: spans of the training part; empty: the label that owns nothing. Raises
    ValueError for too few heads."""
    order = _frequent(counts, heads, empty, least)
    return _owned(counts, heads, empty, least, order, np.arange(len(order)))


def tie_by_contributions(contributions: Tensor, counts: Tensor, empty: int | None = 0, least: int = LEAST) -> Tensor:
    """As `tie_by_frequency`, but with the one-to-one assignment of frequent labels to heads in which the contributions [L, H]
    of heads to their labels have the largest sum: to be made again after every epoch, from the training part."""
    heads = contributions.shape[1]
    order = _frequent(counts, heads, empty, least)
    rows, columns = linear_sum_assignment(contributions[order].detach().cpu().numpy(), maximize=True)
    return _owned(counts, heads, empty, least, order[rows], columns)


def shuffled(owned: Tensor, seed: int = 0) -> Tensor:
    """The control: the same sets of heads, dealt out at random among the labels that have one."""
    rows = owned.any(-1).nonzero()[:, 0]
    found = owned.clone()
    found[rows] = owned[rows[torch.from_numpy(np.random.default_rng(seed).permutation(len(rows)))]]
    return found


def _rare(counts: Tensor, empty: int | None, least: int) -> Tensor:
    """[L] bool."""
    found = (counts > 0) & (counts < least)
    if empty is not None:
        found[empty] = False
    return found


def _frequent(counts: Tensor, heads: int, empty: int | None, least: int) -> np.ndarray:
    """Labels with spans enough, the most frequent first, equally frequent ones by number."""
    numbers, rare = counts.cpu().numpy(), bool(_rare(counts, empty, least).any())
    order = np.argsort(-numbers, kind="stable")
    order = order[(numbers[order] >= max(least, 1)) & (order != (-1 if empty is None else empty))]
    if len(order) + rare > heads:
        raise ValueError(f"{heads} heads for {len(order)} labels{' and the rare ones' * rare}: give a larger `least`")
    return order


def _owned(
    counts: Tensor, heads: int, empty: int | None, least: int, labels: np.ndarray, chosen: np.ndarray
) -> Tensor:  # fmt: skip
    found = torch.zeros(len(counts), heads, dtype=torch.bool)
    found[labels, chosen] = True
    found[_rare(counts, empty, least).cpu()] = ~found.any(0)
    return found.to(counts.device)
