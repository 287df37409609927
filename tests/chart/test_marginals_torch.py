"""The log-partition as a function of torch: its gradients by finite differences, and the likelihood of gold trees."""

import numpy as np
import pytest
import torch

from lalkit.chart import joint_torch, marginals_torch
from lalkit.chart import machine as memory
from lalkit.chart.loss import joint_likelihood_loss
from lalkit.chart.marginals import marginals
from lalkit.chart.marginals_torch import by_numba, by_torch, log_partition
from lalkit.errors import ScoreError, TooLongError
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


def without_gradients(rng, lengths):
    return tuple(scores.detach() for scores in random_batch(rng, lengths))


def assert_same_by_torch(labels, arcs, lengths, device="cpu"):
    found = by_torch(labels.to(device), arcs.to(device), lengths, 0.3, 0.7)
    for a, b in zip(found, by_numba(labels, arcs, lengths, 0.3, 0.7, 1)):
        assert a.device.type == device
        torch.testing.assert_close(a.cpu(), b, rtol=0, atol=1e-9)


@pytest.fixture
def alone(monkeypatch):
    """The names of the sentences that torch left to numba."""
    names: list[str] = []

    def record(*arguments):
        names.extend(arguments[-1])
        return by_numba(*arguments)

    monkeypatch.setattr(marginals_torch, "by_numba", record)
    return names


def test_torch_and_numba_agree(alone):
    rng = np.random.default_rng(7)
    for lengths in ([1], [1, 1, 2], [3], [5, 1, 12, 2], [9, 25, 4], [6, 6]):
        assert_same_by_torch(*without_gradients(rng, lengths), lengths)
    assert alone == [], "torch computed all of them"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_torch_and_numba_agree_on_cuda():
    lengths = [40, 1, 12, 2]
    labels, arcs = random_batch(np.random.default_rng(7), lengths)
    assert_same_by_torch(labels.detach(), arcs.detach(), lengths, "cuda")
    there = log_partition(labels.cuda(), arcs.cuda(), lengths)
    there.sum().backward()
    spans = labels.grad.clone()
    labels.grad = None
    log_partition(labels, arcs, lengths).sum().backward()
    torch.testing.assert_close(spans, labels.grad)


def test_torch_leaves_to_numba_what_its_sums_lose(alone):
    labels, arcs = without_gradients(np.random.default_rng(8), [6, 4, 5])
    arcs[0, 1, 3] = arcs[2, 0, 0] = -torch.inf
    labels[1] *= 1e4
    labels[1, ..., 0] = 0
    assert_same_by_torch(labels, arcs, [6, 4, 5])
    assert alone == ["sentence 0", "sentence 1"], "a forbidden root loses nothing"


def test_in_parts_and_in_pieces(monkeypatch):
    lengths = [7, 3, 12, 1]
    labels, arcs = without_gradients(np.random.default_rng(9), lengths)
    monkeypatch.setattr(joint_torch, "CHUNK", 16)
    assert_same_by_torch(labels, arcs, lengths)
    largest = memory.chart_bytes(12, 32)
    monkeypatch.setattr(memory, "available_bytes", lambda: largest + 4 * 16 * 32)
    assert len(list(joint_torch.parts(lengths, 32, memory.available_bytes()))) == 3
    assert_same_by_torch(labels, arcs, lengths)
    monkeypatch.setattr(memory, "available_bytes", lambda: largest - 1)
    with pytest.raises(TooLongError, match="sentence 2: 12 words need"):
        by_torch(labels, arcs, lengths, 0.3, 0.7)


def test_torch_names_wrong_scores():
    for change, message in (
        ((0, 1, 2), r"sentence 1: label_scores\[0, 1, 2\] is nan"),
        ((0, 1, 0), r"sentence 1: label_scores\[0, 1, 0\] is nan: the empty label"),
    ):
        labels, arcs = without_gradients(np.random.default_rng(10), [3, 2])
        labels[1][change] = torch.nan
        with pytest.raises(ScoreError, match=message):
            by_torch(labels, arcs, [3, 2], 0.3, 0.7)
    labels, arcs = without_gradients(np.random.default_rng(10), [3, 2])
    arcs[0, 2, 1] = torch.inf
    with pytest.raises(ScoreError, match=r"sentence 0: arc_scores\[2, 1\] is inf"):
        by_torch(labels, arcs, [3, 2], 0.3, 0.7)
    labels, arcs = without_gradients(np.random.default_rng(10), [3, 2])
    labels[0, 1, 2, 0] = 0.5
    with pytest.raises(ScoreError, match="sentence 0: .* is 0.5: the empty label"):
        by_torch(labels, arcs, [3, 2], 0.3, 0.7)
