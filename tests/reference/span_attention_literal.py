"""Label attention inside the span straight from the equations: a loop over sentences, spans and labels.

Weights are read from the fast module, so that scores and gradients can be compared.
"""

import math

import torch


def inside(module, words, i, j, head):
    """A(i, j, l) of one sentence's words [n, d]."""
    evidence = [words[t] @ module.evidence.weight[head] for t in range(i, j)]
    if module.config.attention == "none":
        return 0 * sum(evidence)
    if module.config.attention == "uniform":
        return sum(evidence) / (j - i)
    logits = [module.query[head] @ (module.key.weight @ words[t]) / math.sqrt(module.config.d_key) for t in range(i, j)]
    weights = torch.softmax(torch.stack(logits), dim=0)
    return sum(a * v for a, v in zip(weights, evidence))


def boundary(module, words, posts, i, j):
    """B(i, j, every label): posts [n + 1, d]."""
    scorer = module.boundary
    if module.config.boundary == "full":
        return scorer.second(torch.relu(scorer.norm(scorer.first(posts[j] - posts[i]) + scorer.bias)))
    return scorer.first.weight @ words[i] + scorer.last.weight @ words[j - 1] + scorer.last.bias


def chart(module, x, posts, lengths):
    """[B, N+1, N+1, L] of START words STOP [B, T, d] and fenceposts [B, N+1, 1, d]."""
    b, f = posts.shape[:2]
    scores = [[[torch.zeros(len(module.query) + 1, dtype=x.dtype)] * f for _ in range(f)] for _ in range(b)]
    for s in range(b):
        words = x[s, 1:-1]
        for i in range(int(lengths[s])):
            for j in range(i + 1, int(lengths[s]) + 1):
                edges = boundary(module, words, posts[s, :, 0], i, j)
                heads = [inside(module, words, i, j, head) for head in range(len(module.query))]
                scores[s][i][j] = torch.cat([torch.zeros(1, dtype=x.dtype), edges + torch.stack(heads)])
    return torch.stack([torch.stack([torch.stack(row) for row in grid]) for grid in scores])
