"""CoNLL-U in and out: what lalkit does not know is kept, and only its own columns change."""

import random
from dataclasses import replace

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import unescape
from lalkit.treebank.conllu import format_conllu, scan_conll
from lalkit.treebank.corpora import read_dependencies
from lalkit.treebank.text import read_conllu, read_line
from lalkit.treebank.tree import Span

WORD = "{}\t{}\t{}\tNOUN\tNN\tNumber=Sing\t{}\tdep\t{}:dep\t_"
ROWS = [WORD.format(i, word, word.lower(), i - 1, i - 1) for i, word in enumerate(("In", "dem", "Haus", "."), 1)]
EMPTY = "2.1\tgeht\tgehen\tVERB\t_\t_\t_\t_\t0:root\tCopyOf=3"
# Lines that are ours to keep, each put into a sentence of four words before this row; and what is put instead of a row.
KEPT = {
    "a comment": (0, "# newdoc id = a b"), "the text": (0, "# text = Im Haus ."),
    "a comment without =": (0, "# free words"), "a translation": (0, "# text_en = In the house."),
    "a comment with a tab": (0, "# a\tb"), "a comment with a hash": (0, "#text=#1"), "a global one": (0, "# global.Entity = a"),
    "our columns": (0, "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"),
    "a range": (0, "1-2\tIm\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No"),
    "a range at the end": (2, "3-4\tHaus.\t_\t_\t_\t_\t_\t_\t_\t_"), "an empty node": (2, EMPTY),
    "two empty nodes": (2, EMPTY + "\n" + EMPTY.replace("2.1", "2.2")),
    "an empty node before all": (0, EMPTY.replace("2.1", "0.1")),
}  # fmt: skip
CHANGED = {
    "a space": ("\tHaus\t", "\t10 000\t"), "two spaces": ("\tHaus\t", "\ta  b\t"),
    "a no-break space": ("\tHaus\t", "\t10\u00a0000\t"), "a lemma with a space": ("\thaus\t", "\tein haus\t"),
    "features": ("Number=Sing", "Case=Dat|Number=Sing"), "MISC": ("3:dep\t_", "3:dep\tSpaceAfter=No|Gloss=a b"),
    "a blind file": ("{h}\tdep", "_\t_"), "no XPOS": ("\tNN\t", "\t_\t"),
    "a head that is no number": ("\t2\tdep", "\ttwo\tdep"), "two roots": ("\t1\tdep", "\t0\tdep"),
    "a cycle": ("\t0\tdep", "\t2\tdep"), "CRLF": ("\n", "\r\n"), "a bracket": ("\tHaus\t", "\t(\t"),
    "a quote": ("\tHaus\t", '\t"\t'), "an escape": ("\tHaus\t", "\t1\\/2\t"), "an underscore": ("\tHaus\t", "\t_\t"),
    "an invisible space": ("\tHaus\t", "\tHa\u200bus\t"), "a hash": ("\tIn\t", "\t#\t"),
    "an eleventh column": ("3:dep\t_", "3:dep\t_\tB-LOC"), "eight columns": ("\t3:dep\t_", ""),
    "enhanced": ("3:dep", "3:dep|1:conj"),
}  # fmt: skip


def inputs():
    for name, (place, line) in KEPT.items():
        yield pytest.param("\n".join([*ROWS[:place], line, *ROWS[place:]]) + "\n\n", id=name)
    for name, (old, new) in CHANGED.items():
        text = "\n".join(ROWS) + "\n\n"
        for head in range(4) if "{h}" in old else "0":
            text = text.replace(old.format(h=head), new)
        yield pytest.param(text, id=name)


@pytest.mark.parametrize("text", list(inputs()))
def test_only_our_columns_change(text):
    (sentence,) = read_conllu(text, "f", 7)
    assert sentence.place.startswith("f:") and len(sentence) == 4 and sentence.words == read_line(text, "conllu").words
    parsed = replace(sentence, tags=list("ABCD"), upos=["X"] * 4, heads=(3, 1, 0, 3), arc_labels=list("abcd"))
    parsed = replace(parsed, constituents=(Span(0, 4, "S"),))
    before, after = text.replace("\r\n", "\n").split("\n"), format_conllu([parsed]).split("\n")
    after.remove(f"# constituency = {parsed.tree}")
    ours = iter(["X A 3 a _", "X B 1 b _", "X C 0 c _", "X D 3 d _"])
    assert len(before) == len(after)
    for old, new in zip(before, after):
        if old[:1] in "#" or not old.split("\t")[0].isdigit():
            assert new == old
            continue
        old, new = old.split("\t"), new.split("\t")
        old += "_" * (10 - len(old))
        assert [new[i] for i in (3, 4, 6, 7, 8)] == next(ours).split(" ") and len(new) == len(old)
        assert [new[i] for i in (0, 1, 2, 5, 9)] == [old[i] for i in (0, 1, 2, 5, 9)]
    (again,) = read_conllu(format_conllu([parsed]))
    assert again.words == sentence.words and again.tags == parsed.tags and again.text == sentence.text


def test_500_raw_sentences_keep_their_offsets_and_constituents(sample, tmp_path):
    pick, parsed = random.Random(1), []
    for number in range(500):
        words = map(unescape, sample[number % len(sample)].words)
        sentence = read_line("".join(word + pick.choice(["", " ", " ", "  ", "\u00a0"]) for word in words).strip())
        n = len(sentence)
        spans = dict.fromkeys([Span(0, n, "S"), Span(pick.randrange(1, n), n, "VP")])
        parsed.append(replace(sentence, tags=("X",) * n, heads=(0, *[1] * (n - 1)), constituents=tuple(spans)))
    (tmp_path / "f.conllu").write_text(format_conllu(parsed), encoding="utf-8")
    for before, after in zip(parsed, read_dependencies(tmp_path / "f.conllu", "f"), strict=True):
        assert (after.text, after.offsets, after.tree) == (before.text, before.offsets, before.tree)
        assert after.words == tuple(after.text[start:end] for start, end in after.offsets)


def test_probabilities_join_what_misc_has():
    text = "\n".join(ROWS).replace("3:dep\t_", "3:dep\tA=1") + "\n\n"
    (sentence,) = read_conllu(text)
    written = format_conllu([replace(sentence, heads=(3, 1, 0, 3))], [(["p = 1"], ["ArcP=0.5"] * 4)])
    assert written.startswith("# p = 1\n1\tIn") and written.count("ArcP=0.5") == 4 and "\tA=1|ArcP=0.5\n" in written


def test_words_that_a_parser_leaves_out_hang_on_the_root():
    text = "\n".join(ROWS) + "\n\n"
    (sentence,) = read_conllu(text)
    parsed = replace(sentence, words=("In", "Haus"), tags=("A", "B"), heads=(2, 0), arc_labels=("a", "root"))
    rows = [line.split("\t") for line in format_conllu([parsed]).split("\n")[:4]]
    assert [(row[1], row[4], row[6], row[7]) for row in rows] == [
        ("In", "A", "3", "a"), ("dem", "NN", "3", "punct"), ("Haus", "B", "0", "root"), (".", "NN", "3", "punct"),
    ]  # fmt: skip


def test_what_is_no_sentence_of_conllu():
    """Other wrong files are in tests/hostile/test_texts.py."""
    with pytest.raises(TreebankError, match="f, line 7, sentence 1"):
        list(read_conllu("\n".join(ROWS[1:]) + "\n", "f", 7))
    with pytest.raises(TreebankError, match="2 sentences"):
        read_line("\n\n".join(ROWS[:1] * 2), "conllu")


def test_tags_are_of_one_kind():
    """XPOS of the whole file, or UPOS of the whole file."""
    some = "\n".join(ROWS).replace("\tNN\t", "\t_\t", 2)
    both = scan_conll(f"{some}\n\n" + some.replace("NN", "_"))
    assert [item.tags for item in both] == [("_", "_", "NN", "NN"), ("_",) * 4]
    assert [item.tags for item in scan_conll(some.replace("NN", "_"))] == [("NOUN",) * 4]
    (blind,) = scan_conll("\n".join(ROWS[:1]).replace("\t0\tdep", "\t_\t_"))
    assert (blind.heads, blind.labels) == (None, None)
