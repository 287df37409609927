"""Exact decoders over charts of scores, and sums over all trees."""

from lalkit.chart.cky import cky_batch
from lalkit.chart.joint import decode
from lalkit.chart.sums import marginals

__all__ = ["cky_batch", "decode", "marginals"]
