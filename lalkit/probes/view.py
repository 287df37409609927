"""What every probe is given: attention weights, what they mix, and the means to ask what would follow from other weights.

The smallest system with attention: heads' contexts side by side, a matrix, a softmax. For examples whose answer is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Outcome:
    """What a system says, for every unit that it decides: U a sentence; for other systems steps, spans, words.

    probs [..., B, U, C]; unit_mask [B, U]; decision [..., B, U]; score [..., B, S] counts that add up over examples, such
    as (right, 1) or (matched, gold, predicted).
    """

    probs: Tensor
    unit_mask: Tensor
    decision: Tensor
    score: Tensor | None = None


@dataclass(frozen=True)
class AttentionView:
    """One attention of one system on a batch of B examples: H heads, Q queries, T keys, vectors of size D.

    weights [B, H, Q, T], rows summing to 1 over valid keys, 0 elsewhere; values [B, H, T, D], what they mix; key_mask [B, T]
    (True: may be attended to); query_mask [B, Q]; heads: H names. predict: weights [B, H, Q, T] or [K, B, H, Q, T] ->
    Outcome. examples: the number of each example in its data; random draws depend on it and on nothing else, so that an
    example's are the same alone and in any batch.

    Where a system has them: from_contexts, as predict but from contexts [..., B, H, Q, D] in place of weights @ values; and
    without_slices: heads -> Outcome with what these heads contribute taken out, attention or not (section 3.3).

    Raises ValueError where the shapes do not fit, or an example has weight on padding or no valid key.
    """

    weights: Tensor
    values: Tensor
    key_mask: Tensor
    query_mask: Tensor
    heads: Sequence[str]
    predict: Callable[[Tensor], Outcome] = field(repr=False)
    examples: Sequence[int] = ()
    from_contexts: Callable[[Tensor], Outcome] | None = field(default=None, repr=False)
    without_slices: Callable[[Sequence[int]], Outcome] | None = field(default=None, repr=False)

    def __post_init__(self):
        b, h, q, t = self.weights.shape
        shapes = {"values": self.values.shape[:3], "key_mask": self.key_mask.shape, "query_mask": self.query_mask.shape}
        wanted = {"values": (b, h, t), "key_mask": (b, t), "query_mask": (b, q)}
        wrong = [name for name in wanted if tuple(shapes[name]) != wanted[name]]
        if wrong or len(self.heads) != h or len(self.examples) not in (0, b):
            raise ValueError(f"weights {(b, h, q, t)} do not fit {wrong or 'the names of heads or examples'}")
        empty = ~self.key_mask.any(-1)
        if empty.any():
            raise ValueError(f"example {int(empty.nonzero()[0])} has nothing to attend to: all of it is padding")
        outside = (self.weights * ~self.key_mask[:, None, None]).abs().sum(-1)
        outside = outside.masked_fill(~self.query_mask[:, None], 0).amax((1, 2))
        if (outside > 1e-6).any():
            raise ValueError(f"example {int(outside.argmax())} attends to padding: {float(outside.max()):.3g} of 1")
        if not self.examples:
            object.__setattr__(self, "examples", tuple(range(b)))

    @property
    def rows(self) -> Tensor:
        """[B, 1, Q, T]: the weights that count."""
        return self.key_mask[:, None, None] & self.query_mask[:, None, :, None]


def chosen(view: AttentionView, heads: int | Sequence[int] | None) -> Tensor:
    """[1, H, 1, 1], True at the heads that are meant; None: all. Raises ValueError for a head there is not."""
    count = len(view.heads)
    indices = list(range(count)) if heads is None else [heads] if isinstance(heads, int) else list(heads)
    if any(not 0 <= h < count for h in indices):
        raise ValueError(f"heads {indices} of {count}")
    found = torch.zeros(count, dtype=torch.bool, device=view.weights.device)
    found[indices] = True
    return found[None, :, None, None]


def linear_view(weights: Tensor, values: Tensor, read: Tensor, key_mask: Tensor | None = None) -> AttentionView:
    """weights [B, H, Q, T], values [B, H, T, D], read [H D, C] -> a view that decides once for each query: U = Q.

    key_mask [B, T]: by default every key is there. Raises ValueError as AttentionView does.
    """
    b, _, q, t = weights.shape
    keys = torch.ones(b, t, dtype=torch.bool) if key_mask is None else key_mask
    queries = torch.ones(b, q, dtype=torch.bool)

    def from_contexts(contexts: Tensor) -> Outcome:
        probs = torch.softmax(contexts.transpose(-3, -2).flatten(-2) @ read, dim=-1)
        return Outcome(probs, queries, probs.argmax(-1))

    def predict(given: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", given, values))

    heads = [f"head {h}" for h in range(weights.shape[1])]
    return AttentionView(weights, values, keys, queries, heads, predict, (), from_contexts)
