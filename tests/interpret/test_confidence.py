"""The probabilities of the parts of a parse: against all trees of a short sentence, in a batch, and as they are written."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import lalkit
from lalkit.corpus import Job, from_arguments, parse
from lalkit.errors import LalkitError, ParameterError
from lalkit.training.checkpoint import CALIBRATION
from lalkit.treebank.conllu import scan_conll
from tests import command

TEXTS = ["She saw the man with the telescope.", "Select the person driving", "Yes"]


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


@pytest.mark.slow
def test_the_probability_of_a_part_is_the_sum_over_the_trees_that_have_it(parser):
    """With few labels a sentence of two words has few enough trees to add them up."""
    temperature = 0.6
    (result,) = parser.parse_all([["She", "slept"]], temperature=temperature)
    readings = result.readings
    readings.temperature = temperature
    every = readings.readings(readings.trees(10**6))
    assert sum(reading.probability for reading in every) == pytest.approx(1)
    table = result.confidence()
    assert table["kind"].tolist().count("arc") == 2 and table["probability"].between(0, 1).all()
    total = Counter()  # of every span, arc and tree
    for reading in every:
        spans, heads = reading.prediction.spans, reading.prediction.sentence.heads
        parts = {span[:3] for span in spans} | set(enumerate(heads)) | {(tuple(spans), tuple(heads))}
        total.update(dict.fromkeys(parts, reading.probability))
    for row in table.itertuples():
        part = {
            "span": (row.start, row.end, row.label),
            "arc": (row.start, row.head),
            "tree": (tuple(result.spans), tuple(result.sentence.heads)),
        }.get(row.kind)
        if part:
            assert row.probability == pytest.approx(total[part], abs=1e-5), row


def test_arc_labels_and_tags_have_the_probabilities_of_the_softmax(parser):
    (result,) = parser.parse_all(TEXTS[:1], temperature=1.0)
    output, table = result.readings.output, result.confidence()
    tags = np.exp(output.tag_scores[0].log_softmax(-1).amax(-1).numpy())
    assert table.loc[table["kind"] == "tag", "probability"].to_numpy() == pytest.approx(tags, abs=1e-5)
    assert table.loc[table["kind"] == "arc label", "label"].tolist() == list(result.sentence.arc_labels)


def test_a_result_has_the_same_probabilities_alone_in_a_batch_and_afterwards(parser):
    together = parser.parse_all(TEXTS, temperature=parser.temperature)
    for text, result in zip(TEXTS, together):
        table = result.confidence()
        later = parser.parse(text).confidence()
        assert later.drop(columns="probability").equals(table.drop(columns="probability"))
        assert later["probability"].to_numpy() == pytest.approx(table["probability"].to_numpy(), rel=1e-4, abs=1e-6)
    second = together[0].alternatives(2)[1]
    tree = second.confidence().set_index("kind")["probability"]["tree"]
    assert tree == pytest.approx(second.reading.probability, rel=1e-4)


def test_the_files_hold_probabilities_only_if_they_are_asked_for(parser, tiny_parser, tmp_path):
    result = parser.parse(TEXTS[0])
    sure = result.with_confidence()
    assert "confidence" not in result.to_dict() and "ArcP" not in result.to_conllu()
    record = json.loads(sure.to_json())
    confidence = record.pop("confidence")
    assert record == json.loads(result.to_json())
    assert [len(confidence[name]) for name in ("spans", "arcs", "arc_labels", "tags")] == [len(sure.spans), 8, 8, 8]
    rows = [line.split("\t") for line in sure.to_conllu().splitlines() if "\t" in line]
    assert [row[9].split("|")[0] for row in rows] == [f"ArcP={p}" for p in confidence["arcs"]]
    assert f"# tree_probability = {confidence['tree']}\n" in sure.to_conllu()
    plain = [line for line in sure.to_conllu().splitlines() if not line.startswith(("# tree", "# temp"))]
    assert [line.rpartition("\t")[0] for line in plain] == [
        line.rpartition("\t")[0] for line in result.to_conllu().splitlines()
    ]
    assert next(scan_conll(sure.to_conllu())).heads == result.sentence.heads
    parse(Job(tiny_parser, to=("json",), confidence=True), from_arguments(TEXTS), tmp_path / "out", workers=1)
    first = json.loads((tmp_path / "out").read_text().splitlines()[0])
    assert first["confidence"]["arcs"] == pytest.approx(confidence["arcs"], abs=1e-4)


def test_the_command(tiny_parser):
    _, done, _ = command.lalkit("parse", "Yes", "--model", tiny_parser, "--to", "json", "--confidence")
    assert json.loads(done)["confidence"]["temperature"] == 1.0
    _, again, _ = command.lalkit(
        "parse", "Yes", "--model", tiny_parser, "--to", "json", "--confidence", "--alternatives", "2"
    )
    assert len([json.loads(line)["confidence"] for line in again.splitlines()]) == 2
    code, _, refused = command.lalkit("parse", "Yes", "--model", tiny_parser, "--confidence")
    assert code == 2 and "brackets have no place for probabilities" in refused


def test_tags_that_were_given_and_parsers_of_one_layer(parser, monkeypatch):
    (result,) = parser.parse_all(["Select_VB it_PRP"], "tagged", temperature=1.0)
    given = replace(parser.network.config, tag_input="given")
    monkeypatch.setattr(parser.network, "config", given)
    (kept,) = parser.parse_all(["Select_VB it_PRP"], "tagged", temperature=1.0)
    assert "tag" in set(result.confidence()["kind"]) and "tag" not in set(kept.confidence()["kind"])
    monkeypatch.setattr(parser.network, "config", replace(given, task="dependencies"))
    with pytest.raises(LalkitError, match="has no probabilities of joint trees"):
        parser.parse_all(["Yes"], temperature=1.0)


def test_constraints_leave_probabilities_among_all_trees(parser):
    free = parser.parse(TEXTS[0])
    head = free.sentence.heads[3]
    other = parser.parse(TEXTS[0], forbid=[f"4->{head}"])
    arc = other.confidence().query("kind == 'arc' and start == 3").iloc[0]
    assert (
        arc["head"] != head
        and arc["probability"] + free.confidence().query("kind == 'arc'").iloc[3]["probability"] <= 1
    )
    assert math.exp(other.price.log_probability) < 1


@pytest.mark.parametrize("temperature", [0, -1.0, math.inf, math.nan])
def test_a_temperature_that_cannot_be(parser, temperature):
    with pytest.raises((ValueError, ParameterError), match="temperature must be a finite number above 0"):
        parser.parse_all(["Yes"], temperature=temperature)


def test_a_parser_is_saved_with_its_temperature(parser, tmp_path):
    facts = {
        "temperature": 0.5, "sentences": 3, "left_out": 0, "log_likelihood": {"before": -2.0, "after": -1.0},
        "treebank": "sample", "split": "dev", "command": "tools/ship.py calibrate", "weights": "model-7.safetensors",
    }  # fmt: skip
    (tmp_path / CALIBRATION).write_text(json.dumps(facts))
    parser.save(tmp_path)
    assert not (tmp_path / CALIBRATION).exists()
    copy = lalkit.load(tmp_path)
    copy.calibration = facts
    copy.save(tmp_path)
    assert lalkit.load(tmp_path).temperature == 0.5
