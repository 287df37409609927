"""The rows of the table, what they measure, and that both functions of a pair compute the same. No test depends on time."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lalkit import bench
from lalkit.bench import measure, routines, twins, whole_parser
from lalkit.bench.measure import Settings, compare, growth, peak_bytes
from lalkit.config import LabelAttentionConfig, SpanAttentionConfig, override, paper_chinese
from lalkit.errors import LalkitError, ParameterError
from lalkit.network import predict
from lalkit.network.label_attention import LabelAttention, Masks
from lalkit.network.scores import fenceposts
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.network.word_vectors import random_encoder
from tests.command import lalkit
from tests.reference import span_attention_literal
from tests.reference.label_attention_literal import literal

ONCE = Settings(repeats=1)
COLUMNS = {
    "routine", "case", "mode", "device", "baseline", "ours_ms", "baseline_ms", "ratio", "ratio_min", "ratio_max",
    "memory_ratio",
}  # fmt: skip


def test_ratio_and_memory_of_a_row():
    row = compare(Settings(repeats=3), "r", "c", "m", "b", lambda: torch.ones(1000), lambda: torch.ones(4000))
    assert set(row) == COLUMNS
    assert row["memory_ratio"] == 0.25
    assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]


def test_the_peak_is_the_memory_held_at_one_time():
    def function():
        a = torch.ones(1000, dtype=torch.float64)
        del a
        b = torch.ones(500, dtype=torch.float64)
        return b + 1

    assert 8000 <= peak_bytes(function) < 8100  # a number becomes a tensor too


def test_growth():
    assert growth((40, 1.0), (120, 81.0)) == pytest.approx(4)


def test_the_batched_twin_computes_what_the_literal_one_does():
    torch.manual_seed(0)
    layer = LabelAttention(LabelAttentionConfig(heads=5, d_kv=6, d_out=8), 7, 4).double().eval()
    x, mask = torch.randn(3, 6, 11, dtype=torch.float64), torch.arange(6) < torch.tensor([[6], [4], [3]])
    for found, expected in zip(twins.label_attention(layer, x, mask), literal(layer, x, mask, Masks())):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("boundary", ["full", "lean", "glass"])
def test_the_batched_twin_of_the_span_computes_what_the_literal_one_does(boundary):
    torch.manual_seed(0)
    module = (
        SpanLabelAttention(SpanAttentionConfig(d_key=5, boundary=boundary, d_lean=4), 12, 7, 6, 0.0).double().eval()
    )
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    posts = fenceposts(x[:, :, None], (8, 4))
    expected = span_attention_literal.chart(module, x, posts, torch.tensor([5, 5]))
    found = twins.span_attention(module, module.project(x, posts))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_row_of_the_span():
    torch.manual_seed(0)
    config = SpanAttentionConfig(boundary="glass")
    module = SpanLabelAttention(config, sum(routines.PARTS), 250, routines.SPAN_LABELS, 0.0)
    for mode in ("forward", "forward+backward"):
        row = routines.inside_row(ONCE, 2, 5, module, mode)
        assert set(row) == COLUMNS and row["mode"] == mode and row["ours_ms"] > 0
    assert all(p.grad is None for p in module.parameters()), "what is timed is the attention"


@pytest.mark.slow
def test_rows_of_probabilities():
    rows = bench.bench(["probabilities"], ONCE)
    assert [row["case"] for row in rows] == ["20 words", "40 words", "80 words", "40 to 120 words"]
    assert all(set(row) == COLUMNS and row["baseline"] == "decoding" for row in rows[:3])
    assert all(row["ratio"] == pytest.approx(row["ours_ms"] / row["baseline_ms"], rel=0.1) for row in rows[:3])
    assert [line.count("x as long") for line in bench.table(rows).splitlines()] == [1, 1, 1, 0]


@pytest.mark.slow
def test_systems_beside_the_papers_layer(tiny_network):
    rows = whole_parser.beside(ONCE)
    assert [row["mode"] for row in rows[::2]] == ["span full", "span lean", "span glass", "no label attention"]
    assert [row["case"].split(",")[0] for row in rows] == ["parse", "training step"] * 4
    assert all(set(row) == COLUMNS and row["baseline"] == "minilm" and row["ratio"] > 0 for row in rows)
    assert "x as long" in bench.table(rows)


def test_rows_read_together(tiny_network):
    rows = whole_parser.together(ONCE)
    assert [row["mode"] for row in rows] == ["forward", "forward+backward"]
    assert all(set(row) == COLUMNS and row["baseline"] == "padded to the longest" for row in rows)


def test_a_row_of_the_layer():
    rows = routines.layer_rows(ONCE, 2, 3, 4, ("forward", "forward+backward", "cached"))
    assert [row["mode"] for row in rows] == ["forward", "forward+backward", "cached"]
    assert all(set(row) == COLUMNS and row["ours_ms"] > 0 for row in rows)


@pytest.fixture
def tiny_network(monkeypatch, sample):
    """The rows of parse and train on MiniLM with a handful of sentences."""

    original = whole_parser.network_and_sentences

    def few(settings):
        network, collator, _, _ = original(settings)
        return network, collator, sample[:4], "four sentences"

    monkeypatch.setattr(whole_parser, "network_and_sentences", few)


def test_parts_add_up_and_the_clocks_are_taken_off(tiny_network):
    decode = predict.decode_output
    whole, *parts = (row for row in whole_parser.parse(ONCE) if "bf16" not in str(row["mode"]))
    assert whole["routine"] == "parse" and whole["ratio"] > 0
    assert re.fullmatch(r"minilm, fp32, [\d,]+ words/s", whole["mode"])
    assert whole["baseline"].startswith("bare encoder on ")
    named = {row["case"]: row["ours_ms"] for row in parts}
    assert list(named) == [
        "encoder", "self-attention", "label attention", "spans", "arcs", "decoding", "everything else", "sum",
    ]  # fmt: skip
    assert all(value > 0 for value in named.values())
    assert named.pop("sum") == pytest.approx(sum(named.values()), abs=0.01)
    assert predict.decode_output is decode


def test_a_start_is_measured_in_processes_of_their_own(monkeypatch):
    monkeypatch.setattr(whole_parser.subprocess, "run", lambda command, **_: commands.append(command[1:]))
    monkeypatch.setattr(
        whole_parser.os, "times", lambda: SimpleNamespace(children_user=len(commands) ** 2, children_system=0)
    )
    commands = []
    (row,) = whole_parser.start(Settings(repeats=2))
    assert [command[0] for command in commands] == ["-m", "-c"] * 3
    assert set(row) == COLUMNS and (row["ours_ms"], row["baseline_ms"]) == (
        7000,
        9000,
    )  # the first round does not count
    assert row["ratio"] == round((5 / 7 + 9 / 11) / 2, 4), "how many times as long ours takes"
    assert "x as long" in bench.table([row])


def test_a_training_step(tiny_network):
    (row,) = whole_parser.train(ONCE)
    assert row["routine"] == "train" and row["ours_ms"] > 0


def test_a_look_inside(tiny_network):
    (row,) = whole_parser.look(ONCE)
    assert row["routine"] == "look" and row["ours_ms"] > 0 and set(row) == COLUMNS


def test_a_look_inside_the_span(tiny_network):
    (row,) = whole_parser.look(Settings(repeats=1, preset="minilm-span"))
    assert row["mode"] == "terms of all constituents" and row["ours_ms"] > 0


def test_an_encoder_that_is_not_downloaded():
    with random_encoder(paper_chinese().model) as model:
        from transformers import AutoConfig

        assert AutoConfig.from_pretrained(model.encoder.pretrained).vocab_size == 21128
    unknown = override(paper_chinese(), {"model.encoder.pretrained": "minilm2"}).model
    with pytest.raises(LalkitError, match="shape of 'minilm2'"), random_encoder(unknown):
        pass


def test_unknown_routine_and_device():
    with pytest.raises(ParameterError, match="no routine 'fast'"):
        bench.bench(["fast"], ONCE)
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="no device 'cuda'"):
            bench.bench(["spans"], Settings("cuda"))
    with pytest.raises(ParameterError, match="--repeats is 0\n  Give 1 or more"):
        bench.bench(["spans"], Settings(repeats=0))


@pytest.mark.parametrize("routine", [whole_parser.parse, whole_parser.train])
def test_an_encoder_from_scratch_cannot_be_compared_with_a_bare_encoder(routine):
    with pytest.raises(ParameterError, match="the preset chinese has no pretrained encoder .*\n.*--preset minilm"):
        routine(Settings(repeats=1, preset="chinese"))


def test_the_table_names_every_row():
    row = compare(Settings(repeats=1), "layer", "8x30", "forward", "b", lambda: torch.ones(1), lambda: torch.ones(1))
    assert "layer" in bench.table([row]) and "8x30" in bench.table([row]) and "x as fast" in bench.table([row])


def test_a_few_sentences_and_batches_are_as_many_as_named(monkeypatch):
    monkeypatch.setattr(measure, "LARGE", 0)
    _, _, sentences, name = measure.network_and_sentences(replace(ONCE, preset="minilm"))
    assert len(sentences) == measure.FEW and name.endswith(f", {measure.FEW} sentences")
    monkeypatch.setattr(whole_parser, "batches", lambda lengths, words: [[i] for i in range(7)])
    assert len(whole_parser._training_batches(ONCE, sentences)[0]) == whole_parser.STEPS


def test_rows_are_written_to_a_file(tmp_path, monkeypatch):
    row = compare(Settings(repeats=1), "layer", "8x30", "forward", "b", lambda: torch.ones(1), lambda: torch.ones(1))
    monkeypatch.setattr(bench, "bench", lambda routines, settings: [row])
    code, out, err = lalkit("bench", "--json", tmp_path / "rows.json")
    assert code == 0 and "8x30" in out, err
    assert json.loads((tmp_path / "rows.json").read_text()) == [row]
