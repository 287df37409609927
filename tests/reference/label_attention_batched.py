"""The label attention layer straight from the equations, batched: nothing folded, nothing slow by accident.

What `lalkit bench layer` compares with. `label_attention_literal` is the same, word by word, for the tests.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def batched(layer, x, mask):
    """-> (y, attention) as LabelAttention.forward without dropout, for a query vector, shared projections, concatenation."""
    config = layer.config
    keys, values = layer.key(x), layer.value(x)  # [B, T, H, d_kv]
    logits = torch.einsum("hk,bthk->bht", layer.query, keys) / math.sqrt(config.d_kv)
    attention = torch.softmax(logits.masked_fill(~mask[:, None], -1e9), dim=-1)
    contexts = torch.einsum("bht,bthk->bhk", attention, values)
    residual = x[:, :, None] + layer.project(contexts)[:, None]  # [B, T, H, d_model]
    return F.layer_norm(layer.reduce(residual), (config.d_out,), layer.gain, layer.offset), attention
