"""Read a sweep's file and plan its runs. A mistake in the file is one error that names the file and the key."""

from pathlib import Path

import pytest
import yaml

from lalkit.config import override, tiny
from lalkit.errors import ParameterError
from lalkit.reproduce.sweep import COLUMNS, plan

SHIPPED = sorted((Path(__file__).parents[2] / "notebooks" / "sweeps").glob("*.yml"))
LAYERS = {"layers": {1: {"model.layers": 1}}}


@pytest.fixture
def write(content, tmp_path):
    """The file with some keys changed (None: left out)."""

    def write(**changes):
        path = tmp_path / "a.yml"
        values = {key: value for key, value in (content | changes).items() if value is not None}
        path.write_text(yaml.safe_dump(values, sort_keys=False))
        return path

    return write


@pytest.fixture
def without_data(monkeypatch):
    """Plan sweeps without their corpora: no treebank is read, and no code."""
    monkeypatch.setattr("lalkit.evaluation.provenance.data_hash", lambda treebank, tasks: treebank)
    monkeypatch.setattr("lalkit.evaluation.provenance.training_hash", lambda: "code")


def test_a_plan_has_every_combination_with_every_seed(write, without_data):
    grid = {
        "dropout": {"none": {"model.dropout": 0.0}, "half": {"model.dropout": 0.5}},
        "label attention": {"yes": {}, "no": {"model.label_attention": None}},
    }
    runs = plan(write(grid=grid, seeds=[3, 1])).runs
    assert [(run.cell["dropout"], run.cell["label attention"], run.seed) for run in runs] == [
        (a, b, seed) for seed in (3, 1) for a in ("none", "half") for b in ("yes", "no")
    ]
    assert runs[0].config == override(tiny(), {"train.epochs": 2, "train.seed": 3, "model.dropout": 0.0})
    assert runs[-1].config.model.label_attention is None and runs[-1].config.model.dropout == 0.5
    assert str(runs[0]) == "dropout: none, label attention: yes, seed 3"


def test_a_profile_replaces_and_adds_settings(write, without_data):
    profiles = {"small": {"treebank": "sample", "seeds": [7], "set": {"train.epochs": 1, "train.rate": "1e-4"}}}
    path = write(set={"train.epochs": 5, "train.clip": 0.5}, profiles=profiles)
    first, second = plan(path, "small").runs
    assert (first.treebank, first.seed, first.cell) == ("sample", 7, {"layers": "1"})
    assert (first.config.train.epochs, first.config.train.rate, first.config.train.clip) == (1, 1e-4, 0.5)
    assert plan(path).runs[0].config.train.epochs == 5
    other = {"one": {"grid": {"layers": {3: {"model.layers": 3}}}}}
    assert [run.cell for run in plan(write(profiles=other), "one").runs] == [{"layers": "3"}]


def test_the_key_of_a_run_depends_on_config_treebank_data_and_code(write, few, monkeypatch, tmp_path):
    path = write()
    first = [run.key for run in plan(path).runs]
    assert len(set(first)) == 2 and first == [run.key for run in plan(path).runs]
    renamed = {"depth": {"a": {"model.layers": 1}, "b": {"model.layers": 2}}}
    assert [run.key for run in plan(write(grid=renamed)).runs] == first, "names change no numbers"
    assert not {run.key for run in plan(write(set={"train.epochs": 3})).runs} & set(first)
    copy = tmp_path / "copy"
    copy.mkdir()
    for each in few.iterdir():
        (copy / each.name).write_bytes(each.read_bytes())
    copied = [run.key for run in plan(write(treebank=str(copy))).runs]
    (copy / "test.trees").write_text((few / "dev.trees").read_text())
    changed = [run.key for run in plan(write(treebank=str(copy))).runs]
    assert len({*first, *copied, *changed}) == 6
    monkeypatch.setattr("lalkit.evaluation.provenance.training_hash", lambda: "other")
    assert not {run.key for run in plan(write()).runs} & set(first)


MISTAKES = [  # changes of the file, its profile, the place that the error names
    ({"sedes": [1]}, None, "sedes"),
    ({"question": None}, None, "question"),
    ({"name": "a/b"}, None, "name"),
    ({"preset": "minilmm"}, None, "preset: there is no preset 'minilmm'"),
    ({"seeds": []}, None, "seeds"),
    ({"seeds": [1, "2"]}, None, "seeds.1"),
    ({"seeds": [1, 2, 1]}, None, r"twice: \[1, 2, 1\]"),
    ({"set": {"train.epoch": 1}}, None, "set: there is no setting 'train.epoch'"),
    ({"set": {"train.epochs": "many"}}, None, "set: train.epochs"),
    ({"set": {"train.seed": 1}}, None, "train.seed cannot be set here"),
    ({"grid": {}}, None, "grid"),
    ({"grid": {"layers": {}}}, None, "grid.layers"),
    ({"grid": {"layers": {1: None}}}, None, "grid.layers"),
    ({"grid": {"layers": {True: {}}}}, None, "grid.layers"),
    ({"grid": {"a": {"b": {"model.heads": 1}}}}, None, "grid: a: b: there is no setting 'model.heads'"),
    ({"grid": {"a": {"b": {}, "c": {"model.layers": 1}}}}, None, r"two cells are one: \(a: b\) and \(a: c\)"),
    ({"grid": {**LAYERS, "again": LAYERS["layers"]}}, None, "both layers and again set model.layers"),
    ({"paper": {"table": "x", "rows": ["a"]}}, None, "paper.rows"),
    ({"claims": [{"says": "a", "same": {"layers": 1}, "as": {"layers": 2}, "by": "f1"}]}, None, "claims.0"),
    ({}, "othr", r"there is no profile 'othr'\n  Did you mean other\? Known: other"),
    ({"profiles": {"a": {"name": "b"}}}, None, "profiles.a.name"),
    ({"profiles": {"a": {"grid": {"b": {"c": {"d": 1}}}}}}, "a", "grid: b: c: there is no setting 'd'"),
    *(({"grid": {name: LAYERS["layers"]}}, None, f"called {name}") for name in COLUMNS),
]


@pytest.mark.parametrize(("changes", "profile", "place"), MISTAKES)
def test_the_error_for_a_mistake_names_its_place(write, changes, profile, place):
    with pytest.raises(ParameterError, match=place) as error:
        plan(write(**changes), profile)
    assert "a.yml" in str(error.value) or profile == "othr"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [", "line 1"),
        ("", "a.yml"),
        ("name: a\nname: b", "(?s)'name' is there twice.*line 2"),
        ("grid: {a: {1: {}, '1': {}}}", "'1' is there twice"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_not_the_yaml_of_a_sweep_is_an_error(tmp_path, text, says):
    if text is not None:
        (tmp_path / "a.yml").write_text(text)
    with pytest.raises(ParameterError, match=says):
        plan(tmp_path / "a.yml")


def test_a_cell_can_have_a_treebank_of_its_own_to_train_on(write):
    grid = {"data": {"all": {}, "arcs": {"treebank": "sample:dependencies"}}}
    here, other = plan(write(treebank="sample", grid=grid, seeds=[1])).runs
    assert (here.treebank, other.treebank) == ("sample", "sample:dependencies")
    assert here.scored == other.scored == "sample"
    assert here.config == other.config and here.key != other.key
    assert here.key == plan(write(treebank="sample", grid={"data": {"all": {}}}, seeds=[1])).runs[0].key
    scored = write(
        treebank="sample:dependencies", grid={"data": {"arcs": {"treebank": "sample:dependencies"}}}, seeds=[1]
    )
    assert other.key != plan(scored).runs[0].key, "scored elsewhere"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_sweep_can_be_planned_in_every_profile(path, without_data):
    content = yaml.safe_load(path.read_text())
    for profile in (None, *content["profiles"]):
        found = plan(path, profile)
        assert found.name == path.stem
        assert len({(run.config, run.treebank) for run in found.runs}) == len(found.runs)
        assert {run.scored for run in found.runs} == {
            content["profiles"].get(profile, {}).get("treebank", content["treebank"])
        }
        first = found.runs[0].config
        if profile == "smoke":
            assert (found.runs[0].scored, first.train.epochs) == ("sample", 1)
        if profile == "full":
            assert (first.train.epochs, first.model.encoder.freeze_layers) == (200, 0)
