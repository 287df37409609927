"""Scores of spans (eq. 5, 6), arcs (eq. 10) and arc labels given the head (eq. 11)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lalkit.model.partitioned import xavier


def fenceposts(y: Float[Tensor, "b t h d"]) -> Float[Tensor, "b f h d"]:
    """f_k = forward half of y_h[k], backward half of y_h[k + 1], within each head's slice; k = 0..n ([P], section 3.2).

    The halves are the even and the odd features: each then holds content and position (Kitaev and Klein 2018), which
    the first and the second half of a partitioned vector would not.
    """
    return torch.cat([y[:, :-1, :, 0::2], y[:, 1:, :, 1::2]], dim=-1)


class SpanScorer(nn.Module):
    """S(i, j) = W2 ReLU(LN(W1 (f_j - f_i) + b1)) + b2; the empty label (index 0) scores 0.

    Fenceposts are projected before they are paired: W1 s_ij = W1 f_j - W1 f_i, so no [n, n, heads d] tensor is formed.
    """

    def __init__(self, features: int, hidden: int, labels: int, dropout: float):
        super().__init__()
        self.first = nn.Linear(features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, labels - 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, posts: Float[Tensor, "b f h d"]) -> Float[Tensor, "b f f l"]:
        projected = self.first(posts.flatten(-2))
        size = projected.shape[1]
        i, j = torch.triu_indices(size, size, 1, device=posts.device)
        spans = projected[:, j] - projected[:, i] + self.bias
        found = self.second(self.dropout(torch.relu(self.norm(spans)))).float()
        scores = found.new_zeros(len(posts), size, size, found.shape[-1] + 1)
        scores[:, i, j, 1:] = found
        return scores


class ArcScorer(nn.Module):
    """Biaffine scores of arcs, and of arc labels given dependent *and* head. START stands for the root."""

    def __init__(self, features: int, hidden: int, label_hidden: int, labels: int, dropout: float):
        super().__init__()
        self.sizes = hidden, hidden, label_hidden, label_hidden
        self.project = nn.Linear(features, sum(self.sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in self.sizes)
        self.arc = nn.Parameter(xavier(hidden + 1, hidden))  # the row of ones scores the head alone
        self.label = nn.Parameter(xavier(max(labels, 1), label_hidden + 1, label_hidden + 1))
        self.dropout = nn.Dropout(dropout)

    def parts(self, words: Float[Tensor, "b t f"]) -> list[Tensor]:
        """Arc dependent, arc head, label dependent, label head of every position: [B, T, hidden] each."""
        split = self.project(words).split(self.sizes, dim=-1)
        return [self.dropout(torch.relu(norm(part))) for norm, part in zip(self.norms, split)]

    def arcs(self, parts: list[Tensor]) -> Float[Tensor, "b n m"]:
        """[B, N, N + 1]: dependent word by head (column 0 the root). A word is not its own head: the caller decides."""
        dependents, heads = _with_one(parts[0][:, 1:-1]), parts[1][:, :-1]
        return torch.einsum("bdk,kl,bhl->bdh", dependents, self.arc, heads).float() / heads.shape[-1] ** 0.5

    def labels(self, parts: list[Tensor], heads: Int[Tensor, "b n"]) -> Float[Tensor, "b n a"]:
        """[B, N, arc labels] for each word under the given head (1-based, 0 = root): P(l | d, h) before the softmax."""
        dependents = _with_one(parts[2][:, 1:-1])
        chosen = _with_one(parts[3].gather(1, heads.clamp(min=0)[..., None].expand(-1, -1, parts[3].shape[-1])))
        return torch.einsum("bnk,akl,bnl->bna", dependents, self.label, chosen).float()


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
