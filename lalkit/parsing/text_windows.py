"""Read a text of any size in windows of sentences.

Lines are counted and hashed as they are read, so that an interrupted run can find its place again and see whether the
text is still the same.
"""

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

LONGEST = 1_000_000  # bytes of a line; a longer one is no sentence or paragraph, but another kind of file


@dataclass(frozen=True)
class Window:
    """Neighbouring lines of a text.

    sentences: those of the lines, in order; None stands for an empty line.
    lines, bytes, sha256: how much of the whole text has been read at the end of the window, and the hash of these bytes.
    """

    sentences: list[Sentence | None]
    lines: int
    bytes: int
    sha256: str

    @property
    def present(self) -> list[Sentence]:
        return [s for s in self.sentences if s is not None]


class Lines:
    """The lines of a text, read once from the beginning to the end."""

    def __init__(
        self,
        raw: Iterable[bytes],
        name: str,
        prefix: str,
        size: int | None = None,
        status: os.stat_result | None = None,
    ):
        """Wrap lines of bytes.

        Args:
            raw: the lines, with their newlines.
            name: the name of the text in errors about its bytes.
            prefix: the beginning of the ids of its sentences.
            size: bytes of the whole text; None if unknown.
            status: of the file that is read, by which it is recognised under another name; None without a file.
        """
        self.raw, self.name, self.prefix, self.size, self.status = iter(raw), name, prefix, size, status
        self.lines = self.bytes = 0
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hash of all bytes read so far."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[str]:
        """Yield each line as text, without its newline.

        Raises TreebankError with file and line for bytes that are not UTF-8, for a NUL byte and for a line that is too long.
        """
        for raw in self.raw:
            number = self.lines + 1
            if len(raw) > LONGEST:
                problem, where = f"a line of more than {LONGEST:,} bytes", f"{self.name}, line {number}"
                raise TreebankError(problem, where=where, remedy="Put one sentence on a line.")
            text = decode(raw, self.name, first_line=number)
            self._count(raw)
            yield text.removesuffix("\n").rstrip("\r")

    def skip(self, count: int) -> None:
        """Read `count` lines, or all that are left, without decoding them."""
        for _, raw in zip(range(count), self.raw):
            self._count(raw)

    def _count(self, raw: bytes) -> None:
        self.lines += 1
        self.bytes += len(raw)
        self._hash.update(raw)


def from_stream(stream: BinaryIO, name: str, prefix: str) -> Lines:
    """Return the lines of an open file or of standard input. At most `LONGEST` bytes of a line are held in memory."""
    status = os.fstat(stream.fileno())
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return Lines(iter(lambda: stream.readline(LONGEST + 1), b""), name, prefix, size, status)


@contextmanager
def open_lines(path: str | Path) -> Iterator[Lines]:
    """Open a file and yield its lines. Raises TreebankError if the file cannot be read."""
    try:
        stream = Path(path).open("rb")
    except OSError as error:
        raise TreebankError(f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path.") from None
    name = str(path).encode(errors="backslashreplace").decode()  # it goes into the results, which are UTF-8
    with stream:
        yield from_stream(stream, name, name)


def from_arguments(texts: Iterable[str]) -> Lines:
    """Return sentences of the command line as lines. Their bytes need not be valid text; reading them checks that."""
    return Lines((text.encode("utf-8", "surrogateescape") for text in texts), "argument", "")


def windows(lines: Lines, form: Form, words: int, most: int = 50_000) -> Iterator[Window]:
    """Yield the text in windows that end as soon as they are full.

    Args:
        lines: the text.
        form: how a line is to be read, see `lalkit.treebank.text.read_line`.
        words: a window is full when it has this many words.
        most: a window is also full when it has this many lines.

    Raises:
        TreebankError: at the first line that cannot be read in this form. All windows before it have been yielded.
    """
    sentences, count, start = [], 0, lines.lines
    for of_line in read_lines(lines, form, lines.prefix, first=lines.lines + 1):
        sentences += of_line
        count += sum(len(s) for s in of_line if s)
        if count >= words or lines.lines - start >= most:
            yield Window(sentences, lines.lines, lines.bytes, lines.sha256)
            sentences, count, start = [], 0, lines.lines
    if sentences:
        yield Window(sentences, lines.lines, lines.bytes, lines.sha256)
