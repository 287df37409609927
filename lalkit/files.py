"""Files appear whole or not at all: written beside their place, flushed, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lalkit.errors import LalkitError


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Raises OSError where the folder cannot be written to; never leaves a half-written file in place of `path`."""
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


def can_be_written(*paths: str | Path | None) -> None:
    """To be asked before long work. Raises LalkitError for a folder, or a place below what is none or closed; None is fine."""
    for path in filter(None, paths):
        path = Path(path).absolute()
        parent = next(folder for folder in path.parents if folder.exists())
        if path.is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
            problem = "is a folder" if path.is_dir() else f"cannot be written into {parent}"
            raise LalkitError(problem, where=str(path), remedy="Give the name of a file that can be made.")


def write_text(path: str | Path, text: str) -> Path:
    return write_bytes(path, text.encode())


def write_json(path: str | Path, value) -> Path:
    return write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
