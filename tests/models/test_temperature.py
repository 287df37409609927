"""The temperature of a parser: fitted, kept, read; and whether probabilities are right, counted by hand."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import lalkit
from lalkit.chart.marginals import marginals
from lalkit.errors import LalkitError, ModelError
from lalkit.evaluation.calibration import calibration_error, judge, reliability, risk_coverage
from lalkit.models.temperature import calibrate, fit_temperature, measure
from lalkit.network.predict import predict_batches, scores_of
from lalkit.training.checkpoint import CALIBRATION
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import build, load
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence, Span
from tests.command import lalkit as command


@pytest.fixture
def folder(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def test_the_temperature_is_where_gold_trees_are_most_probable(folder):
    parser = lalkit.load(folder)
    gold = [s for s in load("sample", "dev").sentences if len(s) <= 8][:12]
    facts = fit_temperature(parser, gold)
    assert facts["sentences"] + facts["left_out"] == len(gold)
    assert facts["log_likelihood"]["after"] > facts["log_likelihood"]["before"]
    crossing = Sentence(tuple("abcd"), None, (Span(0, 4, "S"),), (3, 0, 2, 1), free_arcs=True)
    assert fit_temperature(parser, [*gold, crossing]) == facts | {"left_out": facts["left_out"] + 1}
    best = facts["temperature"]
    for other in (best * 0.9, best * 1.1):
        assert fit_at(parser, gold, other) < facts["log_likelihood"]["after"] + 1e-4
    assert fit_at(parser, gold, best) == pytest.approx(facts["log_likelihood"]["after"], abs=1e-3)


def fit_at(parser, gold, temperature):
    """The mean log-probability of gold trees, one by one."""
    logs, train = [], parser.config.train
    for sentence in gold:
        ((_, _, output),) = predict_batches(parser.network, parser.collator, [sentence], train.lam)
        ((labels, arcs),) = scores_of(output, [len(sentence)])
        try:
            spans = [(s.start, s.end, parser.vocab.label_index[s.label]) for s in to_joint(sentence)]
        except KeyError:
            continue
        total = train.lam * sum(labels[i, j, k] for i, j, k in spans)
        total += (1 - train.lam) * sum(arcs[d, h] for d, h in enumerate(sentence.heads))
        logs.append(total / temperature - marginals(labels, arcs, train.lam, temperature).log_partition)
    return float(np.mean(logs))


def test_calibration_is_kept_and_measured_on_other_sentences(folder, tmp_path):
    with pytest.raises(ModelError, match="was not calibrated"):
        measure(str(folder))
    _, done, _ = command("models", "calibrate", folder, "--treebank", "sample", "--sentences", "10")
    facts = json.loads((folder / CALIBRATION).read_text())
    assert f"temperature {facts['temperature']}" in done and facts["command"].endswith("--sentences 10")
    assert lalkit.load(folder).temperature == facts["temperature"] != 1
    out = tmp_path / "figure.png"
    command("models", "reliability", folder, "--out", out, "--sentences", "15")
    code, _, err = command("models", "reliability", folder, "--out", tmp_path / "x.csv")
    assert code == 2 and "x.csv is not the name of a .png file" in err and not (tmp_path / "x.csv").exists()
    table = pd.read_csv(out.with_suffix(".csv"))
    assert out.stat().st_size > 10_000 and set(table["part"]) == {"sample test"}
    trees = table[(table["kind"] == "tree") & (table["curve"] == "reliability")]
    assert trees.groupby("fitted")["parts"].sum().tolist() == [15, 15]
    assert set(table["temperature"]) == {1.0, facts["temperature"]}
    assert table[table["curve"] == "risk"].groupby(["kind", "fitted"])["x"].max().eq(1).all()


def test_a_part_that_fitted_the_temperature_does_not_judge_it(folder):
    facts = calibrate(folder, "sample", "test", most=6)
    assert facts["command"] == f"lalkit models calibrate {folder} --treebank sample --split test --sentences 6"
    assert set(measure(str(folder), most=3)["part"]) == {"sample test, after the first 6"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"temperature": 0}, "temperature: Input should be greater than 0"),
        ({"temperature": -2.0}, "temperature: Input should be greater than 0"),
        ({"temperature": "1"}, "temperature: Input should be a valid number"),
        ({"temperature": True}, "temperature: Input should be a valid number"),
        ({"temperature": None}, "temperature"),
        ({"log_likelihood": {"before": "x"}}, "log_likelihood"),
        ({"weights": "model-5.safetensors"}, "was fitted to other weights: model-5.safetensors, not model-"),
    ],
)
def test_a_damaged_calibration_is_refused(folder, change, says):
    facts = calibrate(folder, "sample", most=3)
    (folder / CALIBRATION).write_text(json.dumps({**facts, **change}))
    with pytest.raises(ModelError, match=says) as error:
        lalkit.load(folder)
    assert str(folder / CALIBRATION) in str(error.value) and "or delete the file" in str(error.value)
    (folder / CALIBRATION).unlink()
    assert lalkit.load(folder).temperature == 1


def test_labels_that_the_parser_does_not_know(folder):
    strange = Sentence(("a", "b"), ("X", "X"), (Span(0, 2, "STRANGE"),), (0, 1), ("x", "x"), "1")
    with pytest.raises(LalkitError, match="does not know the labels of any sentence"):
        fit_temperature(lalkit.load(folder), [strange])


def test_parts_are_judged_against_gold():
    gold = build(parse_tree("(S (NP (DT a) (NN b)) (VP (VB c)))"), None, "1")
    gold = Sentence(gold.words, gold.tags, gold.constituents, (2, 3, 0), ("DET", "SBJ", "ROOT"), "1")
    rows = [
        ("span", 0, 3, "S", 3, 0.9), ("span", 0, 2, "VP", 2, 0.6), ("span", 2, 3, "VP", 3, 0.8), ("span", 0, 2, "<H>", 2, 0.5),
        ("arc", 0, 1, None, 2, 0.9), ("arc", 1, 2, None, 1, 0.2), ("arc", 2, 3, None, 0, 0.7),
        ("arc label", 0, 1, "DET", 2, 0.9), ("arc label", 1, 2, "SBJ", 1, 0.9), ("arc label", 2, 3, "SBJ", 0, 0.3),
        ("tag", 0, 1, "DT", None, 1.0), ("tag", 1, 2, "VB", None, 1.0), ("tree", 0, 3, None, None, 0.1),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["kind", "start", "end", "label", "head", "probability"]).astype(
        {"head": "Int64"}
    )
    judged = judge([table], [gold]).groupby("kind", sort=False)["right"].agg(list).to_dict()
    assert judged == {
        "span": [True, False, True], "arc": [True, False, True], "arc label": [True, False], "tag": [True, False],
        "tree": [False],
    }  # fmt: skip
    right = table.drop([1, 3]).assign(head=[3, 3, 2, 3, 0, 2, 3, 0, None, None, None])
    missing = judge([right.astype({"head": "Int64"})], [gold])
    assert not missing.query("kind == 'tree'")["right"].item(), "the NP is missing"
    whole = pd.concat([right.astype({"head": "Int64"}), table.iloc[[1]].assign(label="NP")])
    assert judge([whole], [gold]).query("kind == 'tree'")["right"].item()


def test_reliability_error_and_risk_by_hand():
    judged = pd.DataFrame(
        {"kind": "arc", "probability": [0.95, 0.91, 0.55, 0.51, 1.0], "right": [True, False, True, True, True]}
    )
    table = reliability(judged)
    assert table["bin"].tolist() == [5, 9] and table["parts"].tolist() == [2, 3]
    assert table["right"].tolist() == pytest.approx([1, 2 / 3])
    error = 100 * (2 * (1 - 0.53) + 3 * (2.86 / 3 - 2 / 3)) / 5
    assert calibration_error(judged)["arc"] == pytest.approx(error)
    risk = risk_coverage(judged, steps=5)
    assert risk["coverage"].tolist() == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert risk["risk"].tolist() == pytest.approx([0, 0, 1 / 3, 1 / 4, 1 / 5])
    assert risk["least"].tolist() == [1.0, 0.95, 0.91, 0.55, 0.51]
