"""Parsers by name, in a folder and on the hub: found, or refused with one error. The hub is a folder here."""

import json
import shutil

import huggingface_hub
import pytest
from huggingface_hub import metadata_load

from lalkit.api import Parser
from lalkit.errors import ModelError, warn_once
from lalkit.training import named


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(named, "shipped", lambda: tmp_path / "data")
    folder = tmp_path / "data" / "models" / "en-x"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    (folder / "card.json").write_text('{"licence": "CC BY 4.0"}')
    return folder


def test_by_name_by_folder_and_by_another_name_but_not_without_a_card(repository, tmp_path, monkeypatch):
    """Damaged cards are in tests/hostile/test_files.py."""
    assert named.find("en-x") == repository and named.find(tmp_path) == tmp_path
    assert named.names() == ["en-x"]
    for other in ("en_x", "en_y"):  # installed from wheels; lalkit's own parser of the same name comes first
        shutil.copytree(repository, tmp_path / "zz" / "lalkit_models" / other)
    monkeypatch.syspath_prepend(tmp_path / "zz")
    assert named.names() == ["en-x", "en-y"] and named.find("en-x") == repository
    monkeypatch.setattr(named, "DEFAULTS", ("en-z", "en-x"))
    assert named.find("default") == repository
    (repository / "card.json").unlink()
    with pytest.raises(ModelError, match=r"card\.json: "):
        named.find("en-x")


def test_the_default_parser_says_which_it_is_where_en_is_not_installed(repository, caplog):
    warn_once.cache_clear()
    for name in ("en-span", "en-span", "en"):
        shutil.copytree(repository, repository.parent / name, dirs_exist_ok=True)
        assert named.find("default").name == named.default() == name
    (message,) = caplog.messages
    assert "is en-span here: en is not installed" in message and "pip install FOLDER/lalkit_models_en-*.whl" in message


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder that stands for the hub, and the options that it was called with."""
    calls = []

    def create(name, exist_ok, **options):
        calls.append(options)
        (tmp_path / name).mkdir(parents=True, exist_ok=exist_ok)
        return f"https://huggingface.co/{name}"

    def upload(repo_id, folder_path, token=None):
        shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    def download(name, allow_patterns, **options):
        calls.append(options)
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "create_repo", create)
    monkeypatch.setattr(huggingface_hub, "upload_folder", upload)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return tmp_path, calls


def test_a_parser_goes_to_the_hub_and_back(hub, tiny_parser):
    folder, calls = hub
    parser = Parser.from_pretrained(tiny_parser)
    address = parser.push_to_hub("someone/en-tiny", licence="CC BY 4.0", private=True)
    assert address == "https://huggingface.co/someone/en-tiny"
    again = Parser.from_pretrained("someone/en-tiny", revision="v1")
    assert calls == [{"private": True}, {"revision": "v1"}]
    assert again("It works.").to_ptb() == parser("It works.").to_ptb()
    card = metadata_load(folder / "someone" / "en-tiny" / "README.md")
    assert (card["license"], card["language"], card["library_name"]) == ("cc-by-4.0", "en", "lalkit")
    assert card["pipeline_tag"] == "token-classification" and card["datasets"] == ["sample"]
    (result,) = card["model-index"][0]["results"]
    scores = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert scores["f1"] == round(parser.info["dev"]["f1"], 2) and result["dataset"]["split"] == "dev"
    facts = json.loads((folder / "someone" / "en-tiny" / "card.json").read_text())
    assert (facts["name"], facts["treebank"], facts["seeds"][0]["seed"]) == ("en-tiny", "sample", facts["seed"])
    again.push_to_hub("someone/copy")  # with the card that it was loaded with
    copies = [(folder / "someone" / name / "README.md").read_text() for name in ("en-tiny", "copy")]
    assert copies[0] == copies[1]


def test_what_cannot_go_to_the_hub_stays_here(hub, tiny_parser, monkeypatch):
    def refuse(*args, **options):
        raise ConnectionError("no such owner")

    with pytest.raises(ModelError):
        Parser.load(tiny_parser).push_to_hub("someone/en-tiny")  # without a licence
    monkeypatch.setattr(huggingface_hub, "create_repo", refuse)
    with pytest.raises(ModelError, match="hf:x/y: .*ConnectionError"):
        Parser.load(tiny_parser).push_to_hub("x/y", licence="CC BY 4.0")
    assert list(hub[0].iterdir()) == []


def test_metadata_names_only_treebanks_that_are_known(tmp_path):
    facts = {"name": "x", "licence": "mine", "language": "en", "seed": 1, "seeds": [{"seed": 1, "dev": {"f1": 50.0}}]}
    for treebank, names in (("craft:constituents+gum/news*0.5", ["craft", "gum"]), ("/home/me/trees", None)):
        text = named.metadata({**facts, "treebank": treebank})
        (tmp_path / "README.md").write_text(text)
        card = metadata_load(tmp_path / "README.md")
        assert card.get("datasets") == names and "/home" not in text
        assert (card["license"], card["license_name"]) == ("other", "mine")
