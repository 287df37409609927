"""A report shows the numbers of the runs, judges claims as one would by hand, and can be made again from its own files."""

import json
import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lalkit.config import PRESETS, minilm, override
from lalkit.errors import ParameterError
from lalkit.evaluation.statistics import COUNTS, holm
from lalkit.reproduce import report as reports
from lalkit.treebank.corpora import repository
from tests.command import lalkit
from tests.draw.pictures import assert_drawn

SENTENCES = 60
COMMITTED = sorted(path.with_suffix(".csv") for path in (repository() / "figures").glob("*/*.json"))


@pytest.fixture
def make_sweep(tmp_path):
    """make(scores, **file): a sweep's folder with one axis `kind`; scores: kind -> percent of right brackets, by seed."""

    def make(scores, **file):
        runs, rng = [], np.random.default_rng(0)
        for kind, by_seed in scores.items():
            for seed, percent in by_seed.items():
                key = f"{kind}{seed}".ljust(12, "0")
                folder = tmp_path / "made" / "runs" / key
                folder.mkdir(parents=True)
                right = rng.binomial(10, percent / 100, SENTENCES)
                table = pd.DataFrame({"matched": right, "gold": 10, "predicted": 10})
                table["arcs"], table["arcs_right"], table["labels_right"] = 12, table["matched"] + 1, table["matched"]
                table.to_csv(folder / "dev.csv", index=False)
                values = {"f1": percent, "exact": 1.0, "uas": percent, "las": percent, "tag_accuracy": 90.0}
                result = {
                    "status": "ok", "key": key, "seed": seed, "scores": {"dev": values}, "parameters": 1_000_000,
                    "seconds": 90.0, "peak_memory_mb": None, "epochs": 1, "best_epoch": 1, "device": "cpu", "git": None,
                    "history": [{"epoch": 1, **values}],
                }  # fmt: skip
                (folder / "result.json").write_text(json.dumps(result))
                runs.append({"cell": {"kind": kind}, "seed": seed, "key": key, "folder": f"runs/{key}"})
        content = {
            "name": "made", "question": "Which < kind?", "treebank": "sample", "preset": "tiny", "seeds": [1],
            "grid": {"kind": {kind: {} for kind in scores}}, "profiles": {"small": {}}, **file,
        }  # fmt: skip
        plan = {"name": "made", "profile": "small", "file": content, "runs": runs}
        (tmp_path / "made" / "sweep.json").write_text(json.dumps(plan))
        return tmp_path / "made"

    return make


def better(cell, than, by="f1"):
    than = than if than == "all others" else {"kind": than}
    return {"says": f"{cell} > {than}", "better": {"kind": cell}, "than": than, "by": by}


def same(cell, as_, within=0.3):
    return {"says": f"{cell} = {as_}", "same": {"kind": cell}, "as": {"kind": as_}, "within": within, "by": "f1"}


SCORES = {
    "good": {1: 80.0, 2: 80.2, 3: 80.4}, "equal": {1: 80.05, 2: 80.2, 3: 80.3}, "bad": {1: 60.0, 2: 60.2, 3: 60.4},
    "mixed": {1: 90.0, 2: 60.0, 3: 79.0},
}  # fmt: skip


def test_one_run_of_a_cell_is_not_tested(make_sweep):
    claim = better("once", "twice") | {"better": {"kind": "once", "size": 1}, "than": {"kind": "twice", "size": 1}}
    sweep = reports.read_sweep(make_sweep({"once": {1: 80.0}, "twice": {1: 60.0, 2: 60.1}}, claims=[claim]))
    sweep.runs.insert(0, "size", 1)  # the claim names the axes in another order
    assert list(sweep.claims()["verdict"]) == [reports.FEW]


def test_claims_are_judged_over_seeds(make_sweep):
    claims = [
        better("good", "bad"), better("bad", "good"), better("good", "mixed"), better("good", "all others", "uas"),
        better("bad", "all others"), better("good", "no such"), same("good", "equal", 1.0), same("good", "equal", 0.05),
        same("good", "bad"), same("good", "bad", 19.9),
    ]  # fmt: skip
    table = reports.read_sweep(make_sweep(SCORES, claims=claims)).claims()
    better_than = [reports.HOLDS, reports.NOT, reports.UNKNOWN, reports.UNKNOWN, reports.NOT, reports.ABSENT]
    assert list(table["verdict"]) == [*better_than, reports.HOLDS, reports.UNKNOWN, reports.NOT, reports.UNKNOWN]
    values = [list(SCORES[kind].values()) for kind in ("good", "bad")]
    first = table.iloc[0]
    assert first["p"] == pytest.approx(stats.ttest_ind(*values, equal_var=False).pvalue)
    assert first["difference"] == pytest.approx(20) and first["low"] < 20 < first["high"]
    assert first["p_holm"] > first["p"] and first["seeds"] == 3
    assert table["against"][3] == "kind: equal", "of all others, the closest"


def test_the_p_of_claims_is_corrected_over_their_family(make_sweep):
    """Two sweeps: every comparison counts once, also one that stands there twice."""
    claims = [better("good", "bad"), better("good", "bad"), better("good", "mixed"), same("good", "equal", 1.0)]
    sweep = reports.read_sweep(make_sweep(SCORES, claims=claims))
    other = replace(sweep, record=sweep.record | {"profile": "other"})
    alone, together = sweep.claims(), sweep.claims([other, sweep])
    tested = [*alone["p"][1:3], alone["equal_p"][3]]
    assert list(alone["p_holm"][1:]) == pytest.approx(holm(tested)) and alone["p_holm"][0] == alone["p_holm"][1]
    assert list(together["p_holm"][1:]) == pytest.approx(holm(tested * 2)[:3])
    assert len(reports.comparisons([sweep, other])) == 8


def test_every_pair_is_tested_with_intervals(make_sweep):
    sweep = reports.read_sweep(make_sweep(SCORES))
    pairs = sweep.pairs()
    assert list(pairs["measure"].value_counts()) == [6, 6, 6]
    assert (pairs["p_holm"] >= pairs["p"]).all()
    row = pairs[(pairs["first"] == "kind: good") & (pairs["second"] == "kind: bad")].iloc[0]
    assert row["low"] < row["difference"] < row["high"] and row["equal_p"] > 0.9 and row["p"] < 0.001


def test_cells_have_means_intervals_and_the_scores_of_the_paper(make_sweep):
    paper = {"table": "table5", "rows": {"kind": {"column": "layers", "values": {"a": "3"}}}}
    folder = make_sweep({"a": {1: 80.0, 2: 60.0}, "b": {1: 60.0}}, paper=paper)
    cells = reports.read_sweep(folder).cells().set_index("kind")
    assert list(cells.loc["a", ["f1", "f1 sd", "paper f1", "paper las"]]) == pytest.approx([70, 200**0.5, 96.34, 96.29])
    assert (cells.loc["a", "f1 low"], cells.loc["a", "f1 high"]) == pytest.approx(stats.t.interval(0.95, 1, 70, 10))
    assert cells.loc["b", ["paper f1", "f1 sd", "f1 low"]].isna().all()
    plan = json.loads((folder / "sweep.json").read_text())
    plan["file"]["paper"]["table"] = "table3"
    (folder / "sweep.json").write_text(json.dumps(plan))
    with pytest.raises(ParameterError, match="table3"):
        reports.read_sweep(folder).cells()


def test_a_real_sweep_becomes_files_from_which_the_same_report_is_made(done, tmp_path):
    folder, _ = done
    before = plt.get_fignums()
    written = reports.report([folder], tmp_path / "first")
    assert plt.get_fignums() == before  # it has closed its own
    names = ["two.json", "two-sentences.csv.gz", "two.png", "two.md", "two.csv"]  # the last one means: it has ended
    assert [path.name for path in written] == names
    sweep = reports.read_sweep(folder)
    runs = pd.read_csv(tmp_path / "first" / "two.csv")
    for row in runs.to_dict("records"):
        result = json.loads((folder / "runs" / row["run"] / "result.json").read_text())
        assert row["split"] == "test" and row["f1"] == pytest.approx(result["scores"]["test"]["f1"], abs=1e-4)
        curve = json.loads(row["curve"])
        assert len(curve) == result["epochs"]
        assert curve[row["best_epoch"] - 1]["las"] == pytest.approx(result["scores"]["dev"]["las"], abs=1e-3)
    assert len(sweep.curves()) == runs["epochs"].sum()
    sentences = pd.read_csv(tmp_path / "first" / "two-sentences.csv.gz")
    sums = sentences.groupby("run", sort=False)[["matched", "gold", "predicted"]].sum()
    f1 = 200 * sums["matched"] / (sums["gold"] + sums["predicted"])
    assert f1.to_numpy() == pytest.approx(runs["f1"].to_numpy(), abs=1e-3)
    reports.report([tmp_path / "first" / "two.csv"], tmp_path / "again")
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
    assert_drawn(sweep.figure(), tmp_path / "first" / "two.png")
    report = ["report", "sweeps", tmp_path / "first" / "two.csv", "--out", tmp_path / "plain", "--no-picture"]
    assert lalkit(*map(str, report))[0] == 0
    assert {path.name for path in (tmp_path / "plain").iterdir()} == {*names} - {"two.png"}
    assert 'read_sweep("two.csv").figure()' in (tmp_path / "plain" / "two.md").read_text()


def test_the_report_names_missing_runs(make_sweep):
    folder = make_sweep({"a": {1: 80.0, 2: 80.0}, "b": {1: 60.0}})
    failed = folder / "runs" / "b1".ljust(12, "0") / "result.json"
    failed.write_text(json.dumps(json.loads(failed.read_text()) | {"status": "failed"}))
    next(folder.glob("runs/a2*/result.json")).unlink()
    reports.report([folder], folder / "report")
    text = (folder / "report" / "made-small.md").read_text()
    assert "kind: a, seed 2: not run; kind: b, seed 1: failed." in text and "nan" not in text


def test_a_folder_without_a_sound_sweep_is_an_error(make_sweep, tmp_path):
    with pytest.raises(ParameterError, match="holds no sweep"):
        reports.read_sweep(tmp_path)
    folder = make_sweep({"a": {1: 80.0}})
    again = shutil.copytree(folder, tmp_path / "again")
    with pytest.raises(ParameterError, match="two sweeps are called made-small"):
        reports.report([folder, again], tmp_path / "out")
    (again / "runs" / "a10000000000" / "dev.csv").write_text("matched\nmany\n")
    with pytest.raises(ParameterError, match="damaged"):
        reports.read_sweep(again)
    next(folder.glob("runs/*/result.json")).unlink()
    with pytest.raises(ParameterError, match="no run of it has ended well"):
        reports.report([folder], tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- the committed sweeps


@pytest.mark.slow
def test_over_all_committed_runs_the_test_over_seeds_seldom_calls_noise_significant():
    """At most 8 %, by F1, UAS and LAS; the test over sentences does so far more often on the larger treebanks."""
    sweeps = [reports.read_sweep(path) for path in COMMITTED]
    for measure in reports.COUNTED:
        tests = [test for sweep in sweeps for test in sweep.false_alarms(measure, rounds=1)[0]]
        assert len(tests) > 140 and np.mean(tests) <= 0.08, measure
    large = [sweep for sweep in sweeps if sweep.counts and sweep.name in ("control-biomedical", "control-chinese")]
    tests = [test for sweep in large for test in sweep.false_alarms(rounds=200)[1]]
    assert len(tests) == 18 and np.mean(tests) > 0.2


# Why a committed table is not, or not known to be, what its command gives now. A sweep that was run again leaves this list.
OLD = "older than the record of presets: large first weights, 160 steps of warm-up, R in halves, another feed-forward"
SCRATCH = "trained without an encoder, which the preset chinese has now"
GONE = "its losses are gone, and its file with them"
STALE = {
    **dict.fromkeys(["layers-glorot", "layers-longer"], OLD), "ties-short": GONE, "objectives": GONE,
    "objectives-biomedical": GONE, "control-chinese": SCRATCH, "heads-chinese": SCRATCH,
    "heads-biomedical": "the commit of its runs is not known", "heads-sample": "`lean` and `taught` are gone",
}  # fmt: skip


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_table_is_what_its_file_gives_now(path):
    """Settings and numbers of weights of every cell."""
    record = json.loads(path.with_suffix(".json").read_text())
    file = repository() / "notebooks" / "sweeps" / f"{record['name']}.yml"
    lines = reports.check(file, record["profile"]) if file.exists() else ["there is no file"]
    assert bool(lines) == (path.stem in STALE), lines


def test_the_check_names_what_a_changed_preset_changes(monkeypatch):
    changed = override(minilm(), {"model.label_hidden": 251})
    monkeypatch.setitem(PRESETS, "minilm", lambda: changed)
    code, out, _ = lalkit("sweep", "notebooks/sweeps/trial.yml", "--profile", "biomedical", "--check", cwd=repository())
    assert code == 1 and "last layer: none: config.model.label_hidden was 250, is 251\n" in out
    assert "last layer: none: parameters was 10010690, is 10011156\n" in out


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_report_belongs_to_its_runs(path):
    """Scores are those of the sentences, and the page has the means of the cells and the verdicts."""
    sweep, page = reports.read_sweep(path), path.with_suffix(".md").read_text(encoding="utf-8")
    family = [one for one in map(reports.read_sweep, COMMITTED) if one.record["name"] == sweep.record["name"]]
    for measure in reports.COUNTED if sweep.counts else ():
        counts = np.stack([sweep.counts[run][COUNTS[measure]] for run in sweep.runs["run"]]).sum(1)
        scores = 200 * counts[:, 0] / (counts[:, 1] + counts[:, 2])
        assert sweep.runs[measure].astype(float).to_numpy() == pytest.approx(scores, abs=1e-3)
    for row in sweep.cells().to_dict("records"):
        assert f"{row['f1']:.2f}" in page and f"{row['las']:.2f}" in page
    for row in sweep.claims(family).to_dict("records"):
        assert any(line.startswith(f"| {row['says']} |") and row["verdict"] in line for line in page.splitlines())
