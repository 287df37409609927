"""Fetching: no corpus is fetched twice; a failure gives an error and leaves no files; an archive is unpacked."""

import io
import urllib.request
import zipfile

import pytest

from lalkit.errors import CorpusError
from lalkit.treebank import fetch
from lalkit.treebank.corpora import load

TREE = "( (S (NP (DT The) (NN end))) )\n"
ROWS = "1\tThe\tthe\tDT\tDT\t_\t2\tdet\t_\t_\n2\tend\tend\tNN\tNN\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def empty_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("LALKIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def archive(*leave_out):
    members = {
        "CRAFT-1/articles/ids/craft-ids-train.txt": "7\n",
        "CRAFT-1/structural-annotation/treebank/penn/7.tree": TREE,
        "CRAFT-1/structural-annotation/dependency/conllx/7.conll": ROWS,
        "CRAFT-1/articles/txt/7.txt": "The end",
    }
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        for name, text in members.items():
            if not any(part in name for part in leave_out):
                file.writestr(name, text)
    return io.BytesIO(raw.getvalue())


def test_craft_is_unpacked_where_the_reader_looks(empty_machine, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: archive())
    folder = fetch.fetch("craft")
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["7.conll", "7.tree", "craft-ids-train.txt"]
    assert load("craft", "train").sentences[0].arc_labels == ("det", "root")
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: pytest.fail("it is here already"))
    assert fetch.fetch("craft") == folder


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda url, timeout: (_ for _ in ()).throw(OSError("no route")), "could not be downloaded .no route"),
        (lambda url, timeout: archive("penn", "conllx"), "not complete"),
        (lambda url, timeout: io.BytesIO(b"<html>moved</html>"), "not a zip"),
    ],
)
def test_failures_leave_no_files(empty_machine, monkeypatch, answer, says):
    monkeypatch.setattr(urllib.request, "urlopen", answer)
    with pytest.raises(CorpusError, match=says):
        fetch.fetch("craft")
    assert not list(empty_machine.rglob("*.zip")) and not list(empty_machine.rglob("*.tree"))


def test_an_incomplete_craft_is_named_and_not_fetched_again(empty_machine, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: archive("penn"))
    with pytest.raises(CorpusError, match="not complete"):
        fetch.fetch("craft")
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: pytest.fail("it would be fetched again"))
    with pytest.raises(CorpusError, match=r"craft: is there already, but it is not complete\n.*Delete this folder"):
        fetch.fetch("craft")


def test_our_samples_are_not_fetched(monkeypatch):
    monkeypatch.setattr(fetch, "find", lambda name: None)
    with pytest.raises(CorpusError, match="belongs to the repository"):
        fetch.fetch("sample")
