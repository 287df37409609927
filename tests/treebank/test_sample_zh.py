"""Our own Chinese treebank in data/sample-zh has both scripts and is uniform; its dependencies are those of the rules."""

import re
from collections import Counter

import pytest

from lalkit.treebank import brackets, conllu, ctb
from lalkit.treebank.check import check
from lalkit.treebank.corpora import SPLITS, load, shipped
from lalkit.treebank.head_words import derive

CATEGORIES = set("ADJP ADVP CLP CP DNP DP DVP FRAG IP LCP NP PP QP VNV VP VRD VSB".split())
FUNCTIONS = set("ADV CND DIR EXT IO LOC OBJ PN PRD PRP SBJ TMP TPC".split())
SIMPLIFIED, TRADITIONAL = set("们这个张为么车书东爱"), set("們這個張為麼車書東愛")
PHENOMENA = "ba bei serial pivot relative possessive question coordination measure existential comparison topic".split()


@pytest.fixture(scope="module")
def sentences():
    """(split, tree, dependencies) of the whole treebank, straight from the files."""
    found = []
    for split in SPLITS:
        trees = (shipped() / "sample-zh" / f"{split}.trees").read_text(encoding="utf-8").splitlines()
        gold = list(conllu.scan_conll(brackets.read_text(shipped() / "sample-zh" / f"{split}.conllu")))
        assert len(trees) == len(gold)  # also: one tree a line
        found += [(split, brackets.parse_tree(tree), deps) for tree, deps in zip(trees, gold)]
    return found


@pytest.mark.parametrize(("split", "size"), [("train", 76), ("dev", 12), ("test", 12)])
def test_every_sentence_is_joint(split, size):
    report = check(load("sample-zh", split, lenient=True))
    assert report.clean and report.sentences == size


def test_dependencies_are_those_of_the_rules(sentences):
    for _, tree, deps in sentences:
        assert (deps.heads, deps.labels) == derive(brackets.clean(tree)), deps.comments["sent_id"]
    labels = Counter(label for _, _, deps in sentences for label in deps.labels)
    assert set(labels) <= set(re.findall("^    ([A-Z]+) ", ctb.__doc__, re.MULTILINE)) and labels["DEP"] == 0


def test_only_tags_and_labels_of_the_chinese_treebank(sentences):
    unknown = Counter()
    for _, tree, _ in sentences:
        for node in tree.nodes():
            category, *functions = node.label.split("-")
            unknown.update({category} - (ctb.TAGS if node.is_leaf else CATEGORIES))
            unknown.update(set(functions) - FUNCTIONS)
    assert not unknown


def test_both_scripts_are_in_every_split_and_neither_is_mixed(sentences):
    for split in SPLITS:
        assert {d.comments["script"] for at, _, d in sentences if at == split} == {"simplified", "traditional"}
    for _, _, deps in sentences:
        other = SIMPLIFIED - TRADITIONAL if deps.comments["script"] == "traditional" else TRADITIONAL - SIMPLIFIED
        assert not other & set("".join(deps.words)), deps.comments["text"]
    assert sum(deps.comments["script"] == "simplified" for _, _, deps in sentences) == 50


def test_texts_are_the_words_and_no_sentence_occurs_twice(sentences):
    assert all(deps.comments["text"] == "".join(tree.words()) for _, tree, deps in sentences)
    for key in ("text", "sent_id"):
        assert len({deps.comments[key] for _, _, deps in sentences}) == len(sentences) == 100


def test_it_contains_the_promised_phenomena(sentences):
    found = Counter(name for _, _, deps in sentences for name in deps.comments["phenomena"].split())
    assert [name for name in PHENOMENA if found[name] < 2] == []
