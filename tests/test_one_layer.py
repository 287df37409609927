"""Parsers of one layer: dependencies alone (UD), constituents alone. What cannot be had is said plainly."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.chart.cky import SUBHEAD, cky_batch
from lalkit.config import override, tiny
from lalkit.errors import CorpusError, LalkitError, ModelError
from lalkit.evaluation.scores import evaluate
from lalkit.network.model import Model, Scored
from lalkit.network.parser import ParserOutput
from lalkit.network.vocabulary import Vocab
from lalkit.training import loop
from lalkit.training.loop import Training, estimate, quality
from lalkit.treebank.check import check, trainable
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import layers_of, load
from lalkit.treebank.joint import GROUP, to_joint
from lalkit.treebank.tree import Sentence, check_heads, find_crossing
from tests.command import lalkit, logged
from tests.reference.joint_enumeration import tree_set
from tools import en_recipe

CROSSING = "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{h}\tdep\t_\t_\n" for i, h in enumerate((3, 0, 2, 1), 1)) + "\n"


@pytest.fixture(scope="module")
def ud(tmp_path_factory):
    """A folder as UD has it: no trees, tags as UPOS, one sentence with crossing arcs in every part."""
    folder = tmp_path_factory.mktemp("ud") / "UD_English-Own"
    folder.mkdir()
    for split, count in (("train", 60), ("dev", 12), ("test", 5)):
        sentences = sorted(load("sample", split, task="dependencies").sentences, key=len)[10 : 10 + count]
        text = format_conllu(replace(sentence, constituents=None) for sentence in sentences)
        rows = (line.split("\t") for line in text.split("\n"))
        upos = "\n".join("\t".join([*r[:3], r[4], "_", *r[5:]]) if len(r) > 1 else r[0] for r in rows)
        (folder / f"en_own-ud-{split}.conllu").write_text(upos + CROSSING)
    return folder


@pytest.fixture(scope="module")
def dependency_parser(ud, trained):
    with logged() as messages:
        return trained(ud, 2, task="dependencies"), messages


@pytest.fixture(scope="module")
def constituency_parser(tmp_path_factory, trained):
    folder = tmp_path_factory.mktemp("trees")
    for split, count in (("train", 60), ("dev", 12)):
        chosen = sorted(load("sample", split).sentences, key=len)[10 : 10 + count]
        (folder / f"{split}.trees").write_text("".join(f"{s.tree}\n" for s in chosen))
    return trained(folder, 2, task="constituents"), folder


def test_a_ud_folder_is_read(ud):
    corpus = load(str(ud), "train", lenient=True)
    first = corpus.sentences[0]
    assert first.constituents is None and first.heads and first.tags and first.id
    assert len(corpus) == 61 and "en_own-ud-train.conllu, line" in first.place
    assert sum(bool(find_crossing(s.heads)) for s in corpus) == 1 and not check(corpus)


def test_dependencies_alone(dependency_parser, ud):
    out, said = dependency_parser
    assert "60 sentences to train on" in said[0] and "1 with crossing arcs" in said[0] and "unread" not in said[0]
    assert not any("F1" in line for line in said) and "UAS" in said[-1]
    parser, gold = Parser.load(out), load(str(ud), "dev", lenient=True).sentences
    results = parser.parse_all([Sentence(s.words) for s in gold])
    scores = evaluate(gold, [r.sentence for r in results]).summary()
    assert scores["f1"] is None and None not in (scores["uas"], scores["las"], scores["tag_accuracy"])
    for result in results:
        check_heads(result.sentence.heads)
        assert result.sentence.constituents is None and result.spans == ()
        assert str(result) == result.to_conllu() and result.to_dict()["tree"] is None and "<svg" in result.draw()
        with pytest.raises(LalkitError, match="dependencies alone.*\n.*--to conllu"):
            _ = result.tree
    pytest.raises(ModelError, parser.explain, [gold[0]])


def test_unread_dev_sentences_are_counted_and_no_sentence_is_an_error(tmp_path, caplog, monkeypatch):
    rows = format_conllu([Sentence(tuple("abcd"), ("X",) * 4, None, (2, 0, 2, 3), ("dep",) * 4)])
    cycle = CROSSING.replace("\t0\t", "\t1\t")
    (tmp_path / "train.conllu").write_text(rows)
    (tmp_path / "dev.conllu").write_text(rows + CROSSING + cycle)
    config = override(tiny(), {"model.task": "dependencies"})
    caplog.set_level("INFO", logger="lalkit")
    Training(config, str(tmp_path), tmp_path / "run")
    assert "0 of train and 1 of dev unread), 2 of dev" in caplog.messages[0]
    monkeypatch.setattr(loop, "MAX_LENGTH", 3)
    for start in (lambda: Training(config, str(tmp_path), tmp_path / "short"), lambda: estimate(config, str(tmp_path))):
        with pytest.raises(CorpusError, match="no sentence to train on; left out: 1 longer than 3 words"):
            start()
    assert not (tmp_path / "short").exists()


def test_constituents_alone(constituency_parser):
    out, folder = constituency_parser
    parser = Parser.load(out)
    gold = layers_of(load(str(folder), "dev").sentences, "constituents")
    results = parser.parse_all([Sentence(s.words) for s in gold])
    scores = evaluate(gold, [r.sentence for r in results]).summary()
    assert scores["uas"] is None and scores["f1"] is not None
    for result in results:
        assert result.sentence.heads is None and GROUP not in result.to_ptb()
        assert result.sentence.constituents[0][:2] == (0, len(result.sentence)) and "<svg" in result.draw()
        for ask in (result.to_conllu, lambda r=result: r.dependencies):
            with pytest.raises(LalkitError, match="constituents alone.*\n.*--to ptb"):
                ask()
    assert not results[0].explain().table.empty  # of spans one can still ask which label heads made them
    with pytest.raises(LalkitError, match="constituents alone"):
        results[0].explore()


def test_all_readings_of_dependencies_alone(dependency_parser):
    """They are all projective trees with one root: 30 of four words, and their probabilities add up to those of the arcs."""
    result = Parser.load(dependency_parser[0]).parse(["It", "may", "rain", "here"])
    readings = result.alternatives(99, "any")
    assert len({r.sentence.heads for r in readings}) == len(readings) == len({heads for heads, _ in tree_set(4)})
    found = np.zeros((4, 5))
    for reading in readings:
        found[range(4), reading.sentence.heads] += reading.reading.probability
    np.testing.assert_allclose(found, result.arc_probabilities(), rtol=0, atol=1e-6)
    assert found.sum() == pytest.approx(4, abs=1e-9)
    probabilities = [reading.reading.probability for reading in result.alternatives(99)]
    assert probabilities == sorted(probabilities)[::-1] and len(probabilities) == len(readings)
    sure = result.confidence().set_index("kind")["probability"]
    assert sure["tree"] == pytest.approx(readings[0].reading.probability, abs=1e-9)
    np.testing.assert_allclose(sure["arc"], found[range(4), result.sentence.heads], atol=1e-6)
    assert result.attachments("It")["probability"].sum() == pytest.approx(1, abs=1e-6)
    with pytest.raises(LalkitError, match="dependencies alone"):
        result.parser.parse("It rained.", require=["TOP(1,2)"])


def test_readings_of_constituents_alone(constituency_parser):
    parser = Parser.load(constituency_parser[0])
    result = parser.parse(["It", "may", "rain", "here"])
    readings = result.alternatives(9)
    assert readings[0].sentence == result.sentence and len({r.to_ptb() for r in readings}) == 9
    logs = [r.reading.log_probability for r in readings]
    sure = result.confidence()
    assert logs == sorted(logs)[::-1] and set(sure["kind"]) == {"span", "tag", "tree"}
    assert sure.set_index("kind").loc["tree", "probability"] == pytest.approx(np.exp(logs[0]), rel=1e-6)
    for _, (_, start, end, label, *_, p) in sure[sure["kind"] == "span"].iterrows():
        price = parser.parse(result.sentence.words, require=[f"{label}({start + 1},{end})"]).price
        assert np.exp(price.log_probability) >= p - 1e-6 and price.score == 0
    with pytest.raises(LalkitError, match="constituents alone"):
        result.attachments("It")


def scores_of(labels, arcs):
    nothing = torch.empty(0)
    return ParserOutput(labels, arcs, nothing, [], (nothing, nothing), nothing, nothing, None)


def model_of(task, lam=0.5):
    return Model(None, None, None, override(tiny(), {"model.task": task, "train.lam": lam}), {})


def of_lengths(output, *lengths):
    return Scored([*range(len(lengths))], [Sentence(("w",) * n) for n in lengths], output)


def test_the_best_projective_tree_is_the_joint_decoders_without_labels():
    """Against every projective tree with one root, of up to five words."""
    rng = np.random.default_rng(3)
    for n in range(1, 6):
        trees = {heads for heads, _ in tree_set(n)}
        for _ in range(8):
            arcs = rng.normal(size=(1, n, n + 1)).astype(np.float32)
            output = scores_of(torch.zeros(1, n + 1, n + 1, 3), torch.from_numpy(arcs))
            output.label_scores[..., 1:] = torch.randn(1, n + 1, n + 1, 2)  # must not matter
            (found,) = model_of("dependencies").decode(of_lengths(output, n), 1)
            best = max(trees, key=lambda heads: sum(arcs[0, d, h] for d, h in enumerate(heads)))
            assert tuple(found.heads) == best


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_arcs_that_stand_are_kept_with_every_weight_of_labels(lam):
    torch.manual_seed(1)
    sentence = Sentence(("She", "saw", "birds", "fly"), heads=(2, 0, 4, 2))
    output = scores_of(torch.randn(1, 5, 5, 3), torch.randn(1, 4, 5))
    output.label_scores[..., 0] = 0
    (tree,) = en_recipe.with_arcs(model_of("joint", lam), Scored([0], [sentence], output))
    assert tuple(tree.heads) == sentence.heads


def test_constituents_alone_are_those_of_cky():
    torch.manual_seed(2)
    charts = torch.randn(3, 8, 8, 5)
    charts[..., 0], charts[..., SUBHEAD] = 0, -1e9  # no groups
    found = model_of("constituents").decode(of_lengths(scores_of(charts, torch.zeros(3, 7, 8)), 7, 4, 1), 1)
    for tree, other, n in zip(found, cky_batch(charts.numpy(), [7, 4, 1]), (7, 4, 1)):
        assert [span[:3] for span in tree.spans] == other.spans and tree.score == other.score
        assert {span[3] for span in tree.spans} == {0} and len(tree.heads) == n


def test_what_is_trained_on(sample):
    alone = [replace(sample[0], constituents=None), replace(sample[1], heads=None, arc_labels=None)]
    assert [len(trainable(alone, 99, task)[0]) for task in ("dependencies", "constituents")] == [1, 1]
    assert trainable(alone, 99, "constituents")[1].endswith("1 without a tree over all words")
    assert trainable(sample[:5], 99, "dependencies")[0][0].constituents is None
    assert quality({"f1": None, "uas": 80.0, "las": None}) == 80
    assert quality({"f1": 70.0, "uas": None, "las": None}) == 70
    assert Vocab.build(alone[:1], task="dependencies").labels == ("", "<H>", "TOP")
    with pytest.raises(ModelError, match="no sentence.*constituents\n.*task=dependencies"):
        Vocab.build(alone[:1])
    with pytest.raises(CorpusError, match="no sentence to train on; .*2 not joint\n.*--task"):
        trainable(alone, 99)


@pytest.mark.parametrize("kind", ["tiny", "dependency", "constituency"])
def test_a_trusted_sentence_is_the_one_that_the_checks_make(kind, request, sample):
    """Of parses, and of other trees than the best: also the order of constituents and the type of every value."""
    made = request.getfixturevalue(f"{kind}_parser")
    parser = Parser.load(made if kind == "tiny" else made[0])
    results = parser.parse_all(sample[:40])
    for result in results[:5] if kind == "tiny" else ():
        results += result.alternatives(5, "any") + result.alternatives(3)
    for result in results:
        assert kind != "tiny" or to_joint(result.sentence), "each constituent has one head word"
        layers = {field.name: getattr(result.sentence, field.name) for field in fields(Sentence)}
        built = Sentence(**layers)
        checked = {name: getattr(built, name) for name in layers}
        assert checked == layers and repr(checked) == repr(layers), "a Span is not a tuple"
        assert vars(result.sentence).keys() >= vars(Sentence(("a",))).keys()


def test_from_the_command_line(dependency_parser, ud):
    out, _ = dependency_parser
    code, text, err = lalkit("evaluate", str(out), "--treebank", str(ud), "--split", "test")
    assert code == 0 and "uas" in text and "f1" not in text and "out_of_reach" in text
    assert "1 sentences have crossing arcs" in err
    code, text, err = lalkit("evaluate", str(out), "--treebank", str(ud), "--by", "label")
    assert (code, text) == (2, "") and "constituents" in err
    code, text, err = lalkit("parse", "--model", str(out), "It works.")
    assert code == 2 and "--to conllu" in err
