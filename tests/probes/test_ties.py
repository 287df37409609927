"""Heads tied to labels: the loss written out, the assignment against all assignments."""

import math
from itertools import permutations

import pytest
import torch

from lalkit.probes.ties import label_tie_loss, shuffled, tie_by_contributions, tie_by_frequency
from tests.reference import probes_literal as literal

COUNTS = torch.tensor([500, 30, 3, 90, 0, 30, 19])  # of the empty label, then of six others


def test_the_loss_against_loops():
    torch.manual_seed(0)
    logits = torch.randn(12, 8, dtype=torch.float64)
    labels = torch.randint(0, 7, (12,))
    owned = tie_by_frequency(COUNTS, 8)
    wanted = literal.label_tie_loss(logits.tolist(), labels.tolist(), owned.tolist())
    assert float(label_tie_loss(logits, labels, owned)) == pytest.approx(wanted, abs=1e-12)
    assert {0, 4} & set(labels.tolist())  # spans of labels without heads were among them


def test_what_the_loss_is_known_to_be():
    owned = torch.tensor([[False] * 4, [True, False, False, False], [False, True, True, True]])
    even, far = torch.zeros(1, 4), torch.tensor([[200.0, 0, 0, 0]])
    one, rest, none = (torch.tensor([label]) for label in (1, 2, 0))
    assert float(label_tie_loss(even, one, owned)) == pytest.approx(math.log(4))
    assert float(label_tie_loss(even, rest, owned)) == pytest.approx(math.log(4 / 3))
    assert float(label_tie_loss(far, one, owned)) == 0
    assert float(label_tie_loss(far, rest, owned)) == pytest.approx(200 - math.log(3))  # and no infinity
    logits = even.clone().requires_grad_()
    loss = label_tie_loss(logits, none, owned)
    loss.backward()
    assert float(loss.detach()) == 0 and (logits.grad == 0).all()
    assert float(label_tie_loss(even, one, torch.ones_like(owned))) == 0  # every head is right


def test_its_gradients_are_finite_and_right():
    logits = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    owned, labels = tie_by_frequency(COUNTS, 6), torch.tensor([1, 3, 0, 2, 5])
    assert torch.autograd.gradcheck(lambda z: label_tie_loss(z, labels, owned), logits)


def test_frequent_labels_have_a_head_each_and_rare_ones_the_rest():
    owned = tie_by_frequency(COUNTS, 6)
    heads = [set(row.nonzero()[:, 0].tolist()) for row in owned]
    assert heads == [set(), {1}, {3, 4, 5}, {0}, set(), {2}, {3, 4, 5}]
    assert tie_by_frequency(COUNTS, 3, least=40).sum(-1).tolist() == [0, 2, 2, 1, 0, 2, 2]
    assert tie_by_frequency(torch.tensor([5, 5]), 2, empty=None, least=1).tolist() == [[True, False], [False, True]]
    with pytest.raises(ValueError, match="3 heads for 3 labels and the rare ones"):
        tie_by_frequency(COUNTS, 3)


def test_the_assignment_is_the_best_of_all():
    torch.manual_seed(1)
    frequent = [3, 1, 5]
    for _ in range(20):
        contributions = torch.randn(7, 5)
        owned = tie_by_contributions(contributions, COUNTS)
        sums = [
            sum(float(contributions[label, head]) for label, head in zip(frequent, heads))
            for heads in permutations(range(5), 3)
        ]
        assert float(contributions[frequent][owned[frequent]].sum()) == pytest.approx(max(sums), abs=1e-6)
        assert owned[frequent].sum(-1).tolist() == [1, 1, 1] and owned[0].sum() == 0
        left = ~owned[frequent].any(0)
        assert torch.equal(owned[2], left) and torch.equal(owned[6], left)
    assert not tie_by_contributions(contributions, torch.zeros(7)).any()


def test_the_control_deals_the_same_sets_out_anew():
    owned = tie_by_frequency(COUNTS, 8)
    found = [shuffled(owned, seed) for seed in range(4)]
    for other in found:
        assert sorted(map(tuple, other.tolist())) == sorted(map(tuple, owned.tolist()))
        assert torch.equal(other.any(-1), owned.any(-1))
    assert torch.equal(found[0], shuffled(owned, 0)) and any(not torch.equal(owned, other) for other in found)
