"""Head children, dependencies and arc labels: single productions, small sentences, and all of the NLTK sample."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from lalkit.errors import TreebankError
from lalkit.treebank import arc_labels, brackets, conllu
from lalkit.treebank.arc_labels import EQUALS, ROLES, TABLE, arc_label
from lalkit.treebank.head_rules import ENGLISH, PUNCTUATION, HeadRule, HeadRules
from lalkit.treebank.head_words import dependencies, head_child
from lalkit.treebank.tree import Node, check_heads


def production(text: str) -> tuple[Node, int]:
    """ "VP(TO *VP)" -> a node with one-word children and the index of the starred one."""
    parent, _, inside = text.rstrip(")").partition("(")
    names = inside.split()
    children = tuple(Node(name.lstrip("*"), word="w") for name in names)
    return Node(parent, children), next(i for i, name in enumerate(names) if name.startswith("*"))


def arcs(text: str) -> list[str]:
    """A bracketed tree -> its arcs as "word LABEL head"."""
    tree = brackets.parse_tree(text)
    heads, labels = dependencies(tree)
    words = ["0", *tree.words()]
    return [f"{word} {label} {words[head]}" for word, label, head in zip(tree.words(), labels, heads)]


@pytest.mark.parametrize(
    "text",
    [
        # those named in the description of the corpus
        "VP(TO *VP)", "VP(*MD VP)", "PP(*IN NP)", "S(NP *VP .)", "SBAR(*IN S)", "SBAR(*WHNP S)", "NP(NP CC *NP)",
        "NP(NN CC *NN)", "VP(*VP CC VP)", "NP(NNP *POS)", "QP(*$ CD CD)",
        # order of categories, direction and ties
        "NP(DT JJ *NN)", "NP(*NP PP SBAR)", "NP(NN *NNS)", "NP(NNS *NN)", "NP(NNP *NNP CD)", "NP(DT *JJ)",
        "S(NP *ADJP)", "S(S , CC *S .)", "S(`` S , '' NP *VP .)", "SBAR(SBAR CC *SBAR)", "ADJP(CD *NN)", "ADJP(*$ CD)",
        "ADVP(NP *RB)", "ADVP(NP *IN)", "QP(JJR *IN CD)", "WHNP(*WP$ NN)", "WHNP(NP *WHPP)", "WHPP(*IN WHNP)",
        "WHADVP(*WRB JJ)", "WHADJP(*WRB JJ)", "PRT(*RP)", "CONJP(*RB RB IN)", "CONJP(*CC RB)", "NX(NX CC *NX)",
        # labels that are rare in the sample
        "SBARQ(WHNP *SQ .)", "SQ(*VBZ NP VP)", "SINV(`` S , '' *VP NP .)", "SINV(*MD NP VP)", "PRN(-LRB- *NP -RRB-)",
        "PRN(, NP *VP ,)", "FRAG(*NP : S .)", "X(NNP *NNP .)", "UCP(*ADJP CC NP)", "LST(*LS .)", "NAC(NNP , *NNP ,)",
        "NAC(CC *PP)", "RRC(ADVP *VP)", "INTJ(RB *JJ)", "TOP(NP *VP .)",
        # CRAFT
        "NML(NN HYPH *NN)", "NML(*NN HYPH CD)", "NML(NML CC *NML)", "NP(DT *NML)", "NP(NML *NN)", "ADJP(NN HYPH *VBG)",
        "ADJP(NN HYPH *JJ PP)", "ADJP(*JJ HYPH , PP)", "TITLE(NP : *S)", "HEADING(*NP .)", "CAPTION(NP *VP .)",
        "CIT(-LRB- *NNP FW FW CD -RRB-)", "FRAG(LST *NP : S)", "LST(-LRB- *LS -RRB-)",
        # a coordinator or a punctuation mark heads only where nothing else can
        "UCP(CC *NML CC ADJP)", "PP(CC *PP CC PP)", "PP(*CC NP)", "NP(CC *DT)", "PRN(: *CC :)", "NP(`` *'')",
        "VP(*, .)", "UNHEARD-OF(NP *VP .)",
    ],
)  # fmt: skip
def test_head_child(text):
    node, expected = production(text)
    assert head_child(node) == expected


@pytest.mark.parametrize("name", ["NP-SBJ-1", "NP=2", "NP-TMP-CLR", "NP|PRT"])
def test_function_tags_and_indices_do_not_move_the_head(name):
    children = tuple(Node(label, (Node("X", word="w"),)) for label in (name, "PP-LOC-2", "NP"))
    assert head_child(Node("PP-DIR=3", children)) == 1
    assert head_child(Node(name, children)) == 2


def test_an_only_child_is_the_head_and_a_leaf_has_none():
    assert head_child(Node("NP", (Node(",", word=","),))) == 0
    with pytest.raises(TreebankError, match="is a word"):
        head_child(Node("NN", word="end"))


def test_other_rules_can_be_given():
    first = HeadRules({"NP": HeadRule("first", "JJ > NN")}, other=HeadRule("first"), never=frozenset())
    node, _ = production("NP(DT *NN JJ)")
    assert head_child(node, first) == 2
    tree = brackets.parse_tree("(S (NP (DT the) (NN end)) (VP (VBZ comes)))")
    assert dependencies(tree, first)[0] == (2, 0, 2)
    assert dependencies(tree)[0] == (2, 3, 0)


def test_a_sentence():
    text = """(S (NP-SBJ (NP (NNP Pierre) (NNP Vinken)) (, ,) (ADJP (NP (CD 61) (NNS years)) (JJ old)) (, ,))
        (VP (MD will) (VP (VB join) (NP (DT the) (NN board))
          (PP-CLR (IN as) (NP (DT a) (JJ nonexecutive) (NN director))) (NP-TMP (NNP Nov.) (CD 29)))) (. .))"""
    assert arcs(text) == [
        "Pierre NMOD Vinken", "Vinken SBJ will", ", P Vinken", "61 NUM years", "years AMOD old", "old NMOD Vinken",
        ", P Vinken", "will ROOT 0", "join VC will", "the DET board", "board OBJ join", "as CLR join", "a DET director",
        "nonexecutive NMOD director", "director PMOD as", "Nov. TMP join", "29 NUM Nov.", ". P will",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "arc"),
    [
        ("(S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN made) (PP (IN by) (NP-LGS (PRP us))))))", "by LGS made"),
        ("(S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN made) (PP (IN by) (NP-LGS (PRP us))))))", "us PMOD by"),
        ("(VP (TO to) (VP (VB go)))", "to IM go"),
        ("(VP (VBD made) (NP (PRP it)) (S (ADJP-PRD (JJ easy))))", "easy PRD made"),
        ("(VP (VBD said) (SBAR (IN that) (S (NP-SBJ (PRP he)) (VP (VBD left)))))", "that COMP said"),
        ("(VP (VBD said) (SBAR (IN that) (S (NP-SBJ (PRP he)) (VP (VBD left)))))", "left SUB that"),
        ("(VP (VBD lives) (PP-LOC-CLR (IN in) (NP (NNP Rome))))", "in LOC lives"),
        ("(VP (VBD fell) (PP (IN on) (NP (NNP Rome))))", "on VMOD fell"),
        ("(VP (VBZ is) (RB not) (ADJP-PRD (JJ old)))", "not ADV is"),
        ("(VP (VB give) (ADVP|PRT (RB up)))", "up ADV give"),
        ("(VP (VB come) (ADVP-TMP|PRT (RB now)))", "now TMP come"),
        ("(VP (VB give) (PRT (RP up)))", "up PRT give"),
        ("(VP (VBZ sees) (NP-2 (NN light)))", "light OBJ sees"),
        ("(VP (VB eat) (CC and) (VB drink) (NP (NN wine)))", "drink COORD eat"),
        ("(VP (VB eat) (CC and) (VB drink) (NP (NN wine)))", "and CC eat"),
        ("(VP (VP (VB a)) (, ,) (VP (VB b)) (, ,) (CC and) (ADVP (RB then)) (VP (VB c)))", "b COORD a"),
        ("(VP (VP (VB a)) (, ,) (VP (VB b)) (, ,) (CC and) (ADVP (RB then)) (VP (VB c)))", "c COORD a"),
        ("(VP (VP (VB a)) (, ,) (VP (VB b)) (, ,) (CC and) (ADVP (RB then)) (VP (VB c)))", "then ADV a"),
        ("(NP (NP (NN a)) (, ,) (NP (NN b)) (CC and) (NP (NN c)))", "a COORD c"),
        ("(NP (NP (NN a)) (, ,) (NP (NN b)) (, ,))", "a APPO b"),
        ("(S (S-ADV (VP (VBG going))) (, ,) (S (VP (VB come))))", "going ADV come"),
        ("(S (S (VP (VB go))) (: ;) (S (VP (VB come))))", "go COORD come"),
        ("(PP-LOC (PP-LOC (IN at) (NP (NN x))) (CC or) (PP-LOC (IN in) (NP (NN y))))", "in COORD at"),
        ("(UCP (ADJP (JJ old)) (CC and) (PP (IN in) (NP (NN need))))", "in COORD old"),
        ("(S (CC But) (NP-SBJ (PRP he)) (VP (VBD left)))", "But CC left"),
        ("(NP (NP (NNP Ed) (POS 's)) (NN car))", "'s POSS car"),
        ("(NP (PRP$ his) (NN car))", "his POSS car"),
        ("(NP (QP ($ $) (CD 5)) (JJ net) (NN gain))", "$ NUM gain"),
        ("(NP (NP (NN car)) (SBAR (WHNP (WDT that)) (S (VP (VBZ goes)))))", "that RELC car"),
        ("(NP (NP (NN car)) (PRN (-LRB- -LRB-) (NP (NNP T)) (-RRB- -RRB-)))", "T PRN car"),
        ("(NP (NML (NN protein) (HYPH -) (NN kinase)) (NN activity))", "- P kinase"),
        ("(NP (NML (NN protein) (HYPH -) (NN kinase)) (NN activity))", "kinase NMOD activity"),
        ("(SBARQ (WHNP (WP Who)) (SQ (VBD did) (NP-SBJ (PRP he)) (VP (VB see))) (. ?))", "Who TPC did"),
        ("(SBARQ (WHNP (WP Who)) (SQ (VBD did) (NP-SBJ (PRP he)) (VP (VB see))) (. ?))", "see VC did"),
        ("(FRAG (NP (NN end)) (NP-TMP (NN today)))", "today TMP end"),
        ("(FRAG (NP (NN end)) (VP (VBN seen)))", "seen DEP end"),
    ],
)
def test_arc_labels(text, arc):
    assert arc in arcs(text)


TAGS = """CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH
    VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB $ #"""


LABELS = set(re.findall("^    ([A-Z]+) ", arc_labels.__doc__, re.MULTILINE))


def test_every_label_is_documented_and_every_name_in_the_tables_is_known():
    used = {line.label for line in TABLE} | set(ROLES.values()) | {"ROOT", "P", "CC", "COORD", "APPO", "POSS", "DEP"}
    assert used == LABELS
    known = set(" ".join(f"{line.parent} {line.head} {line.child}" for line in TABLE).split()) | set(EQUALS)
    ranked = set(" ".join(rule.ranks for rule in ENGLISH.by_parent.values()).replace(">", " ").split())
    assert not PUNCTUATION & ranked, "punctuation is never a head"
    misspelt = (known | ranked) - set(ENGLISH.by_parent) - set(TAGS.split())
    assert not misspelt


def test_only_constituents_have_a_role():
    node = Node("VP", (Node("VB", word="go"), Node("NN-TMP", word="today")))
    assert arc_label(node, 0, 1) == "OBJ"


@pytest.mark.parametrize("side", ["left", "right", "unary"])
def test_a_tree_deeper_than_the_recursion_limit(side):
    depth = sys.getrecursionlimit() * 5
    node, leaf = Node("NN", word="w"), Node("DT", word="d")
    for _ in range(depth):
        node = Node("NP", {"left": (node, leaf), "right": (leaf, node), "unary": (node,)}[side])
    heads, labels = dependencies(node)
    if side == "unary":
        assert (heads, labels) == ((0,), ("ROOT",))
    else:
        root = 1 if side == "left" else depth + 1
        assert heads == tuple(0 if i == root else root for i in range(1, depth + 2))
        assert Counter(labels) == {"ROOT": 1, "DET": depth}


@pytest.fixture(scope="module")
def sample() -> list[tuple[Node, tuple[int, ...]]]:
    """The 3,914 sentences of the NLTK Penn Treebank sample: (cleaned tree, heads of dependency_treebank)."""
    places = [Path(place) / "corpora" for place in os.environ.get("NLTK_DATA", "").split(os.pathsep) if place]
    needed = ("treebank.zip", "dependency_treebank.zip")
    folder = next((place for place in places if all((place / name).exists() for name in needed)), None)
    if folder is None:
        pytest.skip(f"needs {' and '.join(needed)} in $NLTK_DATA/corpora")
    pairs = []
    with zipfile.ZipFile(folder / needed[0]) as trees, zipfile.ZipFile(folder / needed[1]) as heads:
        for number in range(1, 200):
            name = f"wsj_{number:04d}"
            text = brackets.decode(trees.read(f"treebank/combined/{name}.mrg"), name)
            table = brackets.decode(heads.read(f"dependency_treebank/{name}.dp"), name)
            found = [brackets.clean(tree) for _, tree in brackets.scan_trees(text, name)]
            given = [sentence.heads for sentence in conllu.scan_conll(table, name)]
            assert len(found) == len(given), name
            pairs += zip(found, given)
    return pairs


@pytest.mark.data
def test_heads_are_those_of_the_dependency_treebank(sample):
    # The differences: coordinators that head a PP or a FRAG (a rule for them would make "both" the head of "both in A and in
    # B"), and an SBAR that heads an ADJP.
    assert len(sample) == 3914 and sum(len(heads) for _, heads in sample) == 94084
    differing = []
    for tree, heads in sample:
        wrong = sum(a != b for a, b in zip(dependencies(tree)[0], heads, strict=True))
        differing += [wrong] if wrong else []
    assert (len(differing), sum(differing)) == (4, 14)


@pytest.mark.data
def test_all_arcs_of_the_sample_have_a_label_of_the_inventory_and_form_a_tree(sample):
    counts = Counter()
    for tree, _ in sample:
        heads, labels = dependencies(tree)
        check_heads(heads)
        assert [label == "ROOT" for label in labels] == [head == 0 for head in heads]
        counts.update(labels)
    assert set(counts) == LABELS
    assert counts["DEP"] < 0.002 * counts.total()
    assert (counts["LGS"], counts["SBJ"], counts["PRD"]) == (232, 6833, 1300)


@pytest.mark.data
def test_craft_gets_trees_and_few_unnamed_arcs():
    folder = Path(os.environ.get("LALKIT_DATA", "nowhere")) / "craft/structural-annotation/treebank/penn"
    files = sorted(folder.glob("*.tree"))[:6]
    if not files:
        pytest.skip("needs craft/structural-annotation/treebank/penn/*.tree in $LALKIT_DATA")
    counts, heads_by_mark = Counter(), 0
    for file in files:
        for _, tree in brackets.scan_trees(brackets.read_text(file)):
            tree = brackets.clean(tree)
            heads, labels = dependencies(tree)
            check_heads(heads)
            counts.update(labels)
            tags = [leaf.label for leaf in tree.leaves()]
            heads_by_mark += sum(head > 0 and tags[head - 1] in PUNCTUATION for head in heads)
    assert set(counts) <= LABELS
    assert counts["DEP"] < 0.005 * counts.total()
    assert heads_by_mark <= 5, "punctuation heads only phrases that hold nothing else"
