"""Write files so that they appear whole or not at all: write beside the place, flush to the disk, then rename."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO

from lalkit.errors import LalkitError


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write a file and return its path. Missing folders are made.

    Raises OSError if the folder cannot be written to. Then a file that was there before is still whole.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def write_text(path: str | Path, text: str) -> Path:
    """Write text as UTF-8, as `write_bytes` does."""
    return write_bytes(path, text.encode())


def write_json(path: str | Path, value) -> Path:
    """Write a value as JSON, as `write_bytes` does."""
    return write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> dict | None:
    """Return the JSON object in a file, or None if there is no such file or it is damaged: for results that can be made again."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def check_writable(*paths: str | Path | None) -> None:
    """Check, before long work, that these files can be written. A path that is None is passed over.

    Raises LalkitError if a path is a folder, or if the folder it would be made in cannot be written to.
    """
    for path in filter(None, paths):
        path = Path(path).absolute()
        parent = next(folder for folder in path.parents if folder.exists())
        if path.is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
            problem = "is a folder" if path.is_dir() else f"cannot be written into {parent}"
            raise LalkitError(problem, where=str(path), remedy="Give the name of a file in a folder of yours.")


def lock(stream: IO, wait: bool) -> bool:
    """Lock an open file until it is closed. When a process dies, the system closes its files.

    Args:
        stream: an open file.
        wait: whether to wait while another process holds the lock.

    Returns:
        False if another process holds the lock and `wait` is False; otherwise True. Where the system or the file system
        has no locks (Windows, some network disks), nothing is locked and the answer is True.
    """
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True
