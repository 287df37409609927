"""The GUM corpus (Zeldes 2017) as documents: gold tags, gold named entities, a summary written by a person.

Download https://github.com/amir-zeldes/gum (folder `dep`); each genre has its own licence, and none of it is shipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lalkit.errors import CorpusError
from lalkit.summarize.documents import Document
from lalkit.text import tokenize

PLACE = "LALKIT_DATA"
MARK = re.compile(
    r"\(([^()]+)|([^()]*)\)"
)  # in Entity=: a mention begins; one ends, by its number or the last that began
IDENTITY = 7  # the fields of a mention; the eighth, where there is one, says what it is a name of
GONE = re.compile(r"^\d+[-.]")  # multi-word tokens and empty nodes


def gum(folder: str | Path | None = None) -> tuple[Document, ...]:
    """All documents, in the order of their names. entities: tokens of mentions that are linked to a name, pronouns
    left out.

    folder: of .conllu files; None: `gum/dep` in LALKIT_DATA. Raises CorpusError where there is none, or a file is damaged.
    """
    folder = Path(folder) if folder else Path(os.environ.get(PLACE, "data")) / "gum" / "dep"
    files = sorted(folder.glob("*.conllu"))
    if not files:
        remedy = f"Download GUM, and give its folder `dep`, or set {PLACE} to the folder that has gum/dep."
        raise CorpusError("GUM is not here", where=str(folder), remedy=remedy)
    return tuple(read(path) for path in files)


def read(path: str | Path) -> Document:
    """One document. Raises CorpusError naming the line that is damaged."""
    words, tags, named, open_ = [], [], [], []
    summary: tuple[str, ...] = ()
    for number, line in enumerate(_lines(path), 1):
        if line.startswith("# meta::summary") and not summary and "(human" in line:
            summary = tokenize(line.split(")", 1)[1].strip())
        if not line or line.startswith("#") or GONE.match(line):
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise CorpusError(f"{len(columns)} columns instead of 10", where=f"{path}, line {number}")
        begun, ended = _mentions(columns[9])
        open_ += begun
        words.append(columns[1])
        tags.append(columns[3])
        named.append(columns[3] != "PRON" and any(identity for _, identity in open_))
        for name in ended:
            place = next((i for i in reversed(range(len(open_))) if name == open_[i][0]), None)
            if place is None:
                raise CorpusError(f"mention {name!r} ends before it begins", where=f"{path}, line {number}")
            del open_[place]
    return Document(tuple(words), summary, tuple(tags), tuple(named), Path(path).stem)


def _lines(path: str | Path) -> Iterator[str]:
    try:
        yield from Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read ({error})", where=str(path), remedy="Is it UTF-8?") from None


def _mentions(misc: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """((number, is it a name) of mentions that begin here, numbers of those that end here) of a MISC column. A mention of
    one token begins and ends: `(7-person-...-Name)`."""
    entity = next((part[7:] for part in misc.split("|") if part.startswith("Entity=")), "")
    begun, ended = [], []
    for match in MARK.finditer(entity):
        if match[1]:
            fields = match[1].split("-")
            begun.append((fields[0], len(fields) > IDENTITY))
        else:
            ended.append(match[2] or (begun[-1][0] if begun else "?"))
    return begun, ended
