"""Reading named treebanks, folders and mixtures: what is read, what a parser learns from, and the errors for wrong files."""

from collections import Counter
from dataclasses import replace
from operator import eq
from pathlib import Path
from unittest.mock import Mock

import nltk.data
import nltk.downloader
import pytest

from lalkit.api import Parser
from lalkit.errors import CorpusError, JointError, LalkitError
from lalkit.evaluation.scores import evaluate, out_of_reach
from lalkit.treebank.brackets import parse_tree, tree_to_sentence
from lalkit.treebank.check import Lessons, check, lessons, trainable
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import Part, Treebank, fetch, load, parts_of, penn_form
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import GROUP, Sentence, find_crossing
from tests.mixed import mixed  # noqa: F401  # noqa: F401
from tests.reference.joint_enumeration import tree_set
from tools import en_recipe

TREE = "( (S (NP-SBJ (DT The) (NN end)) (VP (VBD came))) )\n"
ROWS = "1\tThe\t_\t_\tDT\t_\t2\tDET\t_\t_\n2\tend\t_\t_\tNN\t_\t3\tSBJ\t_\t_\n3\tcame\t_\t_\tVBD\t_\t0\tROOT\t_\t_\n\n"


def folder(tmp_path, trees=TREE, rows=ROWS):
    for name, text in (("train.trees", trees), ("train.conllu", rows)):
        if text is not None:
            (tmp_path / name).write_text(text)
    return str(tmp_path)


def test_one_layer_is_read_without_the_other(tmp_path):
    strange = "( (S (NP (Nh \u4ed6)) (VP (VC \u4f86) (Di \u4e86))) )\n"  # no head rules for these tags
    for trees, rows in ((strange, None), (TREE, ROWS.replace("\t0\tROOT", "\t2\tDEP"))):
        with pytest.raises(LalkitError, match="head rules|cycle"):
            load(folder(tmp_path, trees, rows), "train")
        (sentence,) = load(str(tmp_path), "train", task="constituents").sentences
        assert sentence.heads is None and len(sentence.constituents) == 3
    (tmp_path / "train.trees").unlink()
    broken = ROWS.replace("\t", " ")
    some = load(folder(tmp_path, None, broken + ROWS), "train", task="dependencies")
    assert (len(some), len(some.problems)) == (1, 1)
    with pytest.raises(LalkitError, match="line 1, sentence 1: no sentence of the train part"):
        load(folder(tmp_path, None, broken * 2), "train", task="dependencies")
    assert len(load(str(tmp_path), "train", lenient=True).problems) == 2


def test_one_file_is_a_treebank(tmp_path):
    whole = load(folder(tmp_path), "train", task="constituents")[0]
    trees, arcs = (Treebank.load(tmp_path / f"train.{suffix}") for suffix in ("trees", "conllu"))
    assert trees[0].constituents == whole.constituents and arcs[0].heads == (2, 3, 0) and arcs[0].constituents is None
    assert repr(arcs).endswith("train.conllu': 1 sentences, 3 words")
    whole, none = tmp_path / "train.trees", tmp_path / "no.trees"
    wrong = [(whole, "dev", "One file has no parts"), ("sample", "", "Treebank.load"), (none, "", "splits")]
    for name, split, error in [*wrong, (Path("sample"), "dev", "/sample")]:
        with pytest.raises(CorpusError, match=error):
            Treebank.load(name, split)
    (tmp_path / "train.trees").write_text("\n")
    with pytest.raises(LalkitError, match="is empty"):
        Treebank.load(tmp_path / "train.trees")


def test_check_names_every_problem(tmp_path):
    trees = TREE + TREE.replace("(DT The)", "(DT The") + TREE
    rows = ROWS + ROWS + ROWS.replace("\t2\tDET", "\t3\tDET")  # both words of the last NP hang outside it
    corpus = load(folder(tmp_path, trees, rows), "train", lenient=True)
    problem, not_joint = check(corpus)
    assert len(corpus) == 2 and "line 2, tree 2" in str(problem) and isinstance(not_joint, JointError)
    assert "NP (0, 2) [The end]" in str(not_joint)


def test_a_treebank_shows_itself(tmp_path):
    (tmp_path / "dev.trees").write_text("(S (X <b>&) (Y b))\n" * 11 + "(S (X\n")
    treebank = Treebank.load(str(tmp_path), "dev", lenient=True)
    for same in (treebank, replace(treebank, sentences=iter(treebank))):  # an iterator can be read only once
        assert repr(same).endswith("dev: 11 sentences, 22 words, 1 problems")
    assert list(treebank) == [treebank[place] for place in range(11)] and len(treebank[2:5]) == 3
    page = treebank._repr_html_()
    assert page.count("<tr>") == 11 and "and 1 more" in page and "&lt;b&gt;&amp; b" in page and "<b>" not in page


# ---------------------------------------------------------------------------------------------------- the real corpora


@pytest.mark.data
@pytest.mark.slow
def test_counts_of_the_corpora():
    """Sentences, those with crossing arcs, and the constituents that disagree with the arcs."""
    expected = {
        ("ewt", "train"): (12_544, 288, 0), ("ewt", "dev"): (2_001, 31, 0), ("gum", "train"): (3_707, 142, 2_336),
        ("gum", "dev"): (438, 24, 333), ("ptb-sample", "train"): (3401, 0, 0), ("craft", "dev"): (2780, 0, 0),
        ("masc", "train"): (3_322, 0, 0), ("masc", "dev"): (632, 0, 0),
    }  # fmt: skip
    found = {key: load(*key) for key in expected}
    for key, (sentences, crossing, disagreeing) in expected.items():
        corpus = found[key]
        kept, line = trainable(corpus.sentences, 999, one_layer=True)
        assert (len(corpus), corpus.problems) == (sentences, ())
        assert f"{crossing} with crossing arcs" in line or not crossing and len(kept) > 0.99 * sentences
        assert line.endswith(f", {disagreeing} constituents that disagree with the arcs") == (disagreeing > 0)
    assert sum(len(s.constituents) for s in found["gum", "train"]) == 58_662
    assert out_of_reach(found["ewt", "dev"].sentences) == (31, 36)
    craft = found["craft", "dev"]  # a reader that splits at such spaces loses the alignment
    assert sum(w.count("\u2009") + w.count("\u200a") for s in craft for w in s.words) == 2
    assert any(span.label == GROUP for span in to_joint(craft[0]))


# ----------------------------------------------------------------------------------------- ewt, gum and mixtures


def test_ewt_and_gum(mixed):  # noqa: F811
    ewt, gum = load("ewt", "train"), load("gum", "train")
    assert (len(ewt), len(load("ewt", "dev"))) == (8, 2)
    assert all(s.constituents is None and s.free_arcs for s in ewt)
    assert ewt[1].words == ("She", "reads", "books", "."), "the range 1-2 and the empty node 2.1 are no words"
    assert sum(bool(find_crossing(s.heads)) for s in ewt) == 1 and not check(ewt)
    assert [s.id for s in gum] == [f"GUM_{name}-{i}" for name in ("news_one", "voyage_two") for i in (1, 2, 3)]
    assert [c.label for c in gum[0].constituents] == ["S", "NP", "VP", "NP"], "function tags and ROOT are gone"
    assert gum[0].heads == (2, 0, 2, 2) and gum[0].arc_labels == ("nsubj", "root", "obj", "punct")
    assert load("gum/voyage,bio", "train")[0].id == "GUM_voyage_two-1" and len(load("gum/bio", "test")) == 3
    wrong = (("ewt", "test", "no test"), ("gum/poems", "train", "'poems'"), ("gum/bio", "dev", "empty"))
    for name, split, says in wrong:
        with pytest.raises(CorpusError, match=says):
            load(name, split)


def test_one_outside_the_reach_of_projective_trees():
    """Against every projective tree of the same words."""
    for heads in [(3, 0, 2, 1), (3, 0, 2), (3, 4, 0, 3), (2, 0, 5, 2, 1)]:
        n = len(heads)
        best = max(sum(map(eq, tree, heads)) for tree, _ in tree_set(n))
        assert out_of_reach([Sentence(tuple("abcde"[:n]), heads=heads, free_arcs=True)]) == (1, n - best) and best < n
    assert out_of_reach([Sentence(("a", "b"), heads=(2, 0)), Sentence(("a",))]) == (0, 0)


def test_parts_of_a_mixture(tmp_path, monkeypatch):
    assert parts_of("craft:constituents+ewt+gum/news,bio*0.25+sample:constituents*2") == [
        Part("craft", "constituents", 1), Part("ewt", "joint", 1), Part("gum/news,bio", "joint", 0.25),
        Part("sample", "constituents", 2),
    ]  # fmt: skip
    assert [p.task for p in parts_of("sample+ptb-sample", "dependencies")] == ["dependencies"] * 2
    pytest.raises(CorpusError, parts_of, "sample:constituents", "dependencies").match("sample:constituents")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a+b*2").mkdir()
    assert parts_of("a+b*2") == [Part("a+b*2", "joint", 1)]
    assert parts_of(f"{tmp_path}@drop=ID:constituents*2") == [Part(f"{tmp_path}@drop=ID", "constituents", 2)]


def test_the_sentences_of_an_epoch():
    ten = [Sentence((str(i),)) for i in range(10)]

    def seen(times, epoch=0):
        return "".join(s.words[0] for s in Lessons([(ten, times)], [], "").epoch(epoch))

    assert seen(1) == seen(1, 7) == "0123456789" and seen(2, 1) == 2 * "0123456789"
    assert [seen(0.3, epoch) for epoch in range(4)] == ["036", "147", "258", "369"], "the epochs take turns"
    assert seen(1.5) == "0123456789" + "02468" and len(seen(0.001)) == 1 and len(seen(0.9999)) == 10


def test_lessons_of_a_mixture(mixed, tmp_path):  # noqa: F811
    mixture = lessons("sample:constituents*0.5+ewt+gum/news", "joint", 99)
    layers = Counter((s.constituents is not None, s.heads is not None) for s in mixture.sentences)
    assert layers == {(True, False): 176, (False, True): 7, (True, True): 2}
    assert len(mixture.epoch(0)) == 88 + 7 + 2 and mixture.epoch(0) != mixture.epoch(1)
    assert mixture.left_out.startswith("sample: 176, left out: 0 longer") and "ewt: 7, left" in mixture.left_out
    assert len(mixture.dev) == 44 + 2 + 3, "also the sentences with crossing arcs"
    half = lessons("sample*0.5", "joint", 40)
    alone = lessons("sample", "joint", 40)
    assert half.dev == alone.dev and half.sentences == alone.sentences == alone.epoch(5) != half.epoch(5)
    named = [replace(s, arc_labels=[label.lower() for label in s.arc_labels]) for s in load("sample", "dev")]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conllu").write_text(format_conllu(named))
    rows = {f"sample+{tmp_path}": "arc labels", "sample:constituents": "no dependencies", "ewt": "no constituents"}
    for wrong, says in rows.items():
        with pytest.raises(CorpusError, match=says):
            lessons(wrong, "joint", 99)


# ------------------------------------------------------------------------------------------------ download and archive


@pytest.fixture
def empty_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("LALKIT_DATA", "")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("ptb-sample", "data fetch ptb-sample"), ("sinica", "data fetch sinica"), ("craft", "git clone .*CRAFT"),
     ("gum/news", "LALKIT_DATA"), ("ewt", "LALKIT_DATA"), ("masc", "LALKIT_DATA"), ("nowhere", "ptb-sample")],
)  # fmt: skip
def test_a_missing_corpus_says_how_to_get_it(name, remedy, empty_machine):
    with pytest.raises(CorpusError, match=f"\n.*{remedy}"):
        load(name, "train")


@pytest.mark.parametrize("name", ["ptb-sample", "sinica"])
def test_fetching_without_a_network(name, empty_machine, monkeypatch):
    monkeypatch.setattr(nltk.downloader, "urlopen", Mock(side_effect=OSError("offline")))
    with pytest.raises(CorpusError, match="could not be downloaded .*offline"):
        fetch(name)


# -------------------------------------------------------------------------------------- constituents of a parser


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(NP (NP (NN man)) (SBAR (WP who) (S (VP (VBD left)))))", "(SBAR (WHNP (WP who)) (S"),
        ("(NP (NP (NN man)) (SBAR (NP (WDT which)) (S (VP (VBD left)))))", "(SBAR (WHNP (WDT which)) (S"),
        ("(SBARQ (WRB When) (SQ (VBZ is) (NP (PRP it))) (. ?))", "(SBARQ (WHADVP (WRB When)) (SQ"),
        ("(NP ($ $) (CD 1.5) (CD million))", "(NP (QP ($ $) (CD 1.5) (CD million)))"),
        ("(NP (CD 3) (CD million) (NNS people))", "(NP (QP (CD 3) (CD million)) (NNS people))"),
        ("(SBAR (WHNP (WDT which) (NN man)) (S (VP (VBD left))))", None),
        ("(NP (WDT which) (NN man))", None),
        ("(NP (QP (RB about) (CD 3) (CD million)) (NNS people))", None),
        ("(NP (CD 3) (NP (CD million) (NNS people)))", None),
        ("(NP (CD 4) (CD 1776))", None),
        ("(SBAR (WP who))", None),
    ],
)
def test_missing_constituents_are_added_once_and_others_stay(before, after):
    first = penn_form(tree_to_sentence(parse_tree(before)))
    assert penn_form(first) == first and (after or before) in str(first.tree)
    assert after or str(first.tree) == before


UD = "".join(f"{i}\t{word}\t_\tX\tX\t_\t{{}}\tdep\t_\t_\n" for i, word in enumerate("Abcd", 1)) + "\n"


@pytest.mark.parametrize(
    ("heads", "crossing", "without"),
    [
        ((2, 0, 2, 3), 0, 0), ((2, 0, 1, 2), 1, 0), ((3, 3, 0, 3), 0, 1), ((0, 1, 1, 1), 0, 1), ((3, 4, 0, 3), 1, 0),
        ((0, 1, 2, 2), 0, 2),
    ],
)  # fmt: skip
def test_arcs_of_universal_dependencies_stand_in_a_folder_too(tmp_path, heads, crossing, without):
    """As in gum: crossing arcs count in scores, and a constituent that disagrees is left out of training, and counted."""
    (tmp_path / "test.trees").write_text("(S (NP (X A) (X b)) (VP (X c) (X d)))\n")
    (tmp_path / "test.conllu").write_text(UD.format(*heads).replace("\t0\tdep", "\t0\troot"))
    corpus = load(str(tmp_path), "test")
    assert corpus[0].heads == heads and len(check(corpus)) == (crossing or without > 0)
    assert bool(find_crossing(corpus[0].heads)) == crossing
    assert evaluate(corpus.sentences, corpus.sentences).summary()["uas_all"] == 100
    if not crossing:
        kept, line = trainable(corpus.sentences, 99)
        assert len(kept[0].constituents) == 3 - without
        assert (f"{without} constituents that disagree" in line) == (without > 0)


def test_constituents_agree_with_the_arcs(mixed, tiny_parser, tmp_path):  # noqa: F811
    en_recipe.constituents("ewt", str(tiny_parser), tmp_path / "silver")
    gold, silver = {s.id: s for s in load("ewt", "train")}, load(str(tmp_path / "silver"), "train").sentences
    assert len(silver) == 7 and all(s.words == gold[s.id].words and s.heads == gold[s.id].heads for s in silver)
    assert all(map(to_joint, silver)) and load(str(tmp_path / "silver"), "dev")[0].constituents is None
    assert len(lessons(f"{tmp_path}/silver+sample:constituents", "joint", 150).sentences) == 7 + 176
    parser = Parser.load(tiny_parser)
    for sentence in (s for s in silver if len(s) <= 5):
        free = parser.parse(list(sentence.words), require=[f"{h}->{d}" for d, h in enumerate(sentence.heads, 1)])
        assert free.sentence.constituents == sentence.constituents
    (tmp_path / "silver" / "dev.conllu").unlink()
    with pytest.raises(CorpusError, match="dev"):
        en_recipe.constituents(str(tmp_path / "silver"), str(tiny_parser), tmp_path / "half")
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize("name", ["c++", "a:b", "x*2", "me@home"])
def test_a_file_may_have_any_name(name, tmp_path):
    file, rules = tmp_path / f"{name}.trees", tmp_path / "rules.txt"
    file.write_text("(S (NP (PRP ID)) (VP (VBD ran)))\n")
    rules.write_text("[heads]\nS | first | NP\n")
    assert [load(f"{file}{how}", "")[0].heads for how in ("", f"@heads={rules}@drop=ID")] == [(2, 0), (0, 1)]


def test_gold_heads_without_labels_stay_where_no_rule_knows_the_tree(tmp_path):
    (tmp_path / "train.trees").write_text("(SENT (XP (A un) (B deux)) (YP (C trois) (D quatre)))\n")
    (tmp_path / "train.conllu").write_text("un\tA\t2\ndeux\tB\t0\ntrois\tC\t2\nquatre\tD\t3\n\n")
    assert load(str(tmp_path), "train")[0].heads == (2, 0, 2, 3)
    with pytest.raises(LalkitError, match="cannot be left out of dependencies"):
        load(f"{tmp_path}@drop=A", "train")
