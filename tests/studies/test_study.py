"""The study of classifiers as a person uses it, and misuses it."""

import pytest

import lalkit
from lalkit.errors import CorpusError, ModelError, ParameterError
from tests.studies.small import write_films


def films(folder, out, **changed):
    given = {"data": [str(folder)], "kinds": ["vanilla", "mlp"], "seeds": [1]} | changed
    settings = {"epochs": "1", "hidden": "8", "embedding": "8"} | given.pop("settings", {})
    return lalkit.study("classifiers", *given.values(), out, settings=settings)


def test_a_study_of_classifiers_does_nothing_twice(tmp_path, caplog):
    data, out = write_films(tmp_path / "films"), tmp_path / "all"
    found = films(data, out)
    runs, words = found["runs"], found["words"]
    assert {*words["system"]} == {"vanilla", "mlp"} and words.groupby("system")[
        "attention"
    ].sum().to_numpy() == pytest.approx(1)
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
    (CorpusError, {"data": ["imdb"]}), (ModelError, {"kinds": ["vanila"]}), (ModelError, {"settings": {"wide": "1"}}),
    (ModelError, {"settings": {"batch": "0"}}), (ParameterError, {"data": ["films", "films"]}),
])  # fmt: skip
def test_what_is_refused(tmp_path, monkeypatch, kind, changed):
    write_films(tmp_path / "films")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind):
        films("films", tmp_path / "a", **changed)
    assert not (tmp_path / "a").exists()
    with pytest.raises(ParameterError, match="no study 'parsers'"):
        lalkit.study("parsers", [], [], [], tmp_path / "a")
