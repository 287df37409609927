"""The Label Attention Layer (Mrini et al. 2020, eq. 1-4): every label head has one learned query and stands for labels.

The equations of label head h, for the word vectors X of a sentence:

    K_h = W^K_h X    a_h = softmax(q_h . K_h / sqrt(d_kv))    V_h = W^V_h X    c_h = a_h V_h          (eq. 1-4)
    y_h[t] = LN(R (x_t + P c_h))                              heads side by side: [T, heads, d_out]

How they are computed here, "folded", with the same results:

* The query does not depend on the input. So u_h = W^K_h^T q_h is formed first, and the logits are X u_h.
* The layer attends first and projects once: z_h = a_h X, then c_h = W^V_h z_h.
* R is linear: R (x_t + P c_h) = R x_t + R P c_h. The product R P is formed first, unless dropout stands between R and P.
  P has two blocks, content and position. If R reads the whole vector, R P has one product for each block, and they are added.
* In parsing, u_h and R P W^V_h are kept from batch to batch (`cached`).

Tests compare outputs and gradients with the equations. A query matrix (an ablation) makes a_h a [T, T] map, which cannot be
folded.

Two forms of it have a name here. *The paper's layer*: K, V and P keep content and position apart, and R reads both, as in the
released program. *The layer in halves* (`partition: all`): R keeps them apart, too, so only half of the numbers of y can hold
content.
Either may have a feed-forward after it (`lalkit.network.parser.FeedForward`).

Departures from the released program: logits are divided by sqrt(d_kv), not by sqrt(d_model). Head h of every sentence uses
query h; in the program, head h of sentence b of a batch of B sentences used query (h B + b) mod heads. The scores of arcs read
words; in the program they read fenceposts.

Seven smaller ones, also around the layer:

1. The four maps before the scores of arcs and arc labels have a layer norm; in the program they have none.
2. Scores of arcs are divided by sqrt(arc_hidden); in the program they are not.
3. These maps have the dropout of the whole network (0.2), on their output; the program has 0.33, on their input.
4. The scores of spans have dropout, too; the program has none there.
5. A norm adds 1e-5 to the variance; the program adds 1e-3 to the standard deviation.
6. Dropout draws a mask for every word; the program has one mask for all words of a sentence. (Ours has one, too, for P c_h and
   for spans.)
7. The arc labels' hidden size of 250 is the program's; the paper does not state it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from entmax import entmax15, sparsemax
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lalkit.config import LabelAttentionConfig, from_dict
from lalkit.network.encoder import HookedModule, PartitionedLinear, block_einsum, halve, xavier
from lalkit.network.residual_norm import residual_norm

ATTENTION_DROPOUT = 0.2  # [R]
NORMALISERS = {"softmax": torch.softmax, "entmax15": entmax15, "sparsemax": sparsemax}
NORMALISERS["uniform"] = lambda scores, dim: torch.softmax(scores.clamp(max=OUTSIDE / 2), dim)  # the same for all words
# The logit of padding. Its attention is exactly 0 under every normaliser. With -inf instead, a row of padding would have no
# sparsemax, and its softmax would be NaN.
OUTSIDE = -1e9


def normalise(scores: Tensor, mask: Tensor, kind: str = "softmax") -> Tensor:
    """Turn scores into attention over the last axis: softmax, its sparse relatives, or uniform; 0 where mask is False.

    Sources: Martins and Astudillo 2016 (sparsemax), Peters et al. 2019 (entmax). Raises ValueError for an unknown kind.
    """
    if kind not in NORMALISERS:
        raise ValueError(f"no normaliser {kind!r}: {', '.join(NORMALISERS)}")
    return NORMALISERS[kind](scores.masked_fill(~mask, OUTSIDE), dim=-1) * mask


Blocks = list[Tensor]  # the matrix of content and the matrix of position; or one matrix of both


@dataclass(frozen=True)
class Masks:
    """Dropout masks, already scaled by 1 / (1 - p). None: no dropout.

    attention: [B, H, T]; for a query matrix [B, H, T, T]. residual: for P c_h, one mask per sentence and head, the same for
    all words: [B, H, d_model]; [B, 1, d_model] if one matrix projects all heads together.
    """

    attention: Tensor | None = None
    residual: Tensor | None = None


class LabelAttention(HookedModule):
    """Compute label attention: x [B, T, d_content + d_position], mask [B, T] (True at words) -> (y, attention).

    >>> layer = lalkit.LabelAttention({"heads": 5, "d_out": 16}, 32, 32)
    >>> y, attention = layer(torch.zeros(1, 7, 64), torch.ones(1, 7, dtype=torch.bool))
    >>> y.shape, attention.shape
    (torch.Size([1, 7, 5, 16]), torch.Size([1, 5, 7]))

    y: [B, T, H, d_out]; with combine='project' [B, T, 1, d_model]. attention: [B, H, T], the weight of each word in the
    context of head h; with query='matrix' [B, H, T, T], one row for every word. Padding gets no attention.

    In evaluation without gradients, products of weights are computed once and kept until a weight changes. Change weights
    in place under `torch.no_grad()`: the layer does not notice a change through `.data`.

    Hook points: attention(attention, mask) -> attention, before dropout; contexts(contexts [B, H, d_kv]) -> contexts;
    output(y, attention) -> y.
    """

    points = {"attention": "batch head position", "contexts": "batch head dim", "output": "batch position head dim"}
    query: Any  # a parameter; with query='matrix' a `PartitionedLinear`

    def __init__(self, config: LabelAttentionConfig | dict, d_content: int, d_position: int):
        super().__init__()
        config = from_dict(LabelAttentionConfig, config, "settings") if isinstance(config, dict) else config
        self.config, heads = config, config.heads
        self.sizes, undivided = (d_content, d_position), (d_content + d_position,)
        halves = self.sizes, halve(config.d_kv)
        d_model, self.inner = (undivided, (config.d_kv,)) if config.partition == "none" else halves
        self.whole = config.partition != "all"  # R reads the whole vector
        self.key, self.value = (PartitionedLinear(d_model, self.inner, heads) for _ in range(2))
        if config.query == "vector":
            self.query = nn.Parameter(xavier(heads, config.d_kv))
        else:
            self.query = PartitionedLinear(d_model, self.inner, heads)
        copies = None if config.shared else heads
        if config.combine == "concat":
            self.project = PartitionedLinear(self.inner, d_model, copies)  # P
            d_in, d_out = (undivided, (config.d_out,)) if self.whole else (d_model, halve(config.d_out))
            self.reduce = PartitionedLinear(d_in, d_out, copies)  # R
            shape = (config.d_out,) if config.shared else (heads, config.d_out)
        else:
            self.project = PartitionedLinear(tuple(heads * size for size in self.inner), d_model)
            shape = undivided
        self.gain, self.offset = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.folds = config.query == "vector" and config.combine == "concat" and config.shared
        self._cached: tuple[tuple, Tensor, Blocks, list[Tensor]] | None = None

    @property
    def d_out(self) -> tuple[int, tuple[int, int]]:
        """The sizes of the output's last two axes: (heads, (content, position))."""
        return (self.config.heads, halve(self.config.d_out)) if self.config.combine == "concat" else (1, self.sizes)

    def forward(
        self, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"], dropout: Masks | None = None
    ) -> tuple[Tensor, Tensor]:
        """dropout: the masks to use. By default they are drawn in training, and there are none in evaluation."""
        hooks = self.hooks
        inside_hooked = "attention" in hooks or "contexts" in hooks
        if self.folds and dropout is None and not (self.training or torch.is_grad_enabled() or inside_hooked):
            y, attention = self._infer(x, mask)
        else:
            dropout = dropout or (self.draw(x) if self.training else Masks())
            attention = self.hook("attention", self.attend(x, mask), mask)
            kept = attention if dropout.attention is None else attention * dropout.attention
            y = self.combine(x, self.hook("contexts", self.contexts(x, kept)), dropout.residual)
        return self.hook("output", y, attention), attention

    def _infer(self, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> tuple[Tensor, Tensor]:
        """Do the same as `forward` with the cached products of weights."""
        folded, value = self.cached()
        attention = self.normalise(torch.einsum("btd,hd->bht", x, folded), mask)
        read = torch.einsum("bht,btd->bhd", attention, x)
        heads = block_einsum("bhd,hdo->bho", read, value, [block.shape[1] for block in value])
        return residual_norm(self.reduce(x), heads, self.gain, self.offset), attention

    def cached(self) -> tuple[Tensor, Blocks]:
        """Return u [H, d_model] and R P W^V_h for the present weights.

        R P W^V_h is one block [H, d_model, d_out]; with an R in halves two, [H, content or position, d_out / 2].

        The cache recognises weights by their place in memory, so it holds on to them. Otherwise new weights could be put
        at the same place and be mistaken for the old ones: this happened 3 of 200 times, with `functional_call`.
        """
        weights = (*self.parameters(),)
        autocast = torch.is_autocast_enabled(weights[0].device.type)  # it changes the precision of the products
        places = [(id(w), w.data_ptr(), w.device, 0 if w.is_inference() else w._version) for w in weights]
        state = (autocast, *places)
        kept = self._cached  # another thread may replace it
        if kept is None or kept[0] != state:
            products = zip(self.products(), self.value.blocks)
            values = [torch.einsum("ok,hkd->hdo", product, value).contiguous() for product, value in products]
            values = [torch.cat(values, dim=1)] if self.whole else values
            self._cached = kept = state, self.folded_query(), values, [w.detach() for w in weights]
        return kept[1:3]

    def products(self) -> Blocks:
        """Return R P of content and of position: [d_out / 2, d_kv / 2] both; if R reads the whole vector, [d_out, d_kv / 2]."""
        reduce: Sequence[Tensor] = self.reduce.blocks
        if self.whole:
            reduce = reduce[0].split(self.project.d_out, dim=1)
        return [r @ p for r, p in zip(reduce, self.project.blocks)]

    def train(self, mode: bool = True) -> LabelAttention:
        if mode:
            self._cached = None  # free its memory for training
        return super().train(mode)

    def folded_query(self) -> Float[Tensor, "h d"]:
        """Return u_h = W^K_h^T q_h: [H, d_model]."""
        parts = zip(self.query.split(self.inner, dim=-1), self.key.blocks)
        return torch.cat([torch.einsum("hk,hkd->hd", query, key) for query, key in parts], dim=-1)

    def attend(self, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Tensor:
        """Return a_h of every head (eq. 1): [B, H, T]; for a query matrix [B, H, T, T]."""
        if self.config.query == "vector":
            return self.normalise(torch.einsum("btd,hd->bht", x, self.folded_query()), mask)
        return self.normalise(torch.einsum("bqhk,bthk->bhqt", self.query(x), self.key(x)), mask)

    def normalise(self, logits: Tensor, mask: Bool[Tensor, "b t"]) -> Tensor:
        """Turn logits into attention over the words of a sentence, which are the last axis."""
        mask = mask[:, None, :] if logits.dim() == 3 else mask[:, None, None, :]
        logits = (logits / math.sqrt(self.config.d_kv)).masked_fill(~mask, OUTSIDE)
        if self.config.normaliser != "softmax":  # entmax adds up in the type of its input, and bf16 is too coarse
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return NORMALISERS[self.config.normaliser](logits, dim=-1)

    def contexts(self, x: Float[Tensor, "b t d"], attention: Tensor) -> Tensor:
        """Return c_h of every head (eq. 3, 4): [B, H, d_kv]; for a query matrix [B, T, H, d_kv]."""
        if attention.dim() == 3:
            parts = torch.einsum("bht,btd->bhd", attention, x).split(self.value.d_in, dim=-1)
            # In this order the gradient of the value matrices needs no copy, which would take a fifth of a training step.
            values = [(v @ part.permute(1, 2, 0)).permute(2, 0, 1) for part, v in zip(parts, self.value.blocks)]
            return torch.cat(values, dim=-1)
        return torch.einsum("bhqt,bthk->bqhk", attention, self.value(x))

    def combine(self, x: Float[Tensor, "b t d"], contexts: Tensor, residual: Tensor | None) -> Tensor:
        """Return y: the residual of every head, then R and the norm. residual: the dropout mask."""
        everywhere = contexts.dim() == 3  # a head has one context for all words of a sentence
        if self.config.combine == "project":
            blocks = [part.flatten(-2) for part in contexts.split(self.inner, dim=-1)]
            heads = self.project(torch.cat(blocks, dim=-1))  # [B, d] or [B, T, d]
            heads = heads[:, None] if everywhere else heads
            heads = heads if residual is None else heads * residual
            return self.norm(x + heads)[:, :, None]
        if residual is None and self.config.shared:
            products, sizes = self.products(), self.inner
            if self.whole:
                products, sizes = [torch.cat(products, dim=1)], (self.config.d_kv,)
            reduced = block_einsum("...k,ok->...o", contexts, products, sizes)
        else:
            heads = self.project.per_head(contexts)  # P c_h: [B, (T,) H, d_model]
            if residual is not None:
                heads = heads * (residual if everywhere else residual[:, None])
            reduced = self.reduce.per_head(heads)  # R P c_h: [B, (T,) H, d_out]
        words = self.reduce(x)  # R x_t: [B, T, d_out], or [B, T, H, d_out] with R per head
        if self.folds:
            return residual_norm(words, reduced, self.gain, self.offset)
        words = words if words.dim() == 4 else words[:, :, None]
        return self.norm(words + (reduced[:, None] if everywhere else reduced))

    def norm(self, y: Tensor) -> Tensor:
        return F.layer_norm(y, y.shape[-1:]) * self.gain + self.offset

    def draw(self, x: Tensor) -> Masks:
        """Draw new dropout masks for a batch."""
        b, t, d = x.shape
        h = self.config.heads
        words = (t,) if self.config.query == "vector" else (t, t)
        rows = h if self.config.combine == "concat" else 1
        return Masks(_mask(x, ATTENTION_DROPOUT, b, h, *words), _mask(x, self.config.residual_dropout, b, rows, d))


def _mask(like: Tensor, p: float, *shape: int) -> Tensor | None:
    return F.dropout(torch.ones(shape, dtype=like.dtype, device=like.device), p) if p else None
