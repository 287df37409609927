"""A small system to probe: heads' contexts side by side, a linear layer, a softmax, one decision for every query."""

import numpy as np
import torch

from lalkit.probes.view import AttentionView, Outcome

H, Q, D, C = 3, 2, 4, 3
LENGTHS = (5, 1, 7, 2, 3)
torch.manual_seed(0)
READ = torch.randn(H * D, C, dtype=torch.float64)


def texts(lengths=LENGTHS, seed=0, sparse=False):
    """[(weights [H, Q, T], values [H, T, D])]; every other query of the toy is there for all texts."""
    rng = torch.Generator().manual_seed(seed)
    found = []
    for n in lengths:
        scores = 2 * torch.randn(H, Q, n, generator=rng, dtype=torch.float64)
        if sparse:
            scores = scores.masked_fill((scores < -1.5) & (scores < scores.amax(-1, keepdim=True)), -torch.inf)
        values = torch.randn(H, n, D, generator=rng, dtype=torch.float64)
        found.append((torch.softmax(scores, -1), values))
    return found


def outcome(contexts, unit_mask):
    """contexts [..., B, H, Q, D] -> Outcome with Q units."""
    probs = torch.softmax(contexts.transpose(-3, -2).flatten(-2) @ READ, -1)
    decision = probs.argmax(-1)
    right = ((decision == 0) & unit_mask).to(probs.dtype).sum(-1)
    return Outcome(probs, unit_mask, decision, torch.stack([right, torch.ones_like(right)], -1))


def view_of(some, examples, size=0, queries=Q):
    """The view of some texts in one batch, padded to `size` keys and `queries` queries with numbers that must not matter."""
    size = max([size, *(w.shape[-1] for w, _ in some)])
    b = len(some)
    weights = torch.zeros(b, H, queries, size, dtype=torch.float64)
    values = torch.full((b, H, size, D), 7.0, dtype=torch.float64)
    keys = torch.zeros(b, size, dtype=torch.bool)
    query_mask = torch.zeros(b, queries, dtype=torch.bool)
    for i, (w, v) in enumerate(some):
        n = w.shape[-1]
        weights[i, :, :Q, :n], values[i, :, :n], keys[i, :n], query_mask[i, :Q] = w, v, True, True

    def from_contexts(contexts):
        return outcome(contexts, query_mask)

    heads = [f"head {h}" for h in range(H)]
    return AttentionView(weights, values, keys, query_mask, heads, examples, from_contexts)


def predict_alone(values):
    """weights [H, Q, T] as numpy -> [Q, C]: the same system for one text, written out."""

    def predict(weights):
        found = np.zeros((Q, H * D))
        for q in range(Q):
            found[q] = np.concatenate([weights[h, q] @ values[h].numpy() for h in range(H)])
        logits = found @ READ.numpy()
        e = np.exp(logits - logits.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return predict
