"""The tagger learns and guesses the tags of new words; in jackknifing, no tagger has seen the sentences that it tags."""

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank import tagging
from lalkit.treebank.corpora import load
from lalkit.treebank.tagging import Tagger, jackknife


def pairs(name, split):
    return [(s.words, s.tags) for s in load(name, split).sentences]


def accuracy(tagger, sentences):
    return sum(a == b for w, t in sentences for a, b in zip(tagger(w), t)) / sum(len(w) for w, _ in sentences)


def test_it_learns_english_and_guesses_new_words():
    tagger, dev = Tagger(pairs("sample", "train")), pairs("sample", "dev")
    assert accuracy(tagger, dev) > 0.79
    assert tagger(["The", "zorkings", "zorked", "."])[0::3] == ["DT", "."]
    assert tagger([]) == []


def test_it_learns_chinese():
    tagger = Tagger(pairs("sample-zh", "train"), epochs=5)
    assert accuracy(tagger, pairs("sample-zh", "train")) > 0.97
    assert accuracy(tagger, pairs("sample-zh", "dev")) > 0.6


def test_it_is_the_same_every_time():
    some, words = pairs("sample", "train")[:40], pairs("sample", "dev")[0][0]
    assert Tagger(some)(words) == Tagger(some)(words)


def test_each_fold_is_tagged_by_a_tagger_of_the_others(monkeypatch):
    seen = []

    class Recorder:
        def __init__(self, sentences):
            self.words = {words for words, _ in sentences}

        def __call__(self, words):
            assert words not in self.words
            seen.append((words, len(self.words)))
            return [f"{len(self.words)}"] * len(words)

    monkeypatch.setattr(tagging, "Tagger", Recorder)
    sentences = [((f"w{i}", "x"), ("A", "B")) for i in range(23)]
    assert len(list(jackknife(sentences, 10))) == 23
    assert sorted(words for words, _ in seen) == sorted(words for words, _ in sentences)
    assert {size for _, size in seen} == {20, 21}


def test_the_order_of_sentences_is_kept():
    sentences = [((f"w{i % 5}",), (f"T{i % 5}",)) for i in range(40)]
    assert list(jackknife(sentences, 10)) == [[tag] for _, (tag,) in sentences]


def test_too_few_sentences():
    with pytest.raises(TreebankError, match="9 sentences cannot be tagged in 10 folds"):
        list(jackknife([(("a",), ("A",))] * 9))
    with pytest.raises(TreebankError, match="no tagged sentences"):
        Tagger([])
