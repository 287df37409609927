"""The residual and the norm of the label attention, y[t, h] = LN(words[t] + heads[h]), in little memory.

Both parts are centred: w and c are words and heads minus their means over the features. With the gain g and the offset o

    y = r (w[t] + c[h]) g + o        1 / r^2 = (|w[t]|^2 + |c[h]|^2 + 2 w[t] . c[h]) / d + eps

Therefore neither the sum nor the normalised sum, which are as large as y, is kept for the backward pass.

With the incoming gradient G, and A = G g, a = mean_d A and m = r^2 mean_d (A (w + c)), all [T, H], the gradients are

    d words[t] = sum_h r (A - a) - m r (w[t] + c[h])        d heads[h] = the same, summed over t
    d g = sum_th r G (w + c)                                d o = sum_th G

Both passes are compiled for one sentence at a time on a CPU: they write y once and read its gradient once. On other devices, and
in bf16, torch's layer norm computes the same.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lalkit.chart.machine import compiled, map_threads

EPS = 1e-5  # as in torch's layer norm
# The compiler may choose the order of sums over features, eight at a time. The order is the same in every run.
relaxed = partial(compiled, relaxed=("reassoc", "contract"))


def residual_norm(
    words: Float[Tensor, "b t d"], heads: Float[Tensor, "b h d"], gain: Float[Tensor, "d"], offset: Float[Tensor, "d"]
) -> Float[Tensor, "b t h d"]:
    """Return LN(words[t] + heads[h]) of every word t and head h, in the type of `words`; statistics at least in float32."""
    gain, offset = gain.to(words.dtype), offset.to(words.dtype)
    if words.device.type == "cpu" and words.dtype in (torch.float32, torch.float64):
        return _ResidualNorm.apply(words, heads, gain, offset)
    return F.layer_norm(words[:, :, None] + heads[:, None], gain.shape, gain, offset, EPS).to(words.dtype)


class _ResidualNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, words: Tensor, heads: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
        w, c, r = centred(words, heads)
        ctx.save_for_backward(w, c, r, gain)
        y = w.new_empty(*r.shape, len(gain))
        _of_sentences(_forward, (w * gain, c * gain, r, y), offset)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        w, c, r, gain = ctx.saved_tensors
        d = len(gain)
        total, product, by_word = torch.empty_like(r), torch.empty_like(r), torch.empty_like(w)
        by_head, offsets = torch.zeros_like(c), torch.zeros_like(w[:, 0])
        _of_sentences(_backward, (grad, w * gain, c * gain, r, total, product, by_word, by_head, offsets), gain)
        scale, shift = r.pow(3) * product / d, r * total / d
        words = by_word * gain - shift.sum(2)[..., None] - w * scale.sum(2)[..., None] - scale @ c
        heads = by_head * gain - shift.sum(1)[..., None] - c * scale.sum(1)[..., None] - scale.transpose(1, 2) @ w
        return words, heads, (w * by_word).sum((0, 1)) + (c * by_head).sum((0, 1)), offsets.sum(0)


def centred(words: Tensor, heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return w, c, and r [B, T, H], which is one over the standard deviation of their sum."""
    w, c = (part - part.mean(-1, keepdim=True) for part in (words, heads))
    with torch.autocast("cpu", enabled=False):  # it would cast the product to bf16
        squares = w.square().sum(-1)[:, :, None] + c.square().sum(-1)[:, None] + 2 * (w @ c.transpose(1, 2))
    return w, c, torch.rsqrt(squares.clamp(min=0) / w.shape[-1] + EPS)


def _of_sentences(kernel, tensors: tuple[Tensor, ...], last: Tensor) -> None:
    """Call a kernel with the arrays of each sentence, and with one array that all sentences share."""
    arrays, shared = [x.detach().contiguous().numpy() for x in tensors], last.detach().numpy()
    map_threads(lambda b: kernel(*(x[b] for x in arrays), shared), range(len(tensors[0])), torch.get_num_threads())


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
    """Write the five sums over G that the backward pass needs.

    They are a d and m d / r^2, both [T, H]; r G summed over heads, and summed over words; G summed over everything.
    """
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
