"""Calls of `load`, of `parse` and of the methods of a result: what has one meaning is accepted, the rest is refused.

The process around a parser stays as it was, and results are explained only by the network that parsed.
"""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import lalkit
from lalkit.treebank.tree import Sentence
from tests.hostile.refusals import refused

WORDS = ("One", "two", ".")
SENTENCE = Sentence(WORDS)
TEXTS = ["One two.", "Three.", "It works , does n't it ?"]
NAN = float("nan")

SENTENCES = {
    "text": "One two.", "text of numpy": np.str_("One two."), "list": list(WORDS), "tuple": WORDS, "Sentence": SENTENCE,
    "generator": (word for word in WORDS), "map": map(str, WORDS), "array": np.array(WORDS),
    "array of objects": np.array(WORDS, dtype=object), "Series": pd.Series(WORDS), "Index": pd.Index(WORDS),
    "Series with another index": pd.Series(WORDS, index=[7, 8, 9]), "keys of a dict": dict.fromkeys(WORDS).keys(),
    "Series of pandas strings": pd.Series(WORDS, dtype="string"), "words of numpy": [np.str_(word) for word in WORDS],
}  # fmt: skip
NO_SENTENCES = [
    None, 3, NAN, True, b"One two.", 1j, len, Path("One"), {"One"}, {"One": 1}, range(3), [None], ["One", NAN], [b"One"],
    [["One", "two"]], [SENTENCE], np.array([1, 2]), np.array([]), np.array([WORDS, WORDS]), torch.ones(2),
    pd.Series([], dtype=object), pd.Series(["One", pd.NA], dtype="string"), pd.DataFrame({"words": WORDS}), iter(()), [],
    "", " \t\n ", ["One", ""], ["One two"], ["One\n"], "a\0b", "\ud800",
]  # fmt: skip
MANY = {
    "list": (["One.", "Two three."], 2), "nothing": ([], 0), "generator": ((text for text in ("One.", "Two.")), 2),
    "array": (np.array(["One.", "Two."]), 2), "Series": (pd.Series(["One.", "Two."], dtype="string"), 2),
    "texts, words and Sentences": (["One.", ["Two"], SENTENCE], 3), "the same sentence 30 times": (["One."] * 30, 30),
}  # fmt: skip
NOT_MANY = [
    ("Yes", "parse"), (SENTENCE, "parse"), (None, "None"), (b"One", "bytes"), ({"One."}, "set"),
    (pd.DataFrame({"text": ["One."]}), "DataFrame"), (["One.", NAN], "sentence 2"), ([b"One.", "Two."], "sentence 1"),
    (["One.", "Two.", " "], "sentence 3"), (pd.Series(["One.", None], index=["a", "b"]), "sentence 2"),
]  # fmt: skip
NAMES = [  # of parsers: (name, the place that the error names)
    (None, "None"), (3, "int"), ("", ""), (b"en-news", "bytes"), ("en-nwes", "en-nwes"), (Path(__file__), "test_calls.py"),
    (Path(__file__).parent, "model.json"), ("../sample", "sample"), ("en\0news", "en"), ("\ud800", ""), ("x" * 5000, "xxx"),
    ("hf:", "hf:"), ("hf:a/b/c", "hf:a/b/c"), ("https://example.org/parser", "https://example.org/parser"),
]  # fmt: skip
OTHER = Sentence(("a",), ("X",), (), (0,))
# Arguments that are refused, by the method: of a result, of its parser, and of its parser if the layer is the paper's.
OF_RESULTS = {
    "explain": [{"label": "ZZ"}, {"label": ""}, {"label": 3}, *({"top": top} for top in (0, -1, 1.5, "3", None))],
    "explore": [{"gold": 3}, {"gold": OTHER}, {"beside": 3}, {"beside": OTHER}],
}
OF_PARSERS = {
    "contributions": [{"texts": []}], "attention": [{"texts": []}, {"texts": "One two.", "label": 3}],
    "errors": [{"gold": ["One two."]}], "view": [{"texts": None}],
    "parse": [{"text": "One two.", "temperature": NAN}, {"text": "One two.", "temperature": "1"}],
}  # fmt: skip
OF_THE_PAPERS_LAYER = {
    "look": [{"texts": None}, {"texts": [None]}, {"texts": [SENTENCE], "temperature": 0}],
    "terms": [{"texts": [SENTENCE]}],
}


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


@pytest.fixture(scope="module")
def trees(parser):
    return [result.prediction for result in parser.parse_all(TEXTS)]


def test_sentences(parser, subtests):
    for name, text in SENTENCES.items():
        with subtests.test(name):
            assert parser.parse(text).sentence.words == WORDS
    for value in NO_SENTENCES:
        with subtests.test(repr(value)[:60]), refused("sentence 1"):
            parser.parse(value)
    for form in ("tokns", "RAW", None, 3, b"raw", ["raw"], ""):
        with subtests.test(f"form {form!r}"), refused("form", repr(form)):
            parser.parse("One two.", form)


def test_many_sentences(parser, subtests):
    for name, (texts, count) in MANY.items():
        with subtests.test(name):
            assert len(parser.parse_all(texts)) == count
    for texts, place in NOT_MANY:
        with subtests.test(repr(texts)[:60]), refused(place):
            parser.parse_all(texts)
    for text in (None, 3, b"One.", ["One."], "", " \n", "\u00a0\u2003"):
        with subtests.test(f"running text {text!r}"), refused():
            parser.parse_text(text)


def test_budget_and_threads(parser, subtests):
    plain = parser.parse_all(TEXTS)
    for options in ({"budget": 1}, {"budget": np.int64(40)}, {"threads": 64}):
        with subtests.test(repr(options)):
            for one, other in zip(parser.parse_all(TEXTS, **options), plain, strict=True):
                assert one.sentence == other.sentence and one.score == pytest.approx(other.score, rel=1e-5)
    for name in ("budget", "threads"):
        for value in (0, 1.5, NAN, "2", [2]):
            with subtests.test(f"{name} {value!r}"), refused(name, str(value)):
                parser.parse_all(TEXTS, **{name: value})


def test_names_of_parsers(subtests):
    for name, place in NAMES:
        with subtests.test(repr(name)[:60]), refused(place):
            lalkit.load(name)


@pytest.mark.parametrize("layer", ["paper", "span"])
def test_methods_of_results(parser, tiny_span_parser, layer, subtests):
    result = (parser if layer == "paper" else lalkit.load(tiny_span_parser)).parse("One two.")
    tables = [(result, OF_RESULTS), (result.parser, OF_PARSERS)]
    if layer == "paper":
        norms = [{"norm": "bogus"}, {"norm": None}, {"norm": 3}]
        tables += [(result.parser, OF_THE_PAPERS_LAYER), (result, {"explain": norms, "contributions": norms})]
    for thing, table in tables:
        for name, rows in table.items():
            for options in rows:
                with subtests.test(f"{name} {options}"[:80]), refused():
                    getattr(thing, name)(**options)
    for head in (999, -1, 1.5, "two", NAN, None):
        with subtests.test(f"without head {head!r}"), refused(), result.parser.without(heads=[0, head]):
            pass
    for sides in ((None, None), (result, "One two."), (["One"], ["Two"])):
        with subtests.test(f"comparing {sides}"[:60]), refused():
            lalkit.compare(*sides)


# ---------------------------------------------------------------- the process around a parser

STATES = {
    "torch's random numbers": lambda: torch.random.get_rng_state().tolist(),
    "NumPy's random numbers": lambda: np.random.get_state()[1].tolist(),  # noqa: NPY002
    "dtype and device": lambda: (torch.get_default_dtype(), torch.get_default_device()),
    "modes of gradients": lambda: (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
    "threads": torch.get_num_threads,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
}


def test_the_state_of_the_process_stays(tiny_parser, parser, subtests):
    parser.parse("One two.")  # the first parse imports more than the others
    for use in (lambda: lalkit.load(tiny_parser), lambda: parser.parse("One two.")):
        before = {name: state() for name, state in STATES.items()}
        use()
        for name, state in STATES.items():
            with subtests.test(name):
                assert state() == before[name]


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


def test_other_surroundings_change_no_tree_and_no_score(tiny_parser, parser, trees, subtests):
    surroundings = {
        "float64": lambda: default(torch.float64), "float16": lambda: default(torch.float16),
        "the meta device": lambda: default(device="meta"), "no_grad": torch.no_grad, "enable_grad": torch.enable_grad,
        "inference_mode": torch.inference_mode, "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    }  # fmt: skip
    for name, around in surroundings.items():
        with subtests.test(name):
            with around():
                loaded, results = lalkit.load(tiny_parser), parser.parse_all(TEXTS)
            assert [result.prediction for result in results] == trees
            assert [result.prediction for result in loaded.parse_all(TEXTS)] == trees


def test_parsers_and_results_are_copied_and_pickled(parser, subtests):
    used = parser.parse(TEXTS[0])
    used.tree, used.dependencies, used.look  # noqa: B018
    for carry in (copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
        for name, result in (("fresh", parser.parse(TEXTS[0])), ("used", used)):
            with subtests.test(f"{name} result"):
                assert carry(result).prediction == used.prediction and carry(result).to_ptb()
        with subtests.test("parser"):
            assert carry(parser).parse(TEXTS[0]).prediction == used.prediction


def test_threads_parse_as_one(parser, trees):
    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(parser.parse_all, [TEXTS] * 16):
            assert [result.prediction for result in results] == trees


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
        "pickled": lambda result: pickle.loads(pickle.dumps(result)), "copied": copy.deepcopy,
    }  # fmt: skip
    rejected = {
        "changed, then pickled": lambda result: pickle.loads(pickle.dumps(changed(result))),
        "parsed inside a control": zeroed, "changed": changed,
    }  # fmt: skip
    for name, use in (accepted | rejected).items():
        with subtests.test(name):
            result = use(lalkit.load(tiny_parser).parse("One two three."))
            if name in accepted:
                assert result.look.prediction == result.prediction
                continue
            for ask in ("explain", "contributions", "attention", "explore"):
                with refused():
                    getattr(result, ask)()


@pytest.mark.slow
def test_the_first_load_and_the_first_parse_leave_no_trace(alarm):
    """Not on standard error, where a bar of the encoder may show, and not in Python's random numbers."""
    alarm(300)
    program = "import random, lalkit; s = random.getstate(); lalkit.load('en-news').parse('One.'); print(s == random.getstate())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
