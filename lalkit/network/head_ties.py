"""Change in training what the label heads of the paper's layer stand for: tie them to labels, or push them apart.

Both are proposals of Mrini et al. 2020 that the paper leaves untried: the first in section 4.6, the second after its section 2.

Tied. For a gold span i, each head adds a vector a_i[h] = W1[:, h] s_i[h] to the first step of the span scorer (eq. 6). One
learned direction u turns each of these vectors into a number, and the heads M(y) of the span's label y must have the largest:

    z_i[h] = u . a_i[h]        loss = - sum_i log sum_{h in M(y_i)} softmax(z_i)[h]

A span vector is a difference of fenceposts, so one number for each fencepost and head, f_k[h] . (u W1[:, h]), is enough.

Apart. The loss is the mean, over pairs of different heads, of the squared cosine between their vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lalkit.network.encoder import xavier

LEAST = 20  # training spans of a label that gets a head of its own; rarer labels share the heads that are left [D]


class HeadTies(nn.Module):
    """Say which heads belong to which labels: `owned` [labels, heads], 1 or 0. The empty label and <H> have no head.

    kind: how labels get their heads.

    * fixed: the most frequent label has head 0, the next one head 1, and so on.
    * learned: after every epoch, the matching in which heads contribute most to their labels (Hungarian method). Contributions
      are those of the paper (section 4.5): the sums of slices, from 0 for the least head of a span to 1 for the greatest. The
      first epoch is without ties.
    * shuffled: as fixed, but dealt out anew before every epoch. A single deal would be no control, because all heads are alike
      before training.
    * random: as fixed, but dealt out anew in every batch, so that there is nothing to learn: the control. (Of `shuffled`, a
      training learns the deal of its last epoch.)
    """

    owned: Tensor
    sums: Tensor

    def __init__(self, kind: str, heads: int, hidden: int, labels: int):
        super().__init__()
        self.kind = kind
        self.direction = nn.Parameter(xavier(1, hidden)[0])  # u
        self.register_buffer("owned", torch.zeros(labels, heads))
        self.register_buffer("sums", torch.zeros(labels, heads), persistent=False)  # of contributions in this epoch

    def loss(
        self, posts: Float[Tensor, "b f h d"], first: Float[Tensor, "k hd"], spans: Sequence[Sequence[tuple]]
    ) -> Tensor:
        """Return the sum of the loss over gold spans (start, end, label) of each sentence. first: W1 of the span scorer."""
        rows = [(b, *span) for b, some in enumerate(spans) for span in some]
        b, i, j, label = torch.tensor(rows, dtype=torch.long, device=posts.device).view(-1, 4).T
        if self.kind == "learned":
            raw = posts.detach().float().sum(-1)
            raw = raw[b, j] - raw[b, i]
            low, high = raw.min(-1, keepdim=True).values, raw.max(-1, keepdim=True).values
            self.sums.index_add_(0, label, (raw - low) / (high - low).clamp(min=1e-12))
        each = torch.einsum("bfhd,hd->bfh", posts, (self.direction @ first).unflatten(0, posts.shape[2:])).float()
        owned = self.owned[:, torch.randperm(self.owned.shape[1])] if self.kind == "random" else self.owned
        z, own = each[b, j] - each[b, i], owned[label] > 0
        z, own = z[own.any(-1)], own[own.any(-1)]
        return (z.logsumexp(-1) - z.masked_fill(~own, -torch.inf).logsumexp(-1)).sum()

    def deal(self, counts: Sequence[int], epoch: int, add: Callable[[list], list] = list) -> None:
        """Give labels their heads for an epoch (0: the first).

        Args: counts: the training spans of every label, most frequent label first after the empty one and <H>. add: adds up
            numbers over the workers of a training.
        """
        heads = self.owned.shape[1]
        seen = [k for k in range(2, len(counts)) if counts[k]]
        own = [k for k in seen if counts[k] >= LEAST][: heads - 1]  # one head at least is left for the others
        columns = np.arange(len(own))
        if self.kind == "shuffled":
            columns = np.random.default_rng(epoch).permutation(columns)
        elif self.kind == "learned":
            from scipy.optimize import linear_sum_assignment  # here, because parsing needs no scipy

            sums = np.array(add(self.sums.flatten().tolist())).reshape(-1, heads)[own]
            columns = linear_sum_assignment(sums / np.array(counts)[own, None], maximize=True)[1]
            self.sums.zero_()
        owned = torch.zeros(self.owned.shape)
        if epoch or self.kind != "learned":
            owned[own, columns] = 1
            owned[seen[len(own) :]] = 1 - owned.sum(0)
        self.owned.copy_(owned)


def likeness(vectors: Float[Tensor, "... h d"]) -> Float[Tensor, "..."]:
    """Return the mean squared cosine of two different heads: 0 if all heads are orthogonal, 1 if all are parallel."""
    unit = F.normalize(vectors.float(), dim=-1)
    squares = (unit @ unit.mT).square()
    heads = squares.shape[-1]
    return (squares.sum((-1, -2)) - squares.diagonal(dim1=-2, dim2=-1).sum(-1)) / max(heads * (heads - 1), 1)
