"""Probabilities of joint trees and the log-partition: against enumeration, and a slow twin."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
import torch

from lalkit.chart import machine
from lalkit.chart.joint import decode
from lalkit.chart.sums import marginals, marginals_batch
from lalkit.errors import ScoreError, TooLongError, TreebankError
from lalkit.treebank.tree import check_heads
from tests.chart.charts import LAMBDAS, random_chart
from tests.reference import inside_literal
from tests.reference import joint_enumeration as reference


def one_label(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All scores 0, one real label, no <H>."""
    label_scores = np.zeros((n + 1, n + 1, 3))
    label_scores[..., 1] = -np.inf
    return label_scores, np.zeros((n, n + 1))


def forbid_some(rng, labels, arcs):
    labels[..., 1][rng.random(labels.shape[:2]) < 0.5] = -np.inf
    arcs[rng.random(arcs.shape) < 0.2] = -np.inf


def assert_same(found, expected, tolerance=1e-9):
    for name, a, b in zip(found._fields, found, expected):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=name)


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize("kind", ["ties", "real"])
def test_equal_to_sums_over_all_trees(kind):
    rng = np.random.default_rng(22)
    for trial in range(160):
        lam, temperature = LAMBDAS[trial % len(LAMBDAS)], (1.0, 0.3, 2.5)[trial // 3 % 3]
        n, labels = (4, 3) if trial % 20 in (3, 10) else (1 + trial % 3, 6 - trial % 3)
        chart = random_chart(rng, n, labels, kind)
        if trial % 4 == 3:
            forbid_some(rng, *chart)
        expected = reference.sums_over_trees(*chart, lam, temperature)
        if expected.log_partition == -np.inf:
            with pytest.raises(ScoreError, match="no joint tree is left"):
                marginals(*chart, lam, temperature)
        else:
            assert_same(marginals(*chart, lam, temperature), expected)


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("size", [1, 30, 300, 3000])
@pytest.mark.parametrize("n", [6, 9, 17])
def test_equal_to_the_slow_twin(n, size, forbidden):
    """With large scores, parts of the scaled sums become 0, and are computed again with logarithms."""
    rng = np.random.default_rng(n)
    labels, arcs = (size * scores for scores in random_chart(rng, n, 6, "real"))
    if forbidden:
        forbid_some(rng, labels, arcs)
    scores = [torch.from_numpy(part.copy()).requires_grad_() for part in (labels, arcs)]
    expected = inside_literal.log_partition(*scores, 0.4, 0.5)
    expected.backward()
    found = marginals(labels, arcs, 0.4, 0.5)
    assert found.log_partition == pytest.approx(expected.item(), rel=1e-10)
    np.testing.assert_allclose(found.arcs, scores[1].grad * 0.5 / 0.6, atol=1e-7)
    np.testing.assert_allclose(found.labels[..., 1:], scores[0].grad[..., 1:] * 0.5 / 0.4, atol=1e-7)


@pytest.mark.parametrize(("n", "size"), [(100, 1.0), (40, 1e4)])
def test_probabilities_add_up(n, size):
    label_scores, arc_scores = (size * scores for scores in random_chart(np.random.default_rng(5), n, 6, "real"))
    result = marginals(label_scores, arc_scores, 0.5)
    assert result.log_partition >= decode(label_scores, arc_scores, 0.5).score
    np.testing.assert_allclose(result.arcs.sum(1), 1, atol=1e-9)
    spans = result.labels[..., 1:].sum(-1)
    np.testing.assert_allclose(result.head_words.sum(-1), spans, atol=1e-9)


def projective_trees(n: int) -> Iterator[tuple[int, ...]]:
    for heads in product(range(n + 1), repeat=n):
        with suppress(TreebankError):
            check_heads(heads)
            yield heads


def bracketings(i: int, j: int, whole: tuple[int, int]) -> Iterator[tuple]:
    """Yield every set of nested spans of the words i..j, without a span over the whole."""
    if i == j:
        yield ()
        return
    yield from bracketings(i + 1, j, whole)
    for k in range(i + 1, j + 1):
        for inner in bracketings(i, k, (i, k)) if (i, k) != whole else ():
            yield from (((i, k), *inner, *rest) for rest in bracketings(k, j, whole))


@pytest.mark.parametrize("task", ["dependencies", "constituents"])
@pytest.mark.parametrize("n", range(1, 7))
def test_trees_of_one_layer_are_counted_once(task, n):
    rng = np.random.default_rng(n)
    for size in (1, 30):
        labels, arcs = (size * scores for scores in random_chart(rng, n, 4, "real"))
        (found,) = marginals_batch([(labels, arcs)], 1.0 * (task == "constituents"), 2.0, task=task)
        if task == "dependencies":
            trees = [[(d, h) for d, h in enumerate(heads)] for heads in projective_trees(n)]
            weights, probabilities = arcs / 2, found.arcs
        else:
            trees = [[(0, n), *spans] for spans in bracketings(0, n, (0, n))]
            weights, probabilities = np.logaddexp.reduce(labels[..., 2:] / 2, -1), found.labels[..., 1:].sum(-1)
        logs = np.array([sum(weights[part] for part in tree) for tree in trees])
        assert found.log_partition == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)
        expected = np.zeros(weights.shape)
        for tree, log in zip(trees, logs):
            expected[tuple(zip(*tree))] += np.exp(log - found.log_partition)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-9)


def test_numbers_that_become_0_without_logarithms_are_not_lost():
    label_scores, arc_scores = np.zeros((4, 4, 3)), np.full((3, 4), -9000.0)
    arc_scores[1, 0] = arc_scores[2, 2] = arc_scores[0, 3] = 0  # 1 -> 3 is not possible: 2, the root, stands between
    arc_scores[0, 2] = -1500  # the best tree: e^-750 becomes 0
    arc_scores[0, 0] = arc_scores[1, 1] = -1200  # another tree: neither e^-600 nor e^-600 becomes 0
    expected = reference.sums_over_trees(label_scores, arc_scores)
    assert expected.arcs[0, 2] > 0.99
    assert_same(marginals(label_scores, arc_scores, 0.5), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sentence_has_the_same_probabilities_alone_and_in_a_batch(dtype):
    rng = np.random.default_rng(3)
    pairs = [random_chart(rng, n, 5, "real", dtype) for n in (7, 1, 20, 3, 12, 2)]
    for pair, result in zip(pairs, marginals_batch(pairs, 0.3, 0.8, threads=2)):
        alone = marginals(*pair, 0.3, 0.8)
        assert result.log_partition.hex() == alone.log_partition.hex()
        assert result.labels.dtype == result.arcs.dtype == dtype
        assert all(a.tobytes() == b.tobytes() for a, b in zip(result[1:], alone[1:]))
    assert marginals_batch([], 0.5) == []


WRONG = [
    ("labels", (0, 2, 3), np.nan, r"label_scores\[0, 2, 3\]"), ("labels", (1, 2, 3), np.inf, r"label_scores\[1, 2, 3\]"),
    ("labels", (1, 2, 0), 0.5, r"label_scores\[1, 2, 0\]"), ("labels", (0, 3), -np.inf, r"label_scores\[0, 3, 0\]"),
    ("labels", (0, 3, slice(1, None)), -np.inf, "no joint tree"), ("labels", (0, 3, 3), 1e308, "too large"),
    ("arcs", (1, 0), np.nan, r"arc_scores\[1, 0\]"), ("arcs", (1, 3), np.inf, r"arc_scores\[1, 3\]"),
    ("arcs", (1,), -np.inf, "sentence 0: no joint tree"),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "place", "value", "problem"), WRONG)
def test_wrong_scores_are_named(layer, place, value, problem):
    labels, arcs = random_chart(np.random.default_rng(1), 3, 5, "real")
    {"labels": labels, "arcs": arcs}[layer][place] = value
    with pytest.raises(ScoreError, match=problem):
        marginals(labels, arcs, 0.5, 0.1)


def test_a_sentence_that_does_not_fit_is_refused_before_it_is_computed(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 2**22)
    with pytest.raises(TooLongError, match="sentence 1: 60 words"):
        marginals_batch([one_label(2), one_label(60)], 0.5)
