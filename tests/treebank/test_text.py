"""Typed text becomes sentences, and all ways of writing a Chinese word get one form."""

import subprocess
import sys

import pytest

from lalkit.config import EncoderConfig
from lalkit.errors import TreebankError
from lalkit.network.batches import Collator
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.text import is_chinese, normalise, read_line, read_lines, read_text, split_sentences, tokenize
from lalkit.treebank.tree import Sentence, Span


def test_raw_text_becomes_treebank_tokens():
    assert tokenize('"It\'s (almost) 5%," he said.') == (
        "``", "It", "'s", "-LRB-", "almost", "-RRB-", "5", "%", ",", "''", "he", "said", ".",
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("line", "form", "words", "tags"),
    [
        ("Go", "raw", ("Go",), None),
        ("a_b  c", "tokens", ("a_b", "c"), None),
        ("a_b_NN ._.", "tagged", ("a_b", "."), ("NN", ".")),
        ("5\u2009mm x", "tokens", ("5\u2009mm", "x"), None),  # only ASCII white space separates tokens
        ("\u00a0", "tokens", ("\u00a0",), None),
        ("我们 住在 3 号", "tokens", ("我们", "住在", "3", "号"), None),
    ],
)
def test_forms_of_a_line(line, form, words, tags):
    sentence = read_line(line, form)
    assert (sentence.words, sentence.tags) == (words, tags)


def test_ids_and_empty_lines():
    assert [s and s.id for (s,) in read_lines(["a", "", "\u00a0 \u2009", "b"], place="f")] == ["f:1", None, None, "f:4"]
    assert [s.id for (s,) in read_lines(["a", "b"], place="f", first=8)] == ["f:8", "f:9"]
    lines = list(read_lines(["One. Two.", "", "Three."], "text", "f"))
    assert [[s and s.id for s in line] for line in lines] == [["f:1.1", "f:1.2"], [None], ["f:3.1"]]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("The", "tagged"),
        ("The_", "tagged"),
        ("_DT", "tagged"),
        ("我们住在同一条巷子。", "raw"),
        ("我们 住在 巷子", "text"),
    ],
)
def test_wrong_lines_name_their_place(line, form):
    """A parser that learned words must not get Chinese characters, or whole Chinese sentences, for words."""
    with pytest.raises(TreebankError, match="f:1: "):
        list(read_lines([line], form, "f"))


def test_running_text_is_split_into_sentences():
    parts = [
        "Mr. Brown paid $3.5 million on Jan. 5, 1990.", '"Why?" asked Dr. J. Green.', "He left at 5 p.m. (see Fig. 3).",
        "Really?!",
    ]  # fmt: skip
    assert split_sentences(" ".join(parts)) == parts and split_sentences(" \n ") == [] == read_text("\u00a0")
    assert [s.words for s in read_text(" ".join(parts))] == [tokenize(part) for part in parts]


def test_words_get_one_form():
    forms = {
        "ＡＢｃ１２％": "ABc12%",
        "安妮‧白朗黛": "安妮·白朗黛",
        "约翰・史密斯": "约翰·史密斯",
        "\uf914": "樂",
        "，": ",",
    }
    forms |= {word: word for word in ("。", "龍", "don't", "")}  # traditional stays traditional
    for word, one in forms.items():
        assert normalise(word) == one == normalise(one)
    assert all(map(is_chinese, ("a龍", "〇", "𠮷", "々"))) and not is_chinese("abc é カ 한 ，１")


def test_words_are_looked_up_by_one_form_and_keep_their_own_form():
    sentence = Sentence(("１２", "12", "ab"), ("M", "M", "N"), (Span(0, 3, "X"),), (2, 0, 2), ("a", "ROOT", "a"))
    vocab = Vocab.build([sentence], min_count=2)
    assert vocab.words[2:] == ("12",) and set(vocab.chars[2:]) == set("12ab")
    batch = Collator(vocab, EncoderConfig(pretrained=None))([sentence])
    assert batch.words[0].tolist() == [2, 2, 1] and batch.chars[0, 0].equal(batch.chars[0, 1])
