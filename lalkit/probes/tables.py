"""Tensors of a probe -> a long table, one row a number: all systems' tables have the same columns and go into one figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.perturbation import ablate, erasure_flip, permutation_tvd, total_variation
from lalkit.probes.view import AttentionView
from lalkit.probes.weights import conicity, entropy, isotropic, pool_queries, pos_kl, sparsity

# The axes of a tensor and what their numbers are in the table.
AXES = {"b": "example", "h": "head", "q": "query", "u": "unit"}
COLUMNS = ("system", "seed", "measure", "example", "head", "query", "unit", "value")


def tidy(
    values: Tensor,
    axes: str,
    measure: str,
    view: AttentionView,
    units: Tensor | None = None,
    system: str = "",
    seed: int = 0,
) -> pd.DataFrame:
    """One row for every number that is there; columns as COLUMNS, those of axes that `values` lacks empty.

    axes: letters of b (example), h (head), q (query), u (unit), one for every axis of `values`. units [B, U]: those that are
    there (None: all). Padded queries and units are left out; nan stay: a measure that is not defined for an example is to be
    counted. Raises ValueError for other axes.
    """
    if values.dim() != len(axes) or not set(axes) <= set(AXES):
        raise ValueError(f"a tensor of {values.dim()} axes as {axes!r}: one of {', '.join(AXES)} for each")
    found = values.detach().cpu().numpy()
    there = np.ones(found.shape, dtype=bool)
    if "q" in axes:
        shape = [found.shape[i] if a in "bq" else 1 for i, a in enumerate(axes)]
        there &= view.query_mask.cpu().numpy().reshape(shape)
    if "u" in axes and units is not None:
        there &= units.cpu().numpy().reshape([found.shape[i] if a in "bu" else 1 for i, a in enumerate(axes)])
    index = np.argwhere(there)
    table = pd.DataFrame({"system": system, "seed": seed, "measure": measure}, index=range(len(index)))
    names = {"b": np.array(view.examples), "h": np.array(view.heads, dtype=object)}
    for letter, column in AXES.items():
        place = axes.find(letter)
        number = index[:, place] if place >= 0 else None
        table[column] = pd.NA if number is None else names[letter][number] if letter in names else number
    table["value"] = found[there]
    return table[list(COLUMNS)]


def look_at(view: AttentionView, tags: Tensor | None = None, size: int = 0, **labels) -> pd.DataFrame:
    """What heads look at: entropy, the largest weight, sparsity, conicity (signed and absolute) of what they mix, and, given
    tags [B, T] (-1: none) of so many kinds, POS-KL. labels: system, seed."""
    pooled = pool_queries(view.weights, view.query_mask, view.key_mask)
    measures = {
        "entropy": ("bhq", entropy(view.weights, view.query_mask)),
        "max_attention": ("bhq", view.weights.amax(-1)),
        "sparsity": ("h", sparsity(view.weights, view.key_mask, view.query_mask)),
        "conicity": ("bh", conicity(view.values, view.key_mask, absolute=True)),
        "conicity_signed": ("bh", conicity(view.values, view.key_mask)),
    }
    if tags is not None:
        measures["pos_kl"] = ("bh", pos_kl(pooled, tags, size))
    return pd.concat(
        [tidy(value, axes, name, view, **labels) for name, (axes, value) in measures.items()], ignore_index=True
    )


def ask(view: AttentionView, rounds: int = 100, draws: int = 0, **labels) -> pd.DataFrame:
    """What follows from other weights, all heads at once: permutation TVD, erasure by attention and at random with what was
    exhausted, TVD under uniform attention. draws: the seed of random numbers. labels: system, seed."""
    erased, at_random = erasure_flip(view, "attention"), erasure_flip(view, "random", seed=draws)
    base, even = view.predict(view.weights), ablate(view, mode="uniform")
    measures = {
        "tvd": permutation_tvd(view, rounds, seed=draws),
        "tvd_uniform": total_variation(base.probs, even.probs),
        "erased": erased.fraction,
        "erased_random": at_random.fraction,
        "erased_exhausted": erased.exhausted.double(),
    }
    return pd.concat(
        [tidy(value, "bu", name, view, base.unit_mask, **labels) for name, value in measures.items()], ignore_index=True
    )


def probe_all(
    view: AttentionView, rounds: int = 100, tags: Tensor | None = None, size: int = 0, **labels
) -> pd.DataFrame:
    """`look_at` and `ask`, with entropy_share (of the most that so many keys allow; nan for one key) and isotropic (the conicity
    of random directions) beside them: what systems of any kind and texts of any length can be compared by."""
    most = view.key_mask.sum(-1).double().log()
    share = entropy(view.weights, view.query_mask) / most.where(most > 0, torch.nan)[:, None, None]
    more = {"entropy_share": ("bhq", share), "isotropic": ("b", isotropic(view.key_mask))}
    parts = [tidy(value, axes, name, view, **labels) for name, (axes, value) in more.items()]
    return pd.concat([look_at(view, tags, size, **labels), ask(view, rounds, **labels), *parts], ignore_index=True)


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """One row per system: texts, heads, and every measure's mean over all that it was taken of; first over what belongs to one
    text, then over texts, so that long texts weigh no more than short ones. What is not defined is left out."""
    rows = []
    for system, some in table.groupby("system", sort=False):
        row = {"system": system, "texts": some["example"].nunique(), "heads": some["head"].nunique()}
        for measure, values in some.groupby("measure", sort=False):
            texts = values["example"].notna()
            means = values[texts].groupby(["seed", "example"])["value"].mean() if texts.any() else values["value"]
            row[measure] = means.mean()
        rows.append(row)
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame, by: tuple[str, ...] = ("system", "seed", "measure")) -> pd.DataFrame:
    """mean, std, low (first quartile), median, high, n, and n_nan: numbers that are not defined, left out of the others."""
    groups = table.groupby(list(by), sort=False)["value"]
    found = groups.agg(["mean", "std"])
    for name, q in (("low", 0.25), ("median", 0.5), ("high", 0.75)):
        found[name] = groups.quantile(q)
    found["n"] = groups.count()
    found["n_nan"] = groups.size() - found["n"]
    return found.reset_index()
