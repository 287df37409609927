"""Output that survives a kill: a part file beside its place, and a journal of how far it is good.

After every window the part is written out, then the journal (by rename) says so. What the part holds beyond the journal's
length is cut off by whoever goes on. At the end the part is renamed into place and the journal removed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from lalkit.errors import LalkitError
from lalkit.files import write_json
from lalkit.parsing.lines import Lines, Window

FORMAT = "lalkit-parse-2"
NOTHING = hashlib.sha256().hexdigest()


@dataclass(frozen=True)
class Journal:
    """parser (its fingerprint), file, form and to: what was asked for, and may not change. The rest: what is done."""

    parser: str
    file: str
    form: str
    to: str
    format: str = FORMAT
    lines: int = 0  # of the input, empty ones included
    read: int = 0  # bytes of the input
    sha256: str = NOTHING  # of these bytes
    empty: int = 0  # lines without words
    written: tuple[int, ...] = ()  # bytes of every output
    sentences: int = 0
    words: int = 0

    def after(self, window: Window, written: Sequence[int]) -> Journal:
        """With a window and its outputs added."""
        present = window.present
        return replace(
            self,
            lines=window.lines,
            read=window.bytes,
            sha256=window.sha256,
            empty=self.empty + len(window.sentences) - len(present),
            written=tuple(map(sum, zip_longest(self.written, written, fillvalue=0))),
            sentences=self.sentences + len(present),
            words=self.words + sum(map(len, present)),
        )

    def check(self, wanted: Journal, where: str) -> None:
        """Raises LalkitError where another run was asked for than this one."""
        names = {"format": "version of lalkit", "parser": "parser", "file": "--file", "form": "--form", "to": "--to"}
        for name, what in names.items():
            if getattr(self, name) != getattr(wanted, name):
                detail = "" if name in ("parser", "format") else f" ({getattr(self, name)})"
                raise LalkitError(f"was begun with another {what}{detail}", where=where, remedy=_again(where))


def _again(part: str) -> str:
    return f"Give the same command as then, or delete {part} to start again."


def skip_done(lines: Lines, journal: Journal, part: str) -> None:
    """Pass over the lines that are done. Raises LalkitError unless they are, byte for byte, what was read then."""
    lines.skip(journal.lines)
    if (lines.lines, lines.bytes, lines.sha256) != (journal.lines, journal.read, journal.sha256):
        raise LalkitError(
            f"is not what was read before: its first {journal.lines} lines have changed",
            where=lines.name,
            remedy=_again(part),
        )


class Part:
    """Outputs in the making: out.part for each, and one journal beside the first. One process at a time.

    Raises LalkitError where there is a part already and resume is not set, or one of another run, and where a file cannot
    be written. Left on an error, they stay if anything in them is good; a kill leaves them as they are.
    """

    def __init__(
        self, outs: Sequence[str | Path], wanted: Journal, resume: bool, say: Callable[[str], None] = lambda text: None
    ):
        self.outs, self.say = [Path(out) for out in outs], say
        self.paths = [out.with_name(f"{out.name}.part") for out in self.outs]
        self.journal_path = self.outs[0].with_name(f"{self.outs[0].name}.part.json")
        self.journal, self.finished = replace(wanted, written=(0,) * len(self.outs)), False
        for out in self.outs:
            if out.exists() and not out.is_file():
                raise LalkitError("is no regular file", where=str(out), remedy="Give --out the name of a file.")
        there = next((path for path in self.paths if path.exists()), None)
        if resume:
            self._look(wanted, there)
        elif there:
            raise LalkitError(
                "is there already, from a run that did not end",
                where=str(there),
                remedy="Add --resume to go on with it, or delete it to start again.",
            )
        self.streams = [] if self.finished else self._open()

    def _look(self, wanted: Journal, part: Path | None) -> None:
        """Find what there is to go on with: parts; or, after a kill in the last moment, outputs that had their names."""
        out = next((out for out in self.outs if out.exists()), None)
        if not (part or out):
            return
        journal = read_journal(self.journal_path)
        if journal is None and part:
            return
        named = journal and [
            out.exists() and not path.exists() and out.stat().st_size == size
            for out, path, size in zip(self.outs, self.paths, journal.written)
        ]
        if not part and not (named and any(named)):
            raise LalkitError(
                "is there already, and no part of it to go on with",
                where=str(out),
                remedy="Leave out --resume to parse again and replace it.",
            )
        journal.check(wanted, str(part or out))
        for path, size, done in zip(self.paths, journal.written, named):
            found = path.stat().st_size if path.exists() else 0
            if not done and found < size:
                raise LalkitError(
                    f"has {found} bytes, but {size} were written", where=str(path), remedy=_again(str(part or out))
                )
        self.journal, self.finished = journal, any(named)

    def _open(self) -> list[BinaryIO]:
        try:
            self.outs[0].parent.mkdir(parents=True, exist_ok=True)
            if not any(path.exists() for path in self.paths):
                self.journal_path.unlink(missing_ok=True)  # of a part that somebody deleted
            streams = []
            for path, size in zip(self.paths, self.journal.written):
                streams.append(path.open("r+b" if path.exists() else "xb"))
                _lock(streams[-1], path)
                streams[-1].truncate(size)
                streams[-1].seek(size)
        except OSError as error:
            raise _unwritable(self.paths[0], error) from None
        return streams

    def commit(self, texts: Sequence[str], window: Window) -> None:
        """Add a window's text to every output; after this a kill loses nothing of it."""
        data = [text.encode() for text in texts]
        try:
            for stream, added in zip(self.streams, data):
                stream.write(added)
                stream.flush()
                os.fsync(stream.fileno())
            journal = self.journal.after(window, [len(added) for added in data])
            write_json(self.journal_path, asdict(journal))
        except OSError as error:
            raise _unwritable(self.paths[0], error) from None
        self.journal = journal

    def finish(self) -> None:
        """Everything is written: the parts become the outputs."""
        for stream in self.streams:
            stream.close()
        for path, out in zip(self.paths, self.outs):
            if path.exists():
                path.replace(out)
        self.journal_path.unlink(missing_ok=True)
        self.finished = True

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *error) -> None:
        if self.finished:
            return
        for stream in self.streams:
            stream.close()
        if self.journal.sentences:
            names = ", ".join(map(str, self.paths))
            self.say(f"{self.journal.lines} lines are done and kept in {names}; --resume goes on after them")
        else:
            for path in (*self.paths, self.journal_path):
                path.unlink(missing_ok=True)


def read_journal(path: Path) -> Journal | None:
    """None where there is none. Raises LalkitError where it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = Journal(**{field.name: content[field.name] for field in fields(Journal)})
        return replace(found, written=tuple(found.written))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise LalkitError(
            "is damaged or not lalkit's", where=str(path), remedy="Delete it and its .part file to start again."
        ) from None


def _unwritable(path: Path, error: OSError) -> LalkitError:
    return LalkitError(
        f"cannot be written ({error.strerror})", where=str(path), remedy="Check the folder and the space on the disk."
    )


def _lock(stream: BinaryIO, path: Path) -> None:
    """Held until the file is closed, by death too. Raises LalkitError where another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise LalkitError("is being written by another process", where=str(path), remedy="Wait for it.") from None
    except OSError:  # a file system without locks
        return
