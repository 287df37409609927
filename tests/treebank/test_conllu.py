"""CoNLL-U in and out: what lalkit does not know is kept; parts of speech, and files that obey the rules of UD."""

import random
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lalkit.chart.joint import JointTree
from lalkit.errors import TreebankError
from lalkit.network.model import arc_labels
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.brackets import unescape
from lalkit.treebank.conllu import RELATIONS, UPOS, format_conllu, is_universal, scan_conll, universal_tags
from lalkit.treebank.corpora import load, read_file
from lalkit.treebank.text import read_conllu, read_line
from lalkit.treebank.tree import Sentence, Span

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
    for before, after in zip(parsed, read_file(tmp_path / "f.conllu"), strict=True):
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


# The subtypes that UD has documented for English.
SUBTYPES = set(
    "acl:relcl advcl:relcl aux:pass cc:preconj compound:prt csubj:outer csubj:pass det:predet flat:foreign nmod:desc nmod:poss "
    "nmod:unmarked nsubj:outer nsubj:pass obl:agent obl:unmarked".split()
)
WORDS = tuple("She did n't say that nobody from New York is here ( that is bad ) .".split())
TAGS = "PRP VBD RB VB IN NN IN NNP NNP VBZ RB -LRB- DT VBZ JJ -RRB- .".split()
HEADS = (4, 4, 4, 0, 11, 11, 9, 9, 6, 11, 4, 15, 15, 15, 4, 15, 4)
LABELS = "nsubj aux advmod root mark nsubj case amod nmod cop ccomp punct nsubj cop parataxis punct punct".split()
EXPECTED = "PRON AUX PART VERB SCONJ PRON ADP ADJ PROPN AUX ADV PUNCT PRON AUX ADJ PUNCT PUNCT".split()


def violations(text: str) -> list[str]:
    """What UD's validation of level 1 (lines, columns, ids) and level 2 (UPOS, relations, tree, metadata) says of a file."""
    found, ids = [], set()
    if not text.endswith("\n\n") or "\n\n\n" in text:
        found.append("an empty line ends each sentence")
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = dict(re.findall(r"^# (\w+) = (.*)$", block, re.M))
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        name = comments.get("sent_id", "")
        if not re.fullmatch(r"[^\s/]+", name) or name in ids:
            found.append(f"sent_id {name!r}")
        ids.add(name)
        if any(len(row) != 10 or any(cell == "" or cell != cell.strip() for cell in row) for row in rows):
            found.append("ten columns, none of them empty")
            continue
        if [row[0] for row in rows] != [str(i) for i in range(1, len(rows) + 1)]:
            found.append("ids")
        spaces = "".join(row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " ") for row in rows)
        if comments.get("text", "") != spaces.rstrip():
            found.append("text")
        heads = [int(row[6]) for row in rows]
        found += [f"UPOS {row[3]}" for row in rows if row[3] not in UPOS]
        found += [f"label {row[7]}" for row in rows if row[7] not in RELATIONS | SUBTYPES]
        found += [f"root {row[0]}" for row in rows if (row[6] == "0") != (row[7] == "root")]
        found += [] if heads.count(0) == 1 else ["one root"]
        for start in range(1, len(rows) + 1):
            word, steps = start, 0
            while word and steps <= len(rows):
                word, steps = heads[word - 1], steps + 1
            found += [f"a cycle with {start}"] if word else []
        found += [f"MISC {row[9]}" for row in rows if not re.fullmatch(r"_|\w+=[^|]+(\|\w+=[^|]+)*", row[9])]
    return found


def test_parts_of_speech_follow_from_tags_labels_and_words():
    assert len(UPOS) == 17 and len(RELATIONS) == 37
    assert list(universal_tags(WORDS, TAGS, LABELS)) == EXPECTED
    cases = {
        ("to", "TO", "mark"): "PART", ("to", "IN", "case"): "ADP", ("which", "WDT", "det"): "DET",
        ("which", "WDT", "obj"): "PRON",
        ("is", "VBZ", "root"): "VERB", ("-", ":", "cc"): "SYM", ("/", "SYM", "punct"): "PUNCT", ("with", "IN", "goeswith"): "X",
        ("$", "$", "obj"): "SYM", ("NOUN", "NOUN", "obj"): "NOUN", ("all", "DT", "nsubj"): "DET", ("ça", "new", "obj"): "X",
    }  # fmt: skip
    for (word, tag, label), upos in cases.items():
        assert universal_tags([word], [tag], [label]) == (upos,), word
    assert universal_tags(["."], None, ["punct"]) == ("PUNCT",)


def test_which_labels_are_universal():
    assert is_universal("nsubj:pass root punct".split())
    assert not any(is_universal(labels.split()) for labels in ("nsubj punct", "SBJ ROOT P", "prep root", ""))


SENTENCE = Sentence(WORDS, TAGS, None, HEADS, LABELS, "a b/c\n1", upos=EXPECTED)


def test_a_file_obeys_the_rules_and_is_read_again():
    notes = [(["tree_probability = 0.5"], ["ArcP=0.5|TagP=1.0"] * len(WORDS))] * 2
    text = format_conllu([SENTENCE, replace(SENTENCE, id="")], notes)
    assert violations(text) == [] and "# sent_id = a_b_c_1\n# text = She did n't" in text and "\t_\tArcP=0.5|" in text
    (read, again) = scan_conll(text)
    assert (read.upos, read.tags, read.heads, read.words) == (SENTENCE.upos, SENTENCE.tags, HEADS, again.words)
    plain = format_conllu([replace(SENTENCE, upos=None, arc_labels=["P"] * len(WORDS))])
    assert plain.startswith("# sent_id = a b/c 1\n1\tShe\t_\t_\tPRP\t_\t4\tP\t_\t_\n") and "# text" not in plain


def wants_root(output, heads):
    """Return scores that are best for `root` everywhere but at the root."""
    return torch.stack([(heads > 0).float(), torch.zeros(heads.shape), (heads == 0).float()], -1)


def test_exactly_the_root_is_called_root():
    scored = SimpleNamespace(output=SimpleNamespace(arc_scores=torch.zeros(1, 3, 4)))
    tree = JointTree(0.0, [], torch.tensor([2, 0, 2]).numpy())
    for labels, expected in ((("root", "obj", "det"), [[1, 0, 1]]), (("ROOT", "OBJ", "DET"), [[0, 2, 0]])):
        model = SimpleNamespace(network=SimpleNamespace(arc_labels=wants_root), vocab=Vocab((), (), labels))
        assert arc_labels(model, scored, [tree]).argmax(-1).tolist() == expected


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["ewt", "gum"])
def test_gold_is_written_and_read_again(corpus):
    """The rules also give these sentences the universal parts of speech that people gave them."""
    gold = [replace(s, rows=()) for s in load(corpus, "dev").sentences[:200]]  # without ranges
    text = format_conllu(gold)
    assert violations(text) == []
    unescaped = [tuple(re.sub("-LRB-", "(", re.sub("-RRB-", ")", word)) for word in s.words) for s in gold]
    columns = [(words, s.tags, s.heads, s.arc_labels, s.upos) for words, s in zip(unescaped, gold)]
    assert columns == [(s.words, s.tags, s.heads, s.labels, s.upos) for s in scan_conll(text)]
    right = [a == b for s in gold for a, b in zip(s.upos, universal_tags(s.words, s.tags, s.arc_labels))]
    assert 100 * sum(right) / len(right) >= 99.5
