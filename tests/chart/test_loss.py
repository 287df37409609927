"""Margin and likelihood against the enumeration of all trees, and their gradients; the arc loss by hand."""

from itertools import product

import numpy as np
import pytest
import torch

from lalkit.chart.loss import arc_loss, span_likelihood_loss, span_margin_loss
from lalkit.network.parser import arc_log_probabilities
from tests.chart.charts import random_joint_tree
from tests.reference import cky_literal as reference

LABELS = 5


def random_batch(rng, lengths, bonus, exact=False):
    """(label_scores [B, N+1, N+1, L] float64 with NaN padding, gold): gold labels score `bonus` more."""
    n = max(lengths) + 1
    scores = rng.standard_normal((len(lengths), n + 1, n + 1, LABELS))
    if exact:
        scores = np.round(scores)
    scores[..., 0] = 0
    gold = []
    for b, length in enumerate(lengths):
        spans, _ = random_joint_tree(rng, length, LABELS)
        gold.append([(i, j, label) for i, j, label, _ in spans])
        for i, j, label in gold[-1]:
            scores[b, i, j, label] += bonus
        scores[b, length + 1 :] = np.nan
        scores[b, :, length + 1 :] = np.nan
    return torch.from_numpy(scores), gold


def one(scores, b, n):
    return scores[b, : n + 1, : n + 1].numpy()


def test_equals_the_enumeration():
    rng = np.random.default_rng(23)
    seen = {"zero": 0, "positive": 0}
    for trial in range(40):
        lengths = rng.integers(1, 7, 6).tolist()
        scores, gold = random_batch(rng, lengths, bonus=(0, 3, 6)[trial % 3])
        margins = [reference.margin(one(scores, b, n), gold[b]) for b, n in enumerate(lengths)]
        loss = span_margin_loss(scores, lengths, gold)
        assert loss.dtype == torch.float64
        assert loss.item() == pytest.approx(sum(max(0, margin) for margin in margins), abs=1e-9)
        for margin in margins:
            seen["positive" if margin > 1e-9 else "zero"] += 1
    assert min(seen.values()) > 30, seen


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(31)
    scores, gold = random_batch(rng, [3, 1], bonus=0)
    scores = scores.nan_to_num(7.0).requires_grad_()
    assert span_margin_loss(scores, [3, 1], gold) > 1
    assert torch.autograd.gradcheck(lambda s: span_margin_loss(s, [3, 1], gold), scores, eps=1e-6, atol=1e-6)


def nested_spans(n):
    """Every set of labelled spans that is a tree of n words: any admissible label or none on every span, nothing crosses."""
    spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    names = [reference.admissible(i, j, n, LABELS) for i, j in spans]
    for labels in product(*names):
        tree = [(i, j, label) for (i, j), label in zip(spans, labels) if label]
        if not any(a < i < b < j for a, b, _ in tree for i, j, _ in tree):
            yield tree


@pytest.mark.parametrize("n", [1, 2, 3])
def test_likelihood_equals_the_enumeration_and_its_gradient_is_probabilities_less_gold(n):
    rng = np.random.default_rng(53 + n)
    trees = list(nested_spans(n))
    for trial in range(8):
        scores, gold = random_batch(rng, [n, 6], bonus=trial % 4)
        chart = one(scores, 0, n)
        totals = np.array([sum(chart[i, j, label] for i, j, label in tree) for tree in trees])
        partition = np.logaddexp.reduce(totals)
        scores = scores.nan_to_num(7.0).requires_grad_()
        loss = span_likelihood_loss(scores, torch.tensor([n, 6]), gold)
        other = span_likelihood_loss(scores[1:], [6], gold[1:])
        expected = partition - sum(chart[i, j, label] for i, j, label in gold[0])
        assert (loss - other).item() == pytest.approx(expected, abs=1e-9)
        gradient = torch.autograd.grad(loss, scores)[0][0]
        expected = torch.zeros_like(gradient)
        for tree, total in zip(trees, totals):
            for i, j, label in tree:
                expected[i, j, label] += np.exp(total - partition)
        for i, j, label in gold[0]:
            expected[i, j, label] -= 1
        assert torch.allclose(gradient, expected, atol=1e-9)


def test_likelihood_of_a_long_sentence_does_not_overflow():
    scores, gold = random_batch(np.random.default_rng(59), [150], bonus=0)
    scores = (scores.float() * 100).nan_to_num(0.0).requires_grad_()
    loss = span_likelihood_loss(scores, [150], gold)
    loss.backward()
    assert loss.dtype == torch.float32 and loss.isfinite() and scores.grad.isfinite().all()
    assert loss > 0


@pytest.mark.parametrize("ignore", [0, -100])
def test_arc_loss_by_hand(ignore):
    """Scores -> log-probabilities -> loss: no word is its own head, padding is nobody's, padded rows do not count."""
    rng = np.random.default_rng(47)
    lengths, n = [4, 1, 6], 7
    scores = torch.from_numpy(rng.standard_normal((3, n, n + 1)))
    heads, mask = torch.full((3, n), ignore), torch.zeros(3, n, dtype=torch.bool)
    expected, allowed = 0.0, torch.zeros(scores.shape, dtype=torch.bool)
    for b, length in enumerate(lengths):
        mask[b, :length] = True
        heads[b, :length] = torch.tensor(random_joint_tree(rng, length, LABELS)[1])
        for d in range(length):
            others = [h for h in range(length + 1) if h != d + 1]
            allowed[b, d, others] = True
            row = np.exp(scores[b, d].numpy())
            expected -= np.log(row[heads[b, d]] / row[others].sum())
    scores.masked_fill_(~allowed, 1e6).requires_grad_()
    loss = arc_loss(arc_log_probabilities(scores, mask), heads, mask)
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    loss.backward()
    assert torch.all(scores.grad[~allowed] == 0)
    several = allowed & (allowed.sum(-1, keepdim=True) > 1)
    assert torch.all(scores.grad[several] != 0)
    half = arc_log_probabilities(scores.detach().bfloat16(), mask)
    assert arc_loss(half, heads, mask).dtype == torch.float32
