"""Arguments of `load`, `parse` and the methods of a parser: what has one meaning is accepted, the rest is refused."""

import fractions
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import lalkit
from lalkit.errors import whole_number
from lalkit.treebank.tree import Sentence
from tests.hostile.table import case, refused, table

WORDS = ("One", "two", ".")


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


@pytest.fixture(scope="module")
def span_parser(tiny_span_parser):
    return lalkit.load(tiny_span_parser)


@pytest.fixture(scope="module")
def result(parser):
    return parser.parse("One two.")


@table(
    "text",
    [
        case("text", "One two."),
        case("text of numpy", np.str_("One two.")),
        case("a list of words", list(WORDS)),
        case("a tuple of words", WORDS),
        case("a Sentence", Sentence(WORDS)),
        case("a generator of words", (word for word in WORDS)),
        case("a map of words", map(str, WORDS)),
        case("an array of words", np.array(WORDS)),
        case("an array of objects", np.array(WORDS, dtype=object)),
        case("a Series of words", pd.Series(WORDS)),
        case("a Series with another index", pd.Series(WORDS, index=[7, 8, 9])),
        case("a Series of pandas strings", pd.Series(WORDS, dtype="string")),
        case("an Index of words", pd.Index(WORDS)),
        case("the keys of a dict", dict.fromkeys(WORDS).keys()),
        case("words of numpy", [np.str_(word) for word in WORDS]),
    ],
)
def test_one_sentence_is_parsed(parser, text):
    assert parser.parse(text).sentence.words == WORDS


@table(
    "text",
    [
        case("None", None),
        case("a number", 3),
        case("zero", 0),
        case("a fraction", 3.5),
        case("NaN", float("nan")),
        case("a truth value", True),
        case("bytes", b"One two."),
        case("no bytes", b""),
        case("a bytearray", bytearray(b"One")),
        case("a complex number", 1j),
        case("an object", object()),
        case("a function", len),
        case("a class", str),
        case("a module", types),
        case("a path", Path("One")),
        case("a set", {"One"}),
        case("a frozenset", frozenset({"One"})),
        case("a dict", {"One": 1}),
        case("a range", range(3)),
        case("a list of None", [None]),
        case("a list with None", ["One", None]),
        case("a list with NaN", ["One", float("nan")]),
        case("a list of numbers", [1, 2]),
        case("a list of truth values", [True]),
        case("a list of bytes", [b"One"]),
        case("a list of paths", [Path("One")]),
        case("a list of lists", [["One", "two"]]),
        case("a list of tuples", [("One",)]),
        case("a list of Sentences", [Sentence(WORDS)]),
        case("a list of fractions", [fractions.Fraction(1, 2)]),
        case("an array of numbers", np.array([1, 2])),
        case("an array without words", np.array([])),
        case("an array of arrays", np.array([WORDS, WORDS])),
        case("an array that is one text", np.array("One two.")),
        case("a tensor", torch.ones(2)),
        case("an empty Series", pd.Series([], dtype=object)),
        case("a Series with None", pd.Series(["One", None])),
        case("a Series with NaN", pd.Series(["One", np.nan])),
        case("a Series with NA", pd.Series(["One", pd.NA], dtype="string")),
        case("a table", pd.DataFrame({"words": WORDS})),
        case("a generator of nothing", (word for word in ())),
        case("an empty list", []),
        case("an empty text", ""),
        case("white space", " \t\n "),
        case("an empty word", ["One", ""]),
        case("a word of two words", ["One two"]),
        case("a word with a line end", ["One\n"]),
        case("a word with a NUL byte", ["a\0b"]),
        case("a NUL byte", "a\0b"),
        case("half a character", "\ud800"),
        case("half a character in a word", ["One", "a\udfff"]),
    ],
)
def test_what_is_no_sentence_is_refused(parser, text):
    with refused("sentence 1"):
        parser.parse(text)


@table(
    "form",
    [
        case("a form that is unknown", "tokns"),
        case("capitals", "RAW"),
        case("None", None),
        case("a number", 3),
        case("bytes", b"raw"),
        case("a list", ["raw"]),
        case("an empty text", ""),
    ],
)
def test_a_form_there_is_not(parser, form):
    with refused(("form", repr(form))):
        parser.parse("One two.", form)


@table(
    ("texts", "count"),
    [
        case("a list of texts", ["One.", "Two three."], 2),
        case("nothing", [], 0),
        case("a generator of texts", (text for text in ("One.", "Two.")), 2),
        case("an array of texts", np.array(["One.", "Two."]), 2),
        case("a Series of texts", pd.Series(["One.", "Two."]), 2),
        case("a Series of pandas strings", pd.Series(["One.", "Two."], dtype="string"), 2),
        case("texts, words and Sentences", ["One.", ["Two"], Sentence(WORDS)], 3),
        case("the same sentence 30 times", ["One."] * 30, 30),
    ],
)
def test_many_sentences_are_parsed(parser, texts, count):
    assert len(parser.parse_all(texts)) == count


@table(
    ("texts", "says"),
    [
        case("one text", "Yes", "parse"),
        case("one Sentence", Sentence(WORDS), "parse"),
        case("None", None, "None"),
        case("a number", 3, "3"),
        case("bytes", b"One", "bytes"),
        case("a dict", {"One.": 1}, "dict"),
        case("a set", {"One."}, "set"),
        case("a table", pd.DataFrame({"text": ["One."]}), "DataFrame"),
        case("None as the second", ["One.", None], "sentence 2"),
        case("NaN as the second", ["One.", float("nan")], "sentence 2"),
        case("a number as the second", ["One.", 3], "sentence 2"),
        case("a Series with None", pd.Series(["One.", None]), "sentence 2"),
        case("a Series with NA", pd.Series(["One.", pd.NA], dtype="string"), "sentence 2"),
        case("a row without text", pd.Series(["One.", None], index=["a", "b"]), ("row b: sentence 2", "is missing")),
        case("a row of nothing", pd.Series(["One.", " "], index=[7, 9]), ("row 9: sentence 2", "nothing to parse")),
        case("bytes as the first", [b"One.", "Two."], "sentence 1"),
        case("an empty text as the third", ["One.", "Two.", " "], "sentence 3"),
    ],
)
def test_what_are_no_sentences_is_refused(parser, texts, says):
    with refused(says):
        parser.parse_all(texts)


@table(
    "options",
    [
        case("a budget of one word", {"budget": 1}),
        case("a large budget", {"budget": 10**9}),
        case("a budget of numpy", {"budget": np.int64(40)}),
        case("the usual budget", {"budget": None}),
        case("one thread", {"threads": 1}),
        case("64 threads", {"threads": 64}),
        case("threads of numpy", {"threads": np.int64(2)}),
    ],
)
def test_budget_and_threads_change_no_tree(parser, options):
    texts = ["One two.", "Three.", "It works."]
    for one, plain in zip(parser.parse_all(texts, **options), parser.parse_all(texts), strict=True):
        assert one.sentence == plain.sentence and one.score == pytest.approx(plain.score, rel=1e-5)


@table(
    ("name", "value"),
    [
        case(f"{name} {value!r}", name, value)
        for name in ("budget", "threads")
        for value in (0, -1, 1.5, float("nan"), float("inf"), "2", "many", [2], b"2")
    ],
)
def test_budget_and_threads_out_of_range(parser, name, value):
    with refused((name, str(value))):
        parser.parse_all(["One two.", "Three."], **{name: value})


@pytest.mark.parametrize("value", [-(10**5000), 2**70], ids=["5,000 digits", "70 bits"])
def test_a_huge_number_of_threads_is_refused(value):
    with refused(("threads", "64 bits")):
        whole_number("threads", value, 1, 1024)


@table(
    "text",
    [
        case("None", None),
        case("a number", 3),
        case("bytes", b"One."),
        case("a list", ["One."]),
        case("an empty text", ""),
        case("white space", " \n"),
        case("unusual spaces", "\u00a0\u2003"),
    ],
)
def test_running_text(parser, text):
    with refused(""):
        parser.parse_text(text)


@table(
    ("name", "says"),
    [
        case("None", None, "None"),
        case("a number", 3, "3"),
        case("an empty name", "", ""),
        case("bytes", b"en-news", "bytes"),
        case("a list", ["en-news"], "en-news"),
        case("a dict", {}, "dict"),
        case("an unknown name", "en-nwes", "en-nwes"),
        case("an unknown folder", "runs/nowhere", "runs/nowhere"),
        case("an unknown path", Path("runs/nowhere"), "runs/nowhere"),
        case("a file", Path(__file__), "test_arguments.py"),
        case("a folder without a parser", Path(__file__).parent, "model.json"),
        case("a way out of the folder", "../sample", "sample"),
        case("a folder above", "..", "model.json"),
        case("a NUL byte", "en\0news", "en"),
        case("half a character", "\ud800", ""),
        case("a very long name", "x" * 5000, "xxx"),
        case("a hub without a name", "hf:", "hf:"),
        case("a hub with two slashes", "hf:a/b/c", "hf:a/b/c"),
        case("an address", "https://example.org/parser", "https://example.org/parser"),
    ],
)
def test_names_of_parsers(name, says):
    with refused(says):
        lalkit.load(name)


@table(
    ("options", "says"),
    [
        case("an unknown label", {"label": "ZZ"}, "ZZ"),
        case("an empty label", {"label": ""}, ""),
        case("a label that is a number", {"label": 3}, "3"),
        case("top 0", {"top": 0}, "top"),
        case("top -1", {"top": -1}, "top"),
        case("top 1.5", {"top": 1.5}, "top"),
        case("top as text", {"top": "3"}, "top"),
        case("no top", {"top": None}, "top"),
    ],
)
@pytest.mark.parametrize("kind", ["paper", "span"])
def test_options_of_an_explanation(parser, span_parser, kind, options, says):
    result = (parser if kind == "paper" else span_parser).parse("One two.")
    with refused(says):
        result.explain(**options)


@table(
    "ask",
    [
        case("look at text", lambda parser: parser.look(["One two."])),
        case("look at one text", lambda parser: parser.look("One two.")),
        case("look at None", lambda parser: parser.look(None)),
        case("look at a list of None", lambda parser: parser.look([None])),
        case("look at words", lambda parser: parser.look([["One", "two"]])),
        case("look at one Sentence", lambda parser: parser.look(Sentence(WORDS))),
        case("look with an unknown option", lambda parser: parser.look([Sentence(WORDS)], budget=0)),
        case("look with an unknown decoder", lambda parser: parser.look([Sentence(WORDS)], decode="bogus")),
        case("look with temperature 0", lambda parser: parser.look([Sentence(WORDS)], temperature=0)),
        case("parse with temperature NaN", lambda parser: parser.parse("One two.", temperature=float("nan"))),
        case("parse with a temperature that is text", lambda parser: parser.parse("One two.", temperature="1")),
        case("view of text", lambda parser: parser.view(["One two."])),
        case("view of None", lambda parser: parser.view(None)),
        case("terms of text", lambda parser: parser.terms(["One two."])),
        case("terms of another layer", lambda parser: parser.terms([Sentence(WORDS)])),
        case("an unknown norm", lambda parser: parser.parse("One two.").contributions("bogus")),
        case("contributions of nothing", lambda parser: parser.contributions([])),
        case("attention of nothing", lambda parser: parser.attention([])),
        case("attention of a label that is a number", lambda parser: parser.attention("One two.", 3)),
        case("errors of texts", lambda parser: parser.errors(["One two."])),
        case("comparing None", lambda parser: lalkit.compare(None, None)),
        case("comparing with text", lambda parser: lalkit.compare(parser, "One two.")),
        case("comparing a list of text", lambda parser: lalkit.compare(["One"], ["Two"])),
        case("explain by an unknown norm", lambda parser: parser.parse("One two.").explain(norm="bogus")),
        case("explain without a norm", lambda parser: parser.parse("One two.").explain(norm=None)),
        case("explain by a number", lambda parser: parser.parse("One two.").explain(norm=3)),
        case("gold of another kind", lambda parser: parser.parse("One two.").explore(gold=3)),
        case("beside of another kind", lambda parser: parser.parse("One two.").explore(beside=3)),
        case("beside of another text", lambda parser: parser.parse("One two.").explore(beside=parser.parse("Three."))),
        case(
            "gold of another sentence",
            lambda parser: parser.parse("One two.").explore(gold=Sentence(("a",), ("X",), (), (0,))),
        ),
    ],
)
def test_looking_into_a_parser(parser, ask):
    with refused(""):
        ask(parser)


@table(
    ("place", "says"),
    [
        case("an unknown suffix", "x.doc", "x.doc"),
        case("no suffix", "x", "x"),
        case("an empty name", "", ""),
        case("None", None, "None"),
        case("a folder", "folder.svg", "folder.svg"),
        case("below a file", "file.txt/x.svg", "file.txt"),
        case("a NUL byte", "a\0.svg", "svg"),
        case("a very long name", "x" * 300 + ".svg", "xxx"),
    ],
)
def test_where_a_result_is_saved(result, tmp_path, place, says):
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with refused(says):
        result.save(tmp_path / place if place else place)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "file.txt").read_text() == "mine"


@table(
    "number",
    [case(f"label head {number!r}", number) for number in (99, -1, 1.5, "two", float("nan"), None)],
    sample=False,
)
@pytest.mark.parametrize("kind", ["paper", "span"])
def test_a_label_head_there_is_not(parser, span_parser, kind, number):
    source = (parser if kind == "paper" else span_parser).attribution
    with refused(("head", str(number))):
        source.without(number, source.mean([Sentence(WORDS)]))
    with refused(("head", str(number))), (parser if kind == "paper" else span_parser).without(heads=[0, number]):
        pass
