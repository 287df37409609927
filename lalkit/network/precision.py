"""Choose the precision of a parse: fp32, or bf16 by torch's autocast, which is faster on some hardware.

Explanations and probabilities are always computed in fp32. Only fp32 gives every sentence the same tree in every batch: in bf16
the rounding differs a little with the size of a batch.
"""

from __future__ import annotations

import platform
from typing import Literal, get_args

import torch

from lalkit.errors import ParameterError

X86 = "x86_64", "AMD64"
Precision = Literal["auto", "fp32", "bf16"]


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
    """Return fp32 or bf16. 'auto' is bf16 where it is faster than fp32, else fp32.

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
        raise ParameterError("this processor does not compute in bf16", remedy="Use fp32.")
    return precision
