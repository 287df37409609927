"""Probabilities of joint trees against sums over all trees, and the two ways to compute them against each other."""

import numpy as np
import pytest
import torch

from lalkit.chart import machine as memory
from lalkit.chart.inside_outside import solve
from lalkit.chart.joint import decode
from lalkit.chart.marginals import marginals, marginals_batch
from lalkit.chart.marginals_torch import by_torch
from lalkit.errors import TooLongError
from tests.chart.charts import LAMBDAS, random_chart
from tests.reference import joint_enumeration as reference


def one_label(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All scores 0, one real label, no <H>."""
    label_scores = np.zeros((n + 1, n + 1, 3))
    label_scores[..., 1] = -np.inf
    return label_scores, np.zeros((n, n + 1))


def with_logarithms(label_scores, arc_scores, lam=0.5, temperature=1.0):
    """(log partition, labels, arcs, head words, entropy) by the slow kernel."""
    labels = np.zeros_like(label_scores)
    weights = lam / temperature, (1 - lam) / temperature
    log_z, arcs, head_words, entropy = solve(label_scores, arc_scores, *weights, labels, True, True)
    return log_z, labels, arcs, head_words, max(0.0, entropy)


def assert_same(found, expected, tolerance=1e-9):
    for name, a, b in zip(reference.Sums._fields, found, expected):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=name)


def test_every_tree_counts_once():
    counts = [np.exp(marginals(*one_label(n)).log_partition) for n in range(1, 6)]
    np.testing.assert_allclose(counts, [1, 8, 88, 1_184, 17_792], rtol=1e-12)


@pytest.mark.parametrize("kind", ["ties", "exact", "real"])
def test_equal_to_sums_over_all_trees(kind):
    rng = np.random.default_rng(22)
    for trial in range(200):
        n, lam, temperature = 1 + trial % 5, LAMBDAS[trial % len(LAMBDAS)], (1.0, 0.3, 2.5)[trial % 3]
        chart = random_chart(rng, n, int(rng.integers(3, 7)), kind)
        if trial % 4 == 3:  # some labels and arcs are forbidden, but never all
            chart[0][..., 1][rng.random((n + 1, n + 1)) < 0.5] = -np.inf
            chart[1][rng.random((n, n + 1)) < 0.2] = -np.inf
        expected = reference.sums_over_structures(*chart, lam, temperature)
        if expected.log_partition == -np.inf:
            with pytest.raises(ValueError, match="no joint tree is left"):
                marginals(*chart, lam, temperature)
            continue
        assert_same(marginals(*chart, lam, temperature, head_words=True), expected)
        assert_same(with_logarithms(*chart, lam, temperature), expected)


def test_equal_to_sums_over_labelled_trees():
    rng = np.random.default_rng(23)
    for trial in range(12):
        chart = random_chart(rng, 1 + trial % 3, 4, "real")
        assert_same(marginals(*chart, 0.3, head_words=True), reference.sums_over_trees(*chart, 0.3))


@pytest.mark.parametrize("n", [6, 7, 8, 9, 13, 20, 33])
def test_both_ways_agree_on_longer_sentences(n):
    chart = random_chart(np.random.default_rng(n), n, 6, "real")
    assert_same(marginals(*chart, 0.4, 0.5, head_words=True), with_logarithms(*chart, 0.4, 0.5))


def test_probabilities_add_up():
    n = 25
    result = marginals(*random_chart(np.random.default_rng(5), n, 6, "real"), head_words=True)
    np.testing.assert_allclose(result.arcs.sum(1), 1, atol=1e-12)
    assert result.arcs[:, 0].sum() == pytest.approx(1)
    spans = result.labels[..., 1:].sum(-1)
    np.testing.assert_allclose(result.head_words.sum(-1), spans, atol=1e-12)
    assert spans[0, n] == pytest.approx(1)
    assert np.all(result.labels[np.tril_indices(n + 1)] == 0)
    np.testing.assert_allclose(result.head_words[0, n], result.arcs[:, 0], atol=1e-12)


def test_a_low_temperature_leaves_the_best_tree():
    rng = np.random.default_rng(9)
    for n in (1, 4, 12, 30):
        chart = random_chart(rng, n, 5, "exact")
        tree, result = decode(*chart), marginals(*chart, temperature=1e-6)
        assert result.log_partition == pytest.approx(tree.score * 1e6, rel=1e-9)
        assert all(result.labels[i, j, label] > 0.99 for i, j, label, _ in tree.spans)
        assert np.all(result.arcs[np.arange(n), tree.heads] > 0.99)
        assert result.entropy < 0.01


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_large_scores_and_long_sentences_do_not_overflow(size):
    label_scores, arc_scores = random_chart(np.random.default_rng(2), 150 if size == 1 else 40, 4, "exact")
    result = marginals(size * label_scores, size * arc_scores)
    assert np.isfinite(result.log_partition)
    assert result.log_partition >= decode(size * label_scores, size * arc_scores).score
    np.testing.assert_allclose(result.arcs.sum(1), 1, atol=1e-9)


def test_numbers_that_become_0_without_logarithms_are_not_lost():
    label_scores, arc_scores = np.zeros((4, 4, 3)), np.full((3, 4), -9000.0)
    arc_scores[1, 0] = arc_scores[2, 2] = arc_scores[0, 3] = (
        0  # 1 -> 3 is not possible: 2, the root, stands between them
    )
    arc_scores[0, 2] = -1500  # the best tree: e^-750 becomes 0
    arc_scores[0, 0] = arc_scores[1, 1] = -1200  # another tree: neither e^-600 nor e^-600 becomes 0
    expected = reference.sums_over_structures(label_scores, arc_scores)
    assert expected.arcs[0, 2] > 0.99
    assert_same(marginals(label_scores, arc_scores, head_words=True), expected)
    found = by_torch(torch.from_numpy(label_scores)[None], torch.from_numpy(arc_scores)[None], [3], 0.5, 1.0)
    np.testing.assert_allclose(found[2][0], expected.arcs, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sentence_has_the_same_probabilities_alone_and_in_a_batch(dtype):
    rng = np.random.default_rng(3)
    pairs = [random_chart(rng, n, 5, "real", dtype) for n in (7, 1, 20, 3, 12, 2)]
    for pair, result in zip(pairs, marginals_batch(pairs, 0.3, 0.8, True, threads=2)):
        alone = marginals(*pair, 0.3, 0.8, True)
        assert result.log_partition.hex() == alone.log_partition.hex()
        assert result.entropy.hex() == alone.entropy.hex()
        for a, b in zip(result[1:4], alone[1:4]):
            assert a.dtype == dtype
            assert a.tobytes() == b.tobytes()
    assert marginals_batch([]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda labels, arcs: labels.__setitem__((0, 2, 3), np.nan), r"label_scores\[0, 2, 3\] is nan"),
        (lambda labels, arcs: labels.__setitem__((1, 2, 3), np.inf), r"label_scores\[1, 2, 3\] is inf"),
        (lambda labels, arcs: labels.__setitem__((1, 2, 0), 0.5), r"label_scores\[1, 2, 0\] is 0.5: the empty label"),
        (lambda labels, arcs: arcs.__setitem__((1, 0), np.nan), r"arc_scores\[1, 0\] is nan"),
        (lambda labels, arcs: arcs.__setitem__((1, 3), np.inf), r"arc_scores\[1, 3\] is inf"),
        (lambda labels, arcs: arcs.__setitem__(1, -np.inf), "sentence 0: no joint tree is left"),
        (lambda labels, arcs: labels.__setitem__((0, 3), -np.inf), r"label_scores\[0, 3, 0\] is -inf: the empty label"),
        (lambda labels, arcs: labels.__setitem__((0, 3, slice(1, None)), -np.inf), "no joint tree is left"),
    ],
)
def test_wrong_scores_are_named(change, message):
    labels, arcs = random_chart(np.random.default_rng(1), 3, 5, "real")
    change(labels, arcs)
    with pytest.raises(ValueError, match=message):
        marginals(labels, arcs)


def test_what_is_not_read_may_be_anything():
    labels, arcs = random_chart(np.random.default_rng(1), 4, 5, "real")
    expected = marginals(labels, arcs)
    labels[np.tril_indices(5)] = np.nan
    arcs[np.arange(4), np.arange(1, 5)] = np.nan
    assert_same(marginals(labels, arcs)[:3], expected[:3], 0)


@pytest.mark.parametrize("temperature", [0, -1, np.nan, np.inf])
def test_a_temperature_that_cannot_be_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be a finite number above 0, not"):
        marginals(*one_label(2), temperature=temperature)


def test_other_settings_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="lam must lie in"):
        marginals(*one_label(2), lam=1.5)
    with pytest.raises(ValueError, match="sentence 0: arc_scores must be"):
        marginals(np.zeros((1, 1, 3)), np.zeros((0, 1)))
    with pytest.raises(ValueError, match="the scores are too large to add up"):
        marginals(np.full((3, 3, 3), 0.0), np.full((2, 3), 1e308), lam=0.0, temperature=1e-3)


def test_a_sentence_that_does_not_fit_is_refused_before_it_is_computed(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**22)
    with pytest.raises(TooLongError, match=r"sentence 1: 60 words need [0-9,]+ bytes"):
        marginals_batch([one_label(2), one_label(60)])
