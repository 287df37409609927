"""Write output that survives a kill.

An output is first written to a part file beside its place. After every window the part is flushed to the disk; then a
journal, replaced by rename, says how far the part is good. A resumed run cuts off everything after that. At the end the
part gets the name of the output, and the journal is removed. The journal is written before the part is made. So a part
without a journal is not ours, or its journal is lost, and we do not touch it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from pydantic import NonNegativeInt, TypeAdapter
from tqdm import tqdm

from lalkit.errors import LalkitError
from lalkit.files import check_writable, growing_file, lock, read_json, remove_parts, write_json, writing
from lalkit.parsing.text_windows import Lines, Window

logger = logging.getLogger(__name__)

FORMAT = "lalkit-parse-2"
BLOCK = 2**26  # bytes of JSON that become table rows at a time: more than the parses of the longest line need


@dataclass(frozen=True)
class Journal:
    """What a run was asked to do, and how much of it is done.

    The first five fields are the task: the fingerprint of the parser, the name of the text, the form of its lines, the
    forms of the output, and the version of this record. A resumed run must have the same task.
    """

    parser: str
    file: str
    form: str
    to: str
    format: str = FORMAT
    lines: NonNegativeInt = 0  # read, with empty ones
    read: NonNegativeInt = 0  # bytes of these lines
    sha256: str = hashlib.sha256().hexdigest()  # of these bytes
    empty: NonNegativeInt = 0  # lines without words
    written: tuple[NonNegativeInt, ...] = ()  # bytes of every output
    sentences: NonNegativeInt = 0
    words: NonNegativeInt = 0

    def after(self, window: Window, written: Sequence[int]) -> Journal:
        """Return the journal after one more window, with `written` more bytes in each output."""
        present = window.present
        return replace(
            self, lines=window.lines, read=window.bytes, sha256=window.sha256,
            empty=self.empty + len(window.sentences) - len(present),
            written=tuple(map(sum, zip_longest(self.written, written, fillvalue=0))),
            sentences=self.sentences + len(present), words=self.words + sum(map(len, present)),
        )  # fmt: skip

    def check(self, wanted: Journal, where: str) -> None:
        """Raise LalkitError unless both journals have the same task."""
        names = {"format": "version of lalkit", "parser": "parser", "file": "--file", "form": "--form", "to": "--to"}
        for name, option in names.items():
            if getattr(self, name) != getattr(wanted, name):
                detail = "" if name in ("parser", "format") else f" ({getattr(self, name)})"
                raise LalkitError(f"was started with another {option}{detail}", where=where, remedy=_start_again(where))


def _start_again(part: str) -> str:
    return f"Give the same command as before, or delete {part} to start again."


def skip_done(lines: Lines, journal: Journal, part: str) -> None:
    """Skip the lines that are done. Raises LalkitError if any byte of them has changed since they were read."""
    lines.skip(journal.lines)
    if (lines.lines, lines.bytes, lines.sha256) != (journal.lines, journal.read, journal.sha256):
        problem = f"has changed: its first {journal.lines} lines are not those that were parsed before"
        raise LalkitError(problem, where=lines.name, remedy=_start_again(part))


class StandardOutput:
    """Write every window to standard output at once. There is nothing to resume from after a kill."""

    finished = False

    def __init__(self, journal: Journal):
        self.journal = journal

    def commit(self, texts: Sequence[str], window: Window) -> None:
        with writing("standard output"), tqdm.external_write_mode():  # a progress bar on the same terminal moves aside
            sys.stdout.write("".join(texts))
            sys.stdout.flush()
        self.journal = self.journal.after(window, [])

    def finish(self) -> None:
        pass


class Part:
    """The part files of all outputs, with one journal beside the first. Only one process at a time may write them.

    When an error ends the `with` block, the parts are kept if anything in them is good, and deleted otherwise.
    """

    def __init__(self, outs: Sequence[str | Path], wanted: Journal, resume: bool, text: os.stat_result | None = None):
        """Open the part files.

        Args:
            outs: the outputs; each is written to OUT.part first.
            wanted: the task of this run.
            resume: whether to continue parts that are there.
            text: the status of the file that is parsed, if it is a file. No output may be the same file.

        Raises:
            LalkitError: if there is a part and `resume` is False, if the part belongs to another task, is damaged or has
                no journal, or if a file cannot be written.
        """
        self.outs = [Path(out) for out in outs]
        self.paths = [out.with_name(f"{out.name}.part") for out in self.outs]
        self.journal_path = self.paths[0].with_suffix(".part.json")
        self.journal, self.finished = replace(wanted, written=(0,) * len(self.outs)), False
        files = (*self.outs, *self.paths, self.journal_path)
        check_writable(*files)
        for path in files:
            if text and path.exists() and os.path.samestat(text, path.stat()):
                raise LalkitError("is the text itself", where=str(path), remedy="Give --out another name.")
        part = next((path for path in self.paths if path.exists()), None)
        journal = read_journal(self.journal_path)
        if part and not journal:
            problem = f"is there already, but not its journal {self.journal_path}, which says what it holds"
            remedy = f"Give another --out, or move {part} away to parse from the beginning."
            raise LalkitError(problem, where=str(part), remedy=remedy)
        if resume:
            self._continue(journal, wanted, part)
        elif part:
            remedy = "Add --resume to continue it, or delete it to start again."
            raise LalkitError("is there already, from a run that did not end", where=str(part), remedy=remedy)
        self.streams = [] if self.finished else self._open()

    def _continue(self, journal: Journal | None, wanted: Journal, part: Path | None) -> None:
        """Take over the journal of a part. After a kill at the very end, some parts may already have their final names."""
        out = next((out for out in self.outs if out.exists()), None)
        if not (part or out):
            return
        renamed = [
            out.exists() and not path.exists() and out.stat().st_size == size
            for out, path, size in zip(self.outs, self.paths, journal.written if journal else ())
        ]
        if not journal or not (part or any(renamed)):
            remedy = "Leave out --resume to parse again and replace it."
            raise LalkitError("is there already, and has no part file to continue", where=str(out), remedy=remedy)
        journal.check(wanted, str(part or out))
        for path, size, has_final_name in zip(self.paths, journal.written, renamed):
            present = path.stat().st_size if path.exists() else 0
            if not has_final_name and present < size:
                problem = f"has {present} bytes, but {size} were written"
                raise LalkitError(problem, where=str(path), remedy=_start_again(str(part or out)))
        self.journal, self.finished = journal, any(renamed)

    def _open(self) -> list[BinaryIO]:
        streams = []
        remove_parts(self.journal_path.parent, self.journal_path.name)
        with ExitStack() as undo, writing(self.paths[0]):
            if not any(path.exists() for path in self.paths):
                write_json(self.journal_path, asdict(self.journal))
                undo.callback(self.journal_path.unlink)
            for path, size in zip(self.paths, self.journal.written):
                is_new = not path.exists()
                streams.append(path.open("xb" if is_new else "r+b"))
                undo.enter_context(streams[-1])
                if is_new:
                    undo.callback(path.unlink)
                if not lock(streams[-1], wait=False):
                    raise LalkitError("is being written by another process", where=str(path), remedy="Wait for it.")
                streams[-1].truncate(size)
                streams[-1].seek(size)
            undo.pop_all()
        return streams

    def commit(self, texts: Sequence[str], window: Window) -> None:
        """Add the text of a window to every output. After this call a kill does not lose it."""
        data = [text.encode() for text in texts]
        with writing(self.paths[0]):
            for stream, added in zip(self.streams, data):
                stream.write(added)
                stream.flush()
                os.fsync(stream.fileno())
            journal = self.journal.after(window, [len(added) for added in data])
            write_json(self.journal_path, asdict(journal))
        self.journal = journal

    def finish(self) -> None:
        """Give every part the name of its output. Call this when everything is written.

        The part of a Parquet table is JSON. It is kept until the journal is gone, so that a run that is killed here can go on.
        """
        for stream in self.streams:
            stream.close()
        for path, out, to in zip(self.paths, self.outs, self.journal.to.split(",")):
            if path.exists() and to.startswith("parquet"):
                write_parquet(path, out)
            elif path.exists():
                with writing(out):
                    path.replace(out)
        self.journal_path.unlink(missing_ok=True)
        for path in self.paths:
            path.unlink(missing_ok=True)
        self.finished = True

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *error) -> None:
        if self.finished:
            return
        for stream in self.streams:
            with suppress(OSError):  # after a full disk it still holds bytes, and tries to write them
                stream.close()
        if self.journal.sentences:
            names = ", ".join(map(str, self.paths))
            logger.info("%d lines are done and kept in %s; --resume continues after them", self.journal.lines, names)
        else:
            for path in (*self.paths, self.journal_path):
                path.unlink(missing_ok=True)


def write_parquet(lines: Path, out: Path) -> None:
    """Write parses that are lines of JSON as a Parquet table, one row a sentence, in blocks."""
    import pyarrow as pa
    from pyarrow import json as arrow_json
    from pyarrow import parquet

    texts = dict.fromkeys(("words", "tags", "arc_labels"), pa.list_(pa.string())) | {"id": pa.string()}
    parsed = arrow_json.ParseOptions(explicit_schema=pa.schema(texts))  # otherwise a word such as 2026-01-01 is a time
    read = arrow_json.ReadOptions(block_size=BLOCK)
    rows = arrow_json.open_json(lines, read_options=read, parse_options=parsed)
    with growing_file(out) as stream, parquet.ParquetWriter(stream, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def read_journal(path: Path) -> Journal | None:
    """Read a journal; return None if there is none. Raises LalkitError if it is damaged."""
    if not path.exists():
        return None
    remedy = f"Give another --out, or move {path} and its .part file away to start again."
    content = read_json(path, remedy)
    try:
        values = json.dumps({field.name: content[field.name] for field in fields(Journal)})
        journal = TypeAdapter(Journal).validate_json(values, strict=True)
        if len(journal.written) != len(journal.to.split(",")):
            raise ValueError
    except (ValueError, KeyError):
        raise LalkitError("is damaged, or not a journal of lalkit", where=str(path), remedy=remedy) from None
    return journal
