"""Joint decoding on the CPU: what comes out is a joint tree, gold comes back, and bad input is refused."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lalkit
from lalkit.chart import joint
from lalkit.chart import machine as memory
from lalkit.chart.joint import decode, decode_batch
from lalkit.errors import TooLongError
from tests.chart.charts import check_joint_tree, random_chart, random_joint_tree, same_tree, same_trees


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 14),
    labels=st.integers(3, 8),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["ties", "real"]),
    lam=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_every_parse_is_a_joint_tree(n, labels, seed, kind, lam):
    label_scores, arc_scores = random_chart(np.random.default_rng(seed), n, labels, kind)
    check_joint_tree(decode(label_scores, arc_scores, lam), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gold_scores_decode_to_gold(dtype):
    rng = np.random.default_rng(3)
    subheads = 0
    for trial in range(200):
        n, labels = 1 + trial % 30, 7
        spans, heads = random_joint_tree(rng, n, labels)
        label_scores = np.full((n + 1, n + 1, labels), -1, dtype)
        label_scores[..., 0] = 0
        arc_scores = np.full((n, n + 1), -1, dtype)
        for i, j, label, _ in spans:
            label_scores[i, j, label] = 1
        arc_scores[np.arange(n), heads] = 1
        tree = decode(label_scores, arc_scores)
        assert tree.spans == spans
        assert tree.heads.tolist() == heads
        assert tree.score == 0.5 * len(spans) + 0.5 * n
        subheads += sum(label == 1 for _, _, label, _ in spans)
    assert subheads > 100


def test_one_word_takes_its_best_real_label_even_below_zero():
    label_scores = np.zeros((2, 2, 5))
    label_scores[0, 1] = [0, 9, -3, -1, -1]
    tree = decode(label_scores, np.array([[4.0, np.nan]]))
    assert (tree.score, tree.spans, tree.heads.tolist()) == (1.5, [(0, 1, 3, 1)], [0])


def test_the_sentence_is_labelled_against_its_scores_but_words_are_not():
    label_scores = np.full((3, 3, 4), -1.0)
    label_scores[..., 0] = 0
    label_scores[0, 2, 1] = 5  # <H> may not stand for the sentence
    tree = decode(label_scores, np.array([[0.0, 0, 1], [2, 0, 0]]))
    assert tree.spans == [(0, 2, 2, 2)]
    assert tree.heads.tolist() == [2, 0]
    assert tree.score == 0.5 * -1 + 0.5 * 3


def test_lam_0_is_the_best_projective_dependency_tree_and_lam_1_ignores_arcs():
    rng = np.random.default_rng(11)
    label_scores, arc_scores = random_chart(rng, 8, 5, "real")
    other_labels, other_arcs = random_chart(rng, 8, 5, "real")
    # Every projective tree is the head structure of some joint tree, so at lam = 0 labels cannot matter.
    assert same_tree(decode(label_scores, arc_scores, 0), decode(other_labels, arc_scores, 0))
    assert same_tree(decode(label_scores, arc_scores, 1), decode(label_scores, other_arcs, 1))
    assert not same_tree(decode(label_scores, arc_scores, 0.5), decode(other_labels, arc_scores, 0.5))


def test_a_batch_is_its_sentences():
    rng = np.random.default_rng(5)
    pairs = [random_chart(rng, int(n), 6, "real", np.float32) for n in rng.integers(1, 25, 40)]
    alone = [decode(*pair) for pair in pairs]
    for threads in (None, 1, 3):
        assert same_trees(decode_batch(pairs, threads=threads), alone)
    assert same_trees(decode_batch(pairs[::-1]), alone[::-1])
    assert decode_batch([]) == []


def test_the_type_of_the_scores_is_the_type_of_the_sum():
    label_scores, arc_scores = random_chart(np.random.default_rng(8), 12, 6, "real")
    double, single = decode(label_scores, arc_scores), decode(np.float32(label_scores), np.float32(arc_scores))
    assert double.spans == single.spans
    assert single.score == float(np.float32(single.score)) != double.score
    assert same_tree(
        decode(np.float16(label_scores), np.float16(arc_scores)),
        decode(np.float16(label_scores).astype(np.float32), np.float16(arc_scores).astype(np.float32)),
    )


def test_cells_that_are_not_read_may_hold_anything():
    label_scores, arc_scores = random_chart(np.random.default_rng(9), 7, 5, "real")
    expected = decode(label_scores, arc_scores)
    label_scores[np.tril_indices(8)] = np.nan
    arc_scores[np.arange(7), np.arange(1, 8)] = -np.inf
    before = label_scores.copy(), arc_scores.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as: invalid value in -inf * 0
        assert same_tree(decode(label_scores, arc_scores), expected)
        decode(label_scores, arc_scores, lam=1)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, (label_scores, arc_scores)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_named(value):
    good = random_chart(np.random.default_rng(1), 4, 5, "real")
    label_scores, arc_scores = good[0].copy(), good[1].copy()
    label_scores[1, 3, 2] = value
    with pytest.raises(ValueError, match=r"sentence 1: label_scores\[1, 3, 2\] is -?(nan|inf)"):
        decode_batch([good, (label_scores, good[1])])
    arc_scores[2, 4] = value
    with pytest.raises(ValueError, match=r"sentence 0: arc_scores\[2, 4\] is -?(nan|inf)"):
        decode(good[0], arc_scores)


def test_an_empty_label_with_a_score_is_refused():
    label_scores, arc_scores = random_chart(np.random.default_rng(1), 4, 5, "real")
    label_scores[0, 2, 0] = 0.5
    with pytest.raises(ValueError, match=r"label_scores\[0, 2, 0\] is 0.5: the empty label"):
        decode(label_scores, arc_scores)


def test_sums_that_overflow_are_refused():
    label_scores, arc_scores = random_chart(np.random.default_rng(1), 4, 5, "real", np.float32)
    with pytest.raises(ValueError, match="too large to add up"):
        decode(label_scores, np.full_like(arc_scores, 3e38), lam=0)


@pytest.mark.parametrize(
    ("labels", "arcs", "words"),
    [
        ((4, 4, 5), (3, 3), "arc_scores must be"),
        ((1, 1, 5), (0, 1), "n >= 1"),
        ((5, 5, 5), (3, 4), r"label_scores must be \[4, 4, L\]"),
        ((4, 4, 2), (3, 4), "L >= 3"),
        ((4, 4), (3, 4), "label_scores must be"),
    ],
)
def test_wrong_shapes(labels, arcs, words):
    with pytest.raises(ValueError, match=words):
        decode(np.zeros(labels), np.zeros(arcs))


@pytest.mark.parametrize("lam", [-0.1, 1.5, float("nan")])
def test_lam_outside_its_range(lam):
    with pytest.raises(ValueError, match="lam must lie in"):
        decode(*random_chart(np.random.default_rng(0), 2, 4, "real"), lam)


def test_too_long_is_said_before_the_chart_is_allocated(monkeypatch):
    pairs = [random_chart(np.random.default_rng(0), n, 4, "real", np.float32) for n in (3, 9)]
    needed = memory.chart_bytes(9, 4)
    assert needed >= 4 * 10 * 10 * 9
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: needed)
    expected = decode_batch(pairs)
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1)
    monkeypatch.setattr(joint, "_decode", lambda *_: pytest.fail("decoding began"))
    with pytest.raises(TooLongError, match=rf"sentence 1: 9 words need {needed:,} bytes.*{needed - 1:,} are available"):
        decode_batch(pairs)
    assert len(expected) == 2


def test_threads_are_limited_by_memory(monkeypatch):
    pairs = [random_chart(np.random.default_rng(0), 9, 4, "real")] * 6
    asked = []
    monkeypatch.setattr(joint, "map_threads", lambda f, items, threads: asked.append(threads) or [f(i) for i in items])
    for room, threads in ((1, 1), (2.5, 2), (100, 4)):
        monkeypatch.setattr(memory, "SMALL", 0)
        monkeypatch.setattr(memory, "available_bytes", lambda room=room: int(room * memory.chart_bytes(9, 8)))
        assert len(decode_batch(pairs, threads=4)) == 6
        assert asked.pop() == threads


def test_no_place_for_a_cache_is_no_obstacle():
    """A read-only installation: allowed only the one kind of cache folder that is not configured, numba raises."""
    code = (
        "import numpy as np\n"
        "from numba import njit\n"
        "from lalkit.chart import cky\n"  # decorates its kernels when imported
        "print(cky.cky_batch([np.ones((3, 3, 3))])[0].score)\n"
        "try: njit(cache=True)(cky._cky.py_func)\n"
        "except RuntimeError: print('no cache')\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    environment.pop("NUMBA_CACHE_DIR", None)
    root = Path(lalkit.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    score, *cache = done.stdout.split()
    assert score == "3.0"
    if cache != ["no", "cache"]:
        pytest.skip("this numba does not know NUMBA_CACHE_LOCATOR_CLASSES, so nothing was tried")
