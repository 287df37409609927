"""The log-partition of joint trees by the equations of `lalkit.chart.sums`, one span after the other, as a function of torch.

The twin of that file for sentences that are too long for enumeration: autograd computes the probabilities.
"""

import torch
from torch import Tensor

IMPOSSIBLE = -1e9  # finite, so that gradients are numbers


def log_partition(label_scores: Tensor, arc_scores: Tensor, lam: float = 0.5, temperature: float = 1.0) -> Tensor:
    """Return log Z of one sentence, a scalar. label_scores: [n+1, n+1, L], arc_scores: [n, n+1]; -inf forbids."""
    n = len(arc_scores)
    labels = (lam / temperature * label_scores).clamp(min=IMPOSSIBLE)
    arcs = ((1 - lam) / temperature * arc_scores).clamp(min=IMPOSSIBLE)
    words, nothing = torch.arange(n), labels.new_full((n,), IMPOSSIBLE)
    child, right, left, attached = {}, {}, {}, {}  # N, R, L, D of every span, [n] over the head word
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            here = (words >= i) & (words < j)
            name = labels[i, j, 2 if width in (1, n) else 1 :].logsumexp(0)
            to_right = [torch.where(words < k, right[i, k] + attached[k, j], nothing) for k in range(i + 1, j)]
            to_left = [torch.where(words >= k, attached[i, k] + left[k, j], nothing) for k in range(i + 1, j)]
            if width > 1:
                content = torch.stack(to_right + to_left).logsumexp(0) + name
            else:
                content = (name if n == 1 else torch.stack([name, name * 0]).logsumexp(0)).expand(n)
            child[i, j] = torch.where(here, content, nothing)
            right[i, j] = torch.stack([child[i, j], *to_right]).logsumexp(0)
            left[i, j] = torch.stack([right[i, j], *to_left]).logsumexp(0)
            attached[i, j] = (child[i, j][:, None] + arcs[:, 1:])[i:j].logsumexp(0)
    return (child[0, n] + arcs[:, 0]).logsumexp(0)
