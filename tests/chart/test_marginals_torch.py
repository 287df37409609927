"""The log-partition as a function of torch: its gradients by finite differences, and the likelihood of gold trees."""

import numpy as np
import pytest
import torch

from lalkit.chart.loss import joint_likelihood_loss
from lalkit.chart.marginals import marginals
from lalkit.chart.marginals_torch import log_partition
from tests.chart.charts import random_chart, random_joint_tree
from tests.reference import joint_enumeration as reference

LABELS = 5


def random_batch(rng, lengths, dtype=torch.float64):
    """(label_scores [B, N+1, N+1, L], arc_scores [B, N, N+1]) with NaN in the padding, one word longer than the longest."""
    n = max(lengths) + 1
    labels = torch.full((len(lengths), n + 1, n + 1, LABELS), torch.nan, dtype=dtype)
    arcs = torch.full((len(lengths), n, n + 1), torch.nan, dtype=dtype)
    for b, length in enumerate(lengths):
        chart = random_chart(rng, length, LABELS, "real")
        labels[b, : length + 1, : length + 1], arcs[b, :length, : length + 1] = map(torch.from_numpy, chart)
    return labels.requires_grad_(), arcs.requires_grad_()


def random_gold(rng, lengths, size):
    """(spans of every sentence, heads [B, size] with a wrong head as padding)."""
    trees = [random_joint_tree(rng, n, LABELS) for n in lengths]
    heads = torch.full((len(lengths), size), 99)
    for b, (_, own) in enumerate(trees):
        heads[b, : len(own)] = torch.tensor(own)
    return [[span[:3] for span in spans] for spans, _ in trees], heads


def test_gradients_are_the_probabilities():
    rng = np.random.default_rng(1)
    lengths = [5, 1, 12, 2]
    labels, arcs = random_batch(rng, lengths)
    values = log_partition(labels, arcs, lengths, 0.3, 0.7)
    factors = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    (values * factors).sum().backward()
    for b, n in enumerate(lengths):
        pair = (labels[b, : n + 1, : n + 1].detach().numpy(), arcs[b, :n, : n + 1].detach().numpy())
        expected = marginals(*pair, 0.3, 0.7)
        assert values[b].item() == pytest.approx(expected.log_partition, abs=1e-12)
        spans = factors[b].item() * 0.3 / 0.7 * expected.labels
        spans[..., 0] = 0
        np.testing.assert_allclose(labels.grad[b, : n + 1, : n + 1], spans, atol=1e-12)
        np.testing.assert_allclose(arcs.grad[b, :n, : n + 1], factors[b].item() * expected.arcs, atol=1e-12)
        assert not labels.grad[b, n + 1 :].any()
        assert not arcs.grad[b, n:].any()


def test_gradients_agree_with_finite_differences():
    rng = np.random.default_rng(2)
    lengths = [4, 2, 1]
    labels, arcs = (torch.nan_to_num(scores.detach()).requires_grad_() for scores in random_batch(rng, lengths))
    real = torch.ones_like(labels)
    real[..., 0] = 0  # the empty label is always 0
    gold, heads = random_gold(rng, lengths, 5)
    assert torch.autograd.gradcheck(lambda x, y: log_partition(x * real, y, lengths, 0.4, 0.6), (labels, arcs))
    assert torch.autograd.gradcheck(
        lambda x, y: joint_likelihood_loss(x * real, y, lengths, gold, heads, 0.4, 0.6), (labels, arcs)
    )


def test_the_loss_is_minus_the_log_of_the_probability_of_gold():
    rng = np.random.default_rng(3)
    for lengths in ([1, 2, 3], [4, 5, 2]):
        labels, arcs = random_batch(rng, lengths)
        gold, heads = random_gold(rng, lengths, arcs.shape[1])
        expected = 0.0
        for b, n in enumerate(lengths):
            pair = (labels[b, : n + 1, : n + 1].detach().numpy(), arcs[b, :n, : n + 1].detach().numpy())
            tree = [(i, j, label, 0) for i, j, label in gold[b]], heads[b, :n].tolist()
            expected += reference.sums_over_structures(*pair, 0.3, 0.8).log_partition
            expected -= reference.score_of(tree, *pair, 0.3) / 0.8
        assert expected > 0
        assert joint_likelihood_loss(labels, arcs, lengths, gold, heads, 0.3, 0.8).item() == pytest.approx(expected)


def test_following_the_gradient_makes_gold_certain():
    rng = np.random.default_rng(4)
    lengths = [9, 4]
    labels, arcs = (torch.nan_to_num(scores.detach()).requires_grad_() for scores in random_batch(rng, lengths))
    gold, heads = random_gold(rng, lengths, 10)
    optimizer = torch.optim.Adam([labels, arcs], 0.3)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = joint_likelihood_loss(labels, arcs, lengths, gold, heads)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 5
    assert 0 < losses[-1] < 0.3


def test_half_precision_is_computed_in_float32():
    labels, arcs = (scores.detach() for scores in random_batch(np.random.default_rng(5), [6]))
    labels, arcs = labels.bfloat16().requires_grad_(), arcs.bfloat16().requires_grad_()
    value = log_partition(labels, arcs, [6])
    value.sum().backward()
    assert value.dtype == torch.float32
    assert labels.grad.dtype == arcs.grad.dtype == torch.bfloat16


def test_wrong_input_names_the_sentence():
    rng = np.random.default_rng(6)
    lengths = [3, 2]
    labels, arcs = (scores.detach() for scores in random_batch(rng, lengths))
    gold, heads = random_gold(rng, lengths, 4)
    for wrong in (2, 3, -1):  # itself, not in the sentence, nothing
        changed = heads.clone()
        changed[1, 1] = wrong
        with pytest.raises(ValueError, match="a gold head is not the root or another word"):
            joint_likelihood_loss(labels, arcs, lengths, gold, changed)
    labels[1, 0, 1, 3] = torch.nan
    with pytest.raises(ValueError, match=r"sentence 1: label_scores\[0, 1, 3\] is nan"):
        log_partition(labels, arcs, lengths)
    with pytest.raises(ValueError, match="sentence 1: length 5 is not in"):
        log_partition(labels, arcs, [3, 5])
