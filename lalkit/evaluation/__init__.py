"""Scores of parses, and tests of differences: between runs (`welch`, `holm`) and between parsers (`f1_test`, `score_test`)."""

from lalkit.evaluation.scores import by_label
from lalkit.evaluation.statistics import f1_test, holm, mean_interval, mean_of_runs, paired_test, score_test, welch

__all__ = ["by_label", "f1_test", "holm", "mean_interval", "mean_of_runs", "paired_test", "score_test", "welch"]
