"""Output that survives a kill: a part file beside its place, and a journal of how far it is good.

After every window the part is written out, then the journal (by rename) says so. What the part holds beyond the journal's
length is cut off by whoever goes on. At the end the part is renamed into place and the journal removed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

from lalkit.errors import LalkitError
from lalkit.files import write_json
from lalkit.stream.lines import Lines, Window

FORMAT = "lalkit-parse-1"
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
    written: int = 0  # bytes of the output
    sentences: int = 0
    words: int = 0

    def after(self, window: Window, written: int) -> Journal:
        """With a window and its output added."""
        present = window.present
        return replace(
            self,
            lines=window.lines,
            read=window.bytes,
            sha256=window.sha256,
            written=self.written + written,
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
    """`out` in the making: out.part and out.part.json. One process at a time.

    Raises LalkitError where there is a part already and resume is not set, or one of another run, and where the file
    cannot be written. Left on an error, it stays if anything in it is good; a kill leaves it as it is.
    """

    def __init__(self, out: str | Path, wanted: Journal, resume: bool, say: Callable[[str], None] = lambda text: None):
        self.out, self.say = Path(out), say
        self.path = self.out.with_name(f"{self.out.name}.part")
        self.journal_path = self.out.with_name(f"{self.out.name}.part.json")
        self.journal, self.finished = wanted, False
        if self.out.exists() and not self.out.is_file():
            raise LalkitError("is no regular file", where=str(out), remedy="Give --out the name of a file.")
        if resume:
            self._look(wanted)
        elif self.path.exists():
            raise LalkitError(
                "is there already, from a run that did not end",
                where=str(self.path),
                remedy="Add --resume to go on with it, or delete it to start again.",
            )
        if not self.finished:
            self.stream = self._open()

    def _look(self, wanted: Journal) -> None:
        """Find what there is to go on with."""
        if self.path.exists():
            self.journal = read_journal(self.journal_path) or wanted
            self.journal.check(wanted, str(self.path))
            size = self.path.stat().st_size
            if size < self.journal.written:
                raise LalkitError(
                    f"has {size} bytes, but {self.journal.written} were written",
                    where=str(self.path),
                    remedy="Delete it to start again.",
                )
        elif self.out.exists():
            journal = read_journal(self.journal_path)
            if journal is None or self.out.stat().st_size != journal.written:
                raise LalkitError(
                    "is there already, and no part of it to go on with",
                    where=str(self.out),
                    remedy="Leave out --resume to parse again and replace it.",
                )
            journal.check(wanted, str(self.out))
            self.journal, self.finished = journal, True  # killed between the last two steps

    def _open(self) -> BinaryIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                self.journal_path.unlink(missing_ok=True)  # of a part that somebody deleted
            stream = self.path.open("r+b" if self.path.exists() else "xb")
            _lock(stream, self.path)
            stream.truncate(self.journal.written)
            stream.seek(self.journal.written)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        return stream

    def commit(self, text: str, window: Window) -> None:
        """Add a window's output; after this a kill loses nothing of it."""
        data = text.encode()
        try:
            self.stream.write(data)
            self.stream.flush()
            os.fsync(self.stream.fileno())
            journal = self.journal.after(window, len(data))
            write_json(self.journal_path, asdict(journal))
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self.journal = journal

    def finish(self) -> None:
        """Everything is written: the part becomes the output."""
        if not self.finished:
            self.stream.close()
            self.path.replace(self.out)
        self.journal_path.unlink(missing_ok=True)
        self.finished = True

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *error) -> None:
        if self.finished:
            return
        self.stream.close()
        if self.journal.sentences:
            self.say(f"{self.journal.lines} lines are done and kept in {self.path}; --resume goes on after them")
        else:
            self.path.unlink(missing_ok=True)
            self.journal_path.unlink(missing_ok=True)


def read_journal(path: Path) -> Journal | None:
    """None where there is none. Raises LalkitError where it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Journal(**{field.name: content[field.name] for field in fields(Journal)})
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
