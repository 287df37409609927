"""Typed text becomes sentences."""

import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank import text as texts
from lalkit.treebank.text import read_line, read_lines, read_text, split_sentences, tokenize


def test_raw_text_becomes_treebank_tokens():
    assert tokenize('"It\'s (almost) 5%," he said.') == (
        "``", "It", "'s", "-LRB-", "almost", "-RRB-", "5", "%", ",", "''", "he", "said", ".",
    )  # fmt: skip
    assert read_line("Go").words == ("Go",)


ALONE = """
import random, sys, threading
from lalkit.treebank.text import tokenize, word_tokenizer
state, results = random.getstate(), []
threads = [threading.Thread(target=lambda: results.append(tokenize("I can't (5%)."))) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert set(results) == {("I", "ca", "n't", "-LRB-", "5", "%", "-RRB-", ".")} and len(results) == 8
assert not {"nltk", "nltk.redos", "pandas"} & set(sys.modules) and random.getstate() == state
"""


def test_the_tokenizer_is_loaded_without_the_rest_of_nltk():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nltk_is_imported_as_usual_if_its_files_are_elsewhere(monkeypatch, tmp_path):
    tokenizers = {"nltk.tokenize": SimpleNamespace(NLTKWordTokenizer=lambda: "the usual one")}
    monkeypatch.setattr(texts, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(texts, "import_module", lambda name: tokenizers.get(name) or import_module(name))
    for name in [name for name in sys.modules if f"{name}.".startswith("nltk.")]:
        monkeypatch.delitem(sys.modules, name)
    assert texts.word_tokenizer.__wrapped__() == "the usual one"


def test_tokens_and_tags_are_taken_as_they_are():
    assert read_line("a_b  c", "tokens").words == ("a_b", "c")
    tagged = read_line("a_b_NN ._.", "tagged")
    assert (tagged.words, tagged.tags) == (("a_b", "."), ("NN", "."))


def test_only_ascii_white_space_separates_tokens():
    assert read_line("5\u2009mm x", "tokens").words == ("5\u2009mm", "x")


def test_empty_lines_are_none():
    assert [s and s.id for (s,) in read_lines(["a", "", " \t", "b"], place="f")] == ["f:1", None, None, "f:4"]


def test_a_line_of_unusual_spaces_has_no_words():
    assert read_line("\u00a0 \u2009") is None
    assert read_line("\u00a0", "tokens").words == ("\u00a0",)


def test_the_first_line_may_have_another_number():
    assert [s.id for (s,) in read_lines(["a", "b"], place="f", first=8)] == ["f:8", "f:9"]


@pytest.mark.parametrize("line", ["The", "The_", "_DT", "The_DT end"])
def test_tagged_text_must_be_tagged(line):
    with pytest.raises(TreebankError, match="f:1: .* is no word_TAG pair"):
        list(read_lines([line], "tagged", "f"))


TEXT = (
    'Mr. Brown paid $3.5 million on Jan. 5, 1990. "Why?" asked Dr. J. Green. He left at 5 p.m. (see Fig. 3). Really?!'
)
PARTS = [
    "Mr. Brown paid $3.5 million on Jan. 5, 1990.", '"Why?" asked Dr. J. Green.', "He left at 5 p.m. (see Fig. 3).", "Really?!",
]  # fmt: skip


def test_running_text_is_split_into_sentences():
    assert split_sentences(TEXT) == PARTS
    assert [s.words for s in read_text(TEXT)] == [tokenize(part) for part in PARTS]
    assert split_sentences(" \n ") == [] == read_text("\u00a0")


def test_ids_of_running_text_name_line_and_sentence():
    lines = list(read_lines(["One. Two.", "", "Three."], "text", "f"))
    assert [[s and s.id for s in line] for line in lines] == [["f:1.1", "f:1.2"], [None], ["f:3.1"]]


@pytest.mark.parametrize("form", ["raw", "text"])
def test_chinese_needs_spaces_between_its_words(form):
    """Whatever the spaces: a parser that was taught words must not be given characters, or whole sentences, for words."""
    for line in ("我们住在同一条巷子。", "我们 住在 巷子 3 号"):
        with pytest.raises(TreebankError, match="f:1: Chinese is written without spaces.*\n.*--form tokens"):
            list(read_lines([line], form, "f"))
    assert read_line("我们 住在 3 号", "tokens").words == ("我们", "住在", "3", "号")
    assert tokenize("The word 龙 means dragon.")[2] == "龙"
