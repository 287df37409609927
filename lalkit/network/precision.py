"""Parse in a lower precision: bf16 everywhere, or int8 in the encoder. Explanations and probabilities are always of fp32.

int8: the encoder's linear maps multiply whole numbers. Each row of a weight matrix has a scale of its own, and so has each
input row. With one scale for a whole batch, as torch's dynamic quantization has it, a sentence would depend on its batch, and
F1 was 1.15 lower. With a scale for each row it is 0.02 (en-news-span) and 0.30 (en-news) lower, by
`lalkit evaluate en-news --treebank ptb-sample --split dev --precision int8`.

Only fp32 gives every sentence the same tree in every batch. In bf16 and int8 the rounding differs a little with the size of a
batch: of the first 120 sentences of the PTB sample's test part, parsed alone, in usual batches and in batches of 10,000 words by
`en` and by `en-news-span`, at most 2 and 1 had another tree.
"""

from __future__ import annotations

import platform
from copy import deepcopy
from typing import Literal, get_args
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lalkit.errors import ModelError, ParameterError
from lalkit.network.parser import Network, same_state
from lalkit.network.word_vectors import LowRankLinear, PretrainedEncoder

X86 = "x86_64", "AMD64"
Precision = Literal["auto", "fp32", "bf16", "int8"]
# Inputs have 7 bits, from 1 to 127 around 64: with 8, the sum of two products can exceed 16 bits where there is no VNNI.
MIDDLE, STEPS, WEIGHT_STEPS = 64, 63, 127
WHERE = "words.transformer.", "arcs.project", "spans.first"
TINY = 1e-30  # the scale of a row of zeros


def has_bf16(device: str) -> bool:
    """Return whether the hardware computes bf16. Where it is emulated, a step takes 15 times as long as in float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    x86 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return x86 if platform.machine() in X86 else torch.ops.mkldnn._is_mkldnn_bf16_supported()


def resolve(precision: Precision, device: str, exact: bool = False) -> Precision:
    """Return fp32, bf16 or int8. 'auto' is bf16 where the hardware computes it, else fp32.

    device: cpu or cuda. exact: probabilities or constraints are asked for, so that 'auto' is fp32. Raises ParameterError for
    an unknown precision, for one that the hardware does not have, and for a lower one than fp32 where exact is set.
    """
    if precision not in get_args(Precision):
        problem = f"there is no precision {precision!r}"
        raise ParameterError(problem, remedy=f"Precisions: {', '.join(get_args(Precision))}.")
    if precision == "auto":
        return "bf16" if has_bf16(device) and not exact else "fp32"
    if precision != "fp32" and exact:
        problem = f"probabilities and constraints are computed in fp32, not in {precision}"
        raise ParameterError(problem, remedy="Use fp32 or auto.")
    if precision == "bf16" and not has_bf16(device):
        raise ParameterError("this processor does not compute in bf16", remedy="Use fp32, or int8.")
    if precision == "int8" and (device != "cpu" or platform.machine() not in X86):
        raise ParameterError("int8 is for x86 processors, not for this device", remedy="Use bf16 or fp32.")
    return precision


class Int8Linear(nn.Module):
    """A linear map of whole numbers: y = s_x (round(x / s_x) round(W / s_w)) s_w + b, where each row of x and W has its scale."""

    bias: Tensor | float

    def __init__(self, linear: nn.Linear | LowRankLinear):
        super().__init__()
        weight = linear.weight + linear.up @ linear.down if isinstance(linear, LowRankLinear) else linear.weight
        self.scale = weight.abs().amax(1).clamp(min=TINY) / WEIGHT_STEPS
        whole = (weight / self.scale[:, None]).round().to(torch.int8)
        self.zeros = torch.zeros(len(weight), dtype=torch.long)
        self.whole = torch.ops.onednn.qlinear_prepack(whole, None)
        self.bias = 0.0 if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        scale = x.abs().amax(-1, keepdim=True).clamp_(min=TINY) / STEPS
        whole = (x / scale).add_(MIDDLE + 0.5).to(torch.int8).view(torch.uint8)  # positive: `to` rounds down
        weight = self.whole, self.scale, self.zeros
        y = torch.ops.onednn.qlinear_pointwise(whole, 1.0, MIDDLE, *weight, None, 1.0, 0, torch.float32, "none", [], "")
        return y.mul_(scale).add_(self.bias)


# Of each network its state and its copy in int8.
COPIES: WeakKeyDictionary[Network, tuple[list, Network]] = WeakKeyDictionary()


@torch.no_grad()
def in_int8(network: Network) -> Network:
    """Return a copy of the network, with the same tensors, that computes in int8. It is made again after a change.

    Raises ModelError for a network without a pretrained encoder.
    """
    if not isinstance(network.words, PretrainedEncoder):
        raise ModelError("int8 is for a pretrained encoder, and this parser has none", remedy="Use fp32.")
    state = network.state()
    if network not in COPIES or not same_state(COPIES[network][0], state):
        quick = deepcopy(network, {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())})
        for path, parent in list(quick.named_modules()):
            for name, child in parent.named_children():
                if isinstance(child, nn.Linear | LowRankLinear) and f"{path}.{name}".startswith(WHERE):
                    setattr(parent, name, Int8Linear(child))
        COPIES[network] = state, quick.eval()
    return COPIES[network][1]
