"""Parsing in bf16: what it changes, and what is refused."""

import pytest
import torch

import lalkit
from lalkit.corpus import Job, Parts, from_arguments, parse
from lalkit.errors import LalkitError, ParameterError
from lalkit.network import model as precision
from lalkit.network.model import resolve_precision as resolve
from lalkit.treebank.tree import Sentence


@pytest.fixture(scope="module")
def parser():
    return lalkit.load("en-news-span")


@pytest.fixture(scope="module")
def sentences(sample):
    return [Sentence(s.words, id=str(i)) for i, s in enumerate(sample[:12])]


def test_bf16_rounds_every_product(parser, sentences, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)  # slower here, but the same numbers
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    before = parser.parse(sentences[0])
    low, auto = (parser.parse(sentences[0], precision=name) for name in ("bf16", "auto"))
    high = parser.parse(sentences[0])
    assert {p.dtype for p in parser.network.parameters()} == {torch.float32} and high.score == before.score
    assert auto.score == low.score and low.prediction.precision == "bf16" and high.prediction.precision == "fp32"
    assert high.score != low.score == pytest.approx(high.score, rel=0.05, abs=0.5)
    assert low.sentence.heads == high.sentence.heads


def test_explanations_and_probabilities_are_of_fp32(parser, sentences, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    result = parser.parse(sentences[0], precision="bf16")
    for ask in (result.explain, lambda: result.terms, result.confidence, result.explore, result.alternatives):
        with pytest.raises(LalkitError, match="this was parsed in bf16"):
            ask()
    with pytest.raises(ParameterError, match="computed in fp32, not in bf16"):
        parser.parse(sentences[0], require=["NP(1,2)"], precision="bf16")


@pytest.mark.parametrize(("name", "exact"), [("fp16", False), ("bf16", False), ("bf16", True)])
def test_a_precision_that_cannot_be_is_refused(name, exact):
    with pytest.raises(ParameterError):
        resolve(name, "cpu", exact)


def test_auto_is_fp32_without_bf16_and_for_probabilities(monkeypatch):
    assert resolve("auto", "cpu") == "fp32"
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_fp16": True, "amx_tile": False})
    assert resolve("auto", "cpu") == "fp32" and resolve("bf16", "cpu") == "bf16"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_fp16": True, "amx_tile": True})
    assert resolve("auto", "cpu") == "bf16" and resolve("auto", "cpu", exact=True) == "fp32"


def test_a_parse_is_not_resumed_in_another_precision(tiny_parser, tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "join", lambda *parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            parse(Job(tiny_parser, precision="auto"), from_arguments(["It works."]), tmp_path / "out")
    with pytest.raises(LalkitError, match="another run"):
        parse(Job(tiny_parser, precision="fp32"), from_arguments(["It works."]), tmp_path / "out")
    parse(Job(tiny_parser, precision="bf16"), from_arguments(["It works."]), tmp_path / "out")
