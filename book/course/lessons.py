"""Check answers to the exercises that end the lessons in notebooks/, without giving them away: `check("02.1", answer)`.

It is the mechanism of the graded exercises (checks.py) without points: one line, no error, and no answer. The right answers are
computed by lalkit, with the defaults of the lesson, and stand nowhere as numbers. Where an exercise has many right answers (a
parse, scores, a query), the check tries out what was asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from checks import GOLD, LABELS, WORDS, Mistake, _best_sum, compare, compare_calls, report

import lalkit
from lalkit.chart.cky import cky_batch
from lalkit.chart.joint import decode
from lalkit.chart.loss import span_likelihood_loss, span_margin_loss
from lalkit.config import LabelAttentionConfig
from lalkit.evaluation.scores import evaluate
from lalkit.treebank.tree import Sentence

ANSWER = "your answer"
EXERCISES: dict[
    str, Callable[[Any], None]
] = {}  # number of an exercise -> the function that raises Mistake for a wrong answer


def check(number: str, answer: Any) -> None:
    """Print one line about the answer to an exercise. number: of the lesson and the exercise, for example "02.1"."""
    if number in EXERCISES:
        report(number, lambda: EXERCISES[number](answer))
    else:
        print(f"Not yet: there is no check of {number!r}. There are: {', '.join(EXERCISES)}.")


def exercise(number: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function as the check of an exercise."""

    def register(judge: Callable[[Any], None]) -> Callable[[Any], None]:
        EXERCISES[number] = judge
        return judge

    return register


def pair(answer: Any, what: str) -> tuple[Any, Any]:
    """Return the two parts of an answer. what: the parts in words."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise Mistake(f"{ANSWER} is a value of type {type(answer).__name__}.", f"Give two things, ({what}).")
    return tuple(answer)


def need(condition: Any, problem: str, remedy: str) -> None:
    """Raise Mistake unless a condition holds."""
    if not condition:
        raise Mistake(problem, remedy)


def need_sentence(answer: Any, words: tuple[str, ...]) -> None:
    """Raise Mistake unless an answer is a Sentence with these words, constituents and heads."""
    need(isinstance(answer, Sentence), f"there is a value of type {type(answer).__name__}.", "It must be a Sentence.")
    need(answer.words == words, "the Sentence has other words.", "Keep the words of the exercise, in their order.")
    need(answer.constituents and answer.heads, "a layer is missing.", "Give the Sentence constituents and heads.")


# ---------------------------------------------------------------- 02: measuring

BIRDS = Sentence(
    ("We", "watched", "birds", "with", "binoculars", "."),
    ("PRP", "VBD", "NNS", "IN", "NNS", "."),
    ((0, 6, "S"), (0, 1, "NP"), (1, 5, "VP"), (2, 3, "NP"), (3, 5, "PP"), (4, 5, "NP")),
    (2, 0, 2, 2, 4, 2),
    ("SBJ", "ROOT", "OBJ", "ADV", "PMOD", "P"),
)


@exercise("02.1")
def check_skipped(answer):
    """Check the numbers of skipped sentences: with the tags of gold, and with the tags of the parse."""
    parse = Sentence(BIRDS.words, (*BIRDS.tags[:5], "NN"), BIRDS.constituents, BIRDS.heads, BIRDS.arc_labels)
    truths = [evaluate([BIRDS], [parse], retag=retag).summary()["skipped"] for retag in (True, False)]
    for given, truth, call in zip(pair(answer, "skipped, skipped with retag=False"), truths, ("first", "second")):
        compare(given, truth, f"the number of the {call} call")


@exercise("02.2")
def check_two_parses(answer):
    """Check a parse with the right heads and a low F1, and one with an F1 of 100 and a wrong head."""
    for parse, low, high in zip(pair(answer, "first parse, second parse"), ("f1", "uas"), ("uas", "f1")):
        need_sentence(parse, BIRDS.words)
        found = evaluate([BIRDS], [parse]).summary()
        names = {"f1": "F1", "uas": "UAS"}
        need(
            found[high] == 100, f"a parse has not the {names[high]} 100.", "Change one layer only, and keep the other."
        )
        need(found[low] < 100, f"a parse has the {names[low]} 100.", "Which layer should be wrong in this parse?")


# ---------------------------------------------------------------- 04: label attention


@exercise("04.2")
def check_sparse_heads(answer):
    """Check the number of words that each head looks at with sparsemax, in the sentence of the lesson."""
    random = torch.random.get_rng_state()
    torch.manual_seed(1)
    x = torch.randn(7, 12, dtype=torch.float64)
    layer = lalkit.LabelAttention(LabelAttentionConfig(heads=6, d_kv=4, d_out=4, normaliser="sparsemax"), 8, 4).double()
    torch.random.set_rng_state(random)
    with torch.no_grad():
        layer.query.mul_(4)
        _, attention = layer.eval()(x[None], torch.ones(1, 7, dtype=torch.bool))
    counts = (attention[0] > 0).sum(1)
    answer = np.array(answer) if isinstance(answer, (list, tuple)) else answer
    compare(answer, counts, ANSWER)


@exercise("04.3")
def check_own_queries(answer):
    """Check a function of (heads, batch size) that returns whether every head has its own query in every sentence."""
    cases = []
    for heads, size in itertools.product((5, 6, 7), range(1, 10)):
        queries = torch.arange(heads).repeat(size).view(heads, size)  # [k, place]: laid out sentence by sentence
        cases.append(((heads, size), bool((queries == torch.arange(heads)[:, None]).all())))
    compare_calls(answer, ANSWER, cases)


# ---------------------------------------------------------------- 05: decoding

ARCS = np.array([[1, 0, 6, 1, 2], [3, 1, 0, 5, 2], [4, 0, 5, 0, 3], [2, 0, 6, 4, 0]], dtype=float)  # dependent by head


@exercise("05.1")
def check_greedy_splits(answer):
    """Check scores [5, 5] for which splitting greedily from the top does not find the best tree."""
    need(
        isinstance(answer, np.ndarray) and answer.shape == (5, 5),
        "it must be an array [5, 5].",
        "best[i, j]: span i to j.",
    )
    compare(answer, answer, ANSWER)  # numbers, and none of them NaN

    def greedy(i, j):
        """Return the sum of the tree that a greedy choice of splits finds."""
        if j - i == 1:
            return answer[i, j]
        k = max(range(i + 1, j), key=lambda k: answer[i, k] + answer[k, j])
        return answer[i, j] + greedy(i, k) + greedy(k, j)

    remedy = "Hide a high score inside a part whose own score is low."
    need(greedy(0, 4) < _best_sum(answer) - 1e-3, "the greedy method finds the best tree of these scores.", remedy)


@exercise("05.2")
def check_counts(answer):
    """Check a function of the number of words that returns the numbers of binary trees and of projective trees."""
    need(callable(answer), f"{ANSWER} is a value of type {type(answer).__name__}.", "It must be a function.")
    cases = [((n,), [math.comb(2 * n - 2, n - 1) // n, math.comb(3 * n - 2, n - 1) // n]) for n in (1, 2, 3, 4, 6, 9)]
    compare_calls(lambda n: np.array(answer(n)), ANSWER, cases)


@exercise("05.3")
def check_changed_scores(answer):
    """Check scores of labels and of arcs, at most two of them changed, with another best tree of heads."""
    labels, arcs = pair(answer, "label_scores, arc_scores")
    first_labels, first_arcs = scores_of({(1, 4, "S"): 1, (0, 2, "NP"): 4, (2, 4, "VP"): 4}), ARCS
    for given, before in ((labels, first_labels), (arcs, first_arcs)):
        need(isinstance(given, np.ndarray), "the scores are no array.", "Change copies of label_scores and arc_scores.")
        need(given.shape == before.shape, "the scores have another shape.", "Change copies of the lesson's arrays.")
    read = np.zeros(first_labels.shape, dtype=bool)  # the scores that the decoder reads
    for span in itertools.combinations(range(len(WORDS) + 1), 2):
        read[span] = True
    other = ~np.eye(len(WORDS), len(WORDS) + 1, 1, dtype=bool)
    changed = ((labels != first_labels) & read).sum() + ((arcs != first_arcs) & other).sum()
    need(changed <= 2, f"{changed} scores differ from those of the lesson.", "Two changes are enough.")
    need((labels[..., 0] == 0).all(), "the empty label must score 0.", "Change another score.")
    noise = np.random.default_rng(0).normal(0, 1e-6, (8, *arcs.shape))
    found = [tuple(decode(labels, arcs + small, 0.5).heads.tolist()) for small in noise]
    wanted = (2, 0, 2, 3)
    need(wanted in found, "the best joint tree has other heads.", "Compare your tree with the first rows of the table.")
    need(set(found) == {wanted}, "another tree has as many points.", "Which tree is it, and what does only yours have?")


# ---------------------------------------------------------------- 06: learning


def scores_of(liked: dict[tuple[int, int, str], float]) -> np.ndarray:
    """Return the scores [5, 5, 5] that notebooks 05 and 06 begin with, and some others."""
    chart = np.full((len(WORDS) + 1, len(WORDS) + 1, len(LABELS)), -2.0)
    chart[:, :, 0] = 0
    for (i, j, label), value in {(0, 4, "S"): 3, (1, 3, "S"): 5, (3, 4, "NP"): 2, **liked}.items():
        chart[i, j, LABELS.index(label)] = value
    return chart


WRONG_TREE = {(1, 4, "S"): 3, (0, 2, "NP"): 3, (2, 4, "VP"): 3}


def gradient_of(loss: Callable[..., torch.Tensor], chart: np.ndarray) -> np.ndarray:
    """Return the gradient of a loss at a chart; 0 for the empty label."""
    with torch.enable_grad():
        scores = torch.tensor(chart)[None].requires_grad_()
        loss(scores, [len(WORDS)], [GOLD]).backward()
    gradient = scores.grad[0].numpy()
    gradient[:, :, 0] = 0
    return gradient


@exercise("06.1")
def check_two_gradients(answer):
    """Check the gradients of both losses after one score was raised."""
    chart = scores_of(WRONG_TREE | {(1, 3, "S"): 20})
    for given, loss in zip(pair(answer, "margin, likelihood"), (span_margin_loss, span_likelihood_loss)):
        compare(given, gradient_of(loss, chart), f"the gradient of the {loss.__name__.split('_')[1]}")


@exercise("06.2")
def check_perceptron_step(answer):
    """Check the step at which the perceptron's loss reaches 0."""
    chart = scores_of(WRONG_TREE)
    (parse,) = cky_batch([chart], threads=1)
    apart = len({*parse.spans} ^ {*GOLD})  # constituents that only one of the trees has: each moves by a step
    compare(answer, (parse.score - sum(chart[span] for span in GOLD)) / apart, ANSWER)


@exercise("06.3")
def check_contradiction(answer):
    """Check the (first word, last word, label) of which two gold trees want opposite scores."""
    sentences = [(WORDS, GOLD), ("Young women drivers sing".split(), [(0, 4, 2), (0, 3, 3), (3, 4, 4)])]
    asked = [{(words[i], words[j - 1], LABELS[k]) for i, j, k in gold} for words, gold in sentences]
    pairs = [{(words[i], words[j - 1]) for i, j in itertools.combinations(range(5), 2)} for words, _ in sentences]
    opposite = {item for one in (0, 1) for item in asked[one] - asked[1 - one] if item[:2] in pairs[1 - one]}
    need(isinstance(answer, tuple) and len(answer) == 3, "it must be a tuple.", "Give (first word, last word, label).")
    need(answer in opposite, "these weights can satisfy all trees there.", "Which words begin and end a span in both?")
