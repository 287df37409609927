"""Alternatives, constraints, the probabilities of the parts of a parse, and the heads that a phrase could have."""

import json
import logging
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import lalkit
from lalkit.chart.constraints import ArcItem, SpanItem, TagItem, read_item
from lalkit.config import override
from lalkit.errors import LalkitError, ParameterError
from lalkit.training.checkpoint import CALIBRATION
from lalkit.treebank.conllu import scan_conll
from tests import command

TEXT = "She saw the man with the telescope."
TEXTS = [TEXT, "Select the person driving", "Yes"]


# ---------------------------------------------------------------- alternatives


def test_alternatives_begin_with_the_parse_and_mark_what_differs(parser):
    result = parser.parse(TEXT)
    best, second, *others = result.alternatives(6, "any")
    assert best.prediction.spans == result.spans and best.sentence == result.sentence
    assert best.score == pytest.approx(result.score, rel=1e-5) and best.reading.added == frozenset()
    for other in (second, *others):
        reading = other.reading
        spans = {SpanItem(span.label, span.start + 1, span.end) for span in other.spans}
        items = spans | {ArcItem(number, head) for number, _, _, head, _ in other.dependencies}
        assert reading.added | reading.missing and reading.added <= items and not reading.missing & items
        assert all(f"+{item}" in str(other).splitlines()[0] for item in reading.added)
        ratio = (best.score - other.score) / parser.model.temperature
        assert best.reading.log_probability - reading.log_probability == pytest.approx(ratio)


def test_of_equal_structures_the_parse_comes_first_and_no_two_look_alike(parser):
    with parser.patched({"fenceposts": torch.zeros_like, "arcs": torch.zeros_like}):
        result = parser.parse(TEXT)
        first, *others = result.alternatives(9)
        assert first.sentence.heads == result.sentence.heads and others[-1].score == pytest.approx(first.score)
    found = lalkit.load("en").parse(TEXT).alternatives(300, "any")
    assert len({(one.tree, one.sentence.heads) for one in found}) == len(found) == 300


@pytest.mark.slow
def test_the_first_parse_of_a_shipped_parser_has_alternatives():
    """In its first run the encoder of transformers adds hooks to itself: that does not change the network."""
    first, second = lalkit.load("en-news").parse("Fed Ready to Inject Big Funds").alternatives(2, "any")
    assert first.reading.probability > second.reading.probability > 0


@pytest.mark.parametrize("kind", ["tiny_parser", "tiny_span_parser"])
def test_every_tree_that_was_chosen_is_explained(request, kind):
    """The page of another tree than the best one shows that tree, with its own scores and tags."""
    parser = lalkit.load(request.getfixturevalue(kind))
    best = parser.parse(TEXT)
    (start, end, label, _) = best.spans[0]
    forbidden = parser.parse(TEXT, forbid=[SpanItem(label, start + 1, end), TagItem(2, best.sentence.tags[1])])
    for result in (*best.alternatives(2, "any"), *forbidden.alternatives(2, "any"), forbidden):
        (sentence,) = result._page(False, None)["sentences"]
        shown = [(span["start"], span["end"], span["label"]) for span in sentence["spans"]]
        assert shown == [span[:3] for span in result.spans if span.label != "<H>"]
        assert sentence["sentence"] == result.sentence
        assert sentence["spans"][0]["probability"] == round(result.with_confidence().prediction.confidence.spans[0], 4)


def test_the_trees_of_one_word(parser, caplog):
    results = parser.parse("Yes").alternatives(10_000, "any")
    assert len(results) == len(parser.vocab.labels) - 2 and "10000 trees were asked for" in caplog.text
    assert sum(result.reading.probability for result in results) == pytest.approx(1)


# ---------------------------------------------------------------- constraints


def test_a_constrained_parse_obeys_and_has_its_price(parser):
    free = parser.parse(TEXT)
    result = parser.parse(TEXT, require=["PP(5,6)", "7->3"], forbid=["0->2"])
    assert any(s[:2] == (4, 6) and "PP" in s.label.split("::") for s in result.spans)
    assert result.sentence.heads[2] == 7 and result.sentence.heads[1] != 0
    assert result.price.score == pytest.approx(free.score - result.score, abs=1e-4) and result.price.score > 0
    assert result.price.log_probability < 0 and free.price == (0, 0)
    kept = parser.parse(TEXT, require=[str(ArcItem(1, free.sentence.heads[0]))])
    assert kept.spans == free.spans and kept.price.score == 0
    both = [parser.parse(TEXT, **{kind: ["2->4"]}).price.log_probability for kind in ("require", "forbid")]
    assert sum(np.exp(both)) == pytest.approx(1)
    assert result.alternatives(2, "any")[0].spans == result.spans
    tag = next(tag for tag in parser.vocab.tags if tag != free.sentence.tags[3])
    required = parser.parse(TEXT, require=[f"4_{tag}"])
    assert required.sentence.tags[3] == tag and required.spans == free.spans and required.price.score == 0
    assert parser.parse(TEXT, forbid=[f"4_{free.sentence.tags[3]}"]).sentence.tags[3] != free.sentence.tags[3]
    chances = [parser.parse(TEXT, require=[f"4_{tag}"]).price.log_probability for tag in parser.vocab.tags]
    assert sum(np.exp(chances)) == pytest.approx(1, rel=1e-4)


def test_items_are_written_as_they_are_read():
    items = SpanItem("S::VP", 3, 12), SpanItem("*", 1, 2), ArcItem(4, 0), TagItem(3, "PRP$"), SpanItem("<H>", 2, 4)
    assert [read_item(str(item)) for item in items] == list(items)
    assert read_item(" (3, 5)") == SpanItem("*", 3, 5) and read_item("4 -> 2") == ArcItem(2, 4)


@pytest.mark.parametrize(
    ("require", "forbid", "where"),
    [
        (["NP(3,5)", "VP(4,7)"], [], "NP(3,5)"), (["NP(3,5)"], ["(3,5)"], "require NP(3,5), forbid *(3,5)"),
        (["NP(3,9)"], [], "NP(3,9)"), (["2->0"], [], "2->0"), (["NP(5,3)"], [], "NP(5,3)"), (["4->4"], [], "require 4->4"),
        (["2->4", "3->4"], [], "require 2->4, require 3->4"), (["0->4", "0->3"], [], "require 0->4, require 0->3"),
        (["4_NN", "4_DT"], [], "require 4_NN, require 4_DT"), (["ZZ(3,5)"], [], "ZZ(3,5)"), (["3_ZZ"], [], "3_ZZ"),
        (["NP 3 5"], [], "NP 3 5"), (["4->2", "2->4"], [], "require 4->2, require 2->4"), ([], ["*(1,8)"], "forbid *(1,8)"),
        ("NP(3,5)", [], "NP(3,5)"),
    ],
)  # fmt: skip
def test_impossible_constraints_are_refused(parser, require, forbid, where):
    with pytest.raises(ParameterError) as error:
        parser.parse(TEXT, require=require, forbid=forbid)
    assert where in str(error.value) and len(str(error.value)) < 400


# ---------------------------------------------------------------- probabilities


@pytest.mark.slow
def test_the_probability_of_a_part_is_the_sum_over_the_trees_that_have_it(parser):
    """At a low temperature the best 2,000 trees of two words have nearly all of the probability, so they can be added up."""
    temperature = 0.01
    (result,) = parser.parse_all([["She", "slept"]], temperature=temperature)
    readings = result.readings
    readings.model = replace(readings.model, temperature=temperature)
    every = readings.readings(readings.trees(2000))
    assert sum(reading.probability for reading in every) == pytest.approx(1)
    table = result.confidence()
    assert table["kind"].tolist().count("arc") == 2 and table["probability"].between(0, 1).all()
    total, tree = Counter(), (tuple(result.spans), tuple(result.sentence.heads))  # of every span, arc and tree
    for reading in every:
        spans, heads = reading.prediction.spans, reading.prediction.sentence.heads
        parts = {span[:3] for span in spans} | set(enumerate(heads)) | {(tuple(spans), tuple(heads))}
        total.update(dict.fromkeys(parts, reading.probability))
    for row in table.itertuples():
        part = {"span": (row.start, row.end, row.label), "arc": (row.start, row.head), "tree": tree}.get(row.kind)
        if part:
            assert row.probability == pytest.approx(total[part], abs=1e-5), row


def test_a_result_has_the_same_probabilities_alone_in_a_batch_and_afterwards(parser):
    together = parser.parse_all(TEXTS, temperature=parser.model.temperature)
    for text, result in zip(TEXTS, together):
        table, later = result.confidence(), parser.parse(text).confidence()
        assert later.drop(columns="probability").equals(table.drop(columns="probability"))
        assert later["probability"].to_numpy() == pytest.approx(table["probability"].to_numpy(), rel=1e-4, abs=1e-6)
    second = together[0].alternatives(2, "any")[1]
    tree = second.confidence().set_index("kind")["probability"]["tree"]
    assert tree == pytest.approx(second.reading.probability, rel=1e-4)
    (result,) = parser.parse_all(TEXTS[:1], temperature=1.0)
    output, table = result.readings.scored.output, result.confidence()
    tags = np.exp(output.tag_scores[0].log_softmax(-1).amax(-1).numpy())
    assert table.loc[table["kind"] == "tag", "probability"].to_numpy() == pytest.approx(tags, abs=1e-5)
    assert table.loc[table["kind"] == "arc label", "label"].tolist() == list(result.sentence.arc_labels)
    head = result.sentence.heads[3]
    arc = parser.parse(TEXT, forbid=[f"{head}->4"]).confidence().query("kind == 'arc' and start == 3").iloc[0]
    usual = result.confidence().query("kind == 'arc' and start == 3").iloc[0]
    assert arc["head"] != head and arc["probability"] + usual["probability"] <= 1, "among all trees"


def test_a_result_writes_probabilities_only_if_they_are_asked_for(parser):
    result = parser.parse(TEXT)
    sure = result.with_confidence()
    assert "confidence" not in result.to_dict() and "ArcP" not in result.to_conllu()
    record = json.loads(sure.to_json())
    confidence = record.pop("confidence")
    assert record == json.loads(result.to_json())
    assert [len(confidence[name]) for name in ("spans", "arcs", "arc_labels", "tags")] == [len(sure.spans), 8, 8, 8]
    rows = [line.split("\t") for line in sure.to_conllu().splitlines() if "\t" in line]
    found = [part for row in rows for part in row[9].split("|") if part.startswith("ArcP")]
    assert found == [f"ArcP={p}" for p in confidence["arcs"]]
    assert f"# tree_probability = {confidence['tree']}\n" in sure.to_conllu()
    assert next(scan_conll(sure.to_conllu())).heads == result.sentence.heads


def test_tags_that_were_given_and_parsers_of_one_layer(parser, monkeypatch):
    (result,) = parser.parse_all(["Select_VB it_PRP"], "tagged", temperature=1.0)
    given = override(parser.config, {"model.tag_input": "given"})
    monkeypatch.setattr(parser, "model", replace(parser.model, config=given))
    (kept,) = parser.parse_all(["Select_VB it_PRP"], "tagged", temperature=1.0)
    with pytest.raises(LalkitError, match="no tag 'XX'"):
        parser.parse("Select_XX it_PRP", "tagged", require=["2->1"])
    assert "tag" in set(result.confidence()["kind"]) and "tag" not in set(kept.confidence()["kind"])
    monkeypatch.setattr(parser, "model", replace(parser.model, config=override(given, {"model.task": "dependencies"})))
    assert parser.parse_all(["Yes"], temperature=1.0)[0].confidence() is not None
    with pytest.raises(LalkitError, match="dependencies alone"):
        parser.playground()


def test_a_parser_is_saved_with_its_temperature(parser, tmp_path):
    facts = {
        "temperature": 0.5, "sentences": 3, "left_out": 0, "log_likelihood": {"before": -2.0, "after": -1.0},
        "treebank": "sample", "split": "dev", "command": "lalkit models calibrate", "weights": "model-7.safetensors",
    }  # fmt: skip
    (tmp_path / CALIBRATION).write_text(json.dumps(facts))
    parser.save(tmp_path)
    assert not (tmp_path / CALIBRATION).exists()
    copy = lalkit.load(tmp_path)
    copy.model = replace(copy.model, calibration=facts)
    copy.save(tmp_path)
    assert lalkit.load(tmp_path).model.temperature == 0.5


# ---------------------------------------------------------------- the command line


def test_readings_on_the_command_line(tiny_parser, parser, caplog):
    caplog.set_level(logging.INFO)
    parse = ["parse", "--model", tiny_parser]
    code, out, _ = command.lalkit(*parse, TEXT, "--alternatives", "3", "--to", "json", "--confidence")
    assert code == 0 and len([json.loads(line)["confidence"] for line in out.splitlines()]) == 3
    code, out, err = command.lalkit(*parse, TEXT, "--forbid", "2->1")
    assert code == 0 and out.startswith("(") and "the constraints cost" in err + caplog.text


@pytest.fixture(scope="module")
def telescope():
    return lalkit.load("en").parse(TEXT)


def test_probabilities_of_structures_add_up_to_those_of_arcs(telescope):
    """Every structure has one head for each word, so the structures with an arc have its probability together."""
    found, arcs = telescope.alternatives(60), telescope.attachments("with the telescope")
    for head in (2, 4):
        total = sum(result.reading.probability for result in found if result.sentence.heads[6] == head)
        assert total == pytest.approx(arcs.set_index("head")["probability"][head], rel=1e-3)
    probable = [result.reading.probability for result in found[1:]]
    assert probable == sorted(probable, reverse=True) and len({result.sentence.heads[:-1] for result in found}) == 60


@pytest.mark.parametrize("phrase", ["with the telescope", "withthetelescope", 7, (5, 7), np.int64(7)])
def test_attachments_of_a_phrase(telescope, phrase):
    table = telescope.attachments(phrase)
    assert table["head word"].tolist()[:2] == ["man", "saw"] and table["probability"].is_monotonic_decreasing
    assert 0.99 < table["probability"].sum() < 1 + 1e-6, "in fp32; a head inside the phrase has the rest"
    assert "root" in set(table["head word"]) and 7 not in set(table["head"])


WRONG = {"the": "2 times", "a dog": "not in the sentence", (4, 5): "2 have a head outside"}


@pytest.mark.parametrize(("phrase", "words"), WRONG.items())
def test_wrong_phrases(telescope, phrase, words):
    with pytest.raises(ParameterError, match=words):
        telescope.attachments(phrase)
