"""The readers of licensed treebanks and of the Sinica Treebank, on files of the same form with our own sentences, some broken."""

from itertools import chain

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import read_clause, read_sinica
from lalkit.treebank.check import check
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import to_joint

MRG = """
( (S
    (NP-SBJ-1 (DT The) (NN river) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )))
    (. .) ))
( (S (NP-SBJ (PRP It)) (VP (VBD rained) (PRT|ADVP (RP on)) (-LRB- -LRB-) (ADVP (RB there)) (-RRB- -RRB-)) (. .)))
"""
CTB = """<DOC>
<DOCID>{number}</DOCID>
<S ID=1>
((IP-HLN (NP-PN-SBJ (NR 小林))
         (VP (VV 擦)
             (NP-OBJ (NN 窗户)))) )
</S>
<S ID=2>
( (IP (NP-SBJ (-NONE- *pro*))
 (NP-SBJ (CP (WHNP-1 (-NONE- *OP*)) (CP (IP (NP-SBJ (PN 你)) (VP (VV 写) (NP-OBJ (-NONE- *T*-1)))) (DEC 的)))
 (NP (NN 信))) (VP (VV 到) (AS 了)) (PU 。)) )
</S>
</DOC>
"""


def test_copies_of_licensed_treebanks_are_read_as_they_are(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.trees").write_text(MRG + CTB.format(number=271), encoding="utf-8-sig")
    first, second, third, fourth = load(str(tmp_path), "dev").sentences
    assert first.words == ("The", "river", "was", "seen", ".") and first.heads == (2, 3, 0, 3, 3), "by our rules"
    assert second.words[3] == "-LRB-" and [c.label for c in second.constituents] == ["S", "NP", "VP", "PRT", "ADVP"]
    assert third.words == ("小林", "擦", "窗户") and fourth.words == ("你", "写", "的", "信", "到", "了", "。")
    assert fourth.heads == (2, 3, 4, 5, 0, 5, 5) and fourth.arc_labels[2] == "RELC"
    assert [c.label for c in fourth.constituents[1:3]] == ["NP", "CP::CP"]


PUNCTUATION = "#，(COMMACATEGORY)"
LINE = "#3:3.[7] S(theme:NP(quantifier:DM:那隻|Head:Nab:貓)|time:Dd:常|Head:VC1:睡在|goal[+x]:NP(Head:Nab[+y]:窗台))"


def read(tree):
    return read_clause(f"#1:1.[1] {tree}{PUNCTUATION}", "x")


def test_heads_roles_and_constituents():
    sentence = read_clause(LINE + PUNCTUATION, "sinica.3")
    assert sentence.words == ("那隻", "貓", "常", "睡在", "窗台") and sentence.id == "sinica.3"
    assert sentence.tags == ("DM", "Nab", "Dd", "VC1", "Nab") and sentence.heads == (2, 4, 4, 0, 4)
    assert sentence.arc_labels == ("quantifier", "theme", "time", "ROOT", "goal")
    assert [tuple(c) for c in sentence.constituents] == [(0, 5, "S"), (0, 2, "NP"), (4, 5, "NP")]
    assert len(to_joint(sentence)) == 3 and read("VP(Head:Caa[P1}:又|Head:VH:好)").tags == ("Caa", "VH")
    assert [c.label for c in read("NP(Head:NP(Head:Nab:貓))").constituents] == ["NP::NP"]


@pytest.mark.parametrize(
    ("tree", "heads", "labels"),
    [
        ("NP(Head:Nab:貓|Head:Nab:狗)", (2, 0), ("Head", "ROOT")),  # coordination: the last
        ("NP(property:A:小|head:Nab:貓|head:Nab:狗)", (3, 3, 0), ("property", "head", "ROOT")),
        ("NP(head:Nab:貓|Head:DE:的)", (2, 0), ("head", "ROOT")),  # Head before head
        ("NP(DUMMY1:Nab:貓|DUMMY2:Nab:狗)", (2, 0), ("DUMMY1", "ROOT")),  # neither: the last child
        ("NP(a:A:小|head:Head:Nab:貓)", (2, 0), ("a", "ROOT")),  # a doubled role
        ("S(topic[+theme]:NP(a:A:小|Head:Nab:貓)|Head:VH1:好)", (2, 3, 0), ("a", "topic", "ROOT")),
    ],
)
def test_which_child_is_the_head(tree, heads, labels):
    sentence = read(tree)
    assert (sentence.heads, sentence.arc_labels) == (heads, labels)


def test_broken_lines():
    for tree in (
        "S(Head:VA:走", "S(Head:VA:走))", "S(Head:VA:走)S(Head:VA:走)", "S()", "S(Head:走)", "S(Head:VA:)", "S(a:b:VA:走)",
        "S(NP(Head:Nab:貓))", "S(Head:V A:走)", "Head:VA:走",
    ):  # fmt: skip
        pytest.raises(TreebankError, read, tree)


def test_splits_take_lines_in_turn_and_a_broken_line_is_named():
    text = "\r\n".join([LINE + PUNCTUATION] * 19 + ["#20 S(", ""])
    parts = {split: list(read_sinica(text, split, "parsed")) for split in ("train", "dev", "test")}
    assert [len(items) for items in parts.values()] == [16, 2, 2]
    assert [s.id for s in parts["dev"]] == ["sinica.9", "sinica.19"] and "parsed, line 20" in str(parts["test"][1])


@pytest.mark.data
@pytest.mark.slow
def test_all_of_it_is_read_and_joint():
    corpora = {split: load("sinica", split) for split in ("train", "dev", "test")}
    assert [len(corpus) for corpus in corpora.values()] == [8000, 1000, 1000]
    assert sum(len(s) for corpus in corpora.values() for s in corpus.sentences) == 91634
    assert not any(map(check, corpora.values()))
    train = corpora["train"].sentences
    assert [len({*chain(*names)}) for names in ((s.arc_labels for s in train), (s.tags for s in train))] == [62, 183]
