"""Long tables of probes, with one number in a row. Those of all systems have the same columns, so one figure can show them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lalkit.probes.perturbation import ablate, erasure_flip, permutation_tvd, total_variation
from lalkit.probes.view import AttentionView
from lalkit.probes.weights import conicity, entropy, isotropic, pool_queries, pos_kl, sparsity

# The letters of a tensor's axes, and their columns in the table.
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
    """Return a table with a row for every number, and the columns COLUMNS. Columns of axes that `values` lacks are empty.

    Args:
        values: The numbers of a measure.
        axes: A letter for every axis of `values`: b (example), h (head), q (query) or u (unit).
        measure: The name of the measure.
        view: Gives the names of heads and examples, and the valid queries.
        units: [B, U], True at valid units; None: all.

    Padded queries and units are left out. A nan stays, so that examples for which a measure is not defined can be counted. Raises
    ValueError for other axes.
    """
    if values.dim() != len(axes) or not set(axes) <= set(AXES):
        raise ValueError(f"a tensor of {values.dim()} axes as {axes!r}: one of {', '.join(AXES)} for each")
    numbers = values.detach().cpu().numpy()
    valid = np.ones(numbers.shape, dtype=bool)
    for letter, mask in (("q", view.query_mask), ("u", units)):
        if letter in axes and mask is not None:
            shape = [numbers.shape[i] if a in ("b", letter) else 1 for i, a in enumerate(axes)]
            valid &= mask.cpu().numpy().reshape(shape)
    index = np.argwhere(valid)
    table = pd.DataFrame({"system": system, "seed": seed, "measure": measure}, index=range(len(index)))
    names = {"b": np.array(view.examples), "h": np.array(view.heads, dtype=object)}
    for letter, column in AXES.items():
        place = axes.find(letter)
        number = index[:, place] if place >= 0 else None
        table[column] = pd.NA if number is None else names[letter][number] if letter in names else number
    table["value"] = numbers[valid]
    return table[list(COLUMNS)]


def look_at(view: AttentionView, tags: Tensor | None = None, size: int = 0, **labels) -> pd.DataFrame:
    """Measure what heads attend to: entropy, largest weight, sparsity, and conicity (signed and absolute) of what they mix.

    tags: [B, T], numbers below `size`, -1 for none; with them also POS-KL. labels: system, seed.
    """
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
    tables = [tidy(value, axes, name, view, **labels) for name, (axes, value) in measures.items()]
    return pd.concat(tables, ignore_index=True)


def ask(view: AttentionView, rounds: int = 100, **labels) -> pd.DataFrame:
    """Measure the outcomes of other weights, in all heads together.

    They are permutation TVD, TVD under uniform attention, and erasure by attention and at random; erased_exhausted tells where no
    weight was left. labels: system, seed.
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


def probe_all(
    view: AttentionView, rounds: int = 100, tags: Tensor | None = None, size: int = 0, **labels
) -> pd.DataFrame:
    """Return `look_at` and `ask` with two measures by which texts of any length can be compared.

    They are entropy_share (of the largest entropy of that number of keys; nan for one key), and isotropic (the conicity of random
    directions).
    """
    most = view.key_mask.sum(-1).double().log()
    share = entropy(view.weights, view.query_mask) / most.where(most > 0, torch.nan)[:, None, None]
    more = {"entropy_share": ("bhq", share), "isotropic": ("b", isotropic(view.key_mask))}
    parts = [tidy(value, axes, name, view, **labels) for name, (axes, value) in more.items()]
    return pd.concat([look_at(view, tags, size, **labels), ask(view, rounds, **labels), *parts], ignore_index=True)


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each system: numbers of texts and heads, and the mean of every measure.

    The mean is first over each text, then over texts, so that long texts count no more than short ones. nan is left out.
    """
    rows = []
    for system, group in table.groupby("system", sort=False):
        row = {"system": system, "texts": group["example"].nunique(), "heads": group["head"].nunique()}
        for measure, values in group.groupby("measure", sort=False):
            texts = values["example"].notna()
            means = values[texts].groupby(["seed", "example"])["value"].mean() if texts.any() else values["value"]
            row[measure] = means.mean()
        rows.append(row)
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame, by: tuple[str, ...] = ("system", "seed", "measure")) -> pd.DataFrame:
    """Return mean, std, low (first quartile), median, high and n of every group; and n_nan, the numbers that are not defined."""
    groups = table.groupby(list(by), sort=False)["value"]
    columns = groups.agg(["mean", "std"])
    for name, q in (("low", 0.25), ("median", 0.5), ("high", 0.75)):
        columns[name] = groups.quantile(q)
    columns["n"] = groups.count()
    columns["n_nan"] = groups.size() - columns["n"]
    return columns.reset_index()
