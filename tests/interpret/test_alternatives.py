"""Alternatives, samples, constraints and minimum-risk parses of a parser, and how the command line prints them."""

import json
import logging
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lalkit
from lalkit.chart.constraints import ArcItem, SpanItem, TagItem, read_brackets, read_item
from lalkit.config import override, tiny
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.interpret.alternatives import minimum_risk
from lalkit.training.loop import train
from tests import command
from tests.chart.charts import random_chart
from tests.reference import joint_enumeration as reference

TEXT = "She saw the man with the telescope."


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return lalkit.load(tiny_parser)


# ---------------------------------------------------------------- alternatives and samples


def test_alternatives_begin_with_the_parse_and_mark_what_differs(parser):
    result = parser.parse(TEXT)
    best, second, *others = result.alternatives(6)
    assert best.prediction.spans == result.spans and best.sentence == result.sentence
    assert best.score == pytest.approx(result.score, rel=1e-5) and best.reading.added == frozenset()
    assert result.margin == best.score - second.score
    for other in (second, *others):
        reading = other.reading
        assert reading.added | reading.missing
        spans = {SpanItem(span.label, span.start + 1, span.end) for span in other.spans}
        arcs = {ArcItem(number, head) for number, _, _, head, _ in other.dependencies}
        assert reading.added <= spans | arcs and not reading.missing & (spans | arcs)
        assert all(f"+{item}" in str(other).splitlines()[0] for item in reading.added)
        ratio = (best.score - other.score) / parser.temperature
        assert best.reading.log_probability - reading.log_probability == pytest.approx(ratio)


def test_the_first_parse_of_a_shipped_parser_has_alternatives():
    """In its first run the encoder of transformers adds hooks to itself: that is no change of the network."""
    first, second = lalkit.load("en-news").parse("Fed Ready to Inject Big Funds").alternatives(2)
    assert first.reading.probability > second.reading.probability > 0
    assert lalkit.load("en-news").parse("Fed Ready to Inject Big Funds", forbid=["VP(4,6)"]).price.score > 0


@pytest.mark.parametrize("kind", ["tiny_parser", "tiny_span_parser"])
def test_every_tree_that_was_chosen_is_explained(request, kind):
    """The page of another tree than the best one shows that tree, with its own scores and tags."""
    parser = lalkit.load(request.getfixturevalue(kind))
    best = parser.parse(TEXT)
    (start, end, label, _) = best.spans[0]
    forbidden = parser.parse(TEXT, forbid=[SpanItem(label, start + 1, end), TagItem(2, best.sentence.tags[1])])
    for result in (*best.alternatives(3), *forbidden.alternatives(2), forbidden):
        data = parser.attribution.page([result._look], title="", model="")
        (sentence,) = data["sentences"]
        shown = [(span["start"], span["end"], span["label"]) for span in sentence["spans"]]
        assert shown == [span[:3] for span in result.spans if span.label != "<H>"]
        assert (tuple(sentence["heads"]), tuple(sentence["tags"])) == (result.sentence.heads, result.sentence.tags)
        assert sentence["spans"][0]["probability"] == round(result.with_confidence().prediction.confidence.spans[0], 4)
        assert "<svg" in result.explore().html
    for weight in parser.network.spans.parameters():
        weight.data.mul_(2)  # torch does not count this
    with pytest.raises(ModelError, match="the network has changed"):
        replace(forbidden).explain()


def test_all_trees_of_one_word_have_the_probability_1(parser, caplog):
    results = parser.parse("Yes").alternatives(10_000)
    assert len(results) == len(parser.vocab.labels) - 2
    assert sum(result.reading.probability for result in results) == pytest.approx(1)
    assert "10000 trees were asked for, but the sentence has only" in caplog.text


def test_samples_depend_on_the_seed(parser):
    first, again, other = ([str(tree) for tree in parser.sample(TEXT, 4, seed)] for seed in (1, 1, 2))
    assert first == again != other and len(first) == 4


# ---------------------------------------------------------------- constraints


def test_a_constrained_parse_obeys_and_has_its_price(parser):
    text, free = TEXT, parser.parse(TEXT)
    result = parser.parse(text, require=["PP(5,6)", "3->7"], forbid=["2->0"])
    assert any(s[:2] == (4, 6) and "PP" in s.label.split("::") for s in result.spans)
    assert result.sentence.heads[2] == 7 and result.sentence.heads[1] != 0
    assert result.price.score == pytest.approx(free.score - result.score, abs=1e-4) and result.price.score > 0
    assert result.price.log_probability < 0 and free.price == (0, 0)
    kept = parser.parse(text, require=[str(ArcItem(1, free.sentence.heads[0]))])
    assert kept.spans == free.spans and kept.price.score == 0
    both = [parser.parse(text, **{kind: ["4->2"]}).price.log_probability for kind in ("require", "forbid")]
    assert sum(np.exp(both)) == pytest.approx(1)
    assert result.alternatives(2)[0].spans == result.spans


def test_tags_can_be_required_and_forbidden(parser):
    free = parser.parse(TEXT)
    tag = next(tag for tag in parser.vocab.tags if tag != free.sentence.tags[3])
    required = parser.parse(TEXT, require=[f"4_{tag}"])
    assert required.sentence.tags[3] == tag and required.spans == free.spans and required.price.score == 0
    forbidden = parser.parse(TEXT, forbid=[f"4_{free.sentence.tags[3]}"])
    assert forbidden.sentence.tags[3] != free.sentence.tags[3]
    chances = [parser.parse(TEXT, require=[f"4_{tag}"]).price.log_probability for tag in parser.vocab.tags]
    assert sum(np.exp(chances)) == pytest.approx(1, rel=1e-4)


def test_brackets_in_the_sentence(parser):
    text = 'She "saw" [NP the man [* with [NP the telescope]]], did n\'t she?'
    sentence, items = read_brackets(text)
    assert sentence.words[:7] == ("She", "``", "saw", "''", "the", "man", "with")
    assert items == [SpanItem("NP", 5, 9), SpanItem("*", 7, 9), SpanItem("NP", 8, 9)]
    result = parser.parse(text, "brackets")
    spans = {(span.start, span.end): span.label for span in result.spans}
    assert "NP" in spans[4, 9] and "NP" in spans[7, 9] and (6, 9) in spans
    assert result.sentence.words == sentence.words


def test_the_notation():
    items = SpanItem("S::VP", 3, 12), SpanItem("*", 1, 2), ArcItem(4, 0), TagItem(3, "PRP$"), SpanItem("<H>", 2, 4)
    assert [read_item(str(item)) for item in items] == list(items)
    assert read_item(" (3, 5)") == SpanItem("*", 3, 5) and read_item("4 -> 2") == ArcItem(4, 2)


@pytest.mark.parametrize(
    ("require", "forbid", "says"),
    [
        (["NP(3,5)", "VP(4,7)"], [], r"NP\(3,5\): crosses VP\(4,7\)\n  Of two spans, one must contain the other"),
        (["NP(3,5)"], ["NP(3,5)"], r"NP\(3,5\): is required and forbidden"),
        (["NP(3,5)"], ["(3,5)"], r"require NP\(3,5\), forbid \*\(3,5\): no joint tree obeys these constraints"),
        (["NP(3,9)"], [], r"NP\(3,9\): there is no word 9\n.* 1 to 8"),
        (["NP(0,2)"], [], r"NP\(0,2\): there is no word 0"),
        (["0->2"], [], "0->2: there is no word 0"),
        (["NP(5,3)"], [], r"ends before it begins\n  Write NP\(3,5\)"),
        (["4->4"], [], "require 4->4: no joint tree obeys"),
        (["4->2", "4->3"], [], "require 4->2, require 4->3: no joint tree obeys"),
        (["4->0", "3->0"], [], "require 4->0, require 3->0: no joint tree obeys"),
        (["4_NN", "4_DT"], [], "require 4_NN, require 4_DT: no joint tree obeys"),
        (["ZZ(3,5)"], [], r"ZZ\(3,5\): the parser has no label ZZ\n  It has <H>"),
        (["3_ZZ"], [], "3_ZZ: the parser has no tag ZZ"),
        (["NP 3 5"], [], r"'NP 3 5': is no constraint\n  Write NP\(3,5\)"),
        (["4->2", "2->4"], [], "require 4->2, require 2->4: no joint tree obeys these constraints"),
        ([], ["*(1,8)"], r"forbid \*\(1,8\): no joint tree obeys"),
        ("NP(3,5)", [], "is one text, not a list"),
    ],
)
def test_what_cannot_be_is_refused(parser, require, forbid, says):
    with pytest.raises(ParameterError, match=says):
        parser.parse(TEXT, require=require, forbid=forbid)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("She saw [NP the man", r"the bracket \[NP is not closed"),
        ("She saw [the] man", r"a \] without its \["),
        ("She saw NP the man]", r"a \] without its \["),
        ("She saw [NP the m]an", r"\[NP the m\] does not hold whole words"),
        ("She saw [NP ] it", "does not hold whole words"),
    ],
)
def test_wrong_brackets_are_refused(parser, text, says):
    with pytest.raises(ParameterError, match=says):
        parser.parse(text, "brackets")


def test_a_parser_of_one_layer_has_no_joint_trees(tmp_path):
    train(override(tiny(), {"train.epochs": 1, "model.task": "dependencies"}), "sample", tmp_path)
    parser = lalkit.load(tmp_path)
    for ask in (lambda: parser.parse(TEXT).margin, lambda: parser.parse(TEXT, decode="mbr")):
        with pytest.raises(LalkitError, match="trained on dependencies alone"):
            ask()


# ---------------------------------------------------------------- minimum risk


def test_minimum_risk_is_that_of_enumeration():
    """No joint tree has fewer expected errors: wrong and missing constituents, and wrong heads twice."""
    labels = ("", "<H>", "NP", "S::NP")
    network = SimpleNamespace(config=SimpleNamespace(task="joint"))
    rng, differs = np.random.default_rng(8), 0
    for trial in range(30):
        n, temperature = 1 + trial % 3, (0.5, 1.0)[trial % 2]
        label_scores, arc_scores = random_chart(rng, n, 4, "real", np.float32)
        trees = list(reference.labelled_trees(n, 4))
        scores = np.array([reference.score_of(tree, label_scores, arc_scores, 0.4) for tree in trees])
        chances = np.exp(scores / temperature - np.logaddexp.reduce(scores / temperature))
        brackets = [
            Counter((i, j, part) for i, j, k, _ in spans for part in labels[k].split("::") if k > 1)
            for spans, _ in trees
        ]
        keys = sorted(set().union(*brackets))
        has = np.array([[counter[key] for key in keys] for counter in brackets])
        heads = np.array([heads for _, heads in trees])

        def risk(at: int) -> float:
            errors = np.abs(has - has[at]).sum(1) + 2 * (heads != heads[at]).sum(1)  # noqa: B023
            return float(chances @ errors)  # noqa: B023

        output = SimpleNamespace(
            label_scores=torch.tensor(label_scores)[None], arc_scores=torch.tensor(arc_scores)[None]
        )
        decode = minimum_risk(network, labels, temperature)
        (tree,) = decode(output, [n], 0.4, 1, "joint", ["x"])
        at = trees.index((tuple(tree.spans), tuple(tree.heads.tolist())))
        assert risk(at) == pytest.approx(min(map(risk, range(len(trees)))), abs=1e-5), trial
        assert tree.score == pytest.approx(scores[at], abs=1e-5)
        differs += at != int(scores.argmax())
    assert differs > 5


def test_minimum_risk_parses_are_the_same_in_a_batch(parser):
    texts = [TEXT, "It works.", "The end came."]
    results = parser.parse_all(texts, decode="mbr")
    assert [str(result) for result in results] == [str(parser.parse(text, decode="mbr")) for text in texts]
    with pytest.raises(ParameterError, match="there is no decoder 'worst'"):
        parser.parse(TEXT, decode="worst")
    with pytest.raises(LalkitError, match="constraints are for the best tree"):
        parser.parse(TEXT, require=["4->2"], decode="mbr")


# ---------------------------------------------------------------- the command line


def test_readings_on_the_command_line(tiny_parser, parser, caplog):
    caplog.set_level(logging.INFO)
    parse = ["parse", "--model", tiny_parser]
    code, out, _ = command.lalkit(*parse, TEXT, "--alternatives", "3")
    assert code == 0 and out.count("# probability") == 3 and "the best" in out.splitlines()[0]
    code, out, _ = command.lalkit(*parse, TEXT, "--samples", "2", "--seed", "5", "--to", "json")
    assert [json.loads(line)["heads"] for line in out.splitlines()] == [
        list(tree.sentence.heads) for tree in parser.sample(TEXT, 2, 5)
    ]
    code, out, err = command.lalkit(*parse, "She saw [NP the man with] it", "--form", "brackets", "--forbid", "1->2")
    assert code == 0 and out.startswith("(") and "the constraints cost" in err + caplog.text
    code, out, _ = command.lalkit(*parse, "--decode", "mbr", "--to", "json", TEXT)
    assert json.loads(out)["tree"] == parser.parse(TEXT, decode="mbr").to_ptb()
    for wrong in (
        ["--require", "NP(1,2)", TEXT, TEXT], ["--alternatives", "2", TEXT, "--out", "x"],
        ["--require", "NP(1,2)", TEXT, "--file", "x"], ["--require", "NP(1,2)", TEXT, "--workers", "0"],
    ):  # fmt: skip
        code, _, err = command.lalkit(*parse, *wrong)
        assert code == 2 and "for one typed sentence" in err
    code, _, err = command.lalkit(*parse, TEXT, "--alternatives", "3", "--samples", "1")
    assert code == 2 and "--alternatives and --samples exclude each other" in err
    for option in ("--alternatives", "--samples"):
        code, _, err = command.lalkit(*parse, TEXT, option, "0")
        assert code == 2 and "the number of trees is 0" in err
