"""A report shows what the files of the runs hold, and judges claims as one would by hand."""

import json
import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lalkit.errors import ParameterError
from lalkit.reproduce.sweep_plan import COLUMNS
from lalkit.reproduce.sweep_report import _reached, report
from lalkit.reproduce.sweep_table import (
    ABSENT,
    HOLDS,
    NOT,
    UNKNOWN,
    all_pairs,
    cell_table,
    curve_table,
    judge,
    read_sweep,
    run_table,
    split_of,
)
from tests.command import lalkit

SENTENCES = 60


@pytest.fixture
def make_sweep(tmp_path):
    """make(how, **file): a sweep's folder with one axis `kind`; how: kind -> right brackets of ten in a sentence, by seed."""

    def make(how, **file):
        runs, rng = [], np.random.default_rng(0)
        for kind, by_seed in how.items():
            for seed, right in by_seed.items():
                key = f"{kind}{seed}".ljust(12, "0")
                folder = tmp_path / "made" / "runs" / key
                folder.mkdir(parents=True)
                noise = rng.integers(-1, 2, SENTENCES)
                table = pd.DataFrame({"matched": right + noise, "gold": 10, "predicted": 10, "arcs": 12})
                table["arcs_right"], table["labels_right"] = table["matched"] + 1, table["matched"]
                table.to_csv(folder / "dev.csv", index=False)
                score = 10 * float(table["matched"].mean())
                scores = {"f1": score, "exact": 1.0, "uas": score, "las": score, "tag_accuracy": 90.0}
                run = {"cell": {"kind": kind}, "seed": seed, "key": key, "treebank": "sample", "folder": f"runs/{key}"}
                config = {"train": {"epochs": 1, "seed": seed}, "model": {"layers": len(kind)}}
                result = run | {
                    "status": "ok", "scores": {"dev": scores}, "parameters": 1_000_000, "seconds": 90.0,
                    "peak_memory_mb": 500.0, "best_epoch": 1, "config": config, "device": "cpu",
                    "history": [{"epoch": 1, **scores}],
                }  # fmt: skip
                (folder / "result.json").write_text(json.dumps(result))
                runs.append(run)
        content = {"name": "made", "question": "Which < kind?", **file}
        plan = {"name": "made", "profile": "small", "file": content, "runs": runs}
        (tmp_path / "made" / "sweep.json").write_text(json.dumps(plan))
        return tmp_path / "made"

    return make


def claim(better, than, by="f1"):
    than = than if than == "all others" else {"kind": than}
    return {"says": f"{better} > {than}", "better": {"kind": better}, "than": than, "by": by}


def test_claims_are_judged_by_seeds_and_by_sentences(make_sweep):
    how = {
        "good": {1: 8, 2: 8, 3: 8},
        "bad": {1: 6, 2: 6, 3: 6},
        "mixed": {1: 9, 2: 9, 3: 5},  # its mean is below good's, not with every seed
    }
    claims = [
        claim("good", "bad"), claim("bad", "good"), claim("good", "mixed"), claim("good", "all others", "uas"),
        claim("bad", "all others"), claim("good", "none such"),
    ]  # fmt: skip
    table = judge(read_sweep(make_sweep(how, claims=claims)), "dev")
    assert list(table["verdict"]) == [HOLDS, NOT, UNKNOWN, UNKNOWN, NOT, ABSENT]
    first = table.iloc[0]
    assert first["seeds"] == 3 and first["difference"] == pytest.approx(20, abs=2) and first["p_holm"] < 0.01
    assert first["least"] <= first["difference"] <= first["most"]
    assert table["against"][3] == "kind: mixed", "of all others, the closest"


def test_equal_cells_cannot_be_told_apart(make_sweep):
    sweep = read_sweep(make_sweep({"a": {1: 7, 2: 7}, "b": {1: 7, 2: 7}}, claims=[claim("a", "b")]))
    assert judge(sweep, "dev")["verdict"][0] == UNKNOWN
    pairs = all_pairs(sweep, "dev")
    assert set(pairs["measure"]) == {"f1", "uas", "las"} and len(pairs) == 3
    assert (pairs["p"] > 0.05).all()


def test_seeds_that_only_one_cell_has_are_not_compared(make_sweep):
    sweep = read_sweep(make_sweep({"a": {1: 8, 2: 1}, "b": {1: 6}}, claims=[claim("a", "b")]))
    found = judge(sweep, "dev").loc[0]
    assert (found["seeds"], found["verdict"]) == (1, UNKNOWN) and found["p_holm"] < 0.01, "one seed is not enough"


def test_cells_have_mean_deviation_and_the_scores_of_the_paper(make_sweep):
    paper = {"table": "table5", "rows": {"kind": {"column": "layers", "values": {"a": "3"}}}}
    sweep = read_sweep(make_sweep({"a": {1: 8, 2: 6}, "b": {1: 6}}, paper=paper))
    cells = cell_table(sweep, "dev").set_index("kind")
    runs = run_table(sweep)
    own = runs.loc[runs["kind"] == "a", "f1"]
    assert cells.loc["a", "f1"] == pytest.approx(own.mean()) and cells.loc["a", "f1 sd"] == pytest.approx(own.std())
    with pytest.raises(ParameterError, match="sweep.json: file: .*table3.csv has no column 'uas'"):
        cell_table(replace(sweep, content={"paper": paper | {"table": "table3", "rows": {}}}), "dev")
    assert (cells.loc["a", "paper f1"], cells.loc["a", "paper las"]) == (96.34, 96.29)
    assert np.isnan(cells.loc["b", "paper f1"]) and np.isnan(cells.loc["b", "f1 sd"])


def test_a_real_sweep_becomes_files(done, tmp_path):
    folder, _ = done
    before = plt.get_fignums()
    written = report([folder], tmp_path)
    assert plt.get_fignums() == before  # it has closed its own
    assert {path.name for path in written} == {
        "two-runs.csv", "two-cells.csv", "two-tests.csv", "two-claims.csv", "two-curves.csv",
        "two.png", "two-curves.png", "two.md", "two.tex", "report.html",
    }  # fmt: skip
    sweep = read_sweep(folder)
    assert split_of(sweep) == "test"
    runs = pd.read_csv(tmp_path / "two-runs.csv")
    for run in sweep.runs:
        row = runs[(runs["layers"].astype(str) == run["cell"]["layers"]) & (runs["split"] == "test")].iloc[0]
        assert row["f1"] == pytest.approx(run["scores"]["test"]["f1"], rel=1e-5)
    curves = pd.read_csv(tmp_path / "two-curves.csv")
    merged = runs[runs["split"] == "dev"].merge(curves, on=["layers", "seed"], suffixes=("", " of the epoch"))
    best = merged[merged["epoch"] == merged["best_epoch"]]
    assert len(curves) == sum(run["epochs"] for run in sweep.runs) and len(best) == len(sweep.runs)
    assert best["las of the epoch"].to_numpy() == pytest.approx(best["las"].to_numpy(), abs=1e-3)
    page = (tmp_path / "report.html").read_text()
    assert "One layer or two?" in page and "data:image/png;base64" in page and "http" not in page
    assert "model.layers" in (tmp_path / "two.md").read_text()
    assert r"\begin{tabular}" in (tmp_path / "two.tex").read_text()


def test_the_report_names_missing_runs(make_sweep):
    folder = make_sweep({"a": {1: 8, 2: 8}, "b": {1: 6}})
    result = next(folder.glob("runs/b1*/result.json"))
    result.write_text(json.dumps(json.loads(result.read_text()) | {"status": "failed"}))
    next(folder.glob("runs/a2*/result.json")).unlink()
    sweep = read_sweep(folder)
    assert sweep.missing == ("kind: a, seed 2: not run", "kind: b, seed 1: failed")
    report([folder], folder / "report")
    assert "kind: b, seed 1: failed" in (folder / "report" / "made-small.md").read_text()
    assert "Which &lt; kind?" in (folder / "report" / "report.html").read_text()


def test_dependency_parsers_are_compared_by_uas_and_las_only(make_sweep):
    folder = make_sweep({"a": {1: 8, 2: 8}, "b": {1: 6, 2: 6}}, claims=[claim("a", "b")])
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        result["scores"]["dev"] |= {"f1": None, "exact": None}
        path.write_text(json.dumps(result))
    sweep = read_sweep(folder)
    assert set(all_pairs(sweep, "dev")["measure"]) == {"uas", "las"}
    assert judge(sweep, "dev")["verdict"][0] == ABSENT
    report([folder], folder / "report")
    text = (folder / "report" / "made-small.md").read_text()
    assert "nan" not in text and "## Every pair, by UAS" in text


def test_a_result_of_another_sweep_counts_if_its_key_is_the_same(make_sweep):
    folder = make_sweep({"a": {1: 8}, "b": {1: 6}})
    path = next(folder.glob("runs/a1*/result.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cell": {"other": "name"}}))
    assert read_sweep(folder).cells == [{"kind": "a"}, {"kind": "b"}]


def test_the_page_names_the_epochs_and_devices_of_all_runs(make_sweep, tmp_path):
    folder = make_sweep({"a": {1: 8}, "b": {1: 6}})
    path = next(folder.glob("runs/a1*/result.json"))
    result = json.loads(path.read_text())
    result["config"]["train"]["epochs"] = 3
    path.write_text(json.dumps(result | {"device": "a GPU"}))
    report([folder], tmp_path / "out")
    assert (
        "epochs of each: 1 or 3, one thread, a GPU or cpu. Percent" in (tmp_path / "out" / "made-small.md").read_text()
    )


def test_two_sweeps_of_one_name_are_an_error(make_sweep, tmp_path):
    folder = make_sweep({"a": {1: 8}})
    again = shutil.copytree(folder, tmp_path / "again")
    with pytest.raises(ParameterError, match=f"two sweeps are called made-small, .*{folder} and {again}"):
        report([folder, again], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_names_that_an_axis_may_not_have_are_those_of_the_columns(make_sweep):
    sweep = read_sweep(make_sweep({"a": {1: 8}}))
    cells = cell_table(sweep, "dev")
    tables = run_table(sweep), cells.filter(regex="^(?!.* sd$)"), curve_table(sweep), _reached(sweep, cells)
    assert {name for table in tables for name in table} == {"kind", *COLUMNS}


def test_a_folder_without_a_finished_run_is_an_error(make_sweep, tmp_path):
    with pytest.raises(ParameterError, match="holds no sweep"):
        read_sweep(tmp_path)
    folder = make_sweep({"a": {1: 8}})
    next(folder.glob("runs/*/result.json")).unlink()
    with pytest.raises(ParameterError, match="no run of it has ended well"):
        report([folder], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    code, _, err = lalkit("report", "sweeps", str(tmp_path / "none"))
    assert code == 2 and "holds no sweep" in err
