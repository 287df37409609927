"""`residual_norm` for one sentence on the CPU, compiled: y is written once, its gradient is read once.

As torch operations the same takes two passes over y and five over its gradient.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from lalkit.compiled import compiled, map_threads

# Sums over features may be taken in any order, eight at a time; the order is the same in every run.
relaxed = partial(compiled, relaxed=("reassoc", "contract"))


def usable(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)


def forward(w: Tensor, c: Tensor, r: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    """r (w[t] + c[h]) g + o: [B, T, H, d]."""
    y = w.new_empty(*r.shape, len(gain))
    arrays = [x.detach().contiguous().numpy() for x in (w * gain, c * gain, r, y)]
    last = offset.detach().numpy()
    map_threads(lambda b: _forward(*(x[b] for x in arrays), last), range(len(w)), torch.get_num_threads())
    return y


def backward(grad: Tensor, w: Tensor, c: Tensor, r: Tensor, gain: Tensor) -> tuple[Tensor, ...]:
    """(a d, m / r^2 d, r G summed over heads, r G summed over words, G summed) as `residual_norm` names them."""
    found = (
        torch.empty_like(r),
        torch.empty_like(r),
        torch.empty_like(w),
        torch.zeros_like(c),
        torch.zeros_like(w[:, 0]),
    )
    arrays = [x.detach().contiguous().numpy() for x in (grad, w * gain, c * gain, r, *found)]
    scale = gain.detach().numpy()
    map_threads(lambda b: _backward(*(x[b] for x in arrays), scale), range(len(w)), torch.get_num_threads())
    return *found[:4], found[4].sum(0)


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
