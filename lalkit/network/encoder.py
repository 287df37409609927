"""The building blocks before and inside the label attention, and the encoder: partitioned self-attention.

Partitioned (Kitaev and Klein 2018): a word's vector has two halves, content and position, and no linear map mixes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lalkit.config import ModelConfig
from lalkit.errors import ModelError

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGEST = 1e6  # no weight of a network that has learned something comes near it
M = TypeVar("M", bound=nn.Module)
Sizes = tuple[int, ...]  # of content and of position; or of the whole vector, where it is not partitioned
# The changes of this context, the earlier ones first.
CHANGES: ContextVar[tuple[Change, ...]] = ContextVar("CHANGES", default=())


class Change(AbstractContextManager):
    """A `with` block in which functions change values inside layers. It may be entered several times, also inside itself.

    Several changes may hold at the same time, and end in any order. They belong to the context (`contextvars`) that entered them:
    to this thread, or to this task of asyncio and those that it starts. A new thread starts without changes.
    """

    def __init__(self, parts: Sequence[tuple[HookedModule, Mapping[str, Callable]]], value: Any = None):
        """parts: layers, each with its functions by the names of their points. value: what `with ... as` gives."""
        self.parts, self.value = parts, value

    def __enter__(self) -> Any:
        CHANGES.set((*CHANGES.get(), self))
        return self.value

    def __exit__(self, *error) -> None:
        changes = [*CHANGES.get()]
        if self in changes:
            del changes[len(changes) - 1 - changes[::-1].index(self)]
        CHANGES.set(tuple(changes))


class HookedModule(nn.Module):
    """A layer that lets other code change its intermediate values at named points.

        with layer.hooked(contexts=torch.zeros_like):
            network(batch)

    A copy or a pickle of a layer has no changes. Without changes the layer computes what it always does.

    `points` has the names of a layer's points, each with the axes of its value. A function gets the value, and at some points
    more, as the layer's docstring says. position: START, the words and STOP. word: the words alone. place: between words.
    """

    points: Mapping[str, str] = {}

    def hooked(self, **functions: Callable) -> Change:
        """Set a function at each named point, inside the `with` block only. It gets what an outer block's function returns.

        Raises ValueError for a point that the layer does not have.
        """
        if unknown := functions.keys() - self.points:
            raise ValueError(f"no hook point {', '.join(sorted(unknown))}: the layer has {', '.join(self.points)}")
        return Change([(self, functions)])

    @property
    def hooks(self) -> set[str]:
        """The points at which functions are set."""
        return {point for functions in self.changes() for point in functions}

    def changes(self) -> Iterator[Mapping[str, Callable]]:
        """Yield the functions that hold in this layer now, in this context, by the names of their points; the earlier first."""
        return (functions for change in CHANGES.get() for layer, functions in change.parts if layer is self)

    def hook(self, point: str, value: Tensor, *context: Tensor | None) -> Tensor:
        """Return the value as the functions at this point change it, the earlier ones first; or as it is."""
        for functions in self.changes():
            if point in functions:
                value = functions[point](value, *context)
        return value


def check_numbers(tensors: Mapping[str, Tensor], limit: float, where: str, remedy: str) -> None:
    """Raise ModelError unless every tensor holds finite floating-point numbers that are smaller than the limit."""
    for name, values in sorted(tensors.items()):
        low, high = values.aminmax() if values.dtype in FLOATS and values.numel() else (0, 0)
        if values.dtype not in FLOATS or not (-limit < low and high < limit):  # also for NaN
            problem = f"{name} holds something else than finite floating-point numbers below {limit:g}"
            raise ModelError(problem, where=where, remedy=remedy)


def fill(
    module: M, tensors: Mapping[str, Tensor], where: str, remedy: str, expected: Mapping[str, Tensor] | None = None
) -> M:
    """Put tensors from a file into a module (a parser, an encoder or another model), and return it.

    expected: the names and shapes; by default those of the module. Raises ModelError if a tensor is missing, unknown or of
    another shape, or holds numbers that cannot be weights (`check_numbers`).
    """
    expected = expected or module.state_dict()
    others = set(expected) ^ set(tensors)
    if wrong := sorted(others or (k for k, v in tensors.items() if v.shape != expected[k].shape)):
        raise ModelError(f"the weights do not fit the config: {', '.join(wrong[:4])}", where=where, remedy=remedy)
    check_numbers(tensors, LARGEST, where, remedy)
    module.load_state_dict(tensors, strict=False)
    return module


class PartitionedLinear(nn.Module):
    """A linear map in two blocks: [.., content + position] -> [.., out_content + out_position], each from its own half.

    With one size instead of two it is one block: an ordinary linear map.

    heads: the number of copies of the map, one for each head; the output is then [.., heads, out]. initial: how the first
    weights are drawn, "glorot" (`xavier`) or "small".
    """

    def __init__(
        self, d_in: Sizes, d_out: Sizes, heads: int | None = None, bias: bool = False, initial: str = "glorot"
    ):
        super().__init__()
        self.d_in, self.d_out, self.heads = d_in, d_out, heads
        draw, lead = {"glorot": xavier, "small": small}[initial], () if heads is None else (heads,)
        self.content = nn.Parameter(draw(*lead, d_out[0], d_in[0]))
        self.position = nn.Parameter(draw(*lead, d_out[1], d_in[1])) if len(d_in) == 2 else None
        self.bias = nn.Parameter(torch.zeros(*lead, sum(d_out))) if bias else None

    @property
    def blocks(self) -> tuple[Tensor, ...]:
        """The matrices of content and of position, both [(heads,) out, in]; or the one matrix of the whole vector."""
        return (self.content,) if self.position is None else (self.content, self.position)

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
        index = "...d,od->...o" if self.heads is None else "...d,hod->...ho"
        out = block_einsum(index, x, self.blocks, self.d_in)
        return out if self.bias is None else out + self.bias

    def per_head(self, x: Float[Tensor, "... h d"]) -> Float[Tensor, "... h o"]:
        """Apply the matrix of head h to the vector of head h; with heads None, the one matrix to all of them."""
        index = "...hd,od->...ho" if self.heads is None else "...hd,hod->...ho"
        return block_einsum(index, x, self.blocks, self.d_in)


def block_einsum(index: str, x: Tensor, blocks: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Multiply each part of x's last axis by its own matrix. Return the products side by side."""
    return torch.cat([torch.einsum(index, part, block) for part, block in zip(x.split(sizes, dim=-1), blocks)], dim=-1)


def xavier(*shape: int) -> Tensor:
    """Return a Glorot-uniform tensor. Each matrix (the last two axes) is initialised by itself."""
    bound = (6.0 / (shape[-1] + shape[-2])) ** 0.5
    return torch.empty(*shape).uniform_(-bound, bound)


def small(*shape: int) -> Tensor:
    """Return first weights with which a layer changes its input only a little [R].

    Heads [H, out, in] are normal with variance 2 / (out * (in + H)), other matrices uniform within 1 / sqrt(in). With the larger
    weights of `xavier`, self-attention makes the words of a sentence equal: after 8 layers, the mean cosine is above 0.99.
    """
    if len(shape) == 3:
        return torch.empty(*shape).normal_(std=(2.0 / (shape[1] * (shape[2] + shape[0]))) ** 0.5)
    return torch.empty(*shape).uniform_(-(shape[-1] ** -0.5), shape[-1] ** -0.5)


def halve(size: int) -> tuple[int, int]:
    """Return the sizes of content and position: two halves; content is larger by one if the size is odd."""
    return size - size // 2, size // 2


class PartitionedLayer(HookedModule):
    """One layer: self-attention with logits content.content + position.position, then a feed-forward map in two blocks."""

    points = {
        "attention": "batch head position key", "contexts": "batch position head dim", "output": "batch position dim",
    }  # fmt: skip

    def __init__(self, config: ModelConfig):
        super().__init__()
        d_model, d_head = (config.d_content, config.d_position), max(1, config.d_content // config.attention_heads)
        inner = halve(d_head)
        linear = partial(PartitionedLinear, initial=config.initial)
        self.query, self.key, self.value = (linear(d_model, inner, config.attention_heads) for _ in range(3))
        self.output = linear((config.attention_heads * inner[0], config.attention_heads * inner[1]), d_model)
        self.inner, self.scale = inner, 1 / math.sqrt(d_head)
        self.up = linear(d_model, halve(config.d_ff), bias=True)
        self.down = linear(halve(config.d_ff), d_model, bias=True)
        self.attention_norm, self.norm = nn.LayerNorm(sum(d_model)), nn.LayerNorm(sum(d_model))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        query, key, value = (layer(x).transpose(1, 2) for layer in (self.query, self.key, self.value))
        logits = (query @ key.transpose(-1, -2)) * self.scale
        attention = self.hook("attention", torch.softmax(logits.masked_fill(~mask[:, None, None], -torch.inf), dim=-1))
        heads = self.hook("contexts", (self.dropout(attention) @ value).transpose(1, 2))  # [b t heads d_head]
        joined = torch.cat([part.flatten(-2) for part in heads.split(self.inner, dim=-1)], dim=-1)
        x = self.attention_norm(x + self.dropout(self.output(joined)))
        return self.hook("output", self.norm(x + self.dropout(self.down(self.dropout(torch.relu(self.up(x)))))))


class Encoder(nn.Module):
    """content [B, T, d_content] -> [B, T, d_content + d_position]: append the position, then apply partitioned layers.

    Positions are sinusoids (Vaswani et al. 2017) times a learned matrix, so that no sentence is too long [D]. Kitaev and
    Klein (2018) learn a table of 300 positions.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.position = nn.Linear(config.d_position, config.d_position, bias=False)
        self.norm = nn.LayerNorm(config.d_content + config.d_position)
        self.layers = nn.ModuleList(PartitionedLayer(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, content: Float[Tensor, "b t c"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        waves = sinusoids(content.shape[1], self.position.in_features, content)
        position = self.position(waves).expand(len(content), -1, -1)
        x = self.norm(self.dropout(torch.cat([content, position], dim=-1)))
        for layer in self.layers:
            x = layer(x, mask)
        return x


def sinusoids(length: int, size: int, like: Tensor) -> Float[Tensor, "t p"]:
    """Return the positions 0..length-1 as sines and cosines of `size` different rates (Vaswani et al. 2017).

    like: a tensor with the device and the dtype of the result.
    """
    rates = torch.exp(torch.arange(0, size, 2, dtype=torch.float32, device=like.device) * (-math.log(10000.0) / size))
    angles = torch.arange(length, device=like.device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :size].to(like)
