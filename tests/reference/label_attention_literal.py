"""The label attention layer straight from the equations: no folding, no shared work, a [T, H, d_model] tensor per sentence.

Weights are read from the fast layer, so that outputs and gradients can be compared; written per head, with plain matrices.
"""

import math

import torch
from entmax import entmax15, sparsemax

NORMALISERS = {"softmax": torch.softmax, "entmax15": entmax15, "sparsemax": sparsemax}
NORMALISERS["uniform"] = lambda logits, dim: 0 * logits + 1 / logits.shape[dim]


def dense(layer, head=None):
    """A partitioned layer's matrix (of one head) as one block-diagonal matrix [out, in]; a single block as it is."""
    pick = (lambda w: w) if layer.heads is None else (lambda w: w[head])
    return torch.block_diag(*(pick(block) for block in layer.blocks))


def literal(layer, x, mask, dropout):
    """-> (y, attention) as LabelAttention.forward; x [B, T, d], mask [B, T], dropout masks or None fields."""
    config = layer.config
    outputs, attentions = [], []
    for b in range(len(x)):
        words = [t for t in range(x.shape[1]) if mask[b, t]]
        contexts, rows = [], []
        for h in range(config.heads):
            keys = x[b, words] @ dense(layer.key, h).T
            values = x[b, words] @ dense(layer.value, h).T
            if config.query == "vector":
                queries = layer.query[h].expand(x.shape[1], -1)
            else:
                queries = x[b] @ dense(layer.query, h).T
            logits = queries @ keys.T / math.sqrt(config.d_kv)
            weights = NORMALISERS[config.normaliser](logits, dim=-1)  # one row per word, all equal for a query vector
            full = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
            full[:, words] = weights
            rows.append(full[0] if config.query == "vector" else full)
            if dropout.attention is not None:
                keep = dropout.attention[b, h]
                weights = weights * (keep[words] if config.query == "vector" else keep[:, words])
            contexts.append(weights @ values)  # c_h for every word: [T, d_kv]
        attentions.append(torch.stack(rows))
        outputs.append(combine(layer, x[b], contexts, None if dropout.residual is None else dropout.residual[b]))
    return torch.stack(outputs), torch.stack(attentions)


def combine(layer, x, contexts, residual):
    config = layer.config
    if config.combine == "project":
        half = config.d_kv - config.d_kv // 2 if config.partition != "none" else config.d_kv
        joined = torch.cat([c[:, :half] for c in contexts] + [c[:, half:] for c in contexts], dim=-1)
        heads = joined @ dense(layer.project).T
        heads = heads if residual is None else heads * residual[0]
        return norm(x + heads, layer.gain, layer.offset)[:, None]
    slices = []
    for h, context in enumerate(contexts):
        projected = context @ dense(layer.project, h).T
        projected = projected if residual is None else projected * residual[h]
        gain, offset = (layer.gain, layer.offset) if config.shared else (layer.gain[h], layer.offset[h])
        slices.append(norm((x + projected) @ dense(layer.reduce, h).T, gain, offset))
    return torch.stack(slices, dim=1)


def feedforward(layer, split, y, content, d_position):
    """The feed-forward after the layer, of the heads side by side: y [.., H, content + position]."""
    joined, size = y.flatten(-2), y.shape[-1]
    place = torch.arange(joined.shape[-1])
    late = {"released": place >= len(place) - d_position, "within-heads": place % size >= content}.get(split, place < 0)
    order = torch.cat([place[~late], place[late]])  # each of the two parts has a matrix of its own
    hidden = torch.relu(joined[..., order] @ dense(layer.up).T + layer.up.bias)
    change = (hidden @ dense(layer.down).T + layer.down.bias)[..., order.argsort()]
    return norm(joined + change, layer.norm.weight, layer.norm.bias).unflatten(-1, y.shape[-2:])


def norm(y, gain, offset):
    mean = y.mean(-1, keepdim=True)
    variance = ((y - mean) ** 2).mean(-1, keepdim=True)
    return (y - mean) / torch.sqrt(variance + 1e-5) * gain + offset
