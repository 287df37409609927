"""Say how probable the parts of a parse are: its constituents, arcs, arc labels and tags, and the whole joint tree.

Constituents, arcs and trees have the probabilities of `lalkit.chart.sums`, which divide scores by a temperature. Arc labels
and tags have those of the network's softmax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lalkit.chart.joint import JointTree
from lalkit.chart.sums import Temperature, check_distribution, marginals_batch
from lalkit.errors import LalkitError
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 6  # significant digits of a probability that is written


@dataclass(frozen=True)
class Confidence:
    """The probabilities of the parts of one parse.

    spans: for each joint span of the prediction, the probability that these words have this label. arcs: for each word, the
    probability that its head word is right. arc_labels: for each word, the probability of its arc label if its head word is
    right. tags: for each word, the probability of its tag. None: the parse does not have this layer, or the tags were given.
    log_probability: the logarithm of the probability of the whole joint tree, without arc labels and tags. temperature: the
    number by which scores were divided.
    """

    temperature: Temperature
    log_probability: float
    spans: tuple[float, ...]
    arcs: tuple[float, ...]
    arc_labels: tuple[float, ...] | None = None
    tags: tuple[float, ...] | None = None

    @property
    def probability(self) -> float:
        """The probability of the whole joint tree."""
        return math.exp(self.log_probability)

    def to_dict(self) -> dict:
        lists = {name: getattr(self, name) for name in ("spans", "arcs", "arc_labels", "tags")}
        rounded = {name: values and [_rounded(p) for p in values] for name, values in lists.items()}
        return {"temperature": self.temperature, "tree": _rounded(self.probability), **rounded}

    def table(self, sentence: Sentence, spans: Sequence[tuple[int, int, str, int]]) -> pd.DataFrame:
        """Return a row for each part: kind, start, end, label, head, probability.

        kind: span, arc, arc label, tag or tree. start, end: over the places between words. head: the head word, from 1; 0 is
        the root. spans: those of the prediction.
        """
        import pandas as pd

        rows = [("span", *span, p) for span, p in zip(spans, self.spans)]
        rows += [("arc", i, i + 1, None, h, p) for i, (h, p) in enumerate(zip(sentence.heads, self.arcs))]
        pairs = zip(sentence.arc_labels or (), sentence.heads, self.arc_labels or ())
        rows += [("arc label", i, i + 1, *values) for i, values in enumerate(pairs)]
        rows += [
            ("tag", i, i + 1, tag, None, p) for i, (tag, p) in enumerate(zip(sentence.tags or (), self.tags or ()))
        ]
        rows.append(("tree", 0, len(sentence), None, None, self.probability))
        table = pd.DataFrame(rows, columns=["kind", "start", "end", "label", "head", "probability"])
        return table.astype({"head": "Int64"})

    def conllu(self) -> tuple[list[str], list[str]]:
        """Return comments, and the last column of every word, for CoNLL-U."""
        names = {"ArcP": self.arcs, "LabelP": self.arc_labels, "TagP": self.tags}
        columns = [[f"{name}={_rounded(p)}" for p in values] for name, values in names.items() if values is not None]
        comments = [f"tree_probability = {_rounded(self.probability)}", f"temperature = {self.temperature}"]
        return comments, ["|".join(column) for column in zip(*columns)]


def confidences(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    trees: Sequence[JointTree],
    arc_label_scores: Tensor | None,
    tag_scores: Tensor | None,
    lam: float,
    temperature: Temperature,
    threads: int | None = None,
    names: Sequence[str] | None = None,
) -> list[Confidence]:
    """Return the probabilities of one tree of every sentence of a batch.

    Args:
        pairs: Label scores [n+1, n+1, L] and arc scores [n, n+1] of every sentence.
        trees: The trees.
        arc_label_scores: [B, N, arc labels], for the heads of the trees; None if the parser has no arc labels.
        tag_scores: [B, N, tags]; None if the parser has no tags.
        lam: The weight of labels against arcs.
        temperature: What the scores of trees are divided by: one number, or one for labels and one for arcs.
        threads: Threads of the CPU; None: one per core.
        names: How errors name the sentences.
    """
    best = [s if s is None else torch.softmax(s, -1).amax(-1).tolist() for s in (arc_label_scores, tag_scores)]
    results, weights = [], check_distribution(lam, temperature)
    sums = marginals_batch(pairs, lam, temperature, threads=threads, names=names)
    for b, (pair, tree, m) in enumerate(zip(pairs, trees, sums)):
        n, log = len(tree.heads), weighted_score(*pair, tree.spans, tree.heads, *weights) - m.log_partition
        spans = tuple(min(1.0, float(m.labels[i, j, k])) for i, j, k, _ in tree.spans)
        arcs = tuple(min(1.0, float(m.arcs[d, h])) for d, h in enumerate(tree.heads))
        labels, tags = (p if p is None else tuple(p[b][:n]) for p in best)
        results.append(Confidence(temperature, min(0.0, log), spans, arcs, labels, tags))
    return results


def joint_score(label_scores: np.ndarray, arc_scores: np.ndarray, spans, heads, lam: float) -> float:
    """Return the score of a joint tree of (start, end, label index, ...) and head words, rounded once."""
    return weighted_score(label_scores, arc_scores, spans, heads, lam, 1 - lam)


def weighted_score(label_scores, arc_scores, spans, heads, of_labels: float, of_arcs: float) -> float:
    """Return the weighted sum of the scores of labels and of arcs."""
    labels = math.fsum(float(label_scores[i, j, k]) for i, j, k, *_ in spans)
    return of_labels * labels + of_arcs * math.fsum(float(arc_scores[d, h]) for d, h in enumerate(heads))


def check_joint(task: str) -> None:
    """Raise LalkitError for a parser of constituents or dependencies alone: it scores no joint trees."""
    if task != "joint":
        problem = f"this parser was trained on {task} alone: it has no probabilities of joint trees"
        raise LalkitError(problem, remedy="Use a parser of both layers, such as en-news.")


def _rounded(probability: float) -> float:
    return float(f"{probability:.{DIGITS}g}")
