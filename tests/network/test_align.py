"""Words and their sub-words in four families of tokenizers, against the character offsets the tokenizers report."""

import random

import pytest

from lalkit.network.alignment import align, special_tokens, surface, wants_space
from tests.network.families import FAMILIES, tokenizer

COUNT, LENGTH = 1_000, 40  # words, in sentences of so many
LATIN = "abcdefghijklmnopqrstuvwxyzABCXYZ.,'-0123456789&%"
KINDS = {
    "latin": LATIN,
    "han": "我们住在同一條巷子說什麼龍𠮷々〇，。",
    "emoji": "😀🎉👍🏽❤️🇨🇳",
    "combining": "e\u0301o\u0308n\u0303\u0302a\u0323",
    "right to left": "שלוםمرحبا\u05d1\u05b0\u0651",
    "zero width": "\u200b\u200c\u200d\ufeff\u2060",
    "wide": "ＡＢ１２ｶﾞ",
    "spaces": "\t\u00a0\u2009\u3000a",
    "odd": "\ufffd\u0378\ue000§",
}


def words(seed: int) -> list[str]:
    """COUNT words: of one script, of several, or with something invisible in them."""
    pick = random.Random(seed)
    found = []
    for _ in range(COUNT):
        kind = pick.choice([*KINDS, "latin", "latin", "mixed"])
        letters = "".join(KINDS.values()) if kind == "mixed" else KINDS[kind]
        found.append("".join(pick.choice(letters) for _ in range(pick.randint(1, 8))))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_no_word_is_lost_none_is_empty_and_every_offset_is_right(family):
    """A word's sub-words are those that the tokenizer gives it, alone (with offsets) and in a sentence cut into words."""
    made = tokenizer(family)
    space = " " if wants_space(made) else ""
    all_words = words(7)
    for start in range(0, COUNT, LENGTH):
        some = tuple(all_words[start : start + LENGTH])
        aligned = align(some, made, 100_000)
        ((*row,),) = aligned.rows
        places = aligned.places[1:-1]
        assert len(places) == len(some) and all(first <= last for _, first, last in places)
        assert [first for _, first, _ in places[1:]] == [last + 1 for _, _, last in places[:-1]], "side by side"
        given = made([space + surface(word) for word in some], add_special_tokens=False, return_offsets_mapping=True)
        for word, (_, first, last), ids, offsets in zip(some, places, given["input_ids"], given["offset_mapping"]):
            assert row[first : last + 1] == (ids or [made.unk_token_id])
            inside = [(a, b) for a, b in offsets if a < b]
            assert all(0 <= a < b <= len(space + surface(word)) for a, b in inside), "within the word"
            assert all(x[1] <= y[1] and x[0] <= y[0] for x, y in zip(inside, inside[1:])), "in order"
        whole = made([space + surface(word) for word in some], is_split_into_words=True, add_special_tokens=False)
        for i, (word, (_, first, last)) in enumerate(zip(some, places)):
            mine = [id for id, owner in zip(whole["input_ids"], whole.word_ids()) if owner == i]
            assert row[first : last + 1] == (mine or [made.unk_token_id]), f"{word!r}, in a sentence cut into words"
        before, after = special_tokens(made)
        assert row[: len(before)] == before and row[len(row) - len(after) :] == after
        assert len(row) == len(before) + len(after) + sum(last - first + 1 for _, first, last in places), "nothing else"


def test_a_word_of_nothing_is_unknown():
    made = tokenizer("sentencepiece-bpe")
    aligned = align(("the", "\u200b", "river"), made, 512)
    _, first, last = aligned.places[2]
    assert (first, aligned.rows[0][first]) == (last, made.unk_token_id)
