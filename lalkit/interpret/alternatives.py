"""Compute more than the best joint tree of a sentence: its probability, the next best trees, and trees that obey constraints.

The distribution over joint trees is that of `lalkit.chart.sums`: p(tree) is proportional to exp(score / temperature).
Under constraints it is the distribution over the trees that obey them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

from lalkit.chart.cky import SUBHEAD
from lalkit.chart.constraints import ArcItem, Constraints, Item, SpanItem, TagItem, items_of
from lalkit.chart.joint import JointTree
from lalkit.chart.readings import k_best, log_partition, structures, tree_score, weighted
from lalkit.chart.sums import closed_spans, marginals_batch, of_one_layer
from lalkit.config import MOST_TREES
from lalkit.errors import ParameterError, checked, whole_number
from lalkit.network.model import Model, Prediction, Scored, first_words
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.tree import Sentence

if TYPE_CHECKING:
    import pandas as pd

Differ = Literal["structure", "any"]  # how alternatives differ: see `Readings.alternatives`


class Price(NamedTuple):
    """The cost of constraints.

    score: the score of the best tree minus that of the best tree that obeys. log_probability: the logarithm of the probability
    that a tree and the tags obey. Both are 0 without constraints.
    """

    score: float
    log_probability: float


@dataclass(frozen=True)
class Reading:
    """One of the joint trees of a sentence.

    log_probability: of the tree, among all trees that obey the constraints; of a structure, the sum over all of its trees.
    added: the constituents, groups (<H>) and arcs that this tree has and the best tree does not have; of a structure, only
    arcs. missing: the reverse. Both are in the notation of `lalkit.chart.constraints`.
    """

    prediction: Prediction
    log_probability: float
    added: frozenset[Item] = frozenset()
    missing: frozenset[Item] = frozenset()
    differ: Differ = "any"

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)

    def to_dict(self) -> dict:
        changes = {"added": sorted(map(str, self.added)), "missing": sorted(map(str, self.missing))}
        return {"log_probability": self.log_probability, "differ": self.differ, **changes}

    def __str__(self) -> str:
        """Return a line with the probability, the score, and what differs: + is new, - is missing."""
        items = self.to_dict()
        changes = [*(f"+{item}" for item in items["added"]), *(f"-{item}" for item in items["missing"])]
        which = " of these arcs" if self.differ == "structure" else ""
        numbers = f"probability{which} {self.probability:.4g}, score {self.prediction.score:.4f}"
        return f"# {numbers}: {'  '.join(changes) or 'the parse'}"


def tree_of(prediction: Prediction, vocab: Vocab) -> JointTree:
    """Return the joint tree of a parse, with the numbers of its labels."""
    spans = [(start, end, vocab.label_index[label], head) for start, end, label, head in prediction.spans]
    heads = prediction.sentence.heads or first_words(spans, len(prediction.sentence))
    return JointTree(prediction.score, spans, np.array(heads))


@checked
class Readings:
    """The joint trees of one sentence, with their scores and probabilities, under constraints."""

    scored: Scored  # the sentence alone, without the tags that the constraints forbid

    def __init__(self, model: Model, sentence: Sentence, constraints: Constraints):
        """Score the sentence again: alone, it has the same scores as in any batch.

        Args:
            model: The parser. With two temperatures, the tree with the best score need not be the most probable one.
            sentence: Its words count, and its tags if the network reads given tags.
            constraints: Items that the trees must have, and items that they must not have.

        Raises:
            ParameterError: A constraint names a word, label or tag that is unknown, needs a layer that the parser does not
                have, or is on tags that the parser reads. (Constraints that no tree obeys are an error of `trees`.)
            TooLongError: The charts would not fit into memory.
        """
        self.task, vocab, lam = model.config.model.task, model.vocab, model.lam
        lacking = {"dependencies": SpanItem, "constituents": ArcItem}.get(self.task, ())
        if wrong := [item for item in constraints.items if isinstance(item, lacking)]:
            problem = f"the parser was trained on {self.task} alone"
            raise ParameterError(problem, where=str(wrong[0]), remedy="Leave it out, or use a parser of both layers.")
        constraints.check(len(sentence), vocab.labels, vocab.tags)
        self.model, self.sentence, self.constraints = model.exact, sentence, constraints
        (self.scored,) = self.model.scores([sentence])
        self.state = model.state()  # afterwards: in its first run the encoder of transformers adds hooks of its own
        scores, usual = of_one_layer(self.task, *self.scored.arrays()[0]), closed_spans(self.task, len(sentence))
        self.free = weighted(*scores, lam, usual, sentence.where)
        labels, arcs, closed = constraints.apply(*scores, vocab.labels)
        self.scores = weighted(labels, arcs, lam, np.maximum(usual, closed), sentence.where)
        self.tag_log_probability = self._choose_tags()

    def _choose_tags(self) -> float:
        """Forbid tags in the network's output. Return the logarithm of the probability of the tags that are left."""
        output, vocab = self.scored.output, self.model.vocab
        scores = output.tag_scores.clone()
        for item, wanted in self.constraints.wanted:
            if isinstance(item, TagItem) and self.model.config.model.tag_input == "given" and self.sentence.tags:
                problem = "this parser reads the tags of the sentence: they cannot be constraints"
                raise ParameterError(problem, where=str(item), remedy="Change the tag in the sentence.")
            if isinstance(item, TagItem):
                same = torch.arange(scores.shape[-1]) == vocab.tag_index[item.tag]
                scores[0, item.word - 1, same != wanted] = -math.inf
        left = scores.logsumexp(-1).sum() - output.tag_scores.logsumexp(-1).sum()
        self.scored = self.scored._replace(output=replace(output, tag_scores=scores))
        return float(left)

    @cached_property
    def log_partition(self) -> float:
        """The logarithm of the sum of exp(score / temperature) over the trees that obey."""
        return log_partition(self.scores.divided(self.model.temperature))

    @cached_property
    def price(self) -> Price:
        if not self.constraints.items:
            return Price(0.0, 0.0)
        score = k_best(self.free, 1)[0].score - self.best.score
        among = self.log_partition - log_partition(self.free.divided(self.model.temperature))
        return Price(max(0.0, score), min(0.0, among) + self.tag_log_probability)

    @cached_property
    def arc_probabilities(self) -> np.ndarray:
        """The probability [words, words + 1] of every head of every word, among all trees; head 0 is the root."""
        temperature = self.model.temperature
        return marginals_batch(self.scored.arrays(), self.model.lam, temperature, threads=1, task=self.task)[0].arcs

    @property
    def best(self) -> JointTree:
        return self.trees(1)[0]

    def trees(self, k: int) -> list[JointTree]:
        """Return the k best trees that obey. Without constraints, the decoder's tree is the first of trees with equal scores.

        Raises ParameterError if no tree obeys.
        """
        if self.task == "dependencies":  # spans say nothing, and arcs have many of them
            k = whole_number("the number of trees", k, 1, 100 * MOST_TREES)
            found = islice(structures(self.scores, range(len(self.sentence))), k)
            trees = [tree._replace(spans=[]) for tree, _ in found]
        else:
            trees = k_best(self.scores, k)
        if not trees or self.tag_log_probability == -math.inf:
            problem = "no joint tree obeys these constraints"
            raise ParameterError(problem, where=str(self.constraints), remedy="Leave out one of them.")
        if self.constraints.items or self.task != "joint":
            return trees
        (first,) = self.model.decode(self.scored)
        first = first._replace(score=tree_score(self.scores, first.spans, first.heads))
        same = [(tree.spans, tree.heads.tolist()) == (first.spans, first.heads.tolist()) for tree in trees]
        return [first, *(tree for tree, is_first in zip(trees, same) if not is_first)][:k]

    def prediction(self, tree: JointTree) -> Prediction:
        return self.model.predictions(self.scored, [tree])[0]

    def score(self, prediction: Prediction) -> float:
        """Score the tree of a prediction."""
        tree = tree_of(prediction, self.model.vocab)
        return tree_score(self.free, tree.spans, tree.heads)

    def with_confidence(self, prediction: Prediction) -> Prediction:
        """Add the probabilities of its parts to a parse. They are among all trees, also trees that break the constraints."""
        tree = tree_of(prediction, self.model.vocab)
        (same,) = self.model.predictions(self.scored, [tree], probabilities=True)
        return replace(prediction, confidence=same.confidence)

    def readings(self, trees: Sequence[JointTree]) -> list[Reading]:
        """Return trees with their probabilities and their differences from the best tree."""
        best, *predictions = (self.prediction(tree) for tree in (self.best, *trees))
        divided = self.scores.divided(self.model.temperature)
        logs = [min(0.0, tree_score(divided, tree.spans, tree.heads) - self.log_partition) for tree in trees]
        first, *items = (items_of(p.spans, p.sentence.heads or ()) for p in (best, *predictions))
        return [Reading(p, log, has - first, first - has) for p, log, has in zip(predictions, logs, items)]

    def alternatives(self, k: int, differ: Differ = "structure") -> list[Reading]:
        """Return k readings, the best tree first, that differ from each other in a certain way; fewer if there are fewer.

        Args:
            k: How many.
            differ: "structure": at least one word that is not punctuation has another head word. Each is the best tree of its
                structure. Its probability is the exact sum over all trees with these arcs, whatever their labels and
                constituents. After the best tree they stand in the order of this probability; the 20 (or 2 k) structures with
                the best trees are compared. "any": all trees. Trees that differ only in groups (<H>), which are not shown,
                count as one: the best of them.

        Raises:
            ParameterError: k is below 1 or above 10,000, `differ` has another value, or no tree obeys the constraints.
        """
        k, best = whole_number("the number of trees", k, 1, MOST_TREES), self.best
        if differ == "any" or self.task == "constituents":
            return self.readings(_distinct(self.trees, k))
        counted = [i for i, word in enumerate(self.sentence.words) if any(map(str.isalnum, word))]
        found = structures(self.scores, counted, best)
        # At least 20, so that a smaller k gives the first of the same list.
        summed = [(log_partition(s.divided(self.model.temperature)), tree) for tree, s in islice(found, max(20, 2 * k))]
        logs, trees = zip(*[summed[0], *sorted(summed[1:], key=lambda pair: -pair[0])][:k])
        first, *arcs = (frozenset(ArcItem(i + 1, int(tree.heads[i])) for i in counted) for tree in (best, *trees))
        return [
            Reading(self.prediction(tree), min(0.0, log - self.log_partition), has - first, first - has, differ)
            for tree, log, has in zip(trees, logs, arcs)
        ]

    def attachments(self, prediction: Prediction, phrase: str | int | tuple[int, int]) -> pd.DataFrame:
        """Return the probability of every head word of a phrase: see `ParseResult.attachments`."""
        import pandas as pd

        words, heads = self.sentence.words, prediction.sentence.heads
        if heads is None:
            problem = "the parser was trained on constituents alone: it gives no head words"
            raise ParameterError(problem, remedy="Use a parser with dependencies.")
        first, last = self._place(phrase)
        outside = [word for word in range(first, last + 1) if not first <= heads[word - 1] <= last]
        if len(outside) != 1:
            problem = f"words {first} to {last} are not one phrase in this parse: {len(outside)} have a head outside"
            raise ParameterError(problem, where=str(phrase), remedy="Give one word, or a phrase of the parse.")
        row = self.arc_probabilities[outside[0] - 1]
        rows = [
            (" ".join(words[first - 1 : last]), head, words[head - 1] if head else "root", float(probability))
            for head, probability in enumerate(row)
            if not first <= head <= last
        ]
        columns = ["phrase", "head", "head word", "probability"]
        return pd.DataFrame(rows, columns=columns).sort_values("probability", ascending=False, ignore_index=True)

    def _place(self, phrase: str | int | tuple[int, int]) -> tuple[int, int]:
        """Return the numbers of the first and the last word of a phrase of the sentence."""
        words, n = self.sentence.words, len(self.sentence)
        if isinstance(phrase, str):
            wanted = "".join(phrase.split())
            spans = [(i + 1, j) for i in range(n) for j in range(i + 1, n + 1) if "".join(words[i:j]) == wanted]
            if len(spans) != 1:
                problem = "is not in the sentence" if not spans else f"is in the sentence {len(spans)} times"
                remedy = f"Give the numbers of its first and last word. The words are: {' '.join(words)}"
                raise ParameterError(f"the phrase {problem}", where=repr(phrase), remedy=remedy)
            return spans[0]
        first, last = phrase if isinstance(phrase, tuple) and len(phrase) == 2 else (phrase, phrase)
        first, last = whole_number("the first word", first, 1), whole_number("the last word", last, 1)
        if not first <= last <= n:
            raise ParameterError("there is no such phrase", where=str(phrase), remedy=f"The words are 1 to {n}.")
        return first, last


def _distinct(trees: Callable[[int], list[JointTree]], k: int) -> list[JointTree]:
    """Return the first k trees of which no two differ only in groups, or fewer. trees: a function k -> the k best trees."""
    asked, seen = k, {}
    while len(seen) < k:
        found = trees(asked)
        for tree in found:
            seen.setdefault((tuple(span for span in tree.spans if span[2] != SUBHEAD), *tree.heads), tree)
        if len(found) < asked:
            break
        asked *= 2
    return [*seen.values()][:k]
