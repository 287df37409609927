"""Files appear whole or not at all: written beside their place, flushed, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path


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


def write_text(path: str | Path, text: str) -> Path:
    return write_bytes(path, text.encode())


def write_json(path: str | Path, value) -> Path:
    return write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
