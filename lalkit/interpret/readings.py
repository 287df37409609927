"""Ask for more than the best joint tree of a sentence: how probable it is, which trees come next, which ones obey constraints.

The distribution over joint trees is that of `lalkit.chart.marginals`: p(tree) is proportional to exp(score / temperature).
Under constraints it is the distribution over the trees that obey them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from lalkit.chart.constraints import ArcItem, Constraints, Item, SpanItem
from lalkit.chart.joint import JointTree
from lalkit.chart.readings import k_best, log_partition, samples, tree_score, weighted
from lalkit.errors import LalkitError, ParameterError
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.predict import Prediction, assemble, best_labels, decode_output, predict_batches, scores_of
from lalkit.treebank.tree import Sentence


class Price(NamedTuple):
    """What constraints cost.

    score: how much lower than the best tree the best tree that obeys scores. log_probability: the logarithm of the probability
    that a tree obeys. Both are 0 without constraints.
    """

    score: float
    log_probability: float


@dataclass(frozen=True)
class Reading:
    """One of the joint trees of a sentence.

    log_probability: of the tree, among all trees that obey the constraints. added, missing: the constituents and arcs that
     it has and the best tree has not, and the reverse, in the notation of `lalkit.chart.constraints`.
    """

    prediction: Prediction
    log_probability: float
    added: frozenset[Item] = frozenset()
    missing: frozenset[Item] = frozenset()

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)

    def to_dict(self) -> dict:
        changes = {"added": sorted(map(str, self.added)), "missing": sorted(map(str, self.missing))}
        return {"log_probability": self.log_probability, **changes}

    def __str__(self) -> str:
        """Return a line with the probability, the score, and what differs: + is new, - is missing."""
        items = self.to_dict()
        changes = [*(f"+{item}" for item in items["added"]), *(f"-{item}" for item in items["missing"])]
        numbers = f"probability {self.probability:.4g}, score {self.prediction.score:.4f}"
        return f"# {numbers}: {'  '.join(changes) or 'the best'}"


def items_of(prediction: Prediction) -> frozenset[Item]:
    """Return the constituents and arcs of a parse as constraints that it obeys."""
    spans = [SpanItem(span.label, span.start + 1, span.end) for span in prediction.spans]
    return frozenset([*spans, *(ArcItem(d, h) for d, h in enumerate(prediction.sentence.heads, 1))])


class Readings:
    """The joint trees of one sentence, with their scores and probabilities, under constraints."""

    def __init__(
        self, network: Network, collator: Collator, sentence: Sentence, lam: float, temperature: float,
        constraints: Constraints,
    ):  # fmt: skip
        """Score the sentence again: alone, it has the same scores as in any batch.

        Args:
            network: The parser's network. It must score constituents and arcs.
            collator: It makes batches for this network.
            sentence: Its words count, and its tags if the network reads given tags.
            lam: The weight of labels against arcs.
            temperature: What scores are divided by before they become probabilities.
            constraints: What the trees must have, and must not have.

        Raises:
            ParameterError: The constraints contradict each other, or the sentence does not have these words.
            LalkitError: The parser has one layer only.
        """
        check_joint(network)
        vocab, n = collator.vocab, len(sentence)
        constraints.check(n, vocab.labels)
        self.network, self.vocab, self.sentence = network, vocab, sentence
        self.lam, self.temperature, self.constraints = lam, temperature, constraints
        ((_, _, self.output),) = predict_batches(network, collator, [sentence], lam)
        (scores,) = scores_of(self.output, [n])
        self.free = weighted(*scores, lam, where=sentence.where)
        labels, arcs, closed = constraints.apply(*scores, vocab.labels)
        self.scores = weighted(labels, arcs, lam, closed, sentence.where)

    @cached_property
    def log_partition(self) -> float:
        """The logarithm of the sum of exp(score / temperature) over the trees that obey."""
        return log_partition(self.scores.divided(self.temperature))

    @cached_property
    def price(self) -> Price:
        if not self.constraints.items:
            return Price(0.0, 0.0)
        score = k_best(self.free, 1)[0].score - self.best.score
        among = self.log_partition - log_partition(self.free.divided(self.temperature))
        return Price(max(0.0, score), min(0.0, among))

    @property
    def best(self) -> JointTree:
        return self.trees(1)[0]

    def trees(self, k: int) -> list[JointTree]:
        """Return the k best trees that obey. Without constraints, the decoder's is the first, also of equal ones.

        Raises ParameterError if no tree obeys.
        """
        trees = k_best(self.scores, k)
        if not trees:
            problem = "no joint tree obeys these constraints"
            raise ParameterError(problem, where=str(self.constraints), remedy="Leave out one of them.")
        if self.constraints.items:
            return trees
        (first,) = decode_output(self.output, [len(self.sentence)], self.lam)
        first = first._replace(score=tree_score(self.scores, first.spans, first.heads))
        same = [(tree.spans, tree.heads.tolist()) == (first.spans, first.heads.tolist()) for tree in trees]
        return [first, *(tree for tree, is_first in zip(trees, same) if not is_first)][:k]

    def prediction(self, tree: JointTree) -> Prediction:
        with torch.inference_mode():
            labels, tags = best_labels(self.network, self.output, [tree])
        return assemble(self.sentence, tree, self.vocab, labels[0], tags[0], self.network.config)

    def readings(self, trees: Sequence[JointTree]) -> list[Reading]:
        """Return trees with their probabilities, and with what differs from the best tree."""
        best, predictions = items_of(self.prediction(self.best)), [self.prediction(tree) for tree in trees]
        logs = [min(0.0, tree.score / self.temperature - self.log_partition) for tree in trees]
        items = map(items_of, predictions)
        return [Reading(p, log, has - best, best - has) for p, log, has in zip(predictions, logs, items)]

    def sample(self, k: int, seed: int) -> list[JointTree]:
        """Draw k trees by their probability, with replacement; see `lalkit.chart.readings.samples`."""
        trees = samples(self.scores.divided(self.temperature), k, seed)
        return [tree._replace(score=tree.score * self.temperature) for tree in trees]


def check_joint(network: Network) -> None:
    """Raise LalkitError for a parser of constituents or dependencies alone: it scores no joint trees."""
    if network.config.task != "joint":
        problem = f"this parser was trained on {network.config.task} alone: it has no probabilities of joint trees"
        raise LalkitError(problem, remedy="Use a parser of both layers, such as en-news.")
