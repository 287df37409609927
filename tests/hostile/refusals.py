"""What every hostile input must get: a result, or one clear error that changes no file.

A refusal is one LalkitError; on the command line it is exit code 2 and one message. It names the place of the problem (a file,
a line, a sentence, a setting) and says what to do. No input may end in a traceback.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lalkit.errors import LalkitError
from tests.command import lalkit

TREES = "( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n( (S (NP (NN Time)) (VP (VBD went))) )\n"


@contextmanager
def refused(*places: str, error: type[LalkitError] = LalkitError) -> Iterator[None]:
    """Expect an error of this class, which names these places and has a remedy."""
    with pytest.raises(error) as caught:
        yield
    for place in places:
        assert place in str(caught.value)
    assert caught.value.remedy, f"no remedy: {caught.value}"


def command_refused(folder: Path, arguments: Sequence, *places: str, stdin: bytes = b"") -> None:
    """Expect that a command, called in this folder, ends with exit code 2 and one message, and changes no file."""
    before = files_of(folder)
    code, _, err = lalkit(*arguments, stdin=stdin, cwd=folder)
    check_refusal(code, err, *places)
    assert files_of(folder) == before


def check_refusal(code: int, err: str, *places: str) -> None:
    """Check the exit code, and the one message on standard error: the problem, and in a second line the remedy."""
    assert code == 2, (code, err)
    assert "Traceback" not in err
    for place in places:
        assert place in err
    if "Usage: " not in err:
        _, message = f"\n{err}".rsplit("\nlalkit: ", 1)
        assert "\n  " in message.rstrip(), f"no remedy: {message}"


def files_of(folder: Path) -> dict[str, bytes | str | None]:
    """Return the path of everything in a folder with its bytes, to see what a command did to it."""
    everything = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        everything[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return everything


def nothing_half_written(folder: Path) -> None:
    """Check that no part file and no hidden file is left behind, except the lock of a run of a sweep, which is empty."""
    names = (Path(name).name for name in files_of(folder))
    assert [name for name in names if name.endswith(".part") or (name[0] == "." and name != ".lock")] == []
