"""The best labels found by torch give the trees and the very bits of the numba decoder, whatever the padding."""

import numpy as np
import pytest
import torch

from lalkit.chart import machine as memory
from lalkit.chart.joint import decode_batch
from lalkit.chart.joint_torch import decode_batch_torch
from lalkit.errors import TooLongError
from tests.chart.charts import LAMBDAS, random_chart, same_tree


def padded(pairs, fill=np.nan):
    """Pairs -> (labels [B, N+1, N+1, L], arcs [B, N, N+1], lengths), N one more than the longest, padding = fill."""
    n = max(len(arcs) for _, arcs in pairs) + 1
    labels = np.full((len(pairs), n + 1, n + 1, pairs[0][0].shape[2]), fill, pairs[0][0].dtype)
    arcs = np.full((len(pairs), n, n + 1), fill, pairs[0][1].dtype)
    for b, (one, two) in enumerate(pairs):
        labels[b, : len(one), : len(one)] = one
        arcs[b, : len(two), : len(two) + 1] = two
    return torch.from_numpy(labels), torch.from_numpy(arcs), torch.tensor([len(two) for _, two in pairs])


def compare(device, batches, size, longest, seed):
    rng = np.random.default_rng(seed)
    for trial in range(batches):
        kind, dtype = ("ties", "real")[trial % 2], (np.float32, np.float64)[trial // 2 % 2]
        lam, labels = LAMBDAS[trial % len(LAMBDAS)] if trial % 5 else 0.3, int(rng.integers(3, 9))
        top = longest if trial % 10 == 0 else 12
        pairs = [random_chart(rng, int(n), labels, kind, dtype) for n in rng.integers(1, top + 1, size)]
        label_scores, arc_scores, lengths = padded(pairs)
        trees = decode_batch_torch(label_scores.to(device), arc_scores.to(device), lengths.to(device), lam)
        expected = decode_batch(pairs, lam)
        assert len(trees) == size
        for b, (one, two) in enumerate(zip(trees, expected)):
            assert same_tree(one, two), (trial, b, kind, dtype, lam, one, two)


ON = [("cpu", 20, 40), pytest.param("cuda", 40, 80, marks=pytest.mark.gpu)]


@pytest.mark.parametrize(("device", "batches", "longest"), ON)
def test_same_as_numba(device, batches, longest):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    compare(device, batches, size=25, longest=longest, seed=2)


def test_too_long(monkeypatch):
    pairs = [random_chart(np.random.default_rng(0), n, 4, "real", np.float32) for n in (3, 9)]
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: memory.chart_bytes(9, 4) - 1)
    with pytest.raises(TooLongError, match="sentence 1: 9 words need"):
        decode_batch_torch(*padded(pairs), 0.5)


@pytest.mark.parametrize(
    ("sentence", "layer", "place", "value", "problem"),
    [
        (1, 0, (1, 3, 2), np.nan, r"sentence 1: label_scores\[1, 3, 2\] is nan"),
        (0, 1, (2, 5), np.inf, r"sentence 0: arc_scores\[2, 5\] is inf"),
        (1, 0, (0, 2, 0), 1, r"sentence 1: label_scores\[0, 2, 0\] is 1.0: the empty label"),
    ],
)
def test_wrong_scores_are_named(sentence, layer, place, value, problem):
    pairs = [random_chart(np.random.default_rng(1), n, 5, "real") for n in (6, 4)]
    assert len(decode_batch_torch(*padded(pairs), 0.5)) == 2
    pairs[sentence][layer][place] = value
    with pytest.raises(ValueError, match=problem):
        decode_batch_torch(*padded(pairs), 0.5)
