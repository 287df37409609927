"""Ask for more than the best joint tree of a sentence: how probable it is, which trees come next, which ones obey constraints.

The distribution over joint trees is that of `lalkit.chart.sums`: p(tree) is proportional to exp(score / temperature).
Under constraints it is the distribution over the trees that obey them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from lalkit.chart.constraints import Constraints, Item, TagItem, items_of
from lalkit.chart.joint import JointTree
from lalkit.chart.readings import k_best, log_partition, samples, tree_score, weighted
from lalkit.chart.sums import Temperature
from lalkit.errors import ParameterError
from lalkit.network.batches import Collator
from lalkit.network.parser import Network, ParserOutput
from lalkit.network.predict import (
    Decode,
    Prediction,
    arc_label_scores,
    assemble,
    check_joint,
    confidences,
    decode_output,
    joint_score,
    predict_batches,
    scores_of,
    with_confidence,
)
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.tree import Sentence


class Price(NamedTuple):
    """What constraints cost.

    score: how much lower than the best tree the best tree that obeys scores. log_probability: the logarithm of the probability
    that a tree obeys, and of the required tags. Both are 0 without constraints.
    """

    score: float
    log_probability: float


@dataclass(frozen=True)
class Reading:
    """One of the joint trees of a sentence.

    log_probability: of the tree, among all trees that obey the constraints. added: the constituents, groups (<H>) and
    arcs that this tree has and the best tree does not have. missing: the reverse. Both are in the notation of
    `lalkit.chart.constraints`.
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


def tree_of(prediction: Prediction, vocab: Vocab) -> JointTree:
    """Return the joint tree of a parse, with the numbers of its labels."""
    spans = [(start, end, vocab.label_index[label], head) for start, end, label, head in prediction.spans]
    return JointTree(prediction.score, spans, np.array(prediction.sentence.heads))


def given_tree(prediction: Prediction, vocab: Vocab) -> Decode:
    """Return a decoder for `predict` that always returns the tree of this parse. It computes the score of the tree again."""
    tree = tree_of(prediction, vocab)

    def decode(output: ParserOutput, lengths: Sequence[int], lam: float, *_) -> list[JointTree]:
        (scores,) = scores_of(output, lengths)
        return [tree._replace(score=joint_score(*scores, tree.spans, tree.heads, lam))]

    return decode


class Readings:
    """The joint trees of one sentence, with their scores and probabilities, under constraints."""

    def __init__(
        self, network: Network, collator: Collator, sentence: Sentence, lam: float, temperature: Temperature,
        constraints: Constraints,
    ):  # fmt: skip
        """Score the sentence again: alone, it has the same scores as in any batch.

        Args:
            network: The parser's network. It must score constituents and arcs.
            collator: It makes batches for this network.
            sentence: Its words count, and its tags if the network reads given tags.
            lam: The weight of labels against arcs.
            temperature: What scores are divided by before they become probabilities: one number, or those of labels and of arcs.
                With two, the tree with the best score need not be the most probable one.
            constraints: What the trees must have, and must not have.

        Raises:
            ParameterError: The constraints contradict each other, or the sentence does not have these words.
            LalkitError: The parser has one layer only, or reads the tags that constraints are to choose.
        """
        check_joint(network.config.task)
        vocab, n = collator.vocab, len(sentence)
        constraints.check(n, vocab.labels, vocab.tags)
        self.network, self.vocab, self.sentence = network, vocab, sentence
        self.lam, self.temperature, self.constraints = lam, temperature, constraints
        ((_, _, self.output),) = predict_batches(network, collator, [sentence], lam)
        self.state = network.state()  # afterwards: in its first run the encoder of transformers adds hooks of its own
        (scores,) = scores_of(self.output, [n])
        self.free = weighted(*scores, lam, where=sentence.where)
        labels, arcs, closed = constraints.apply(*scores, vocab.labels)
        self.scores = weighted(labels, arcs, lam, closed, sentence.where)
        self.tag_log_probability = self._choose_tags()

    def _choose_tags(self) -> float:
        """Forbid tags in the network's output. Return the logarithm of the probability of what is left."""
        scores = self.output.tag_scores.clone()
        for item, wanted in self.constraints.wanted:
            if isinstance(item, TagItem) and self.network.config.tag_input == "given" and self.sentence.tags:
                problem = "this parser reads the tags of the sentence: they cannot be constraints"
                raise ParameterError(problem, where=str(item), remedy="Change the tag in the sentence.")
            if isinstance(item, TagItem):
                same = torch.arange(scores.shape[-1]) == self.vocab.tag_index[item.tag]
                scores[0, item.word - 1, same != wanted] = -math.inf
        left = scores.logsumexp(-1).sum() - self.output.tag_scores.logsumexp(-1).sum()
        self.output = replace(self.output, tag_scores=scores)
        return float(left)

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
        return Price(max(0.0, score), min(0.0, among) + self.tag_log_probability)

    @property
    def best(self) -> JointTree:
        return self.trees(1)[0]

    def trees(self, k: int) -> list[JointTree]:
        """Return the k best trees that obey. Without constraints, the decoder's is the first, also of equal ones.

        Raises ParameterError if no tree obeys.
        """
        trees = k_best(self.scores, k)
        if not trees or self.tag_log_probability == -math.inf:
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
            arc_labels = arc_label_scores(self.network, self.output, [tree], self.vocab.root)[0].argmax(-1).tolist()
            tags = self.output.tag_scores[0].argmax(-1).tolist()
        return assemble(self.sentence, tree, self.vocab, arc_labels, tags, self.network.config)

    def score(self, prediction: Prediction) -> float:
        """Score the tree of a prediction."""
        tree = tree_of(prediction, self.vocab)
        return tree_score(self.free, tree.spans, tree.heads)

    def with_confidence(self, prediction: Prediction) -> Prediction:
        """Add to a tree the probabilities of its parts. They are among all trees, also those that break the constraints."""
        tree = tree_of(prediction, self.vocab)
        with torch.inference_mode():
            arc_labels = arc_label_scores(self.network, self.output, [tree], self.vocab.root)
            pairs, tags = scores_of(self.output, [len(self.sentence)]), self.output.tag_scores
            (confidence,) = confidences(pairs, [tree], arc_labels, tags, self.lam, self.temperature)
        return with_confidence(prediction, self.sentence, confidence, self.network.config.tag_input)

    def readings(self, trees: Sequence[JointTree]) -> list[Reading]:
        """Return trees with their probabilities, and with what differs from the best tree."""
        best, *predictions = (self.prediction(tree) for tree in (self.best, *trees))
        divided = self.scores.divided(self.temperature)
        logs = [min(0.0, tree_score(divided, tree.spans, tree.heads) - self.log_partition) for tree in trees]
        first, *items = (items_of(p.spans, p.sentence.heads) for p in (best, *predictions))
        return [Reading(p, log, has - first, first - has) for p, log, has in zip(predictions, logs, items)]

    def sample(self, k: int, seed: int) -> list[JointTree]:
        """Draw k trees by their probability, with replacement; see `lalkit.chart.readings.samples`."""
        trees = samples(self.scores.divided(self.temperature), k, seed)
        return [tree._replace(score=tree_score(self.scores, tree.spans, tree.heads)) for tree in trees]
