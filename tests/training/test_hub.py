"""Parsers on the hub: put there, with a card that the hub can read, and loaded from there again. The hub is a folder here."""

import json
import shutil

import huggingface_hub
import pytest
from huggingface_hub import metadata_load

from lalkit.api import Parser
from lalkit.errors import ModelError
from lalkit.training.hub import metadata


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder that stands for the hub, and what was asked of it."""
    asked = []

    def create(name, exist_ok, **options):
        asked.append(options)
        (tmp_path / name).mkdir(parents=True, exist_ok=exist_ok)
        return f"https://huggingface.co/{name}"

    def upload(repo_id, folder_path, token=None):
        shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    def download(name, allow_patterns, **options):
        asked.append(options)
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "create_repo", create)
    monkeypatch.setattr(huggingface_hub, "upload_folder", upload)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return tmp_path, asked


def test_a_parser_goes_to_the_hub_and_back(hub, tiny_parser):
    folder, asked = hub
    parser = Parser.from_pretrained(tiny_parser)
    address = parser.push_to_hub("someone/en-tiny", licence="CC BY 4.0", private=True)
    assert address == "https://huggingface.co/someone/en-tiny"
    again = Parser.from_pretrained("someone/en-tiny", revision="v1")
    assert asked == [{"private": True}, {"revision": "v1"}]
    assert again("It works.").to_ptb() == parser("It works.").to_ptb()
    assert [r.to_ptb() for r in again(["It works.", "So"])] == [
        r.to_ptb() for r in parser.parse_all(["It works.", "So"])
    ]
    card = metadata_load(folder / "someone" / "en-tiny" / "README.md")
    assert (card["license"], card["language"], card["library_name"]) == ("cc-by-4.0", "en", "lalkit")
    assert card["pipeline_tag"] == "token-classification" and card["datasets"] == ["sample"]
    (result,) = card["model-index"][0]["results"]
    scores = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert scores["f1"] == round(parser.info["dev"]["f1"], 2) and result["dataset"]["split"] == "dev"
    again.push_to_hub("someone/copy")  # with the card that it was loaded with
    copies = [(folder / "someone" / name / "README.md").read_text() for name in ("en-tiny", "copy")]
    assert copies[0] == copies[1]


def test_a_parser_without_a_licence_stays_here(hub, tiny_parser):
    with pytest.raises(ModelError, match='no licence is known.*\n.*licence="CC BY 4.0"'):
        Parser.load(tiny_parser).push_to_hub("someone/en-tiny")
    assert list(hub[0].iterdir()) == []


def test_what_the_hub_refuses_is_one_error(tiny_parser, monkeypatch):
    def refuse(*args, **options):
        raise ConnectionError("no such owner")

    monkeypatch.setattr(huggingface_hub, "create_repo", refuse)
    with pytest.raises(
        ModelError, match=r"hf:x/y: cannot be uploaded \(ConnectionError: no such owner\)\n.*hf auth login"
    ):
        Parser.load(tiny_parser).push_to_hub("x/y", licence="CC BY 4.0")


def test_metadata_names_only_treebanks_that_are_known(tmp_path):
    facts = {"name": "x", "licence": "mine", "language": "en", "seed": 1, "seeds": [{"seed": 1, "dev": {"f1": 50.0}}]}
    for treebank, names in (("craft:constituents+gum/news*0.5", ["craft", "gum"]), ("/home/me/trees", None)):
        text = metadata({**facts, "treebank": treebank})
        (tmp_path / "README.md").write_text(text)
        card = metadata_load(tmp_path / "README.md")
        assert card.get("datasets") == names and "/home" not in text
        assert (card["license"], card["license_name"]) == ("other", "mine")


def test_the_facts_of_a_run_are_the_card_of_its_parser(hub, tiny_parser):
    Parser.load(tiny_parser).push_to_hub("someone/en-tiny", licence="CC BY 4.0")
    facts = json.loads((hub[0] / "someone" / "en-tiny" / "card.json").read_text())
    assert (facts["name"], facts["treebank"], facts["seeds"][0]["seed"]) == ("en-tiny", "sample", facts["seed"])
