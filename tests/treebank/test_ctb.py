"""Head rules and arc labels in the style of the Chinese Treebank, and which language's rules a tree gets."""

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import load
from lalkit.treebank.head_rules import ENGLISH
from lalkit.treebank.head_words import dependencies, derive


@pytest.mark.parametrize(
    ("tree", "heads", "labels"),
    [
        ("(VP (BA 把) (IP-OBJ (NP-SBJ (NN 门)) (VP (VV 关) (AS 了))))", (0, 3, 1, 3), "ROOT SBJ OBJ ASP"),
        ("(VP (SB 被) (VP (VV 骗)))", (0, 1), "ROOT COMP"),
        ("(NP (CP (IP (NP-SBJ (PN 你)) (VP (VV 写))) (DEC 的)) (NP (NN 信)))", (2, 3, 4, 0), "SBJ PMOD RELC ROOT"),
        ("(NP (DNP (NP (PN 我)) (DEG 的)) (QP (CD 三) (CLP (M 本))) (NP (NN 书)))", (2, 5, 4, 5, 0), "PMOD NMOD NUM NUM ROOT"),
        ("(NP (NN 米) (PU 、) (NN 面) (ETC 等))", (3, 3, 0, 3), "COORD P ROOT CC"),
        ("(NP (NN 米) (CC 和) (NN 面))", (3, 3, 0), "COORD CC ROOT"),
        ("(VP (VP (VV 唱)) (PU ，) (VP (VV 跳)))", (0, 1, 1), "ROOT P COORD"),
        ("(VP (VP (VV 去)) (VP (VV 买)))", (0, 1), "ROOT SERIAL"),
        ("(IP (IP (VP (VV 来))) (PU ，) (IP (VP (VV 走))) (PU 。))", (3, 3, 0, 3), "COORD P ROOT P"),
        ("(IP (CP-CND (ADVP (CS 如果)) (IP (VP (VV 来)))) (PU ，) (VP (VV 走)))", (2, 4, 4, 0), "ADV CND P ROOT"),
        ("(PP-LOC (P 在) (LCP (NP (NN 桌)) (LC 上)))", (0, 3, 1), "ROOT PMOD PMOD"),
        ("(VP (VV 跑) (DER 得) (VP (ADVP (AD 很)) (VP (VA 快))))", (0, 1, 4, 1), "ROOT ASP ADV COMP"),
        ("(VP (DVP (VP (VA 慢)) (DEV 地)) (VP (VV 走)))", (2, 3, 0), "PMOD MNR ROOT"),
        ("(VRD (VV 擦) (VA 净))", (0, 1), "ROOT RES"),
        ("(CP (IP (VP (VV 来))) (SP 吗) (PU ？))", (0, 1, 1), "ROOT PTC P"),
        ("(IP (NP-TPC (NN 书)) (NP-SBJ (PN 我)) (VP (VP (VV 看))))", (3, 3, 0), "TPC SBJ ROOT"),
        ("(DP (DT 这) (CLP (M 个)))", (0, 1), "ROOT NUM"),
        ("(PRN (PU （) (NP (NN 人)) (PU ）))", (2, 0, 2), "P ROOT P"),
    ],
)  # fmt: skip
def test_heads_and_labels(tree, heads, labels):
    assert derive(parse_tree(tree)) == (heads, tuple(labels.split()))


def test_chinese_under_other_tags_gets_no_english_heads(tmp_path):
    sinica_like = "(NP (Nab 猫) (DE 的) (Nab 书))"
    with pytest.raises(TreebankError, match="no head rules for Chinese with the tags DE, Nab"):
        derive(parse_tree(sinica_like))
    (tmp_path / "train.trees").write_text(f"{sinica_like}\n", encoding="utf-8")
    with pytest.raises(TreebankError, match=r"train.trees, line 1: there are no head rules.*\n.*\.conllu"):
        load(str(tmp_path), "train")


def test_a_folder_of_the_chinese_treebank_gets_chinese_heads(tmp_path):
    tree = "(IP (NP-SBJ (NN 书)) (VP (VV 来) (AS 了)) (PU 。))"
    (tmp_path / "train.trees").write_text(f"{tree}\n", encoding="utf-8")
    (sentence,) = load(str(tmp_path), "train").sentences
    assert sentence.heads == (2, 0, 2, 2) and sentence.arc_labels[2] == "ASP"
    assert dependencies(parse_tree("(NP (NN 书) (NN 店))"), ENGLISH)[0] == derive(parse_tree("(NP (NN 书) (NN 店))"))[0]


def test_english_keeps_its_rules():
    tree = parse_tree("(S (NP (DT The) (NN 龙)) (VP (VBD came)))")
    assert derive(tree) == dependencies(tree)
