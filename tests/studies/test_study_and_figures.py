"""The study of classifiers as a person uses it, and misuses it; and the two figures of the studies."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lalkit.draw.figures import head_grids, word_heat
from lalkit.errors import CorpusError, ModelError, ParameterError
from lalkit.studies import classifiers
from tests.studies.small import write_films


def films(folder, out, **changed):
    given = {"names": [str(folder)], "kinds": ["vanilla", "mlp"], "seeds": [1]} | changed
    settings = {"epochs": "1", "hidden": "8", "embedding": "8"} | given.pop("settings", {})
    return classifiers.study(*given.values(), out, settings=settings)


def test_a_study_of_classifiers_does_nothing_twice(tmp_path, caplog):
    data, out = write_films(tmp_path / "films"), tmp_path / "all"
    runs = classifiers.runs(films(data, out)[0])
    assert {*zip(runs["system"], runs["seed"])} == {("vanilla", 1), ("mlp", 1)}
    assert (runs[["train", "epochs"]] == [10, 1]).all(axis=None)
    kept = {p: p.stat().st_mtime_ns for p in out.rglob("*.*") if p.is_file()}
    films(data, out)
    assert kept == {p: p.stat().st_mtime_ns for p in kept}, "what was finished was done again"
    (data / "test.tsv").write_text("label\ttext\n1\tgood news\n0\tbad news\n")
    caplog.set_level("INFO", "lalkit")
    caplog.clear()
    films(data, out)
    assert "measuring" in caplog.text and "epoch" not in caplog.text
    with pytest.raises(ModelError):
        films(data, out, settings={"hidden": "6"})


@pytest.mark.parametrize(("kind", "changed"), [
    (CorpusError, {"names": ["imdb"]}), (ModelError, {"kinds": ["vanila"]}), (ModelError, {"settings": {"wide": "1"}}),
    (ModelError, {"settings": {"batch": "0"}}), (ParameterError, {"names": ["films", "films"]}),
])  # fmt: skip
def test_what_is_refused(tmp_path, monkeypatch, kind, changed):
    write_films(tmp_path / "films")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind):
        films("films", tmp_path / "a", **changed)
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
