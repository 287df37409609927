"""Calls of `load`, of `parse` and of the methods of a result: what has one meaning is accepted, the rest is refused.

The process around a parser stays as it was, and results are explained only by the network that parsed.
"""

import copy
import inspect
import pickle
import re
import subprocess
import sys
from contextlib import contextmanager
from itertools import product, repeat
from pathlib import Path
from types import FunctionType, MethodType

import numpy as np
import pandas as pd
import pytest
import torch

import lalkit
from lalkit.chart.constraints import ArcItem, SpanItem, TagItem
from lalkit.errors import hints_of, shown
from lalkit.treebank.tree import Sentence
from tests.hostile.refusals import refused

WORDS = ("One", "two", ".")
SENTENCE = Sentence(WORDS)
TEXTS = ["One two.", "Three.", "It works , does n't it ?"]
NAN, HUGE = float("nan"), 10**5000
NO_CONSTRAINTS = [
    None, 5, b"NP(1,2)", ("NP", 1, 2), [], "", "NP", "NP(1,2", f"NP(1,{'9' * 5000})", f"{'9' * 5000}->1", f"{'9' * 5000}_NN",
    SpanItem("NP", 1, HUGE), ArcItem(None, 1), SpanItem("NP", 2, 1), TagItem(9, "NN"),
]  # fmt: skip

SENTENCES = {
    "text": "One two.", "text of numpy": np.str_("One two."), "list": list(WORDS), "tuple": WORDS, "Sentence": SENTENCE,
    "generator": (word for word in WORDS), "map": map(str, WORDS), "array": np.array(WORDS),
    "array of objects": np.array(WORDS, dtype=object), "Series": pd.Series(WORDS), "Index": pd.Index(WORDS),
    "Series with another index": pd.Series(WORDS, index=[7, 8, 9]), "keys of a dict": dict.fromkeys(WORDS).keys(),
    "Series of pandas strings": pd.Series(WORDS, dtype="string"), "words of numpy": [np.str_(word) for word in WORDS],
}  # fmt: skip
NO_SENTENCES = [
    {"One"}, range(3), [None], ["One", NAN], [b"One"],
    [["One", "two"]], [SENTENCE], np.array([1, 2]), np.array([]), np.array([WORDS, WORDS]), torch.ones(2),
    pd.Series([], dtype=object), pd.Series(["One", pd.NA], dtype="string"), pd.DataFrame({"words": WORDS}), iter(()), [],
    "", " \t\n ", ["One", ""], ["One two"], ["One\n"], "a\0b", "\ud800",
]  # fmt: skip
MANY = {
    "list": (["One.", "Two three."], 2), "nothing": ([], 0), "generator": ((text for text in ("One.", "Two.")), 2),
    "array": (np.array(["One.", "Two."]), 2), "Series": (pd.Series(["One.", "Two."], dtype="string"), 2),
    "texts, words and Sentences": (["One.", ["Two"], SENTENCE], 3), "the same sentence 30 times": (["One."] * 30, 30),
    "50,000 points": (["." * 50_000], 1),
}  # fmt: skip
NOT_MANY = [
    ("Yes", "texts"), (SENTENCE, "texts"), ({"One."}, "set"),
    (pd.DataFrame({"(": ["One.", "\u2066"]}), "DataFrame"), (["One.", NAN], "sentence 2: there is"), (["One.", 3], "in 3"),
    ([b"One.", "Two."], "sentence 1"),
    (["One.", "Two.", " "], "sentence 3"), (["One.", NAN], 'errors="skip"'),
    (pd.Series(["One.", None], index=["a", "b"]), "sentence 2"),
    (repeat("One."), "texts did not end"), ([repeat("One")], "words did not end"), (map(int, ["One"]), "texts cannot be read"),
]  # fmt: skip
NO_PLACES = [[0], "0", 1.5, None, slice("a", None), slice(0, 1, 1.5)]  # of a sentence in a treebank
NAMES = [  # of parsers: (name, the place that the error names)
    ("", ""), ("en-nwes", "Did you mean en-news?"), (Path(__file__), "test_calls.py"),
    (Path(__file__).parent, "model.json"), ("../sample", "sample"), ("en\0news", "en"), ("\ud800", ""), ("x" * 5000, "xxx"),
    ("hf:", "hf:"), ("hf:a/b/c", "hf:a/b/c"), ("hf:someone/en-x", "hf:someone/en-x"), ("../models/en", "en"),
    ("https://example.org/parser", "https://example.org/parser"),
]  # fmt: skip
OTHER = Sentence(("a",), ("X",), (), (0,))
PARSED = Sentence(WORDS, ("X",) * 3, ((0, 3, "S"),), (0, 1, 1), ("x",) * 3)
# Arguments that are refused, by the method: of a result, of its parser, and of an explanation.
OF_RESULTS = {
    "explain": [{"label": "ZZ"}, {"label": ""}, {"against": "ZZ"}],
    "explore": [{"beside": OTHER}, {"beside": SENTENCE}],
    "attachments": [{"phrase": 0}, {"phrase": HUGE}, {"phrase": (1, HUGE)}],
    "alternatives": [{"k": 0}, {"k": HUGE}],
}
OF_EXPLANATIONS = {
    "text": [{"top": 0}, {"top": -1}, {"top": HUGE}], "of": [{"label": "ZZ"}], "attention": [{"label": "ZZ"}],
    "top": [{"count": 0}, {"count": HUGE}, {"norm": "most"}],
}  # fmt: skip
OF_PARSERS = {
    "errors": [{"gold": ["One two."]}], "view": [{"texts": []}],
    "vectors": [{"texts": "One.", "at": "span", "layer": "embeddings"}, {"texts": "One.", "layer": "none"}],
    "explain": [
        {"texts": []}, {"texts": [None]}, {"texts": "One.", "label": "ZZ"}, {"texts": "One.", "gold": True},
        {"texts": "One.", "against": "ZZ"}, {"texts": [SENTENCE], "temperature": 0},
    ],
    "parse": [
        *({"text": "One two.", "temperature": number} for number in (NAN, "1", 0, 1e-9, 1e9, HUGE, (1.0, HUGE), (1.0,))),
        *({"text": "One two.", "forbid": [item]} for item in NO_CONSTRAINTS), {"text": "One two.", "form": "tokns"},
        {"text": "It rained. We stayed in."}, {"text": "So? No!", "form": "text"}, {"text": "It_PRP so_FOO", "form": "tagged"},
        {"text": "One two.", "require": ["NP(1,1)"], "temperature": 1.0},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def trees(parser):
    return [result.prediction for result in parser.parse_all(TEXTS)]


def test_what_is_read_as_sentences(parser, subtests):
    for name, text in SENTENCES.items():
        with subtests.test(name):
            assert parser.parse(text).sentence.words == WORDS
    for name, (texts, count) in MANY.items():
        with subtests.test(name):
            assert len(parser.parse_all(texts)) == count


def test_what_is_refused(parser, subtests):
    rows = [(parser.parse, (value,), "sentence 1") for value in NO_SENTENCES]
    rows += [(parser.parse_all, (texts,), place) for texts, place in NOT_MANY]
    rows += [(parser.parse_text, (text,), "") for text in ("", " \n", "\u00a0\u2003")]
    rows += [(lalkit.load, (name,), place) for name, place in NAMES]
    one = parser.parse("One.")
    rows += [(lalkit.Treebank("a", "", (SENTENCE,)).__getitem__, (place,), "index") for place in NO_PLACES]
    sides = [(None, None), (one, "One two."), (["One"], ["Two"])]
    sides += [(one, parser.parse("Two.")), ([one], [one] * 2), ([], [])]
    rows += [(lalkit.compare, pair, "") for pair in sides]
    for call, arguments, place in rows:
        with subtests.test(f"{call.__name__} {arguments}"[:80]), refused(place):
            call(*arguments)


# A value of a wrong type, and the types of arguments that have it, as they stand in hints.
WRONG = [
    (None, "None|Optional"), (5, "int|float"), (1.5, "float"), (HUGE, "int|float"), (True, "bool"), (b"x", ""), ({"a": 1}, ""),
    ("\0", "str"), ([5], "Iterable|list"), (("NP", 1, 1), "Iterable"), (1j, ""), (object(), ""),
]  # fmt: skip
GOOD = {  # arguments that must be given
    "text": "One.", "texts": ["One."], "k": 1, "seed": 1, "phrase": 1, "path": "x.ptb", "folder": "x", "name": "sample",
    "repository": "a/b", "pattern": "NP", "count": 1, "gold": [PARSED], "heads": [0], "points": {}, "split": "dev",
    "device": "cpu", "first": [], "second": [], "sentence": SENTENCE, "sentences": [SENTENCE],
}  # fmt: skip
NOT_TYPED, FUNCTIONS = {"result"}, (FunctionType, MethodType)  # the first takes what only lalkit makes


def public(parser):
    """Yield every public function and method."""
    yield from (lalkit.load, lalkit.compare)
    for thing in (parser, parser.parse("One."), parser.parse("One.").explore(), lalkit.Treebank.load("sample", "dev")):
        kinds = {name: getattr(type(thing), name) for name in dir(type(thing)) if name[0] != "_"}
        names = (name for name, kind in kinds.items() if isinstance(kind, FUNCTIONS) and name not in NOT_TYPED)
        yield from (getattr(thing, name) for name in names)


def test_wrong_types_and_unknown_options_of_every_call(parser, subtests):
    count = 0
    for call in public(parser):
        parameters = inspect.signature(call).parameters.values()
        needed = {p.name: GOOD[p.name] for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
        for name, hint in hints_of(call).items():
            for value, types in WRONG:
                allowed = "Any" in str(hint) or (types and re.search(rf"\b({types})\b", str(hint)))
                if not allowed or (value == "\0" and "Path" in str(hint)):
                    count += 1
                    with subtests.test(f"{call.__qualname__} {name} {type(value)}"), refused(call.__qualname__, name):
                        call(**{**needed, name: value})
        with subtests.test(f"{call.__qualname__} without such an option"), refused("nonsense"):
            call(**needed, nonsense=3)
    assert count > 500
    with refused("Did you mean forbid?"):
        parser.parse("One.", fobid=["NP(1,1)"])


def test_words_of_a_batch_and_threads(parser, subtests):
    plain = parser.parse_all(TEXTS)
    for options in ({"batch_words": 1}, {"batch_words": np.int64(40)}, {"threads": 64}, {"progress": True}):
        with subtests.test(repr(options)):
            for one, other in zip(parser.parse_all(TEXTS, **options), plain, strict=True):
                assert one.sentence == other.sentence and one.score == pytest.approx(other.score, rel=1e-5)
    for name, value in product(("batch_words", "threads"), (0, 1.5, NAN, "2", [2])):
        with subtests.test(f"{name} {value!r}"), refused(name, str(value)):
            parser.parse_all(TEXTS, **{name: value})


def test_an_iterator_counts_in_every_batch_and_a_block_every_time(parser, subtests):
    changes = {
        "words": lambda items: parser.patched({"words": torch.zeros_like}, words=items), "heads": parser.without,
        "heads of a patch": lambda items: parser.patched({"label_attention.contexts": torch.zeros_like}, heads=items),
    }  # fmt: skip
    for name, change in changes.items():
        block, left, scores = change([1]), iter([1]), []
        stream = type("Stream", (), {"__iter__": lambda _, left=left: left})()  # without a length
        for entered in (block, block, change(iter([1])), change(stream)):
            with entered:
                scores.append([result.score for result in parser.parse_all(TEXTS, batch_words=1)])
        with subtests.test(name):
            assert scores == scores[:1] * 4


@pytest.mark.parametrize("layer", ["paper", "span"])
def test_methods_of_results(parser, tiny_span_parser, layer, subtests):
    result = (parser if layer == "paper" else lalkit.load(tiny_span_parser)).parse("One two.")
    tables = [(result, OF_RESULTS), (result.parser, OF_PARSERS), (result.explain(), OF_EXPLANATIONS)]
    for thing, table in tables:
        for name, rows in table.items():
            for options in rows:
                with subtests.test(f"{name} {shown(options)}"), refused():
                    getattr(thing, name)(**options)
    for head in (999, -1, 1.5, "two", NAN, None, HUGE):
        with subtests.test(f"without head {shown(head)}"), refused(), result.parser.without(heads=[0, head]):
            pass
    tensors = [torch.ones(1, device="meta"), torch.ones(1, dtype=torch.complex64), torch.ones(2)]
    given = [None, "abc", {}, NAN, object(), torch.ones(1).to_sparse(), *tensors]
    changes = [*given, *(lambda _, value=value: value for value in given), lambda _: next(iter([]))]
    patches = [{"points": {"bogus": 0}}, {"points": {"arcs": 0}, "heads": 1}, {"points": "arcs"}]
    changes += [result.parser.parse, lambda _: result.parser.parse("One.")]
    patches += [{"points": {"words": change}} for change in changes]
    for options in patches:
        with subtests.test(f"points {shown(options)}"), refused(), result.parser.patched(**options):
            result.parser.parse("One two.")
    with refused("'words' raised ZeroDivisionError"), result.parser.patched({"words": lambda _: 1 / 0}):
        result.parser.parse("One two.")


# ---------------------------------------------------------------- the process around a parser


def state_of_the_process():
    return {
        "torch's random numbers": torch.random.get_rng_state().tolist(),
        "NumPy's random numbers": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "dtype and device": (torch.get_default_dtype(), torch.get_default_device()),
        "modes of gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "threads": torch.get_num_threads(), "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }  # fmt: skip


@contextmanager
def default(dtype=torch.float32, device=None):
    """Give the process another default dtype or device."""
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def test_a_parser_and_its_surroundings_leave_each_other_alone(tiny_parser, parser, trees, subtests):
    surroundings = {
        "float64": default(torch.float64), "float16": default(torch.float16), "the meta device": default(device="meta"),
        "no_grad": torch.no_grad(), "inference_mode": torch.inference_mode(), "autocast": torch.autocast("cpu", torch.bfloat16),
    }  # fmt: skip
    for name, around in surroundings.items():
        with subtests.test(name):
            with around:
                before = state_of_the_process()
                loaded, results = lalkit.load(tiny_parser), parser.parse_all(TEXTS)
                assert state_of_the_process() == before
            assert [result.prediction for result in results] == trees
            assert [result.prediction for result in loaded.parse_all(TEXTS)] == trees


@pytest.mark.slow
def test_the_first_load_and_the_first_parse_leave_no_trace(alarm):
    """Not on standard error, where a bar of the encoder may show, and not in Python's random numbers."""
    alarm(300)
    program = "import random, lalkit; s = random.getstate(); lalkit.load('en-news').parse('One.'); print(s == random.getstate())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def pickled(result):
    data = pickle.dumps(result)
    assert len(data) < 50_000, "without the parser"
    return pickle.loads(pickle.dumps(pickle.loads(data)))


def changed(result):
    """Change a weight through `.data`, which torch does not count."""
    result.parser.network.spans.second.weight.data.neg_()
    return result


def zeroed(result):
    """Return the result of the same sentence, parsed inside a control."""
    with result.parser.network.label_attention.hooked(contexts=torch.zeros_like):
        return result.parser.parse(result.sentence)


def test_a_result_is_explained_only_by_the_network_that_parsed(tiny_parser, subtests):
    accepted = {
        "as parsed": lambda result: result, "a control came and went": lambda result: (zeroed(result), result)[1],
        "copied": copy.copy, "copied with all": copy.deepcopy,
    }  # fmt: skip
    # Torch counts it
    again = torch.no_grad()(lambda result: (result.parser.network.spans.second.weight.mul_(1), result)[1])
    used = {"pickled": lambda result: pickled((result.readings, result.explain(), result)[-1])}
    used |= {"inside a control": zeroed, "changed": changed, "written again": again}
    for name, use in (accepted | used).items():
        with subtests.test(name):
            result = use(lalkit.load(tiny_parser).parse("One two three."))
            if name in accepted:
                assert result.explain().parses == [result.sentence]
            else:
                with refused():
                    result.explain()
