"""Reading named treebanks and folders, and the errors for wrong files."""

import doctest
import zipfile

import pytest

from lalkit.errors import CorpusError, TreebankError
from lalkit.evaluation.scores import out_of_reach
from lalkit.treebank import conllu, corpora
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.check import check, stats, trainable
from lalkit.treebank.corpora import Treebank, build, load
from lalkit.treebank.joint import from_joint, to_joint
from tests.corpora import needs

TREE = "( (S (NP-SBJ (DT The) (NN end)) (VP (VBD came))) )\n"
ROWS = "1\tThe\t_\t_\tDT\t_\t2\tDET\t_\t_\n2\tend\t_\t_\tNN\t_\t3\tSBJ\t_\t_\n3\tcame\t_\t_\tVBD\t_\t0\tROOT\t_\t_\n\n"


def folder(tmp_path, trees=TREE, rows=ROWS):
    if trees is not None:
        (tmp_path / "train.trees").write_text(trees)
    if rows is not None:
        (tmp_path / "train.conllu").write_text(rows)
    return str(tmp_path)


def test_a_folder_with_and_without_dependencies(tmp_path):
    given = load(folder(tmp_path), "train").sentences[0]
    (tmp_path / "train.conllu").unlink()
    derived = load(str(tmp_path), "train").sentences[0]
    assert given.heads == derived.heads == (2, 3, 0)
    assert given.arc_labels == ("DET", "SBJ", "ROOT") == derived.arc_labels


def test_two_files_for_one_part_are_an_error(tmp_path):
    for name in ("en_ewt", "en_gum"):
        (tmp_path / f"{name}-ud-train.conllu").write_text(ROWS)
    with pytest.raises(CorpusError, match="2 files could be the train part: en_ewt-ud-train.conllu, en_gum"):
        load(str(tmp_path), "train")


@pytest.mark.parametrize(
    ("trees", "rows", "says"),
    [
        (TREE.replace(") )", ")"), ROWS, r"train.trees, line 1, tree 1: 1 bracket\(s\) never closed"),
        ("( (S ) )\n", ROWS, "train.trees, line 1, tree 1: the constituent .S . is empty"),
        ("( (S (NP (-NONE- *))) )\n", ROWS, "line 1: the tree has no words"),
        (
            TREE,
            ROWS.replace("\tend\t", "\tstart\t"),
            "line 1: sentence .*: the tree has 3 words, the dependencies 3; they differ from word 2",
        ),
        (TREE, ROWS.replace("\t0\tROOT", "\t2\tDEP"), "contain a cycle: 2 -> 3 -> 2"),
        (TREE, ROWS.replace("\t3\tSBJ", "\t0\tROOT"), "2 roots"),
        (TREE, ROWS.replace("\t0\tROOT", "\tx\tROOT"), "the head of 'came' is 'x'"),
        (TREE, ROWS.replace("\t", " "), "columns"),
        (TREE, ROWS.replace("\t0\tROOT", "\t9\tROOT"), "head 9"),
        (TREE, "", "train.conllu: ends before the tree of .*train.trees, line 1"),
        (TREE, ROWS + ROWS, "train.conllu: has more sentences than there are trees"),
        (None, None, "no file train.trees"),
        ("", "", "is empty"),
    ],
)
def test_bad_files_are_named(tmp_path, trees, rows, says):
    with pytest.raises((TreebankError, CorpusError), match=says):
        load(folder(tmp_path, trees, rows), "train")


def test_crossing_dependencies(tmp_path):
    tree = "( (S (A a) (B b) (C c) (D d)) )"
    heads = [3, 0, 2, 1]
    rows = "".join(f"{i}\t{w}\t_\t_\tX\t_\t{h}\tx\t_\t_\n" for i, (w, h) in enumerate(zip("abcd", heads), 1))
    with pytest.raises(TreebankError, match="line 1: sentence .*: the arcs .* cross:"):
        load(folder(tmp_path, tree, rows + "\n"), "train")


def test_the_task_constituents_needs_no_dependencies(tmp_path):
    strange = "( (S (NP (Nh \u4ed6)) (VP (VC \u4f86) (Di \u4e86))) )\n"  # no head rules for these tags
    for trees, rows in ((strange, None), (TREE, ROWS.replace("\t0\tROOT", "\t2\tDEP"))):
        with pytest.raises(TreebankError, match="head rules|cycle"):
            load(folder(tmp_path, trees, rows), "train")
        (sentence,) = load(str(tmp_path), "train", task="constituents").sentences
        assert sentence.heads is None and len(sentence.constituents) == 3


def test_no_sentence_of_the_dependencies_can_be_read(tmp_path):
    broken = ROWS.replace("\t", " ")
    some = load(folder(tmp_path, None, broken + ROWS), "train", task="dependencies")
    assert (len(some), len(some.problems)) == (1, 1)
    place = folder(tmp_path, None, broken * 2)
    with pytest.raises(TreebankError, match="line 1, sentence 1: no sentence of the train part.*1 columns\n.*tabs"):
        load(place, "train", task="dependencies")
    assert stats(load(place, "train", lenient=True))["unread"] == 2


def test_every_problem_is_collected(tmp_path):
    trees = TREE + TREE.replace("(DT The)", "(DT The") + TREE
    corpus = load(folder(tmp_path, trees, ROWS * 3), "train", lenient=True)
    assert len(corpus) == 2 and "line 2, tree 2" in str(corpus.problems[0])
    report = check(corpus)
    assert (report.sentences, len(report.problems), report.not_joint, report.clean) == (2, 1, (), False)


def test_check_says_why_there_is_no_joint_form(tmp_path):
    rows = ROWS.replace("\t2\tDET", "\t3\tDET")  # both words of the NP hang outside it
    report = check(load(folder(tmp_path, TREE, rows), "train"))
    assert "NP (0, 2) [The end] has 2 words with a head outside it" in str(report.not_joint[0])


@pytest.mark.parametrize("name", ["ptb-sample", "craft"])
def test_a_missing_corpus_says_how_to_get_it(name, monkeypatch, tmp_path):
    import nltk.data

    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setenv("LALKIT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CorpusError, match=f"lalkit data fetch {name}"):
        load(name, "train")


def test_a_damaged_archive(monkeypatch, tmp_path):
    (tmp_path / "corpora").mkdir()
    for corpus in ("treebank", "dependency_treebank"):
        (tmp_path / "corpora" / f"{corpus}.zip").write_bytes(b"PK\x03\x04 half an archive")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    with pytest.raises(CorpusError, match="no complete zip"):
        load("ptb-sample", "train")
    assert not zipfile.is_zipfile(tmp_path / "corpora" / "treebank.zip")


def test_conllu_there_and_back():
    sentence = build(parse_tree(TREE), None, "x-1")
    (read,) = conllu.scan_conll("# text = The end came\n" + conllu.format_conllu([sentence]))
    assert (read.words, read.tags, read.heads, read.labels) == (
        sentence.words,
        sentence.tags,
        sentence.heads,
        sentence.arc_labels,
    )
    assert read.comments == {"sent_id": "x-1", "text": "The end came"}


def test_conllu_ranges_and_empty_nodes_are_left_out():
    text = "1-2\tdu\t" + "_\t" * 7 + "_\n" + ROWS.replace("3\tcame", "2.1\tx" + "\t_" * 8 + "\n3\tcame", 1)
    assert next(conllu.scan_conll(text)).words == ("The", "end", "came")


def test_stats_of_our_sample(sample):
    counts = stats(load("sample", "train"))
    assert counts["sentences"] == len(sample) >= 160
    assert counts["words"] == sum(map(len, sample))
    assert counts["groups (<H>)"] == 0, "heads by rules never need a group; CRAFT's do"


@pytest.mark.data
@pytest.mark.slow
def test_ptb_sample_counts():
    corpora = [needs("ptb-sample", split) for split in ("train", "dev", "test")]
    assert sum(len(s) for c in corpora for s in c.sentences) == 94084
    assert max(len(s) for c in corpora for s in c.sentences) == 249


@pytest.mark.data
@pytest.mark.slow
def test_all_of_craft():
    """Three articles have a thin or a hair space inside a word; a reader that splits there loses the alignment."""
    parts = [needs("craft", split).sentences for split in ("train", "dev")]
    assert [len(part) for part in parts] == [18951, 2780]
    words = [w for part in parts for s in part for w in s.words]
    assert sum(w.count("\u2009") for w in words) == 3
    assert sum(w.count("\u200a") for w in words) == 15
    assert stats(needs("craft", "dev"))["groups (<H>)"] > 0
    for s in [*parts[0][::20], *parts[1][::4]]:
        assert from_joint(s.words, to_joint(s), s.heads, s.tags, s.arc_labels, s.id) == s


@pytest.mark.data
@pytest.mark.slow
def test_ewt_and_gum_counts():
    """Sentences, those with crossing arcs, and the constituents that disagree with the arcs."""
    expected = {
        ("ewt", "train"): (12_544, 288, 0), ("ewt", "dev"): (2_001, 31, 0), ("gum", "train"): (3_707, 142, 2_336),
        ("gum", "dev"): (438, 24, 333),
    }  # fmt: skip
    for (name, split), (sentences, crossing, disagreeing) in expected.items():
        corpus = needs(name, split)
        kept, line = trainable(corpus.sentences, 999, one_layer=True)
        assert (len(corpus), len(corpus) - len(kept), corpus.problems) == (sentences, crossing, ())
        assert f"0 not joint, {crossing} with crossing arcs" in line
        assert line.endswith(f", {disagreeing} constituents that disagree with the arcs") == (disagreeing > 0)
    assert sum(len(s.constituents) for s in needs("gum", "train")) == 58_662
    assert out_of_reach(needs("ewt", "dev").sentences) == (31, 36)


def test_a_treebank_shows_itself(tmp_path):
    assert doctest.testmod(corpora).attempted == 4 and not doctest.testmod(corpora).failed
    (tmp_path / "dev.trees").write_text("(S (X <b>&) (Y b))\n" * 11 + "(S (X\n")
    treebank = Treebank.load(str(tmp_path), "dev", lenient=True)
    assert repr(treebank).endswith("dev: 11 sentences, 22 words, 1 problems")
    assert list(treebank) == [treebank[place] for place in range(11)] == list(treebank.sentences)
    assert len(treebank[2:5]) == 3 and not treebank[2:5].problems and treebank[-1] is treebank.sentences[-1]
    page = treebank._repr_html_()
    assert page.count("<tr>") == 11 and "and 1 more" in page and "more" not in treebank[:10]._repr_html_()
    assert "&lt;b&gt;&amp; b" in page and "<b>" not in page
