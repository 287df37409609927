"""Write files so that they appear whole or not at all: write beside the place, flush to the disk, then rename."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lalkit.errors import LalkitError, reason


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an error of the system into a LalkitError that names this path, as the user gave it, and says what to do."""
    try:
        yield
    except BrokenPipeError:
        raise  # a reader of standard output that has gone: nothing is wrong with the place
    except OSError as error:
        remedy = "Check the path and the free space on the disk, or write to another place."
        raise LalkitError(f"cannot be written ({reason(error)})", where=str(path), remedy=remedy) from None


@contextmanager
def reading(
    path: str | Path, remedy: str = "Check the path.", kind: type[LalkitError] = LalkitError, errors: Any = OSError
) -> Iterator[None]:
    """Turn an error of the system into one of this class that names this path. errors: the exceptions to turn into it."""
    try:
        yield
    except errors as error:
        raise kind(f"cannot be read ({reason(error)})", where=str(path), remedy=remedy) from None


@contextmanager
def growing_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a file to write bytes to. It gets its name at the end, when it is whole. Missing folders are made.

    Raises LalkitError if the file cannot be written. After any error, a file that had this name before is unchanged.
    """
    path = Path(path)
    check_writable(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{_part(path.name)}.{os.getpid()}.part")
        try:
            with beside.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _part(name: str) -> str:
    """Return the beginning of the name of a part file. A long name would leave no room for the rest: systems take 255 bytes."""
    return name if len(os.fsencode(name)) < 200 else hashlib.sha256(os.fsencode(name)).hexdigest()


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write a file and return its path, as `growing_file` does."""
    with growing_file(path) as stream:
        stream.write(data)
    return Path(path)


def remove_parts(folder: Path, name: str = "") -> None:
    """Remove the part files and part folders that killed processes left behind in a folder: those of one name, or all."""
    from psutil import pid_exists

    for part in folder.glob(f".{glob.escape(_part(name)) or '*'}.*.part"):
        pid = part.name.split(".")[-2]
        if re.fullmatch("[0-9]{1,9}", pid) and (int(pid) == os.getpid() or not pid_exists(int(pid))):
            with suppress(OSError):  # it has gone, or is another user's
                shutil.rmtree(part) if part.is_dir() else part.unlink()


def write_text(path: str | Path, text: str) -> Path:
    """Write text as UTF-8, as `write_bytes` does."""
    return write_bytes(path, in_utf8(text).encode())


def in_utf8(text: str | Path) -> str:
    """Return a text in which a file name that is not UTF-8 has escapes, so that it can be written and put into tables."""
    return str(text).encode(errors="backslashreplace").decode()


def write_json(path: str | Path, value) -> Path:
    """Write a value as JSON, as `write_text` does."""
    return write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def parse_json(text: str, nan: bool = False) -> Any:
    """Return the value that a JSON text stands for. This is stricter than Python's own reader.

    nan: whether NaN, infinite numbers, and whole numbers of any size are allowed.

    Raises ValueError for a text that is not JSON or is nested too deeply, for a key that is in one object twice, for a whole
    number of more than 64 bits, for a number that is not finite, and for a lone surrogate that is not a byte of a file name.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError(f"a key is there twice among {', '.join(key for key, _ in pairs)}")
        return dict(pairs)

    def integer(digits: str) -> int:
        if not nan and (len(digits) > 20 or not -(2**63) <= int(digits) < 2**63):
            raise ValueError(f"the number {digits[:20]} ({len(digits)} digits) is too long")
        return int(digits)

    def real(digits: str) -> float:
        if not nan and not math.isfinite(float(digits)):
            raise ValueError(f"the number {digits[:20]} is not finite")
        return float(digits)

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_int=integer, parse_float=real, parse_constant=real)
        json.dumps(value, ensure_ascii=False).encode(errors="surrogateescape")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def check_form(value: Any, form: type) -> None:
    """Check that a value from JSON has all fields of a dataclass, each of its type. Raises ValueError with the field's name."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(form).validate_json(json.dumps(value, ensure_ascii=False).encode(errors="replace"), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def read_json(
    path: str | Path, remedy: str, kind: type[LalkitError] = LalkitError, nan: bool = False, form: type | None = None
) -> dict:
    """Return the JSON object in a file.

    Args:
        path: the file.
        remedy: what the user should do if the file cannot be used.
        kind: the class of the error that is then raised.
        nan: whether NaN and infinite numbers are allowed.
        form: a dataclass whose fields the object must have, each of its type. The object may hold more.

    Raises:
        LalkitError: the file is not there, is not UTF-8, holds no JSON object, or holds one that `parse_json` refuses.
    """
    try:
        with reading(path, remedy, kind):
            value = parse_json(regular(path).read_text(encoding="utf-8"), nan)
        if not isinstance(value, dict):
            raise ValueError("it holds no JSON object")
        if form:
            check_form(value, form)
    except ValueError as error:
        raise kind(f"is damaged: {error}", where=str(path), remedy=remedy) from None
    return value


def regular(path: str | Path) -> Path:
    """Return the path of a file that will be read. Raises OSError for a pipe and a device: they may wait or go on for ever."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    return Path(path)


def find_json(path: str | Path, nan: bool = False) -> dict | None:
    """Return the JSON object in a file, or None if `read_json` refuses the file: for results that can be made again."""
    with suppress(LalkitError):
        return read_json(path, "", nan=nan)
    return None


def check_writable(*paths: str | Path | None) -> None:
    """Check, before long work, that these files can be written. A path that is None is passed over.

    Raises LalkitError if a path exists and is not a regular file, or if files cannot be written into its folder.
    """
    for path in filter(None, paths):
        with writing(path):
            if Path(path).exists() and not Path(path).is_file():
                problem = "is a folder" if Path(path).is_dir() else "is not a regular file"
                raise LalkitError(problem, where=str(path), remedy="Give the name of a file in a folder of yours.")
        check_folder(Path(path).parent, path)


def check_new(folder: str | Path, pattern: str, replace: bool) -> None:
    """Check, before long work, that no file of this pattern would be replaced, unless `replace` is set.

    Commands check this if the user did not give the exact names of their files. Raises LalkitError for an existing file.
    """
    for path in () if replace else sorted(Path(folder).glob(pattern)):
        remedy = "Give --replace to replace what is there, or --out with another name."
        raise LalkitError("is there already", where=str(path), remedy=remedy)


def check_folder(folder: str | Path, path: str | Path | None = None) -> None:
    """Check, before long work, that files can be written into a folder, which need not exist yet. Raises LalkitError if not.

    path: the path that the error names; None: the folder.
    """
    path = path or folder
    with writing(path):
        place = next(place for place in (Path(folder).absolute(), *Path(folder).absolute().parents) if place.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            reason = "a folder that you may not write into" if place.is_dir() else "a file and not a folder"
            problem, remedy = f"cannot be written: {place} is {reason}", "Give the name of a place of your own."
            raise LalkitError(problem, where=str(path), remedy=remedy)


@contextmanager
def locked_folder(folder: Path, wait: bool = False) -> Iterator[None]:
    """Make a folder if it is missing, and lock it for this process by a file `.lock` in it, on every system.

    At the end the file is removed, and so is the folder (with its new parents) if it is empty and was not empty before. When a
    process is killed, its lock ends. wait: wait while another process holds the lock; otherwise this raises LalkitError.
    """
    from filelock import FileLock, Timeout

    file = folder / ".lock"
    with writing(folder):
        new = [path for path in (folder, *folder.parents) if not path.exists()]
        new = new or [folder] * any(folder.iterdir())
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file, timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout:
            remedy = "Wait until it has ended, or give another folder."
            raise LalkitError("is being written by another process", where=str(folder), remedy=remedy) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file: there, filelock does it
            file.unlink()  # before the release: filelock sees that a file it waited for has gone, and takes the new one
        lock.release()
        for path in new:
            with suppress(OSError):  # it is not empty
                path.rmdir()
