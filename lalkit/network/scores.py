"""Scores of spans (eq. 5, 6), arcs (eq. 10) and arc labels given the head (eq. 11)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lalkit.network.encoder import xavier

# Spans scored at a time: on a CPU what caches hold, so that a long sentence takes no more memory than short ones.
CHUNK = {"cpu": 2048}
MOST = 2**20  # elsewhere


def fenceposts(y: Float[Tensor, "b t h d"], parts: tuple[int, int]) -> Float[Tensor, "b f h d"]:
    """f_k = forward half of y_h[k], backward half of y_h[k + 1], within each head's slice; k = 0..n ([P], section 3.2).

    parts: how many features of a slice are content and how many position. Each half holds the first, or the second, half of
    either (Kitaev and Klein 2018), which halves of the slice as it lies would not.
    """
    return _Fenceposts.apply(y, parts)


class _Fenceposts(torch.autograd.Function):
    """One copy in either pass; autograd's own would fill and add several tensors of y's size on the way back."""

    @staticmethod
    def forward(ctx, y: Tensor, parts: tuple[int, int]) -> Tensor:
        ctx.parts = parts
        b, t, h, d = y.shape
        posts = y.new_empty(b, t - 1, h, d)
        for words, features, place in quarters(parts):
            posts[..., place] = y[:, words, :, features]
        return posts

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        b, f, h, d = grad.shape
        y = grad.new_empty(b, f + 1, h, d)
        for words, features, place in quarters(ctx.parts):
            y[:, words, :, features] = grad[..., place]
            y[:, -1 if words.start is None else 0, :, features] = 0  # the word that this half is not taken from
        return y, None


def quarters(parts: tuple[int, int]) -> list[tuple[slice, slice, slice]]:
    """(words, features of y, features of the fencepost): the four quarters that make it."""
    content, position = parts
    forward, backward = slice(None, -1), slice(1, None)
    middles = (content + 1) // 2, content + (position + 1) // 2
    four = [
        (forward, 0, middles[0]), (forward, content, middles[1]),
        (backward, middles[0], content), (backward, middles[1], content + position),
    ]  # fmt: skip
    found, place = [], 0
    for words, start, stop in four:
        found.append((words, slice(start, stop), slice(place, place + stop - start)))
        place += stop - start
    return found


class SpanScorer(nn.Module):
    """S(i, j) = W2 ReLU(LN(W1 (f_j - f_i) + b1)) + b2; the empty label (index 0) scores 0.

    Fenceposts are projected before they are paired: W1 s_ij = W1 f_j - W1 f_i, so no [n, n, heads d] tensor is formed. A
    sentence's spans share one dropout mask [D], so that a few spans of a chart can be scored again, with gradients.
    """

    def __init__(self, features: int, hidden: int, labels: int, dropout: float):
        super().__init__()
        self.first = nn.Linear(features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, labels - 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, posts: Float[Tensor, "b f h d"], lengths: Int[Tensor, "b"] | None = None
    ) -> Float[Tensor, "b f f l"]:
        return self.chart(*self.project(posts), lengths)

    def project(self, posts: Float[Tensor, "b f h d"]) -> tuple[Float[Tensor, "b f k"], Float[Tensor, "b k"] | None]:
        """(W1 f of every fencepost, in training a dropout mask for every sentence)."""
        projected = self.first(posts.flatten(-2))
        dropping = self.training and self.dropout.p > 0
        return projected, self.dropout(torch.ones_like(projected[:, 0])) if dropping else None

    def chart(
        self,
        projected: Float[Tensor, "b f k"],
        kept: Float[Tensor, "b k"] | None,
        lengths: Int[Tensor, "b"] | None = None,
    ) -> Float[Tensor, "b f f l"]:
        """The scores of all spans; 0 where i >= j, and beyond a sentence's length where lengths are given."""
        size = projected.shape[1]
        starts, ends = projected.flatten(0, 1), (projected + self.bias).flatten(0, 1)
        scores = projected.new_zeros(len(starts) * size, self.second.out_features + 1, dtype=_at_least_float(projected))
        step = CHUNK.get(projected.device.type, MOST)
        spans = (part.split(step) for part in all_spans(len(projected), size, lengths, projected.device))
        for b, i, j in zip(*spans):
            hidden = torch.relu(self.norm(ends.index_select(0, b * size + j) - starts.index_select(0, b * size + i)))
            found = self.second(hidden if kept is None else hidden * kept.index_select(0, b))
            scores[(b * size + i) * size + j, 1:] = found.to(scores.dtype)
        return scores.view(len(projected), size, size, -1)

    def at(
        self, projected: Float[Tensor, "b f k"], kept: Float[Tensor, "b k"] | None, b: Tensor, i: Tensor, j: Tensor,
        label: Tensor,
    ) -> Float[Tensor, "m"]:  # fmt: skip
        """The scores of m spans (sentence, start, end), each for one label: those the chart has there."""
        hidden = torch.relu(self.norm(projected[b, j] - projected[b, i] + self.bias))
        hidden = hidden if kept is None else hidden * kept[b]
        index = label.clamp(min=1) - 1
        found = (hidden * self.second.weight[index]).sum(-1) + self.second.bias[index]
        return found.to(_at_least_float(found)).masked_fill(label == 0, 0.0)


def _at_least_float(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def all_spans(count: int, size: int, lengths: Tensor | None, device) -> tuple[Tensor, Tensor, Tensor]:
    """(sentence, start, end) of every span over `size` fenceposts, or over the fenceposts of each sentence's own length."""
    i, j = torch.triu_indices(size, size, 1, device=device)
    if lengths is None or bool((lengths == size - 1).all()):
        sentence = torch.arange(count, device=device)
        return sentence.repeat_interleave(len(i)), i.repeat(count), j.repeat(count)
    sentence, span = (j[None] <= lengths[:, None]).nonzero(as_tuple=True)
    return sentence, i[span], j[span]


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
