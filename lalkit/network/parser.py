"""The whole network: encoder -> label attention -> scores, or encoder -> scores with label attention inside the span."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lalkit.config import LAYERS, LayerConfig, ModelConfig
from lalkit.errors import ModelError
from lalkit.network.batches import Batch
from lalkit.network.encoder import Encoder, HookedModule, PartitionedLinear, halve
from lalkit.network.label_attention import LabelAttention
from lalkit.network.scores import ArcScorer, Parts, SpanScorer, fenceposts
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.network.vocabulary import Vocab
from lalkit.network.word_vectors import PretrainedEncoder, ScratchEncoder

PRETRAINED = r"words\.(transformer\.encoder\.layer|transformer|points\.layer|points)"  # where its hook points are
READING: ContextVar[Batch] = ContextVar("READING")  # the batch that `Network.words` reads now: for hooks at sub-words


@dataclass
class ParserOutput:
    """The output of the network for a batch.

    label_scores: [B, N+1, N+1, L], 0 beyond the end of a sentence. arc_scores: [B, N, N+1], log-probabilities over heads.
    tag_scores: [B, N, tags]. posts: the fenceposts of spans [B, N+1, H, d_out]. x: the vectors that the last layer reads
    [B, T, d]. attention: [B, H, T], of the paper's layer.

    Arc labels need heads: `Network.arc_labels(output, heads)`. If label_scores were computed without gradients,
    `Network.spans.at(output.span_parts, ...)` computes some of them again with gradients.
    """

    label_scores: Tensor
    arc_scores: Tensor
    tag_scores: Tensor
    arc_parts: list[Tensor] = field(repr=False)
    span_parts: Parts = field(repr=False)
    posts: Tensor = field(repr=False)
    x: Tensor = field(repr=False)
    attention: Tensor | None = field(repr=False)


class Network(HookedModule):
    """The whole parser as one differentiable function of a `Batch`. Decoding is done in `lalkit.chart`.

    Hook points: words (vectors, before tags are added), fenceposts (whose differences are span vectors), and arcs (scores before
    they become log-probabilities).
    """

    points = {"words": "batch position dim", "fenceposts": "batch place head dim", "arcs": "batch word key"}
    words: PretrainedEncoder | ScratchEncoder
    spans: SpanLabelAttention | SpanScorer

    def __init__(self, config: ModelConfig, vocab: Vocab, weights: bool = True):
        """weights: load those of the pretrained encoder. False: a checkpoint has them. Raises ModelError for a wrong config."""
        super().__init__()
        if config.label_attention and config.span_attention:
            problem = "model.label_attention and model.span_attention are both set"
            raise ModelError(problem, remedy="Set one of the two to none.")
        self.config = config
        if config.encoder.pretrained is None:
            self.words = ScratchEncoder(config.d_content, len(vocab.words), len(vocab.chars))
        else:
            self.words = PretrainedEncoder(config.encoder, config.d_content, weights)
        tags = max(len(vocab.tags), 1)
        self.tag_scorer = nn.Linear(config.d_content, tags)
        self.tags = nn.Embedding(tags, config.d_content) if config.tag_input != "none" else None
        self.encoder = Encoder(config)
        lal = config.label_attention
        layer: Any = RegisteredLayer if isinstance(lal, LayerConfig) else LabelAttention
        self.label_attention = layer(lal, config.d_content, config.d_position) if lal else None
        heads, self.slice = self.label_attention.d_out if lal else (1, (config.d_content, config.d_position))
        size = sum(self.slice)
        self.feedforward = FeedForward(config, heads, self.slice) if config.feedforward else None
        inside, sizes = config.span_attention, (heads * size, config.label_hidden, len(vocab.labels), config.dropout)
        self.spans = SpanLabelAttention(inside, *sizes) if inside else SpanScorer(*sizes)
        of_arcs = heads * size, config.arc_hidden, config.arc_label_hidden, len(vocab.arc_labels)
        self.arcs = ArcScorer(*of_arcs, config.dropout)

    def forward(self, batch: Batch, chart_gradient: bool = True, chart: bool = True) -> ParserOutput:
        """Score a batch.

        chart_gradient: False computes label_scores without gradients, so that nothing is kept for a backward pass through all
        spans. chart: False leaves label_scores empty, for a loss of arcs alone.
        """
        before = READING.set(batch)
        content = self.hook("words", self.words(batch))
        READING.reset(before)
        tag_scores = self.tag_scorer(content[:, 1:-1]).float()
        if self.tags is not None:
            # Only words have tags. In a batch, the STOP of a short sentence has the place of a word of a longer one.
            vectors = self._tag_vectors(tag_scores, batch.tags) * batch.word_mask[..., None]
            content = content + F.pad(vectors, (0, 0, 1, 1))
        x = self.encoder(content, batch.mask)
        layer = self.label_attention
        y, weights = layer(x, batch.mask) if layer is not None else (x[:, :, None], None)
        if self.feedforward is not None:
            y = self.feedforward(y)
        fences = self.hook("fenceposts", fenceposts(y, self.slice))
        if isinstance(self.spans, SpanLabelAttention):
            spans = self.spans.project(x, fences, batch.lengths)
        else:
            spans = self.spans.project(fences)
        with torch.set_grad_enabled(chart_gradient and torch.is_grad_enabled()):
            scores = self.spans.chart(spans, batch.lengths) if chart else x.new_empty(0)
        parts = self.arcs.parts(y.flatten(-2))
        arcs = arc_log_probabilities(self.hook("arcs", self.arcs.arcs(parts)), batch.word_mask)
        return ParserOutput(scores, arcs, tag_scores, parts, spans, fences, x, weights)

    @contextmanager
    def parsing(self) -> Iterator[None]:
        """Turn dropout off inside the `with` block, and return to the mode before it.

        Several threads may parse at the same time, unless the network was in training before.
        """
        mode = self.training
        self.eval()
        try:
            yield
        finally:
            self.train(mode)

    def size(self) -> int:
        """Return the number of trained weights."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def weights(self) -> list[tuple[object, object]]:
        """Return each weight with its count of changes in place."""
        weights = (*self.parameters(), *self.buffers())
        return [(weight, 0 if weight.is_inference() else weight._version) for weight in weights]

    def hook_points(self) -> dict[str, tuple[HookedModule, str, str]]:
        """Return the hook points of all layers by name: the layer, its own name of the point, and the axes of the value.

        pretrained.K and encoder.K are the layers of self-attention, of the pretrained encoder and of the encoder after it.
        """
        found = {}
        for name, layer in self.named_modules():
            if isinstance(layer, HookedModule):
                name = re.sub(PRETRAINED, "pretrained", name).replace("encoder.layers", "encoder")
                for point, axes in layer.points.items():
                    found[f"{name}.{point}".lstrip(".")] = layer, point, axes
        return found

    @property
    def changed(self) -> list[str]:
        """The hook points at which a change holds now, as inside `Parser.without`."""
        return [name for name, (layer, point, _) in self.hook_points().items() if point in layer.hooks]

    def arc_labels(self, output: ParserOutput, heads: Tensor) -> Tensor:
        """Return scores [B, N, arc labels] of each word's arc to the given head (1-based, 0 = root)."""
        return self.arcs.labels(output.arc_parts, heads)

    def _tag_vectors(self, tag_scores: Tensor, given: Tensor) -> Tensor:
        """Return an embedding of each word's tag: [B, N, d_content].

        'given': of the sentence's tags. 'predicted', and words without a tag: the expected embedding under the predicted
        tags. No gradient flows from it to the tag scorer.
        """
        expected = torch.softmax(tag_scores.detach(), -1).to(self.tags.weight.dtype) @ self.tags.weight
        if self.config.tag_input == "predicted":
            return expected
        return torch.where((given >= 0)[..., None], self.tags(given.clamp(min=0)), expected)


class RegisteredLayer(HookedModule):
    """A layer of a user in the place of the paper's layer, see `lalkit.register_layer`. Hook point: output(y, attention) -> y."""

    points = {"output": "batch position head dim"}

    def __init__(self, config: Any, d_content: int, d_position: int):
        super().__init__()
        self.config = config  # a `LayerConfig`
        self.d_out = config.heads, halve(config.d_out)  # the last two axes of y: heads, (content, position)
        self.layer = LAYERS[config.layer][0](config, d_content, d_position)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        found = self.layer(x, mask)
        y, attention = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        wanted = [[*x.shape[:2], self.config.heads, self.config.d_out], [len(x), self.config.heads, x.shape[1]]]
        shapes = [[*value.shape] for value in (y, attention) if value is not None]
        if shapes != wanted[: len(shapes)]:
            problem = f"the layer {self.config.layer!r} returns tensors of the shapes {shapes}, and not {wanted}"
            raise ModelError(problem, remedy="y is [B, T, heads, d_out], the attention [B, heads, T] or None.")
        return self.hook("output", y, attention), attention


class FeedForward(nn.Module):
    """A feed-forward map after the last layer, [.., H, d] -> the same. It mixes heads, so they have no contributions.

    After label attention it is the position-wise feed-forward of table 1 (PFL). The residual and the norm are those of a
    self-attention layer. `feedforward_split`: which numbers have a map of their own, with half of the hidden units.

    * released [R]: the last d_position numbers of all heads side by side, and those before them. So of the authors' 112 heads
      of 128, the last 4 have half of the hidden units.
    * within-heads [D]: the position halves of all heads, and the content halves.
    * whole [D]: there is one map for all numbers.
    """

    def __init__(self, config: ModelConfig, heads: int, parts: tuple[int, int]):
        """heads, parts: the number of heads, and the sizes of content and position in the slice of each.

        Raises ModelError if the released split leaves nothing for the first map.
        """
        super().__init__()
        total, last = heads * sum(parts), config.d_position
        if config.feedforward_split == "released" and last >= total:
            problem = f"the feed-forward reads {total} numbers, and its released split gives {last} of them to one map"
            raise ModelError(problem, remedy="Set model.feedforward_split to within-heads, or more or larger heads.")
        splits = {"released": (1, (total - last, last)), "within-heads": (heads, parts), "whole": (1, (total,))}
        self.heads, self.parts = splits[config.feedforward_split]
        wide = tuple(self.heads * part for part in self.parts)
        inner = halve(config.feedforward) if len(wide) == 2 else (config.feedforward,)
        self.up, self.down = PartitionedLinear(wide, inner, bias=True), PartitionedLinear(inner, wide, bias=True)
        self.norm, self.dropout = nn.LayerNorm(total), nn.Dropout(config.dropout)

    def forward(self, y: Tensor) -> Tensor:
        slices = y.flatten(-2).unflatten(-1, (self.heads, -1))
        inputs = torch.cat([part.flatten(-2) for part in slices.split(self.parts, dim=-1)], dim=-1)
        change = self.down(self.dropout(torch.relu(self.up(inputs))))
        parts = change.split(self.down.d_out, dim=-1)
        change = torch.cat([part.unflatten(-1, (self.heads, -1)) for part in parts], dim=-1)
        return self.norm((slices + self.dropout(change)).flatten(-2)).unflatten(-1, y.shape[-2:])


def same_state(first: Sequence, second: Sequence) -> bool:
    """Return whether two results of `Model.state` are of the same tensors and hooks, without a change between them."""
    return len(first) == len(second) and all(a is b and x == y for (a, x), (b, y) in zip(first, second))


def arc_log_probabilities(scores: Tensor, word_mask: Tensor) -> Tensor:
    """Turn arc scores [B, N, N+1] into log-probabilities over heads.

    No word is its own head, and padding is no word's head. Rows of padding are 0.
    """
    n = scores.shape[1]
    itself = torch.eye(n, n + 1, dtype=torch.bool, device=scores.device).roll(1, dims=1)
    allowed = torch.cat([torch.ones_like(word_mask[:, :1]), word_mask], dim=1)[:, None] & ~itself
    log = torch.log_softmax(scores.masked_fill(~allowed, -1e9), dim=-1)
    return log.masked_fill(~allowed | ~word_mask[..., None], 0.0)
