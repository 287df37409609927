"""Joint decoding on the CPU: what comes out is a joint tree, gold comes back, and bad input is refused."""

import warnings

import numpy as np
import pytest

from lalkit.chart import joint, machine
from lalkit.chart.joint import decode, decode_batch
from lalkit.errors import TooLongError
from tests.chart.charts import random_chart, random_joint_tree, same_tree, same_trees


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gold_scores_decode_to_gold(dtype):
    rng = np.random.default_rng(3)
    subheads = 0
    for trial in range(150):
        n, labels = 1 + trial % 30, 7
        spans, heads = random_joint_tree(rng, n, labels)
        label_scores = np.full((n + 1, n + 1, labels), -1, dtype)
        label_scores[..., 0] = 0
        arc_scores = np.full((n, n + 1), -1, dtype)
        for i, j, label, _ in spans:
            label_scores[i, j, label] = 1
        arc_scores[np.arange(n), heads] = 1
        tree = decode(label_scores, arc_scores, 0.5)
        assert (tree.spans, tree.heads.tolist()) == (spans, heads)
        assert tree.score == 0.5 * len(spans) + 0.5 * n
        subheads += sum(label == 1 for _, _, label, _ in spans)
    assert subheads > 75


def test_a_batch_is_its_sentences():
    rng = np.random.default_rng(5)
    pairs = [random_chart(rng, int(n), 6, "real", np.float32) for n in rng.integers(1, 25, 30)]
    alone = [decode(*pair, 0.5) for pair in pairs]
    for threads in (None, 1, 3):
        assert same_trees(decode_batch(pairs, 0.5, threads), alone)
    assert same_trees(decode_batch(pairs[::-1], 0.5), alone[::-1])
    assert decode_batch([], 0.5) == []


def test_cells_that_are_not_read_may_hold_anything():
    label_scores, arc_scores = random_chart(np.random.default_rng(9), 7, 5, "real")
    expected = decode(label_scores, arc_scores, 0.5)
    label_scores[np.tril_indices(8)] = np.nan
    arc_scores[np.arange(7), np.arange(1, 8)] = -np.inf
    before = label_scores.copy(), arc_scores.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as: invalid value in -inf * 0
        assert same_tree(decode(label_scores, arc_scores, 0.5), expected)
        decode(label_scores, arc_scores, lam=1)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, (label_scores, arc_scores)))


@pytest.mark.parametrize(
    ("layer", "place", "value", "problem"),
    [
        *((0, (1, 3, 2), value, r"sentence 1: label_scores\[1, 3, 2\]") for value in (np.nan, np.inf, -np.inf)),
        *((1, (2, 4), value, r"sentence 1: arc_scores\[2, 4\]") for value in (np.nan, np.inf, -np.inf)),
        (0, (0, 2, 0), 0.5, r"label_scores\[0, 2, 0\] is 0.5: the empty label"),
        (1, (), 3e38, "too large to add up"),
    ],
)
def test_wrong_scores_are_named(layer, place, value, problem):
    good, wrong = (random_chart(np.random.default_rng(1), 4, 5, "real", np.float32) for _ in range(2))
    wrong[layer][place] = value
    with pytest.raises(ValueError, match=problem):
        decode_batch([good, wrong], lam=0.0 if value == 3e38 else 0.5)


@pytest.mark.parametrize(
    ("labels", "arcs", "lam", "problem"),
    [
        ((4, 4, 5), (3, 3), 0.5, "arc_scores must be"), ((1, 1, 5), (0, 1), 0.5, "n >= 1"),
        ((5, 5, 5), (3, 4), 0.5, r"label_scores must be \[4, 4, L\]"), ((4, 4, 2), (3, 4), 0.5, "L >= 3"),
        ((4, 4), (3, 4), 0.5, "label_scores must be"),
        *(((4, 4, 5), (3, 4), lam, "lam must lie in") for lam in (-0.1, 1.5, float("nan"))),
    ],
)  # fmt: skip
def test_wrong_shapes_and_weights(labels, arcs, lam, problem):
    with pytest.raises(ValueError, match=problem):
        decode(np.zeros(labels), np.zeros(arcs), lam)


def test_too_long_is_said_before_the_chart_is_allocated(monkeypatch):
    pairs = [random_chart(np.random.default_rng(0), n, 4, "real", np.float32) for n in (3, 9)]
    needed = machine.chart_bytes(9, 4)
    assert needed >= 4 * 10 * 10 * 9
    monkeypatch.setattr(machine, "SMALL", 0)
    monkeypatch.setattr(machine, "available_bytes", lambda: needed)
    assert len(decode_batch(pairs, 0.5)) == 2
    monkeypatch.setattr(machine, "available_bytes", lambda: needed - 1)
    monkeypatch.setattr(joint, "_decode", lambda *_: pytest.fail("decoding began"))
    with pytest.raises(TooLongError, match="sentence 1: 9 words"):
        decode_batch(pairs, 0.5)
