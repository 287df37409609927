"""Read a sweep's file, plan its runs, and show a clear error for each mistake in the file."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from lalkit.config import override, tiny
from lalkit.errors import CorpusError, ParameterError
from lalkit.reproduce.sweep_plan import plan

SHIPPED = sorted((Path(__file__).parents[2] / "notebooks" / "sweeps").glob("*.yml"))


@pytest.fixture
def write(content, tmp_path):
    """The file with some keys changed (None: left out)."""

    def write(**changes):
        path = tmp_path / "a.yml"
        whole = {key: value for key, value in (content | changes).items() if value is not None}
        path.write_text(yaml.safe_dump(whole, sort_keys=False))
        return path

    return write


@pytest.fixture
def without_data(monkeypatch):
    """Plan sweeps without their corpora: no treebank is read, and no code."""
    monkeypatch.setattr("lalkit.reproduce.sweep_plan.data_hash", lambda treebank, tasks: treebank)
    monkeypatch.setattr("lalkit.reproduce.sweep_plan.training_hash", lambda: "code")


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
    assert len(set(first)) == 2 and all(len(key) == 64 for key in first)
    assert [run.key for run in plan(path).runs] == first
    assert [run.folder for run in plan(path).runs] == [f"runs/{key[:12]}" for key in first]
    renamed = {"depth": {"a": {"model.layers": 1}, "b": {"model.layers": 2}}}
    assert [run.key for run in plan(write(grid=renamed)).runs] == first, "names are not what numbers depend on"
    assert not {run.key for run in plan(write(set={"train.epochs": 3})).runs} & set(first)
    copy = tmp_path / "copy"
    copy.mkdir()
    for each in few.iterdir():
        (copy / each.name).write_bytes(each.read_bytes())
    copied = [run.key for run in plan(write(treebank=str(copy))).runs]
    (copy / "test.trees").write_text((few / "dev.trees").read_text())
    changed = [run.key for run in plan(write(treebank=str(copy))).runs]
    assert len({*first, *copied, *changed}) == 6
    monkeypatch.setattr("lalkit.reproduce.sweep_plan.training_hash", lambda: "other")
    assert not {run.key for run in plan(write()).runs} & set(first)


LAYERS = {"layers": {1: {"model.layers": 1}}}


@pytest.mark.parametrize(
    ("changes", "profile", "says"),
    [
        ({"sedes": [1]}, None, r"a.yml: unknown key 'sedes'\n  Did you mean seeds\? Known: name, "),
        ({"question": None}, None, r"a.yml: has no 'question'\n  Wanted: text"),
        ({"name": "a/b"}, None, r"name is 'a/b'\n  Wanted: a word"),
        ({"treebank": 3}, None, r"treebank is 3\n  Wanted: text"),
        ({"preset": "minilmm"}, None, r"a.yml: preset: there is no preset 'minilmm'\n  Presets: tiny, minilm"),
        ({"seeds": []}, None, r"seeds is \[\]\n  Wanted: a list of whole numbers"),
        ({"seeds": [1, "2"]}, None, r"seeds is \[1, '2'\]"),
        ({"seeds": [1, True]}, None, r"seeds is \[1, True\]"),
        ({"seeds": [1, 2, 1]}, None, r"a seed is there twice: \[1, 2, 1\]"),
        (
            {"set": {"train.epoch": 1}},
            None,
            r"a.yml: set: there is no setting 'train.epoch'\n  At this place: .*epochs",
        ),
        ({"set": {"train.epochs": "many"}}, None, r"set: train.epochs must be of type int, not 'many'"),
        ({"set": {"train.clip": "a"}}, None, r"set: train.clip must be of type float"),
        ({"set": {"train.seed": 1}}, None, r"train.seed cannot be set here\n  The seeds of a sweep are its `seeds`"),
        ({"set": {"train.max_minutes": 1}}, None, r"cannot be set here\n  A schedule that follows the clock"),
        ({"grid": {}}, None, r"grid is \{\}\n  Wanted: for every axis"),
        ({"grid": {"layers": {}}}, None, r"a.yml: grid: layers is \{\}"),
        ({"grid": {"split": LAYERS["layers"]}}, None, r"a.yml: grid: no axis can be called split"),
        ({"grid": {"weights": LAYERS["layers"]}}, None, r"a.yml: grid: no axis can be called weights"),
        ({"paper": {"table": "x", "rows": {}}}, None, r"a.yml: .*/x.csv is not there\n  `paper: table` names"),
        ({"paper": {"table": "table3", "rows": {}}}, None, r"a.yml: .*table3.csv has no column 'uas'\n  Correct"),
        ({"paper": {"table": "table5", "rows": {"layers": {"column": 2, "values": {}}}}}, None, r"has no column 2"),
        ({"paper": {"table": "x", "rows": ["a"]}}, None, r"a.yml: paper is .*\n  Wanted: table: a file"),
        ({"grid": {"layers": {1: None}}}, None, r"a.yml: grid: layers: 1: is None\n  Wanted: settings .*\{\}: none"),
        ({"grid": {"layers": {True: {}}}}, None, r"YAML reads this name as True\n  Put it into quotes"),
        ({"grid": {"a": {"b": {"model.heads": 1}}}}, None, r"a.yml: grid: a: b: there is no setting 'model.heads'"),
        ({"grid": {"a": {"b": {}, "c": {"model.layers": 1}}}}, None, r"two cells are one: \(a: b\) and \(a: c\)"),
        ({"grid": {"a": {"b": {"treebank": 3}}}}, None, r"a.yml: grid: a: b: treebank is 3\n  Wanted: text"),
        (
            {"grid": {"a": {"b": {}, "c": {"treebank": "sample"}}}, "treebank": "sample"},
            None,
            r"two cells are one: \(a: b",
        ),
        ({"grid": {**LAYERS, "again": LAYERS["layers"]}}, None, r"grid: again: sets model.layers, as does layers"),
        ({}, "othr", r"there is no profile 'othr'\n  Did you mean other\? Known: other"),
        ({"profiles": {"a": {"name": "b"}}}, None, r"a.yml: profiles.a: unknown key 'name'"),
        ({"profiles": {"a": {"seeds": []}}}, None, r"a.yml: profiles.a: seeds is \[\]"),
        ({"profiles": {"a": {"preset": "x"}}}, "a", r"a.yml: profiles.a.preset: there is no preset 'x'"),
        ({"profiles": {"a": {"set": {"x": 1}}}}, "a", r"a.yml: profiles.a.set: there is no setting 'x'"),
        ({"profiles": {"a": {"grid": {"b": {"c": {"d": 1}}}}}}, "a", r"profiles.a.grid: b: c: there is no setting 'd'"),
    ],
)
def test_the_error_for_a_mistake_names_its_place(write, changes, profile, says):
    with pytest.raises(ParameterError, match=says) as error:
        plan(write(**changes), profile)
    assert "a.yml" in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [", r"a.yml, line 1: is not the YAML of a sweep"),
        ("- 1", r"a.yml: is not keys with values but \[1\]"),
        ("", r"is not keys with values but None"),
        ("name: a\nname: b", r"a.yml, line 2: .*'name' is there twice"),
        ("grid: {a: {1: {}, '1': {}}}", r"'1' is there twice"),
    ],
)
def test_a_file_that_is_not_the_yaml_of_a_sweep_is_an_error(tmp_path, text, says):
    (tmp_path / "a.yml").write_text(text)
    with pytest.raises(ParameterError, match=says):
        plan(tmp_path / "a.yml")
    with pytest.raises(ParameterError, match=r"b.yml: cannot be read \(No such file"):
        plan(tmp_path / "b.yml")


def test_a_missing_treebank_is_an_error(write):
    with pytest.raises(CorpusError, match="there is no treebank 'nowhere'"):
        plan(write(treebank="nowhere"))


def test_the_sweeps_of_the_paper_are_shipped():
    assert [path.stem for path in SHIPPED] == [
        "ablation-1", "ablation-2", "control", "heads", "layers", "objectives", "silver", "trial",
    ]  # fmt: skip


def test_the_cells_of_the_sweep_silver_differ_in_what_they_are_trained_on_and_not_in_how_they_are_scored(without_data):
    path = next(path for path in SHIPPED if path.stem == "silver")
    alone, silver = plan(path).runs[:2]
    assert (alone.config, alone.scored) == (silver.config, silver.scored)
    assert alone.treebank.replace("+ewt+", "+runs/ewt-silver+") == silver.treebank
    assert "ptb" not in alone.treebank and "ptb" in alone.scored
    assert {run.treebank for run in plan(path, "smoke").runs} == {"sample*0.5", "sample"}


def test_a_cell_can_have_a_treebank_of_its_own_to_train_on(write):
    grid = {"data": {"all": {}, "arcs": {"treebank": "sample:dependencies"}}}
    here, other = plan(write(treebank="sample", grid=grid, seeds=[1])).runs
    assert [(run.treebank, run.scored) for run in (here, other)] == [
        ("sample", "sample"),
        ("sample:dependencies", "sample"),
    ]
    assert here.config == other.config and here.key != other.key
    assert here.key == plan(write(treebank="sample", grid={"data": {"all": {}}}, seeds=[1])).runs[0].key
    elsewhere = {"data": {"arcs": {"treebank": "sample:dependencies"}}}
    assert other.key != plan(write(treebank="sample:dependencies", grid=elsewhere, seeds=[1])).runs[0].key, (
        "scored elsewhere"
    )


@pytest.mark.parametrize("profile", ["smoke", "sample", "full"])
@pytest.mark.parametrize("path", [path for path in SHIPPED if path.stem != "silver"], ids=lambda path: path.stem)
def test_a_shipped_sweep_can_be_planned(path, profile, without_data):
    found = plan(path, profile)
    assert found.name == path.stem
    assert len({run.config for run in found.runs}) == len(found.runs)
    first, epochs = (
        found.runs[0],
        {"heads": 8, "objectives": 4, "trial": 8}.get(path.stem, 2),
    )  # the paper's tables: two epochs
    assert (first.treebank, first.config.train.epochs) == {
        "smoke": ("sample", 1), "sample": ("ptb-sample", epochs), "full": ("data/ptb", 200),
    }[profile]  # fmt: skip
    if profile == "sample":
        assert plan(path).runs == found.runs, "the file as it stands"
        assert {run.seed for run in found.runs} == set(range(1, 6 if path.stem == "trial" else 4))
        assert {run.config.model.encoder.freeze_layers for run in found.runs} == {int(path.stem != "objectives")}
    if profile == "full":
        assert {run.config.model.encoder.freeze_layers for run in found.runs} == {0}
        assert {run.config.model.feedforward for run in found.runs} <= {0, 2048, 28672}


@pytest.mark.parametrize("profile", ["sample", "biomedical", "chinese"])
def test_every_system_of_the_sweep_heads_has_at_most_one_layer_of_label_attention(profile, without_data):
    path = next(path for path in SHIPPED if path.stem == "heads")
    kinds = {run.cell["heads"]: run.config.model for run in plan(path, profile).runs}
    assert len(kinds) == {"sample": 8, "biomedical": 3, "chinese": 4}[profile]
    assert not any(model.label_attention and model.span_attention for model in kinds.values())
    assert [name for name, model in kinds.items() if model.label_attention] == ["paper's layer"]
    attention = {m.span_attention.attention for m in kinds.values() if m.span_attention}
    assert attention == {"learned", "none"} | ({"uniform"} if profile == "sample" else set())
    assert {"paper's layer", "span full", "span full, none"} <= set(kinds)
    plain = kinds.get("none, one more layer")
    assert (plain is not None) == (profile == "sample")
    assert plain is None or (plain.span_attention is None and plain.layers == kinds["span full"].layers + 1)


TABLES = Path(__file__).parents[2] / "data" / "paper"


def test_the_best_parser_of_the_paper_has_one_score_in_all_its_tables():
    """Tables 1 to 4 report the same parser: feed-forward, no residual dropout, a query vector, concatenated heads."""
    first = pd.read_csv(TABLES / "table1.csv").set_index(["feedforward", "residual_dropout"]).loc[("yes", "no")]
    second = pd.read_csv(TABLES / "table2.csv").set_index(["query_vector", "concatenation"]).loc[("yes", "yes")]
    assert second.to_dict() == first.to_dict()
    english = [pd.read_csv(TABLES / f"table{n}.csv").query("language == 'English'").iloc[-1] for n in (3, 4)]
    assert (english[0]["f1"], english[1]["uas"], english[1]["las"]) == tuple(first[["f1", "uas", "las"]])


def test_the_tables_have_every_system_of_the_paper():
    counts = {n: pd.read_csv(TABLES / f"table{n}.csv")["language"].value_counts().to_dict() for n in (3, 4)}
    assert counts == {3: {"English": 17, "Chinese": 9}, 4: {"English": 14, "Chinese": 7}}


@pytest.mark.parametrize(
    ("name", "profile", "feedforward", "dropout"),
    [
        ("ablation-2", "longer", True, False), ("ablation-2", "full", True, False),
        ("layers", "longer", True, True), ("layers", "deep", True, True), ("layers", "glorot", True, True),
        ("layers", "full", True, True),
    ],
)  # fmt: skip
def test_the_sweeps_have_the_bases_of_the_papers_tables(name, profile, feedforward, dropout, without_data):
    file = TABLES.parents[1] / "notebooks" / "sweeps" / f"{name}.yml"
    for run in plan(file, profile).runs:
        attention = run.config.model.label_attention
        assert bool(run.config.model.feedforward) == feedforward and bool(attention.residual_dropout) == dropout
