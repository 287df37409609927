"""Documents by name; files of one's own; and the commands over them."""

import json
from dataclasses import replace

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from lalkit.cli import app
from lalkit.companions.summarizers.documents import Dataset, annotated, load, news, save
from lalkit.companions.summarizers.pruning import PruneConfig, prune
from lalkit.companions.summarizers.summarizer import PAPER, Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.summarizers.summarizer_training import estimate
from lalkit.errors import CorpusError, ModelError
from tests.command import lalkit


def call(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def write(folder, name, rows):
    (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    found = news(30, 8, 8)
    for name, part in (("train", found.train), ("validation", found.dev), ("test", found.test)):
        write(
            folder, name, [{"article": " ".join(d.words), "highlights": " ".join(d.summary), "id": d.id} for d in part]
        )
    return folder


def test_a_folder_of_ones_own(own):
    found = load(str(own))
    assert (len(found.train), len(found.dev), len(found.test)) == (30, 8, 8)
    assert found.test[0].summary and found.test[0].id == "news-0-38"


def test_documents_that_are_saved_can_be_loaded(tmp_path):
    few = news(2, 1, 1)
    save(few, tmp_path)
    assert load(str(tmp_path)) == replace(few, name=tmp_path.name)


def test_what_is_wrong_is_named(own, tmp_path):
    with pytest.raises(CorpusError, match="no documents 'nothing'"):
        load("nothing")
    with pytest.raises(CorpusError, match=r"has no part train\n +It needs a file train, with"):
        load(str(tmp_path))
    write(own, "dev", [{"article": "a"}])
    with pytest.raises(CorpusError, match="dev.jsonl, line 1.*no article with highlights"):
        load(str(own))
    (own / "dev.jsonl").write_text("{")
    with pytest.raises(CorpusError, match="line 1: is no JSON"):
        load(str(own))


@pytest.mark.parametrize(("given", "says"), [
    (["heads=3"], "64 units cannot be shared by 3 heads"), (["layers=0"], "layers is 0"), (["batch=0"], "batch is 0"),
    (["heads=0"], "heads is 0"), (["d_model=0"], "d_model is 0"),
])  # fmt: skip
def test_settings_of_no_summarizer_are_refused_before_training(own, tmp_path, given, says):
    chosen = [word for setting in given for word in ("--set", setting)]
    error = call("summarize", "train", "--data", own, "--out", tmp_path / "run", *chosen).exception
    assert isinstance(error, ModelError) and says in str(error) and not (tmp_path / "run").exists()


def test_settings_that_fit_together_can_be_given_one_by_one(own, tmp_path):
    size = ["--set", "heads=3", "--set", "d_model=6", "--set", "d_ff=8", "--set", "layers=1"]
    done = call("summarize", "train", "--data", own, "--out", tmp_path / "run", "--epochs", 1, *size)
    assert done.exit_code == 0, done.output


def test_documents_to_measure_are_not_trained_on(own, tmp_path, monkeypatch):
    few = Dataset("gum", (), (), load(str(own)).test)
    monkeypatch.setattr("lalkit.companions.summarizers.documents.load", lambda name: few)
    command = ["--data", "gum", "--out", tmp_path / "run"]
    error = call("summarize", "train", *command).exception
    assert isinstance(error, CorpusError) and "gum: has no train part" in str(error)
    torch.manual_seed(0)
    config = SummarizerConfig(layers=1, heads=1, d_model=4, d_ff=4)
    model = Summarizer(config, Vocabulary.build(few.test, config))
    with pytest.raises(CorpusError, match="own: has no dev part"):
        prune(model, Dataset("own", few.test, (), few.test), tmp_path / "run", PruneConfig())
    assert not (tmp_path / "run").exists()


class Tagger:
    """Stands in for NLTK's, which not every machine has."""

    def tag(self, words):
        return [(word, "." if word == "." else "NNP" if word[0].isupper() else "VBD") for word in words]


@pytest.fixture
def tagger(monkeypatch):
    monkeypatch.setattr("nltk.tag.PerceptronTagger", Tagger)


@pytest.mark.usefixtures("tagger")
def test_tags_and_names_of_ones_own_stay_and_others_are_found(own):
    article = {"article": "Ada met Ben . She left .", "highlights": "Ada left", "tags": list("NVN.NV."), "id": "one"}
    write(own, "test", [article | {"entities": [1, 0, 0, 0, 0, 0, 0]}, article | {"tags": None, "id": "two"}])
    known, bare = annotated(load(str(own)).test)
    assert "".join(known.tags) == "NVN.NV." and known.entities == (1, 0, 0, 0, 0, 0, 0)
    assert bare.tags == ("NOUN", "VERB", "NOUN", ".", "NOUN", "VERB", ".")
    assert bare.entities == (False, False, True, False, False, False, False), "a capital begins every sentence"
    write(own, "test", [article | {"tags": ["N"]}])
    with pytest.raises(CorpusError, match="1 tags for 7 words"):
        load(str(own))
    wrong = [{"tags": 5}, {"tags": [1] * 7}, {"tags": "NVN.NV."}, {"entities": ["no"] * 7}, {"entities": {"0": 1}}]
    for known in wrong:
        write(own, "test", [article | known])
        with pytest.raises(CorpusError, match="(?s)test.jsonl, line 1: has tags that cannot be read.*or leave them"):
            load(str(own))


@pytest.mark.slow
@pytest.mark.usefixtures("tagger")
def test_a_study_of_a_folder_says_where_its_tags_come_from(own, tmp_path):
    size = ["--set", "d_model=16", "--set", "d_ff=32", "--set", "heads=2", "--epochs", 1, "--prune-epochs", 1]
    given = [
        "--data",
        own,
        "--out",
        tmp_path / "study",
        "--variants",
        "soft",
        "--seeds",
        1,
        "--ablated",
        2,
        "--test",
        3,
    ]
    done = call("summarize", "study", *given, *size, "--gum", -1)
    assert done.exit_code == 0, done.output
    heads = pd.read_csv(tmp_path / "study" / "summarize-heads.csv")
    assert set(heads["panel"]) == {"soft, seed 1, tags: NLTK's, names: capitals"} and len(heads) == 8
    assert heads[["pos_kl", "position", "difference"]].notna().all().all()
    other = call("summarize", "study", *given, *size, "--gum", -1, "--set", "d_ff=64").exception
    assert isinstance(other, ModelError) and "was started with another config" in str(other)


def test_a_dry_run_says_what_the_paper_needs_and_trains_nothing(own, tmp_path):
    few = ["--data", own, "--set", "layers=1", "--set", "d_model=64", "--set", "d_ff=8"]
    done = call("summarize", "study", "--paper", "--dry-run", *few, "--variants", "soft")
    lines = {line.split()[0]: line for line in done.output.splitlines()}
    found = load(str(own))
    config = replace(PAPER, layers=1, d_model=64, d_ff=8)
    count = sum(p.numel() for p in Summarizer(config, Vocabulary.build(found.train, config)).parameters())
    assert f"{count / 1e6:.1f} M, of which" in lines["weights"] and "2 such trainings" in lines["the"], done.output
    assert "1 steps" in lines["an"] and "for weights, gradients and moments" in lines["memory"]
    assert "a study needs --out" in str(
        call("summarize", "study", "--dry-run", *few, "--out", tmp_path / "s").exception
    )
    parts = [estimate(replace(config, dropout=0.0), found, most) for most in (2, 30)]
    assert parts[0].activations == pytest.approx(parts[1].activations, rel=0.2), "memory grows with the documents"


@pytest.mark.slow
@pytest.mark.usefixtures("tagger")
def test_train_score_measure_take_away_and_prune(own, tmp_path):
    run, size = tmp_path / "run", ["--set", "d_model=16", "--set", "d_ff=32", "--set", "layers=1", "--set", "heads=2"]
    code, _, err = lalkit("summarize", "train", "--data", own, "--out", run, "--epochs", "1", *size)
    assert code == 0 and "epoch 1/1" in err
    code, out, err = lalkit("summarize", "score", run, "--data", own, "--show", "1", "--out", tmp_path / "s.csv")
    assert code == 0 and "rouge1" in out and out.count("true:") == 1, err
    table = pd.read_csv(tmp_path / "s.csv").set_index("summary")
    assert list(table.index) == ["summarizer", "first 1", "first 3"] and table.loc["first 1", "rouge1"] > 0.1
    code, out, err = lalkit("summarize", "heads", run, "--data", own, "--ablate", "--test", "4")
    assert code == 0 and "enc.0.1" in out and "p_holm" in out, err
    code, out, err = lalkit(
        "summarize", "prune", run, "--data", own, "--out", tmp_path / "p", "--lambda", "1", "--epochs", "1"
    )
    assert code == 0 and "cross.0.0" in out, err
    code, out, err = lalkit("summarize", "heads", run, "--data", own)
    assert code == 0 and "pos_kl" in out, err
    code, out, err = lalkit("summarize", "score", tmp_path, "--data", own)
    assert code == 2 and "no summarizer here" in err
