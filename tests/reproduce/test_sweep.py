"""Carry out a sweep of two small runs: its files, no run twice, and how it goes on after a failure or a kill."""

import json
import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from lalkit.cli import app
from lalkit.errors import ParameterError
from lalkit.evaluation.scores import COLUMNS
from lalkit.reproduce import sweep as sweeps
from lalkit.reproduce.sweep import launch, plan, read_result, sweep
from lalkit.training.loop import train

ROOT = Path(__file__).parents[2]
FILES = ("result.json", "dev.csv", "test.csv")
NUMBERS = ("cell", "seed", "key", "config", "treebank", "status", "scores", "epochs", "best_epoch", "parameters")


@pytest.fixture
def copy(done, tmp_path):
    """The sweep's folder, to be changed."""
    return shutil.copytree(done[0], tmp_path / "copy")


def numbers(out, runs):
    """Everything in a run's files that must not depend on who computed it and when."""
    found = []
    for run in runs:
        result = read_result(out / run.folder)
        history = [{k: v for k, v in row.items() if k != "seconds"} for row in result["history"]]
        tables = [(out / run.folder / name).read_bytes() for name in ("dev.csv", "test.csv")]
        found.append([[result[key] for key in NUMBERS], history, tables])
    return found


def stamps(out):
    """The time and the content of every result file."""
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in out.glob("runs/*/*") if p.name in FILES}


@pytest.fixture
def no_run(monkeypatch):
    """Carry out no run; return the folders of those that would be carried out."""
    asked = []
    monkeypatch.setattr(sweeps, "launch", lambda folder, *given: asked.append(Path(folder)) or 0)
    return asked


def test_a_sweep_leaves_its_results_and_no_words_of_the_treebank(done, file, few):
    out, messages = done
    planned = plan(file)
    record = json.loads((out / "sweep.json").read_text())
    assert record == json.loads(json.dumps(planned.to_dict()))
    assert [(r["cell"], r["seed"], r["key"]) for r in record["runs"]] == [(r.cell, 1, r.key) for r in planned.runs]
    first, second = (read_result(out / run.folder) for run in planned.runs)
    assert (first["status"], first["error"], first["threads"]) == ("ok", None, 1)
    assert (first["cell"], second["cell"]) == ({"layers": "1"}, {"layers": "2"})
    assert second["parameters"] > first["parameters"] and second["config"]["model"]["layers"] == 2
    assert first["seconds"] > 0 and first["peak_memory_mb"] > 50 and len(first["history"]) == 2
    assert all(first[key] for key in ("versions", "device", "ended", "code_sha256"))
    for split in ("dev", "test"):
        table = pd.read_csv(out / planned.runs[0].folder / f"{split}.csv")
        assert list(table.columns) == list(COLUMNS) and len(table) == first["scores"][split]["sentences"] == 10
        words = (few / f"{split}.trees").read_text().replace(")", " ").split()
        text = (out / planned.runs[0].folder / f"{split}.csv").read_text()
        assert not [word for word in words if len(word) > 3 and word.isalpha() and word.islower() and word in text]
    assert messages[0].startswith("two: 2 runs, 0 of them finished")
    assert messages[1].startswith("[1/2] layers: 1, seed 1: dev F1 ") and messages[1].endswith(" min")
    assert messages[2].startswith("[2/2] layers: 2, seed 1: dev F1 ") and len(messages) == 3
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


def test_a_run_that_another_sweep_has_finished_is_copied_from_there(copy, file, no_run):
    planned = plan(file)
    sweep(replace(planned, name="the same cells"), copy.parent / "second")
    assert not no_run
    assert numbers(copy.parent / "second", planned.runs) == numbers(copy, planned.runs)
    (copy / planned.runs[0].folder / "result.json").write_text("{}")
    sweep(replace(planned, name="the same cells"), copy.parent / "third")
    assert not no_run, "the second sweep has them, too"
    for name in ("second", "third"):
        (copy.parent / name / planned.runs[0].folder / "result.json").write_text("{}")
    sweep(replace(planned, name="the same cells"), copy.parent / "fourth")
    assert [folder.name for folder in no_run] == [Path(planned.runs[0].folder).name], "it is finished nowhere"


@pytest.mark.parametrize("spoil", ["failed", "of another key", "half", "none"])
def test_a_result_that_does_not_count_is_made_again(copy, file, no_run, spoil):
    planned = plan(file)
    place = copy / planned.runs[1].folder / "result.json"
    whole = json.loads(place.read_text())
    text = {
        "failed": json.dumps(whole | {"status": "failed"}), "of another key": json.dumps(whole | {"key": "x"}),
        "half": place.read_text()[:200], "none": None,
    }[spoil]  # fmt: skip
    place.unlink() if text is None else place.write_text(text)
    sweep(planned, copy)
    assert no_run == [place.parent]


@pytest.mark.slow
def test_a_failure_ends_in_one_line_and_exit_code_1(copy, file, tmp_path):
    """The second run's learning rate is far too large: it fails in earnest, and the first is not touched."""
    content = yaml.safe_load(file.read_text())
    content["grid"]["layers"]["bad"] = {"train.rate": 1e12, "train.clip": 0.0}
    del content["grid"]["layers"][2]
    (tmp_path / "bad.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    before = stamps(copy)
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "bad.yml"), "--out", str(copy)])
    assert done.exit_code == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("layers: bad, seed 1: failed: ") and "Lower train.rate" in last, done.stderr
    (folder,) = {path.parent for path in stamps(copy)} - {path.parent for path in before}
    assert str(folder) in last and read_result(folder)["status"] == "failed"
    assert stamps(copy).items() >= before.items()


def test_a_run_whose_process_dies_has_failed(file, tmp_path, monkeypatch):
    """The first process is killed while it works, as by a system without memory."""

    def killed(folder, task, where=None, working=None):
        thread = threading.Thread(target=lambda: codes.append(launch(folder, task, where, working)))
        thread.start()
        while not working:
            time.sleep(0.01)
        next(iter(working)).kill()
        thread.join()
        return codes[0]

    codes, planned = [], plan(file)
    monkeypatch.setattr(sweeps, "launch", killed)
    ((run, result),) = sweep(replace(planned, runs=planned.runs[:1]), tmp_path / "out")
    assert result["status"] == "failed" and "its process died (exit code -9)" in result["error"]
    assert (result["cell"], result["key"]) == (run.cell, run.key)


@pytest.mark.slow
def test_an_interruption_ends_the_processes_at_work(file, tmp_path, monkeypatch):
    """Ctrl-C in a notebook, which goes on: no run goes on in the background, and none counts as failed."""
    at_work = []

    def interrupted(futures):
        while not at_work or len(at_work[0]) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt

    def remember(folder, task, where=None, working=None):
        at_work.append(working)
        return launch(folder, task, where, working)

    monkeypatch.setattr(sweeps, "as_completed", interrupted)
    monkeypatch.setattr(sweeps, "launch", remember)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan(file), tmp_path / "out", jobs=2)
    assert [process.wait(timeout=10) for process in at_work[0]] == [-9, -9]
    assert not list((tmp_path / "out").glob("runs/*/result.json"))


def test_the_folder_of_another_sweep_is_an_error(copy, file, no_run):
    before = (copy / "sweep.json").read_bytes()
    with pytest.raises(ParameterError, match="holds another sweep\n  Give another --out"):
        sweep(plan(file, "other"), copy)
    with pytest.raises(ParameterError, match="--jobs is 0"):
        sweep(plan(file), copy, jobs=0)
    assert (copy / "sweep.json").read_bytes() == before and not no_run


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_completes(done, file, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: lalkit[cluster]")
    flag, out, planned = tmp_path / "one has died", tmp_path / "out", plan(file)

    def die_once(folder, task, where, working):  # in the worker, where nothing is patched
        from lalkit.reproduce.sweep import launch

        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return launch(folder, task, where)
        threading.Thread(target=launch, args=(folder, task), daemon=True).start()
        while not (Path(folder) / "parser" / "config.json").exists():  # it trains
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(sweeps, "launch", die_once)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as local:
        results = sweep(planned, out, cluster=local.scheduler_address)
    assert flag.exists()
    assert [result["status"] for _, result in results] == ["ok", "ok"]
    assert numbers(out, planned.runs) == numbers(done[0], planned.runs)
