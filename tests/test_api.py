"""`load`, `parse`, and the forms of a result."""

import doctest
import inspect
import json
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest
import torch

import lalkit
from lalkit.errors import LalkitError, ModelError
from lalkit.evaluation.scores import evaluate
from lalkit.network.model import DEVICES
from lalkit.treebank import brackets, conllu
from lalkit.treebank.tree import Sentence


def test_one_result_many_forms(parser, tmp_path):
    result = parser.parse(["The", "end", "(", "came", ")", "."])
    assert brackets.parse_tree(result.to_ptb()).words() == ["The", "end", "-LRB-", "came", "-RRB-", "."]
    read = next(conllu.scan_conll(result.to_conllu()))
    assert read.words[2] == "(" and read.heads == result.sentence.heads
    record = json.loads(result.to_json())
    assert record["heads"].count(0) == 1 and record["spans"][0]["end"] == 6
    assert [d[1] for d in result.dependencies] == list(result.sentence.words)
    assert result._repr_svg_() == result.draw()
    sums = result.arc_probabilities()
    assert sums.shape == (6, 7) and sums.sum(1) == pytest.approx(1, abs=1e-5)
    chosen = [sums[i, head] for i, head in enumerate(result.sentence.heads)]
    assert chosen == pytest.approx(result.with_confidence().prediction.confidence.arcs, abs=1e-5)
    for suffix in (".svg", ".png", ".pdf", ".json", ".conllu", ".ptb", ".txt"):
        assert result.save(tmp_path / f"x{suffix}").stat().st_size > 20
    with pytest.raises(LalkitError, match="as '.doc'.*\n.*png"):
        result.save(tmp_path / "x.doc")


def test_the_explanation_uses_the_tags_that_were_given(trained):
    """A parser that takes given tags is asked again with these, not with the tags it gave."""
    parser = lalkit.load(trained(tag_input="given"))
    for text in ("He said so .", Sentence(("He", "said", "so", "."), ("PRP", "VBD", "RB", "."))):
        result = parser.parse(text, "tokens")
        assert result.explain().parses == [result.sentence]


def test_a_saved_parser_loads(tiny_parser, tmp_path):
    parser = lalkit.load(tiny_parser)
    profile = {"corpus": "sample", "norm": "exact", "spans": 3, "labels": ["NP"], "led": [[1], [2]], "all": [3]}
    parser.profile = profile
    again = lalkit.load(parser.save(tmp_path))
    assert again.profile == profile and again.parse("It works.").prediction == parser.parse("It works.").prediction
    weights = {path.name for path in tmp_path.glob("*.safetensors")}
    parser.profile = None
    assert lalkit.load(parser.save(tmp_path)).profile is None, "nothing of the parser that was there before is left"
    after = {path.name for path in tmp_path.glob("*.safetensors")}
    assert len(after) == 1 and not weights & after, "a kill must not leave new weights under the old model.json"


def test_the_public_names():
    assert set(dir(lalkit)) == {*lalkit.__all__, "__version__"}
    assert not hasattr(lalkit, "nothing")


CHECKED = """import lalkit
reveal_type(lalkit.load())
reveal_type(lalkit.load().parse("It works."))
lalkit.loud()
lalkit.load(devise="cpu")
lalkit.load().evaluate([], by="lenght")
"""
SKIPPED = "[mypy]\nfollow_imports = silent\n[mypy-torch.*,numpy.*,pandas.*,nltk.*,scipy.*,transformers.*]\nfollow_imports = skip"


@pytest.mark.slow
def test_a_type_checker_knows_the_public_names(tmp_path, monkeypatch):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(Path(lalkit.__file__).parents[1]))
    Path("program.py").write_text(CHECKED)
    Path("mypy.ini").write_text(SKIPPED)
    # Not in this process: it raises the limit of recursion.
    command = [sys.executable, "-m", "mypy", "program.py"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    told = [re.sub(r"program.py:(\d): \w+: ", r"\1 ", line) for line in lines if ': note: "' not in line]
    assert told[:3] == [
        '2 Revealed type is "lalkit.api.Parser"', '3 Revealed type is "lalkit.api.ParseResult"',
        '4 Module has no attribute "loud"  [attr-defined]',
    ]  # fmt: skip
    assert "5 Unexpected keyword argument" in told[3] and "6 Argument" in told[4] and len(told) == 6


def test_every_public_name_has_an_example_and_the_examples_are_right():
    parser, treebank = lalkit.load("en-news"), lalkit.Treebank.load("sample", "test")[:3]
    names = {"lalkit": lalkit, "torch": torch, "parser": parser, "treebank": treebank}
    names["result"], runner = parser.parse("She saw the man."), doctest.DocTestRunner()
    assert lalkit.compare(parser, parser, ["The well-known car."]).table["text"][0] == "The well-known car ."
    for kind in (lalkit, lalkit.Parser, lalkit.ParseResult, lalkit.Treebank, lalkit.Explanation):
        for name in dir(kind):
            member = getattr(kind, name)
            if name[0] != "_" and (callable(member) or isinstance(member, property | cached_property)):
                text = inspect.getdoc(member) or ""
                assert ">>> " in text, f"{name} has no example"
                runner.run(doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0))
    assert runner.tries > 60 and runner.failures == 0


def test_a_parser_moves_to_a_device(tiny_parser, tiny_span_parser, monkeypatch):
    """The device meta stands for a GPU: what moves is seen there, though nothing can be computed."""
    monkeypatch.setitem(DEVICES, "meta", lambda: True)
    parser = lalkit.load(tiny_parser, device="meta")
    tensors = [*parser.network.parameters(), *parser.network.buffers()]
    assert {tensor.device.type for tensor in tensors} == {parser.device.type} == {"meta"}
    vectors = torch.ones(2, 5, sum(parser.network.label_attention.sizes), device="meta")
    contexts = parser.attribution.vectors(vectors)
    assert contexts.device.type == "meta" and contexts.shape[:2] == (2, 6)
    assert lalkit.load(tiny_parser, device="auto").device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    monkeypatch.setitem(DEVICES, "mps", lambda: True)
    with pytest.raises(ModelError, match="float64"):
        lalkit.load(tiny_span_parser, device="mps")
    for name in ("gpu", "", "cpu:1", "cuda:99", "cuda:x"):
        with pytest.raises(LalkitError, match=f"no device '{name}' here"):
            parser.to(name)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["tiny_parser", "tiny_span_parser"])
def test_everything_works_on_a_gpu(request, kind, sample):
    here, there = (lalkit.load(request.getfixturevalue(kind), device=device) for device in ("cpu", "cuda"))
    one, other = (parser.parse(sample[0]) for parser in (here, there))
    assert one.sentence == other.sentence and one.score == pytest.approx(other.score, rel=1e-4)
    assert other.explain() and other.explore().html and len(other.alternatives(2)) == 2
    assert there.parse("One two.", forbid=["1->2"]).price.score >= 0
    assert one.arc_probabilities() == pytest.approx(other.arc_probabilities(), abs=1e-3)
    one, other = (parser.explain(sample[:5]) for parser in (here, there))
    for name in ("attention", "top"):
        assert len(getattr(one, name)()) == len(getattr(other, name)())
    for at in ("word", "boundary", "span"):
        assert here.vectors(sample[:5], at).array == pytest.approx(there.vectors(sample[:5], at).array, abs=1e-3)
    with there.patched({"encoder.0.output": lambda value: -value}, words=1), there.without([0]):
        assert there.parse(sample[0]).explain()


def test_a_column_of_a_table_keeps_its_index(parser):
    table = pd.DataFrame({"text": ["It works.", "So it does."]}, index=["a", "b"])
    table["parse"] = parser.parse_all(table["text"])
    assert table.loc["b", "parse"].to_ptb() == parser.parse("So it does.").to_ptb()
    assert parser.parse_all(table["text"][:0]).empty
    column = pd.Series([None, "So it does.", " \n\u200b", float("nan"), [], pd.NA, ("Yes", ".")], list("abcdefg"))
    assert [i for i, result in parser.parse_all(column, errors="skip").items() if result is not None] == ["b", "g"]


def test_parsers_and_results_say_what_they_are(parser):
    assert "label heads: 6, treebank: sample" in repr(parser) and "<th>label heads</th>" in parser._repr_html_()
    assert len(repr(parser.parse("It works and " * 30))) < 130


def test_two_parses_are_compared(parser):
    text = "The clerk counted the ballots in the hall ."
    with parser.without(heads=range(6)):
        changed = parser.parse_all([text, "Yes"])
    first, second = parser.parse_all([text, "Yes"]), [result.sentence for result in changed]
    comparison = lalkit.compare(parser, changed, [text, "Yes"])
    for row, one, other in zip(comparison.table.itertuples(), first, second):
        spans = {f"{c.label}({c.start + 1},{c.end})" for c in set(one.sentence.constituents) - set(other.constituents)}
        arcs = {f"{a}->{i}" for i, (a, b) in enumerate(zip(one.sentence.heads, other.heads), 1) if a != b}
        assert set(row.only_first.split()) == spans | arcs
    scores = evaluate([first[0].sentence], [changed[0]]).summary()
    assert comparison.table.loc[0, ["f1", "uas"]].tolist() == pytest.approx([scores["f1"], scores["uas"]])
    same = lalkit.compare(first[0], parser)
    assert same.table.loc[0, "only_first"] == "" and "<table" in same._repr_html_()


def test_what_a_parser_never_learned(caplog):
    """Chinese without punctuation: marks are left out of the tree. A script that was never learned is named."""
    parser, _ = lalkit.load("zh-sinica"), lalkit.errors.warn_once.cache_clear()
    assert "\u3001" in parser.info["marks"] and parser.reader.scripts >= {"CJK"}
    rows = {
        "\u6211\u5011 \u4f86 \u4e86 \u3002": 3, "\u6211\u5011 \uff0c \u4f86 \u4e86": 3,
        "\u300c \u4f86 \u4e86 \uff01 \u300d": 2, "\u6211 \u3001 \u4ed6 .": 3, "\u3002": 1, "\u4f86 \u4e86": 2,
        "\u4f86 \u2026 \u2026": 1, "\u4f86 \u4e86 ?": 2, "\u4f86 \u2014\u2014 \u4e86": 2, "\u4ed6 3.5 \u3002": 2,
    }  # fmt: skip
    for text, length in rows.items():
        result = parser.parse(text, "tokens")
        assert len(result.sentence) == length == len(result.given) == len(parser._sentences([text.split(" ")])[0]), text
    assert caplog.text.count("never learned punctuation") == 1
    gold = Sentence(("\u4f86", "\u3002"), heads=(0, 1))
    assert len(parser.parse_all([gold])[0].sentence) == 2, "a tree to compare with keeps its words"
    parser.parse_all(["\u041e\u043d \u0434\u043e\u043c\u0430", "\u0395\u03af\u03bd\u03b1\u03b9"], "tokens")
    assert "CYRILLIC" in caplog.text and "GREEK" in caplog.text
