"""Ship a parser from its runs, and check its card."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import lalkit.models.card_scores
import lalkit.models.ship
from lalkit.api import Parser
from lalkit.config import minilm, minilm_span, override, tiny
from lalkit.errors import ModelError
from lalkit.files import write_text
from lalkit.models.card_page import COLUMNS, command, page
from lalkit.models.card_scores import Scored, control_of, measure, settings
from lalkit.models.ship import LICENCES, add, add_precision, checksum, licence_of, ship, verify
from lalkit.training import named as models
from lalkit.training.loop import train
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import load, repository
from tests.command import lalkit as lalkit_command
from tests.mixed import mixed  # noqa: F401
from tests.treebank.test_universal import violations


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """The tiny parser's recipe with another seed, one epoch less learned: worse on dev."""
    folder = tmp_path_factory.mktemp("runs") / "second"
    train(override(tiny(), {"train.epochs": 2, "train.seed": 2, "train.rate": 1e-3}), "sample", folder)
    return folder


@pytest.fixture(scope="module")
def shipped(tiny_parser, second, tmp_path_factory):
    """data/models with one parser in it, and a run of another recipe as its control."""
    root = tmp_path_factory.mktemp("repository")
    (root / "data" / "models").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "shipped", lambda: root / "data")
        yield ship([tiny_parser], "en-tiny", controls=[second])


def test_the_best_is_chosen_and_halved(shipped, tiny_parser):
    assert models.names() == ["en-tiny"] and models.find("en-tiny") == shipped
    parser = Parser.load("en-tiny")
    assert parser.info["name"] == "en-tiny"
    assert sum(f.stat().st_size for f in shipped.glob("*.safetensors")) < 0.6 * sum(
        f.stat().st_size for f in tiny_parser.glob("model-*.safetensors")
    )


def test_a_check_gives_the_numbers_of_the_card(shipped):
    rows = verify("en-tiny")
    assert {what for what, *_ in rows} >= {"parses", "dev f1", "dev uas", "test f1", "test las"}
    assert all(stated == found for _, stated, found in rows)
    facts = json.loads((shipped / "card.json").read_text())
    (seed,) = facts["seeds"]
    assert (facts["licence"], facts["seed"], seed["epochs"], seed["cores"]) == ("CC BY 4.0", 1, 2, 1)
    (control,) = facts["controls"]
    assert control["differs"] == {"train.rate": 0.001} and [r["seed"] for r in control["seeds"]] == [2]
    assert control["paired"] == 0 and control["tests"] == {}


def test_a_seed_may_be_chosen_before_the_others_are_known(shipped, second):
    with pytest.raises(ModelError, match=r"no run of seed 7\n.*seeds are \[2\]"):
        ship([second], "en-other", seed=7)
    facts = json.loads((ship([second], "en-other", seed=2) / "card.json").read_text())
    assert facts["chosen"] == "before" and "chosen before the seeds were compared" in page(facts)
    assert "chosen by F1 + LAS on dev" in page(json.loads((shipped / "card.json").read_text()))
    shutil.rmtree(shipped.parent / "en-other")


def test_training_may_start_from_a_shipped_parser(shipped, tmp_path):
    config = override(tiny(), {"train.epochs": 1, "train.rate": 0.0, "train.start": "en-tiny"})
    train(config, "sample", tmp_path / "run")
    theirs, ours = Parser.load("en-tiny").network.state_dict(), Parser.load(tmp_path / "run").network.state_dict()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)


def test_a_check_finds_other_weights(shipped, second):
    """The checksum is of what the parser says, not of a file."""
    assert checksum(Parser.load(second)) != json.loads((shipped / "card.json").read_text())["parses"]["sha256"]
    assert checksum(Parser.load("en-tiny")) == json.loads((shipped / "card.json").read_text())["parses"]["sha256"]


COMMITTED = sorted((repository() / "data" / "models").glob("*/card.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_the_committed_cards_are_what_the_program_writes(path):
    facts = json.loads(path.read_text(encoding="utf-8"))
    assert (path.parent / "README.md").read_text(encoding="utf-8") == page(facts)


def test_a_card_says_of_a_mixture_only_what_is_true_of_it():
    facts = json.loads((repository() / "data" / "models" / "en" / "card.json").read_text(encoding="utf-8"))
    text = page(facts | {"treebank": "craft+ptb-sample:constituents"})
    assert "has never seen `ptb-sample`" in page(facts) and "has never seen `ptb-sample`" not in text
    assert "biomedical articles that people drew" in page(facts) and "biomedical articles that people drew" not in text
    assert "Of `sample`, only" not in text and "constituent of `gum` contradicts" not in text


def test_the_page_has_every_score_and_its_command(shipped):
    text = (shipped / "README.md").read_text()
    facts = json.loads((shipped / "card.json").read_text())
    for row in (*facts["seeds"], *facts["controls"][0]["seeds"]):
        for value in row["test"].values():
            assert f"{value:.2f}" in text
    assert "lalkit evaluate en-tiny --treebank sample --split test --json -" in text
    assert "lalkit train --treebank sample --preset tiny --seed S" in text and "--epochs 2" in text
    assert "license: cc-by-4.0" in text and text == page(facts)


def test_a_parser_with_label_attention_inside_the_span(shipped, tiny_span_parser):
    made = ship([tiny_span_parser], "en-span", controls=[])
    facts, text = json.loads((made / "card.json").read_text()), (made / "README.md").read_text()
    assert facts["inside"] == "glass" and facts["label_heads"] == len(Parser.load(made).vocab.labels) - 1
    assert "label attention inside the span" in text and "nothing else" in text and "feed-forward" not in text
    assert not (made / "profile.json").exists() and facts["recipe"]["model.span_attention.boundary"] == "glass"
    assert all(stated == found for _, stated, found in verify("en-span"))
    shutil.rmtree(made)


def test_the_recipe_of_a_preset_is_its_name():
    assert settings(minilm_span()) == {"preset": "minilm-span"}
    assert settings(override(minilm_span(), {"train.workers": 2, "train.seed": 9})) == {"preset": "minilm-span"}
    control = override(minilm(), {"model.label_attention": "none", "model.layers": 2})
    assert settings(control) == {"preset": "minilm", "model.label_attention": None, "model.layers": 2}


def test_arc_labels_of_another_kind_are_not_scored(shipped):
    facts = json.loads((shipped / "card.json").read_text())
    assert facts["sample"]["las"] is not None and "other conventions" not in page(facts)
    facts["sample"]["las"] = None
    assert "follow other conventions" in page(facts) and "None" not in page(facts)


def test_a_chinese_parser_is_shown_on_our_chinese_treebank(shipped, tmp_path):
    """Trained on half of it under other tags: nothing but UAS can be said, and the checksum is of Chinese parses."""
    folder = tmp_path / "zh"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        sentences = [
            replace(s, tags=[f"x{t}" for t in s.tags], arc_labels=[f"x{a}" for a in s.arc_labels])
            for s in load("sample-zh", split).sentences[:40]
        ]
        (folder / f"{split}.trees").write_text("".join(f"{s.tree}\n" for s in sentences), encoding="utf-8")
        (folder / f"{split}.conllu").write_text(format_conllu(sentences), encoding="utf-8")
    train(override(tiny(), {"train.epochs": 1}), str(folder), tmp_path / "run")
    made = ship([tmp_path / "run"], "zh-tiny", licence="CC BY 4.0", language="zh")
    facts, text = json.loads((made / "card.json").read_text()), (made / "README.md").read_text()
    assert (facts["own"], facts["parses"]["treebank"], facts["encoder"]) == ("sample-zh", "sample-zh", None)
    assert [facts["sample"][key] is None for key in ("f1", "exact", "uas", "las", "tag_accuracy")] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert "only UAS can be given" in text and '"tokens"' in text and "from scratch" in text and "None" not in text
    assert all(stated == found for _, stated, found in verify("zh-tiny"))
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def of_a_mixture(shipped, mixed, tmp_path_factory):  # noqa: F811
    """A parser that starts from a shipped one, and learns Universal Dependencies from made-up corpora."""
    run = tmp_path_factory.mktemp("runs") / "mixture"
    train(override(tiny(), {"train.epochs": 1, "train.start": "en-tiny"}), "sample:constituents*0.2+ewt*2+gum", run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lalkit.models.ship, "BESIDES", ("sample:constituents", "ewt"))  # ewt has no test part
        patch.setattr(lalkit.models.card_scores, "FIRST", 10)
        yield ship([run], "en-mixed")
    shutil.rmtree(shipped.parent / "en-mixed")


def test_a_card_of_a_mixture_has_scores_of_every_part(of_a_mixture):
    facts, text = json.loads((of_a_mixture / "card.json").read_text()), (of_a_mixture / "README.md").read_text()
    rows = {(row["treebank"], row["split"], row["of"]): row for row in facts["parts"]}
    assert set(rows) == {
        ("sample:constituents", "dev", "all"), ("sample:constituents", "dev", "first 10"),
        ("ewt", "dev", "all"), ("ewt", "dev", "g"), ("ewt", "dev", "x"), ("gum", "dev", "all"), ("gum", "dev", "news"),
        ("sample:constituents", "test", "all"), ("sample:constituents", "test", "first 10"),
    }  # fmt: skip
    sample, ewt = rows["sample:constituents", "test", "all"], rows["ewt", "dev", "all"]
    assert sample["f1"] is not None is sample["uas"] and "ud_uas" not in sample and sample["sentences"] == 44
    assert ewt["f1"] is None is not ewt["ud_las_all"] and (ewt["sentences"], ewt["out_of_reach"]) == (2, 1)
    assert (facts["licence"], facts["starts"]) == ("CC BY-SA 4.0", ["en-tiny"]) and "license: cc-by-sa-4.0" in text
    assert "../en-tiny/README.md" in text and "UD_English-EWT" in text and "first 10" not in text
    assert "--treebank 'sample:constituents*0.2+ewt*2+gum' --preset tiny" in text
    assert "lalkit evaluate en-mixed --treebank sample:constituents --split test\n" in text


@pytest.mark.parametrize("name", ["en-tiny", "en-mixed"])
def test_a_card_gets_the_scores_of_another_precision(name, of_a_mixture):
    """It is fp32 that is added, so twice the same scores."""
    folder = models.find(name)
    kept, page_before = (folder / "card.json").read_text(), (folder / "README.md").read_text()
    add_precision(name, "fp32")
    facts, added = json.loads((folder / "card.json").read_text()), set((folder / "README.md").read_text().splitlines())
    on_dev = [row for row in facts.get("parts", ()) if row["split"] == "dev" and row["of"] == "all"]
    scores = [{key: row[key] for key in COLUMNS} for row in facts["precisions"]["fp32"]]
    assert scores == [{key: row[key] for key in COLUMNS} for row in on_dev or [facts["seeds"][0]["dev"]]]
    rows = [line for line in added - set(page_before.splitlines()) if line.startswith("| fp32")]
    assert len(rows) == len(scores)  # the line of 32 bits and the line of this precision are the same here
    assert facts.items() >= json.loads(kept).items()
    write_text(folder / "card.json", kept)
    write_text(folder / "README.md", page_before)


def test_a_card_names_silver_constituents_and_the_run_before(of_a_mixture, tmp_path):
    silver, first = str(tmp_path / "silver"), str(tmp_path / "first")
    code, _, err = lalkit_command("data", "constituents", "--treebank", "ewt", "--model", "en-tiny", "--out", silver)
    assert code == 0, err
    for out, start, treebank in (
        (first, "en-tiny", "sample:constituents*0.2+ewt"),
        (str(tmp_path / "run"), first, f"sample:constituents*0.2+ewt*0.5+{silver}*0.5"),
    ):
        train(override(tiny(), {"train.epochs": 1, "train.start": start}), treebank, out)
    made = ship([tmp_path / "run"], "en-silver")
    facts, text = json.loads((made / "card.json").read_text()), (made / "README.md").read_text()
    assert {row["treebank"] for row in facts["parts"]} == {
        "sample:constituents",
        "ewt",
    }  # scored without the silver part
    assert (facts["licence"], facts["starts"]) == ("CC BY-SA 4.0", ["en-tiny"])
    assert f"lalkit data constituents --treebank ewt --model en-tiny --out {silver}\n" in text
    assert {(row["seed"], row["of"]) for row in facts["by_seed"]} == {(1, "all")} and "Every seed on each part" in text
    config, trained_on = {"train.epochs": 1, "train.start": first, "train.seed": 2}, facts["trained_on"]
    train(override(tiny(), config), trained_on, str(tmp_path / "again"))
    add([tmp_path / "again"], "en-silver")
    more = json.loads((made / "card.json").read_text())["by_seed"]
    assert [row["seed"] for row in more] == [1] * len(facts["by_seed"]) + [2] * len(facts["by_seed"])
    assert [row["treebank"] for row in more] == 2 * [row["treebank"] for row in facts["by_seed"]]
    stages = (
        text.index(f"--out {first}\n"),
        text.index(f"--treebank '{facts['trained_on']}' "),
        text.index("en-silver-S\n"),
    )
    assert list(stages) == sorted(stages) and silver in facts["trained_on"]
    assert all(stated == found for _, stated, found in verify("en-silver"))
    shutil.rmtree(made)


def test_a_check_of_a_mixture_skips_what_is_not_here(of_a_mixture, monkeypatch, tmp_path):
    rows = verify("en-mixed")
    assert {"ewt dev, g: ud_las", "gum dev, news: f1", "sample:constituents test, first 10: exact"} <= {
        row[0] for row in rows
    }
    assert all(stated == found for _, stated, found in rows)
    quick = {what: found for what, _, found in verify("en-mixed", quick=True)}
    assert (
        quick["sample:constituents test, first 10: sentences"] == 10
        and "sample:constituents test, all: f1" not in quick
    )
    assert quick.items() <= {what: found for what, _, found in rows}.items()
    monkeypatch.setenv("LALKIT_DATA", str(tmp_path))
    assert {what.split()[0] for what, *_ in verify("en-mixed")} == {"parses", "sample:constituents"}


def test_a_parser_of_universal_dependencies_writes_valid_files(of_a_mixture):
    results = Parser.load("en-mixed").parse_all(["She reads it (often).", "No!", "It was on the desk, was n't it?"])
    text = "".join(result.with_confidence().to_conllu() for result in results)
    assert violations(text) == [] and results[0].to_dict()["upos"] == results[0].sentence.upos
    assert all(("root" == label) == (head == 0) for r in results for *_, head, label in r.dependencies)


def test_universal_dependencies_are_scored_by_their_conventions_and_beside_another_parser(of_a_mixture):
    arguments = "evaluate", "en-mixed", "--treebank", "gum", "--split", "dev", "--beside", "en-tiny"
    code, out, err = lalkit_command(*arguments, "--json", "-")
    record = json.loads(out)
    assert code == 0 and [row["arcs"] for row in record["universal"]] == [16, 13], err
    assert record["universal"][0]["uas"] == record["uas_all"] and record["out_of_reach"] == 1
    found = record["contradictions"]
    assert (found["beside"], found["joint"]) == ("en-tiny", 0) and f"in {found['separate']} of 3 sentences" in err
    code, out, err = lalkit_command(*arguments[:-1], "nowhere")
    assert code == 2 and "nowhere: no parser here" in err


@pytest.mark.parametrize(
    ("treebank", "others", "licence"),
    [
        ("craft", [], "CC BY 3.0"), ("craft+sample:constituents", [], "CC BY 4.0"),
        ("gum/news+sample:constituents", [], "CC BY-SA 4.0"),
        ("ewt+craft:constituents", ["CC BY 3.0"], "CC BY-SA 4.0"), ("ptb-sample", ["CC BY 3.0"], LICENCES["ptb-sample"]),
        ("ewt+ptb-sample:constituents", [], None), ("runs/folder", [], None),
        ("sample", [LICENCES["sinica"]], LICENCES["sinica"]),
    ],
)  # fmt: skip
def test_the_licence_of_a_mixture(treebank, others, licence):
    assert licence_of(treebank, others) == licence


def test_a_recipe_is_how_a_config_differs_from_a_preset():
    config = override(minilm(), {"train.seed": 3, "train.epochs": 8, "model.label_attention": "none"})
    assert settings(config) == {"preset": "minilm", "train.epochs": 8, "model.label_attention": None}
    facts = {"recipe": settings(config), "treebank": "craft", "name": "c"}
    text = command(facts, 3)
    assert text.split(" \\\n  ") == [
        "lalkit train --treebank craft --preset minilm --seed 3", "--epochs 8", "--set model.label_attention=none",
        "--out runs/c-3",
    ]  # fmt: skip


def test_settings_of_a_part_that_a_control_lacks_are_not_named():
    ours = {
        "preset": "minilm",
        "train.epochs": 8,
        "train.start": "en-craft",
        "model.label_attention.residual_dropout": 0.0,
    }
    theirs = {"preset": "minilm", "train.epochs": 8, "model.label_attention": None}
    found = control_of([Scored({"seed": 2}, theirs, {})], [Scored({"seed": 1}, ours, {})], ours)
    assert found["differs"] == {"model.label_attention": None, "train.start": "as in the preset"}


def test_a_control_is_compared_over_the_seeds_that_both_have(tiny_parser, second, shipped):
    ours, theirs = measure(tiny_parser, "sample"), measure(second, "sample")
    theirs.row["seed"] = 1
    found = control_of([theirs], [ours], ours.recipe)
    assert found["paired"] == 1 and set(found["tests"]) == {"dev", "test"}
    for split, tests in found["tests"].items():
        for score, test in tests.items():
            expected = ours.row[split][score] - theirs.row[split][score]
            assert test["difference"] == pytest.approx(expected, abs=0.02) and 0 < test["p"] <= 1


@pytest.mark.slow
def test_seeds_and_controls_are_added_to_a_card(tiny_parser, second, shipped, tmp_path):
    """The parser stays, byte for byte; what is added is scored as `ship` scores it, and held against the parser itself."""
    path = shipped.parent / "en-more"
    shutil.copytree(shipped, path)
    card = json.loads((path / "card.json").read_text()) | {"name": "en-more", "controls": []}
    (path / "card.json").write_text(json.dumps(card))
    weights = next(path.glob("*.safetensors")).read_bytes()
    other, control = tmp_path / "other", tmp_path / "control"
    train(override(tiny(), {"train.epochs": 2, "train.seed": 5}), "sample", other)
    train(override(tiny(), {"train.epochs": 2, "train.rate": 1e-3}), "sample", control)
    add([other], "en-more", controls=[control])
    facts = json.loads((path / "card.json").read_text())
    assert [row["seed"] for row in facts["seeds"]] == [1, 5] and facts["seed"] == 1
    assert facts["seeds"][1] == measure(other, "sample").row
    assert [(c["differs"], c["paired"]) for c in facts["controls"]] == [({"train.rate": 0.001}, 1)]
    difference = facts["seeds"][0]["test"]["f1"] - facts["controls"][0]["seeds"][0]["test"]["f1"]
    assert facts["controls"][0]["tests"]["test"]["f1"]["difference"] == pytest.approx(difference, abs=0.02)
    assert next(path.glob("*.safetensors")).read_bytes() == weights
    assert (path / "README.md").read_text() == page(facts)
    with pytest.raises(ModelError, match="has seed 5 already"):
        add([other], "en-more")
    with pytest.raises(ModelError, match="has this control already"):
        add([], "en-more", controls=[control])
    with pytest.raises(ModelError, match="differ in their recipe"):
        add([second], "en-more")
    shutil.rmtree(path)


def test_runs_of_different_recipes_are_an_error(tiny_parser, second, shipped):
    with pytest.raises(ModelError, match="differ in their recipe"):
        ship([tiny_parser, second], "both")
    with pytest.raises(ModelError, match="no run to ship"):
        ship([], "none")
    with pytest.raises(ModelError, match=r"two runs have the same seed: \[2, 2\]"):
        ship([second, second], "twice")
    with pytest.raises(ModelError, match="no parser here"):
        ship([second], "wrong-control", controls=[second / "nowhere"])
    assert not {"twice", "wrong-control"} & {*models.names()}


def test_a_treebank_without_a_known_licence_is_an_error(tiny_parser, shipped, tmp_path):
    content = json.loads((tiny_parser / "model.json").read_text())
    content["info"]["treebank"] = "mine"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match="no licence is known for mine\n.*--licence"):
        ship([tmp_path / "run"], "en-mine")
    assert "en-mine" not in models.names()
