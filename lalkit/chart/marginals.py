"""Exact probabilities of joint trees: of every span, label, arc and head word.

The distribution. p(tree) is proportional to exp(score / temperature). The joint trees and their score are those of `joint`,
the arc to the root included. A span can have any of its allowed labels, where the decoder takes the best.

`inside_outside` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lalkit.chart.inside_outside import solve
from lalkit.chart.joint import check_scores, check_weight, map_sentences
from lalkit.chart.machine import NOT_FINITE
from lalkit.errors import ScoreError


class Marginals(NamedTuple):
    """The probabilities of the parts of a joint tree over n words.

    log_partition: the log of the sum over all trees of exp(score / temperature).
    labels: [n+1, n+1, L], the probability that (i, j) is a constituent with this label. Index 0: that it is none, or is a
        word without a label. Cells i >= j are 0.
    arcs: float [n, n+1], the probability of each arc, dependent by head. Column 0 is the root.
    head_words: [n+1, n+1, n], the probability that (i, j) is a labelled constituent with this head word (counted from 0);
        None unless it was asked for.
    entropy: of the distribution over trees, in nats.
    """

    log_partition: float
    labels: np.ndarray
    arcs: np.ndarray
    head_words: np.ndarray | None
    entropy: float


def marginals(
    label_scores: np.ndarray,
    arc_scores: np.ndarray,
    lam: float = 0.5,
    temperature: float = 1.0,
    head_words: bool = False,
) -> Marginals:
    """Return the probabilities of all spans, labels and arcs of one sentence.

    Args:
        label_scores: [n+1, n+1, L], of which the cells i < j are read. Index 0 is the empty label and must be 0.
        arc_scores: [n, n+1], dependent by head. Column 0 is the root, column h+1 is word h; [d, d+1] is not read.
            A score of -inf forbids its label or arc.
        lam: The weight of labels; arcs have weight 1 - lam.
        temperature: What scores are divided by. Above 1 it makes all trees more alike.
        head_words: Also return the probabilities of head words.

    Returns:
        Probabilities as float64 if one of the arrays is, otherwise as float32. They are computed in float64.

    Raises:
        ValueError: A shape or a setting is wrong.
        ScoreError: A score is NaN or +inf, or every tree is forbidden.
        TooLongError: The chart would not fit into memory.
    """
    return marginals_batch([(label_scores, arc_scores)], lam, temperature, head_words, threads=1)[0]


def marginals_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    lam: float = 0.5,
    temperature: float = 1.0,
    head_words: bool = False,
    threads: int | None = None,
    names: Sequence[str] | None = None,
) -> list[Marginals]:
    """Return the probabilities of every (label_scores, arc_scores) pair.

    lam, temperature, head_words: see `marginals`. threads, names: see `joint.decode_batch`.
    """
    weights = check_distribution(lam, temperature)

    def sentence(label_scores, arc_scores, where: str) -> Marginals:
        labels = np.zeros_like(label_scores)
        log_z, arcs, heads, entropy = solve(label_scores, arc_scores, *weights, labels, head_words)
        if not math.isfinite(log_z):
            check_scores(label_scores, arc_scores, where, forbidden=True)
            if log_z == -math.inf:
                remedy = "Allow a real label for the whole sentence, a head for every word, and one of them the root."
                raise ScoreError("no joint tree is left without a forbidden label or arc", where=where, remedy=remedy)
            problem = f"the log-partition is {log_z}: the scores are too large to add up"
            raise ScoreError(problem, where=where, remedy=NOT_FINITE)
        return Marginals(log_z, labels, arcs, heads if head_words else None, max(0.0, entropy))

    return map_sentences(sentence, pairs, lambda labels, _: bytes_needed(labels.shape, labels.itemsize), threads, names)


def check_distribution(lam: float, temperature: float) -> tuple[float, float]:
    """Return the weights of labels and of arcs. Raises ValueError for a lam or a temperature that cannot be."""
    check_weight(lam)
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be a finite number above 0, not {temperature}")
    return lam / temperature, (1 - lam) / temperature


def bytes_needed(shape: Sequence[int], itemsize: int) -> int:
    """Return the bytes for the probabilities of a sentence with label scores [n+1, n+1, L].

    labels and arcs take itemsize for a number, everything else 8: charts [n+1, n+1, n], of which the computation with
    logarithms has three, and one for head words; tables [n+1, n+1]; and arrays of the size of the arcs.
    """
    posts, _, labels = shape
    arcs = posts * (posts - 1)
    return itemsize * (posts * posts * labels + arcs) + 8 * (4 * posts * arcs + 6 * posts * posts + 8 * arcs)
