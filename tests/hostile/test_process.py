"""The process around a parser: its state is left as it was, and parsers and results travel between processes and threads."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import lalkit
from lalkit.errors import LalkitError
from lalkit.treebank.tree import Sentence
from tests.hostile.table import case, refused, table

TEXTS = ["One two.", "Three.", "It works , does n't it ?"]


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


@pytest.fixture(scope="module")
def trees(parser):
    return [result.prediction for result in parser.parse_all(TEXTS)]


@table(
    ("state", "use"),
    [
        case(f"{name} after {verb}", state, use)
        for name, state in (
            ("torch's random numbers", torch.random.get_rng_state),
            ("NumPy's random numbers", lambda: np.random.get_state()[1].tolist()),  # noqa: NPY002
            ("the default dtype", torch.get_default_dtype),
            ("the default device", torch.get_default_device),
            ("grad mode", torch.is_grad_enabled),
            ("inference mode", torch.is_inference_mode_enabled),
            ("the number of threads", torch.get_num_threads),
            ("deterministic algorithms", torch.are_deterministic_algorithms_enabled),
        )
        for verb, use in (
            ("load", lambda folder: lalkit.load(folder)),
            ("parse", lambda folder: folder.parse("One two.")),
        )
    ],
)
def test_the_state_of_the_process(tiny_parser, parser, request, state, use):
    parser.parse("One two.")  # the first parse imports more than the others
    before = state()
    use(parser if "parse" in request.node.callspec.id else tiny_parser)
    after = state()
    assert torch.equal(before, after) if isinstance(before, torch.Tensor) else before == after


class Default:
    """The process has another default dtype or device."""

    def __init__(self, dtype=None, device=None):
        self.dtype, self.device = dtype, device

    def __enter__(self):
        if self.dtype:
            torch.set_default_dtype(self.dtype)
        if self.device:
            torch.set_default_device(self.device)

    def __exit__(self, *_):
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


SURROUNDINGS = (
    ("float64", lambda: Default(torch.float64)),
    ("float16", lambda: Default(torch.float16)),
    ("bfloat16", lambda: Default(torch.bfloat16)),
    ("the meta device", lambda: Default(device="meta")),
    ("no_grad", torch.no_grad),
    ("enable_grad", torch.enable_grad),
    ("inference_mode", torch.inference_mode),
    ("autocast", lambda: torch.autocast("cpu", torch.bfloat16)),
)


@table(("surroundings", "load"), [
    *(case(f"load in {name}", make, True) for name, make in SURROUNDINGS),
    *(case(f"parse in {name}", make, False) for name, make in SURROUNDINGS),
])  # fmt: skip
def test_trees_and_scores_in_other_surroundings(tiny_parser, parser, trees, surroundings, load):
    with surroundings():
        used = lalkit.load(tiny_parser) if load else parser
        found = None if load else used.parse_all(TEXTS)
    found = found or used.parse_all(TEXTS)
    assert [result.prediction for result in found] == trees


@table(
    "use",
    [
        case("a result is pickled", lambda parser: pickle.loads(pickle.dumps(parser.parse(TEXTS[0])))),
        case("a result is copied", lambda parser: copy.deepcopy(parser.parse(TEXTS[0]))),
        case("a result is copied flat", lambda parser: copy.copy(parser.parse(TEXTS[0]))),
        case("a parser is pickled", lambda parser: pickle.loads(pickle.dumps(parser)).parse(TEXTS[0])),
        case("a parser is copied", lambda parser: copy.deepcopy(parser).parse(TEXTS[0])),
        case("a result is used first", lambda parser: pickle.loads(pickle.dumps(used(parser.parse(TEXTS[0]))))),
        case("a prediction is pickled", lambda parser: type(parser.parse(TEXTS[0]))(
            pickle.loads(pickle.dumps(parser.parse(TEXTS[0]).prediction)))),
    ],
)  # fmt: skip
def test_travelling(parser, use):
    result = use(parser)
    assert result.prediction == parser.parse(TEXTS[0]).prediction and result.to_ptb()


def used(result):
    result.tree, result.dependencies, result.look  # noqa: B018
    return result


@pytest.mark.slow
def test_a_pool_of_processes(parser, alarm):
    """A parser goes there, and a result goes there and back."""
    alarm(300)
    alone = parser.parse(TEXTS[0])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = [*pool.map(copy.copy, [alone]), *pool.map(parser.parse, TEXTS[:1])]
    assert [result.sentence for result in found] == [alone.sentence] * 2
    assert [result.score for result in found] == pytest.approx([alone.score] * 2, rel=1e-5)


@pytest.mark.slow
def test_eight_threads_parse_as_one(parser, trees):
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(parser.parse_all, [TEXTS] * 24):
            assert [result.prediction for result in found] == trees


@pytest.mark.slow
def test_a_mode_that_changes_while_sentences_are_parsed(tiny_parser, trees):
    """Somebody calls train() and eval() all the time: the trees are the same."""
    parser, stop = lalkit.load(tiny_parser), threading.Event()

    def change():
        while not stop.is_set():
            parser.network.train()
            parser.network.eval()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        results = [parser.parse_all(TEXTS) for _ in range(30)]
    finally:
        stop.set()
        thread.join()
    assert all([result.prediction for result in found] == trees for found in results)


@pytest.mark.slow
def test_the_mode_of_a_network_stays_as_it_was(tiny_parser):
    parser = lalkit.load(tiny_parser)
    for mode in (True, False):
        parser.network.train(mode)
        parser.parse("One two.")
        assert parser.network.training is mode


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["look", "explain", "contributions", "attention", "explore"])
def test_an_explanation_is_of_the_network_that_parsed(tiny_parser, ask):
    """A result that was parsed inside a changed network: explained later, it is refused or explained as it was."""
    parser = lalkit.load(tiny_parser)
    sentence = Sentence(("One", "two", "three", "."))
    weights = {name: p.detach().clone() for name, p in parser.network.named_parameters()}
    with torch.no_grad():
        for p in parser.network.parameters():
            p.add_(torch.linspace(-0.5, 0.5, p.numel()).view_as(p))
    result = parser.parse(sentence)
    inside = parser.look([sentence])[0]
    with torch.no_grad():
        for name, p in parser.network.named_parameters():
            p.copy_(weights[name])
    refusal = None
    try:
        getattr(result, ask) if ask == "look" else getattr(result, ask)()
    except LalkitError as error:
        refusal = error
    assert refusal.remedy if refusal else result.look.prediction == inside.prediction


def zeroed(result):
    """Return the result of the same sentence, parsed inside a control."""
    with result.parser.network.label_attention.hooked(contexts=torch.zeros_like):
        return result.parser.parse(result.sentence)


def changed(result):
    with torch.no_grad():
        next(result.parser.network.parameters()).add_(1)
    return result


def moved(result):
    """Change a weight through `.data`, which torch does not count."""
    result.parser.network.spans.second.weight.data.neg_()
    return result


@table(
    ("use", "accepted"),
    [
        case("as parsed", lambda result: result, True),
        case("a control came and went", lambda result: (zeroed(result), result)[1], True),
        case("pickled", lambda result: pickle.loads(pickle.dumps(result)), True),
        case("copied", copy.deepcopy, True),
        case("pickled, then changed", lambda result: changed(pickle.loads(pickle.dumps(result))), False),
        case("changed, then pickled", lambda result: pickle.loads(pickle.dumps(changed(result))), False),
        case("changed, then copied", lambda result: copy.deepcopy(changed(result)), False),
        case("parsed inside a control", zeroed, False),
        case("changed through .data", moved, False),
    ],
    sample=False,
)
def test_a_result_is_explained_only_by_the_network_that_parsed(tiny_parser, use, accepted):
    result = use(lalkit.load(tiny_parser).parse("One two three."))
    if accepted:
        assert result.look.prediction == result.prediction
        return
    with refused("the network has changed"):
        result.explain()


@pytest.mark.slow
def test_a_mode_set_during_a_parse_counts_afterwards(tiny_parser):
    network = lalkit.load(tiny_parser).network
    with network.parsing():
        with network.parsing():
            network.train()
        assert not network.training and not network.encoder.training
    assert network.training and network.encoder.training


@pytest.mark.slow
def test_the_first_load_and_the_first_parse_leave_no_trace(alarm):
    """Not on standard error, where a bar of the encoder may show, and not in Python's random numbers."""
    alarm(300)
    program = """
import random, lalkit
before = random.getstate()
lalkit.load('en-news').parse('One two.')
print(before == random.getstate())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
