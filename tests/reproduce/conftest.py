"""A treebank of a few sentences, a sweep of two runs over it, and that sweep done."""

import json
from functools import cache

import pytest
import yaml

from lalkit.evaluation import provenance
from lalkit.reproduce import sweep as sweeps
from lalkit.reproduce.sweep import carry_out, plan, sweep
from lalkit.treebank.corpora import shipped
from tests.command import logged


@pytest.fixture(scope="session", autouse=True)
def one_hash_of_the_code():
    """Read the code once, not for each plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "training_hash", cache(provenance.training_hash))
        yield


@pytest.fixture(scope="session")
def few(tmp_path_factory):
    """A folder with the first ten trees of every part of data/sample."""
    folder = tmp_path_factory.mktemp("few")
    for split in ("train", "dev", "test"):
        lines = (shipped() / "sample" / f"{split}.trees").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / f"{split}.trees").write_text("".join(lines[:10]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def content(few):
    return {
        "name": "two", "question": "One layer or two?", "treebank": str(few), "preset": "tiny", "seeds": [1],
        "set": {"train.epochs": 2}, "grid": {"layers": {1: {"model.layers": 1}, 2: {"model.layers": 2}}},
        "profiles": {"other": {"seeds": [3, 4], "set": {"train.epochs": 1}}},
    }  # fmt: skip


@pytest.fixture(scope="session")
def file(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "two.yml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture(scope="session")
def done(file, tmp_path_factory):
    """(folder, messages) of the sweep, one run at a time, in this process: that saves the imports of two others."""
    out = tmp_path_factory.mktemp("done")
    with pytest.MonkeyPatch.context() as patch, logged("lalkit.reproduce.sweep") as messages:
        patch.setattr(sweeps, "launch", lambda folder, task, _: carry_out(folder, json.loads(json.dumps(task))))
        sweep(plan(file), out, jobs=1)
    return out, messages
