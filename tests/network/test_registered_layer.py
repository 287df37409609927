"""A layer of a user, in the place of the paper's layer: trained, saved, explained, and never replaced by another one."""

import importlib
import json
import re
import sys
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import lalkit
from lalkit.api import Parser
from lalkit.config import LAYERS, MODULES, override, register_layer, tiny
from lalkit.errors import ModelError
from lalkit.training.loop import train
from lalkit.treebank.corpora import load
from tests.command import lalkit as command


@dataclass(frozen=True)
class PoolConfig:
    heads: int = 3
    d_out: int = 8
    gain: float = 1.0
    faulty: bool = False


class Pool(nn.Module):
    def __init__(self, config, d_content, d_position):
        super().__init__()
        self.config, size = config, config.heads * config.d_out
        self.query, self.out = nn.Linear(d_content + d_position, config.heads), nn.Linear(d_content + d_position, size)

    def forward(self, x, mask):
        logits = self.query(x).transpose(1, 2).masked_fill(~mask[:, None], -1e9)
        attention = self.config.gain * torch.softmax(logits, -1)
        y = self.out(x).unflatten(-1, (self.config.heads, -1))
        y = y + (attention @ x).mean(-1)[:, None, :, None]
        return (y[:, 1:] if self.config.faulty else y), attention


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "pool"
    register_layer("pool", Pool, PoolConfig)
    settings = {"model.label_attention": "pool", "model.label_attention.gain": 0.5, "train.epochs": 2}
    train(override(tiny(), settings), "sample", folder)
    yield folder
    LAYERS.pop("pool", None)


def test_it_is_trained_saved_loaded_and_explained(run):
    saved = json.loads((run / "model.json").read_text())["config"]["model"]["label_attention"]
    assert saved == {"heads": 3, "d_out": 8, "gain": 0.5, "faulty": False, "layer": "pool"}
    parser, sentences = Parser.load(run), load("sample", "test").sentences[:6]
    assert isinstance(parser.network.label_attention.layer, Pool)
    results = parser.parse_all(sentences)
    assert [r.to_ptb() for r in results] == [parser.parse(s).to_ptb() for s in sentences]
    table = parser.explain(sentences).table
    sums = table.groupby(["sentence", "start", "end", "label"])["value"].sum()
    scores = table.groupby(["sentence", "start", "end", "label"])["score"].first()
    assert sums.to_numpy() == pytest.approx(scores.to_numpy(), abs=1e-4)
    assert set(table.loc[table["kind"] == "head", "part"]) == {f"label head {n}" for n in range(3)}
    before = results[0].to_dict()["score"]
    with parser.without(heads=[0, 1, 2]):
        assert parser.parse(sentences[0]).to_dict()["score"] != before


def test_a_saved_layer_is_never_replaced_by_another_one(run, monkeypatch):
    monkeypatch.delitem(LAYERS, "pool")
    with pytest.raises(ModelError, match="(?s)the layer 'pool', which is not registered here.*register_layer"):
        Parser.load(run)


@dataclass(frozen=True)
class NoDefaults:
    heads: int
    d_out: int


@dataclass
class NotFrozen:
    heads: int = 2
    d_out: int = 4


@dataclass(frozen=True)
class NoHeads:
    d_out: int = 4


@dataclass(frozen=True)
class NoSize(PoolConfig):
    heads: int = 0


@pytest.mark.parametrize(
    ("name", "config", "reason"),
    [
        ("pool-2", PoolConfig, "pool-2.*not possible"),
        ("none", PoolConfig, "none.*not possible"),
        (7, PoolConfig, "cannot be registered"),
        ("other", PoolConfig(), "cannot be registered"),
        ("other", NoSize, "below 1"),
        ("other", NoDefaults, "NoDefaults.*missing"),
        ("other", NotFrozen, "NotFrozen.*frozen"),
        ("other", NoHeads, "NoHeads"),
        ("other", dict, "dict.*cannot be registered"),
    ],
)
def test_what_cannot_be_registered(name, config, reason):
    with pytest.raises(ModelError, match=reason):
        register_layer(name, Pool, config)
    assert name not in LAYERS


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"model.label_attention": "missing"}, "the layer 'missing', which is not registered"),
        ({"model.label_attention": {"layer": 3}}, "not registered"),
        ({"model.label_attention": "pool", "model.label_attention.d_kv": 3}, "no setting .*d_kv"),
        ({"model.label_attention": {"layer": "pool", "size": 3}}, "unknown settings: 'size'"),
    ],
)
def test_settings_of_layers_that_are_not_there(run, value, reason):
    with pytest.raises(ModelError, match=reason):
        override(tiny(), value)


def test_a_layer_that_returns_something_else_is_named(run, tmp_path):
    settings = {"model.label_attention": "pool", "model.label_attention.faulty": True}
    with pytest.raises(ModelError, match=re.escape("the layer 'pool' returns tensors of the shapes [[")):
        train(override(tiny(), settings), "sample", tmp_path / "faulty")


@pytest.mark.slow
def test_other_processes_import_it_and_without_it_an_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv(MODULES, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_layers.py").write_text(
        "import lalkit\nfrom tests.network.test_registered_layer import Pool, PoolConfig\n"
        "lalkit.register_layer('mine', Pool, PoolConfig)\n"
    )
    plan = "name: mine\nquestion: Why?\ntreebank: sample\npreset: tiny\nseeds: [1]\ngrid: {layer: {mine: {}}}\n"
    (tmp_path / "plan.yml").write_text(f"{plan}set: {{model.label_attention: mine, train.epochs: 1}}\n")
    code, _, err = command("sweep", "plan.yml", "--out", "runs", cwd=tmp_path)
    assert code == 2 and "'mine', which is not registered" in err
    sys.path.append(str(tmp_path))
    importlib.import_module("my_layers")
    ((_, result),) = lalkit.sweep(lalkit.plan(tmp_path / "plan.yml"), tmp_path / "runs")
    assert result["status"] == "ok", result["error"]
    (folder,) = (tmp_path / "runs").glob("**/parser")
    options = "--model", folder, "--workers", 1, "--out", "parses.ptb"
    code, _, err = command("--import", "my_layers", "parse", *options, stdin=b"It rained.\nIt snowed.\n", cwd=tmp_path)
    assert (code, len((tmp_path / "parses.ptb").read_text().splitlines())) == (0, 2), err
    code, _, err = command("--import", "no_layers", "models", cwd=tmp_path)
    assert code == 2 and "the module 'no_layers' cannot be imported" in err
    LAYERS.pop("mine")
    code, _, err = command("parse", "It rained.", "--model", folder, cwd=tmp_path)
    assert code == 2 and re.search("(?s)runs.*the layer 'mine', which is not registered here.*register_layer", err)
