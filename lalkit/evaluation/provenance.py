"""Where a number comes from: which code, which data, which versions, on what device, with how much memory."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import lalkit
from lalkit.errors import CorpusError
from lalkit.treebank.corpora import SPLITS, load

PACKAGE = Path(__file__).parents[1]


def code_hash(package: Path = PACKAGE) -> str:
    """SHA-256 of the names and contents of a package's Python files, as they are on disk now."""
    return files_hash(package, "*.py")


def files_hash(folder: Path, pattern: str = "*") -> str:
    """SHA-256 of the names and contents of a folder's files, as they are on disk now."""
    found = hashlib.sha256()
    files = (path for path in folder.rglob(pattern) if path.is_file())
    for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return found.hexdigest()


def data_hash(treebank: str, tasks: Collection[str] = ("joint",)) -> str:
    """SHA-256 of all that the sentences of a treebank hold, of every split it has, as they are read for each of the tasks.

    Raises CorpusError where it is not on this machine, TreebankError where it cannot be read.
    """
    return parts_hash(part for task in sorted(tasks) for part in splits(treebank, task).items())


def parts_hash(parts: Iterable[tuple[str, Sequence]]) -> str:
    """SHA-256 of data in parts, (name, members): of all that their members hold, in their order."""
    found = hashlib.sha256()
    for name, members in parts:
        found.update(f"{name} {len(members)}\n".encode())
        for member in members:
            found.update(f"{member!r}\n".encode())
    return found.hexdigest()


def json_hash(value) -> str:
    """Return the SHA-256 of a JSON value; the order of its keys does not matter. Cached results are found again by it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def splits(treebank: str, task: str) -> dict:
    """split -> sentences, of those splits that the treebank has; CRAFT has no test part. Raises as `data_hash` does."""
    found = {}
    for split in SPLITS:
        try:
            found[split] = load(treebank, split, task=task).sentences
        except CorpusError:
            if split != "test":
                raise
    return found


def git_revision(root: Path) -> str | None:
    """The commit the repository stands on, with "+changes" if tracked files differ from it; None outside git."""

    def ask(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return ask("rev-parse", "HEAD") + ("+changes" if ask("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str | None]:
    """Of lalkit, Python, and what the numbers come from."""
    found: dict[str, str | None] = {"lalkit": lalkit.__version__, "python": platform.python_version()}
    for package in ("torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def device() -> str:
    """What torch would compute on: the name of the GPU, or the processor's architecture."""
    try:
        import torch
    except ImportError:
        return f"cpu ({platform.machine()})"
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"cpu ({platform.machine()})"


def peak_memory() -> float | None:
    """MB (of 1024 x 1024 bytes) this process has had in memory at most; None on Windows.

    Linux hands ru_maxrss on to a program that a large process starts; VmHWM begins anew with the program.
    """
    try:
        status = Path("/proc/self/status").read_text()
        kilobytes = float(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:
            return None
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kilobytes = most / 1024 if sys.platform == "darwin" else most
    return round(kilobytes / 1024, 1)
