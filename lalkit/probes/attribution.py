"""Find the words that decide: by gradients (Mohankumar et al. 2020, table 4), and as rationales (Lei et al. 2016).

A rationale is a few words from which a classifier makes the same decision (Mohankumar et al. 2020, section 5.3). A generator
reads a text and keeps or drops each word. The classifier is not trained, and reads the kept words Z as a text. The reward is
p(class | Z) - a |Z| / T [P], and the generator learns by REINFORCE. We depart from the paper: we draw several Z for a text, and
the mean reward of the others is the baseline of each; the authors have no baseline. In training, a Z without words has the reward
0. With the reward of its likeliest word, the generator would never have to keep a word.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lalkit.probes.weights import share

logger = logging.getLogger(__name__)

METHODS = ("gradient", "integrated")
STEPS = 50
Classify = Callable[[Tensor, Tensor], Tensor]  # embedded [B, T, e], mask [B, T] -> probabilities [B, C]
SAMPLES = 4  # rationales that are drawn for a text


def attribute(
    function: Callable[..., Tensor], embedded: Tensor, target: Tensor, method: str = "gradient", *rest: Tensor
) -> Tensor:
    """Return for each unit and word the signed attribution of the target, summed over the vector's dimensions: [B, U, T].

    Args:
        function: Embedded words [B, T, e] and the rest -> probabilities [B, U, C].
        embedded: [B, T, e].
        target: Classes [B, U].
        method: "gradient" (times the input) or "integrated" (gradients integrated from zero vectors).
        rest: More arguments of the function, whose first axis is B.

    Integrated gradients use the rule of Gauss and Legendre with 50 steps. They add up to f(x) - f(0) within 1e-5, unless the
    function detaches its attention.
    """
    from captum.attr import InputXGradient, IntegratedGradients

    if method not in METHODS:
        raise ValueError(f"no method {method!r}: {' or '.join(METHODS)}")
    embedded, attributions = embedded.detach().requires_grad_(), []
    for u in range(target.shape[1]):

        def unit(x: Tensor, *others: Tensor, u: int = u) -> Tensor:
            return function(x, *others)[:, u]

        explainer, settings = InputXGradient(unit), {}
        if method == "integrated":
            explainer = IntegratedGradients(unit)
            settings = {"n_steps": STEPS, "method": "gausslegendre", "internal_batch_size": max(len(embedded), 512)}
        part = explainer.attribute(embedded, target=target[:, u], additional_forward_args=rest or None, **settings)
        attributions.append(part.sum(-1).detach())
    return torch.stack(attributions, dim=1)


def agree(attributions: Tensor, attention: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return Pearson's correlation and Jensen-Shannon divergence, [B, U] each, of |attributions| [B, U, T] and attention [B, T].

    Both sides are normalised over valid words. The divergence is in nats, from 0 to log 2. Both are nan if all attributions are
    zero; the correlation also for fewer than three words, and if one side does not vary.
    """
    valid = mask[:, None].to(attributions.dtype)
    a = share(attributions.abs() * valid)
    b = attention[:, None] * valid
    b = b / b.sum(-1, keepdim=True)
    count = valid.sum(-1, keepdim=True)
    x, y = ((v - v.sum(-1, keepdim=True) / count) * valid for v in (a, b))
    sizes = [v.square().sum(-1) for v in (x, y)]
    # Equal weights can differ in their last bit. So a side that varies by less than 1e-12 counts as not varying.
    varies = (sizes[0] > 1e-24) & (sizes[1] > 1e-24) & (count[..., 0] >= 3)
    pearson = (x * y).sum(-1) / (sizes[0] * sizes[1]).sqrt().where(varies, torch.nan)
    middle = (a + b) / 2
    jsd = (torch.special.entr(middle) - (torch.special.entr(a) + torch.special.entr(b)) / 2).sum(-1)
    return pearson, jsd.clamp(min=0)


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
) -> None:
    """Train the generator. The log has the mean reward and length of each epoch.

    Args:
        batches: The number of an epoch -> (embedded [B, T, e], mask [B, T], class [B], classify) of each batch.
        weight: a, the cost of a whole text. To compare two classifiers, give both the same a and generators of one size.
        rate: The learning rate of Adam.
    """
    optimizer = torch.optim.Adam(generator.parameters(), lr=rate)
    draws = torch.Generator().manual_seed(0)
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
                sizes.append(kept_share(z, mask))
            gained = torch.stack(rewards)
            baseline = (gained.sum(0) - gained) / (SAMPLES - 1)
            loss = -((gained - baseline) * torch.stack(chances)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sums += torch.tensor([float(gained.mean()), float(torch.stack(sizes).mean())])
            count += 1
        means = (sums / max(count, 1)).tolist()
        logger.info("rationales: epoch %d/%d, reward %.3f, length %.2f", epoch + 1, epochs, *means)


@torch.no_grad()
def reward(embedded: Tensor, keep: Tensor, mask: Tensor, label: Tensor, classify: Classify, weight: float) -> Tensor:
    """Return p(class | kept words) - weight |Z| / T, [B]."""
    probs = classify(*compact(embedded, keep))
    return probs.gather(1, label[:, None])[:, 0] - weight * kept_share(keep, mask)


@torch.no_grad()
def rationale(generator: RationaleGenerator, embedded: Tensor, mask: Tensor) -> Tensor:
    """Return [B, T], True at the words kept with p > 0.5. If there is none, it is the likeliest word."""
    logits = generator(embedded, mask)
    return _not_empty((logits > 0) & mask, logits, mask)


def compact(embedded: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Return the kept words as texts: (embedded [B, most, e], mask [B, most]). Their order stays."""
    size = keep.sum(1)
    order = torch.argsort(~keep, dim=1, stable=True)[:, : int(size.max())]
    mask = torch.arange(order.shape[1], device=keep.device)[None] < size[:, None]
    return embedded.gather(1, order[..., None].expand(*order.shape, embedded.shape[-1])), mask


def kept_share(keep: Tensor, mask: Tensor) -> Tensor:
    """Return |Z| / T, [B]."""
    return keep.sum(1) / mask.sum(1)


def _not_empty(z: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """Add the likeliest word to a rationale without words."""
    best = logits.masked_fill(~mask, -torch.inf).argmax(1, keepdim=True)
    return z | ((~z.any(1, keepdim=True)) & torch.zeros_like(z).scatter(1, best, True))
