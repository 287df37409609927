"""The corpora ewt and gum, and mixtures of treebanks: what is read, what an epoch sees, and what is left out of training."""

from collections import Counter
from itertools import product

import pytest

from lalkit.api import Parser
from lalkit.errors import CorpusError, JointError, LalkitError
from lalkit.evaluation.scores import evaluate, out_of_reach
from lalkit.treebank.check import check, lessons, stats, trainable
from lalkit.treebank.corpora import load
from lalkit.treebank.fetch import fetch
from lalkit.treebank.joint import to_joint
from lalkit.treebank.mixture import Part, parts_of, seen_in
from lalkit.treebank.tree import Sentence, check_heads, find_crossing
from tests.command import lalkit
from tests.mixed import mixed  # noqa: F401

pytestmark = pytest.mark.usefixtures("mixed")


def test_ewt_has_dependencies_alone():
    corpus = load("ewt", "train")
    assert (len(corpus), len(load("ewt", "dev"))) == (8, 2)
    assert all(s.constituents is None and s.free_arcs for s in corpus)
    assert corpus[1].words == ("She", "reads", "books", "."), "the range 1-2 and the empty node 2.1 are no words"
    assert stats(corpus)["sentences with crossing arcs"] == 1 and check(corpus).clean
    with pytest.raises(CorpusError, match="ewt has no test part"):
        load("ewt", "test")


def test_gum_joins_both_layers_document_by_document():
    corpus = load("gum", "train")
    assert [s.id for s in corpus] == [f"GUM_{name}-{i}" for name in ("news_one", "voyage_two") for i in (1, 2, 3)]
    first = corpus[0]
    assert [c.label for c in first.constituents] == ["S", "NP", "VP", "NP"], "function tags and ROOT are gone"
    assert first.heads == (2, 0, 2, 2) and first.arc_labels == ("nsubj", "root", "obj", "punct")
    assert load("gum", "dev", task="constituents")[0].heads is None
    assert load("gum/voyage,bio", "train")[0].id == "GUM_voyage_two-1" and len(load("gum/bio", "test")) == 3
    with pytest.raises(CorpusError, match="gum has no genre 'poems'\n  Its genres are bio, news, voyage;"):
        load("gum/news,poems", "train")
    with pytest.raises(CorpusError, match="the dev part of gum/bio is empty"):
        load("gum/bio", "dev")


def test_the_arcs_stand_in_training_and_gold_is_whole_in_scoring():
    corpus = load("gum", "train")
    kept, line = trainable(corpus.sentences, 99)
    assert [s.id[-1] for s in kept] == ["1", "3", "1", "3"] and "2 with crossing arcs, 2 constituents that" in line
    goes = kept[1]
    assert [c.label for c in corpus[2].constituents] == ["S", "NP", "VP", "NP"]
    assert [c.label for c in goes.constituents] == ["S", "NP", "VP"] and to_joint(goes)
    assert len(check(corpus).not_joint) == 4
    with pytest.raises(JointError, match="the arcs .* cross"):
        to_joint(corpus[1])
    scores = evaluate(corpus.sentences, corpus.sentences)
    assert scores.summary()["uas_all"] == 100 and sum(r.with_punctuation.arcs for r in scores.rows) == 2 * (4 + 7 + 5)


def test_one_outside_the_reach_of_projective_trees():
    """Against every projective tree of the same words."""
    cases = [(3, 0, 2, 1), (3, 0, 2), (3, 4, 0, 3), (2, 0, 5, 2, 1)]
    for heads in cases:
        n = len(heads)
        best = 0
        for tree in product(range(n + 1), repeat=n):
            try:
                check_heads(tree)
            except LalkitError:
                continue
            best = max(best, sum(a == b for a, b in zip(tree, heads)))
        sentence = Sentence(tuple("abcde"[:n]), heads=heads, free_arcs=True)
        assert out_of_reach([sentence]) == (1, n - best) and best < n
    assert out_of_reach([Sentence(("a", "b"), heads=(2, 0)), Sentence(("a",))]) == (0, 0)


def test_mixtures_are_read():
    assert parts_of("sample") == [Part("sample", "joint", 1)]
    assert parts_of("craft:constituents+ewt+gum/news,bio*0.25+sample:constituents*2") == [
        Part("craft", "constituents"), Part("ewt", "joint"), Part("gum/news,bio", "joint", 0.25),
        Part("sample", "constituents", 2),
    ]  # fmt: skip
    assert [p.task for p in parts_of("sample+ptb-sample", "dependencies")] == ["dependencies"] * 2
    assert len(parts_of("craft+sample", "constituents")) == 2, "arc labels do not matter to a parser of constituents"


def test_a_folder_with_signs_in_its_name_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a+b*2").mkdir()
    (tmp_path / "a+b*2" / "train.trees").write_text("(S (NP (DT The) (NN end)) (VP (VBD came)))\n")
    assert len(load("a+b*2", "train")) == 1 and parts_of("a+b*2") == [Part("a+b*2", "joint")]


def test_what_an_epoch_sees():
    ten = [Sentence((str(i),)) for i in range(10)]
    assert seen_in(ten, 1.0, 0) == seen_in(ten, 1.0, 7) == ten and seen_in(ten, 2.0, 1) == ten * 2
    epochs = [seen_in(ten, 0.3, epoch) for epoch in range(4)]
    assert [s.id or s.words[0] for s in epochs[0]] == ["0", "3", "6"] and all(len(set(seen)) == 3 for seen in epochs)
    assert set().union(*epochs) == set(ten), "the epochs take turns"
    assert Counter(s.words[0] for s in seen_in(ten, 1.5, 0)) == Counter("0123456789" + "02468")
    assert len(seen_in(ten, 0.001, 0)) == 1 and len(seen_in(ten, 0.9999, 0)) == 10


def test_lessons_of_a_mixture():
    mixture = lessons("sample:constituents*0.5+ewt+gum/news", "joint", 99)
    layers = Counter((s.constituents is not None, s.heads is not None) for s in mixture.sentences)
    sample = len(load("sample", "train"))
    assert layers == {(True, False): sample, (False, True): 7, (True, True): 2}
    assert len(mixture.epoch(0)) == sample // 2 + 7 + 2 and mixture.epoch(0) != mixture.epoch(1)
    assert mixture.left_out.startswith(f"sample: {sample}, left out: 0 longer") and "ewt: 7, left" in mixture.left_out
    assert len(mixture.dev) == len(load("sample", "dev")) + 2 + 3, "also the sentences with crossing arcs"
    both = load("sample:constituents+ewt", "dev")
    assert (both[0].heads, both[-1].constituents) == (None, None) and len(both) == len(load("sample", "dev")) + 2


def test_without_a_mixture_nothing_changes(sample):
    """The sentences and their order are those that one treebank always had, in every epoch."""
    alone = lessons("sample", "joint", 40)
    expected = [s for s in sample if len(s) <= 40]
    assert alone.sentences == alone.epoch(0) == alone.epoch(5) == expected
    assert alone.left_out == f"left out: {len(sample) - len(expected)} longer than 40 words, 0 not joint"


def test_who_has_no_corpus_is_told_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("LALKIT_DATA", str(tmp_path))
    for ask in (
        lambda: load("gum/news", "train"),
        lambda: fetch("gum"),
        lambda: load("ewt", "dev"),
        lambda: fetch("ewt"),
    ):
        with pytest.raises(CorpusError, match="is not on this machine\n  .*LALKIT_DATA.*data/README.md"):
            ask()


def test_free_arcs_may_cross_but_are_a_tree():
    assert find_crossing(Sentence(tuple("abcd"), heads=(3, 0, 2, 1), free_arcs=True).heads)
    for heads in ((2, 1, 0), (0, 0, 1), (0, 9, 1)):
        with pytest.raises(LalkitError, match="cycle|roots|head 9"):
            Sentence(tuple("abc"), heads=heads, free_arcs=True)


@pytest.mark.slow
def test_silver_constituents_agree_with_the_arcs(tiny_parser, tmp_path):
    """The constituents are those of parsing under constraints, and the folder can be learned from."""
    code, out, err = lalkit(
        "data", "constituents", "--treebank", "ewt", "--model", tiny_parser, "--out", tmp_path / "silver"
    )
    assert code == 0, err
    gold = {s.id: s for s in load("ewt", "train")}
    silver = load(str(tmp_path / "silver"), "train").sentences
    assert len(silver) == 7 and all(s.words == gold[s.id].words and s.heads == gold[s.id].heads for s in silver)
    assert all(to_joint(s) for s in silver) and load(str(tmp_path / "silver"), "dev")[0].constituents is None
    assert len(lessons(f"{tmp_path}/silver+sample:constituents", "joint", 150).sentences) == 7 + 176
    parser = Parser.load(tiny_parser)
    for sentence in (s for s in silver if len(s) <= 5):
        free = parser.parse(list(sentence.words), require=[f"{d}->{h}" for d, h in enumerate(sentence.heads, 1)])
        assert free.sentence.constituents == sentence.constituents
