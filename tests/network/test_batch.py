"""Words and their sub-words in four families of tokenizers, and batches under a budget."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lalkit.errors import ModelError
from lalkit.network.alignment import after_space, align, load_tokenizer, special_tokens, surface
from lalkit.network.batches import PAD, UNK, batches, parts
from lalkit.network.vocabulary import PADDING, UNKNOWN, Vocab
from lalkit.treebank.tree import Sentence
from tests.network.families import FAMILIES, tokenizer

cached = cache(lambda: load_tokenizer("minilm"))

CLS, SEP = 101, 102  # in the vocabulary of BERT
CHARACTERS = st.characters(blacklist_categories=("Cs", "Zs", "Cc", "Zl", "Zp"))
WORDS = st.lists(st.text(CHARACTERS, min_size=1, max_size=9), min_size=1, max_size=60)


@given(WORDS, st.sampled_from([16, 40, 512]))
def test_every_word_points_at_its_own_sub_words(words, window):
    tokenizer = cached()
    try:
        aligned = align(tuple(words), tokenizer, window)
    except ModelError as error:
        longest = max(len(tokenizer.encode(surface(word), add_special_tokens=False)) for word in words)
        assert longest > window - 2, error  # noqa: PT017 (which words are too long is only known afterwards)
        return
    assert all(len(row) <= window for row in aligned.rows)
    assert len(aligned.places) == len(words) + 2
    for word, (row, first, last) in zip(words, aligned.places[1:-1]):
        expected = tokenizer.encode(surface(word), add_special_tokens=False) or [tokenizer.unk_token_id]
        assert list(aligned.rows[row][first : last + 1]) == expected
    assert aligned.rows[0][0] == CLS
    row, first, last = aligned.places[-1]
    assert aligned.rows[row][first] == SEP and row == len(aligned.rows) - 1


def test_odd_words():
    with pytest.raises(ModelError, match="word 2 has .* sub-words"):
        align(("a", "-" * 90), cached(), 16)
    made = tokenizer("sentencepiece-bpe")
    aligned = align(("the", "\u200b", "river"), made)
    _, first, last = aligned.places[2]
    assert (first, aligned.rows[0][first]) == (last, made.unk_token_id), "a word of nothing is unknown"


@pytest.mark.parametrize("family", FAMILIES)
@given(words=WORDS)
def test_the_sub_words_are_those_of_the_words_cut_by_any_tokenizer(family, words):
    made = tokenizer(family)
    aligned = align(tuple(words), made, 100_000)
    (row,), places = aligned.rows, aligned.places[1:-1]
    texts = [after_space(word, made) for word in words]
    given = made(texts, is_split_into_words=True, add_special_tokens=False)
    for i, (_, first, last) in enumerate(places):
        mine = [id for id, owner in zip(given["input_ids"], given.word_ids()) if owner == i]
        assert list(row[first : last + 1]) == (mine or [made.unk_token_id])
    assert [first for _, first, _ in places[1:]] == [last + 1 for _, _, last in places[:-1]], "side by side"
    before, after = special_tokens(made)
    assert list(row[: len(before)]) == before and list(row[len(row) - len(after) :]) == after
    assert len(row) == len(before) + len(after) + sum(last - first + 1 for _, first, last in places), "nothing else"


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
    with pytest.raises(ModelError, match="has constituents"):
        Vocab.build([Sentence(("a",))])
