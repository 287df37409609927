"""`lalkit study` as a person uses it, and misuses it; and the two figures of the studies."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lalkit.cli import app
from lalkit.errors import CorpusError, ModelError, ParameterError
from lalkit.studies.figures import head_grids, word_heat
from lalkit.studies.texts import news
from tests.studies.small import write_articles, write_films


def call(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_study_transparent(tmp_path):
    data, out = write_films(tmp_path / "films"), tmp_path / "all"
    given = ["transparent", "--data", data, "--out", out, "--models", "vanilla,mlp", "--seeds", "1,"]
    given += ["--epochs", 1, "--set", "hidden=8", "--set", "embedding=8"]
    done = call(*given)
    assert done.exit_code == 0, done.output
    runs = pd.read_csv(out / "transparent.csv")
    assert {*zip(runs["system"], runs["seed"])} == {("vanilla", 1), ("mlp", 1)}
    assert (out / "transparent-quantiles.csv").exists() and (runs[["train", "epochs"]] == [10, 1]).all(axis=None)
    kept = {p: p.stat().st_mtime_ns for p in (out / "films").rglob("*.*") if p.is_file()}
    assert call(*given).exit_code == 0
    assert kept == {p: p.stat().st_mtime_ns for p in kept}, "what was finished was done again"
    (data / "test.tsv").write_text("label\ttext\n1\tgood news\n0\tbad news\n")
    again = call(*given)
    assert again.exit_code == 0 and "measuring" in again.output and "epoch" not in again.output
    assert isinstance(call(*given, "--set", "hidden=6").exception, ModelError)


@pytest.mark.slow
def test_study_summarize_of_a_folder(tmp_path, monkeypatch):
    tagger = type("Tagger", (), {"tag": lambda self, words: [(word, "NN") for word in words]})
    monkeypatch.setattr("nltk.tag.PerceptronTagger", tagger)
    data, out = write_articles(tmp_path / "own", news(30, 8, 8)), tmp_path / "study"
    given = ["--data", data, "--out", out, "--variants", "soft,sparse-ch", "--seeds", 1, "--ablated", 2, "--test", 3]
    done = call("summarize", *given, "--set", "d_model=16", "--set", "heads=2", "--epochs", 1)
    assert done.exit_code == 0, done.output
    names = {"runs", "heads", "tags", "ablation", "documents"}
    assert {file.stem for file in out.glob("*.csv")} == {f"summarize-{name}" for name in names}
    assert len(pd.read_csv(out / "summarize-heads.csv")) == 2 * 8


@pytest.mark.parametrize(("kind", "changed"), [
    (CorpusError, {"--data": "imdb"}), (ModelError, {"--models": "vanila"}), (ModelError, {"--set": "wide=1"}),
    (ModelError, {"--set": "batch=0"}), (ParameterError, {"--seeds": "one"}), (ParameterError, {"--data": "films,films"}),
])  # fmt: skip
def test_what_is_refused(tmp_path, monkeypatch, kind, changed):
    write_films(tmp_path / "films")
    monkeypatch.chdir(tmp_path)
    given = {"--data": "films", "--out": tmp_path / "a", "--epochs": 1} | changed
    assert isinstance(call("transparent", *(word for pair in given.items() for word in pair)).exception, kind)
    assert not (tmp_path / "a").exists()


@pytest.fixture
def closed():
    yield
    plt.close("all")


@pytest.mark.usefixtures("closed")
def test_words_have_shades_by_weight():
    axis = word_heat([("vanilla", ["a", "b"], [0.9, 0.1]), ("other", ["a"], [1.0])]).axes[0]
    assert [t.get_text() for t in axis.texts] == ["a", "b", "a", ""]
    shades = axis.collections[0].get_facecolors()[:, :3].sum(1)
    assert shades[3] > shades[1] > shades[0] > shades[2]
    assert word_heat([("nothing", ["a"], [0.0])]).axes[0].texts[0].get_text() == "a"


@pytest.mark.usefixtures("closed")
def test_a_grid_has_a_square_for_each_head():
    table = pd.DataFrame([
        {"panel": panel, "head": f"{block}.{h}", "pos_kl": scale * (i + h / 10), "ne_ratio": 0.1, "position": 0.5,
         "difference": -10.0 * h + 5, "p_holm": 0.01 if h else 0.9, "cut": (block, h) == ("cross.0", 1)}
        for panel, scale in (("one", 1.0), ("two", 2.0)) for i, block in enumerate(("enc.0", "cross.0")) for h in range(2)
    ])  # fmt: skip
    panels = head_grids(table).axes[:8]
    first, last = panels[0], panels[3]
    assert first.get_title() == "POS-KL (nats)" and first.get_ylabel() == "one" and panels[4].get_ylabel() == "two"
    assert np.allclose(first.collections[0].get_array().filled(np.nan), [[0.0, 0.1], [1.0, np.nan]], equal_nan=True)
    texts = [[t.get_text() for t in axis.texts] for axis in (first, last)]
    # A cross: cut; a star: significant.
    assert texts == [["0.00", "0.10", "1.00", "×"], ["-5.00", "5.00*", "-5.00", "×"]]
    limits = [panels[i].collections[0].get_clim() for i in (0, 4)]
    assert limits[0] == limits[1] == (0.0, 2.0), "one scale for a panel's rows"
