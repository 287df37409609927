"""Download a corpus from where its owners publish it."""

from __future__ import annotations

import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from lalkit.errors import CorpusError
from lalkit.treebank.corpora import BY_HAND, NAMES, NLTK, cache_folder, find, missing

CRAFT_ARCHIVE = "https://github.com/UCDenver-ccp/CRAFT/archive/refs/tags/v5.0.2.zip"
CRAFT_PARTS = ("/articles/ids/", "/structural-annotation/treebank/penn/", "/structural-annotation/dependency/conllx/")


def fetch(name: str) -> Path:
    """Return the folder of a corpus, and download it first if it is not here yet. Raises CorpusError if that fails."""
    if name not in NAMES:
        raise CorpusError(f"there is nothing to fetch by the name {name!r}", remedy=f"Corpora: {', '.join(NAMES)}.")
    if find(name) is None:
        try:
            if name in NLTK:
                _fetch_nltk(NLTK[name])
            elif name == "craft":
                _fetch_craft()
            elif name in BY_HAND:
                raise missing(name)
            else:
                raise CorpusError(f"{name} belongs to the repository", remedy="Run lalkit from its checkout.")
        except zipfile.BadZipFile:
            remedy = "Has it moved? See data/README.md."
            raise CorpusError(f"the file at the address of {name} is not a zip", remedy=remedy) from None
        except OSError as error:
            remedy = "Is this machine online, and its disk not full? Try again."
            raise CorpusError(f"{name} could not be downloaded ({error})", remedy=remedy) from None
    folder = find(name)
    if folder is None:
        remedy = f"Delete it in {cache_folder()}, and fetch it again."
        raise CorpusError(f"{name} was downloaded but is not complete", remedy=remedy)
    return folder


def _fetch_nltk(corpora: tuple[str, ...]) -> None:
    import nltk

    for corpus in corpora:
        if not nltk.download(corpus, quiet=True):
            raise OSError("the NLTK server did not answer")


def _fetch_craft() -> None:
    target = cache_folder() / "craft"
    if target.exists():
        remedy = "Delete this folder, then fetch the corpus again."
        raise CorpusError("is there already, but it is not complete", where=str(target), remedy=remedy)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        archive = Path(scratch) / "craft.zip"
        with urllib.request.urlopen(CRAFT_ARCHIVE, timeout=60) as source, archive.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        with zipfile.ZipFile(archive) as members:
            names = members.namelist()
            members.extractall(scratch, [name for name in names if any(part in name for part in CRAFT_PARTS)])
        (Path(scratch) / names[0].split("/")[0]).replace(target)  # CRAFT-5.0.2
