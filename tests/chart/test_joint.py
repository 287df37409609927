"""Joint decoding: the first of the best of all joint trees, ties included; with torch, the very bits; bad input is refused."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch

from lalkit.bench import best_score_twin
from lalkit.chart import joint, machine
from lalkit.chart.joint import JointTree, decode, decode_batch
from lalkit.chart.joint_torch import start_batch
from lalkit.errors import TooLongError
from lalkit.treebank.tree import check_heads
from tests.chart.charts import LAMBDAS, check_joint_tree, random_chart, random_joint_tree, same_tree, same_trees
from tests.reference import joint_enumeration as reference


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
    lam = 0.0 if value == 3e38 else 0.5
    for ask in (partial(decode_batch, [good, wrong]), lambda lam: start_batch(*padded([good, wrong]), lam)()):
        with pytest.raises(ValueError, match=problem):
            ask(lam=lam)


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
    for ask in (partial(decode_batch, pairs), lambda lam: start_batch(*padded(pairs), lam)()):
        with pytest.raises(TooLongError, match="sentence 1: 9 words"):
            ask(lam=0.5)


def padded(pairs, fill=np.nan):
    """Pairs -> (labels [B, N+1, N+1, L], arcs [B, N, N+1], lengths), N one more than the longest, padding = fill."""
    n = max(len(arcs) for _, arcs in pairs) + 1
    labels = np.full((len(pairs), n + 1, n + 1, pairs[0][0].shape[2]), fill, pairs[0][0].dtype)
    arcs = np.full((len(pairs), n, n + 1), fill, pairs[0][1].dtype)
    for b, (one, two) in enumerate(pairs):
        labels[b, : len(one), : len(one)] = one
        arcs[b, : len(two), : len(two) + 1] = two
    return torch.from_numpy(labels), torch.from_numpy(arcs), torch.tensor([len(two) for _, two in pairs])


ON = [("cpu", 20, 40), pytest.param("cuda", 40, 80, marks=pytest.mark.gpu)]


@pytest.mark.parametrize(("device", "batches", "longest"), ON)
def test_torch_gives_the_bits_of_numba(device, batches, longest):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    rng, size = np.random.default_rng(2), 25
    for trial in range(batches):
        kind, dtype = ("ties", "real")[trial % 2], (np.float32, np.float64)[trial // 2 % 2]
        lam, labels = LAMBDAS[trial % len(LAMBDAS)] if trial % 5 else 0.3, int(rng.integers(3, 9))
        top = longest if trial % 10 == 0 else 12
        pairs = [random_chart(rng, int(n), labels, kind, dtype) for n in rng.integers(1, top + 1, size)]
        label_scores, arc_scores, lengths = padded(pairs)
        trees = start_batch(label_scores.to(device), arc_scores.to(device), lengths.to(device), lam)()
        expected = decode_batch(pairs, lam)
        assert len(trees) == size
        for b, (one, two) in enumerate(zip(trees, expected)):
            assert same_tree(one, two), (trial, b, kind, dtype, lam, one, two)


@pytest.mark.parametrize(("n", "number"), [(1, 1), (2, 8), (3, 88), (4, 1_184), (5, 17_792)])
def test_enumeration_has_all_joint_trees_and_nothing_else(n, number):
    """As many as projective trees times chains of labelled projections; 143 of 5 words without labels (OEIS A006013)."""
    trees = reference.tree_set(n)
    assert len(trees) == number and len({heads for heads, _ in trees}) == (1, 2, 7, 30, 143)[n - 1]
    for heads, spans in trees:
        check_heads(heads)
        named = [(i, j, 2, h + 1) for i, j, h in spans]
        check_joint_tree(JointTree(0.0, reference.in_preorder(named), np.array(heads)), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_added_in_the_documented_order(dtype):
    """Bit-equal to the twin that takes the equations one by one, in the type of the scores: rounding depends on the order."""
    rng = np.random.default_rng(101)
    for trial in range(40):
        n, lam = 1 + trial % 20, (*LAMBDAS, 0.3)[trial % 7]
        label_scores, arc_scores = random_chart(rng, n, 5, ("real", "ties")[trial % 2], dtype)
        tree = decode(label_scores, arc_scores, lam)
        check_joint_tree(tree, n)
        assert tree.score == best_score_twin(label_scores, arc_scores, lam), trial


@pytest.mark.parametrize("kind", ["ties", "exact"])
def test_decode_is_the_first_maximum_of_the_enumeration(kind):
    rng = np.random.default_rng(20200 + len(kind))
    tied = 0
    for trial in range(250):
        n, lam = 1 + trial % 5, LAMBDAS[trial % len(LAMBDAS)]
        label_scores, arc_scores = random_chart(rng, n, int(rng.integers(3, 6)), kind)
        tree = decode(label_scores, arc_scores, lam)
        score, spans, heads = reference.first_best(label_scores, arc_scores, lam)
        assert (tree.score, tree.spans, tree.heads.tolist()) == (score, spans, heads), trial
        key = tuple(heads), frozenset((i, j, h - 1) for i, j, _, h in tree.spans)
        assert key in reference.tree_set(n), trial
        arcs = sum(arc_scores[d, h] for d, h in enumerate(tree.heads))
        labels = sum(label_scores[i, j, label] for i, j, label, _ in tree.spans)
        assert lam * labels + (1 - lam) * arcs == score, trial
        tied += n > 2 and _has_ties(label_scores, arc_scores, lam, score)
    if kind == "ties":
        assert tied > 75, "integer scores are here to make ties; most charts of three words and more should have one"


def _has_ties(label_scores, arc_scores, lam, score) -> bool:
    """Is there a second best tree? Forbid each arc of the best one in turn."""
    for d, h in enumerate(decode(label_scores, arc_scores, lam).heads):
        other = arc_scores.copy()
        other[d, h] -= 1024
        if decode(label_scores, other, lam).score == score:
            return True
    return False
