"""The rows of `lalkit bench`; both programs of a pair compute the same. No test depends on time. Also: tools/peers.py."""

import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from lalkit import bench, config
from lalkit.bench import Settings, compare
from lalkit.config import LabelAttentionConfig
from lalkit.errors import ParameterError
from lalkit.network import model
from lalkit.network.label_attention import LabelAttention, Masks
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence
from tests.chart.charts import same_tree
from tests.command import lalkit
from tests.reference.label_attention_literal import literal
from tools import peers

ONCE = Settings(repeats=1)
COLUMNS = {*"routine case mode device baseline ours_ms baseline_ms ratio ratio_min ratio_max memory_ratio".split()}


@pytest.fixture
def few_sentences(monkeypatch, sample):
    """Let the rows of the whole parser be measured on a handful of sentences."""
    original = bench.model_and_sentences
    monkeypatch.setattr(bench, "model_and_sentences", lambda s: (original(s)[0], sample[:4], "four sentences"))


def test_a_row_its_line_and_its_file(tmp_path, monkeypatch):
    row = compare(Settings(repeats=3), "layer", "8x30", "m", "b", lambda: torch.ones(1000), lambda: torch.ones(4000))
    assert set(row) == COLUMNS and row["memory_ratio"] == 0.25
    assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]
    monkeypatch.setattr(bench, "bench", lambda routines, settings: [row])
    code, out, err = lalkit("bench", "--json", tmp_path / "rows.json")
    assert code == 0 and "rows.json" in err, err
    code, out, err = lalkit("bench")
    assert code == 0 and "8x30" in out and "x as fast" in out, err
    assert json.loads((tmp_path / "rows.json").read_text()) == [row]
    words = re.findall(r"\w+", lalkit("bench", "--help")[1])
    assert f"{' '.join(bench.ROUTINES)} by default all" in " ".join(words)


def test_the_twin_of_the_layer_computes_what_the_literal_one_does():
    torch.manual_seed(0)
    layer = LabelAttention(LabelAttentionConfig(heads=5, d_kv=6, d_out=8), 7, 4).double().eval()
    x, mask = torch.randn(3, 6, 11, dtype=torch.float64), torch.arange(6) < torch.tensor([[6], [4], [3]])
    for found, expected in zip(bench.label_attention_twin(layer, x, mask), literal(layer, x, mask, Masks())):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "forward+backward", "cached"])
def test_a_row_of_the_layer(mode):
    row = bench.layer_row(ONCE, 2, 3, 4, mode)
    assert set(row) == COLUMNS and (row["case"], row["mode"]) == ("2x3", mode) and row["ours_ms"] > 0


def test_parts_add_up_and_the_clocks_are_taken_off(few_sentences):
    decoding = model.decode_batch
    whole, *parts = (row for row in bench.parse(ONCE) if "bf16" not in row["mode"])
    assert whole["routine"] == "parse" and re.fullmatch(r"minilm, fp32, [\d,]+ words/s", whole["mode"])
    assert whole["baseline"].startswith("bare encoder on ")
    named = {row["case"]: row["ours_ms"] for row in parts}
    assert list(named) == [
        "encoder", "self-attention", "label attention", "spans", "arcs", "decoding", "everything else", "sum",
    ]  # fmt: skip
    assert all(value > 0 for value in named.values())
    assert named.pop("sum") == pytest.approx(sum(named.values()), abs=0.01)
    assert model.decode_batch is decoding


def test_parts_of_the_host_and_their_twins(few_sentences, monkeypatch):
    monkeypatch.setattr(bench, "HOST", (10,))
    rows = bench.bench(["host"], ONCE)
    assert [row["case"] for row in rows] == ["10 words"] * 8 + ["four sentences"] * 8
    times = {row["mode"]: row["ours_ms"] for row in rows[8:]}
    added = ("collation, warm", "preparing", "decoding", "assembling")
    assert times["these four, warm"] == pytest.approx(sum(times[part] for part in added), abs=0.01)
    parts = bench.host_parts(ONCE, *bench.model_and_sentences(ONCE)[:2])
    for part in ("decoding", "decoding, 2 threads", "assembling"):
        one, two = (function() for function in parts[part][1:])
        if part != "assembling":
            one, two = sum(one, []), sum(two, [])
        assert len(one) == len(two) == 4 and all(map(same_tree if "dec" in part else same_fields, one, two)), part


def same_fields(one, two):
    return all(getattr(one.sentence, f.name) == getattr(two.sentence, f.name) for f in fields(Sentence)) and one == two


def test_rows_of_the_whole_parser(few_sentences):
    row, *parts = bench.bench(["train"], ONCE)
    assert row["routine"] == "train" and row["ours_ms"] > 0 and set(row) == COLUMNS
    *named, total = (part["ours_ms"] for part in parts)
    assert min(named) > 0 and total == pytest.approx(sum(named), abs=0.01) and parts[-2]["case"] == "everything else"


@pytest.mark.parametrize(
    ("routines", "settings", "problem"),
    [
        (["fast"], ONCE, "no routine 'fast'"),
        (["spans"], Settings(repeats=0), "--repeats is 0"),
        (["parse"], Settings(repeats=1, preset="tiny"), "tiny has no pretrained encoder"),
        (["spans"], Settings("cuda"), "no device 'cuda'"),
    ],
)
def test_wrong_settings_are_refused(routines, settings, problem, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ParameterError, match=problem):
        bench.bench(routines, settings)


# ---------------------------------------------------------------- tools/peers.py


def test_each_peer_is_trained_once_and_scored(tmp_path, monkeypatch):
    """With a program that copies gold in place of a parser."""
    trained = []

    def copy_gold(command, log):
        job = json.loads(command[-1].read_text())
        trained.append(job["peer"])
        if job["peer"] == "lalkit":
            raise subprocess.CalledProcessError(1, "lalkit")
        kind = {"supar-con": "trees", "supar-dep": "conllu"}[job["peer"]]
        shutil.copy(f"{job['data']}/test.{kind}", job["out"])
        Path(job["out"], "report.json").write_text(json.dumps({"epoch_seconds": [1, 3], "parse_seconds": 2}))

    monkeypatch.setattr(peers, "logged", copy_gold)
    monkeypatch.setattr(peers, "PEERS", dict.fromkeys(peers.PEERS, ()))
    for names in (["supar-con", "lalkit"], ["supar-con", "supar-dep"]):
        rows = {row["system"]: row for row in peers.compare(names, "sample", 4, [1], tmp_path)}
    assert trained == ["supar-con", "lalkit", "supar-dep"]
    assert (rows["supar-con"]["f1"], rows["supar-con"]["uas"]) == (100, None)
    both, words = rows["supar, both"], sum(map(len, load("sample", "test").sentences))
    assert (both["f1"], both["las"], both["contradictions"]) == (100, 100, 0)
    assert (both["epoch_seconds"], both["words_per_second"]) == (4, words / 4)
    with pytest.raises(SystemExit, match="another treebank"):
        peers.compare(["supar-con"], "sample-zh", 4, [1], tmp_path)


def test_the_peers_learn_with_the_rates_of_lalkit():
    """Their program cannot import lalkit, so it repeats two numbers."""
    rates = config.preset("minilm-span").train
    assert (peers.RATE, peers.NEW_RATE) == (rates.encoder_rate, rates.rate)
