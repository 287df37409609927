"""CKY equals the enumeration of all binary trees, ties included."""

import numpy as np
import pytest

from lalkit.chart.cky import best_brackets, cky_batch
from tests.chart.charts import random_chart
from tests.reference import cky_literal as reference


@pytest.mark.parametrize("kind", ["ties", "exact"])
def test_first_maximum_of_the_enumeration(kind):
    rng = np.random.default_rng(17)
    charts = [random_chart(rng, 1 + trial % 6, int(rng.integers(3, 7)), kind)[0] for trial in range(240)]
    for trial, (tree, chart) in enumerate(zip(cky_batch(charts), charts)):
        assert (tree.score, tree.spans) == reference.first_best(chart), trial


def test_padded_list_and_threads_agree():
    rng = np.random.default_rng(19)
    lengths = [7, 1, 12, 3, 12]
    charts = [random_chart(rng, n, 5, "exact", np.float32)[0] for n in lengths]
    padded = np.full((5, 14, 14, 5), np.nan, np.float32)
    for row, chart in zip(padded, charts):
        row[: len(chart), : len(chart)] = chart
    expected = cky_batch(charts, threads=1)
    assert cky_batch(padded, lengths) == cky_batch(charts, threads=4) == expected
    assert cky_batch([]) == []
    best = np.stack([np.nan_to_num(chart).max(-1) for chart in padded])
    for n, spans in zip(lengths, best_brackets(best, lengths)):
        assert spans.shape == (2 * n - 1, 2) and tuple(spans[0]) == (0, n)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda chart: chart.__setitem__((1, 3, 0), np.inf), r"sentence 1: .*\(1, 3\) are not all finite"),
        (lambda chart: chart.__setitem__((2, 3, 1), np.nan), r"\(2, 3\)"),
        (lambda chart: chart[..., :2], "L >= 3"),
        (lambda chart: chart[1:], "sentence 1: a chart must be"),
    ],
)
def test_wrong_charts(change, problem):
    chart = random_chart(np.random.default_rng(0), 4, 4, "exact")[0]
    wrong = chart.copy()
    changed = change(wrong)
    with pytest.raises(ValueError, match=problem):
        cky_batch([chart, wrong if changed is None else changed])
