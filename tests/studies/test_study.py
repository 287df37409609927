"""The study of classifiers as a person uses it, and misuses it."""

from dataclasses import replace

import pytest

import lalkit
from lalkit.errors import CorpusError, ModelError, ParameterError
from lalkit.studies import classifiers
from lalkit.studies.texts import Text, load
from tests.studies.small import films


@pytest.fixture
def study(monkeypatch):
    """Carry out a study on `films`, or on what replaces them."""
    data = {"films": films()}
    monkeypatch.setattr(classifiers, "load", lambda name: data[name] if name in data else load(name))

    def carry_out(out, films=None, **changed):
        data.update(films=films or data["films"])
        given = {"data": ["films"], "kinds": ["vanilla", "mlp"], "seeds": [1]} | changed
        settings = {"epochs": "1", "hidden": "8", "embedding": "8"} | given.pop("settings", {})
        return lalkit.study("classifiers", *given.values(), out, settings=settings)

    return carry_out


def test_a_study_of_classifiers_does_nothing_twice(study, tmp_path, caplog):
    out = tmp_path / "all"
    found = study(out)
    runs, words = found["runs"], found["words"]
    shares = words.groupby("system")["attention"].sum()
    assert {*shares.index} == {"vanilla", "mlp"} and shares.to_numpy() == pytest.approx(1)
    assert {*zip(runs["system"], runs["seed"])} == {("vanilla", 1), ("mlp", 1)}
    assert (runs[["train", "epochs"]] == [10, 1]).all(axis=None)
    kept = {p: p.stat().st_mtime_ns for p in out.rglob("*.*") if p.is_file()}
    study(out, data=["films", "films"])
    assert kept == {p: p.stat().st_mtime_ns for p in kept}, "what was finished was done again"
    news = replace(films(), test=(Text(("good", "news"), "1"), Text(("bad", "news"), "0")))
    caplog.set_level("INFO", "lalkit")
    caplog.clear()
    study(out, news)
    assert "measuring" in caplog.text and "epoch" not in caplog.text
    pytest.raises(ModelError, study, out, news, settings={"hidden": "6"})


@pytest.mark.parametrize(("kind", "changed"), [
    (CorpusError, {"data": ["imdb"]}), (ModelError, {"kinds": ["vanila"]}), (ModelError, {"settings": {"wide": "1"}}),
    (ModelError, {"settings": {"batch": "0"}}),
])  # fmt: skip
def test_what_is_refused(study, tmp_path, kind, changed):
    pytest.raises(kind, study, tmp_path / "a", **changed)
    assert not (tmp_path / "a").exists()
    with pytest.raises(ParameterError, match="no study 'parsers'"):
        lalkit.study("parsers", [], [], [], tmp_path / "a")
