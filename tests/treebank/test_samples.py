"""Our own treebanks in data/ are large enough and uniform, and their dependencies are those of the head rules."""

import pytest

from lalkit.treebank import brackets, conllu
from lalkit.treebank.check import check
from lalkit.treebank.corpora import SPLITS, load, shipped
from lalkit.treebank.head_words import derive, read_tables

KINDS = {
    "sample": ("register", "news headline dialogue letter science instruction"),
    "sample-zh": ("script", "simplified traditional"),
}
NAMES = ("sample", "sample-zh")


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


@pytest.mark.parametrize("name", NAMES)
def test_heads_are_those_of_the_rules_and_arc_labels_are_documented(name):
    labels = {label for label, _ in read_tables({"sample": "english", "sample-zh": "chinese"}[name])["labels"]}
    for _, tree, deps in sentences(name):
        if not deps.comments.get("heads"):  # this comment says why they are different
            assert (deps.heads, deps.labels) == derive(brackets.clean(tree)), deps.comments["sent_id"]
        assert set(deps.labels) <= (labels - {"DEP"} if name == "sample-zh" else labels)


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_the_words_no_sentence_occurs_twice_and_every_part_has_every_kind(name):
    rows, (key, kinds) = list(sentences(name)), KINDS[name]
    for _, tree, deps in rows:
        words = [brackets.unescape(word) for word in brackets.clean(tree).words()]
        assert deps.comments["text"] == ("" if name == "sample-zh" else " ").join(words)
    for comment in ("text", "sent_id"):
        assert len({deps.comments[comment].lower() for _, _, deps in rows}) == len(rows)
    for split in SPLITS:
        assert {deps.comments[key] for at, _, deps in rows if at == split} == set(kinds.split())
