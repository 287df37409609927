"""`load`, `parse`, and the forms of a result."""

import json

import pytest

import lalkit
from lalkit.errors import LalkitError, ModelError
from lalkit.files import write_text
from lalkit.treebank import brackets, conllu
from lalkit.treebank.tree import Sentence


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


def test_one_result_many_forms(parser, tmp_path):
    result = parser.parse(["The", "end", "(", "came", ")", "."])
    assert brackets.parse_tree(result.to_ptb()).words() == ["The", "end", "-LRB-", "came", "-RRB-", "."]
    read = next(conllu.scan_conll(result.to_conllu()))
    assert read.words[2] == "(" and read.heads == result.sentence.heads
    record = json.loads(result.to_json())
    assert record["heads"].count(0) == 1 and record["spans"][0]["end"] == 6
    assert [d[1] for d in result.dependencies] == list(result.sentence.words)
    assert result._repr_svg_() == result.draw()
    for suffix in (".svg", ".png", ".pdf", ".json", ".conllu", ".ptb", ".txt"):
        assert result.save(tmp_path / f"x{suffix}").stat().st_size > 20
    with pytest.raises(LalkitError, match="as '.doc'.*\n.*png"):
        result.save(tmp_path / "x.doc")


def test_text_words_and_sentences_are_all_parsed(parser):
    results = parser.parse_all(["It works.", ["It", "works", "."], Sentence(("It", "works", "."))])
    assert len({r.to_ptb() for r in results}) == 1


@pytest.mark.parametrize("nothing", ["", "  \n", []])
def test_nothing_to_parse(parser, nothing):
    with pytest.raises(LalkitError, match="sentence 1: there is nothing to parse"):
        parser.parse(nothing)


def test_a_one_word_sentence_is_a_constituent(parser):
    result = parser.parse("Yes")
    assert result.sentence.heads == (0,) and result.sentence.constituents[0][:2] == (0, 1)


def test_no_parser_there(tmp_path):
    with pytest.raises(ModelError, match="no parser here"):
        lalkit.load(tmp_path)


def test_the_public_names():
    for name in lalkit.__all__:
        assert getattr(lalkit, name)
    with pytest.raises(AttributeError):
        lalkit.nothing  # noqa: B018


def test_files_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "a" / "x.txt"
    write_text(target, "old")
    with pytest.raises(AttributeError):
        write_text(target, None)
    with pytest.raises(UnicodeEncodeError):
        write_text(target, "\ud800")
    assert target.read_text() == "old" and [p.name for p in target.parent.iterdir()] == ["x.txt"]
