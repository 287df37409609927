"""Parsers by name: found, or refused with the reason; and those in data/models as they are."""

import json
import subprocess
import sys

import pytest

from lalkit.api import Parser
from lalkit.errors import ModelError
from lalkit.models.ship import checksum, verify
from lalkit.training import named as models
from lalkit.treebank.corpora import load

NAMES = models.names()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "shipped", lambda: tmp_path / "data")
    folder = tmp_path / "data" / "models" / "en-x"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    (folder / "card.json").write_text('{"licence": "CC BY 4.0"}')
    return folder


def test_by_name_by_folder_and_by_another_name(repository, tmp_path, monkeypatch):
    assert models.find("en-x") == repository and models.find(tmp_path) == tmp_path
    assert models.names() == ["en-x"]
    monkeypatch.setitem(models.ALIASES, "x", "en-x")
    assert models.find("x") == repository


@pytest.mark.parametrize("name", ["nothing", "", "../models/en-x", "runs/none"])
def test_names_that_are_none(repository, name):
    with pytest.raises(ModelError, match=r"no parser here.*\n.*en-x"):
        models.find(name)


@pytest.mark.parametrize(
    ("card", "says"),
    [("{}", "names no licence"), ('{"licence": ""}', "names no licence"), ("{", "is damaged"), ("[]", "is damaged")],
)
def test_a_card_without_licence(repository, card, says):
    (repository / "card.json").write_text(card)
    with pytest.raises(ModelError, match=f"card.json: {says}"):
        models.find("en-x")


def test_no_card(repository):
    (repository / "card.json").unlink()
    with pytest.raises(ModelError, match=r"card.json: cannot be read \(No such file"):
        models.find("en-x")


def test_from_the_hub(repository, monkeypatch):
    """What is asked of the hub; and what is said where it cannot be had (tests are offline)."""
    import huggingface_hub

    def download(name, allow_patterns):
        assert name == "someone/en-x" and "*.safetensors" in allow_patterns
        return str(repository)

    with pytest.raises(ModelError, match="hf:someone/en-x: cannot be downloaded"):
        models.find("hf:someone/en-x")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert models.find("hf:someone/en-x") == repository


@pytest.mark.skipif(not NAMES, reason="no parser is shipped")
def test_what_is_shipped_is_small():
    sizes = [models.read_card(models.folder() / name).size for name in NAMES]
    assert max(sizes) <= 32e6 and sum(sizes) <= 130e6


@pytest.mark.parametrize("name", NAMES)
def test_the_parses_of_a_shipped_parser_are_those_of_its_card(name):
    """200 of them, or fewer, as they were on the machine that wrote the card."""
    parses = models.read_card(models.folder() / name).facts["parses"]
    assert checksum(Parser.load(name), parses["treebank"]) == parses["sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_alone_and_in_a_batch(name):
    words = [list(s.words) for s in load("sample", "test").sentences[:24]]
    parser = Parser.load(name)
    together = [r.to_dict() for r in parser.parse_all(words, budget=10_000)]
    for number in range(0, len(words), 8):
        alone = parser.parse(words[number]).to_dict()
        assert alone["tree"] == together[number]["tree"] and alone["heads"] == together[number]["heads"]
        assert alone["score"] == pytest.approx(together[number]["score"], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["en", "en-news-span", "zh-sinica"])  # each kind of label attention, and both encoders
def test_in_another_process(name):
    words = [list(s.words) for s in load("sample", "test").sentences[:20] + load("sample", "dev").sentences]
    here = [r.to_ptb() for r in Parser.load(name).parse_all(words)]
    program = (
        "import json, sys, lalkit; p = lalkit.load(sys.argv[1]); "
        "print(json.dumps([r.to_ptb() for r in p.parse_all(json.load(sys.stdin))]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, name], input=json.dumps(words), capture_output=True, text=True, check=True
    )
    assert json.loads(there.stdout) == here


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["en", "en-news", "zh-sinica"]
)  # every kind of card; `lalkit models check` does all of them
def test_the_scores_of_a_card(name):
    """Without the treebank, only the parses are compared. The test above compares the parses of every parser."""
    assert all(stated == found for _, stated, found in verify(name, quick=True))
