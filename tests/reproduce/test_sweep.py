"""Plan a sweep and carry it out: its files, no run twice, how it goes on after a failure, and one error for each mistake."""

import json
import shutil
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import yaml

from lalkit.config import override, tiny
from lalkit.errors import LalkitError, ParameterError
from lalkit.evaluation.scores import COLUMNS
from lalkit.reproduce import sweep as sweeps
from lalkit.reproduce.sweep import plan, read_result, sweep
from lalkit.training.loop import train
from tests.command import lalkit

SHIPPED = sorted((Path(__file__).parents[2] / "notebooks" / "sweeps").glob("*.yml"))


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


# ---------------------------------------------------------------- plans


def test_a_plan_has_every_combination_with_every_seed(write, without_data):
    grid = {
        "dropout": {"none": {"model.dropout": 0.0}, "half": {"model.dropout": 0.5}},
        "label attention": {"yes": {}, "no": {"model.label_attention": None}},
    }
    runs = plan(write(grid=grid, seeds=[3, 1])).runs
    found = [(run.seed, run.cell["dropout"], run.cell["label attention"]) for run in runs]
    assert found == [*product((3, 1), ("none", "half"), ("yes", "no"))]
    assert runs[0].config == override(tiny(), {"train.epochs": 2, "train.seed": 3, "model.dropout": 0.0})
    assert runs[-1].config.model.label_attention is None and runs[-1].config.model.dropout == 0.5


def test_a_profile_replaces_and_adds_settings(write, without_data):
    profiles = {
        "small": {"treebank": "sample", "seeds": [7], "set": {"train.epochs": 1, "train.rate": "1e-4"}},
        "one": {"grid": {"layers": {3: {"model.layers": 3}}}},
    }
    path = write(set={"train.epochs": 5, "train.average": 0.5}, profiles=profiles)
    first, second = plan(path, "small").runs
    assert (first.treebank, first.seed, first.cell) == ("sample", 7, {"layers": "1"})
    assert (first.config.train.epochs, first.config.train.rate, first.config.train.average) == (1, 1e-4, 0.5)
    assert plan(path).runs[0].config.train.epochs == 5
    assert [run.cell for run in plan(path, "one").runs] == [{"layers": "3"}]


def test_the_key_of_a_run_depends_on_config_treebank_data_and_code(write, few, monkeypatch, tmp_path):
    first = [run.key for run in plan(write()).runs]
    assert len(set(first)) == 2 and first == [run.key for run in plan(write()).runs]
    renamed = {"depth": {"a": {"model.layers": 1}, "b": {"model.layers": 2}}}
    assert [run.key for run in plan(write(grid=renamed)).runs] == first, "names change no numbers"
    longer = [run.key for run in plan(write(set={"train.epochs": 3})).runs]
    copy = shutil.copytree(few, tmp_path / "copy")
    copied = [run.key for run in plan(write(treebank=str(copy))).runs]
    (copy / "test.trees").write_text((few / "dev.trees").read_text())
    changed = [run.key for run in plan(write(treebank=str(copy))).runs]
    monkeypatch.setattr("lalkit.evaluation.provenance.training_hash", lambda: "other")
    assert len({*first, *longer, *copied, *changed, *(run.key for run in plan(write()).runs)}) == 10


def test_a_cell_can_have_a_treebank_of_its_own_to_train_on(write):
    grid = {"data": {"all": {}, "arcs": {"treebank": "sample:dependencies"}}}
    here, other = plan(write(treebank="sample", grid=grid, seeds=[1])).runs
    assert (here.treebank, other.treebank) == ("sample", "sample:dependencies")
    assert here.scored == other.scored == "sample" and here.config == other.config and here.key != other.key
    arcs = {"data": {"arcs": {"treebank": "sample:dependencies"}}}
    (elsewhere,) = plan(write(treebank="sample:dependencies", grid=arcs, seeds=[1])).runs
    assert other.key != elsewhere.key, "scored elsewhere"


MISTAKES = [  # changes of the file, its profile, and what the error names beside the file
    ({"sedes": [1]}, None, "sedes"), ({"question": None}, None, "question"), ({"name": "a/b"}, None, "name"),
    ({"preset": "minilmm"}, None, "minilmm"), ({"seeds": []}, None, "seeds"), ({"seeds": [1, "2"]}, None, "seeds.1"),
    ({"seeds": [1, -1]}, None, "seeds.1"), ({"profiles": {"../x": {}}}, "../x", "profiles"), ({"treebank": "x"}, None, "'x'"),
    ({"seeds": [1, 2, 1]}, None, "a seed is there twice"), ({"set": {"train.epoch": 1}}, None, "set: .*'train.epoch'"),
    ({"set": {"train.epochs": "many"}}, None, "set: train.epochs"), ({"set": {"train.seed": 1}}, None, "train.seed"),
    ({"set": {"train": {"epochs": 1}}}, None, "train cannot be set here"),
    ({"grid": {}}, None, "grid"), ({"grid": {"layers": {}}}, None, "grid.layers"),
    ({"grid": {"layers": {1: None}}}, None, "grid.layers"), ({"grid": {"layers": {True: {}}}}, None, "grid.layers"),
    ({"grid": {"a": {"b": {"model.heads": 1}}}}, None, "grid: a: b: .*'model.heads'"),
    ({"grid": {"a": {"b": {}, "c": {"model.layers": 1}}}}, None, "two cells"),
    *(({"grid": {"a": {name: {}}}}, None, "grid.a") for name in ("../../x", "", "x" * 300, ".", "a\n")),
    ({"grid": {"../x": {"b": {}}}}, None, "grid"), ({"seeds": [*range(2_000)]}, None, "the number of runs is 4000"),
    ({"grid": {str(k): {n: {} for n in range(6)} for k in range(6)}}, None, "the number of runs is"),
    ({"paper": {"table": "x", "rows": ["a"]}}, None, "paper.rows"),
    ({"claims": [{"says": "a", "same": {"layers": 1}, "as": {"layers": 2}, "by": "f1"}]}, None, "claims.0"),
    ({}, "othr", r"'othr'\n  Did you mean other\?"), ({"profiles": {"a": {"name": "b"}}}, None, "profiles.a.name"),
    ({"profiles": {"a": {"grid": {"b": {"c": {"d": 1}}}}}}, "a", "grid: b: c: there is no setting 'd'"),
    ({"name": "a" * 300}, None, "name"), ({"grid": {"seed": {"b": {}}}}, None, "grid: no axis can be called 'seed'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "profile", "place"), MISTAKES)
def test_the_error_for_a_mistake_names_its_place(write, changes, profile, place):
    with pytest.raises(LalkitError, match=place) as error:
        plan(write(**changes), profile)
    assert "a.yml" in str(error.value) or profile == "othr"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_sweep_can_be_planned_in_every_profile(path, without_data):
    content = yaml.safe_load(path.read_text())
    for profile in (None, *content["profiles"]):
        found = plan(path, profile)
        assert found.name == path.stem
        assert len({(run.config, run.treebank) for run in found.runs}) == len(found.runs)
        first = found.runs[0]
        assert first.scored == content["profiles"].get(profile, {}).get("treebank", content["treebank"])
        assert (first.scored, first.config.train.epochs) == ("sample", 1) or profile != "smoke"
        assert first.config.train.epochs == 200 or profile != "full"


# ---------------------------------------------------------------- runs


@pytest.fixture
def copy(done, tmp_path):
    """The sweep's folder, to be changed."""
    return shutil.copytree(done[0], tmp_path / "copy")


def stamps(out):
    """The time and the content of every result file."""
    files = ("result.json", "dev.csv", "test.csv")
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in out.glob("runs/*/*") if p.name in files}


@pytest.fixture
def no_run(monkeypatch):
    """Carry out no run; return the folders of those that would be carried out."""
    asked = []
    monkeypatch.setattr(sweeps, "launch", lambda folder, *given: asked.append(folder))
    return asked


def test_a_sweep_leaves_its_results_and_no_words_of_the_treebank(done, file, few):
    out, messages = done
    planned = plan(file)
    record = json.loads((out / "sweep.json").read_text())
    assert record["file"] == json.loads(json.dumps(planned.content))
    assert [run["key"] for run in record["runs"]] == [run.key for run in planned.runs]
    first, second = (read_result(out / run.folder) for run in planned.runs)
    assert (first["status"], first["error"], first["threads"]) == ("ok", None, 1)
    assert (first["cell"], second["cell"]) == ({"layers": "1"}, {"layers": "2"})
    assert second["parameters"] > first["parameters"] and second["config"]["model"]["layers"] == 2
    assert first["seconds"] > 0 and first["peak_memory_mb"] > 50 and len(first["history"]) == 2
    assert all(first[key] for key in ("versions", "device", "ended", "code_sha256"))
    for split in ("dev", "test"):
        text = (out / planned.runs[0].folder / f"{split}.csv").read_text()
        table = pd.read_csv(out / planned.runs[0].folder / f"{split}.csv")
        assert list(table.columns) == list(COLUMNS) and len(table) == first["scores"][split]["sentences"] == 10
        words = (few / f"{split}.trees").read_text().replace(")", " ").split()
        assert not [word for word in words if len(word) > 3 and word.isalpha() and word.islower() and word in text]
    assert messages[0].startswith("two: 2 runs, 0 of them finished") and len(messages) == 3
    assert messages[1].startswith("[1/2] layers: 1, seed 1: dev F1 ") and messages[1].endswith(" min")
    assert not list(out.rglob("resume-*.safetensors")) and not list(out.rglob("*.part"))


@pytest.mark.slow
def test_a_run_gives_the_numbers_of_training_by_hand(done, file, tmp_path):
    run = plan(file).runs[0]
    best = train(run.config, run.treebank, tmp_path / "by hand")
    scores = read_result(done[0] / run.folder)["scores"]["dev"]
    assert {key: best[key] for key in scores} == scores


def test_a_second_start_repeats_nothing(copy, file, no_run, caplog):
    before, folder = stamps(copy), copy / plan(file).runs[0].folder
    left = [copy / ".sweep.json.4194305.part", folder / ".dev.csv.4194305.part", folder / "parser/resume-1.safetensors"]
    for path in left:  # as a kill leaves them
        path.touch()
    caplog.set_level("INFO", logger="lalkit")
    results = sweep(plan(file), copy)
    assert not [path for path in left if path.exists()]
    assert (no_run, stamps(copy)) == ([], before) and len(before) == 6
    assert [result["status"] for _, result in results] == ["ok", "ok"]
    assert caplog.messages == [f"two: 2 runs, 2 of them finished; in {copy}"]


@pytest.mark.parametrize("spoil", [{"status": "failed"}, {"key": "x"}, {}, None])
def test_a_result_that_does_not_count_is_made_again(copy, file, no_run, spoil):
    planned = plan(file)
    place = copy / planned.runs[1].folder / "result.json"
    whole = json.loads(place.read_text())
    place.unlink() if spoil is None else place.write_text(json.dumps(whole | spoil)[: 10**5 if spoil else 200])
    sweep(planned, copy)
    assert no_run == [place.parent]


@pytest.mark.slow
def test_a_failure_ends_in_one_line_and_exit_code_1(copy, file, tmp_path):
    """The second run's learning rate is far too large: it fails in earnest, and the first is not touched."""
    content = yaml.safe_load(file.read_text())
    content["grid"]["layers"]["bad"] = {"train.rate": 1e12}
    del content["grid"]["layers"][2]
    (tmp_path / "bad.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    before = stamps(copy)
    code, _, err = lalkit("sweep", tmp_path / "bad.yml", "--out", copy)
    last = err.splitlines()[-1]
    assert code == 1 and last.startswith("layers: bad, seed 1: failed: ") and "Lower train.rate" in last, err
    assert stamps(copy).items() >= before.items()


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_process_dies_or_an_interruption_ends_those_at_work(file, tmp_path, monkeypatch, interrupted):
    """The first process is killed while it works, as by a system without memory; or Ctrl-C comes in a notebook, which goes on."""
    planned, real, processes = plan(file), sweeps.as_completed, []
    monkeypatch.setattr(sweeps, "launch", lambda *a, launch=sweeps.launch: processes.append(a[2]) or launch(*a))

    def meddle(futures):
        while not processes or not processes[0]:
            time.sleep(0.01)
        processes.append(next(iter(processes[0])))
        if interrupted:
            raise KeyboardInterrupt
        processes[-1].kill()
        return real(futures)

    monkeypatch.setattr(sweeps, "as_completed", meddle)
    one = replace(planned, runs=planned.runs[:1])
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            sweep(one, tmp_path / "out")
    else:
        ((run, result),) = sweep(one, tmp_path / "out")
        assert result["status"] == "failed" and "its process died (exit code -9)" in result["error"]
        assert (result["cell"], result["key"]) == (run.cell, run.key)
    assert processes[-1].wait(timeout=10) == -9


def test_the_folder_of_another_sweep_is_an_error(copy, file, no_run):
    before = (copy / "sweep.json").read_bytes()
    with pytest.raises(ParameterError, match="holds another sweep"):
        sweep(plan(file, "other"), copy)
    with pytest.raises(ParameterError, match="--jobs is 0"):
        sweep(plan(file), copy, jobs=0)
    assert (copy / "sweep.json").read_bytes() == before and not no_run
