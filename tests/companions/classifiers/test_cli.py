"""`lalkit transparent` as a person uses it, and misuses it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from lalkit.cli import app
from lalkit.companions.classifiers import babi
from lalkit.companions.classifiers.classifier import usual
from lalkit.config import to_dict
from lalkit.errors import CorpusError, LalkitError, ModelError, ParameterError


def call(*arguments):
    return CliRunner().invoke(app, ["transparent", *map(str, arguments)])


def make_folder(folder):
    """Ten short texts of two classes in each part."""
    folder.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        rows = [f"{label}\t{part} {word} {i} film" for i in range(5) for label, word in (("1", "good"), ("0", "bad"))]
        (folder / f"{part}.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
    return folder


def test_train_probe_and_study(tmp_path):
    data = make_folder(tmp_path / "films")
    settings = ["--set", "hidden=8", "--set", "embedding=8", "--epochs", 2, "--set", "sentinels=true"]
    settings += ["--set", "balanced=true", "--set", "choose_by=roc_auc"]
    done = call("train", "--data", data, "--out", tmp_path / "run", "--model", "orthogonal", *settings)
    assert done.exit_code == 0, done.output
    done = call("probe", tmp_path / "run", "--data", data, "--out", tmp_path / "t.csv", "--test", 4)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "t.csv")
    assert set(table["system"]) == {"orthogonal"} and table["example"].max() == 3
    assert "erased" in done.output and "conicity" in done.output

    other = ["train", "--data", data, "--out", tmp_path / "other", "--epochs", 2]
    assert call(*other, "--set", "hidden=8", "--set", "embedding=8").exit_code == 0
    done = call("ask", tmp_path / "run", tmp_path / "other", "--data", data, "--out", tmp_path / "people", "--texts", 1)
    assert done.exit_code == 0, done.output
    key, judges = tmp_path / "people" / "preference_key.csv", [tmp_path / f"{name}.csv" for name in ("anna", "ben")]
    for file in judges:
        file.write_text("item,criterion,choice\n1,overall,left\n")
    done = call("answers", key, *judges, "--out", tmp_path / "counted.csv")
    assert done.exit_code == 0, done.output
    counted = pd.read_csv(tmp_path / "counted.csv").set_index("criterion")
    assert counted.loc["overall", [pd.read_csv(key)["left"][0], "answers"]].tolist() == [100, 2]

    given = ["study", "--data", data, "--out", tmp_path / "all"]
    given += ["--models", "vanilla,mlp", "--seeds", "1,2,", "--epochs", 1]
    done = call(*given)
    assert done.exit_code == 0, done.output
    first = (tmp_path / "all" / "summary.csv").read_text()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "all" / "films").rglob("*.*") if p.is_file()}
    assert call(*given).exit_code == 0 and (tmp_path / "all" / "summary.csv").read_text() == first
    assert kept == {p: p.stat().st_mtime_ns for p in kept}, "what was finished was done again"
    summary = pd.read_csv(tmp_path / "all" / "summary.csv")
    assert set(zip(summary["system"], summary["seed"])) == {("vanilla", 1), ("vanilla", 2), ("mlp", 1), ("mlp", 2)}
    assert (summary["n"] + summary["n_nan"]).max() == 10
    runs = pd.read_csv(tmp_path / "all" / "transparent-runs.csv")
    means = summary[summary["measure"] == "erased"].set_index(["system", "seed"])["mean"]
    assert runs.set_index(["system", "seed"])["erased"].to_dict() == means.to_dict() and len(runs) == 4

    (data / "test.tsv").write_text("label\ttext\n1\tgood news\n0\tbad news\n")
    again = call(*given)
    assert again.exit_code == 0 and "measuring" in again.output and "epoch" not in again.output
    assert pd.read_csv(tmp_path / "all" / "summary.csv")["n"].max() == 2
    error = call(*given, "--train", 6).exception
    assert isinstance(error, ModelError) and "is of other data than this 'films'" in str(error)


def test_babis_own_files_have_the_settings_of_their_task(tmp_path):
    for part, seed in (("train", 0), ("test", 1)):
        lines = babi.stories(1, 60, np.random.default_rng(seed))
        (tmp_path / f"qa1_x_{part}.txt").write_text("\n".join(lines))
    command = ["--data", tmp_path, "--epochs", 1]
    assert call("train", *command, "--out", tmp_path / "run").exit_code == 0
    assert call("study", *command, "--models", "vanilla", "--seeds", 1, "--out", tmp_path / "all").exit_code == 0
    for run in ("run", "all/babi-1/vanilla-1"):
        config = json.loads((tmp_path / run / "config.json").read_text())["config"]
        assert config == to_dict(replace(usual("babi-1"), epochs=1))


def test_what_is_refused_says_why(tmp_path):
    data = make_folder(tmp_path / "films")
    for kind, words, given in (
        (CorpusError, "there are no data 'imdb'", ["train", "--data", "imdb", "--out", tmp_path / "a"]),
        (ModelError, "model is 'vanila'", ["train", "--data", data, "--out", tmp_path / "a", "--model", "vanila"]),
        (ModelError, "no setting 'wide'", ["train", "--data", data, "--out", tmp_path / "a", "--set", "wide=1"]),
        (ModelError, "batch is 0", ["train", "--data", data, "--out", tmp_path / "a", "--set", "batch=0"]),
        (ModelError, "no classifier here", ["probe", tmp_path, "--data", data]),
        (ParameterError, "between commas", ["study", "--data", data, "--out", tmp_path / "a", "--seeds", "one"]),
        (ParameterError, "between commas", ["study", "--data", data, "--out", tmp_path / "a", "--seeds", "²"]),
        (ParameterError, "two data sets are named 'films'",
         ["study", "--data", f"{data},{make_folder(tmp_path / 'b' / 'films')}", "--out", tmp_path / "a"]),
        (ModelError, "no classifier 'cnn'", ["study", "--data", data, "--out", tmp_path / "a", "--models", "cnn"]),
    ):  # fmt: skip
        error = call(*given).exception
        assert isinstance(error, LalkitError) and type(error) is kind and words in str(error)
    assert call("study", "--data", data, "--out", tmp_path / "a", "--train", "-1").exit_code == 2
    assert not (tmp_path / "a").exists()  # `lalkit.cli.main` makes one line and exit code 2 of each, see test_cli.py
