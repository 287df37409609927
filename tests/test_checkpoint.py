"""Checkpoints that are not whole, or not ours, are refused with their name; a whole one comes back the same."""

import json
import shutil

import pytest
import torch

from lalkit.checkpoint import load_model
from lalkit.errors import ModelError


@pytest.fixture
def copy(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def weights(folder):
    return folder / json.loads((folder / "model.json").read_text())["weights"]


def edit(folder, change):
    content = json.loads((folder / "model.json").read_text())
    change(content)
    (folder / "model.json").write_text(json.dumps(content))


def truncate(path, keep=0.5):
    path.write_bytes(path.read_bytes()[: int(len(path.read_bytes()) * keep)])


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda f: (f / "model.json").unlink(), "model.json: no parser here"),
        (lambda f: truncate(f / "model.json"), "model.json: is damaged"),
        (lambda f: (f / "model.json").write_text("[1]"), "model.json: is damaged"),
        (lambda f: truncate(weights(f)), "safetensors: cannot be read"),
        (lambda f: weights(f).unlink(), "safetensors: cannot be read"),
        (lambda f: weights(f).write_bytes(b"\x80\x04pickle"), "safetensors: cannot be read"),
        (lambda f: edit(f, lambda c: c.update(format="other-1")), "no lalkit-parser-1 checkpoint but 'other-1'"),
        (lambda f: edit(f, lambda c: c["config"]["model"].update(surprise=1)), "unknown settings: .'surprise'"),
        (lambda f: edit(f, lambda c: c["config"]["model"].update(label_hidden=33)), "do not fit the config"),
        (lambda f: edit(f, lambda c: c["config"]["model"].update(layers=2)), "do not fit the config"),
    ],
)
def test_refused(copy, harm, says):
    harm(copy)
    with pytest.raises(ModelError, match=says):
        load_model(copy)


def test_there_and_back(tiny_parser, copy):
    a, b = load_model(tiny_parser), load_model(copy)
    assert a.vocab == b.vocab and a.config == b.config
    assert all(torch.equal(x, y) for x, y in zip(a.network.state_dict().values(), b.network.state_dict().values()))
    assert a.info["dev"]["sentences"] == 44


def test_another_encoder_is_noticed(copy, monkeypatch):
    import lalkit.checkpoint as checkpoint

    def change(content):
        content["config"]["model"]["encoder"]["pretrained"] = "minilm"
        content["encoder_sha256"] = "0" * 64

    edit(copy, change)
    monkeypatch.setattr(checkpoint, "weights_hash", lambda name: "1" * 64)
    with pytest.raises(ModelError, match="not the one this parser was trained with"):
        load_model(copy)
