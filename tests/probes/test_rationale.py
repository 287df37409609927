"""Rationales: what is kept, and that the generator learns which words matter."""

import pytest
import torch

from lalkit.probes.rationale import (
    RationaleGenerator,
    compact,
    rationale,
    reward,
    share,
    train_rationale,  # fmt: skip
)


def data(count, seed):
    """Texts of 3 to 8 words of four features; the class is the sign of the third feature of the one word that has it, and the
    fourth feature marks that word."""
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 9, (count,), generator=rng)
    mask = torch.arange(8)[None] < lengths[:, None]
    x = torch.randn(count, 8, 4, generator=rng)
    x[..., 2:] = 0
    place = (torch.rand(count, generator=rng) * lengths).long()
    label = torch.randint(0, 2, (count,), generator=rng)
    x[torch.arange(count), place, 2] = 3.0 * (2 * label - 1)
    x[torch.arange(count), place, 3] = 2.0
    return x, mask, label, place


def classify(embedded, mask):
    total = (embedded[..., 2] * mask).sum(1)
    return torch.stack([torch.sigmoid(-3 * total), torch.sigmoid(3 * total)], -1)


def test_kept_words_are_a_text_of_their_own():
    x, mask, label, place = data(6, 0)
    keep = mask & (torch.arange(8) % 2 == 1)[None]
    shorter, some = compact(x, keep)
    for b in range(6):
        assert torch.equal(shorter[b][some[b]], x[b][keep[b]])
    assert share(keep, mask).tolist() == pytest.approx([k.sum().item() / m.sum().item() for k, m in zip(keep, mask)])
    whole = reward(x, mask, mask, label, classify, 0.3)
    assert whole.tolist() == pytest.approx([1 - 0.3] * 6, abs=1e-3)


def test_where_nothing_is_kept_the_likeliest_word_is():
    torch.manual_seed(0)
    generator = RationaleGenerator(4, 8)
    torch.nn.init.constant_(generator.score.bias, -50)
    x, mask, *_ = data(5, 1)
    keep = rationale(generator, x, mask)
    assert keep.sum(1).tolist() == [1] * 5 and not (keep & ~mask).any()
    alone = [
        rationale(generator, x[b : b + 1, : int(mask[b].sum())], mask[b : b + 1, : int(mask[b].sum())])
        for b in range(5)
    ]
    for b in range(5):
        assert torch.equal(keep[b, : alone[b].shape[1]], alone[b][0])


def test_a_generator_learns_which_word_it_is(caplog):
    caplog.set_level("INFO", logger="lalkit")
    torch.manual_seed(0)
    generator, (x, mask, label, _) = RationaleGenerator(4, 8), data(64, 2)
    train_rationale(generator, lambda epoch: [(x, mask, label, classify)], 0.5, 60, rate=0.03)
    rewards = [float(record.args[2]) for record in caplog.records]
    assert len(rewards) == 60 and rewards[-1] > rewards[0] + 0.1
    x, mask, label, place = data(100, 3)  # texts it has not seen
    keep = rationale(generator, x, mask)
    assert keep[torch.arange(100), place].float().mean() > 0.95
    assert share(keep, mask).mean() < 0.5
