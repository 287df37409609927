"""Tables of hostile inputs. Every case says what must happen, and whether that happens today.

A case is one of two kinds. Its input is accepted, with the result that the case names; or it is refused: with exactly one
LalkitError (on the command line: exit code 2) that names what is wrong and says what to do. A refusal leaves every file as
it was. No case may end in a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lalkit.errors import LalkitError
from tests.command import lalkit

# What is wrong today, by name. A case that names a defect must fail until the defect is mended; then its mark must go.
DEFECTS: dict[str, str] = {}

EVERY = 12  # one case of so many is not slow: a sample for the fast tests


def case(name: str, *values, defect: str = "") -> tuple:
    """Return one row of a table: its name, the values of its columns, and the name of a defect that makes it fail today."""
    assert defect in DEFECTS or not defect, defect
    return name, values, defect


def table(columns: str, cases: Iterable[tuple], sample: bool = True) -> pytest.MarkDecorator:
    """Return the decorator that runs a test on every case. A case with a defect must fail. Most cases are marked slow."""
    rows = []
    for number, (name, values, defect) in enumerate(cases):
        marks = [] if sample and number % EVERY == 0 and not defect else [pytest.mark.slow]
        if defect:
            marks.append(pytest.mark.xfail(strict=True, reason=f"{defect}: {DEFECTS[defect]}"))
        rows.append(pytest.param(*values, id=name, marks=marks))
    return pytest.mark.parametrize(columns, rows)


def words_of(says: str | Sequence[str]) -> Sequence[str]:
    return (says,) if isinstance(says, str) else says


@contextmanager
def refused(says: str | Sequence[str]) -> Iterator[None]:
    """Expect a LalkitError whose text contains all these words, and that says what to do."""
    with pytest.raises(LalkitError) as caught:
        yield
    for word in words_of(says):
        assert word in str(caught.value)
    assert caught.value.remedy, f"no remedy: {caught.value}"


def files_of(folder: Path) -> dict[str, bytes | str | None]:
    """Return the path of everything in a folder with its bytes, to see what a command did to it."""
    everything = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        everything[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return everything


def command_refused(folder: Path, arguments: Sequence, says: str | Sequence[str], stdin: bytes = b"") -> None:
    """Expect that a command, called in this folder, ends with exit code 2 and one message, and changes no file."""
    before = files_of(folder)
    code, _, err = lalkit(*arguments, stdin=stdin, cwd=folder)
    check_refusal(code, err, says)
    assert files_of(folder) == before


def check_refusal(code: int, err: str, says: str | Sequence[str]) -> None:
    """Check exit code 2 and one message on standard error: it names what is wrong, and says what to do in a second line."""
    assert code == 2, (code, err)
    assert "Traceback" not in err
    for word in words_of(says):
        assert word in err
    if "Usage: " not in err:
        _, message = err.rsplit("lalkit: ", 1)
        assert "\n  " in message.rstrip(), f"no remedy: {message}"


def nothing_half_written(folder: Path) -> None:
    """Check that no part file and no hidden file is left behind, except the lock of a run of a sweep, which is empty."""
    left = [name for name in files_of(folder) if name.endswith(".part") or Path(name).name.startswith(".")]
    left = [name for name in left if Path(name).name != ".lock"]
    assert left == []
