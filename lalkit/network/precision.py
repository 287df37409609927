"""Parse in a lower precision: bf16 everywhere, or int8 in the largest linear maps.

Explanations and probabilities are always computed in fp32. int8: the linear maps of the pretrained encoder, and the first maps
of the arc scorer and of the paper layer's span scorer, multiply whole numbers. Each row of a weight matrix has a scale of its
own, and so has each input row. With one scale for a whole batch, as torch's dynamic quantization has it, a sentence would
depend on its batch, and F1 was 1.15 lower. With a scale for each row it is 0.02 (en-news-span) and 0.30 (en-news) lower, by
`lalkit evaluate en-news --treebank ptb-sample --split dev --precision int8`.

bf16: the words' encoder and every matrix are kept in bf16 while sentences are parsed, and the rest in fp32. With all weights in
bf16, the F1 of en-news was 0.13 lower.

Only fp32 gives every sentence the same tree in every batch. In bf16 and int8 the rounding differs a little with the size of a
batch: of the first 120 sentences of the PTB sample's test part, parsed alone, in usual batches and in batches of 10,000 words by
`en` and by `en-news-span`, at most 2 and 1 had another tree.
"""

from __future__ import annotations

import platform
from copy import deepcopy
from typing import Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lalkit.chart.machine import compiled
from lalkit.errors import ModelError, ParameterError
from lalkit.network.parser import Network, same_state
from lalkit.network.word_vectors import LowRankLinear, PretrainedEncoder

X86 = "x86_64", "AMD64"
Precision = Literal["auto", "fp32", "bf16", "int8"]
# Inputs have 7 bits, from 1 to 127 around 64: with 8, the sum of two products can exceed 16 bits where there is no VNNI.
MIDDLE, STEPS, WEIGHT_STEPS = 64, 63, 127
WHERE = "words.transformer.", "arcs.project", "spans.first"
TINY = 1e-30  # the scale of a row of zeros
HALF_UP = np.float32(MIDDLE + 0.5)


def has_bf16(device: str) -> bool:
    """Return whether the hardware computes bf16. Where it is emulated, a step takes 15 times as long as in float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    x86 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return x86 if platform.machine() in X86 else torch.ops.mkldnn._is_mkldnn_bf16_supported()


def bf16_is_fast(device: str) -> bool:
    """Return whether the hardware computes bf16, and faster than fp32.

    Intel's processors with AVX-512 for fp16 multiply bf16 in AMX. Where a virtual machine hides AMX, a product of matrices takes
    1.9 times as long in bf16 as in fp32 (600 x 384 by 384 x 384, one thread).
    """
    found = torch.cpu.get_capabilities() if device == "cpu" else {}
    return has_bf16(device) and not (found.get("avx512_fp16") and not found.get("amx_tile"))


def resolve(precision: Precision, device: str, exact: bool = False) -> Precision:
    """Return fp32, bf16 or int8. 'auto' is bf16 where it is faster than fp32, else fp32.

    device: cpu or cuda. exact: probabilities or constraints are asked for, so that 'auto' is fp32. Raises ParameterError for
    an unknown precision, for one that the hardware does not have, and for a lower one than fp32 where exact is set.
    """
    if precision not in get_args(Precision):
        problem = f"there is no precision {precision!r}"
        raise ParameterError(problem, remedy=f"Precisions: {', '.join(get_args(Precision))}.")
    if precision == "auto":
        return "bf16" if bf16_is_fast(device) and not exact else "fp32"
    if precision != "fp32" and exact:
        problem = f"probabilities and constraints are computed in fp32, not in {precision}"
        raise ParameterError(problem, remedy="Use fp32 or auto.")
    if precision == "bf16" and not has_bf16(device):
        raise ParameterError("this processor does not compute in bf16", remedy="Use fp32, or int8.")
    if precision == "int8" and (device != "cpu" or platform.machine() not in X86):
        raise ParameterError("int8 is for x86 processors, not for this device", remedy="Use bf16 or fp32.")
    return precision


def matrix(linear: nn.Linear | LowRankLinear) -> Float[Tensor, "o i"]:
    """Return the matrix of a linear map, with what it has learned with low rank."""
    return linear.weight + linear.up @ linear.down if isinstance(linear, LowRankLinear) else linear.weight


class Bf16Linear(nn.Module):
    """A linear map in bf16 on a CPU. Its matrix is put in oneDNN's order once, and its bias is added within the product."""

    def __init__(self, linear: nn.Linear | LowRankLinear):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(matrix(linear).bfloat16())
        self.bias = None if linear.bias is None else linear.bias.detach().bfloat16()

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return torch.ops.mkldnn._linear_pointwise(x.bfloat16(), self.weight, self.bias, "none", [], "")


class Int8Linear(nn.Module):
    """A linear map of whole numbers: y = s_x (round(x / s_x) round(W / s_w)) s_w + b, where each row of x and W has its scale."""

    def __init__(self, linear: nn.Linear | LowRankLinear):
        super().__init__()
        weight = matrix(linear)
        self.scale = weight.abs().amax(1).clamp(min=TINY) / WEIGHT_STEPS
        whole = (weight / self.scale[:, None]).round().to(torch.int8)
        self.zeros = torch.zeros(len(weight), dtype=torch.long)
        self.whole = torch.ops.onednn.qlinear_prepack(whole, None)
        self.bias = (self.scale.new_zeros(len(weight)) if linear.bias is None else linear.bias.detach()).numpy()

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        rows = x.flatten(0, -2).contiguous()
        scale = torch.maximum(rows.amax(-1), -rows.amin(-1)).clamp_(min=TINY) / STEPS
        whole = torch.empty_like(rows, dtype=torch.uint8)
        _round(rows.numpy(), scale.numpy(), whole.numpy())
        weight = self.whole, self.scale, self.zeros
        y = torch.ops.onednn.qlinear_pointwise(whole, 1.0, MIDDLE, *weight, None, 1.0, 0, torch.float32, "none", [], "")
        _scale(y.numpy(), scale.numpy(), self.bias)
        return y.unflatten(0, x.shape[:-1])


# Compiled: as several torch operations, the two take as long as the product of whole numbers.
@compiled
def _round(x, scale, whole):
    for row in range(len(x)):
        step = scale[row]  # outside the loop: else it is not vectorised
        for k in range(x.shape[1]):
            whole[row, k] = np.uint8(np.int32(x[row, k] / step + HALF_UP))  # positive: rounds down


@compiled
def _scale(y, scale, bias):
    for row in range(len(y)):
        step = scale[row]
        for k in range(y.shape[1]):
            y[row, k] = y[row, k] * step + bias[k]


# The copies of each network in lower precision. Beside each copy stands the state that the network had when the copy was made.
COPIES: WeakKeyDictionary[Network, dict[str, tuple[list, Network]]] = WeakKeyDictionary()


@torch.no_grad()
def lowered(network: Network, precision: Precision) -> Network:
    """Return a copy of the network that computes in bf16 or int8; in fp32 the network. A copy is made again after a change.

    A copy in int8 has the network's tensors. A copy in bf16 has its own and runs inside autocast, which would cast those of
    the network again for every batch. Without a pretrained encoder there is no copy. int8 then raises ModelError.
    """
    pretrained = isinstance(network.words, PretrainedEncoder)
    if precision == "int8" and not pretrained:
        raise ModelError("int8 is for a pretrained encoder, and this parser has none", remedy="Use fp32.")
    if precision == "fp32" or not pretrained:
        return network
    device, state, copies = next(network.parameters()).device.type, network.state(), COPIES.setdefault(network, {})
    kind, whole = f"{precision} {device}", precision == "int8"
    packs = whole or device == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if kind not in copies or not same_state(copies[kind][0], state):
        tensors = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
        if not whole:
            wide = (w for w in network.parameters() if w.dim() > 1)
            tensors |= {id(w): nn.Parameter(w.bfloat16(), requires_grad=False) for w in wide}
        quick, make = deepcopy(network, tensors), Int8Linear if whole else Bf16Linear
        for path, parent in network.named_modules() if packs else ():
            for name, child in parent.named_children():
                if isinstance(child, nn.Linear | LowRankLinear) and f"{path}.{name}".startswith(WHERE):
                    setattr(quick.get_submodule(path), name, make(child))
        copies[kind] = state, quick.eval()
    return copies[kind][1]
