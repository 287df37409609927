"""Typed text becomes sentences, and all ways of writing a Chinese word get one form."""

import pandas
import pytest

from lalkit.errors import TreebankError
from lalkit.treebank import text as reading
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

# Raw text and its words; "|" stands between words. Typographic apostrophes give the same words.
RAW = r"""
"|It|'s| |(|almost|)| |5|%|,|"| |he| |said|.
We| |did|n't| |see| |Ann|'s| |car|.
I| |ca|n't|;| |can|not|!| |gon|na| |go|?!
dogs|'| |toys| |in| |the| |'90s| |DO|N'T| |HTTP://X.COM| |#1Day| |bit.ly/a| |>:(| |-_-| |(|7|,| |8|)| |I.B.M.
rock'n'roll| |O'Neil
well|-|known| |e-mail| |co-op| |non-human| |20|-|30| |and|/|or
http://a.b/c?d=1|,| |x.y@z.org|,| |www.u.com| |and| |notes.txt|.
#tag| |@user| |:-)| |<3
Mr.| |Brown| |paid| |$|3.5| |million| |on| |Jan.| |5|,| |1990|.
He| |left| |at| |5| |p.m.| |(|see| |Fig.| |3|)|.
5|kg| |at| |10:30|,| |12/5/99| |or| |713-853-3989|.
AT&T| |&| |U.S.| |firms|...| |OK|--|no
1st| |10,000| |5|€| |the| |1990s
""".strip().split("\n")
RAW += [  # invisible characters, accents, and characters of several parts
    "a\u200b| |b", "a\u200eb| |c", "\u202a|It", "It\x07| |b", "cafe\u0301| |cre\u0300me|.", "I\u0301|,| |e\u0301te\u0301|'s",
    "ok| |\u2764\ufe0f|.", "\U0001f44d\U0001f3fd|!", "\U0001f468\u200d\U0001f469\u200d\U0001f467| |x",
    "\U0001f1e9\U0001f1ea| |\U0001f1eb\U0001f1f7", "\u0939\u093f\u0928\u094d\u0926\u0940| |means| |Hindi",
    "the| |word| |\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "the| |\u0e17\u0e35\u0e48", "x\u2060y", "a\ufeffb| |c\ufeff|.",
    "\ufeff|in\u00advisible| \u200b |z\u200bw| |x|\u00a0|y",
]  # fmt: skip


@pytest.mark.parametrize("marked", [*RAW, *(line.replace("'", "’") for line in RAW if "'" in line)])
def test_words_of_raw_text_are_its_slices(marked):
    text, words = marked.replace("|", ""), [w for w in marked.split("|") if w.strip(" \u200b\ufeff\u00a0\u202a")]
    sentence = reading.read_line(text)
    assert list(sentence.words) == words and [text[a:b] for a, b in sentence.offsets] == words


def test_the_penn_treebank_keeps_hyphens_and_slashes():
    line = "A third-quarter and/or well-known 30-year bond isn't AT&T's."
    assert reading.read_line(line, hyphens=False).words == (*line.split()[:5], "bond", "is", "n't", "AT&T", "'s", ".")


@pytest.mark.parametrize("unit", ["a.", "a-", "a'", "1,111", "a@", "www.", ":-", "dont", "(", "n't", "http://a.", "1"])
def test_long_words_take_no_longer_than_long_texts(unit):
    """No rule reads the rest of the text again at every place: that would take minutes here."""
    assert reading.tokenize(unit * 20_000)[-1][1] == 20_000 * len(unit)


@pytest.mark.data
@pytest.mark.parametrize("apostrophe", ["'", "’"])
def test_the_tokens_of_raw_text_in_ewt(apostrophe):
    """At least 97.5 F1 on dev, by the places of the words among the characters."""
    right = guessed = gold = 0
    for sentence in load("ewt", "dev"):
        if sentence.text:
            text = sentence.text.replace("'", apostrophe)
            sides = set(sentence.offsets), set(reading.tokenize(text))
            right, gold, guessed = right + len(sides[0] & sides[1]), gold + len(sides[0]), guessed + len(sides[1])
    assert gold > 20_000 and 2 * right / (gold + guessed) > 0.975


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
    sentence = reading.read_line(line, form)
    assert (sentence.words, sentence.tags) == (words, tags)


def test_ids_and_empty_lines():
    lines = reading.read_lines(["a", "", "\u00a0 \u2009", "b"], place="f")
    assert [s and s.id for (s,) in lines] == ["f:1", None, None, "f:4"]
    assert [s.id for (s,) in reading.read_lines(["a", "b"], place="f", first=8)] == ["f:8", "f:9"]
    lines = list(reading.read_lines(["One. Two.", "", "Three."], "text", "f"))
    assert [[s and s.id for s in line] for line in lines] == [["f:1.1", "f:1.2"], [None], ["f:3.1"]]


TAGGED = [(line, "tagged") for line in ("The", "The_", "_DT")]
OTHER_SCRIPTS = [(s, form) for s in ("我们住在同一条巷子。", "Он дома.", "나는 집에 있다.") for form in ("raw", "text")]


@pytest.mark.parametrize(("line", "form"), TAGGED + OTHER_SCRIPTS)
def test_wrong_lines_name_their_place(line, form):
    """Raw text is English: the rules for its words would take Chinese characters, or whole sentences, for words."""
    with pytest.raises(TreebankError, match="f:1: "):
        list(reading.read_lines([line], form, "f"))


def test_running_text_is_split_into_sentences():
    parts = [
        "Mr. Brown paid $3.5 million on Jan. 5, 1990.", '"Why?" asked Dr. J. Green.', "He left at 5 p.m. (see Fig. 3).",
        "Really?!",
    ]  # fmt: skip
    assert reading.split_sentences(" ".join(parts)) == parts
    assert reading.split_sentences(" \n ") == [] == reading.read_text("\u00a0")
    assert [s.text for s in reading.read_text(" ".join(parts))] == parts


def test_a_treebank_says_whether_hyphens_split_words_and_which_marks_it_has_without_full_stops():
    rows = (["well-known", *"、、、、"], False, []), (["a", "-", "b"] * 5, True, ["-"]), (["It", "."], True, None)
    for words, hyphens, marks in rows:
        found = reading.habits([Sentence(words)])
        assert (found["hyphens"], found["marks"]) == (hyphens, marks) and "-" not in found["common"]


def test_words_of_one_sentence_are_asked_about():
    for texts in (["It", "rained", "."], ["Yes", "…"], ("Why", "?", "So"), iter(["(", "It", ")"])):
        with pytest.raises(TreebankError, match="words of one sentence"):
            reading.read_sentences(texts)
    for texts in (["It"], ["."], ["Yes", "No"], ["It rained", "."], [["It"], ["."]], ["It.", "Rained."], ["So", ":-)"]):
        assert len(reading.read_sentences(texts)) == len(texts)
    assert len(reading.read_sentences(["It", "."], "tokens")) == 2
    assert len(reading.read_sentences(pandas.Series(["It", "."]))) == 2


def test_scripts():
    found = {"It": "LATIN", "café о": "LATIN", "Он": "CYRILLIC", "ＡＢ": "LATIN", "5 .": "", "我": "CJK", "א": "HEBREW"}
    assert {text: reading.script(text) for text in found} == found


def test_words_get_one_form():
    forms = {"ＡＢｃ１２％": "ABc12%", "安妮‧白朗黛": "安妮·白朗黛", "约翰・史密斯": "约翰·史密斯"}
    forms |= {"\uf914": "樂", "，": ","}
    forms |= {word: word for word in ("。", "龍", "don't", "")}  # traditional stays traditional
    for word, one in forms.items():
        assert reading.normalise(word) == one == reading.normalise(one)
    assert all(map(reading.is_chinese, ("a龍", "〇", "𠮷", "々"))) and not reading.is_chinese("abc é カ 한 ，１")


@pytest.mark.parametrize("piece", ["? ) ", "。 ", '! " ', "It ran. ", "cf. "])
def test_splitting_takes_time_in_proportion_to_the_text(piece):
    parts = reading.split_sentences(piece * 20_000)
    assert "".join("".join(parts).split()) == "".join((piece * 20_000).split())
