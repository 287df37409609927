"""A text of any size -> windows of sentences; lines are counted and hashed as they are read, so that reading can go on."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lalkit.errors import TreebankError
from lalkit.treebank.brackets import decode
from lalkit.treebank.text import Form, read_lines
from lalkit.treebank.tree import Sentence

LONGEST = 1_000_000  # bytes in a line; a sentence or a paragraph, so more is another kind of file


@dataclass(frozen=True)
class Window:
    """Neighbouring lines: their sentences (None: an empty line), how many lines they are, and how far the whole input has
    been read after the last: lines, bytes, and the SHA-256 of these bytes."""

    sentences: list[Sentence | None]
    count: int
    lines: int
    bytes: int
    sha256: str

    @property
    def present(self) -> list[Sentence]:
        return [s for s in self.sentences if s is not None]


class Lines:
    """Raw lines as text. `name` stands in errors about bytes, `prefix` in the ids of sentences; `size`: bytes, if known."""

    def __init__(self, raw: Iterable[bytes], name: str, prefix: str, size: int | None = None):
        self.raw, self.name, self.prefix, self.size = iter(raw), name, prefix, size
        self.lines = self.bytes = 0
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of all that was read."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[str]:
        """Raises TreebankError, naming file and line, for bytes that are not UTF-8, a NUL byte, a line without end."""
        for raw in self.raw:
            number = self.lines + 1
            if len(raw) > LONGEST:
                raise TreebankError(
                    f"a line of more than {LONGEST:,} bytes",
                    where=f"{self.name}, line {number}",
                    remedy="Put one sentence on a line.",
                )
            text = decode(raw, self.name, first_line=number)
            self._read(raw)
            yield text.removesuffix("\n").rstrip("\r")

    def skip(self, count: int) -> None:
        """Read `count` lines without looking at them; fewer if there are no more."""
        for _, raw in zip(range(count), self.raw):
            self._read(raw)

    def _read(self, raw: bytes) -> None:
        self.lines += 1
        self.bytes += len(raw)
        self._hash.update(raw)


def from_stream(stream: BinaryIO, name: str, prefix: str) -> Lines:
    """An open file or standard input. No more than `LONGEST` bytes of a line are held in memory."""
    status = os.fstat(stream.fileno())
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return Lines(iter(lambda: stream.readline(LONGEST + 1), b""), name, prefix, size)


@contextmanager
def open_lines(path: str | Path) -> Iterator[Lines]:
    """The lines of a file. Raises TreebankError where it cannot be read."""
    try:
        stream = Path(path).open("rb")
    except OSError as error:
        raise TreebankError(f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path.") from None
    with stream:
        yield from_stream(stream, str(path), str(path))


def from_arguments(texts: Iterable[str]) -> Lines:
    """Sentences given on the command line, whose bytes need not be text."""
    return Lines((text.encode("utf-8", "surrogateescape") for text in texts), "argument", "")


def windows(lines: Lines, form: Form, words: int, most: int = 50_000) -> Iterator[Window]:
    """At least `words` words each (but for the last), or `most` lines. Raises TreebankError at the first line that is none."""
    found: list[Sentence | None] = []
    before = lines.lines
    count = 0
    for sentences in read_lines(lines, form, lines.prefix, first=lines.lines + 1):
        found += sentences
        count += sum(len(s) for s in sentences if s)
        if count >= words or lines.lines - before >= most:
            yield _window(found, before, lines)
            found, count, before = [], 0, lines.lines
    if found:
        yield _window(found, before, lines)


def _window(found: list[Sentence | None], before: int, lines: Lines) -> Window:
    return Window(found, lines.lines - before, lines.lines, lines.bytes, lines.sha256)
