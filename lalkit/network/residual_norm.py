"""The residual and the norm of the label attention, y[t, h] = LN(words[t] + heads[h]), in little memory.

Both parts are centred: w and c are words and heads minus their means over the features. With the gain g and the offset o

    y = r (w[t] + c[h]) g + o        1 / r^2 = (|w[t]|^2 + |c[h]|^2 + 2 w[t] . c[h]) / d + eps

Therefore neither the sum nor the normalised sum, which are as large as y, is kept for the backward pass.

With the incoming gradient G, and A = G g, a = mean_d A and m = r^2 mean_d (A (w + c)), all [T, H], the gradients are

    d words[t] = sum_h r (A - a) - m r (w[t] + c[h])        d heads[h] = the same, summed over t
    d g = sum_th r G (w + c)                                d o = sum_th G

On a CPU both passes are compiled for one sentence at a time: they write y once and read its gradient once. On other devices
they are torch operations on a few sentences at a time, which read and write y twice and its gradient five times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from lalkit.chart.machine import compiled, map_threads

EPS = 1e-5  # as in torch's layer norm
PIECE = 2**26  # elements of a temporary tensor in the backward pass on a GPU
# The compiler may choose the order of sums over features, eight at a time. The order is the same in every run.
relaxed = partial(compiled, relaxed=("reassoc", "contract"))


def residual_norm(
    words: Float[Tensor, "b t d"], heads: Float[Tensor, "b h d"], gain: Float[Tensor, "d"], offset: Float[Tensor, "d"]
) -> Float[Tensor, "b t h d"]:
    """Return LN(words[t] + heads[h]) of every word t and head h, in the type of `words`; statistics at least in float32."""
    return _ResidualNorm.apply(words, heads, gain.to(words.dtype), offset.to(words.dtype))


class _ResidualNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, words: Tensor, heads: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
        w, c, r = centred(words, heads)
        ctx.save_for_backward(w, c, r, gain)
        if compiled_usable(words):
            return compiled_forward(w, c, r, gain, offset)
        y = torch.add((w * gain)[:, :, None], (c * gain)[:, None])
        return torch.addcmul(offset, y, r[..., None], out=y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        w, c, r, gain = ctx.saved_tensors
        sums = compiled_backward if compiled_usable(grad) else gradient_sums
        total, product, by_word, by_head, offset = sums(grad, w, c, r, gain)
        d = gain.shape[0]
        scale, shift = r.pow(3) * product / d, r * total / d
        words = by_word * gain - shift.sum(2)[..., None] - w * scale.sum(2)[..., None] - scale @ c
        heads = by_head * gain - shift.sum(1)[..., None] - c * scale.sum(1)[..., None] - scale.transpose(1, 2) @ w
        return words, heads, (w * by_word).sum((0, 1)) + (c * by_head).sum((0, 1)), offset


def gradient_sums(grad: Tensor, w: Tensor, c: Tensor, r: Tensor, gain: Tensor) -> tuple[Tensor, ...]:
    """Return the five sums over G that the backward pass needs.

    They are a d and m d / r^2, both [B, T, H]; r G summed over heads, and summed over words; G summed over everything.
    """
    total, product = torch.empty_like(r), torch.empty_like(r)
    by_word, by_head, offset = torch.empty_like(w), torch.empty_like(c), torch.zeros_like(gain)
    for piece in pieces(grad.shape):
        part = grad[piece]
        held = (w[piece] * gain)[:, :, None] + (c[piece] * gain)[:, None]
        product[piece] = held.mul_(part).sum(-1)
        torch.mul(part, r[piece][..., None], out=held)
        by_word[piece], by_head[piece] = held.sum(2), held.sum(1)
        total[piece] = part @ gain
        offset += part.sum((0, 1, 2))
    return total, product, by_word, by_head, offset


def centred(words: Tensor, heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return w, c, and r [B, T, H], which is one over the standard deviation of their sum."""
    w, c = (part - part.mean(-1, keepdim=True) for part in (words, heads))
    wide = torch.promote_types(w.dtype, torch.float32)
    w_, c_ = w.to(wide), c.to(wide)
    with torch.autocast(w.device.type, enabled=False):  # it would cast the product to bf16
        squares = w_.square().sum(-1)[:, :, None] + c_.square().sum(-1)[:, None] + 2 * (w_ @ c_.transpose(1, 2))
    return w, c, torch.rsqrt(squares.clamp(min=0) / w.shape[-1] + EPS).to(w.dtype)


def pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of the sentences of a [B, T, H, d] tensor, each within PIECE elements or of one sentence."""
    step = max(1, PIECE * shape[0] // max(1, math.prod(shape)))
    return (slice(start, start + step) for start in range(0, shape[0], step))


def compiled_usable(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)


def compiled_forward(w: Tensor, c: Tensor, r: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    """Return r (w[t] + c[h]) g + o: [B, T, H, d]."""
    y = w.new_empty(*r.shape, len(gain))
    arrays = [x.detach().contiguous().numpy() for x in (w * gain, c * gain, r, y)]
    last = offset.detach().numpy()
    map_threads(lambda b: _forward(*(x[b] for x in arrays), last), range(len(w)), torch.get_num_threads())
    return y


def compiled_backward(grad: Tensor, w: Tensor, c: Tensor, r: Tensor, gain: Tensor) -> tuple[Tensor, ...]:
    """Return the same five sums as `gradient_sums`."""
    empty, zeros = torch.empty_like, torch.zeros_like
    sums = [empty(r), empty(r), empty(w), zeros(c), zeros(w[:, 0])]
    arrays = [x.detach().contiguous().numpy() for x in (grad, w * gain, c * gain, r, *sums)]
    scale = gain.detach().numpy()
    map_threads(lambda b: _backward(*(x[b] for x in arrays), scale), range(len(w)), torch.get_num_threads())
    return *sums[:4], sums[4].sum(0)


@relaxed
def _forward(w, c, r, y, offset):
    words, heads, features = y.shape
    for t in range(words):
        for h in range(heads):
            scale = r[t, h]
            for k in range(features):
                y[t, h, k] = (w[t, k] + c[h, k]) * scale + offset[k]


@relaxed
def _backward(grad, w, c, r, total, product, by_word, by_head, offset, gain):
    words, heads, features = grad.shape
    zero = gain[0] * 0
    for t in range(words):
        for k in range(features):
            by_word[t, k] = zero
        for h in range(heads):
            row, scale = grad[t, h], r[t, h]
            first = second = zero
            for k in range(features):
                first += row[k] * gain[k]
                second += row[k] * (w[t, k] + c[h, k])
            total[t, h], product[t, h] = first, second
            for k in range(features):
                value = scale * row[k]
                by_word[t, k] += value
                by_head[h, k] += value
                offset[k] += row[k]
