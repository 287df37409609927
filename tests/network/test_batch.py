"""Words and their sub-words in four families of tokenizers, and batches under a budget."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lalkit.bench import collate_twin
from lalkit.config import tiny
from lalkit.errors import ModelError
from lalkit.network import alignment
from lalkit.network.alignment import SubWords, after_space, load_tokenizer, special_tokens, surface, windows
from lalkit.network.batches import PAD, UNK, Collator, batches, parts
from lalkit.network.vocabulary import PADDING, UNKNOWN, Vocab
from lalkit.treebank.text import normalise
from lalkit.treebank.tree import Sentence
from tests.network.families import FAMILIES, tokenizer

OURS = ("minilm", "e5-han")
cached = cache(lambda name="minilm": load_tokenizer(name) if name in OURS else tokenizer(name))

CLS, SEP = 101, 102  # in the vocabulary of BERT
CHARACTERS = st.characters(blacklist_categories=("Cs", "Zs", "Cc", "Zl", "Zp"))
WORDS = st.lists(st.text(CHARACTERS, min_size=1, max_size=9), min_size=1, max_size=60)


def align(words, tokenizer, window=512):
    """Return the rows of one sentence without padding, and the places of its words."""
    rows, mask, (places,) = SubWords(tokenizer, window)([Sentence(tuple(words))])
    return [row[seen].tolist() for row, seen in zip(rows, mask)], places.tolist()


@given(WORDS, st.sampled_from([16, 40, 512]))
def test_every_word_points_at_its_own_sub_words(words, window):
    tokenizer = cached()
    try:
        aligned = align(tuple(words), tokenizer, window)
    except ModelError as error:
        longest = max(len(tokenizer.encode(surface(word), add_special_tokens=False)) for word in words)
        assert longest > window - 2, error  # noqa: PT017 (which words are too long is only known afterwards)
        return
    assert all(len(row) <= window for row in aligned[0])
    assert len(aligned[1]) == len(words) + 2
    for word, (row, first, last) in zip(words, aligned[1][1:-1]):
        expected = tokenizer.encode(surface(word), add_special_tokens=False) or [tokenizer.unk_token_id]
        assert list(aligned[0][row][first : last + 1]) == expected
    assert aligned[0][0][0] == CLS
    row, first, last = aligned[1][-1]
    assert aligned[0][row][first] == SEP and row == len(aligned[0]) - 1


def test_odd_words():
    with pytest.raises(ModelError, match="word 2 has .* sub-words"):
        align(("a", "-" * 90), cached(), 16)
    made = tokenizer("sentencepiece-bpe")
    aligned = align(("the", "\u200b", "river"), made)
    _, first, last = aligned[1][2]
    assert (first, aligned[0][0][first]) == (last, made.unk_token_id), "a word of nothing is unknown"


@pytest.mark.parametrize("family", FAMILIES)
@given(words=WORDS)
def test_the_sub_words_are_those_of_the_words_cut_by_any_tokenizer(family, words):
    made = tokenizer(family)
    aligned = align(tuple(words), made, 100_000)
    (row,), places = aligned[0], aligned[1][1:-1]
    texts = [after_space(word, made) for word in words]
    given = made(texts, is_split_into_words=True, add_special_tokens=False)
    for i, (_, first, last) in enumerate(places):
        mine = [id for id, owner in zip(given["input_ids"], given.word_ids()) if owner == i]
        assert list(row[first : last + 1]) == (mine or [made.unk_token_id])
    assert [first for _, first, _ in places[1:]] == [last + 1 for _, _, last in places[:-1]], "side by side"
    before, after = special_tokens(made)
    assert list(row[: len(before)]) == before and list(row[len(row) - len(after) :]) == after
    assert len(row) == len(before) + len(after) + sum(last - first + 1 for _, first, last in places), "nothing else"


@pytest.mark.parametrize("name", [*FAMILIES, *OURS])
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_batch_is_the_one_of_lists(name, texts):
    """With an empty dictionary of words, and with a full one."""
    sentences, fast = [Sentence(tuple(words)) for words in texts], SubWords(cached(name), 100_000)
    fast.room, expected = 100_000, collate_twin(cached(name), sentences)
    for found in (fast(sentences), fast(sentences)):
        assert all(torch.equal(one, two) and one.dtype == two.dtype for one, two in zip(found, expected, strict=True))


def test_a_long_sentence_among_short_ones():
    """Its rows overlap by a quarter. Of the four words in both, three are read in the first row."""
    sentence = Sentence(("a",) * 20)
    assert windows(np.ones(20, int), 16, sentence, 7) == [(7, 23, 7), (19, 27, 22)]
    fast, long, first = SubWords(cached(), 18), [1, 0, 2, 0], 0
    sentences = [sentence if size else Sentence(("b", "c")) for size in long]
    _, mask, places = fast(sentences)
    assert mask.sum(1).tolist() == [18, 10, 4, 18, 10, 4]
    for one, found in zip(sentences, places):
        rows, _, (alone,) = fast([one])
        assert torch.equal(found[: len(alone)], alone + torch.tensor([first, 0, 0])) and not found[len(alone) :].any()
        first += len(rows)


def test_the_dictionary_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(alignment, "MOST_WORDS", 3)
    fast = SubWords(cached())
    for i in range(20):
        fast([Sentence((f"w{i}", "x"))])
        assert fast.of(["x"]) == fast.of(["x"]) and len(fast.seen) <= 4


def test_words_and_characters_without_sub_words(sample):
    vocab, sentences = Vocab.build(sample), [Sentence(("the", "ｆ２", "☃́")), Sentence(("a",) * 5)]
    batch = Collator(vocab, tiny().model.encoder)(sentences)
    for b, sentence in enumerate(sentences):
        for i, word in enumerate([*map(normalise, sentence.words), *[""] * 5][:5]):
            chars = [vocab.char_index.get(char, UNK) for char in word]
            assert batch.words[b, i] == (vocab.word_index.get(word, UNK) if word else PAD)
            assert batch.chars[b, i].tolist() == chars + [PAD] * (batch.chars.shape[2] - len(chars))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 200), st.none() | st.integers(0, 5))
def test_batches(lengths, budget, seed):
    groups = batches(lengths, budget, seed, epoch=2)
    assert sorted(i for g in groups for i in g) == list(range(len(lengths)))
    assert all(len(g) == 1 or len(g) * max(lengths[i] for i in g) <= budget for g in groups)
    assert groups == batches(lengths, budget, seed, epoch=2)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 12))
def test_parts_are_the_cheapest_there_are(lengths, cost):
    found = parts(lengths, cost)
    assert sorted(i for part in found for i in part) == list(range(len(lengths)))
    assert all(lengths[part[0]] == max(lengths[i] for i in part) for part in found)

    def total(groups):
        return sum(len(group) * max(group) + cost for group in groups)

    every = (
        [[size for size, k in zip(lengths, numbers) if k == number] for number in set(numbers)]
        for numbers in product(range(len(lengths)), repeat=len(lengths))
    )
    assert total([[lengths[i] for i in part] for part in found]) == min(map(total, every))


def test_vocab(sample):
    assert (Vocab.build(sample).words[PAD], Vocab.build(sample).chars[UNK]) == (PADDING, UNKNOWN)
    vocab = Vocab.build(sample)
    assert vocab.labels[:2] == ("", "<H>") and "NP" in vocab.labels[2:6]
    assert Vocab.from_dict(vocab.to_dict()) == vocab
    chinese = replace(sample[0], words=("１２", *["12"] * (len(sample[0]) - 1)))
    assert Vocab.build([chinese]).words[2:] == ("12",) and set(Vocab.build([chinese]).chars[2:]) == set("12")
    for name, wrong in (("labels", "S::<H>"), ("labels", "S\0"), ("tags", "\ud800"), ("arc_labels", "a\0")):
        with pytest.raises(ValueError, match="<H>|NUL|surrogate"):  # parses are not checked
            Vocab.from_dict({**vocab.to_dict(), name: [*getattr(vocab, name), wrong]})
    with pytest.raises(ModelError, match="has constituents"):
        Vocab.build([Sentence(("a",))])
