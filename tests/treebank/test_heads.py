"""Head children, dependencies, arc labels: productions, small sentences, our own treebanks, and all of the NLTK sample."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import lalkit
from lalkit.errors import TreebankError
from lalkit.treebank import brackets, conllu
from lalkit.treebank.check import check
from lalkit.treebank.corpora import SPLITS, load, shipped
from lalkit.treebank.head_words import CHINESE, ENGLISH, Heads, dependencies, read_tables
from lalkit.treebank.tree import Node

RULES = Path(lalkit.__file__).parent / "treebank"


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
        # order of categories, direction and ties
        "NP(NP CC *NP)", "NP(NN *NNS)", "NP(NNS *NN)", "ADJP(*$ CD)", "ADVP(NP *IN)", "NX(NX CC *NX)",
        # labels that are rare in the sample
        "PRN(, NP *VP ,)", "X(NNP *NNP .)", "NAC(NNP , *NNP ,)", "NAC(CC *PP)", "RRC(ADVP *VP)", "INTJ(RB *JJ)", "TOP(NP *VP .)",
        # CRAFT
        "NML(NN HYPH *NN)", "NML(*NN HYPH CD)", "NML(NML CC *NML)", "NP(DT *NML)", "ADJP(NN HYPH *VBG)", "ADJP(NN HYPH *JJ PP)",
        "ADJP(*JJ HYPH , PP)", "TITLE(NP : *S)", "HEADING(*NP .)", "CAPTION(NP *VP .)", "CIT(-LRB- *NNP FW FW CD -RRB-)",
        # a coordinator or a punctuation mark heads only where nothing else can
        "UCP(CC *NML CC ADJP)", "PP(*CC NP)", "NP(CC *DT)", "PRN(: *CC :)", "NP(`` *'')",
        "VP(*, .)", "UNHEARD-OF(NP *VP .)",
    ],
)  # fmt: skip
def test_head_child(text):
    """Most rules are used in data/sample, whose heads and labels a test below compares; these are the others."""
    node, expected = production(text)
    assert ENGLISH.head_child(node)[0] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN made) (PP (IN by) (NP-LGS (PRP us))))))", "by LGS made; us PMOD by"),
        ("(VP (VBD made) (NP (PRP it)) (S (ADJP-PRD (JJ easy))))", "easy PRD made"),
        ("(VP (VBD lives) (PP-LOC-CLR (IN in) (NP (NNP Rome))))", "in LOC lives"),
        ("(VP (VB come) (ADVP-TMP|PRT (RB now)))", "now TMP come"),
        ("(VP (VBZ sees) (NP-2 (NN light)))", "light OBJ sees"),
        ("(VP (VP (VB a)) (, ,) (VP (VB b)) (, ,) (CC and) (ADVP (RB then)) (VP (VB c)))", "b COORD a; c COORD a; then ADV a"),
        ("(NP (NP (NN a)) (, ,) (NP (NN b)) (, ,))", "a APPO b"),
        ("(S (S-ADV (VP (VBG going))) (, ,) (S (VP (VB come))))", "going ADV come"),
        ("(S (S (VP (VB go))) (: ;) (S (VP (VB come))))", "go COORD come"),
        ("(UCP (ADJP (JJ old)) (CC and) (PP (IN in) (NP (NN need))))", "in COORD old"),
        ("(NP (NP (NNP Ed) (POS 's)) (NN car))", "'s POSS car"),
        ("(NP (NML (NN protein) (HYPH -) (NN kinase)) (NN activity))", "- P kinase; kinase NMOD activity"),
        ("(FRAG (NP (NN end)) (VP (VBN seen)))", "seen DEP end"),
    ],
)  # fmt: skip
def test_arc_labels(text, expected):
    assert set(expected.split("; ")) <= set(arcs(text))


@pytest.mark.parametrize(
    ("tree", "heads", "labels"),
    [
        ("(VP (BA 把) (IP-OBJ (NP-SBJ (NN 门)) (VP (VV 关) (AS 了))))", (0, 3, 1, 3), "ROOT SBJ OBJ ASP"),
        ("(NP (DNP (NP (PN 我)) (DEG 的)) (QP (CD 三) (CLP (M 本))) (NP (NN 书)))", (2, 5, 4, 5, 0), "PMOD NMOD NUM NUM ROOT"),
        ("(IP (CP-CND (ADVP (CS 如果)) (IP (VP (VV 来)))) (PU ，) (VP (VV 走)))", (2, 4, 4, 0), "ADV CND P ROOT"),
        ("(VP (VV 跑) (DER 得) (VP (ADVP (AD 很)) (VP (VA 快))))", (0, 1, 4, 1), "ROOT ASP ADV COMP"),
        ("(PRN (PU （) (NP (NN 人)) (PU ）))", (2, 0, 2), "P ROOT P"),
    ],
)  # fmt: skip
def test_chinese_heads_and_labels(tree, heads, labels):
    assert Heads()(brackets.parse_tree(tree)) == (heads, tuple(labels.split()))


def test_chinese_under_other_tags_gets_no_english_heads_and_english_keeps_its_rules(tmp_path):
    (tmp_path / "train.trees").write_text("(NP (Nab 猫) (DE 的) (Nab 书))\n", encoding="utf-8")
    with pytest.raises(TreebankError, match="train.trees, line 1: .*DE, Nab"):
        load(str(tmp_path), "train")
    tree = brackets.parse_tree("(S (NP (DT The) (NN 龙)) (VP (VBD came)))")
    assert Heads()(tree) == dependencies(tree)


def test_every_label_is_documented_and_every_name_in_the_tables_is_known():
    tables = read_tables(RULES / "english_rules.txt")
    used = {row[0] for row in tables["arcs"]} | {label for _, label in tables["roles"]}
    assert used | set("ROOT P CC COORD APPO POSS DEP".split()) == {label for label, _ in tables["labels"]}
    ranked = {name for _, ranks in ENGLISH.heads.values() for rank in ranks for name in rank}
    assert not ENGLISH.never & ranked, "punctuation is never a head"
    tags = "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN VBP VBZ"
    known = {name for row in tables["arcs"] for name in " ".join(row[1:4]).split()} | set(ENGLISH.alike) | ranked
    assert known <= set(ENGLISH.heads) | set(f"{tags} WDT WP WP$ WRB $ #".split())


@pytest.mark.parametrize("side", ["left", "right", "unary"])
def test_a_tree_deeper_than_the_recursion_limit(side):
    depth = sys.getrecursionlimit() * 5
    node, leaf = Node("NN", word="w"), Node("DT", word="d")
    for _ in range(depth):
        node = Node("NP", {"left": (node, leaf), "right": (leaf, node), "unary": (node,)}[side])
    heads, labels = dependencies(node)
    assert Counter(labels) == {"ROOT": 1} if side == "unary" else {"ROOT": 1, "DET": depth}
    assert set(heads) == {0} if side == "unary" else {0, 1 if side == "left" else depth + 1}


@pytest.mark.data
@pytest.mark.slow
def test_heads_are_those_of_the_dependency_treebank():
    """The differences: coordinators that head a PP or a FRAG (a rule for them would make "both" the head of "both in A and in
    B"), and an SBAR that heads an ADJP."""
    gold = [s for split in ("train", "dev", "test") for s in load("ptb-sample", split)]
    assert len(gold) == 3914 and sum(map(len, gold)) == 94084
    differing = [sum(a != b for a, b in zip(dependencies(s.tree)[0], s.heads, strict=True)) for s in gold]
    assert (sum(map(bool, differing)), sum(differing)) == (4, 14)
    counts = Counter(label for s in gold for label in s.arc_labels)
    assert set(counts) == {label for label, _ in read_tables(RULES / "english_rules.txt")["labels"]}
    assert counts["DEP"] < 0.002 * counts.total()
    assert (counts["LGS"], counts["SBJ"], counts["PRD"]) == (232, 6833, 1300)


KINDS = {
    "sample": ("register", "news headline dialogue letter science instruction"),
    "sample-zh": ("script", "simplified traditional"),
}


def sentences(name):
    """(split, tree, dependencies with comments) of the whole treebank, straight from the files: one tree a line."""
    for split in SPLITS:
        trees = (shipped() / name / f"{split}.trees").read_text(encoding="utf-8").splitlines()
        gold = conllu.scan_conll(brackets.read_text(shipped() / name / f"{split}.conllu"))
        yield from ((split, brackets.parse_tree(tree), deps) for tree, deps in zip(trees, gold, strict=True))


@pytest.mark.parametrize(("name", "sizes"), [("sample", (176, 44, 44)), ("sample-zh", (76, 12, 12))])
def test_every_sentence_is_joint(name, sizes):
    parts = [load(name, split, lenient=True) for split in SPLITS]
    assert tuple(map(len, parts)) == sizes and not any(map(check, parts))


@pytest.mark.parametrize("name", KINDS)
def test_heads_are_those_of_the_rules_and_arc_labels_are_documented(name):
    labels = {"sample": ENGLISH, "sample-zh": CHINESE}[name].labels
    for _, tree, deps in sentences(name):
        if not deps.comments.get("heads"):  # this comment says why they are different
            assert (deps.heads, deps.labels) == Heads()(brackets.clean(tree)), deps.comments["sent_id"]
        assert set(deps.labels) <= (labels.keys() - {"DEP"} if name == "sample-zh" else labels.keys())


@pytest.mark.parametrize("name", KINDS)
def test_texts_are_the_words_no_sentence_occurs_twice_and_every_part_has_every_kind(name):
    rows, (key, kinds) = list(sentences(name)), KINDS[name]
    for _, tree, deps in rows:
        words = [brackets.unescape(word) for word in brackets.clean(tree).words()]
        assert deps.comments["text"] == ("" if name == "sample-zh" else " ").join(words)
    for comment in ("text", "sent_id"):
        assert len({deps.comments[comment].lower() for _, _, deps in rows}) == len(rows)
    for split in SPLITS:
        assert {deps.comments[key] for at, _, deps in rows if at == split} == set(kinds.split())
