"""Chinese words: all ways of writing a word get one form."""

import pytest

from lalkit.config import EncoderConfig
from lalkit.network.batches import Collator
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.text import is_chinese, normalise
from lalkit.treebank.tree import Sentence, Span


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("ＡＢｃ１２％", "ABc12%"),
        ("安妮‧白朗黛", "安妮·白朗黛"),
        ("约翰・史密斯", "约翰·史密斯"),
        ("\uf914", "樂"),  # a compatibility ideograph
        ("，", ","),
        ("。", "。"),
        ("龍", "龍"),  # traditional stays traditional
        ("don't", "don't"),
        ("", ""),
    ],
)
def test_one_form(word, one):
    assert normalise(word) == one == normalise(one)


def test_what_is_chinese():
    assert is_chinese("a龍") and is_chinese("〇") and is_chinese("𠮷") and is_chinese("々")
    assert not is_chinese("abc é カ 한 ，１")


def test_words_are_looked_up_by_one_form_and_keep_their_own_form():
    sentence = Sentence(("１２", "12", "ab"), ("M", "M", "N"), (Span(0, 3, "X"),), (2, 0, 2), ("a", "ROOT", "a"))
    vocab = Vocab.build([sentence], min_count=2)
    assert vocab.words[2:] == ("12",) and set(vocab.chars[2:]) == set("12ab")
    batch = Collator(vocab, EncoderConfig(pretrained=None))([sentence])
    assert batch.words[0].tolist() == [2, 2, 1] and batch.chars[0, 0].equal(batch.chars[0, 1])
