"""What a run leaves in its folder: result.json, the last to be written, which says whether it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lalkit.files import write_json

RESULT = "result.json"
FAILED = 3  # exit code of a run that has said there why it failed


def read_result(folder: str | Path) -> dict | None:
    """None where there is none, or none that is whole."""
    try:
        found = json.loads((Path(folder) / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def finished(folder: str | Path, key: str) -> dict | None:
    """The result of a run that is done and has this key; a failed one is not done."""
    found = read_result(folder)
    return found if found and found.get("status") == "ok" and found.get("key") == key else None


def write_failure(folder: str | Path, task: dict, error: str) -> None:
    """Leaves word of a run that came to no end."""
    write_json(Path(folder) / RESULT, {**task, "status": "failed", "error": error})


@contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """Waits until no other process works in the folder: one that lost its sweep may be about to end. A process that dies
    lets go. (Without file locks, on Windows, nobody waits.)"""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / ".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
