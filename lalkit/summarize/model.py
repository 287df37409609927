"""The summarizer: a transformer of pre-norm layers that says words of a vocabulary or copies words of the document.

    g = softmax(W y)    p = sigmoid(w . y + b)    P(word) = (1 - p) g(word) + p sum over the places j of the word of a_j

over the vocabulary extended by the document's unknown words. a is the attention of one head, the first of the decoder's last
layer over the document [C]: so a gate on that head's context leaves what is copied as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lalkit.errors import ModelError
from lalkit.summarize.attention import MultiHeadAttention
from lalkit.summarize.batch import PAD, START, Batch, Vocabulary
from lalkit.summarize.config import SummarizerConfig

LEAST = 1e-20  # is added to a probability before its logarithm: an impossible word costs 46.05, not infinity


@dataclass(frozen=True)
class Output:
    """probs [B, Q, V + o] over the extended vocabulary; copying [B, Q], p; weights: block ('enc.0', 'cross.1', ...) ->
    [B, H, Q or T, T]."""

    probs: Tensor
    copying: Tensor
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Change:
    """What is to be other than the network's own. gates: block -> [H], on contexts; weights: block -> [B, H, Q, T]; copy:
    [B, 1 or Q, T] in the place of the copy head's attention, for copying alone."""

    gates: Mapping[str, Tensor] | None = None
    weights: Mapping[str, Tensor] | None = None
    copy: Tensor | None = None

    def of(self, block: str) -> tuple[Tensor | None, Tensor | None]:
        return (self.gates or {}).get(block), (self.weights or {}).get(block)


class Layer(nn.Module):
    """Self-attention, in the decoder attention over the document, and a feed-forward; norms first."""

    def __init__(self, config: SummarizerConfig, own: tuple[str, ...], cross: tuple[str, ...] | None):
        super().__init__()
        d = config.d_model
        self.own = MultiHeadAttention(d, own, config.dropout)
        self.cross = MultiHeadAttention(d, cross, config.dropout) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.feedforward = nn.Sequential(
            nn.Linear(d, config.d_ff), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(config.d_ff, d)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, mask, own=(None, None), memory=None, memory_mask=None, cross=(None, None)):
        """own, cross: (gate, weights) of the two attentions -> (x, weights, weights over the document or None)."""
        normed = self.norms[0](x)
        found, weights = self.own(normed, normed, mask, *own)
        x, over = x + self.dropout(found), None
        if self.cross is not None:
            found, over = self.cross(self.norms[1](x), memory, memory_mask, *cross)
            x = x + self.dropout(found)
        return x + self.dropout(self.feedforward(self.norms[-1](x))), weights, over


class Summarizer(nn.Module):
    """Documents -> probabilities of every word of their summaries, given the words before."""

    def __init__(self, config: SummarizerConfig, vocabulary: Vocabulary):
        """Raises ModelError where d_model is no multiple of heads."""
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        d = config.d_model
        if d % config.heads:
            raise ModelError(
                f"{d} units cannot be shared by {config.heads} heads", remedy="Give d_model a multiple of heads."
            )
        self.embed = nn.Embedding(len(vocabulary), d, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        plain = ("softmax",) * config.heads
        encoder, cross = normalisers(config)
        self.encoder = nn.ModuleList(Layer(config, kinds, None) for kinds in encoder)
        self.decoder = nn.ModuleList(Layer(config, plain, kinds) for kinds in cross)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.say = nn.Linear(d, len(vocabulary))
        self.copy = nn.Linear(d, 1)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Where heads are measured and gated; the decoder's attention to itself is left out [P]."""
        layers = range(self.config.layers)
        return (*(f"enc.{i}" for i in layers), *(f"cross.{i}" for i in layers))

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(f"{block}.{h}" for block in self.blocks for h in range(self.config.heads))

    def forward(self, batch: Batch, change: Change = Change()) -> Output:  # noqa: B008 (frozen)
        memory, weights = self.encode(batch, change)
        probs, copying, over = self.decode(batch, memory, batch.before, change)
        return Output(probs, copying, weights | over)

    def encode(self, batch: Batch, change: Change = Change()) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: B008
        """(memory [B, T, d], the encoder's weights)."""
        x, weights = self._embed(batch.source), {}
        for i, layer in enumerate(self.encoder):
            x, weights[f"enc.{i}"], _ = layer(x, batch.mask[:, None], change.of(f"enc.{i}"))
        return self.norms[0](x), weights

    def decode(
        self,
        batch: Batch,
        memory: Tensor,
        before: Tensor,
        change: Change = Change(),  # noqa: B008
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Probabilities of what follows each of the words before [B, Q] -> ([B, Q, V + o], p [B, Q], cross weights)."""
        q = before.shape[1]
        past = torch.ones(q, q, dtype=torch.bool, device=before.device).tril()[None]
        x, weights = self._embed(before), {}
        for i, layer in enumerate(self.decoder):
            block = f"cross.{i}"
            x, _, weights[block] = layer(x, past, (None, None), memory, batch.mask[:, None], change.of(block))
        y = self.norms[1](x)
        scores = self.say(y)
        scores[..., [PAD, START]] = -torch.inf  # never wanted
        copying = torch.sigmoid(self.copy(y))
        attention = weights[block][:, 0] if change.copy is None else change.copy.expand(-1, q, -1)
        probs = torch.zeros(
            *scores.shape[:2], len(self.vocabulary) + len(batch.unknown), dtype=x.dtype, device=x.device
        )
        probs[..., : len(self.vocabulary)] = (1 - copying) * torch.softmax(scores, -1)
        places = batch.extended[:, None].expand(-1, q, -1)
        return probs.scatter_add(2, places, copying * attention), copying[..., 0], weights

    def loss(self, batch: Batch, change: Change = Change()) -> Tensor:  # noqa: B008
        """Mean of -log P of every word of the summaries and of their ends."""
        probs = self(batch, change).probs.gather(2, batch.target[..., None])[..., 0]
        return -torch.log(probs + LEAST)[batch.target_mask].mean()

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + positions(ids.shape[1], self.config.d_model, x))


def normalisers(config: SummarizerConfig) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Of every head of the encoder's layers and of the decoder's attention over the document."""
    kinds = (config.normaliser, "softmax")

    def layer(dense: int) -> tuple[str, ...]:
        return (kinds[1],) * dense + (kinds[0],) * (config.heads - dense)

    dense = {"none": config.heads, "encoder": config.heads}.get(config.sparse, 0)
    top = {"none": config.heads, "encoder": config.heads, "but-top": config.heads, "but-copy": 1}.get(config.sparse, 0)
    encoder = [layer(config.heads if config.sparse == "none" else 0)] * config.layers
    return encoder, [layer(dense)] * (config.layers - 1) + [layer(top)]


def positions(length: int, size: int, like: Tensor) -> Tensor:
    """[length, size]: sinusoids (Vaswani et al. 2017)."""
    place = torch.arange(length, device=like.device, dtype=like.dtype)[:, None]
    rate = torch.exp(torch.arange(0, size, 2, device=like.device, dtype=like.dtype) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(-2)[:, :size]
