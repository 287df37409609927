"""Score spans (Mrini et al. 2020, eq. 5, 6), arcs (eq. 10), and arc labels for a given head (eq. 11)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lalkit.network.encoder import xavier

# Spans scored at a time. On a CPU they fit into its caches, so a long sentence needs no more memory than short ones.
CHUNK = {"cpu": 2048}
MOST = 2**20  # on other devices
# The tensors that `project` of a span scorer returns, and that its `chart` and `at` take. They differ between scorers.
Parts = tuple[Any, ...]


def fenceposts(y: Float[Tensor, "b t h d"], parts: tuple[int, int]) -> Float[Tensor, "b f h d"]:
    """Return the fenceposts f_k, k = 0..n ([P], section 3.2). f_k stands between the words k and k + 1.

    In each head's slice, f_k is the forward half of y[k] beside the backward half of y[k + 1]. The forward half holds the
    first half of the content and of the position, and the backward half the second halves (Kitaev and Klein 2018). parts:
    how many features of a slice are content, and how many position.
    """
    content, position = parts
    forward, backward, middles = y[:, :-1], y[:, 1:], ((content + 1) // 2, content + (position + 1) // 2)
    quarters = (
        forward[..., : middles[0]], forward[..., content : middles[1]],
        backward[..., middles[0] : content], backward[..., middles[1] :],
    )  # fmt: skip
    return torch.cat(quarters, dim=-1)


class SpanScorer(nn.Module):
    """S(i, j) = W2 ReLU(LN(W1 (f_j - f_i) + b1)) + b2. The empty label (index 0) scores 0.

    Fenceposts are projected before they are paired, W1 (f_j - f_i) = W1 f_j - W1 f_i, so that no [n, n, heads d] tensor is
    needed. All spans of a sentence share one dropout mask [D], so that a few of them can be scored again with gradients.
    """

    def __init__(self, features: int, hidden: int, labels: int, dropout: float):
        super().__init__()
        self.first = nn.Linear(features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, labels - 1)
        self.dropout = nn.Dropout(dropout)

    def project(self, posts: Float[Tensor, "b f h d"]) -> Parts:
        """Return (W1 f of every fencepost, a dropout mask for every sentence or None)."""
        projected = self.first(posts.flatten(-2))
        dropping = self.training and self.dropout.p > 0
        return projected, self.dropout(torch.ones_like(projected[:, 0])) if dropping else None

    def chart(self, parts: Parts, lengths: Int[Tensor, "b"] | None = None) -> Float[Tensor, "b f f l"]:
        """Return the scores of all spans; 0 where i >= j and, with lengths, beyond the end of a sentence."""
        projected, kept = parts
        size = projected.shape[1]
        starts, ends = projected.flatten(0, 1), (projected + self.bias).flatten(0, 1)
        scores = projected.new_zeros(len(starts) * size, self.second.out_features + 1, dtype=at_least_float(projected))
        step = CHUNK.get(projected.device.type, MOST)
        inside = lengths if projected.device.type in CHUNK else None  # a GPU would wait for the number of spans
        spans = (part.split(step) for part in all_spans(len(projected), size, inside, projected.device))
        for b, i, j in zip(*spans):
            hidden = torch.relu(self.norm(ends.index_select(0, b * size + j) - starts.index_select(0, b * size + i)))
            labels = self.second(hidden if kept is None else hidden * kept.index_select(0, b))
            scores[(b * size + i) * size + j, 1:] = labels.to(scores.dtype)
        scores = scores.view(len(projected), size, size, -1)
        return scores if inside is not None else without_padding(scores, lengths)

    def at(self, parts: Parts, b: Tensor, i: Tensor, j: Tensor, label: Tensor) -> Float[Tensor, "m"]:
        """Return the scores of m spans (sentence b, start i, end j), each for one label: the same as in the chart."""
        projected, kept = parts
        hidden = torch.relu(self.norm(projected[b, j] - projected[b, i] + self.bias))
        hidden = hidden if kept is None else hidden * kept[b]
        index = label.clamp(min=1) - 1
        scores = (hidden * self.second.weight[index]).sum(-1) + self.second.bias[index]
        return scores.to(at_least_float(scores)).masked_fill(label == 0, 0.0)


def without_padding(scores: Float[Tensor, "b f f l"], lengths: Int[Tensor, "b"] | None) -> Float[Tensor, "b f f l"]:
    """Return the scores of all spans with 0 beyond the end of each sentence."""
    if lengths is None:
        return scores
    beyond = torch.arange(scores.shape[1], device=scores.device) > lengths[:, None]
    return scores.masked_fill(beyond[:, None, :, None] | beyond[:, :, None, None], 0.0)


def at_least_float(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def all_spans(count: int, size: int, lengths: Tensor | None, device) -> tuple[Tensor, Tensor, Tensor]:
    """Return (sentence, start, end) of every span over `size` fenceposts; with lengths, only those inside its sentence."""
    i, j = torch.triu_indices(size, size, 1, device=device)
    if lengths is None or bool((lengths == size - 1).all()):
        sentence = torch.arange(count, device=device)
        return sentence.repeat_interleave(len(i)), i.repeat(count), j.repeat(count)
    sentence, span = (j[None] <= lengths[:, None]).nonzero(as_tuple=True)
    return sentence, i[span], j[span]


class ArcScorer(nn.Module):
    """Biaffine scores of arcs, and of arc labels given the dependent *and* its head. START stands for the root.

    Biaffine: a product of the dependent's vector, a matrix and the head's vector, with a 1 added to the vectors.
    """

    def __init__(self, features: int, hidden: int, label_hidden: int, labels: int, dropout: float):
        super().__init__()
        self.sizes = hidden, hidden, label_hidden, label_hidden
        self.project = nn.Linear(features, sum(self.sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in self.sizes)
        self.arc = nn.Parameter(xavier(hidden + 1, hidden))  # the row for the added 1 scores the head alone
        self.label = nn.Parameter(xavier(max(labels, 1), label_hidden + 1, label_hidden + 1))
        self.dropout = nn.Dropout(dropout)

    def parts(self, words: Float[Tensor, "b t f"]) -> list[Tensor]:
        """Return four vectors [B, T, hidden] of every position: as dependent and as head of an arc, and the same for labels."""
        split = self.project(words).split(self.sizes, dim=-1)
        return [self.dropout(torch.relu(norm(part))) for norm, part in zip(self.norms, split)]

    def arcs(self, parts: list[Tensor]) -> Float[Tensor, "b n m"]:
        """Return [B, N, N + 1]: dependent by head; column 0 is the root. The caller excludes a word as its own head."""
        dependents, heads = with_one(parts[0][:, 1:-1]), parts[1][:, :-1]
        return torch.einsum("bdk,kl,bhl->bdh", dependents, self.arc, heads).float() / heads.shape[-1] ** 0.5

    def labels(self, parts: list[Tensor], heads: Int[Tensor, "b n"]) -> Float[Tensor, "b n a"]:
        """Return the logits of P(l | d, h), [B, N, arc labels], of each word with the given head (1-based, 0 = root)."""
        dependents = with_one(parts[2][:, 1:-1])
        chosen = with_one(parts[3].gather(1, heads.clamp(min=0)[..., None].expand(-1, -1, parts[3].shape[-1])))
        return torch.einsum("bnk,akl,bnl->bna", dependents, self.label, chosen).float()


def with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
