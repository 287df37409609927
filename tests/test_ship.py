"""Ship a parser from its runs, check its card, fit its temperature, and build its wheel."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lalkit
from lalkit.api import Parser
from lalkit.chart.sums import marginals
from lalkit.config import override, tiny
from lalkit.errors import LalkitError, ModelError
from lalkit.reproduce.cards import checksum, verify
from lalkit.training import named
from lalkit.training.checkpoint import CALIBRATION
from lalkit.training.loop import train
from lalkit.treebank.brackets import parse_tree
from lalkit.treebank.corpora import build, load, repository
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence, Span
from tests.command import lalkit as command
from tests.command import shipped_parser
from tests.mixed import mixed  # noqa: F401
from tests.treebank.test_conllu import violations
from tools import ship

NAMES = [*named.places()]
ROOT = Path(__file__).parents[1]


def facts_of(folder):
    return json.loads((folder / "card.json").read_text(encoding="utf-8"))


def holds(name):
    rows = list(verify(name))
    return len(rows) > 5 and all(stated == found for _, stated, found in rows)


# ---------------------------------------------------------------- the parsers in data/models


def test_what_is_shipped_is_small():
    sizes = [file.stat().st_size for file in (ROOT / "data").rglob("*") if file.is_file()]
    assert len(NAMES) > 0 and max(sizes) <= 32e6 and sum(sizes) <= 150e6


@pytest.mark.parametrize("name", NAMES)
def test_the_parses_of_a_shipped_parser_are_those_of_its_card(name):
    """Sentences alone and in a batch; then the checksum of the machine that wrote the card."""
    words = [list(s.words) for s in load("sample", "test").sentences[:9]]
    parser = shipped_parser(name)
    together = [r.to_dict() for r in parser.parse_all(words, batch_words=10_000)]
    for number in range(0, len(words), 8):
        alone = parser.parse(words[number]).to_dict()
        assert alone["tree"] == together[number]["tree"] and alone["heads"] == together[number]["heads"]
        assert alone["score"] == pytest.approx(together[number]["score"], abs=1e-3)
    parses = facts_of(named.places()[name])["parses"]
    assert checksum(parser, parses["treebank"]) == parses["sha256"]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["en-news"])  # `lalkit models check` does all of them
def test_the_scores_of_a_card(name):
    assert all(stated == found for _, stated, found in verify(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_cards_are_what_the_program_writes(name):
    folder = repository() / "data" / "models" / name
    assert (folder / "README.md").read_text(encoding="utf-8") == ship.page(facts_of(folder))


# ---------------------------------------------------------------- cards


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """The tiny parser's recipe with another seed, another rate, and one thing more in the model: worse on dev."""
    folder = tmp_path_factory.mktemp("runs") / "second"
    train(override(tiny(), {"train.epochs": 2, "train.seed": 2, "train.rate": 1e-3}), "sample", folder)
    return folder


@pytest.fixture(scope="module")
def shipped(tiny_parser, tmp_path_factory):
    """data/models with one parser in it."""
    root = tmp_path_factory.mktemp("repository")
    (root / "data" / "models").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named, "shipped", lambda: root / "data")
        yield ship.ship([tiny_parser], "en-tiny", "tests")


def test_a_card_has_every_score_and_its_command(shipped, tiny_parser):
    assert [*named.places()] == ["en-tiny"] and Parser.load("en-tiny").info["name"] == "en-tiny" and holds("en-tiny")
    sizes = [sum(f.stat().st_size for f in place.glob("model-*.safetensors")) for place in (shipped, tiny_parser)]
    assert sizes[0] < 0.6 * sizes[1], "16 bits"
    facts, text = facts_of(shipped), (shipped / "README.md").read_text()
    (seed,) = facts["seeds"]
    assert (facts["licence"], facts["seed"], seed["epochs"], seed["cores"]) == ("CC BY 4.0", 1, 2, 1)
    assert all(f"{value:.2f}" in text for value in seed["test"].values())
    assert "lalkit evaluate en-tiny --treebank sample --split test --json -" in text
    assert "lalkit train --treebank sample --preset tiny --seed S" in text and "--epochs 2" in text
    assert "license: cc-by-4.0" in text and "None" not in text and text == ship.page(facts)


def test_a_check_finds_other_weights(shipped, second):
    assert checksum(Parser.load(second)) != facts_of(shipped)["parses"]["sha256"]


@pytest.fixture(scope="module")
def of_a_mixture(shipped, mixed, tmp_path_factory):  # noqa: F811
    """A parser that starts from a shipped one, and learns Universal Dependencies from made-up corpora."""
    run = tmp_path_factory.mktemp("runs") / "mixture"
    train(override(tiny(), {"train.epochs": 1, "train.start": "en-tiny"}), "sample:constituents*0.2+ewt*2+gum", run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ship, "BESIDES", ("sample:constituents", "ewt"))  # ewt has no test part
        yield ship.ship([run], "en-mixed", "tests")
    shutil.rmtree(shipped.parent / "en-mixed")


def test_a_card_of_a_mixture_has_scores_of_every_part(of_a_mixture, monkeypatch, tmp_path):
    facts, text = facts_of(of_a_mixture), (of_a_mixture / "README.md").read_text()
    rows = {(row["treebank"], row["split"], row["of"]): row for row in facts["parts"]}
    assert set(rows) == {
        ("sample:constituents", "dev", "all"), ("ewt", "dev", "all"), ("ewt", "dev", "g"), ("ewt", "dev", "x"),
        ("gum", "dev", "all"), ("gum", "dev", "news"), ("sample:constituents", "test", "all"),
    }  # fmt: skip
    sample, ewt = rows["sample:constituents", "test", "all"], rows["ewt", "dev", "all"]
    assert sample["f1"] is not None is sample["uas"] and "ud_uas" not in sample and sample["sentences"] == 44
    assert ewt["f1"] is None is not ewt["ud_las_all"] and (ewt["sentences"], ewt["out_of_reach"]) == (2, 1)
    assert (facts["licence"], facts["starts"]) == ("CC BY-SA 4.0", ["en-tiny"]) and "license: cc-by-sa-4.0" in text
    assert "../en-tiny/README.md" in text and "UD_English-EWT" in text
    assert "--treebank 'sample:constituents*0.2+ewt*2+gum' --preset tiny" in text and holds("en-mixed")
    monkeypatch.setenv("LALKIT_DATA", str(tmp_path))
    assert {what.split()[0] for what, *_ in verify("en-mixed")} == {"parses", "sample:constituents"}, "what is here"


def test_a_parser_of_universal_dependencies_writes_valid_files_and_is_scored_by_their_rules(of_a_mixture):
    results = Parser.load("en-mixed").parse_all(["She reads it (often).", "No!", "It was on the desk, was n't it?"])
    text = "".join(result.with_confidence().to_conllu() for result in results)
    assert violations(text) == [] and results[0].to_dict()["upos"] == results[0].sentence.upos
    assert all(("root" == label) == (head == 0) for r in results for *_, head, label in r.dependencies)
    code, out, err = command("evaluate", "en-mixed", "--treebank", "gum", "--split", "dev", "--json", "-")
    record = json.loads(out)
    assert code == 0 and [row["arcs"] for row in record["universal"]] == [16, 13], err
    assert record["universal"][0]["uas"] == record["uas_all"] and record["out_of_reach"] == 1


def test_the_licence_of_a_mixture():
    assert ship.licence_of("craft+sample:constituents", []) == "CC BY 4.0"
    assert ship.licence_of("ewt+craft:constituents", ["CC BY 3.0"]) == "CC BY-SA 4.0"
    assert ship.licence_of("ewt+ptb-sample:constituents", []) is None, "share alike, and not for commerce"
    assert ship.licence_of("sample", [ship.LICENCES["sinica"]]) == ship.LICENCES["sinica"]


def test_a_copy_of_a_shipped_parser_knows_the_runs_before_it(tmp_path):
    copy, facts = tmp_path / "former", facts_of(ROOT / "data" / "models" / "en")
    ship.write_json(copy / "card.json", facts)
    *before, last = ship._stages(str(copy))
    assert before == [{**stage, "licence": facts["licence"]} for stage in facts["stages"]]
    assert (last["out"], last["start"]) == (str(copy), facts["recipe"]["train.start"])
    assert last["silver"] == facts["silver"] and last["licence"] == facts["licence"]


def test_runs_that_do_not_belong_together_are_refused(tiny_parser, second, shipped, tmp_path):
    content = json.loads((tiny_parser / "model.json").read_text())
    content["info"]["treebank"] = "mine"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.json").write_text(json.dumps(content))
    for runs, options in (
        ([tiny_parser, second], {}), ([second, second], {}), ([second], {"seed": 7}), ([tmp_path / "mine"], {}),
    ):  # fmt: skip
        pytest.raises(ModelError, ship.ship, runs, "en-wrong", "tests", **options)
    assert "en-wrong" not in named.places()


# ---------------------------------------------------------------- temperatures


@pytest.fixture
def folder(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def test_the_temperatures_are_where_gold_trees_are_most_probable(folder):
    parser = lalkit.load(folder)
    gold = [s for s in load("sample", "dev").sentences if len(s) <= 8][:12]
    facts = ship.fit_temperatures(parser, gold)
    assert facts["sentences"] + facts["left_out"] == len(gold)
    crossing = Sentence(tuple("abcd"), None, (Span(0, 4, "S"),), (3, 0, 2, 1), free_arcs=True)
    strange = Sentence(("a", "b"), ("X", "X"), (Span(0, 2, "STRANGE"),), (0, 1), ("x", "x"), "1")
    left_out = facts["left_out"] + 2
    assert ship.fit_temperatures(parser, [*gold, crossing, strange]) == facts | {"left_out": left_out}
    pytest.raises(LalkitError, ship.fit_temperatures, parser, [strange])
    before, after = facts["log_likelihood"].values()
    labels, arcs = facts["temperature"]
    assert fit_at(parser, gold, 1, 1) == pytest.approx(before, abs=1e-3) and before < after
    assert fit_at(parser, gold, labels, arcs) == pytest.approx(after, abs=1e-3)
    for other in ((labels * 0.9, arcs), (labels * 1.1, arcs), (labels, arcs * 0.9), (labels, arcs * 1.1)):
        assert fit_at(parser, gold, *other) < after + 1e-4


def fit_at(parser, gold, of_labels, of_arcs):
    """The mean log-probability of gold trees, one by one, with scores that are divided before."""
    logs, lam = [], parser.config.train.lam
    for sentence in gold:
        (scored,) = parser.model.scores([sentence])
        ((labels, arcs),) = scored.arrays()
        try:
            spans = [(s.start, s.end, parser.vocab.label_index[s.label]) for s in to_joint(sentence)]
        except KeyError:
            continue
        labels, arcs = labels / of_labels, arcs / of_arcs
        total = lam * sum(labels[i, j, k] for i, j, k in spans)
        total += (1 - lam) * sum(arcs[d, h] for d, h in enumerate(sentence.heads))
        logs.append(total - marginals(labels, arcs, lam).log_partition)
    return float(np.mean(logs))


def test_calibration_is_kept_and_measured_on_other_sentences(folder, tmp_path):
    facts = ship.calibrate(str(folder), "sample", sentences=10)
    assert facts == json.loads((folder / CALIBRATION).read_text()) and facts["command"].endswith("--sentences 10")
    parser = lalkit.load(folder)
    assert parser.model.temperature == facts["temperature"] and len({1, *facts["temperature"]}) == 3
    result = parser.parse("She saw the man with the telescope.").with_confidence()
    (same,) = result.alternatives(1, "any")
    assert same.prediction.spans == result.prediction.spans
    assert same.reading.log_probability == pytest.approx(result.prediction.confidence.log_probability, abs=1e-4)
    ship.draw_reliability([str(folder)], tmp_path / "figure.png", 15)
    table = pd.read_csv(tmp_path / "figure.csv")
    assert (tmp_path / "figure.png").stat().st_size > 10_000 and set(table["part"]) == {"sample test"}
    assert [set(table[name]) for name in ("temperature", "arc_temperature")] == [{1.0, t} for t in facts["temperature"]]
    changes = [{"temperature": 1e9}, {"temperature": [1]}, {"temperature": "1"}, {"weights": "model-5.safetensors"}]
    for change in changes:
        (folder / CALIBRATION).write_text(json.dumps({**facts, **change}))
        with pytest.raises(ModelError, match=CALIBRATION):
            lalkit.load(folder)


def test_parts_are_judged_against_gold():
    gold = build(parse_tree("(S (NP (DT a) (NN b)) (VP (VB c)))"), None, "1")
    gold = Sentence(gold.words, gold.tags, gold.constituents, (2, 3, 0), ("DET", "SBJ", "ROOT"), "1")
    rows = [
        ("span", 0, 3, "S", 3, 0.9), ("span", 0, 2, "VP", 2, 0.6), ("span", 2, 3, "VP", 3, 0.8), ("span", 0, 2, "<H>", 2, 0.5),
        ("arc", 0, 1, None, 2, 0.9), ("arc", 1, 2, None, 1, 0.2), ("arc", 2, 3, None, 0, 0.7),
        ("arc label", 0, 1, "DET", 2, 0.9), ("arc label", 1, 2, "SBJ", 1, 0.9), ("arc label", 2, 3, "SBJ", 0, 0.3),
        ("tag", 0, 1, "DT", None, 1.0), ("tag", 1, 2, "VB", None, 1.0), ("tree", 0, 3, None, None, 0.1),
    ]  # fmt: skip
    columns = ["kind", "start", "end", "label", "head", "probability"]
    table = pd.DataFrame(rows, columns=columns).astype({"head": "Int64"})
    judged = ship.judge([table], [gold]).groupby("kind", sort=False)["right"].agg(list).to_dict()
    assert judged == {
        "span": [True, False, True], "arc": [True, False, True], "arc label": [True, False], "tag": [True, False],
        "tree": [False],
    }  # fmt: skip


# ---------------------------------------------------------------- wheels


def test_the_wheels_are_those_of_the_checkout(tmp_path, monkeypatch):
    """Also where lalkit is installed from a wheel and has one parser. The Chinese parser brings its encoder."""
    built = {}
    monkeypatch.setattr(named, "shipped", lambda: tmp_path)
    monkeypatch.setattr(ship, "_build", lambda *about: built.update({about[2]: about[-1]}))
    ship.build_wheels()
    assert {*built} == {f"lalkit-models-{name}" for name in NAMES} and len(built) > 5
    assert built["lalkit-models-zh-sinica"] == ["lalkit_models.zh_sinica", "lalkit_e5_han.model"]
    with pytest.raises(ModelError, match="en-nothing"):
        ship.build_wheels(["en-nothing"])
