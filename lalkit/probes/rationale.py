"""A few words from which the classifier still decides the same (Lei et al. 2016; Mohankumar et al. 2020, section 5.3).

A generator reads a text and keeps or drops each word; the classifier, which is not trained, sees the kept words as a text of
their own. What is rewarded is p(class | Z) - a |Z| / T [P], by REINFORCE. Departure: several Z are drawn for a text, and the
mean reward of the others is each one's baseline; the authors have none. A Z without any word is worth 0 in training: were it
worth what its likeliest word is, no word would ever have to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lalkit.probes.weights import mass_ratio

Classify = Callable[[Tensor, Tensor], Tensor]  # embedded [B, T, e], mask [B, T] -> probabilities [B, C]
SAMPLES = 4


class RationaleGenerator(nn.Module):
    """embedded [B, T, e], mask [B, T] -> log-odds [B, T] that a word is kept."""

    def __init__(self, size: int, hidden: int = 64):
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * hidden, 1)

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=embedded.shape[1])
        return self.score(states)[..., 0]


def train_rationale(
    generator: RationaleGenerator,
    batches: Callable[[int], Iterable[tuple[Tensor, Tensor, Tensor, Classify]]],
    weight: float,
    epochs: int,
    rate: float = 1e-3,
    seed: int = 0,
) -> list[dict]:
    """Trains the generator; per epoch the mean reward and length. batches: epoch -> (embedded, mask, class [B], classify).

    weight: a, what a whole text costs. Comparing two classifiers, give both the same a and generators of the same size.
    """
    optimizer = torch.optim.Adam(generator.parameters(), lr=rate)
    draws = torch.Generator().manual_seed(seed)
    history = []
    for epoch in range(epochs):
        sums, count = torch.zeros(2), 0
        for embedded, mask, label, classify in batches(epoch):
            logits = generator(embedded, mask)
            p = torch.sigmoid(logits.detach())
            rewards, chances, sizes = [], [], []
            for _ in range(SAMPLES):
                z = (torch.rand(p.shape, generator=draws).to(p) < p) & mask
                gained = reward(embedded, _not_empty(z, logits, mask), mask, label, classify, weight)
                rewards.append(torch.where(z.any(1), gained, 0.0))
                log = nn.functional.logsigmoid(torch.where(z, logits, -logits))
                chances.append((log * mask).sum(1))
                sizes.append(share(z, mask))
            gained = torch.stack(rewards)
            baseline = (gained.sum(0) - gained) / (SAMPLES - 1)
            loss = -((gained - baseline) * torch.stack(chances)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sums += torch.tensor([float(gained.mean()), float(torch.stack(sizes).mean())])
            count += 1
        means = (sums / max(count, 1)).tolist()
        history.append({"epoch": epoch + 1, "reward": means[0], "length": means[1]})
    return history


@torch.no_grad()
def reward(embedded: Tensor, keep: Tensor, mask: Tensor, label: Tensor, classify: Classify, weight: float) -> Tensor:
    """[B]: p(class | kept words) - weight |Z| / T."""
    probs = classify(*compact(embedded, keep))
    return probs.gather(1, label[:, None])[:, 0] - weight * share(keep, mask)


@torch.no_grad()
def rationale(generator: RationaleGenerator, embedded: Tensor, mask: Tensor) -> Tensor:
    """[B, T] bool: the words kept with p > 0.5, or the likeliest one where there is none."""
    logits = generator(embedded, mask)
    return _not_empty((logits > 0) & mask, logits, mask)


def compact(embedded: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The kept words as texts of their own, in their order: (embedded [B, most, e], mask [B, most])."""
    size = keep.sum(1)
    order = torch.argsort(~keep, dim=1, stable=True)[:, : int(size.max())]
    mask = torch.arange(order.shape[1], device=keep.device)[None] < size[:, None]
    return embedded.gather(1, order[..., None].expand(*order.shape, embedded.shape[-1])), mask


def share(keep: Tensor, mask: Tensor) -> Tensor:
    """[B]: |Z| / T."""
    return keep.sum(1) / mask.sum(1)


def attention_on(attention: Tensor, keep: Tensor) -> Tensor:
    """[B]: the attention [B, T] of the whole text on its rationale. (The authors' program measures it on a text whose other
    words were replaced by padding.)"""
    return mass_ratio(attention[:, None], keep)[:, 0]


def _not_empty(z: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    best = logits.masked_fill(~mask, -torch.inf).argmax(1, keepdim=True)
    return z | ((~z.any(1, keepdim=True)) & torch.zeros_like(z).scatter(1, best, True))
