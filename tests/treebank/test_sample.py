"""Our own treebank in data/sample is large enough and uniform, and its dependencies are those of the head rules."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from lalkit.treebank import arc_labels, brackets, conllu
from lalkit.treebank.corpora import SPLITS, load, shipped
from lalkit.treebank.head_words import dependencies
from lalkit.treebank.joint import to_joint

REGISTERS = {"news", "headline", "dialogue", "letter", "science", "instruction"}

# Of the Penn Treebank (Bies et al. 1995; Santorini 1990), nothing of ours.
TAGS = set(
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN VBP "
    "VBZ WDT WP WP$ WRB # $ . , : `` '' -LRB- -RRB-".split()
)
CATEGORIES = set(
    "ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV SQ UCP VP "
    "WHADJP WHADVP WHNP WHPP X".split()
)
FUNCTIONS = set("ADV NOM DTV LGS PRD PUT SBJ TPC VOC BNF DIR EXT LOC MNR PRP TMP CLR CLF HLN TTL".split())


def read(split):
    """(tree, its dependencies with comments) of every sentence of a split, straight from the files."""
    folder = shipped() / "sample"
    trees = (folder / f"{split}.trees").read_text(encoding="utf-8").splitlines()
    gold = list(conllu.scan_conll(brackets.read_text(folder / f"{split}.conllu")))
    assert len(trees) == len(gold)  # also: one tree a line
    return [(brackets.parse_tree(tree), deps) for tree, deps in zip(trees, gold)]


@pytest.fixture(scope="module")
def sentences():
    """(split, tree, dependencies) of the whole treebank."""
    return [(split, tree, deps) for split in SPLITS for tree, deps in read(split)]


@pytest.mark.parametrize(("split", "least"), [("train", 160), ("dev", 40), ("test", 40)])
def test_every_split_is_large_enough_and_all_of_it_is_joint(split, least):
    corpus = load("sample", split)
    assert len(corpus) >= least
    for sentence in corpus.sentences:
        assert None not in (sentence.tags, sentence.heads, sentence.arc_labels)
        assert to_joint(sentence)


def test_there_are_enough_sentences_and_enough_long_ones(sentences):
    assert len(sentences) >= 240
    assert sum(len(deps.words) > 40 for _, _, deps in sentences) >= 6


def test_only_penn_treebank_tags_and_labels(sentences):
    unknown = Counter()
    for _, tree, deps in sentences:
        for node in brackets.clean(tree).nodes():
            if node.is_leaf:
                unknown.update({node.label} - TAGS)
            else:
                category, *functions = node.label.split("-")
                unknown.update({category} - CATEGORIES)
                unknown.update(f"{category}-{tag}" for tag in functions if tag not in FUNCTIONS)
        unknown.update(set(deps.labels) - set(re.findall("^    ([A-Z]+) ", arc_labels.__doc__, re.MULTILINE)))
    assert not unknown


def test_heads_and_labels_are_those_of_the_rules_or_a_comment_says_why_not(sentences):
    for _, tree, deps in sentences:
        if not deps.comments.get("heads"):
            assert (deps.heads, deps.labels) == dependencies(brackets.clean(tree)), deps.comments["sent_id"]


def test_text_comments_are_the_words(sentences):
    for _, tree, deps in sentences:
        words = [brackets.unescape(word) for word in brackets.clean(tree).words()]
        assert deps.comments["text"] == " ".join(words)


def test_no_sentence_occurs_twice_and_every_id_is_unique(sentences):
    texts = Counter(deps.comments["text"].lower() for _, _, deps in sentences)
    ids = Counter(deps.comments["sent_id"] for _, _, deps in sentences)
    assert [text for text, count in texts.items() if count > 1] == []
    assert [id for id, count in ids.items() if count > 1] == []


def test_every_register_is_in_every_split(sentences):
    for split in SPLITS:
        assert {deps.comments["register"] for at, _, deps in sentences if at == split} == REGISTERS


def test_comparisons_have_one_form(sentences):
    """(ADJP (ADJP (JJR older)) (PP (IN than) ...)): what is compared with is a sister of the comparative's own phrase."""
    flat = []
    for _, tree, deps in sentences:
        for node in tree.nodes():
            labels = {child.label.split("-")[0] for child in node.children}
            if labels & {"JJR", "RBR"} and labels & {"PP", "SBAR"}:
                flat.append((deps.comments["sent_id"], " ".join(node.words())))
    assert not flat
