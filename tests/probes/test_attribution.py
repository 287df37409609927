"""Attributions of linear models, and agreement with attention written out. tests/studies/test_classifiers.py has completeness."""

import math

import pytest
import torch

from lalkit.probes.rankings import agree, attribute, compact
from tests.reference import probes_literal as literal

X = torch.randn(5, 7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_of_a_linear_function_both_methods_are_the_terms_themselves():
    w = torch.randn(7, 4, 2, dtype=torch.float64)

    def linear(x):
        return torch.einsum("bte,tec->bc", x, w)[:, None]

    target = torch.tensor([[0], [1], [0], [1], [1]])
    wanted = torch.einsum("bte,tec->btc", X, w).gather(2, target[:, None].expand(-1, 7, -1)).transpose(1, 2)
    for method in ("gradient", "integrated"):
        assert torch.allclose(attribute(linear, X, target, method), wanted)
    with pytest.raises(ValueError, match="no method 'saliency'"):
        attribute(linear, X, target, "saliency")


def test_other_arguments_go_with_their_examples():
    scale = torch.arange(1.0, 6, dtype=torch.float64)

    def function(x, s):
        return (x.sum((1, 2)) * s)[:, None, None]

    target = torch.zeros(5, 1, dtype=torch.long)
    for method in ("gradient", "integrated"):
        assert torch.allclose(attribute(function, X, target, method, scale)[:, 0], X.sum(-1) * scale[:, None])


def test_agreement_of_a_padded_batch_against_the_definitions():
    torch.manual_seed(3)
    lengths = [3, 6, 9]
    mask = torch.arange(9)[None] < torch.tensor(lengths)[:, None]
    attributions = torch.randn(3, 2, 9, dtype=torch.float64)
    attention = torch.softmax(torch.randn(3, 9, dtype=torch.float64).masked_fill(~mask, -1e9), -1)
    pearson, jsd = agree(attributions, attention, mask)
    for b, n in enumerate(lengths):
        for u in range(2):
            wanted = literal.agree(attributions[b, u, :n].tolist(), attention[b, :n].tolist())
            assert (float(pearson[b, u]), float(jsd[b, u])) == pytest.approx(wanted, abs=1e-12)
    assert ((jsd >= 0) & (jsd <= math.log(2))).all()


def test_what_agreement_is_not_defined_for():
    mask = torch.ones(1, 4, dtype=torch.bool)
    attention = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    pearson, jsd = agree(torch.zeros(1, 1, 4), attention, mask)
    assert pearson.isnan().all() and jsd.isnan().all()  # nothing is attributed
    pearson, jsd = agree(-attention[:, None], attention, mask)
    assert float(pearson) == pytest.approx(1) and float(jsd) == pytest.approx(0, abs=1e-6)
    pearson, jsd = agree(torch.tensor([[[0.1, 0.2, 0.5, 0.4]]]), torch.full((1, 4), 0.25), mask)
    assert pearson.isnan().all() and jsd.isfinite().all()  # attention does not vary
    two = torch.tensor([[True, True, False, False]])
    pearson, jsd = agree(torch.tensor([[[1.0, 2, 0, 0]]]), torch.tensor([[0.3, 0.7, 0, 0]]), two)
    assert pearson.isnan().all() and jsd.isfinite().all()  # two points are always on a line
    pearson, jsd = agree(torch.tensor([[[1.0, 0, 0, 0]]]), torch.tensor([[0.0, 1, 0, 0]]), mask)
    assert float(jsd) == pytest.approx(math.log(2))


def test_kept_words_are_a_text_of_their_own():
    mask = torch.arange(7)[None] < torch.tensor([3, 7, 5, 4, 6])[:, None]
    shorter, some = compact(X, keep := mask & (torch.arange(7) % 2 == 1)[None])
    for b in range(5):
        assert torch.equal(shorter[b][some[b]], X[b][keep[b]])
