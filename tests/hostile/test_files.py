"""Files that are damaged, foreign or of another version: each is refused with its name, and changes nothing.

JSON (the parser, the state of a training, cards, notebooks, sweeps), YAML, and weights.
"""

import json
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import lalkit
from lalkit.chart import machine
from lalkit.config import override
from lalkit.errors import ModelError
from lalkit.files import read_json
from lalkit.network.alignment import load_tokenizer
from lalkit.network.word_vectors import load_encoder
from lalkit.reproduce.sweep import plan
from lalkit.training.checkpoint import load_model
from lalkit.training.named import read_card
from lalkit.treebank.corpora import load
from tests.hostile.refusals import command_refused, refused

RESUME = ["train", "--treebank", "sample", "--preset", "tiny", "--epochs", "2", "--threads", "1",
          "--out", "copy", "--resume"]  # fmt: skip
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "a: int = 1", "outputs": []}],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 4,
}  # fmt: skip

# ---------------------------------------------------------------- JSON

DAMAGES = {
    "empty": b"", "null": b"null", "a text": b'"text"', "an empty list": b"[]", "an empty object": b"{}",
    "cut off": b'{"format": "lalkit-parser-1", "runs": [', "latin-1": b'{"name": "caf\xe9"}', "nested deeply": b"[" * 100_000,
    "a folder": Path.mkdir, "a pipe": os.mkfifo, "a device": lambda file: file.symlink_to("/dev/zero"),
}  # fmt: skip
# Python's own reader accepts most of these: the last of two keys counts, and numbers of every size. Later steps would fail.
STRICT = [
    '{"a": 1, "\\u0061": 1}', "[" * 100_000, '{"a": 9223372036854775808}',
    '{"a": ' + "9" * 5000 + "}", '{"a": NaN}', '{"a": 1e400}', '{"a": "\\ud800"}',
]  # fmt: skip
WITHIN = ['{"a": 9223372036854775807, "b": -1e300}', '{"a":' * 100 + "1" + "}" * 100]


def test_json_is_read_more_strictly_than_by_python(tmp_path, subtests):
    file = tmp_path / "a.json"
    for text in STRICT:
        file.write_text(text)
        with subtests.test(text[:40]), refused("a.json"):
            read_json(file, "Get it again.")
    for text in WITHIN:
        file.write_text(text)
        assert read_json(file, "") == json.loads(text)


# Values that are refused, by their place in the file. `...` leaves the place out.
MODEL = {
    "format": [None, "lalkit-parser-2", ...], "vocab": [{}, ..., 3], "info": [None, "x"],
    "info/common": [3, "the", [3]], "info/hyphens": ["no", None], "info/marks": [3, ".", [None]],
    "weights": [None, "", ..., "nowhere.safetensors", "..", "../copy", "a\0b"],
    "vocab/labels": [None, "abc", [1, 2], {"NP": 1}, ..., []], "vocab/labels/2": [3, ["NP"], "", "<H>", "VP"],
    "vocab/tags": [None, "abc", [1, 2]], "vocab/tags/0": [3, "", "N N"], "vocab/words": ["abc", [[]]],
    "config": [None, [], ...], "config/model/d_ff": [None, "x", 2.5, True, -1], "config/model/layers": [0, 2],
    "config/model/surprise": [1], "config/train/lam": [2, float("nan")], "frozen_sha256": ["0" * 64, 3],
}  # fmt: skip
STATE = {
    "weights": [None, ..., "../model.json", "a\0b"], "config": [None, ...], "treebank": [3, "craft", ...],
    "data_sha256": ["0" * 64, 3], "state": [None, "x", {"surprise": 1}, ..., {}], "state/epoch": [None, "2", -1, 1.5, 10**400],
    "state/best": ["x"], "state/scale": [-1], "state/history": [None, [3], [{}]],
}  # fmt: skip
PROFILE = {
    "corpus": [..., 3], "labels": [None, [3]], "led": [None, [[]], [["x"]]], "spans": ["x", 0], "norm": ["bogus"],
}  # fmt: skip
CARD = {"licence": [None, "", ..., [1]]}
BOOK = {
    "nbformat": [None, "4", 99, ...], "metadata": [None, [], ...], "cells": [None, {}, ...], "cells/0": [None, "x"],
    "cells/0/cell_type": [3, "else", ...], "cells/0/source": [[1], ...], "cells/0/metadata/tags": [3, "parameters"],
}  # fmt: skip


TABLES = {"model.json": MODEL, "profile.json": PROFILE, "card.json": CARD, "resume.json": STATE, "a.ipynb": BOOK}


@pytest.fixture
def folder(tiny_parser, tmp_path):
    """A copy of a parser, with a profile that fits it and a card."""
    folder = shutil.copytree(tiny_parser, tmp_path / "copy")
    labels = json.loads((folder / "model.json").read_text())["vocab"]["labels"][2:]
    ones = [1] * len(labels)
    profile = {"corpus": "c", "norm": "exact", "spans": 9, "labels": labels, "led": [ones] * 6, "all": ones}
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "card.json").write_text('{"licence": "CC BY 4.0"}')
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    assert "c" in str(lalkit.load(folder).parse("One two.").explain())
    return folder


def put(whole, path, value):
    """Put a value at a place of a JSON text; `...` takes the place out."""
    *above, last = (int(name) if name.isdigit() else name for name in path.split("/"))
    content = node = json.loads(whole)
    for name in above:
        node = node[name]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return json.dumps(content).encode()


def spoilt(whole, table):
    """Yield every damage of a file, and the file with every wrong value of a table."""
    yield from DAMAGES.items()
    for path, values in table.items():
        yield from ((f"{path} {value!r}"[:80], put(whole, path, value)) for value in values)


# What reads a file: its place, and a call or the arguments of a command; then the place that the error names.
READERS = {
    "model.json": ("copy", lambda folder: lalkit.load(folder).parse("One two.").explain(), "copy"),
    "profile.json": ("copy", lambda folder: lalkit.load(folder).parse("One two.").explain(), "copy"),
    "card.json": ("copy", read_card, "copy"),
    "resume.json": ("copy", RESUME, "copy"),
    "a.ipynb": (".", ["run", "a.ipynb", "--out", "o"], "a.ipynb"),
    "run.json": ("o.parts", ["parse", "--model", "copy", "One two.", "--out", "o"], "o.parts"),
    "sweep.json": ("sweep", ["report", "sweeps", "sweep", "--out", "o"], "sweep"),
}
SLOW = ("resume.json", "a.ipynb", "run.json", "sweep.json")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in READERS])
def test_spoilt_json(folder, tmp_path, subtests, name):
    place, read, names = READERS[name]
    file = tmp_path / place / name
    file.parent.mkdir(exist_ok=True)
    for what, data in spoilt(file.read_bytes() if file.exists() else b"{}", TABLES.get(name, {})):
        file.unlink(missing_ok=True)
        data(file) if callable(data) else file.write_bytes(data)
        with subtests.test(what):
            if callable(read):
                with refused(names):
                    read(folder)
            else:
                command_refused(tmp_path, read, names)
        if data is Path.mkdir:
            file.rmdir()


# ---------------------------------------------------------------- code

AUTO = {f"Auto{kind}": f"code.{kind}" for kind in ("Config", "Model", "Tokenizer")}
CUSTOM = {"model_type": "custom", "auto_map": AUTO}


def test_the_code_of_an_encoder_never_runs(folder, tmp_path, subtests, monkeypatch):
    """Whatever stands on standard input: transformers would ask there whether to run it."""
    (encoder := tmp_path / "encoder").mkdir()
    (encoder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for name in ("config.json", "tokenizer_config.json"):
        (encoder / name).write_text(json.dumps(CUSTOM))
    file = folder / "model.json"
    file.write_bytes(put(file.read_bytes(), "config/model/encoder/pretrained", str(encoder)))
    train = [*RESUME[:-3], "--out", "new", "--set", f"model.encoder.pretrained={encoder}"]
    asked = [["evaluate", "copy", "--treebank", "sample"], ["search", "NP", "--treebank", "sample", "--model", "copy"]]
    for command in (["parse", "--model", "copy"], ["explain", "--model", "copy", "One."], train, *asked):
        with subtests.test(command[0]):
            command_refused(tmp_path, command, "encoder", stdin=b"y\n" * 9)
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for load_part in (load_tokenizer, partial(load_encoder, weights=True), partial(load_encoder, weights=False)):
        with pytest.raises((ModelError, ValueError)):
            load_part(str(encoder))
    (encoder / "config.json").unlink()
    os.mkfifo(encoder / "config.json")
    with refused("encoder"):
        load_tokenizer(str(encoder))
    assert not (tmp_path / "ran").exists()


# ---------------------------------------------------------------- YAML

SWEEP = "name: a\nquestion: why\ntreebank: sample\npreset: tiny\nseeds: [1]\ngrid: {a: {b: {}}}\n"
CLAIM = SWEEP + "claims: [{says: SAYS, better: {}, than: {}, by: f1}]\n"
SAYS = {
    "20,000 brackets": "[" * 20_000, "a list inside itself": "&a [*a]", "a day that is not": "2001-02-30", "NaN": ".nan",
    "5,000 digits": "9" * 5000, "a command": '!!python/object/apply:os.system ["true"]',
}  # fmt: skip
ANCHORS = "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9) if k else 1}]\n" for k in range(30))
YAML = {
    **{name: CLAIM.replace("SAYS", says) for name, says in SAYS.items()},
    "2,000 lists in lists": "- " * 2_000 + "x", "an open list": "name: [",
    "1 and '1'": SWEEP.replace("{b: {}}", "{1: {}, '1': {}}"),
    "nested anchors": ANCHORS + SWEEP, "as a key": f"{ANCHORS}? *a29\n: 1\n", "long": SWEEP + "# a\n" * 250_000,
    "a key twice": SWEEP + "name: b\n", "a NUL": SWEEP + "\0", "empty": "", "a text": "text",
}  # fmt: skip


def test_yaml_of_a_sweep(tmp_path, subtests):
    for name, text in YAML.items():
        (tmp_path / "a.yml").write_text(text)
        with subtests.test(name), refused("a.yml"):
            plan(tmp_path / "a.yml")


# ---------------------------------------------------------------- weights


def made(function):
    return lambda tensors, name: tensors.update({name: function(tensors[name]).contiguous()})


HARMS = {
    **{f"row of {value}": made(lambda x, value=value: x.index_fill(0, torch.tensor([0]), value))
       for value in (float("nan"), float("inf"), 1e30, -1)},
    "int64": made(torch.Tensor.long), "bool": made(torch.Tensor.bool), "complex": made(lambda x: x.to(torch.complex64)),
    "float8": made(lambda x: x.to(torch.float8_e4m3fn)),
    "one row less": made(lambda x: x[1:]), "one more axis": made(lambda x: x[None]), "no values": made(lambda x: x[:0]),
    "a tensor is missing": lambda tensors, name: tensors.pop(name),
    "a tensor too many": lambda tensors, name: tensors.update({name + ".more": torch.ones(2)}),
}  # fmt: skip
OF_A_RUN = [  # the beginning of a tensor's name, and the harm
    *(("model.", harm) for harm in ("row of nan", "int64", "a tensor is missing", "one row less")),
    *(("adam.exp_avg.", harm) for harm in ("row of nan", "int64", "a tensor is missing", "one row less", "a tensor too many")),
    ("adam.exp_avg_sq.", "row of inf"), ("adam.exp_avg_sq.", "row of -1"),
]  # fmt: skip
NO_WEIGHTS = [b"", b"weights", b"PK\x03\x04" + b"\0" * 100, (1000).to_bytes(8, "little") + b"{"]


def weights_of(folder, kind="model"):
    return folder / json.loads((folder / f"{kind}.json").read_text())["weights"]


def harm(file, name, prefix=""):
    """Change the first matrix of the file whose name begins so."""
    tensors = load_file(file)
    matrices = (n for n, x in sorted(tensors.items()) if x.ndim == 2 and x.is_floating_point())
    matrix = next(n for n in matrices if n.startswith(prefix))
    HARMS[name](tensors, matrix)
    save_file(tensors, file)


def test_weights_of_a_parser(folder, subtests):
    file = weights_of(folder)
    whole, harmless = file.read_bytes(), load_file(file)
    for name in HARMS.keys() - {"row of -1"}:
        harm(file, name)
        with subtests.test(name), refused("copy"):
            lalkit.load(folder)
        file.write_bytes(whole)
    for data in (*NO_WEIGHTS, whole[: len(whole) // 2]):
        file.write_bytes(data)
        with subtests.test(repr(data[:20])), refused("copy"):
            lalkit.load(folder)
    for make in (os.mkfifo, partial(os.symlink, "/dev/zero")):
        file.unlink()
        make(file)
        end = os.open(file, os.O_RDWR)  # safetensors would wait for a writer, and hear no alarm
        with subtests.test(str(make)), refused("copy", "it is a pipe or a device"):
            lalkit.load(folder)
        os.close(end)
    file.unlink()
    save_file({name: x.to(torch.bfloat16) for name, x in harmless.items()}, file)
    parser = lalkit.load(folder)
    assert {p.dtype for p in parser.network.parameters()} == {torch.float32}
    assert parser.parse("One two.").sentence.words == ("One", "two", ".")


def test_weights_of_a_run(folder, tmp_path, subtests):
    file = weights_of(folder, "resume")
    whole = file.read_bytes()
    for prefix, name in OF_A_RUN:
        harm(file, name, prefix)
        with subtests.test(f"{prefix} {name}"):
            command_refused(tmp_path, RESUME, "copy")
        file.write_bytes(whole)


@pytest.mark.parametrize(("task", "reason"), [("joint", "nan"), ("constituents", "nan"), ("joint", "memory")])
def test_a_sentence_that_cannot_be_decoded_is_named_by_its_file(tiny_parser, monkeypatch, task, reason):
    loaded, sentences = load_model(tiny_parser), load("sample", "dev").sentences[:9]
    loaded = replace(loaded, config=override(loaded.config, {"model.task": task}))
    if reason == "nan":
        with torch.no_grad():
            next(loaded.network.parameters()).fill_(float("nan"))
    else:
        monkeypatch.setattr(machine, "SMALL", 0)
        monkeypatch.setattr(machine, "available_bytes", lambda: 0)
    with refused("dev.trees, line "):
        loaded.parse(sentences, threads=1)


def test_a_pipe_or_a_device_as_a_treebank_or_a_sweep_is_not_read(tmp_path, alarm):
    alarm(60)
    os.mkfifo(tmp_path / "train.trees")
    (tmp_path / "dev.conllu").symlink_to("/dev/zero")
    for part, name in (("train", "train.trees"), ("dev", "dev.conllu")):
        for read in (partial(load, str(tmp_path), part), partial(plan, tmp_path / name)):
            with refused(name):
                read()
