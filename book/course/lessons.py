"""Check answers to the exercises that end the lessons in notebooks/, without giving them away: `check("02.3", answer)`.

It is the mechanism of the graded exercises (checks.py) without points: one line, no error, and no answer. The right answers are
computed by lalkit, with the defaults of the lesson, and stand nowhere as numbers. Where an exercise has many right answers (a
parse, scores, a query), the check tries out what was asked for.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import torch
from checks import ANSWER, GOLD, LABELS, WORDS, _best_sum, _margin, call, compare, floats, need, need_kind, pair, report
from scipy import stats

import lalkit
from lalkit.chart import cky_batch, decode, marginals
from lalkit.chart.cky import FIRST_REAL
from lalkit.chart.loss import span_likelihood_loss, span_margin_loss
from lalkit.config import LabelAttentionConfig
from lalkit.evaluation import by_label, welch
from lalkit.evaluation.scores import evaluate
from lalkit.interpret import top_shares
from lalkit.probes import AttentionView, conicity, erasure_flip, linear_view
from lalkit.reproduce.sweep import plan
from lalkit.treebank import GROUP, Sentence, parse_tree, to_joint, tree_to_sentence
from lalkit.treebank.corpora import load, repository, subset

Judge = Callable[[Any], None]
EXERCISES: dict[str, Judge] = {}  # number of an exercise -> the function that raises Mistake for a wrong answer


def check(number: str, answer: Any) -> None:
    """Print one line about the answer to an exercise. number: of the lesson and the exercise, for example "02.3"."""
    if number in EXERCISES:
        report(number, lambda: EXERCISES[number](answer))
    else:
        print(f"Not yet: there is no check of {number!r}. There are: {', '.join(EXERCISES)}.")


def exercise(number: str, hint: str = "", *names: str, of: str = "") -> Callable[[Callable], Callable]:
    """Register the check of an exercise: a function that returns the truth, or (without a hint) one that judges an answer.

    Args:
        number: of the lesson and the exercise.
        hint: what to look at if the answer is wrong.
        names: of the parts of the answer, if it has two.
        of: the things that are counted, if the answer is a whole number.
    """

    def register(function: Callable) -> Callable:
        def judge(answer: Any) -> None:
            truth = function()
            if of:
                need_number(answer, of)
            compare(answer, dict(zip(names, truth)) if names else truth, ANSWER, hint)

        EXERCISES[number] = judge if hint else function
        return function

    return register


def need_number(answer: Any, of: str) -> None:
    """Raise Mistake unless an answer is a whole number of some things."""
    remedy = f"It must be a number of {of}."
    need_kind(answer, (Real, np.generic), remedy)
    need(answer == answer // 1, f"{answer} is not a whole number.", remedy)


def need_one_of(
    answer: Any, names: Sequence[str], truth: Any, wrong: str, hint: str, unknown: str, choose: str
) -> None:
    """Raise Mistake unless an answer is a text, one of some names, and the right one."""
    need_kind(answer, str, "Give it as text, in quotation marks.")
    need(answer.strip() in names, unknown, choose)
    need(answer.strip() == truth, wrong, hint)


def need_sentence(answer: Any, words: tuple[str, ...]) -> None:
    """Raise Mistake unless an answer is a Sentence with these words, constituents and heads."""
    need_kind(answer, Sentence, "It must be a Sentence.")
    need(answer.words == words, "the Sentence has other words.", "Keep the words of the exercise, in their order.")
    need(answer.constituents and answer.heads, "a layer is missing.", "Give the Sentence constituents and heads.")


# ---------------------------------------------------------------- 01: the primer


@exercise("01.1")
def check_old_people(answer):
    """Check the brackets of "The old fed the ducks"."""
    need_kind(answer, str, "It must be text with brackets.")
    found = tree_to_sentence(parse_tree(answer))
    need(found.words == tuple("The old fed the ducks".split()), "the words differ.", "Five words, in their order.")
    remedy = "There are four boxes. Draw them, and replace each box by one word."
    boxes = {(0, 5, "S"), (0, 2, "NP"), (2, 5, "VP"), (3, 5, "NP")}
    need({*map(tuple, found.constituents)} == boxes, "the boxes differ.", remedy)
    need(found.tags[1].startswith("NN"), "the tag of a word has not changed.", "What is the word class of *old* now?")


@exercise("01.2")
def check_two_readings(answer):
    """Check two joint trees of "Time flies like an arrow". The heads are those of UD, or of the preposition in a PP."""
    both, words = {(0, 5, "S"), (3, 5, "NP")}, tuple("Time flies like an arrow".split())
    wanted = (
        ("first", both | {(1, 5, "VP"), (2, 5, "PP")}, {(2, 0, 5, 5, 2), (2, 0, 2, 5, 3)}),
        ("second", both | {(0, 2, "NP"), (2, 5, "VP")}, {(2, 3, 0, 5, 3)}),
    )
    for reading, (which, boxes, trees) in zip(pair(answer, "first reading", "second reading"), wanted):
        need_sentence(reading, words)
        to_joint(reading)
        given = {tuple(span) for span in reading.constituents}
        for wrong, what in ((boxes - given, "is missing"), (given - boxes - {(0, 1, "NP")}, "does not belong")):
            for start, end, label in sorted(wrong)[:1]:
                box = f"the box {label}({start}, {end}) {what} in the {which} reading."
                need(False, box, "Which group can be replaced by one word, and what is it called?")
        arcs = min(([k for k in range(5) if reading.heads[k] != heads[k]] for heads in trees), key=len)
        problem = f"{', '.join(words[k] for k in arcs)}: another head in the {which} reading."
        need(not arcs, problem, "Which word is the verb, and what hangs on it?")


@exercise("01.3")
def check_queries(answer):
    """Check a query with most weight on "fed", and one with nearly equal weights."""
    both = []
    for query in pair(answer, "first query", "second query"):
        query = floats(query, "a query")
        compare(query, np.resize(query, 2) if query.size else np.zeros(2), "a query")
        weights = np.exp(np.array([[3.0, 0], [0, 3], [2, 1]]) @ query)  # man, fed, ducks
        both.append(weights / weights.sum())
    fed, apart = both[0][1], np.ptp(both[1])
    need(fed > 0.9, f"the first query gives *fed* the weight {fed:.2f}.", "Ask for an action, and louder.")
    need(apart < 0.05, f"the second query's weights differ by {apart:.2f}.", "Make comparisons alike.")


# ---------------------------------------------------------------- 00, 02: parses and spans


@exercise("00.1")
def check_attachments(answer):
    """Check the words on which the phrases with "with" hang in two sentences, as the default parser finds them."""
    texts = ("I saw the man with the telescope", "I ate the pizza with the fork")
    for word, text in zip(pair(answer, "head word", "head word"), texts):
        need(isinstance(word, str), "a head word is not text.", "Write each head word in quotation marks.")
        sentence = lalkit.load().parse(text).sentence
        found = sentence.words[sentence.heads[-1] - 1].lower()
        elsewhere = f"the phrase hangs elsewhere in {text!r}."
        need(word.strip().lower() == found, elsewhere, "Look up the head of the phrase's noun.")


@exercise("00.3")
def check_alone(answer):
    """Check the trees of the sentences of dev, parsed one by one."""
    gold = load("sample", "dev").sentences
    need_kind(answer, (list, tuple), "It must be a list of trees.")
    need(len(answer) == len(gold), f"there are {len(answer)} trees for {len(gold)} sentences.", "Parse all of gold.")
    texts = [["".join(str(tree).split()) for tree in trees] for trees in (answer, lalkit.load().parse_all(gold))]
    equal = sum(one == other for one, other in zip(*texts))
    said = f"{equal} of {len(gold)} trees are those of parse_all."
    need(equal == len(gold), said, "Give results or result.to_ptb().")


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
        return int(lalkit.compare(before, parser.parse_all(gold)).differs.sum())


@exercise("00.4", "Count the rows whose head_label is not SBAR.", of="clauses")
def other_heads():
    """Return the number of clauses whose top head belongs to another label."""
    return int((clauses()["head_label"] != "SBAR").sum())


@cache
def clauses() -> pd.DataFrame:
    """Return the SBARs of our test part with their top heads."""
    return lalkit.load("en-news-glass").explain(lalkit.Treebank.load("sample", "test")).of("SBAR").top()


@cache
def errors_of(name: str) -> pd.DataFrame:
    """Return the errors of a parser in our test part."""
    return lalkit.load(name).errors(lalkit.Treebank.load("sample", "test"))


@exercise("00.5", "Compare with the parses of the whole parser, sentence by sentence.", of="sentences")
def one_head():
    """Return the number of sentences that get another tree with one head."""
    return changed_trees("one head")


@exercise("00.6")
def check_nested(answer):
    """Check the numbers of sentences with another tree: the outer block alone, the inner one alone, both."""
    three = isinstance(answer, (list, tuple)) and len(answer) == 3
    need(three, "it must be three numbers.", "Give (outer, inner, both).")
    blocks = {"the outer block alone": ["outer"], "the inner block alone": ["inner"], "both blocks": ["outer", "inner"]}
    for given, (name, inside) in zip(answer, blocks.items()):
        need_number(given, "sentences")
        hint = "Compare each run with the parser without blocks."
        compare(given, changed_trees(*inside), f"the number for {name}", hint)


@exercise("00.7", 'Filter by the column head_word, exactly "of".', of="errors")
def errors_of_of():
    """Return the number of errors with the head word "of"."""
    return int((errors_of("en-news")["head_word"] == "of").sum())


POOL = Sentence(
    ("the", "very", "old", "swimming", "pool"), ("DT", "RB", "JJ", "NN", "NN"), ((0, 5, "NP"),), (5, 3, 5, 5, 0)
)
LISTS = "the list of groups after the first change", "the list of groups after the second change"


@exercise("02.1", "A group is a head with all its dependents.", *LISTS)
def groups():
    """Return the places of the groups after two changes of heads."""
    trees = (to_joint(replace(POOL, heads=heads)) for heads in ((5, 5, 5, 5, 0), (3, 3, 5, 5, 0)))
    return [{(span.start, span.end) for span in tree if span.label == GROUP} for tree in trees]


@exercise("02.2")
def check_chain(answer):
    """Check the labels of a unary chain of our treebank, the outer one first."""
    sentences = [s for part in ("train", "dev", "test") for s in load("sample", part).sentences]
    chains = {tuple(span.label.split("::")) for s in sentences for span in s.constituents if "::" in span.label}
    answer = tuple(answer.split("::")) if isinstance(answer, str) and "::" in answer else answer
    labels = isinstance(answer, (tuple, list)) and all(isinstance(x, str) for x in answer)
    need(labels, "it must be labels.", "Give (outer, inner).")
    remedy = "Read the label from left to right: the outer one is first."
    need(tuple(answer) in chains, "our treebank has no such chain.", remedy)


BIRDS = Sentence(
    ("We", "watched", "birds", "with", "binoculars", "."),
    ("PRP", "VBD", "NNS", "IN", "NNS", "."),
    ((0, 6, "S"), (0, 1, "NP"), (1, 5, "VP"), (2, 3, "NP"), (3, 5, "PP"), (4, 5, "NP")),
    (2, 0, 2, 5, 2, 2),
    ("nsubj", "root", "obj", "case", "obl", "punct"),
)
CALLS = "the number of the first call", "the number of the second call"


@exercise("02.3", "Read skipped in the summary of both calls.", *CALLS)
def skipped():
    """Return the numbers of skipped sentences: with the tags of gold, and with the tags of the parse."""
    parse = replace(BIRDS, tags=(*BIRDS.tags[:5], "NN"))
    return [evaluate([BIRDS], [parse], retag=retag).summary()["skipped"] for retag in (True, False)]


@exercise("02.4")
def check_two_parses(answer):
    """Check a parse with the right heads and a low F1, and one with an F1 of 100 and a wrong head."""
    order = (("first", "uas", "f1"), ("second", "f1", "uas"))
    for parse, (which, high, low) in zip(pair(answer, "first parse", "second parse"), order):
        need_sentence(parse, BIRDS.words)
        found = evaluate([BIRDS], [parse]).summary()
        problem = f"the {which} parse has the {high.upper()} {found[high]:.1f}, not 100."
        need(found[high] == 100, problem, "Change one layer only, and keep the other.")
        problem = f"the {which} parse has the {low.upper()} 100, too."
        need(found[low] < 100, problem, "Which layer should be wrong in this parse?")


# ---------------------------------------------------------------- 03: scores

COOK = "The cook tasted the soup"


@exercise("03.2", "Set the weights of the positions to 0, and take (start, end, label) of the tree that is found then.")
@cache
def without_waves() -> set[tuple[int, int, str]]:
    """Return the constituents that the parser finds without positions."""
    parser = lalkit.load("en-news-span")
    with torch.no_grad():
        parser.network.encoder.position.weight.zero_()
    return {tuple(span) for span in parser.parse(COOK).sentence.constituents}


@exercise("03.3", "The score with equal weights minus the score, in this order.")
@cache
def change_by_equal_weights() -> float:
    """Return by how much the score of NP for the whole sentence changes with equal weights."""
    parser = lalkit.load("en-news-span")
    batch = parser.model.collator([Sentence(tuple(COOK.split()))])
    network, place = parser.network.eval(), (0, 0, 5, parser.vocab.label_index["NP"])
    with torch.no_grad():
        before = network(batch).label_scores[place].item()
        with network.spans.hooked(logits=lambda logits, lengths: torch.zeros_like(logits)):
            return network(batch).label_scores[place].item() - before


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
        counts = (layer.eval()(x[None], torch.ones(1, 7, dtype=torch.bool))[1][0] > 0).sum(1)
    answer = floats(answer) if isinstance(answer, (list, tuple)) else answer
    compare(answer, counts, ANSWER, "Count the weights above 0 in each row of attention, with the words of the lesson.")


@exercise("04.3", "In which places of the batch does head h find query h?")
def own_queries():
    """A function of (heads, batch size) returns whether every head has its own query in every sentence."""
    cases = []
    for heads, size in itertools.product((5, 6, 7), range(1, 10)):
        queries = torch.arange(heads).repeat(size).view(heads, size)  # [k, place]: laid out sentence by sentence
        cases.append(((heads, size), bool((queries == torch.arange(heads)[:, None]).all())))
    return cases


# ---------------------------------------------------------------- 05: decoding

ARCS = np.array([[1, 0, 6, 1, 2], [3, 1, 0, 5, 2], [4, 0, 5, 0, 3], [2, 0, 6, 4, 0]], dtype=float)  # dependent by head


@exercise("05.1")
def check_greedy_splits(answer):
    """Check scores [5, 5] for which splitting greedily from the top does not find the best tree."""
    need(isinstance(answer, (np.ndarray, list)), "it must be an array [5, 5].", "best[i, j]: span i to j.")
    answer = floats(answer)
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
    need_kind(answer, Callable, "It must be a function.")
    trees = [[math.comb(2 * n - 2, n - 1) // n, math.comb(3 * n - 2, n - 1) // n] for n in range(1, 10)]
    cases = [((n,), np.array(numbers)) for n, numbers in enumerate(trees, 1)]
    hint = "First the binary trees, then the projective ones; one word has one of each."
    compare(lambda n: np.array(answer(n)), cases, ANSWER, hint)


@exercise("05.3")
def check_changed_scores(answer):
    """Check scores of labels and of arcs, at most two of them changed, with another best tree of heads."""
    labels, arcs = pair(answer, "label_scores", "arc_scores")
    first = scores_of({(1, 4, "S"): 1, (0, 2, "NP"): 4, (2, 4, "VP"): 4})
    for given, before in ((labels, first), (arcs, ARCS)):
        need(isinstance(given, np.ndarray), "scores must be arrays.", "Change copies of label_scores and arc_scores.")
        need(given.shape == before.shape, "the scores have another shape.", "Change copies of the lesson's arrays.")
    spans, others = np.triu_indices(len(WORDS) + 1, 1), ~np.eye(*ARCS.shape, 1, dtype=bool)  # what the decoder reads
    changed = (labels[spans] != first[spans]).sum() + (arcs != ARCS)[others].sum()
    need(changed <= 2, f"{changed} scores differ from those of the lesson.", "Two changes are enough.")
    need((labels[..., 0] == 0).all(), "the empty label must score 0.", "Change another score.")
    noise, wanted = np.random.default_rng(0).normal(0, 1e-6, (8, *arcs.shape)), (2, 0, 2, 3)
    found = {tuple(decode(labels, arcs + small, 0.5).heads.tolist()) for small in noise}
    need(wanted in found, "the best joint tree has other heads.", "Compare your tree with the first rows of the table.")
    need(found == {wanted}, "another tree has as many points.", "Which tree is it, and what does only yours have?")


# ---------------------------------------------------------------- 06: learning


def scores_of(liked: dict[tuple[int, int, str], float]) -> np.ndarray:
    """Return the scores [5, 5, 5] that notebooks 05 and 06 begin with, and some others."""
    chart = np.full((len(WORDS) + 1, len(WORDS) + 1, len(LABELS)), -2.0)
    chart[:, :, 0] = 0
    for (i, j, label), value in {(0, 4, "S"): 3, (1, 3, "S"): 5, (3, 4, "NP"): 2, **liked}.items():
        chart[i, j, LABELS.index(label)] = value
    return chart


WRONG_TREE = {(1, 4, "S"): 3, (0, 2, "NP"): 3, (2, 4, "VP"): 3}
GRADIENTS = "the gradient of the margin", "the gradient of the likelihood"


def gradient_of(loss: Callable[..., torch.Tensor], chart: np.ndarray) -> np.ndarray:
    """Return the gradient of a loss at a chart; 0 for the empty label."""
    return _margin(chart, loss)[1]


@exercise("06.1", "Only women drive (S) has another score; the empty label keeps 0.", *GRADIENTS)
def two_gradients():
    """Return the gradients of both losses after one score was raised."""
    chart = scores_of(WRONG_TREE | {(1, 3, "S"): 20})
    return gradient_of(span_margin_loss, chart), gradient_of(span_likelihood_loss, chart)


@exercise("06.2", "How many constituents move, and by how much does the loss fall at each step?")
def perceptron_step():
    """Return the step at which the perceptron's loss reaches 0."""
    chart = scores_of(WRONG_TREE)
    (parse,) = cky_batch([chart], threads=1)
    apart = len({*parse.spans} ^ {*GOLD})  # constituents that only one of the trees has: each moves by a step
    return (parse.score - sum(chart[span] for span in GOLD)) / apart


@exercise("06.3")
def check_contradiction(answer):
    """Check the (first word, last word, label) of which two gold trees want opposite scores."""
    sentences = [(WORDS, GOLD), ("Young women drivers sing".split(), [(0, 4, 2), (0, 3, 3), (3, 4, 4)])]
    asked = [{(words[i], words[j - 1], LABELS[k]) for i, j, k in gold} for words, gold in sentences]
    pairs = [{(words[i], words[j - 1]) for i, j in itertools.combinations(range(5), 2)} for words, _ in sentences]
    opposite = {item for one in (0, 1) for item in asked[one] - asked[1 - one] if item[:2] in pairs[1 - one]}
    three = isinstance(answer, (tuple, list)) and len(answer) == 3 and all(isinstance(part, str) for part in answer)
    need(three, "it must be a tuple of three texts.", "Give (first word, last word, label).")
    right = tuple(part.strip() for part in answer) in opposite
    need(right, "these weights can satisfy all trees there.", "Which words begin and end a span in both?")


# ---------------------------------------------------------------- 07: training


@exercise("07.1")
def check_twice(answer):
    """Check a function of some scores that returns twice their standard deviation, of a sample or of a population."""
    need_kind(answer, Callable, "It must be a function.")
    for scores in ([63.5, 61.0, 62.2], [50.0, 50.0, 53.0, 58.5]):
        given, truths = call(answer, ANSWER, (scores,)), [2 * np.std(scores, ddof=ddof) for ddof in (1, 0)]
        near = [isinstance(given, Real) and abs(given - x) <= 0.005 for x in (*truths, *(x / 2 for x in truths))]
        need(not any(near[2:]), "this is the standard deviation once.", "The exercise asks for twice as much.")
        hint = "The root of the mean squared distance from the mean, times 2."
        compare(given, truths[1] if near[1] else truths[0], "what your answer returns", hint)


# ---------------------------------------------------------------- 09, 10: heads and errors


@exercise(
    "09.2", "With at least 20 spans led, in our sample; and by_label counts the S of chains, too.",
    "the head", "the number of lost S",
)  # fmt: skip
@cache
def without_the_head_of_s() -> tuple[int, int]:
    """Return the head with the highest lift for S in our test part, and how many S the parser finds less without it."""
    parser, gold = lalkit.load("en-news"), load("sample", "test").sentences
    exact = top_shares(parser.explain(gold).heads(), "exact", ["S"])
    head = int(exact[exact["led"] >= 20].sort_values("lift", ascending=False)["head"].iloc[0])
    found = []
    for block in (contextlib.nullcontext(), parser.without(heads=[head])):
        with block:
            table = by_label(gold, [result.sentence for result in parser.parse_all(gold)])
        found.append(int(table.set_index("label").loc["S", "matched"]))
    return head, found[0] - found[1]


@exercise("10.1", "Of the errors that concern S, only those of the class missing.", of="errors")
def missing_s():
    """Return the number of missing S in our test part."""
    return len(errors_of("en-news").query("`class` == 'missing' and gold_label == 'S'"))


@exercise("10.3")
def check_interval(answer):
    """Check a function of (a proportion, a number of spans) that returns the ends of a 95% interval: usual, or Wilson's."""
    need_kind(answer, Callable, "It must be a function.")
    for p, n in ((0.5, 100), (0.2, 64), (0.9, 400)):
        given = floats(call(answer, ANSWER, (p, n)), "the interval")
        need(given.shape == (2,), f"the interval has the shape {list(given.shape)}.", "Return two ends, (low, high).")
        need(given[0] < given[1], "the low end is not below the high one.", "Return (low, high).")
        half = np.sqrt(p * (1 - p) / n)
        wilson = np.array(stats.binomtest(round(p * n), n).proportion_ci(method="wilson"))
        right = [wilson, *(p + z * half * np.array([-1, 1]) for z in (1.96, 2))]
        width = np.ptp(given) / half
        what = "narrow" if width < 3.9 else "wide" if width > 4.02 else "far to one side"
        near = any(np.allclose(given, one, rtol=0, atol=0.02 * half) for one in right)
        remedy = "p plus and minus two standard errors; the error is the root of p (1 - p) / n."
        need(near, f"the interval for p = {p} and n = {n} is too {what}.", remedy)


# ---------------------------------------------------------------- 13, 14: probabilities


@cache
def reader() -> lalkit.Parser:
    """Return the parser of notebook 13."""
    return lalkit.load("en")


def prefix(words: Sequence[str]) -> tuple[np.ndarray, float]:
    """Return the probabilities of all arcs of some words, and log Z."""
    readings = reader().readings(Sentence(tuple(words)))
    return readings.arc_probabilities, readings.log_partition


@exercise("13.1")
def check_garden_path(answer):
    """Check a garden path and its control, with the ambiguous and the disambiguating word."""
    four = isinstance(answer, (tuple, list)) and len(answer) == 4 and all(isinstance(part, str) for part in answer)
    need(four, "it must be four texts.", "Give (sentence, control, ambiguous, disambiguating).")
    path, control, *two = (part.split() for part in answer)
    for words, name in ((path, "the sentence"), (control, "the control")):
        once = all(len(word) == 1 and words.count(word[0]) == 1 for word in two)
        need(once, f"one of the two words does not stand once in {name}.", "Copy them as they are written there.")
    ambiguous, last = (word[0] for word in two)
    later = 0 <= path.index(ambiguous) < path.index(last)
    need(later, "the ambiguous word must come first.", "Give (sentence, control, ambiguous, disambiguating).")
    table = pd.read_csv(repository() / "data/sample/garden-paths.csv")
    need(answer[0] not in {*table["sentence"]}, "this is a sentence of the lesson.", "Write one of your own.")
    (before, low), (after, high) = (prefix(path[: path.index(last) + more]) for more in (0, 1))
    one, two = (arcs[path.index(ambiguous), before[path.index(ambiguous)].argmax()] for arcs in (before, after))
    need(one > 0.8, f"before that word the early reading has only {one:.2f}.", "Make the first reading easier.")
    need(two < 0.5, f"after that word the early reading still has {two:.2f}.", "Take a word that rules it out.")
    rise = np.diff([prefix(control[: control.index(last) + more])[1] for more in (0, 1)])[0]
    need(high - low < rise, "log Z rises less in the control.", "Does the control take the ambiguity away?")


@exercise("13.2", "The head with the largest effect, forward or backward; both numbers count from 0.", "layer", "head")
@cache
def tracing() -> tuple[int, int]:
    """Return the layer and the head of MiniLM that carry most from "rested" to "hunted"."""
    hunted, rested = (f"While the man {verb} the deer ran".split() for verb in ("hunted", "rested"))
    points = [f"pretrained.{layer}.contexts" for layer in range(6)]
    saved, effects = reader().activations([rested], points)[0], {}
    for (layer, point), head in itertools.product(enumerate(points), range(12)):
        with reader().patched({point: saved[point]}, heads=[head]):
            arcs, _ = prefix(hunted)
        effects[layer, head] = np.log(arcs[5, 7] / arcs[5, 4])
    usual = np.log(np.divide(*prefix(hunted)[0][5, [7, 4]]))
    return max(effects, key=lambda place: abs(effects[place] - usual))


LABELLED = "the number of trees with three labels", "the number of trees with four labels"


@exercise("14.2", "Each word has a head, and each of the spans a label or none.", *LABELLED)
def numbers_of_trees():
    """Return how many joint trees three words have, with three labels and with four."""
    equal = (marginals(np.zeros((4, 4, FIRST_REAL + labels)), np.zeros((3, 4)), 0.5) for labels in (3, 4))
    return [round(math.exp(all_trees.log_partition)) for all_trees in equal]  # every tree weighs the same


@exercise("14.3")
def check_useless_heads(answer):
    """Check what useless numbers do to the AUC in our table, and the name of a judge that has such numbers."""
    means = pd.read_csv(repository() / "figures/heads-know.csv").query("measure == 'AUC'").groupby("of")["value"].mean()
    change, judge = pair(answer, "change", "judge")
    need(all(isinstance(part, str) for part in (change, judge)), "a part is not text.", 'Write both, such as "same".')
    need(judge.strip() in means.index, "there is no such judge.", "Copy its name from the table.")
    useless = [name for name in means.index if name.startswith("counted + ") and name != "counted + heads"]
    remedy = "Which judge has numbers of other constituents?"
    need(judge.strip() in useless, "this judge has no useless numbers.", remedy)
    truth = "smaller" if means[useless].max() < means["counted"] else "larger"
    wrong = "the AUC does something else.", "What does a judge learn from noise on dev?"
    words = "the change is another word.", "Write same, smaller or larger."
    need_one_of(change, ("same", "smaller", "larger"), truth, *wrong, *words)


# ---------------------------------------------------------------- 11: the meaning of heads


@exercise("11.1", "Count the VPs that the parser finds, in our test part.", "the first number", "the second number")
@cache
def verb_phrases() -> tuple[int, ...]:
    """Return how many VPs the parser finds in our test part: as trained, and with the heads of VP and S at their means."""
    parser, gold = lalkit.load("en-news-span"), load("sample", "test").sentences
    mean = parser.attribution.mean(subset(load("sample", "train").sentences, 200))
    counts = []
    for block in (contextlib.nullcontext(), parser.patched({"spans.evidence": mean}, heads=["VP", "S"])):
        with block:
            spans = [span for result in parser.parse_all(gold) for span in result.sentence.constituents]
        counts.append(sum(span.label == "VP" for span in spans))
    return tuple(counts)


@exercise("11.3", "As trained less uniform, of the layer in halves.")
def sinica():
    """Return how many points of F1 the layer in halves loses with uniform attention on Sinica."""
    table = pd.read_csv(repository() / "figures/heads/chinese/table.csv", keep_default_na=False)
    f1 = table[(table["measure"] == "f1") & (table["system"] == "paper's layer")].astype({"value": float})
    means = f1.groupby("what")["value"].mean()
    return means["as trained"] - means["uniform attention"]


# ---------------------------------------------------------------- 15: tables of runs


@exercise("15.1")
def check_differences(answer):
    """Check how large a difference must be to be significant: with two seeds of each cell, and with five."""
    remedy = "Take 90.0 and 90.3 in turn as the scores of one cell, and the smallest d, to 0.05."
    for given, seeds, name in zip(pair(answer, "with two seeds", "with five"), (2, 5), ("two", "five")):
        what = f"the difference with {name} seeds"
        compare(given, given if isinstance(given, Real) else 0.0, what)
        one = np.resize([90.0, 90.3], seeds)
        for d, right in ((given, True), (given - 0.05, False)):
            p = welch(one, one + float(d), margin=0.3).p if d else 1.0
            need((p < 0.05) == right, f"{what} is too {'small' if right else 'large'}.", remedy)


@exercise("15.2")
def check_coin(answer):
    """Check how often a coin shows heads at least 161 times in 300 throws."""
    one, two = (stats.binomtest(161, 300, alternative=side).pvalue for side in ("greater", "two-sided"))
    both = isinstance(answer, (float, np.floating)) and abs(answer - two) <= 5e-4
    need(not both, "this counts both sides.", "Ask for 161 heads or more, not for 139 or fewer.")
    compare(answer, one, ANSWER, "At least 161: 161 counts, too.")


@exercise("15.3")
def check_sweep_file(answer):
    """Check the file of a sweep: it can be read, has several cells, and a claim that two cells are the same."""
    need(isinstance(answer, (str, Path)) and answer, "there is no file.", "Give the path of your .yml file.")
    need(Path(answer).is_file(), "there is no such file.", "Give its path from the folder of the notebook.")
    planned = plan(answer)
    need(len(planned.runs) > 1, "it has one run only.", "Give the axis of the grid at least two values.")
    kinds = {kind for claim in planned.content.get("claims", []) for kind in ("better", "same") if claim.get(kind)}
    need(kinds == {"better", "same"}, "a claim is missing.", "Write one with better, and one with same.")


# ---------------------------------------------------------------- 16 to 18: classifiers, summarizers, all systems


@exercise("16.2", "The cosine of each state with the mean of all, with its sign; then the mean.")
def signed_conicity():
    """A function of states [words, size] returns the mean of their signed cosines with their mean."""
    cases = []
    for words, size in ((3, 2), (5, 4)):
        states = torch.randn(words, size, generator=torch.Generator().manual_seed(words), dtype=torch.float64)
        truth = conicity(states[None, None], torch.ones(1, words, dtype=torch.bool)).item()
        cases.append(((states.numpy(),), truth))
    return cases


@exercise("16.3")
def check_supported(answer):
    """Check the name of the model that attends most to the facts of bAbI 1."""
    runs = pd.read_csv(repository() / "figures/transparent.csv").query("study == 'main' and data == 'babi-1'")
    means = runs.groupby("system")["supported"].mean()
    wrong = "another model attends more to the facts.", "Take means over the seeds."
    need_one_of(
        answer,
        means.index,
        means.idxmax(),
        *wrong,
        "there is no such model.",
        f"Choose from: {', '.join(means.index)}.",
    )


def three_words(answer: Any) -> AttentionView:
    """Return the system of notebook 16 with three words, +1, +1 and -1, and these weights."""
    weights = floats(answer)
    need(weights.shape == (3,), "there are not three weights.", "Give one weight for each word: (a, b, c).")
    shares = (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6
    need(shares, "these are not weights.", "They must be 0 or more, with the sum 1.")
    values, read = torch.tensor([1.0, 1, -1]).double()[None, None, :, None], torch.tensor([[1.0, 0.0]]).double()
    return linear_view(torch.tensor(weights)[None, None, None], values, read)


@exercise("16.4")
def check_erasures(answer):
    """Check weights whose order is the fastest way to change the decision, and weights whose order is not."""
    for weights, fast in zip(pair(answer, "weights", "weights"), (True, False)):
        view, which = three_words(weights), "first" if fast else "second"
        orders = [torch.tensor(order).double()[None, None, None] for order in itertools.permutations(range(3))]
        shares = [float(erasure_flip(view, order).fraction) for order in orders]
        alike = f"all orders are alike for the {which} weights."
        need(min(shares) < max(shares), alike, "Which erasures change the decision?")
        faster = f"another order is {'' if fast else 'not '}faster for the {which} weights."
        need((float(erasure_flip(view).fraction) == min(shares)) == fast, faster, "Try all six orders.")


@exercise("16.5")
def check_largest_change(answer):
    """Check weights that some permutation changes as much as any weights can be changed."""
    weights = three_words(answer).weights.flatten()
    outputs = torch.sigmoid(1 - 2 * weights)
    change = float((outputs - outputs[2]).abs().max())
    said = f"the largest TVD of these weights is {change:.3f}; others reach more."
    need(change > math.tanh(0.5) - 1e-6, said, "Between which two places should the weights differ most?")


@exercise(
    "17.1", "Points of 100, before less after: what is lost is positive.",
    "the loss without the context", "the loss without the copy",
)  # fmt: skip
def copying():
    """Return the ROUGE-1 points that soft, seed 1, loses without the context of its copy head, and without its copying."""
    table = pd.read_csv(repository() / "figures/summarize-ablation.csv")
    table = table.query("study == 'main' and variant == 'soft' and seed == 1 and price.isna()")
    return -100 * table.set_index("mode")["difference"][["context", "copy"]]


GATES = "the number of open gates (output)", "the number of open gates (contexts)"


@exercise("17.4", "The column kept counts the open gates of one parser.", *GATES)
def kept():
    """Return how many gates on label heads stay open at the price 3, by output and by context."""
    table = pd.read_csv(repository() / "figures/heads/gates/gates.csv").query("price == 3")
    return table.groupby("closes")["kept"].mean()[["output", "contexts"]]


@exercise("18.1", "The mean of the column, over the seeds of this one row.")
def exhausted():
    """Return the mean of erased_exhausted in the first layer of the encoder of sparse-tl."""
    table = pd.read_csv(repository() / "figures/systems.csv").query("system == 'summarizer, sparse-tl, enc.0'")
    return table["erased_exhausted"].mean()


@exercise("18.2")
def check_most_different(answer):
    """Check the word of example 26 where the truths of logit and contrast differ most."""
    wrong = "another word has a larger difference.", "Subtract the columns, and forget the sign."
    unknown = "this word is not in the constituent.", "Set example=26: that constituent has nine words."
    need_one_of(answer, *most_different(), *wrong, *unknown)


@cache
def most_different() -> tuple[tuple[str, ...], str]:
    """Return the words of the first nine of example 26, and that with the largest term of the second label."""
    table = lalkit.load("en-news-glass").explain(load("sample", "test")[26]).table
    table = table[(table["start"] == 0) & (table["end"] == 9) & (table["role"] == "second")]
    terms = table.groupby(["position", "word"])["value"].sum()
    return tuple(word for _, word in terms.index), terms.abs().idxmax()[1]


# ---------------------------------------------------------------- 08, 19, and 09.3: other heads, and relations of labels


@exercise("08.2")
def check_pairs(answer):
    """Check five minimal pairs: sentences of the same length, in words and sub-words, that differ in one word."""
    need(isinstance(answer, (list, tuple)), "it must be a list of pairs.", "Give [(sentence, sentence), ...].")
    parser, point = lalkit.load("en-news"), "pretrained.0.output"
    for number, texts in enumerate(answer, 1):
        first, second = pair(texts, "sentence", "sentence")
        need(isinstance(first, str) and isinstance(second, str), f"pair {number} is not text.", "Write sentences.")
        one, other = both = first.split(), second.split()
        need(one and len(one) == len(other), f"the lengths in pair {number} differ.", "Count words, and the full stop.")
        differ = sum(a != b for a, b in zip(one, other))
        need(differ == 1, f"{differ} words differ in pair {number}.", "In a minimal pair, one word differs.")
        sizes = {parser.activations([Sentence(tuple(words))], point)[0][point].shape for words in both}
        need(len(sizes) == 1, f"pair {number} has two numbers of sub-words.", "Take more frequent words.")
        parses = [parser.parse(" ".join(words), "tokens").sentence for words in both]
        same = f"the parser draws the same tree twice in pair {number}, so no layer decides."
        remedy = "Exchange a word on which the attachment depends."
        need(len({(p.heads, p.constituents) for p in parses}) > 1, same, remedy)
    need(len({*map(tuple, answer)}) == 5, "there are not five pairs.", "Write five different pairs.")


@exercise("08.3")
def check_sides(answer):
    """Check a function of a Sentence that returns, for each word, whether its head is on its right."""
    need_kind(answer, Callable, "It must be a function.")
    for sentence in load("sample", "dev").sentences[:12]:
        truth = np.array([head > i for i, head in enumerate(sentence.heads, 1)], dtype=float)
        given = call(answer, ANSWER, (sentence,))
        given = floats(list(given) if isinstance(given, (list, tuple, map)) else given, "what it returns")
        compare(given, truth, "what your answer returns", "Words count from 1. The root, 0, is on no word's right.")


@exercise("19.1")
def check_chinese_clauses(answer):
    """Check the head that leads the most Chinese SBARs in our tables, and the percent of them."""
    table = pd.read_csv(repository() / "figures/across-languages.csv")
    row = table.query("language == 'Chinese' and label == 'SBAR'").iloc[0]
    leader, percent = pair(answer, "leader", "percent")
    number = isinstance(percent, (Real, np.generic)) and not isinstance(percent, (bool, np.bool_))
    need(isinstance(leader, str), "the leader is not text.", "Write the label of the head in quotation marks.")
    need(number, "the percent is not a number.", "Give it as the table has it.")
    wrong = "another head leads more of them.", "Read the row of Chinese, among those of SBAR."
    names = {*table["label"], *table["leader"]}
    need_one_of(leader, names, row["leader"], *wrong, "there is no such head.", "A head has the name of its label.")
    need(abs(percent) > 1, "this is a share, not a percent.", "Multiply it by 100.")
    close = abs(floats(percent, "the percent") - row["leader_share"]) < 0.51
    need(close, "the percent is another one.", "Look for the column that belongs to the leader.")


@exercise("09.3")
def check_most_alike(answer):
    """Check the pair of labels whose profiles are most alike in the worst of the five parsers."""
    table = pd.read_csv(repository() / "figures/seeds/heads.csv", keep_default_na=False).query("norm == 'exact'")
    spans = table.groupby(["label", "model"])["spans"].max().unstack()
    table = table[table["label"].isin(spans.index[spans.min(axis=1, skipna=False) >= 20])]
    profiles = [part.pivot_table("share", "label", "head", fill_value=0) for _, part in table.groupby("model")]
    least = np.minimum.reduce([np.corrcoef(profile) for profile in profiles])
    place = np.unravel_index(np.where(np.eye(len(least)), -2, least).argmax(), least.shape)
    labels = profiles[0].index
    given = pair(answer, "label", "label")
    need(all(isinstance(label, str) for label in given), "labels are text.", "Write both labels in quotation marks.")
    need({*given} <= {*labels}, "there is no such label.", "Take labels with at least 20 spans.")
    need({*given} == {*labels[[*place]]}, "another pair is more alike.", "Take the smallest of the five values.")


# ---------------------------------------------------------------- 12: the layer and the decoder


def step(number: str, function: Callable) -> Callable:
    """Check a gap of a lesson. Return the function, or that of the solution while the gap is open or wrong."""
    is_open = "NotImplementedError" in getattr(function, "__code__", check.__code__).co_names
    if not is_open and report(number, lambda: EXERCISES[number](function)):
        return function
    solutions = nbformat.read(repository() / "book/solutions/12_build_it.ipynb", as_version=4).cells
    source = "\n\n".join(cell.source for cell in solutions if cell.cell_type == "code")
    nodes = [node for node in ast.parse(source).body if getattr(node, "name", "") == function.__name__]
    exec(compile(ast.Module(nodes, []), "solution", "exec"), names := function.__globals__)
    print(f"{number}: " + "the gap is open. " * is_open + "The lesson continues with the function of the solution.")
    return names[function.__name__]


def by_layer(words: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Return logits and evidence [words, 3], and the sums inside all spans of lalkit's layer [words + 1, words + 1, 3]."""
    logits, evidence = torch.randn(2, words, 3, generator=torch.Generator().manual_seed(words), dtype=torch.float64)
    layer, zero = lalkit.SpanLabelAttention({"boundary": "glass"}, 1, 0, 4, 0.0), torch.zeros(1, words, 3)
    return logits, evidence, layer.chart((logits[None], evidence[None], zero.double(), zero.double()))[0, ..., 1:]


@exercise("12.1", "A softmax over the rows i to j - 1, for each label alone; then the weighted sum of the evidence.")
def inside():
    """A function of (logits, evidence, start, end) returns the sum inside a span for every label."""
    logits, evidence, sums = by_layer(5)
    return [((logits, evidence, i, j), sums[i, j].numpy()) for i, j in ((0, 5), (1, 3), (2, 3), (3, 5))]


@exercise("12.2", "The first row belongs to the span of one word. Compare each row with your function of step 1.")
def inside_from():
    """A function of (logits, evidence, start) returns the sums inside all spans with this start."""
    logits, evidence, sums = by_layer(6)
    return [((logits, evidence, i), sums[i, i + 1 :].numpy()) for i in (0, 2, 5)]


def charts() -> list[np.ndarray]:
    """Return scores of one, two, four and six words with three labels, and 0 for the empty label."""
    sizes, rng = (1, 2, 4, 6), np.random.default_rng(3)
    return [rng.normal(-0.4, 1, (n + 1, n + 1, 4)) * [0, 1, 1, 1] for n in sizes]


@exercise(
    "12.3", "Add the best label and the best split, and give no empty labels. The whole sentence has a real label."
)
def best_tree():
    """A function of scores returns the score of the best tree and its constituents."""
    trees = cky_batch([np.insert(chart, 1, -1e4, axis=2) for chart in charts()], threads=1)
    found = [(tree.score, {(i, j, label - 1) for i, j, label in tree.spans}) for tree in trees]
    return [((chart,), dict(zip(("the score", "the tree"), one))) for chart, one in zip(charts(), found)]


@exercise("12.4")
def check_margin(answer):
    """Check a function of (scores, gold) that returns the margin loss, with its gradient."""
    need_kind(answer, Callable, "It must be a function.")

    def truth(scores, gold):
        """Return the loss by lalkit, whose label 1 is that of a group."""
        chart = torch.cat([scores[..., :1], torch.full_like(scores[..., :1], -1e4), scores[..., 1:]], dim=-1)
        return span_margin_loss(chart[None], [len(scores) - 1], [[(i, j, k + 1) for i, j, k in gold]])

    def slope(loss):
        """Return a function that returns the gradient of a loss."""

        def gradient(scores, gold):
            """Return the gradient for all labels but the empty one."""
            scores = scores.clone().requires_grad_()
            return torch.autograd.grad(loss(scores, gold), scores)[0][..., 1:]

        return gradient

    cases = [(torch.tensor(chart), [(0, len(chart) - 1, 2), (0, 1, 1)]) for chart in charts()[1:]]
    hint = "Did you add 1 to the empty label, too, where gold has a constituent?"
    compare(answer, [(case, truth(*case).numpy()) for case in cases], ANSWER, hint)
    slopes = [(case, slope(truth)(*case).numpy()) for case in cases]
    compare(slope(answer), slopes, "the gradient of your answer", "Which scores of the tensor are in the two sums?")
