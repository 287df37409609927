"""The input of every probe: attention weights, the vectors that they mix, and a function from other weights to the outcome.

`linear_view` is the smallest system with attention, for examples with a known answer. `tidy` makes long tables of the measures of
probes, with one number in a row. The tables of all systems have the same columns, so one figure can show them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

# The letters of a tensor's axes, and their columns in the table.
AXES = {"b": "example", "h": "head", "q": "query", "u": "unit"}
COLUMNS = ("system", "seed", "measure", "example", "head", "query", "unit", "value")


class Outcome(NamedTuple):
    """The decisions of a system for U units: one unit for a text, or one for each step, span or word.

    probs [..., B, U, C]; unit_mask [B, U]; decision [..., B, U]; score [..., B, S]: counts that add up over examples, such as
    (right, 1) or (matched, gold, predicted).
    """

    probs: Tensor
    unit_mask: Tensor
    decision: Tensor
    score: Tensor | None = None


@dataclass(frozen=True)
class AttentionView:
    """One attention of one system on a batch of B examples: H heads, Q queries, T keys, vectors of size D.

    Args:
        weights: [B, H, Q, T]. Rows sum to 1 over valid keys, and are 0 elsewhere.
        values: [B, H, T, D], the vectors that the weights mix.
        key_mask: [B, T], True where a key may be attended to.
        query_mask: [B, Q], True where there is a query.
        heads: The names of the H heads.
        examples: The number of each example in its data. Random draws depend on it alone, so they are the same for an example
            alone and in any batch.
        from_contexts: A function of the contexts, weights @ values: [..., B, H, Q, D] -> Outcome. None: give `predict`.
        predict: Weights [B, H, Q, T] or [K, B, H, Q, T] -> Outcome. None: the weights mix the values, and the outcome depends on
            these contexts alone.

    Raises:
        ValueError: An example has weight on padding, or no valid key.
    """

    weights: Tensor
    values: Tensor
    key_mask: Tensor
    query_mask: Tensor
    heads: Sequence[str]
    examples: Sequence[int] = ()
    from_contexts: Callable[[Tensor], Outcome] | None = field(default=None, repr=False)
    predict: Callable[[Tensor], Outcome] = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self):
        empty = ~self.key_mask.any(-1)
        if empty.any():
            raise ValueError(f"example {int(empty.nonzero()[0])} has nothing to attend to: all of it is padding")
        outside = (self.weights * ~self.key_mask[:, None, None]).abs().sum(-1)
        outside = outside.masked_fill(~self.query_mask[:, None], 0).amax((1, 2))
        if (outside > 1e-6).any():
            raise ValueError(f"example {int(outside.argmax())} attends to padding: {float(outside.max()):.3g} of 1")
        examples = self.examples or tuple(range(len(self.weights)))
        vars(self).update(examples=examples, predict=self.predict or self._mixed)

    def _mixed(self, weights: Tensor) -> Outcome:
        return self.from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", weights.to(self.values.dtype), self.values))


def judged(probs: Tensor, unit_mask: Tensor, right: Tensor) -> Outcome:
    """Return the outcome that decides for the most probable class. Its score counts the right decisions, and all.

    probs [..., B, U, C]; unit_mask [B, U]; right [B, U]: the right classes.
    """
    decision = probs.argmax(-1)
    correct = ((decision == right) & unit_mask).sum(-1).double()
    return Outcome(probs, unit_mask, decision, torch.stack([correct, unit_mask.sum(-1).expand_as(correct)], dim=-1))


def linear_view(weights: Tensor, values: Tensor, read: Tensor) -> AttentionView:
    """Return a view with one decision for each query: the contexts of all heads side by side, a matrix, a softmax.

    weights [B, H, Q, T], values [B, H, T, D], read [H D, C]. All keys are valid. Raises ValueError as
    `AttentionView` does.
    """
    b, _, q, t = weights.shape
    keys = torch.ones(b, t, dtype=torch.bool, device=weights.device)
    queries = torch.ones(b, q, dtype=torch.bool, device=weights.device)

    def from_contexts(contexts: Tensor) -> Outcome:
        probs = torch.softmax(contexts.transpose(-3, -2).flatten(-2) @ read, dim=-1)
        return Outcome(probs, queries, probs.argmax(-1))

    heads = [f"head {h}" for h in range(weights.shape[1])]
    return AttentionView(weights, values, keys, queries, heads, (), from_contexts)


def tidy(
    values: Tensor, axes: str, measure: str, view: AttentionView, units: Tensor | None = None, **labels
) -> pd.DataFrame:
    """Return a table with a row for every number, and the columns COLUMNS. Columns of axes that `values` lacks are empty.

    Args:
        values: The numbers of a measure.
        axes: A letter for every axis of `values`: b (example), h (head), q (query) or u (unit).
        measure: The name of the measure.
        view: Gives the names of heads and examples, and the valid queries.
        units: [B, U], True at valid units; None: all.
        labels: system, seed.

    Padded queries and units are left out. A nan stays, so that examples for which a measure is not defined can be counted.
    """
    numbers = values.detach().cpu().numpy()
    valid = np.ones(numbers.shape, dtype=bool)
    for letter, mask in (("q", view.query_mask), ("u", units)):
        if letter in axes and mask is not None:
            shape = [numbers.shape[i] if a in ("b", letter) else 1 for i, a in enumerate(axes)]
            valid &= mask.cpu().numpy().reshape(shape)
    places = dict(zip(axes, np.nonzero(valid), strict=True))
    names = {"b": np.array(view.examples), "h": np.array(view.heads, dtype=object)}
    columns = {"system": "", "seed": 0, **labels, "measure": measure, "value": numbers[valid]}
    for letter, column in AXES.items():
        place = places.get(letter)
        columns[column] = pd.NA if place is None else names[letter][place] if letter in names else place
    return pd.DataFrame(columns, columns=list(COLUMNS))
