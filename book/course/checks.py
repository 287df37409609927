"""Check the answers of the graded exercises in book/course, without giving them away.

A check looks up one name in the notebook that calls it, prints one line, and returns the points: 1 if the answer is right,
0 if not. It raises no error, whatever the answer is. Where numbers could be copied, they depend on the name of the student.
The right answers are computed by the functions of lalkit that the exercises are about, and stand nowhere as numbers.
In a student's notebook the points are only shown. Those that count are given by grade.py, with other inputs.
"""

from __future__ import annotations

import contextlib
import copy
import io
import sys
import zlib
from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import replace
from functools import cache, wraps
from itertools import combinations, permutations, product
from math import floor, log10
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

import lalkit
from lalkit.chart.cky import EMPTY, FIRST_REAL, SUBHEAD, cky_batch
from lalkit.chart.joint import decode
from lalkit.chart.loss import arc_loss, span_margin_loss
from lalkit.config import SpanAttentionConfig
from lalkit.errors import LalkitError, TreebankError
from lalkit.evaluation.evalb import EvalbRules, brackets
from lalkit.evaluation.scores import evaluate
from lalkit.interpret.errors import errors
from lalkit.interpret.tables import top_shares
from lalkit.network.scores import ArcScorer, fenceposts
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.probes.perturbation import erasure_flip, total_variation
from lalkit.probes.view import linear_view
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence, check_heads

WORDS = "Young women drive buses".split()
LABELS = ["", "<H>", "S", "NP", "VP"]  # index 0 is the empty label
GOLD = [(0, 4, 2), (0, 2, 3), (2, 4, 4), (3, 4, 3)]  # (start, end, label index): the gold tree of WORDS
NAME_CELL = "the first code cell"
ANSWER = "your answer"
BOOLS, ARRAYS = (bool, np.bool_), (np.ndarray, np.generic, torch.Tensor)


class Mistake(LalkitError):
    """An answer is missing, of another kind, or wrong."""


# ---------------------------------------------------------------- how an answer is compared


def need(condition: Any, problem: str, remedy: str) -> None:
    """Raise Mistake unless a condition holds."""
    if not condition:
        raise Mistake(problem, remedy)


def need_kind(answer: Any, kinds: type | tuple[type, ...], remedy: str, what: str = ANSWER) -> None:
    """Raise Mistake unless an answer has one of some types. True and False are not numbers."""
    right = isinstance(answer, kinds) and (kinds == BOOLS or not isinstance(answer, BOOLS))
    need(right, f"{what} is a value of type {type(answer).__name__}.", remedy)


def floats(answer: Any, what: str = ANSWER) -> np.ndarray:
    """Return an answer as an array of floats. Raise Mistake if it holds something else."""
    try:
        return np.asarray(answer.detach() if isinstance(answer, torch.Tensor) else answer, dtype=float)
    except Exception:
        remedy = "Look at its parts: all must be numbers, in rows of equal length, and none above 1e308."
        raise Mistake(f"{what} holds something that is no number here.", remedy) from None


def pair(answer: Any, *names: str) -> tuple[Any, Any]:
    """Return the two parts of an answer. names: of the parts."""
    need_kind(answer, (tuple, list, np.ndarray, torch.Tensor), remedy := f"Give two things, ({', '.join(names)}).")
    need(len(answer) == 2, f"{ANSWER} has {len(answer)} parts.", remedy)
    return tuple(answer)


def unit(truth: np.ndarray) -> float:
    """Return how far numbers may lie from the truth: the largest has three digits, or two decimals if it is 0.1 or more."""
    size = np.abs(truth).max(initial=0.0)
    if not size or not np.isfinite(size):
        return 1e-4
    digits = 0.5 * 10.0 ** (floor(log10(size)) - 2)
    return (max(digits, 0.005) if size >= 0.1 else digits) * (1 + 1e-6)


def difference(given: np.ndarray, truth: np.ndarray) -> str:
    """Return in what way numbers are wrong, as far as this does not tell the right ones."""
    for factor, what in ((-1, "has the wrong sign"), (100, "is 100 times too large"), (0.01, "is 100 times too small")):
        if np.any(truth) and np.allclose(given, factor * truth, rtol=1e-2, atol=0):
            return what
    if truth.shape and not np.allclose(given, truth, rtol=0.05):
        wrong = int((np.abs(given - truth) > unit(truth)).sum())
        return f"is not right at {wrong} of {truth.size} places"
    return "is close, but three digits must agree" if np.allclose(given, truth, rtol=0.05) else "is not right yet"


def compare(answer: Any, truth: Any, what: str, hint: str = "Read the question again, and try it on paper.") -> None:
    """Raise Mistake, without the truth in it, unless an answer has the kind, the shape and the value of the truth.

    Args:
        answer: numbers may be rounded to three digits.
        truth: a bool, a set, or numbers; a list for a function: (arguments, what it returns) of each call; a dict for an answer
            of two parts: their names and truths.
        what: the name of the answer in messages.
        hint: what to look at if the answer is wrong.
    """
    need(
        answer is not None and answer is not ...,
        f"{what} is still empty (None).",
        "Write your answer, run its cell again.",
    )
    if isinstance(truth, dict):
        for given, (name, part) in zip(pair(answer, *truth), truth.items()):
            compare(given, part, name, hint)
    elif isinstance(truth, list):
        need_kind(answer, Callable, "It must be a function.", what)
        for arguments, returned in truth:
            compare(call(answer, what, arguments), returned, f"what {what} returns{shown(arguments)}", hint)
    elif isinstance(truth, bool):
        need_kind(answer, BOOLS, "It must be True or False.", what)
        need(bool(answer) == truth, f"{what} is not right yet.", hint)
    elif isinstance(truth, set):
        kind = f"{what} is a value of type {type(answer).__name__}.", "It must be a list of tuples."
        items = isinstance(answer, (list, tuple, Set)) and all(isinstance(item, (tuple, list)) for item in answer)
        need(items and all(isinstance(part, Hashable) for item in answer for part in item), *kind)
        given = {*map(tuple, answer)}
        need(len(given) == len(answer), f"{what} has an item twice.", "Give each of them once.")
        wrong = f"{what} has {len(given - truth)} wrong items, and {len(truth - given)} are missing."
        need(given == truth, wrong, hint)
    else:
        counts, truth = np.asarray(truth).dtype.kind in "iu", floats(truth)
        remedy = f"It must be {'an array: use np.array(...)' if truth.shape else 'a number'}."
        need_kind(answer, ARRAYS if truth.shape else (Real, *ARRAYS), remedy, what)
        given = floats(answer, what)
        shape = f"It must {f'have {list(truth.shape)}' if truth.shape else 'be one number'}."
        need(given.shape == truth.shape, f"{what} has the shape {list(given.shape)}.", shape)
        need(not np.isnan(given).any(), f"{what} contains NaN (not a number).", "Perhaps something was divided by 0.")
        close = np.all(np.abs(given - truth) <= (1e-4 if counts else unit(truth)))
        need(close, f"{what} {'is not right yet' if counts else difference(given, truth)}.", hint)


def call(function: Any, what: str, arguments: tuple) -> Any:
    """Return what a function of the notebook returns, without what it prints. Raise Mistake if it stops with an error."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return function(*copy.deepcopy(arguments))
    except Mistake:
        raise
    except BaseException as error:
        remedy = "Call it yourself, with smaller and larger arguments too, and read the whole error."
        raise Mistake(f"{what} stops with {type(error).__name__}.", remedy) from None


def shown(arguments: tuple) -> str:
    """Return the arguments of a call, if they are short."""
    text = " ".join(repr(arguments[0] if len(arguments) == 1 else arguments).split())
    return f" for {text}" if len(text) < 50 else ""


def as_sentence(text: str) -> str:
    """Return text on one line, with a stop at its end."""
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def report(name: str, judge: Callable[[], None]) -> int:
    """Run a judge, which raises Mistake for a wrong answer. Print one line, and return the points: 1 or 0."""
    try:
        judge()
    except BaseException as error:
        strange = f"{name} contains values of a kind that does not belong there. Compare their types with the question."
        parts = (error.problem, error.remedy) if isinstance(error, LalkitError) else (strange,)
        print("Not yet:", " ".join(as_sentence(part) for part in parts if part))
        return 0
    print(f"{name} is right.")
    return 1


def look_up(notebook: Mapping[str, Any], name: str, step: str) -> Any:
    """Return the value of a name of the notebook. step: the cell that defines it, for the message if that cell was not run."""
    need(name in notebook, f"there is no {name} yet.", f"Run {step} first.")
    return notebook[name]


def graded(step: int, hint: str) -> Callable[[Callable[[str], Any]], Callable[..., int]]:
    """Make the check of an exercise of a function that returns the truth for a student.

    The function is called check_NAME: NAME is that of the answer in the notebook.
    """

    def decorate(truth_of: Callable[[str], Any]) -> Callable[..., int]:
        name = truth_of.__name__.removeprefix("check_")

        @wraps(truth_of)
        def check(notebook: Mapping[str, Any] | None = None) -> int:
            names = sys._getframe(1).f_globals if notebook is None else notebook

            def judge() -> None:
                answer = look_up(names, name, f"exercise {step}")
                compare(answer, truth_of(look_up(names, "student", NAME_CELL)), name, hint)

            return report(name, judge)

        return check

    return decorate


# ---------------------------------------------------------------- the numbers of a student

_hidden = ""  # in the process that gives points: what no student knows


def hide(secret: str) -> None:
    """Let the checks of functions use inputs that depend on a secret."""
    global _hidden
    _hidden = secret


def others(*names: str) -> list[str]:
    """Return names of persons whose data functions are tried with."""
    return [f"{name}{_hidden}" for name in names]


def seed_of(number: int) -> int:
    """Return a seed for the inputs of functions."""
    return zlib.crc32(f"{number}{_hidden}".encode())


def random_of(student: Any) -> np.random.Generator:
    """Return random numbers that depend on the name of a student, and on nothing else."""
    named = isinstance(student, str) and student.strip()
    need(named, "student is not the name of a person.", f"Write your name into {NAME_CELL}, in quotation marks.")
    return np.random.default_rng(zlib.crc32(" ".join(student.split()).casefold().encode()))


@cache
def trees_of(student: str) -> tuple[Sentence, Sentence]:
    """Return two trees of one sentence from our treebank: gold, and a parse with mistakes. They have no chains of labels."""
    sentences = [s for s in load("sample", "train").sentences if 8 <= len(s) <= 16 and s.tags[-1] == "." and _plain(s)]
    pairs = [
        (a, b)
        for a, b in permutations(sentences, 2)
        if len(a) == len(b) and a.constituents != b.constituents and len({*a.constituents} & {*b.constituents}) > 2
    ]
    gold, other = pairs[random_of(student).integers(len(pairs))]
    return gold, replace(gold, constituents=other.constituents, heads=other.heads, arc_labels=other.arc_labels)


def _plain(sentence: Sentence) -> bool:
    """Return whether EVALB counts each constituent once and as it is called."""
    return not any("::" in label or label == "PRT" for *_, label in sentence.constituents)


def chart_of(student: str) -> np.ndarray:
    """Return made-up scores [5, 5, 5] of the spans of WORDS, start by end by label. GOLD is not the best tree."""
    rng = random_of(student)
    while True:
        chart = rng.integers(-5, 2, (len(WORDS) + 1, len(WORDS) + 1, len(LABELS))).astype(float)
        chart[:, :, EMPTY], chart[:, :, SUBHEAD] = 0.0, -5.0
        chart[tuple(zip(*GOLD))] = rng.integers(1, 4, len(GOLD))
        more = _with_points(chart)  # neither the best tree nor the worst one has an equal
        noise = rng.normal(0, 0.01, (4, *chart.shape))
        best, worst = (cky_batch([*(scores + noise)], threads=1) for scores in (chart, more))
        if best[0].spans != GOLD and all(one.spans == same[0].spans for same in (best, worst) for one in same):
            return chart


def arcs_of(student: str) -> np.ndarray:
    """Return made-up scores [4, 5] of the arcs of WORDS, dependent by head. Column 0 is the root."""
    return random_of(student).uniform(0, 10, (len(WORDS), len(WORDS) + 1)).round(2)


def layer_of(student: str) -> tuple[torch.Tensor, SpanLabelAttention]:
    """Return vectors [4, 6] of WORDS, and label attention inside the span for three labels, both random."""
    generator = torch.Generator().manual_seed(int(random_of(student).integers(2**31)))
    layer = SpanLabelAttention(SpanAttentionConfig(d_key=4, boundary="glass"), 6, 0, 4, 0.0).requires_grad_(False)
    for weight in layer.parameters():
        weight.copy_(torch.randn(weight.shape, generator=generator))
    return torch.randn(len(WORDS), 6, generator=generator), layer


@cache
def sentences_of(student: str) -> list[Sentence]:
    """Return twelve sentences of our test part."""
    sentences = load("sample", "test").sentences
    return [sentences[i] for i in sorted(random_of(student).choice(len(sentences), 12, replace=False))]


def heads_of(student: str) -> list[tuple[str, int]]:
    """Return (label, top head by exact effect) of every constituent that the parser finds."""
    return _shares_of(student)[0]


@cache
def _shares_of(student: str) -> tuple[list[tuple[str, int]], pd.DataFrame]:
    """Return the answer of heads_of, and lalkit's table of the same."""
    gold = sentences_of(student)
    found = lalkit.load("en-news").explain(gold).heads()
    tops = list(zip(found.spans["label"], found.by("exact").argmax(1).tolist()))
    return tops, top_shares(found, "exact")


@cache
def terms_of(student: str) -> pd.DataFrame:
    """Return the terms of a constituent's score, and of the second label's, with label attention inside the span."""
    rng, parser = random_of(student), lalkit.load("en-news-span")
    terms = parser.explain(sentences_of(student)[rng.integers(12)]).table
    terms = terms[terms["end"] - terms["start"] > 1]
    start, end = (
        terms[["start", "end"]].drop_duplicates().to_numpy()[rng.integers(terms.groupby(["start", "end"]).ngroups)]
    )
    return terms[(terms["start"] == start) & (terms["end"] == end)].reset_index(drop=True)


def text_of(student: str, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return attention [size], which sums to 1, and for each word a number: above 0 it speaks for the class."""
    rng = random_of(f"{student} {size}")
    weights = rng.dirichlet(np.ones(size))
    return weights, rng.normal(0.3, 1, size)


# ---------------------------------------------------------------- measuring


def pairs_of(student: str) -> list[tuple[Sentence, Sentence]]:
    """Return trees of a student, and of two others."""
    return [*map(trees_of, (student, *others("another", "a third")))]


@graded(1, "A constituent is right if its start, its end and its label are those of one in gold.")
def check_right_brackets(student):
    """Return the number of right constituents in the student's parse, if no word is deleted."""
    rules = EvalbRules("nothing is deleted", frozenset())
    return int(evaluate(*([tree] for tree in trees_of(student)), rules).brackets.matched)


@graded(2, "Percent: a perfect parse has 100.")
def check_f1(student):
    """A function of three counts (right, in gold, in the parse) returns F1 in percent."""
    counts = [evaluate([gold], [parse]).brackets for gold, parse in pairs_of(student)]
    return [((c.matched, c.gold, c.predicted), c.f1) for c in counts]


@graded(3, "Fenceposts count only the words that are left.")
def check_without_punctuation(student):
    """A function returns the constituents of a sentence over the words that are not punctuation."""
    sentences = [*trees_of(student), *filter(_plain, load("sample", "dev").sentences)]
    return [((s,), set(brackets(s.tree))) for s in sentences[:20]]


@graded(4, "Which words count? Divide by their number.")
def check_uas(student):
    """A function of two sentences (gold, parse) returns UAS in percent, without punctuation."""
    return [((gold, parse), evaluate([gold], [parse]).summary()["uas"]) for gold, parse in pairs_of(student)]


# ---------------------------------------------------------------- scores


@graded(1, "Forward halves come from the left word, backward ones from the right.")
def check_fencepost(student):
    """A function of (left, right, content, position) returns the fencepost between two words."""
    cases = []
    for parts in ((4, 2), (6, 4), (2, 6)):
        left, right = torch.randn(2, sum(parts), generator=torch.Generator().manual_seed(seed_of(sum(parts))))
        truth = fenceposts(torch.stack([left, right])[None, :, None], parts)[0, 0, 0]
        cases.append(((left.numpy(), right.numpy(), *parts), truth))
    return cases


@graded(2, "Divide by the root of the query's length, then apply the softmax.")
def check_weights(student):
    """Return the attention of the first label's head inside the span (1, 4)."""
    words, layer = layer_of(student)
    logits = layer.project(F.pad(words, (0, 0, 1, 1))[None], words[None, :, None])[0]
    return layer.attention(logits, *map(torch.tensor, ([0], [1], [4], [0])))[0, 1:4]


@graded(3, "Is constant in it, and is the last word x[3]?")
def check_span_score(student):
    """Return the score of the first label for the span (1, 4)."""
    words, layer = layer_of(student)
    return layer(words[None], None, torch.tensor([[0, 1, 4]]))[0, 1].item()


@graded(4, "The 1 stands behind the dependent; divide by the root of k.")
def check_arc_score(student):
    """A function of (dependent, head, matrix) returns the biaffine score."""
    cases = []
    for size in (2, 3, 5):
        scorer = ArcScorer(1, size, 1, 1, 0.0).requires_grad_(False)
        generator = torch.Generator().manual_seed(seed_of(size))
        scorer.arc.copy_(torch.randn(scorer.arc.shape, generator=generator))
        dependent, head = torch.randn(2, size, generator=generator)
        truth = scorer.arcs([dependent.expand(1, 3, size), head.expand(1, 2, size)]).item()
        cases.append(((dependent.numpy(), head.numpy(), scorer.arc.numpy()), truth))
    return cases


# ---------------------------------------------------------------- decoding


@graded(1, "Draw both as lines under the words.")
def check_crosses(student):
    """A function of two spans returns whether they cross."""
    pairs = [*permutations(combinations(range(5), 2), 2)]
    places = np.random.default_rng(seed_of(0)).permuted(np.tile(np.arange(30), (40, 1)), axis=1)[:, :4].tolist()
    pairs += [(tuple(sorted(four[:2])), tuple(sorted(four[2:]))) for four in places]
    return [((a, b), _refuses(Sentence, ["word"] * 30, None, [(*a, "X"), (*b, "X")])) for a, b in pairs]


def _refuses(check: Callable, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except TreebankError:
        return True
    return False


@graded(2, "Its own score and the better of two splits.")
def check_total_1_4(student):
    """Return the cell (1, 4) of the student's CKY chart."""
    return _best_sum(chart_of(student).max(axis=2)[1:, 1:])


@graded(3, "Begin with one word, then two.")
def check_best_sum(student):
    """A function of the best label's score of every span [n+1, n+1] returns the sum of the best tree."""
    rng = np.random.default_rng(seed_of(0))
    charts = [rng.integers(-5, 6, (n + 1, n + 1)).astype(float) for n in (1, 2, 3, 4, 6, 8)]
    return [((chart,), _best_sum(chart)) for chart in charts]


def _best_sum(best: np.ndarray) -> float:
    """Return the sum of the best binary tree, if a span has only one possible label with this score."""
    chart = np.full((*best.shape, FIRST_REAL + 1), -1e3)
    chart[:, :, FIRST_REAL] = best
    return cky_batch([chart])[0].score


@graded(4, "Walk from each word to its head, and count the words at the root.")
def check_is_tree(student):
    """A function returns whether heads are a tree with one root. Arcs may cross."""
    every = [*product(range(4), repeat=3), (2, 3, 4, 0), (2, 1, 0, 3), (3, 4, 0, 3), (3, 4, 2, 0)]
    every += map(tuple, np.random.default_rng(seed_of(1)).integers(0, 6, (60, 5)).tolist())
    return [((heads,), not _refuses(check_heads, heads, True)) for heads in every]


@graded(5, "One word hangs on 0, and no arcs cross.")
def check_best_arcs(student):
    """Return the (dependent, head) pairs of the best projective tree of the student's arc scores."""
    return set(enumerate(decode(np.zeros((5, 5, FIRST_REAL + 1)), arcs_of(student), lam=0.0).heads.tolist(), 1))


# ---------------------------------------------------------------- learning


def _with_points(chart: np.ndarray) -> np.ndarray:
    """Return the chart with 1 more for every label of every span that is not gold's label there."""
    more, gold = chart.copy(), {(i, j): k for i, j, k in GOLD}
    for span in combinations(range(len(chart)), 2):
        more[span] += np.arange(chart.shape[2]) != gold.get(span, EMPTY)
    return more


@graded(1, "Which label is gold's?")
def check_with_points(student):
    """A function of (chart, gold) adds a point for every possible mistake."""
    return [((chart, GOLD), _with_points(chart)) for chart in map(chart_of, (student, *others("another")))]


@graded(2, "The best tree with points, less the score of gold without points.")
def check_margin(student):
    """Return the margin loss of the student's chart."""
    return _margin(chart_of(student))[0]


@graded(3, "+1 for each constituent of the worst tree, -1 for gold's.")
def check_gradient(student):
    """Return the gradient of the margin loss of the student's chart; 0 for the empty label."""
    return _margin(chart_of(student))[1]


def _margin(chart: np.ndarray, loss: Callable[..., torch.Tensor] = span_margin_loss) -> tuple[float, np.ndarray]:
    """Return a loss of a chart, and its gradient; 0 for the empty label."""
    with torch.enable_grad():
        scores = torch.tensor(chart)[None].requires_grad_()
        value = loss(scores, [len(WORDS)], [GOLD])
        value.backward()
    gradient = scores.grad[0].numpy()
    gradient[:, :, EMPTY] = 0
    return value.item(), gradient


@graded(4, "Test it with finite differences.")
def check_arc_gradient(student):
    """A function of (scores, gold) returns the gradient of - log p(gold head) for one word."""
    cases = []
    for size in (2, 4, 7):
        scores = torch.tensor(np.random.default_rng(seed_of(size)).normal(0, 2, size), requires_grad=True)
        arc_loss(scores.log_softmax(0)[None, None], torch.tensor([[size - 2]]), torch.tensor([[True]])).backward()
        cases.append(((scores.detach().numpy(), size - 2), scores.grad))
    return cases


# ---------------------------------------------------------------- heads


def _of_one_head(student: str, column: str) -> list[tuple[tuple, float]]:
    """Return the cases of a function of (tops, label): the labels that have one top head alone."""
    cases = []
    for tops, table in map(_shares_of, (student, *others("another"))):
        first = table.groupby("label", sort=False)["led"]
        clear = [label for label, led in first if (led == led.max()).sum() == 1]
        shares = table.groupby("label", sort=False)[column].first()
        cases += [((tops, label), float(shares[label])) for label in clear[:5]]
    return cases


@graded(1, "Divide by the constituents of this label.")
def check_share(student):
    """A function of (tops, label) returns the percent of the label's constituents that its top head leads."""
    return _of_one_head(student, "share")


@graded(2, "Divide two shares: of the label, and of all constituents.")
def check_lift(student):
    """A function of (tops, label) returns the share of the label's top head, divided by its share of all."""
    return _of_one_head(student, "lift")


def _equal(attention: torch.Tensor) -> torch.Tensor:
    return (attention > 0) / (attention > 0).sum(-1, keepdim=True)


@graded(3, "Each row sums to 1 over its words; other places keep 0.")
def check_uniform(student):
    """A function gives every word with attention the same attention."""
    cases = []
    for heads, words, padding in ((1, 4, 0), (3, 5, 2)):
        attention = torch.rand(heads, words, generator=torch.Generator().manual_seed(seed_of(words))).softmax(-1)
        attention = F.pad(attention, (0, padding))
        cases.append(((attention,), _equal(attention)))
    return cases


@graded(4, "The F1 as trained less the F1 with uniform attention.")
def check_f1_lost(student):
    """Return how many points of F1 the parser loses with uniform attention on the student's sentences."""
    return _f1_lost(student)


@cache
def _f1_lost(student: str) -> float:
    parser, gold, f1 = lalkit.load("en-news"), sentences_of(student), []
    for change in ({}, {"label_attention.attention": _equal}):
        with parser.patched(change):
            parses = [result.sentence for result in parser.parse_all(gold)]
        f1.append(evaluate(gold, parses).summary()["f1"])
    return f1[0] - f1[1]


# ---------------------------------------------------------------- explaining


@graded(1, "Same words, another label: (start, end, gold, parse).")
def check_relabelled(student):
    """A function of (gold, parse) returns the spans with another label."""
    cases = []
    for gold, parse in pairs_of(student):
        rows = errors([gold], [parse]).query("`class` == 'relabelled'")[["start", "end", "gold_label", "label"]]
        cases.append(((gold, parse), {(int(a), int(b), there, here) for a, b, there, here in rows.to_numpy()}))
    return cases


@graded(2, "Only rows of the kind word: parse less second.")
def check_words_lead(student):
    """Return by how much the words of a constituent put its label before the second one."""
    sums = terms_of(student).query("kind == 'word'").groupby("role")["value"].sum()
    return float(sums["parse"] - sums["second"])


@graded(3, "Erase in the order of the weights until the sign changes.")
def check_needed(student):
    """A function of (weights, values) returns how many words are erased until the decision changes."""
    cases = []
    for weights, values in (text_of(student), *(text_of(*others("another"), size) for size in range(3, 11))):
        given = torch.tensor(weights)[None, None, None], torch.tensor(values)[None, None, :, None]
        view = linear_view(*given, torch.tensor([[1.0, -1.0]], dtype=torch.float64))
        cases.append(((weights, values), round(erasure_flip(view).fraction.item() * len(weights))))
    return cases


@graded(4, "Half of the sum of the absolute differences.")
def check_tvd(student):
    """A function of two lists of probabilities returns their total variation distance."""
    pairs = [np.random.default_rng(seed_of(size)).dirichlet(np.ones(size), 2) for size in (2, 3, 5)]
    return [((p, q), total_variation(torch.tensor(p), torch.tensor(q)).item()) for p, q in pairs]
