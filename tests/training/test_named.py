"""Parsers by name, in a folder and on the hub: found, or refused with one error."""

import shutil

import huggingface_hub
import pytest
from huggingface_hub import metadata_load

from lalkit.api import Parser
from lalkit.errors import ModelError, warn_once
from lalkit.training import named
from tools.ship import metadata


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
    assert [*named.places()] == ["en-x"]
    for other in ("en_x", "en_y"):  # installed from wheels; lalkit's own parser of the same name comes first
        shutil.copytree(repository, tmp_path / "zz" / "lalkit_models" / other)
    monkeypatch.syspath_prepend(tmp_path / "zz")
    assert [*named.places()] == ["en-x", "en-y"] and named.find("en-x") == repository
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


def test_a_parser_comes_from_the_hub(tiny_parser, repository, monkeypatch):
    calls = []

    def download(name, allow_patterns, **options):
        calls.append((name, options))
        if name != "someone/en-x":
            raise ConnectionError("no such owner")
        return str(shutil.copytree(tiny_parser, repository, dirs_exist_ok=True))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    again = Parser.load("hf:someone/en-x", revision="v1")
    assert again.parse("It works.").to_ptb() == Parser.load(tiny_parser).parse("It works.").to_ptb()
    with pytest.raises(ModelError, match="hf:x/y: .*ConnectionError"):
        Parser.load("hf:x/y")
    assert calls == [("someone/en-x", {"revision": "v1"}), ("x/y", {})]


def test_metadata_names_only_treebanks_that_are_known(tmp_path):
    facts = {"name": "x", "licence": "mine", "language": "en", "seed": 1, "seeds": [{"seed": 1, "dev": {"f1": 50.0}}]}
    for treebank, names in (("craft:constituents+gum/news*0.5", ["craft", "gum"]), ("/home/me/trees", None)):
        text = metadata({**facts, "treebank": treebank})
        (tmp_path / "README.md").write_text(text)
        card = metadata_load(tmp_path / "README.md")
        assert card.get("datasets") == names and "/home" not in text
        assert (card["license"], card["license_name"]) == ("other", "mine")
