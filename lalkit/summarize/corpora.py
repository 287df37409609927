"""Documents with summaries by name: made-up news, GUM, a folder of one's own, or a data set of the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lalkit.errors import CorpusError
from lalkit.summarize.documents import Dataset, Document
from lalkit.summarize.gum import gum
from lalkit.summarize.news import news
from lalkit.text import tokenize

PARTS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
TEXTS = (
    ("document", "summary"),
    ("article", "highlights"),
    ("text", "summary"),
)  # as CNN/DailyMail and others call them


def load(name: str) -> Dataset:
    """'news'; 'gum' (test documents only); 'hf:NAME' or 'hf:NAME:CONFIG' through the package `datasets`; or a folder with
    train.jsonl, dev.jsonl and test.jsonl, an object with article and highlights (or document and summary) a line.

    Raises CorpusError naming what is missing or wrong.
    """
    if name == "news":
        return news()
    if name == "gum":
        return Dataset("gum", (), (), gum())
    if name.startswith("hf:"):
        return _hub(name)
    folder = Path(name)
    if not folder.is_dir():
        raise CorpusError(f"there are no documents {name!r}", remedy="news, gum, hf:NAME, or a folder of .jsonl files.")
    parts = {}
    for part, files in PARTS.items():
        found = [folder / f"{file}.jsonl" for file in files if (folder / f"{file}.jsonl").is_file()]
        if not found:
            raise CorpusError(f"has no {part}.jsonl", where=name, remedy="Three files: train, dev, test.")
        parts[part] = tuple(_lines(found[0]))
    return Dataset(folder.name, **parts)


def _lines(path: Path) -> Iterator[Document]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read ({error})", where=str(path), remedy="Is it UTF-8?") from None
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError:
            raise CorpusError("is no JSON", where=where, remedy="One object a line.") from None
        yield _document(row, where)


def _document(row, where: str) -> Document:
    for keys in TEXTS:
        if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in keys):
            return Document(*(tokenize(row[key]) for key in keys), id=str(row.get("id", where)))
    raise CorpusError("has no article with highlights", where=where, remedy="Keys: article and highlights, as texts.")


def _hub(name: str) -> Dataset:
    try:
        import datasets
    except ImportError:
        raise CorpusError("needs the package `datasets`", where=name, remedy="pip install datasets") from None
    _, *asked = name.split(":")
    found = datasets.load_dataset(*asked)
    parts = {}
    for part, names in PARTS.items():
        own = next((split for split in names if split in found), None)
        if own is None:
            raise CorpusError(f"has no part {part}", where=name)
        parts[part] = tuple(_document(row, f"{name} {own} {i}") for i, row in enumerate(found[own]))
    return Dataset(name, **parts)
