"""Batches of like length under a budget of words, the same for the same seed and epoch; and parts of a batch."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Words of a batch in parsing: on a CPU what a core's caches hold, with little padding (2,000 took 20% longer).
USUAL = {"cpu": 500}
MOST = 8000  # elsewhere
# The price of one more part, in sub-words; training steps of MiniLM told no difference from 24 to 96.
PART = 48


def usual(device: str) -> int:
    """How many words a batch has in parsing, on a device of this type."""
    return USUAL.get(device, MOST)


def batches(lengths: Sequence[int], budget: int, seed: int | None = None, epoch: int = 0) -> list[list[int]]:
    """Indices grouped so that sentences x longest <= budget; one sentence longer than the budget is a batch by itself.

    seed None: longest first, for evaluation (the peak of memory comes first). Otherwise lengths are blurred by +-10% so that
    the groups differ between epochs, and the batches are shuffled.
    """
    rng = random.Random(f"{seed}/{epoch}")
    blur = (lambda: 1.0) if seed is None else (lambda: rng.uniform(0.9, 1.1))
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i] * blur(), i))
    groups: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
            longest = lengths[i]
    if seed is not None:
        rng.shuffle(groups)
    return groups


def parts(lengths: Sequence[int], cost: int = PART) -> list[list[int]]:
    """Indices of rows in parts of like length, longest first: those for which rows x longest, added up over parts, with `cost`
    for each, is least."""
    sizes = sorted(set(lengths), reverse=True)
    rows = {size: [i for i, length in enumerate(lengths) if length == size] for size in sizes}
    best: list[tuple[int, int]] = [(0, 0)]  # of the k longest sizes: the least total, and where the last part begins
    for k in range(1, len(sizes) + 1):
        within, choices = 0, []
        for first in range(k - 1, -1, -1):
            within += len(rows[sizes[first]])
            choices.append((best[first][0] + within * sizes[first] + cost, first))
        best.append(min(choices))
    found, k = [], len(sizes)
    while k:
        first = best[k][1]
        found.append([i for size in sizes[first:k] for i in rows[size]])
        k = first
    return found[::-1]
