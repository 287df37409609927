"""Weights that are not those of the parser: each is refused when it is loaded, with the name of the tensor."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import lalkit
from lalkit.chart import machine
from lalkit.network.predict import predict
from lalkit.training.checkpoint import load_model
from lalkit.treebank.corpora import load
from tests.hostile.table import case, command_refused, refused, table


@pytest.fixture
def folder(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def weights(folder, kind="model"):
    return folder / json.loads((folder / f"{kind}.json").read_text())["weights"]


def change(file, change, prefix=""):
    """Change the tensor of the first matrix of the file in place; return its name."""
    tensors = load_file(file)
    name = next(
        name for name, x in sorted(tensors.items()) if x.ndim == 2 and x.is_floating_point() and name.startswith(prefix)
    )
    change(tensors, name)
    save_file(tensors, file)
    return name


def put(value):
    def change(tensors, name):
        tensors[name][0, 0] = value

    return change


def cast(kind):
    return lambda tensors, name: tensors.update({name: tensors[name].to(kind)})


def to(function):
    return lambda tensors, name: tensors.update({name: function(tensors[name]).contiguous()})


@table(
    "harm",
    [
        case("one NaN", put(float("nan"))),
        case("one infinity", put(float("inf"))),
        case("one minus infinity", put(-float("inf"))),
        case("one 1e30", put(1e30)),
        case("all NaN", to(lambda x: x * float("nan"))),
        case("all 1e38", to(lambda x: x * 0 + 1e38)),
        *(
            case(f"{kind}", cast(getattr(torch, kind)))
            for kind in ("int64", "int32", "int8", "uint8", "bool", "complex64", "float8_e4m3fn")
        ),
        case("turned", to(lambda x: x.T[:, :1])),
        case("one row less", to(lambda x: x[1:])),
        case("one row more", to(lambda x: torch.cat([x, x[:1]]))),
        case("one more axis", to(lambda x: x[None])),
        case("flat", to(lambda x: x.flatten())),
        case("no values", to(lambda x: x[:0])),
        case("a tensor is missing", lambda tensors, name: tensors.pop(name)),
        case("a tensor has another name", lambda tensors, name: tensors.update({name + "s": tensors.pop(name)})),
        case("a tensor too many", lambda tensors, name: tensors.update({name + ".more": torch.ones(2)})),
        case("all tensors are missing", lambda tensors, name: tensors.clear()),
    ],
)
def test_weights_of_a_parser(folder, harm):
    names = set(load_file(weights(folder)))
    name = change(weights(folder), harm)
    with refused(("copy", name if len(names) == len(load_file(weights(folder))) else "")):
        lalkit.load(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_point_numbers_are_accepted(folder, kind):
    tensors = {name: x.to(kind) for name, x in load_file(weights(folder)).items()}
    save_file(tensors, weights(folder))
    parser = lalkit.load(folder)
    assert {p.dtype for p in parser.network.parameters()} == {torch.float32}
    assert parser.parse("One two.").sentence.words == ("One", "two", ".")


@pytest.mark.parametrize(("task", "harm"), [("joint", "nan"), ("constituents", "nan"), ("joint", "memory")])
def test_a_sentence_that_cannot_be_decoded_is_named_by_its_file(tiny_parser, monkeypatch, task, harm):
    loaded, sentences = load_model(tiny_parser), load("sample", "dev").sentences[:9]
    monkeypatch.setattr(loaded.network, "config", replace(loaded.network.config, task=task))
    if harm == "nan":
        with torch.no_grad():
            next(loaded.network.parameters()).fill_(float("nan"))
    else:
        monkeypatch.setattr(machine, "SMALL", 0)
        monkeypatch.setattr(machine, "available_bytes", lambda: 0)
    with refused("dev.trees, line "):
        predict(loaded.network, loaded.collator, sentences, threads=1)


@table(
    "data",
    [
        case("empty", b""),
        case("text", b"weights"),
        case("a pickle", b"\x80\x04\x95\x00"),
        case("a zip archive", b"PK\x03\x04" + b"\0" * 100),
        case("a length that is too large", b"\xff" * 8 + b"{}"),
        case("a header that is no JSON", (10).to_bytes(8, "little") + b"0123456789"),
        case("a header that is cut off", (1000).to_bytes(8, "little") + b"{"),
        case("no tensors", (2).to_bytes(8, "little") + b"{}"),
        case("a header of 1,000 brackets", (1000).to_bytes(8, "little") + b"[" * 1000),
        case("half of the file", ...),
    ],
)
def test_files_that_hold_no_weights(folder, data):
    file = weights(folder)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if data is ... else data)
    with refused("copy"):
        lalkit.load(folder)


RESUME = ["train", "--treebank", "sample", "--preset", "tiny", "--epochs", "2", "--workers", "1", "--threads", "1",
          "--out", "copy", "--resume"]  # fmt: skip


@table(
    ("prefix", "harm"),
    [
        case("a weight is NaN", "model.", put(float("nan"))),
        case("a weight is a whole number", "model.", cast(torch.int64)),
        case("a weight is missing", "model.", lambda tensors, name: tensors.pop(name)),
        case("a weight has another shape", "model.", to(lambda x: x[1:])),
        case("a moment is NaN", "adam.exp_avg.", put(float("nan"))),
        case("a moment is infinite", "adam.exp_avg_sq.", put(float("inf"))),
        case("a moment is negative", "adam.exp_avg_sq.", put(-1.0)),
        case("a moment has another shape", "adam.exp_avg.", to(lambda x: x[1:])),
        case("a moment is a whole number", "adam.exp_avg.", cast(torch.int64)),
        case("a moment is missing", "adam.exp_avg.", lambda tensors, name: tensors.pop(name)),
        case(
            "all moments are missing",
            "adam.exp_avg.",
            lambda tensors, name: [tensors.pop(n) for n in list(tensors) if n.startswith("adam.")],
        ),
        case(
            "a moment of nothing",
            "adam.exp_avg.",
            lambda tensors, name: tensors.update({"adam.exp_avg.nothing": torch.ones(2)}),
        ),
    ],
    sample=False,
)
def test_weights_of_a_run(folder, tmp_path, prefix, harm):
    change(weights(folder, "resume"), harm, prefix)
    command_refused(tmp_path, RESUME, "copy")
