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
from collections.abc import Callable, Iterable, Mapping, Set
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
from lalkit.interpret.contributions import contributions
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


class Mistake(LalkitError):
    """An answer is missing, of another kind, or wrong."""


# ---------------------------------------------------------------- how an answer is looked up and compared


def look_up(notebook: Mapping[str, Any], name: str, step: str) -> Any:
    """Return the value of a name of the notebook. step: the cell that defines it, for the message if that cell was not run."""
    if name not in notebook:
        raise Mistake(f"there is no {name} yet.", f"Run {step} first.")
    return notebook[name]


def floats(answer: Any, what: str) -> np.ndarray:
    """Return an answer as an array of floats. Raise Mistake if it holds something else."""
    try:
        return np.asarray(answer.detach() if isinstance(answer, torch.Tensor) else answer, dtype=float)
    except Exception:
        remedy = "Look at its parts: all must be numbers, in rows of equal length, and none above 1e308."
        raise Mistake(f"{what} holds something that is no number here.", remedy) from None


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

    A number may be rounded to three digits. hint: what to look at if the answer is wrong.
    """
    if answer is None or answer is ...:
        raise Mistake(f"{what} is still empty (None).", "Write your answer, and run its cell again.")
    numbers = "an array: use np.array(...)" if np.ndim(truth) else "a number"
    kind = {bool: "True or False", set: "a list of tuples"}.get(type(truth), numbers)
    wrong_kind = Mistake(f"{what} is a value of type {type(answer).__name__}.", f"It must be {kind}.")
    if isinstance(truth, bool):
        if not isinstance(answer, (bool, np.bool_)):
            raise wrong_kind
        if bool(answer) != truth:
            raise Mistake(f"{what} is not right yet.", hint)
    elif isinstance(truth, set):
        if not isinstance(answer, (list, tuple, Set)) or not all(isinstance(item, (tuple, list)) for item in answer):
            raise wrong_kind
        try:
            given = set(map(tuple, answer))
        except TypeError:  # a tuple that holds a list
            raise wrong_kind from None
        if len(given) < len(answer):
            raise Mistake(f"{what} has an item twice.", "Give each of them once.")
        if given != truth:
            problem = f"{what} has {len(given - truth)} wrong items, and {len(truth - given)} are missing."
            raise Mistake(problem, hint)
    else:
        counts = np.asarray(truth).dtype.kind in "iu"
        close = 1e-4 if counts else unit(floats(truth, what))
        truth = floats(truth, what)
        arrays = (np.ndarray, np.generic, torch.Tensor) if truth.shape else (Real, np.ndarray, np.generic, torch.Tensor)
        if not isinstance(answer, arrays) or isinstance(answer, (bool, np.bool_)):
            raise wrong_kind
        given = floats(answer, what)
        if given.shape != truth.shape:
            wanted = f"have {list(truth.shape)}" if truth.shape else "be one number"
            raise Mistake(f"{what} has the shape {list(given.shape)}.", f"It must {wanted}.")
        if np.isnan(given).any():
            raise Mistake(f"{what} contains NaN (not a number).", "Perhaps something was divided by 0.")
        if not np.all(np.abs(given - truth) <= close):
            raise Mistake(f"{what} {'is not right yet' if counts else difference(given, truth)}.", hint)


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


def compare_calls(
    function: Any, what: str, cases: Iterable[tuple[tuple, Any]], hint: str = "Call it yourself."
) -> None:
    """Raise Mistake unless a function of the notebook returns the truth for all cases: (arguments, truth)."""
    if not callable(function):
        raise Mistake(f"{what} is a value of type {type(function).__name__}.", "It must be a function.")
    for arguments, truth in cases:
        compare(call(function, what, arguments), truth, f"what {what} returns{shown(arguments)}", hint)


def _of(notebook: Mapping[str, Any], data: Callable[[str], Any]) -> Any:
    """Return the data of the student whose notebook this is."""
    return data(look_up(notebook, "student", NAME_CELL))


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


def check_of(name: str, step: str) -> Callable[[Callable[[Any, Mapping[str, Any]], None]], Callable[..., int]]:
    """Make a check of a function that raises Mistake for a wrong answer. name: of the answer; step: the cell that defines it."""

    def decorate(judge: Callable[[Any, Mapping[str, Any]], None]) -> Callable[..., int]:
        @wraps(judge)
        def check(notebook: Mapping[str, Any] | None = None) -> int:
            names = sys._getframe(1).f_globals if notebook is None else notebook
            return report(name, lambda: judge(look_up(names, name, step), names))

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
    if not isinstance(student, str) or not student.strip():
        raise Mistake("student is not the name of a person.", f"Write your name into {NAME_CELL}, in quotation marks.")
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
    found = contributions(lalkit.load("en-news").look(gold), gold)
    tops = list(zip(found.spans["label"], found.by("exact").argmax(1).tolist()))
    return tops, top_shares(found, "exact")


@cache
def terms_of(student: str) -> pd.DataFrame:
    """Return the terms of a constituent's score, and of the second label's, with label attention inside the span."""
    rng, parser = random_of(student), lalkit.load("en-news-span")
    terms = parser.parse(sentences_of(student)[rng.integers(12)]).terms.table
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


@check_of("right_brackets", "exercise 1")
def check_right_brackets(answer, notebook):
    """Check the number of right constituents in the student's parse, if no word is deleted."""
    rows = evaluate(*([tree] for tree in _of(notebook, trees_of)), EvalbRules("nothing is deleted", frozenset()))
    hint = "A constituent is right if its start, its end and its label are those of one in gold."
    compare(answer, int(rows.brackets.matched), "right_brackets", hint)


@check_of("f1", "exercise 2")
def check_f1(answer, notebook):
    """Check a function of three counts (right, in gold, in the parse) that returns F1 in percent."""
    pairs = [_of(notebook, trees_of), *map(trees_of, others("another", "a third"))]
    counts = [evaluate([gold], [parse]).brackets for gold, parse in pairs]
    compare_calls(
        answer, "f1", [((c.matched, c.gold, c.predicted), c.f1) for c in counts], "Percent: a perfect parse has 100."
    )


@check_of("without_punctuation", "exercise 3")
def check_without_punctuation(answer, notebook):
    """Check a function that returns the constituents of a sentence over the words that are no punctuation."""
    sentences = [*_of(notebook, trees_of), *filter(_plain, load("sample", "dev").sentences)]
    compare_calls(
        answer,
        "without_punctuation",
        [((s,), set(brackets(s.tree))) for s in sentences[:20]],
        "Fenceposts count only the words that are left.",
    )


@check_of("uas", "exercise 4")
def check_uas(answer, notebook):
    """Check a function of two sentences (gold, parse) that returns UAS in percent, without punctuation."""
    pairs = [_of(notebook, trees_of), *map(trees_of, others("another", "a third"))]
    cases = [(pair, evaluate(*([tree] for tree in pair)).summary()["uas"]) for pair in pairs]
    compare_calls(answer, "uas", cases, "Which words count? Divide by their number.")


# ---------------------------------------------------------------- scores


@check_of("fencepost", "exercise 1")
def check_fencepost(answer, notebook):
    """Check a function of (left, right, content, position) that returns the fencepost between two words."""
    cases = []
    for parts in ((4, 2), (6, 4), (2, 6)):
        left, right = torch.randn(2, sum(parts), generator=torch.Generator().manual_seed(seed_of(sum(parts))))
        truth = fenceposts(torch.stack([left, right])[None, :, None], parts)[0, 0, 0]
        cases.append(((left.numpy(), right.numpy(), *parts), truth))
    compare_calls(answer, "fencepost", cases, "Forward halves come from the left word, backward ones from the right.")


@check_of("weights", "exercise 2")
def check_weights(answer, notebook):
    """Check the attention of the first label's head inside the span (1, 4)."""
    words, layer = _of(notebook, layer_of)
    logits = layer.project(F.pad(words, (0, 0, 1, 1))[None], words[None, :, None])[0]
    compare(
        answer,
        layer.attention(logits, *map(torch.tensor, ([0], [1], [4], [0])))[0, 1:4],
        "weights",
        "Divide by the root of the query's length, then apply the softmax.",
    )


@check_of("span_score", "exercise 3")
def check_span_score(answer, notebook):
    """Check the score of the first label for the span (1, 4)."""
    words, layer = _of(notebook, layer_of)
    compare(
        answer,
        layer(words[None], None, torch.tensor([[0, 1, 4]]))[0, 1].item(),
        "span_score",
        "Is constant in it, and is the last word x[3]?",
    )


@check_of("arc_score", "exercise 4")
def check_arc_score(answer, notebook):
    """Check a function of (dependent, head, matrix) that returns the biaffine score."""
    cases = []
    for size in (2, 3, 5):
        scorer, generator = (
            ArcScorer(1, size, 1, 1, 0.0).requires_grad_(False),
            torch.Generator().manual_seed(seed_of(size)),
        )
        scorer.arc.copy_(torch.randn(scorer.arc.shape, generator=generator))
        dependent, head = torch.randn(2, size, generator=generator)
        truth = scorer.arcs([dependent.expand(1, 3, size), head.expand(1, 2, size)]).item()
        cases.append(((dependent.numpy(), head.numpy(), scorer.arc.numpy()), truth))
    compare_calls(answer, "arc_score", cases, "The 1 stands behind the dependent; divide by the root of k.")


# ---------------------------------------------------------------- decoding


@check_of("crosses", "exercise 1")
def check_crosses(answer, notebook):
    """Check a function of two spans that returns whether they cross."""
    pairs = [*permutations(combinations(range(5), 2), 2)]
    places = np.random.default_rng(seed_of(0)).permuted(np.tile(np.arange(30), (40, 1)), axis=1)[:, :4].tolist()
    pairs += [(tuple(sorted(four[:2])), tuple(sorted(four[2:]))) for four in places]
    words = ["word"] * 30
    cases = [((a, b), _refuses(Sentence, words, None, [(*a, "X"), (*b, "X")])) for a, b in pairs]
    compare_calls(answer, "crosses", cases, "Draw both as lines under the words.")


def _refuses(check: Callable, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except TreebankError:
        return True
    return False


@check_of("total_1_4", "exercise 2")
def check_total_1_4(answer, notebook):
    """Check the cell (1, 4) of the student's CKY chart."""
    compare(
        answer,
        _best_sum(_of(notebook, chart_of).max(axis=2)[1:, 1:]),
        "total_1_4",
        "Its own score and the better of two splits.",
    )


@check_of("best_sum", "exercise 3")
def check_best_sum(answer, notebook):
    """Check a function of the best label's score of every span [n+1, n+1] that returns the sum of the best tree."""
    rng = np.random.default_rng(seed_of(0))
    charts = [rng.integers(-5, 6, (n + 1, n + 1)).astype(float) for n in (1, 2, 3, 4, 6, 8)]
    compare_calls(
        answer, "best_sum", [((chart,), _best_sum(chart)) for chart in charts], "Begin with one word, then two."
    )


def _best_sum(best: np.ndarray) -> float:
    """Return the sum of the best binary tree, if a span has only one possible label with this score."""
    chart = np.full((*best.shape, FIRST_REAL + 1), -1e3)
    chart[:, :, FIRST_REAL] = best
    return cky_batch([chart])[0].score


@check_of("is_tree", "exercise 4")
def check_is_tree(answer, notebook):
    """Check a function that returns whether heads are a tree with one root. Arcs may cross."""
    every = [*product(range(4), repeat=3), (2, 3, 4, 0), (2, 1, 0, 3), (3, 4, 0, 3), (3, 4, 2, 0)]
    every += map(tuple, np.random.default_rng(seed_of(1)).integers(0, 6, (60, 5)).tolist())
    cases = [((heads,), not _refuses(check_heads, heads, True)) for heads in every]
    compare_calls(answer, "is_tree", cases, "Walk from each word to its head, and count the words at the root.")


@check_of("best_arcs", "exercise 5")
def check_best_arcs(answer, notebook):
    """Check the (dependent, head) pairs of the best projective tree of the student's arc scores."""
    heads = decode(np.zeros((5, 5, FIRST_REAL + 1)), _of(notebook, arcs_of), lam=0.0).heads.tolist()
    compare(answer, set(enumerate(heads, 1)), "best_arcs", "One word hangs on 0, and no arcs cross.")


# ---------------------------------------------------------------- learning


def _with_points(chart: np.ndarray) -> np.ndarray:
    """Return the chart with 1 more for every label of every span that is not gold's label there."""
    more, gold = chart.copy(), {(i, j): k for i, j, k in GOLD}
    for span in combinations(range(len(chart)), 2):
        more[span] += np.arange(chart.shape[2]) != gold.get(span, EMPTY)
    return more


@check_of("with_points", "exercise 1")
def check_with_points(answer, notebook):
    """Check a function of (chart, gold) that adds a point for every possible mistake."""
    charts = [_of(notebook, chart_of), *map(chart_of, others("another"))]
    compare_calls(
        answer, "with_points", [((chart, GOLD), _with_points(chart)) for chart in charts], "Which label is gold's?"
    )


@check_of("margin", "exercise 2")
def check_margin(answer, notebook):
    """Check the margin loss of the student's chart."""
    compare(
        answer,
        _margin(_of(notebook, chart_of))[0],
        "margin",
        "The best tree with points, less the score of gold without points.",
    )


@check_of("gradient", "exercise 3")
def check_gradient(answer, notebook):
    """Check the gradient of the margin loss of the student's chart; 0 for the empty label."""
    compare(
        answer,
        _margin(_of(notebook, chart_of))[1],
        "gradient",
        "+1 for each constituent of the worst tree, -1 for gold's.",
    )


def _margin(chart: np.ndarray) -> tuple[float, np.ndarray]:
    scores = torch.tensor(chart)[None].requires_grad_()
    loss = span_margin_loss(scores, [len(WORDS)], [GOLD])
    loss.backward()
    gradient = scores.grad[0].numpy()
    gradient[:, :, EMPTY] = 0
    return loss.item(), gradient


@check_of("arc_gradient", "exercise 4")
def check_arc_gradient(answer, notebook):
    """Check a function of (scores, gold) that returns the gradient of - log p(gold head) for one word."""
    cases = []
    for size in (2, 4, 7):
        scores = torch.tensor(np.random.default_rng(seed_of(size)).normal(0, 2, size), requires_grad=True)
        arc_loss(scores.log_softmax(0)[None, None], torch.tensor([[size - 2]]), torch.tensor([[True]])).backward()
        cases.append(((scores.detach().numpy(), size - 2), scores.grad))
    compare_calls(answer, "arc_gradient", cases, "Test it with finite differences.")


# ---------------------------------------------------------------- heads


def _of_one_head(notebook: Mapping[str, Any], column: str) -> list[tuple[tuple, float]]:
    """Return the cases of a function of (tops, label): the labels that have one top head alone."""
    cases = []
    for tops, table in (_of(notebook, _shares_of), *map(_shares_of, others("another"))):
        first = table.groupby("label", sort=False)["led"]
        clear = [label for label, led in first if (led == led.max()).sum() == 1]
        shares = table.groupby("label", sort=False)[column].first()
        cases += [((tops, label), float(shares[label])) for label in clear[:5]]
    return cases


@check_of("share", "exercise 1")
def check_share(answer, notebook):
    """Check a function of (tops, label) that returns the percent of the label's constituents that its top head leads."""
    compare_calls(answer, "share", _of_one_head(notebook, "share"), "Divide by the constituents of this label.")


@check_of("lift", "exercise 2")
def check_lift(answer, notebook):
    """Check a function of (tops, label) that returns the share of the label's top head, divided by its share of all."""
    compare_calls(
        answer, "lift", _of_one_head(notebook, "lift"), "Divide two shares: of the label, and of all constituents."
    )


def _equal(attention: torch.Tensor) -> torch.Tensor:
    return (attention > 0) / (attention > 0).sum(-1, keepdim=True)


@check_of("uniform", "exercise 3")
def check_uniform(answer, notebook):
    """Check a function that gives every word with attention the same attention."""
    cases = []
    for heads, words, padding in ((1, 4, 0), (3, 5, 2)):
        attention = torch.rand(heads, words, generator=torch.Generator().manual_seed(seed_of(words))).softmax(-1)
        attention = F.pad(attention, (0, padding))
        cases.append(((attention,), _equal(attention)))
    compare_calls(answer, "uniform", cases, "Each row sums to 1 over its words; other places keep 0.")


@check_of("f1_lost", "exercise 4")
def check_f1_lost(answer, notebook):
    """Check how many points of F1 the parser loses on the student's sentences with uniform attention."""
    compare(answer, _of(notebook, _f1_lost), "f1_lost", "The F1 as trained less the F1 with uniform attention.")


@cache
def _f1_lost(student: str) -> float:
    parser, gold, f1 = lalkit.load("en-news"), sentences_of(student), []
    for change in ({}, {"label_attention.attention": _equal}):
        with parser.patched(change):
            parses = [result.sentence for result in parser.parse_all(gold)]
        f1.append(evaluate(gold, parses).summary()["f1"])
    return f1[0] - f1[1]


# ---------------------------------------------------------------- explaining


@check_of("relabelled", "exercise 1")
def check_relabelled(answer, notebook):
    """Check a function of (gold, parse) that returns the spans with another label."""
    cases = []
    for gold, parse in (_of(notebook, trees_of), *map(trees_of, others("another", "a third"))):
        table = errors([gold], [parse])
        rows = table.loc[table["class"] == "relabelled", ["start", "end", "gold_label", "label"]]
        cases.append(
            ((gold, parse), {(int(a), int(b), there, here) for a, b, there, here in rows.itertuples(index=False)})
        )
    compare_calls(answer, "relabelled", cases, "Same words, another label: (start, end, gold, parse).")


@check_of("words_lead", "exercise 2")
def check_words_lead(answer, notebook):
    """Check by how much the words of a constituent put its label before the second one."""
    terms = _of(notebook, terms_of)
    sums = terms[terms["term"] == "word"].groupby("role")["value"].sum()
    compare(
        answer, float(sums["parse"] - sums["second"]), "words_lead", "Only rows with the term word: parse less second."
    )


@check_of("needed", "exercise 3")
def check_needed(answer, notebook):
    """Check a function of (weights, values) that returns how many words are erased until the decision changes."""
    cases = []
    for weights, values in (_of(notebook, text_of), *(text_of(*others("another"), size) for size in range(3, 11))):
        given = torch.tensor(weights)[None, None, None], torch.tensor(values)[None, None, :, None]
        view = linear_view(*given, torch.tensor([[1.0, -1.0]], dtype=torch.float64))
        cases.append(((weights, values), round(erasure_flip(view).fraction.item() * len(weights))))
    compare_calls(answer, "needed", cases, "Erase in the order of the weights until the sign changes.")


@check_of("tvd", "exercise 4")
def check_tvd(answer, notebook):
    """Check a function of two lists of probabilities that returns their total variation distance."""
    pairs = [np.random.default_rng(seed_of(size)).dirichlet(np.ones(size), 2) for size in (2, 3, 5)]
    compare_calls(
        answer,
        "tvd",
        [((p, q), total_variation(torch.tensor(p), torch.tensor(q)).item()) for p, q in pairs],
        "Half of the sum of the absolute differences.",
    )
