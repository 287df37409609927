"""The losses of `lalkit.network.head_ties` as loops, span by span and head by head."""

import torch


def tie_loss(ties, posts, first, spans):
    """posts [B, F, H, d]; first: W1 of the span scorer [hidden, H d]; spans of each sentence: (start, end, label)."""
    heads, size = posts.shape[2:]
    total = posts.new_zeros(())
    for b, some in enumerate(spans):
        for start, end, label in some:
            vectors = [posts[b, end, h] - posts[b, start, h] for h in range(heads)]
            added = [first[:, h * size : (h + 1) * size] @ vectors[h] for h in range(heads)]
            shares = torch.softmax(torch.stack([ties.direction @ a for a in added]), 0)
            own = [h for h in range(heads) if ties.owned[label, h]]
            if own:
                total = total - torch.log(sum(shares[h] for h in own))
    return total


def minmax_sums(posts, spans, labels):
    """The sum, over the spans of each label, of what each head contributes (section 4.5): [labels, H]."""
    sums = torch.zeros(labels, posts.shape[2])
    for b, some in enumerate(spans):
        for start, end, label in some:
            raw = torch.stack([(posts[b, end, h] - posts[b, start, h]).sum() for h in range(posts.shape[2])])
            sums[label] += (raw - raw.min()) / (raw.max() - raw.min())
    return sums


def likeness(vectors):
    """vectors [H, d]: the mean squared cosine over ordered pairs of different heads."""
    squares = [
        ((a @ b) / (a.norm() * b.norm())) ** 2 for i, a in enumerate(vectors) for j, b in enumerate(vectors) if i != j
    ]
    return sum(squares) / len(squares)
