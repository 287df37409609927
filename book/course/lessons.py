"""Check answers to the exercises that end the lessons in notebooks/, without giving them away: `check("02.1", answer)`.

It is the mechanism of the graded exercises (checks.py) without points: one line, no error, and no answer. The right answers are
computed by lalkit, with the defaults of the lesson, and stand nowhere as numbers. Where an exercise has many right answers (a
parse, scores, a query), the check tries out what was asked for.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from checks import GOLD, LABELS, WORDS, Mistake, _best_sum, call, compare, compare_calls, floats, report
from scipy import stats

import lalkit
from lalkit.chart.cky import FIRST_REAL, cky_batch
from lalkit.chart.joint import decode
from lalkit.chart.loss import span_likelihood_loss, span_margin_loss
from lalkit.chart.sums import marginals
from lalkit.config import LabelAttentionConfig
from lalkit.evaluation.scores import by_label, evaluate
from lalkit.evaluation.statistics import welch
from lalkit.interpret.contributions import contributions
from lalkit.interpret.tables import top_shares
from lalkit.probes.perturbation import erasure_flip
from lalkit.probes.view import AttentionView, linear_view
from lalkit.probes.weights import conicity
from lalkit.reproduce.report import read_sweep
from lalkit.reproduce.sweep import plan
from lalkit.training import named as models
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import load, repository
from lalkit.treebank.joint import GROUP, to_joint
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
    if not isinstance(answer, (tuple, list, np.ndarray, torch.Tensor)) or len(answer) != 2:
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
    (2, 0, 2, 5, 2, 2),
    ("nsubj", "root", "obj", "case", "obl", "punct"),
)


@exercise("02.1")
def check_skipped(answer):
    """Check the numbers of skipped sentences: with the tags of gold, and with the tags of the parse."""
    parse = Sentence(BIRDS.words, (*BIRDS.tags[:5], "NN"), BIRDS.constituents, BIRDS.heads, BIRDS.arc_labels)
    truths = [evaluate([BIRDS], [parse], retag=retag).summary()["skipped"] for retag in (True, False)]
    for given, truth, which in zip(pair(answer, "skipped, skipped with retag=False"), truths, ("first", "second")):
        compare(given, truth, f"the number of the {which} call", "Read skipped in the summary of both calls.")


@exercise("02.2")
def check_two_parses(answer):
    """Check a parse with the right heads and a low F1, and one with an F1 of 100 and a wrong head."""
    for parse, low, high, which in zip(
        pair(answer, "first parse, second parse"), ("f1", "uas"), ("uas", "f1"), ("first", "second")
    ):
        need_sentence(parse, BIRDS.words)
        found = evaluate([BIRDS], [parse]).summary()
        names = {"f1": "F1", "uas": "UAS"}
        need(
            found[high] == 100,
            f"the {which} parse has the {names[high]} {found[high]:.1f}, not 100.",
            "Change one layer only, and keep the other.",
        )
        need(
            found[low] < 100,
            f"the {which} parse has the {names[low]} 100, too.",
            "Which layer should be wrong in this parse?",
        )


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
    answer = floats(answer, ANSWER) if isinstance(answer, (list, tuple)) else answer
    compare(answer, counts, ANSWER, "Count the weights above 0 in each row of attention, with the words of the lesson.")


@exercise("04.3")
def check_own_queries(answer):
    """Check a function of (heads, batch size) that returns whether every head has its own query in every sentence."""
    cases = []
    for heads, size in itertools.product((5, 6, 7), range(1, 10)):
        queries = torch.arange(heads).repeat(size).view(heads, size)  # [k, place]: laid out sentence by sentence
        cases.append(((heads, size), bool((queries == torch.arange(heads)[:, None]).all())))
    compare_calls(answer, ANSWER, cases, "In which places of the batch does head h find query h?")


# ---------------------------------------------------------------- 05: decoding

ARCS = np.array([[1, 0, 6, 1, 2], [3, 1, 0, 5, 2], [4, 0, 5, 0, 3], [2, 0, 6, 4, 0]], dtype=float)  # dependent by head


@exercise("05.1")
def check_greedy_splits(answer):
    """Check scores [5, 5] for which splitting greedily from the top does not find the best tree."""
    need(isinstance(answer, (np.ndarray, list)), "it must be an array [5, 5].", "best[i, j]: span i to j.")
    answer = floats(answer, ANSWER)
    need(answer.shape == (5, 5), f"it has the shape {list(answer.shape)}, not [5, 5].", "best[i, j]: span i to j.")
    compare(answer, answer, ANSWER)  # none of them NaN

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
    hint = "First the binary trees, then the projective ones; one word has one of each."
    compare_calls(lambda n: np.array(answer(n)), ANSWER, cases, hint)


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
    hint = "Only women drive (S) has another score; the empty label keeps 0."
    for given, loss in zip(pair(answer, "margin, likelihood"), (span_margin_loss, span_likelihood_loss)):
        compare(given, gradient_of(loss, chart), f"the gradient of the {loss.__name__.split('_')[1]}", hint)


@exercise("06.2")
def check_perceptron_step(answer):
    """Check the step at which the perceptron's loss reaches 0."""
    chart = scores_of(WRONG_TREE)
    (parse,) = cky_batch([chart], threads=1)
    apart = len({*parse.spans} ^ {*GOLD})  # constituents that only one of the trees has: each moves by a step
    compare(
        answer,
        (parse.score - sum(chart[span] for span in GOLD)) / apart,
        ANSWER,
        "How many constituents move, and by how much does the loss fall at each step?",
    )


@exercise("06.3")
def check_contradiction(answer):
    """Check the (first word, last word, label) of which two gold trees want opposite scores."""
    sentences = [(WORDS, GOLD), ("Young women drivers sing".split(), [(0, 4, 2), (0, 3, 3), (3, 4, 4)])]
    asked = [{(words[i], words[j - 1], LABELS[k]) for i, j, k in gold} for words, gold in sentences]
    pairs = [{(words[i], words[j - 1]) for i, j in itertools.combinations(range(5), 2)} for words, _ in sentences]
    opposite = {item for one in (0, 1) for item in asked[one] - asked[1 - one] if item[:2] in pairs[1 - one]}
    three = isinstance(answer, (tuple, list)) and len(answer) == 3 and all(isinstance(part, str) for part in answer)
    need(three, "it must be a tuple of three texts.", "Give (first word, last word, label).")
    need(
        tuple(part.strip() for part in answer) in opposite,
        "these weights can satisfy all trees there.",
        "Which words begin and end a span in both?",
    )


# ---------------------------------------------------------------- primer


@exercise("primer.1")
def check_old_people(answer):
    """Check the brackets of "The old fed the ducks"."""
    need(
        isinstance(answer, str),
        f"{ANSWER} is a value of type {type(answer).__name__}.",
        "It must be text with brackets.",
    )
    found = tree_to_sentence(parse_tree(answer))
    need(found.words == tuple("The old fed the ducks".split()), "the words are others.", "Five words, in their order.")
    spans = {tuple(span) for span in found.constituents}
    remedy = "There are four boxes. Draw it, and replace each box by one word."
    need(spans == {(0, 5, "S"), (0, 2, "NP"), (2, 5, "VP"), (3, 5, "NP")}, "the boxes are others.", remedy)
    need(found.tags[1].startswith("NN"), "the tag of a word has not changed.", "What is the word class of *old* now?")


@exercise("primer.2")
def check_two_readings(answer):
    """Check two joint trees of "Time flies like an arrow". The heads are those of UD, or of the preposition in a PP."""
    verbal = {(0, 5, "S"), (3, 5, "NP")}
    wanted = (
        ("first", verbal | {(1, 5, "VP"), (2, 5, "PP")}, {(2, 0, 5, 5, 2), (2, 0, 2, 5, 3)}),
        ("second", verbal | {(0, 2, "NP"), (2, 5, "VP")}, {(2, 3, 0, 5, 3)}),
    )
    words = tuple("Time flies like an arrow".split())
    for reading, (which, boxes, trees) in zip(pair(answer, "first reading, second reading"), wanted):
        need_sentence(reading, words)
        to_joint(reading)
        given = {tuple(span) for span in reading.constituents}
        for have, others, what in ((given, boxes, "is missing"), (boxes | {(0, 1, "NP")}, given, "does not belong")):
            for start, end, label in sorted(others - have):
                box = f"the box {label}({start}, {end}) {what} in the {which} reading."
                need(False, box, "Which group can be replaced by one word, and what is it called?")
        arcs = min(([k for k in range(5) if reading.heads[k] != heads[k]] for heads in trees), key=len)
        hangs = ", ".join(words[k] for k in arcs)
        need(
            not arcs, f"{hangs}: another head in the {which} reading.", "Which word is the verb, and what hangs on it?"
        )


@exercise("primer.3")
def check_queries(answer):
    """Check a query with most weight on "fed", and one with nearly equal weights."""
    words = np.array([[3.0, 0], [0, 3], [2, 1]])  # man, fed, ducks
    both = []
    for query in pair(answer, "first query, second query"):
        query = floats(query, "a query")
        compare(query, np.resize(query, 2) if query.size else np.zeros(2), "a query")
        weights = np.exp(words @ query)
        both.append(weights / weights.sum())
    need(
        both[0][1] > 0.9, f"the first query gives *fed* the weight {both[0][1]:.2f}.", "Ask for an action, and louder."
    )
    need(
        np.ptp(both[1]) < 0.05,
        f"the second query's weights differ by {np.ptp(both[1]):.2f}.",
        "Make comparisons alike.",
    )


# ---------------------------------------------------------------- 00, 01: parses and spans


@exercise("00.1")
def check_attachments(answer):
    """Check the words on which the phrases with "with" hang in two sentences, as the default parser finds them."""
    parser = lalkit.load()
    given = pair(answer, "head word, head word")
    for word, text in zip(given, ("I saw the man with the telescope", "I ate the pizza with the fork")):
        need(isinstance(word, str), "a head word is no text.", "Write each head word in quotation marks.")
        result = parser.parse(text)
        found = result.sentence.words[result.sentence.heads[-1] - 1]
        need(
            word.strip().lower() == found.lower(),
            f"the phrase hangs elsewhere in {text!r}.",
            "Look up the head of the phrase's noun.",
        )


@exercise("00.3")
def check_alone(answer):
    """Check the trees of the sentences of dev, parsed one by one."""
    gold = load("sample", "dev").sentences
    need(
        isinstance(answer, (list, tuple)),
        f"{ANSWER} is a value of type {type(answer).__name__}.",
        "It must be a list of trees.",
    )
    need(len(answer) == len(gold), f"there are {len(answer)} trees for {len(gold)} sentences.", "Parse all of gold.")
    texts = [["".join(str(tree).split()) for tree in trees] for trees in (answer, lalkit.load().parse_all(gold))]
    equal = sum(one == other for one, other in zip(*texts))
    need(
        equal == len(gold), f"{equal} of {len(gold)} trees are those of parse_all.", "Give results or result.to_ptb()."
    )


POOL = Sentence(
    ("the", "very", "old", "swimming", "pool"), ("DT", "RB", "JJ", "NN", "NN"), ((0, 5, "NP"),), (5, 3, 5, 5, 0)
)


@exercise("01.1")
def check_groups(answer):
    """Check the places of the groups after two changes of heads."""
    for given, heads, which in zip(
        pair(answer, "groups, groups"), ((5, 5, 5, 5, 0), (3, 3, 5, 5, 0)), ("first", "second")
    ):
        groups = {(span.start, span.end) for span in to_joint(replace(POOL, heads=heads)) if span.label == GROUP}
        compare(
            given, groups, f"the list of groups after the {which} change", "A group is a head with all its dependents."
        )


@exercise("01.2")
def check_chain(answer):
    """Check the labels of a unary chain of our treebank, the outer one first."""
    sentences = [s for part in ("train", "dev", "test") for s in load("sample", part).sentences]
    chains = {tuple(span.label.split("::")) for s in sentences for span in s.constituents if "::" in span.label}
    answer = tuple(answer.split("::")) if isinstance(answer, str) and "::" in answer else answer
    labels = isinstance(answer, (tuple, list)) and all(isinstance(x, str) for x in answer)
    need(labels, "it must be labels.", "Give (outer, inner).")
    need(
        tuple(answer) in chains,
        "our treebank has no such chain.",
        "Read the label from left to right: the outer one is first.",
    )


# ---------------------------------------------------------------- 03: scores

COOK = "The cook tasted the soup"


@cache
def without_waves() -> set[tuple[int, int, str]]:
    """Return the constituents that the parser finds without positions."""
    parser = lalkit.load("en-news-span")
    with torch.no_grad():
        parser.network.encoder.position.weight.zero_()
    return {tuple(span) for span in parser.parse(COOK).sentence.constituents}


@cache
def change_by_equal_weights() -> float:
    """Return by how much the score of NP for the whole sentence changes with equal weights."""
    parser = lalkit.load("en-news-span")
    batch = parser.model.collator([Sentence(tuple(COOK.split()))])
    network, place = parser.network.eval(), (0, 0, 5, parser.vocab.label_index["NP"])
    with torch.no_grad():
        before = network(batch).label_scores[place].item()
        with network.spans.hooked(logits=lambda logits, lengths: torch.zeros_like(logits)):
            after = network(batch).label_scores[place].item()
    return after - before


@exercise("03.2")
def check_without_waves(answer):
    """Check the constituents that the parser finds without positions."""
    hint = "Set the weights of the positions to 0, and take (start, end, label) of the tree that is found then."
    compare(answer, without_waves(), "the list of constituents", hint)


@exercise("03.3")
def check_equal_weights(answer):
    """Check by how much the score of NP for the whole sentence changes with equal weights."""
    compare(answer, change_by_equal_weights(), ANSWER, "The score with equal weights minus the score, in this order.")


# ---------------------------------------------------------------- 10, 12: parses and their probabilities


@cache
def changed_trees(*names: str) -> int:
    """Return how many sentences of our test part get another tree inside some blocks, the outer one first."""
    parser, gold = lalkit.load("en-news"), lalkit.Treebank.load("sample", "test")
    blocks = {
        "one head": lambda: parser.without(heads=[head for head in range(64) if head != 3]),
        "outer": lambda: parser.patched({"label_attention.contexts": torch.zeros_like}),
        "inner": lambda: parser.without(heads=[3]),
    }
    before = parser.parse_all(gold)
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(blocks[name]())
        after = parser.parse_all(gold)
    table = lalkit.compare(before, after).table
    return int((table["only_first"] + table["only_second"] != "").sum())


@exercise("10.1")
def check_other_heads(answer):
    """Check the number of clauses whose top head belongs to another label."""
    need_number(answer, "clauses")
    compare(
        answer, int((clauses()["head_label"] != "SBAR").sum()), ANSWER, "Count the rows whose head_label is not SBAR."
    )


@cache
def clauses() -> pd.DataFrame:
    """Return the SBARs of our test part with their top heads."""
    return lalkit.load("en-news-glass").top_heads(lalkit.Treebank.load("sample", "test"), "SBAR")


@cache
def errors_of(name: str) -> pd.DataFrame:
    """Return the errors of a parser in our test part."""
    return lalkit.load(name).errors(lalkit.Treebank.load("sample", "test"))


@exercise("10.2")
def check_one_head(answer):
    """Check the number of sentences that get another tree with one head."""
    need_number(answer)
    compare(
        answer, changed_trees("one head"), ANSWER, "Compare with the parses of the whole parser, sentence by sentence."
    )


@exercise("10.3")
def check_nested(answer):
    """Check the numbers of sentences with another tree: the outer block alone, the inner one alone, both."""
    need(
        isinstance(answer, (list, tuple)) and len(answer) == 3,
        "it must be three numbers.",
        "Give (outer, inner, both).",
    )
    for number in answer:
        need_number(number)
    names = ("the outer block alone", "the inner block alone", "both blocks")
    for given, blocks, name in zip(answer, (("outer",), ("inner",), ("outer", "inner")), names):
        compare(
            given, changed_trees(*blocks), f"the number for {name}", "Compare each run with the parser without blocks."
        )


def need_number(answer: Any, of: str = "sentences") -> None:
    """Raise Mistake unless an answer is a whole number of some things."""
    number = isinstance(answer, (Real, np.generic)) and not isinstance(answer, (bool, np.bool_))
    need(number, f"there is a value of type {type(answer).__name__}.", f"It must be a number of {of}.")
    need(answer == answer // 1, f"{answer} is not a whole number.", f"It must be a number of {of}.")


@exercise("10.5")
def check_errors_of(answer):
    """Check the number of errors with the head word "of"."""
    need_number(answer, "errors")
    errors = errors_of("en-news")
    compare(answer, int((errors["head_word"] == "of").sum()), ANSWER, 'Filter by the column head_word, exactly "of".')


@exercise("12.2")
def check_numbers_of_trees(answer):
    """Check how many joint trees three words have, with three labels and with four."""
    truths = []
    for labels in (3, 4):
        equal = marginals(np.zeros((4, 4, FIRST_REAL + labels)), np.zeros((3, 4)), 0.5)  # every tree weighs the same
        truths.append(round(math.exp(equal.log_partition)))
    for given, truth, name in zip(pair(answer, "with three labels, with four"), truths, ("three", "four")):
        hint = "Each word has a head, and each of the spans a label or none."
        compare(given, truth, f"the number of trees with {name} labels", hint)


# ---------------------------------------------------------------- 14, 16: probes and scores


def three_words(answer: Any) -> AttentionView:
    """Return the system of notebook 14 with three words, +1, +1 and -1, and these weights."""
    weights = floats(answer, ANSWER)
    need(weights.shape == (3,), "there are not three weights.", "Give one weight for each word: (a, b, c).")
    need(
        (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6,
        "they are no weights.",
        "They must be 0 or more, with the sum 1.",
    )
    values, read = torch.tensor([1.0, 1, -1]).double()[None, None, :, None], torch.tensor([[1.0, 0.0]]).double()
    return linear_view(torch.tensor(weights)[None, None, None], values, read)


@exercise("14.1")
def check_erasures(answer):
    """Check weights whose order is the fastest way to change the decision, and weights whose order is not."""
    for weights, fast in zip(pair(answer, "weights, weights"), (True, False)):
        view = three_words(weights)
        orders = [torch.tensor(order).double()[None, None, None] for order in itertools.permutations(range(3))]
        shares = [float(erasure_flip(view, order).fraction) for order in orders]
        mine = float(erasure_flip(view).fraction)
        which = "first" if fast else "second"
        need(
            min(shares) < max(shares),
            f"all orders are alike for the {which} weights.",
            "Which erasures change the decision?",
        )
        faster = f"another order is {'' if fast else 'not '}faster for the {which} weights."
        need((mine == min(shares)) == fast, faster, "Try all six orders.")


@exercise("14.2")
def check_largest_change(answer):
    """Check weights that some permutation changes as much as any weights can be changed."""
    view = three_words(answer)
    weights = view.weights.flatten()
    change = max(float((torch.sigmoid(1 - 2 * weights[k]) - torch.sigmoid(1 - 2 * weights[2])).abs()) for k in range(3))
    bound = math.tanh(0.5)  # sigma(1) - sigma(-1)
    said = f"the largest TVD of these weights is {change:.3f}; others reach more."
    need(change > bound - 1e-6, said, "Between which two places should the weights differ most?")


@exercise("16.1")
def check_seeds(answer):
    """Check the number of seeds for a standard error below a tenth of a point."""
    seeds = models.read_card(models.find("en-craft")).facts["seeds"]
    spread = np.std([seed["dev"]["f1"] for seed in seeds], ddof=1)
    hint = "Below a tenth, so the next whole number; and divide by n - 1 in the deviation of a sample."
    compare(answer, math.floor((spread / 0.1) ** 2) + 1, ANSWER, hint)


@exercise("16.2")
def check_coin(answer):
    """Check how often a coin shows heads at least 161 times in 300 throws."""
    one, two = (stats.binomtest(161, 300, alternative=side).pvalue for side in ("greater", "two-sided"))
    number = isinstance(answer, (float, np.floating))
    need(
        not number or abs(answer - two) > 5e-4,
        "this counts both sides.",
        "Ask for 161 heads or more, not for 139 or fewer.",
    )
    compare(answer, one, ANSWER, "At least 161: 161 counts, too.")


# ---------------------------------------------------------------- 07, 08: training and speed


@exercise("07.1")
def check_twice(answer):
    """Check a function of some scores that returns twice their standard deviation, of a sample or of a population."""
    for scores in ([63.5, 61.0, 62.2], [50.0, 50.0, 53.0, 58.5]):
        sample, population = (2 * np.std(scores, ddof=ddof) for ddof in (1, 0))
        given = call(answer, ANSWER, (scores,)) if callable(answer) else None
        near = {
            name: isinstance(given, Real) and abs(given - truth) <= 0.005
            for name, truth in (("population", population), ("once", sample / 2), ("once of all", population / 2))
        }
        need(
            not near["once"] and not near["once of all"],
            "this is the standard deviation once.",
            "The exercise asks for twice as much.",
        )
        truth = population if near["population"] else sample
        compare_calls(
            answer, ANSWER, [((scores,), truth)], "The root of the mean squared distance from the mean, times 2."
        )


@exercise("08.2")
def check_amdahl(answer):
    """Check a function of (share of a part, how much faster it becomes) that returns how much faster the whole becomes."""
    cases = [((p, s), 1 / (1 - p + p / s)) for p, s in ((0.5, 2.0), (0.8, 4.0), (0.25, 100.0))]
    compare_calls(answer, ANSWER, cases, "The other part keeps its time. Divide the old time by the new one.")


@exercise("08.3")
def check_summed_first(answer):
    """Check a function of (layer, x, mask) that returns the output and the attention of the label attention layer."""
    need(callable(answer), f"{ANSWER} is a value of type {type(answer).__name__}.", "It must be a function.")
    random = torch.random.get_rng_state()
    torch.manual_seed(1)
    layer = lalkit.LabelAttention(LabelAttentionConfig(heads=3, d_kv=4, d_out=4), 8, 4).double().eval()
    x, mask = torch.randn(2, 5, 12, dtype=torch.float64), torch.arange(5) < torch.tensor([[5], [3]])
    torch.random.set_rng_state(random)
    with torch.no_grad():
        truths, given = layer(x, mask), call(answer, ANSWER, (layer, x, mask))
    given = pair(given if isinstance(given, (tuple, list)) else [given], "y, attention")
    for one, truth, name in zip(given, truths, ("y", "attention")):
        need(isinstance(one, torch.Tensor), f"{name} is no tensor.", "Begin with a copy of label_attention_twin.")
        need(one.shape == truth.shape, f"{name} has the shape {list(one.shape)}.", "Name its axes in your einsum.")
        right = (
            torch.where(mask[(..., *[None] * (truth.dim() - 2))], (one - truth).abs(), 0)
            if name == "y"
            else one - truth
        )
        need(right.abs().max() < 1e-6, f"{name} has other numbers.", "What is summed, and over which axis?")


# ---------------------------------------------------------------- 09, 11: heads and errors


@cache
def without_the_head_of_s() -> tuple[int, int]:
    """Return the head with the highest lift for S in our test part, and how many S the parser finds less without it."""
    parser, gold = lalkit.load("en-news"), load("sample", "test").sentences
    exact = top_shares(contributions(parser.look(gold), gold), "exact", ["S"])
    head = int(exact[exact["led"] >= 20].sort_values("lift", ascending=False)["head"].iloc[0])
    found = []
    for heads in ([], [head]):
        with parser.without(heads=heads) if heads else contextlib.nullcontext():
            table = by_label(gold, [result.sentence for result in parser.parse_all(gold)])
        found.append(int(table.set_index("label").loc["S", "matched"]))
    return head, found[0] - found[1]


@exercise("09.2")
def check_head_of_s(answer):
    """Check the head with the highest lift for S, and how many right S the parser loses without it."""
    for given, truth, name in zip(pair(answer, "head, lost S"), without_the_head_of_s(), ("head", "number of lost S")):
        hint = "With at least 20 spans led, in our sample; and by_label counts the S of chains, too."
        compare(given, truth, f"the {name}", hint)


@exercise("11.1")
def check_missing_s(answer):
    """Check the number of missing S in our test part."""
    need_number(answer, "errors")
    errors = errors_of("en-news")
    missing = (errors["class"] == "missing") & (errors["gold_label"] == "S")
    compare(answer, int(missing.sum()), ANSWER, "Of the errors that concern S, only those of the class missing.")


@exercise("11.3")
def check_interval(answer):
    """Check a function of (a proportion, a number of spans) that returns the ends of a 95% interval: usual, or Wilson's."""
    need(callable(answer), f"{ANSWER} is a value of type {type(answer).__name__}.", "It must be a function.")
    for p, n in ((0.5, 100), (0.2, 64), (0.9, 400)):
        given = floats(call(answer, ANSWER, (p, n)), "the interval")
        need(given.shape == (2,), f"the interval has the shape {list(given.shape)}.", "Return two ends, (low, high).")
        need(given[0] < given[1], "the low end is not below the high one.", "Return (low, high).")
        half = np.sqrt(p * (1 - p) / n)
        wilson = stats.binomtest(round(p * n), n).proportion_ci(method="wilson")
        usual = [p + z * half * np.array([-1, 1]) for z in (1.96, 2)]
        case, width = f"for p = {p} and n = {n}", np.ptp(given) / half
        problem = (
            f"the interval {case} is too {'narrow' if width < 3.9 else 'wide' if width > 4.02 else 'far to one side'}."
        )
        right = any(np.allclose(given, one, rtol=0, atol=0.02 * half) for one in (*usual, np.array(wilson)))
        need(right, problem, "p plus and minus two standard errors; the error is the root of p (1 - p) / n.")


# ---------------------------------------------------------------- 13: what the heads mean


@exercise("13.1")
def check_phrases_left(answer):
    """Check how many VPs the parser finds as trained, and with the heads of VP and S at their means."""
    for given, truth, name in zip(pair(answer, "VPs before, VPs after"), verb_phrases(), ("first", "second")):
        compare(given, truth, f"the {name} number", "Count the VPs that the parser finds, in our test part.")


@cache
def verb_phrases() -> tuple[int, int]:
    """Return how many VPs the parser finds in our test part: as trained, and with the heads of VP and S at their means."""
    parser, gold = lalkit.load("en-news-span"), load("sample", "test").sentences
    mean = parser.attribution.mean(subset(load("sample", "train").sentences, 200))
    counts = []
    for block in (contextlib.nullcontext(), parser.patched({"spans.evidence": mean}, heads=["VP", "S"])):
        with block:
            spans = [span for result in parser.parse_all(gold) for span in result.sentence.constituents]
        counts.append(sum(span.label == "VP" for span in spans))
    return counts[0], counts[1]


@exercise("13.3")
def check_sinica(answer):
    """Check how many points of F1 the layer in halves loses with uniform attention on Sinica."""
    table = pd.read_csv(repository() / "figures/heads/chinese/table.csv", keep_default_na=False)
    f1 = table[(table["measure"] == "f1") & (table["system"] == "paper's layer")].astype({"value": float})
    means, hint = f1.groupby("what")["value"].mean(), "As trained less uniform, of the layer in halves."
    compare(answer, means["as trained"] - means["uniform attention"], ANSWER, hint)


# ---------------------------------------------------------------- 15: tables of runs


@exercise("15.1")
def check_differences(answer):
    """Check how large a difference must be to be significant: with two seeds of each cell, and with five."""
    for given, seeds, name in zip(pair(answer, "with two seeds, with five"), (2, 5), ("two", "five")):
        compare(given, given if isinstance(given, Real) else 0.0, f"the difference with {name} seeds")
        one = np.resize([90.0, 90.3], seeds)
        for d, right in ((given, True), (given - 0.05, False)):
            p = welch(one, one + float(d), margin=0.3).p if d else 1.0
            remedy = "Take 90.0 and 90.3 in turn as the scores of one cell, and the smallest d, to 0.05."
            need(
                (p < 0.05) == right, f"the difference with {name} seeds is too {'small' if right else 'large'}.", remedy
            )


@exercise("15.2")
def check_spread_of_seeds(answer):
    """Check how far the seeds of one cell lie apart in F1, at most."""
    runs = read_sweep(repository() / "figures/sweeps/ablation-1-longer.csv")
    compare(
        answer,
        runs.runs.groupby(runs.axes)["f1"].agg(np.ptp).max(),
        ANSWER,
        "Largest less smallest within each cell, then the largest of these.",
    )


@exercise("15.3")
def check_sweep_file(answer):
    """Check the file of a sweep: it can be read, has several cells, and a claim that two cells are the same."""
    need(isinstance(answer, (str, Path)) and answer, "there is no file.", "Give the path of your .yml file.")
    need(Path(answer).is_file(), "there is no such file.", "Give its path from the folder of the notebook.")
    planned = plan(answer)
    need(len(planned.runs) > 1, "it has one run only.", "Give the axis of the grid at least two values.")
    kinds = {kind for claim in planned.content.get("claims", []) for kind in ("better", "same") if claim.get(kind)}
    need(kinds == {"better", "same"}, "a claim is missing.", "Write one with better, and one with same.")


# ---------------------------------------------------------------- 17 to 19: classifiers, summarizers, all systems


@exercise("17.2")
def check_signed_conicity(answer):
    """Check a function of states [words, size] that returns the mean of their signed cosines with their mean."""
    cases = []
    for words, size in ((3, 2), (5, 4)):
        states = torch.randn(words, size, generator=torch.Generator().manual_seed(words), dtype=torch.float64)
        truth = conicity(states[None, None], torch.ones(1, words, dtype=torch.bool)).item()
        cases.append(((states.numpy(),), truth))
    compare_calls(answer, ANSWER, cases, "The cosine of each state with the mean of all, with its sign; then the mean.")


@exercise("17.3")
def check_supported(answer):
    """Check the name of the model that attends most to the facts of bAbI 1."""
    need(isinstance(answer, str), f"{ANSWER} is a value of type {type(answer).__name__}.", "Give the name as text.")
    runs = pd.read_csv(repository() / "figures/transparent.csv").query("study == 'main' and data == 'babi-1'")
    means, answer = runs.groupby("system")["supported"].mean(), answer.strip()
    need(answer in means.index, "there is no such model.", f"Choose from: {', '.join(means.index)}.")
    need(answer == means.idxmax(), "another model attends to them more.", "Take means over the seeds.")


@exercise("18.1")
def check_copying(answer):
    """Check the ROUGE-1 points that soft, seed 1, loses without the context of its copy head, and without its copying."""
    table = pd.read_csv(repository() / "figures/summarize-ablation.csv")
    table = table[
        (table["study"] == "main") & (table["variant"] == "soft") & (table["seed"] == 1) & table["price"].isna()
    ]
    lost = -100 * table.set_index("mode")["difference"]
    for given, mode in zip(pair(answer, "without context, without copying"), ("context", "copy")):
        hint = "Points of 100, before less after: what is lost is positive."
        compare(given, lost[mode], f"the loss without the {mode}", hint)


@exercise("18.4")
def check_kept(answer):
    """Check how many gates on label heads stay open at the price 3, by output and by context."""
    table = pd.read_csv(repository() / "figures/heads/gates/gates.csv").query("price == 3")
    kept, hint = table.groupby("closes")["kept"].mean(), "The column kept counts the open gates of one parser."
    for given, closes in zip(pair(answer, "outputs, contexts"), ("output", "contexts")):
        compare(given, kept[closes], f"the number of open gates ({closes})", hint)


@exercise("19.2")
def check_exhausted(answer):
    """Check the mean of erased_exhausted in the first layer of the encoder of sparse-tl."""
    table = pd.read_csv(repository() / "figures/systems.csv").query("system == 'summarizer, sparse-tl, enc.0'")
    compare(answer, table["erased_exhausted"].mean(), ANSWER, "The mean of the column, over the seeds of this one row.")


# ---------------------------------------------------------------- 21 to 23: other heads, and relations of labels


@exercise("21.3")
def check_pairs(answer):
    """Check five minimal pairs: sentences of the same length, in words and sub-words, that differ in one word."""
    need(isinstance(answer, (list, tuple)), "it must be a list of pairs.", "Give [(sentence, sentence), ...].")
    parser = lalkit.load("en-news")
    for number, texts in enumerate(answer, 1):
        first, second = pair(texts, "sentence, sentence")
        need(isinstance(first, str) and isinstance(second, str), f"pair {number} is no text.", "Write sentences.")
        one, other = first.split(), second.split()
        need(one and len(one) == len(other), f"the lengths in pair {number} differ.", "Count words, and the full stop.")
        differ = sum(a != b for a, b in zip(one, other))
        need(differ == 1, f"{differ} words differ in pair {number}.", "In a minimal pair, one word differs.")
        sizes = {
            parser.activations([Sentence(tuple(words))], "pretrained.0.output")[0]["pretrained.0.output"].shape
            for words in (one, other)
        }
        need(len(sizes) == 1, f"pair {number} has two numbers of sub-words.", "Take more frequent words.")
        parses = [parser.parse(" ".join(words), "tokens").sentence for words in (one, other)]
        decided = f"the parser draws the same tree twice in pair {number}, so no layer decides."
        need(
            len({(p.heads, p.constituents) for p in parses}) > 1,
            decided,
            "Exchange a word on which the attachment depends.",
        )
    need(len({*map(tuple, answer)}) == 5, "there are not five pairs.", "Write five different pairs.")


@exercise("22.1")
def check_chinese_clauses(answer):
    """Check the head that leads the most Chinese SBARs in our tables, and the percent of them."""
    table = pd.read_csv(repository() / "figures/across-languages.csv").query("spans == 'arcs'")
    row = table[(table["language"] == "Chinese") & (table["label"] == "SBAR")].iloc[0]
    leader, percent = pair(answer, "leader, percent")
    need(isinstance(leader, str), "the leader is no text.", "Write the label of the head in quotation marks.")
    number = isinstance(percent, (Real, np.generic)) and not isinstance(percent, (bool, np.bool_))
    need(number, "the percent is no number.", "Give it as the table has it.")
    leader = leader.strip()
    need(leader in {*table["label"], *table["leader"]}, "there is no such head.", "A head has the name of its label.")
    need(leader == row["leader"], "another head leads more of them.", "Read the row of Chinese, among those of SBAR.")
    remedy = "Look for the column that belongs to the leader."
    need(abs(percent) > 1, "this is a share, not a percent.", "Multiply it by 100.")
    need(abs(floats(percent, "the percent") - row["leader_share"]) < 0.51, "the percent is another one.", remedy)


@exercise("23.3")
def check_most_alike(answer):
    """Check the pair of labels whose profiles are most alike in the worst of the five parsers."""
    table = pd.read_csv(repository() / "figures/seeds/heads.csv", keep_default_na=False).query("norm == 'exact'")
    spans = table.groupby(["label", "model"])["spans"].max().unstack()
    table = table[table["label"].isin(spans.index[spans.min(axis=1, skipna=False) >= 20])]
    profiles = [part.pivot_table("share", "label", "head", fill_value=0) for _, part in table.groupby("model")]
    least = np.minimum.reduce([np.corrcoef(profile) for profile in profiles])
    place = np.unravel_index(np.where(np.eye(len(least)), -2, least).argmax(), least.shape)
    labels = profiles[0].index
    given = pair(answer, "label, label")
    need(all(isinstance(label, str) for label in given), "a label is no text.", "Write both labels in quotation marks.")
    need({*given} <= {*labels}, "there is no such label.", "Take labels with at least 20 spans.")
    need({*given} == {*labels[[*place]]}, "another pair is more alike.", "Take the smallest of the five values.")


# ---------------------------------------------------------------- 20, 21b, 24, 25: the layer, probes, and what measures say


@exercise("20.3")
def check_uniform_rows(answer):
    """Check a function of (attention [B, heads, N, N], mask [B, N]) that returns uniform attention of the same shape."""
    cases = []
    for sizes in ((4, 2), (5, 1, 3)):
        mask = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
        shape = (len(sizes), 2, max(sizes), max(sizes))
        attention = (torch.ones(shape) * torch.arange(1.0, max(sizes) + 1)).masked_fill(~mask[:, None, None], 0)
        truth = (mask / mask.sum(1, keepdim=True))[:, None, None].expand(shape)
        cases.append(((attention / attention.sum(-1, keepdim=True), mask), truth))
    compare_calls(
        answer, ANSWER, cases, "Each row: one over the number of words, and 0 behind the end of the sentence."
    )


@exercise("21b.2")
def check_sides(answer):
    """Check a function of a Sentence that returns, for each word, whether its head is on its right."""
    need(callable(answer), f"{ANSWER} is a value of type {type(answer).__name__}.", "It must be a function.")
    for sentence in load("sample", "dev").sentences[:12]:
        truth = np.array([head > i for i, head in enumerate(sentence.heads, 1)], dtype=float)
        given = call(answer, ANSWER, (sentence,))
        given = floats(list(given) if isinstance(given, (list, tuple, map)) else given, "what it returns")
        compare(given, truth, "what your answer returns", "Words count from 1. The root, 0, is on no word's right.")


@exercise("24.1")
def check_most_different(answer):
    """Check the word of example 26 where the truths of logit and contrast differ most."""
    words, word = most_different()
    need(isinstance(answer, str), f"{ANSWER} is a value of type {type(answer).__name__}.", "Give the word as text.")
    need(answer.strip() in words, "this word is not in the constituent.", "Set example=26; it has ten words.")
    need(answer.strip() == word, "another word has a larger difference.", "Subtract the columns, and forget the sign.")


@cache
def most_different() -> tuple[tuple[str, ...], str]:
    """Return the words of the SBAR of example 26, and that with the largest term of the second label."""
    parser, sentence = lalkit.load("en-news-glass"), load("sample", "test").sentences[26]
    vectors, _ = parser.vectors([sentence], at="word")
    layer = parser.network.spans.double()
    whole = next(span for span in sentence.constituents if span.label == "SBAR")
    x = torch.tensor(vectors)[whole.start : whole.end].double()
    with torch.no_grad():
        scores = layer(x[None], spans=torch.tensor([[0, 0, len(x)]]))[0, FIRST_REAL:]
        second = int(scores.topk(2).indices[1]) + FIRST_REAL - 1  # label 0, the empty one, has no term
        around = torch.nn.functional.pad(x[None], (0, 0, 1, 1))
        logits, evidence, first, last = (part[0, :, second] for part in layer.project(around, around[:, :, None]))
        terms = torch.softmax(logits, 0) * evidence
        terms[0] += first[0]
        terms[-1] += last[-1] - layer.boundary.last.bias[second]
    words = sentence.words[whole.start : whole.end]
    return words, words[int(terms.abs().argmax())]


@exercise("25.2")
def check_useless_heads(answer):
    """Check what useless numbers do to the AUC in our table, and the name of a judge that has such numbers."""
    table = pd.read_csv(repository() / "figures/heads-know.csv").query("measure == 'AUC'")
    means = table.groupby("of")["value"].mean()
    change, judge = pair(answer, "change, judge")
    need(all(isinstance(part, str) for part in (change, judge)), "a part is no text.", 'Write both, such as "same".')
    need(judge.strip() in means.index, "there is no such judge.", "Copy its name from the table.")
    useless = [name for name in means.index if name.startswith("counted + ") and name != "counted + heads"]
    need(
        judge.strip() in useless, "this judge has no useless numbers.", "Which judge has numbers of other constituents?"
    )
    truth = "smaller" if means[useless].max() < means["counted"] else "larger"
    need(
        change.strip() in ("same", "smaller", "larger"), "the change is another word.", "Write same, smaller or larger."
    )
    need(change.strip() == truth, "the AUC does something else.", "What does a judge learn from noise on dev?")
