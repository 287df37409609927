"""Parsing in bf16: what it changes, and what is refused."""

import pytest
import torch

import lalkit
from lalkit.corpus import Job, open_lines, parse
from lalkit.errors import LalkitError, ParameterError, warn_once
from lalkit.network import model as precision
from lalkit.network.model import resolve_precision as resolve
from lalkit.treebank.tree import Sentence
from tests.command import logged


@pytest.fixture(scope="module")
def parser():
    return lalkit.load("en-news-span")


@pytest.fixture(scope="module")
def sentences(sample):
    return [Sentence(s.words, id=str(i)) for i, s in enumerate(sample[:12])]


def test_bf16_rounds_every_product(parser, sentences, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)  # slower here, but the same numbers
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    monkeypatch.setattr(precision, "MANY_WORDS", len(sentences[0]) - 1)
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
    for ask in (result.explain, result.confidence, result.explore, result.alternatives):
        with pytest.raises(LalkitError, match="this was parsed in bf16"):
            ask()
    with pytest.raises(ParameterError, match="computed in fp32, not in bf16"):
        parser.parse(sentences[0], require=["NP(1,2)"], precision="bf16")


@pytest.mark.parametrize(("name", "exact"), [("fp16", False), ("bf16", False), ("bf16", True)])
def test_a_precision_that_cannot_be_is_refused(name, exact):
    pytest.raises(ParameterError, resolve, name, "cpu", exact)


def test_auto_is_bf16_for_many_words_where_it_is_fast_and_says_so_once(monkeypatch):
    warn_once.cache_clear()
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    with logged() as messages:
        for amx in (False, True):
            monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_fp16": True, "amx_tile": amx})  # noqa: B023
            found = [resolve("auto", "cpu", exact, words) for exact in (False, True) for words in (0, 10_000, 10_001)]
            assert found == ["fp32", "fp32", "bf16" if amx else "fp32", "fp32", "fp32", "fp32"]
            assert resolve("bf16", "cpu") == "bf16" and len(messages) == amx
        resolve("auto", "cpu", words=10_001)
    assert len(messages) == 1 and "bf16" in messages[0]


@pytest.mark.parametrize(("asked", "most", "found"), [("auto", 0, "bf16"), ("auto", 1, "fp32"), ("fp32", 0, "fp32")])
def test_a_file_is_parsed_in_bf16_only_if_auto_may_and_it_is_large(
    asked, most, found, tiny_parser, tmp_path, monkeypatch
):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(precision, "bf16_is_fast", lambda device: True)
    monkeypatch.setattr(precision, "MANY_WORDS", most)
    (tmp_path / "text").write_text("It works.\n")  # about as long as one word
    with open_lines(tmp_path / "text") as lines, logged() as messages:
        parse(Job(tiny_parser, precision=asked), lines, tmp_path / "out")
    assert f"words in {found}" in messages[-1]
