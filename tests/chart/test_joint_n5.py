"""The decoder against the O(n^5) program that `lalkit bench decode` compares it with: the same trees, ties included."""

import numpy as np
import pytest

from lalkit.bench.twins import decode_n5
from lalkit.chart.joint import decode
from tests.chart.charts import LAMBDAS, random_chart


@pytest.mark.parametrize("kind", ["ties", "exact"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 13, 20])
def test_equal_trees(n, kind):
    rng = np.random.default_rng(n)
    for lam in LAMBDAS:
        labels, arcs = random_chart(rng, n, 5, kind)
        found, expected = decode(labels, arcs, lam), decode_n5(labels, arcs, lam)
        assert found.score == expected.score
        assert sorted(found.spans) == sorted(expected.spans)
        assert found.heads.tolist() == expected.heads.tolist()
