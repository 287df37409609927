"""Record where a number comes from: the code, the data, the versions, the device and the memory."""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import lalkit
from lalkit.errors import CorpusError
from lalkit.treebank.corpora import SPLITS, load

PACKAGE = Path(__file__).parents[1]
# The numbers of a trained parser depend on these. Imports flow one way, so no other room can change them.
OF_TRAINING = (
    "__init__.py", "errors.py", "files.py", "config.py", "treebank", "evaluation", "chart", "network", "training",
)  # fmt: skip


def code_hash(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of the names and contents of a package's files, tables of rules included, as they are on disk now."""
    paths = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = {path.relative_to(package).as_posix(): path for path in paths}
    hashed = (f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for name, path in sorted(files.items()))
    return hashlib.sha256("".join(hashed).encode()).hexdigest()


def training_hash(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of the code that a training and its scores depend on, as it is on disk now.

    Comments, docstrings and the layout of the code do not count, so that a sweep continues after a change of these. Files that
    editors and systems leave beside the code, such as .DS_Store and .ipynb_checkpoints, do not count either.
    """
    places = (package / name for name in OF_TRAINING)
    files = [path for place in places for path in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    names = {path.relative_to(package).as_posix(): path for path in files if path.suffix in (".py", ".txt", ".json")}
    return json_hash({name: _code(path) for name, path in names.items() if not f"/{name}".count("/.")})


def _code(path: Path) -> str:
    """Return the text of a file; of Python code, its syntax tree without docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return re.sub(r"\w+=\[\](, )?", "", ast.dump(tree)).replace(", )", ")")  # Pythons differ in what is empty


def data_hash(treebank: str, tasks: Collection[str] = ("joint",)) -> str:
    """Return the SHA-256 of all sentences of a treebank, in every split it has, as they are read for each of the tasks.

    Raises CorpusError if the treebank is not on this machine, TreebankError if it cannot be read.
    """
    return parts_hash(part for task in sorted(tasks) for part in splits(treebank, task).items())


def parts_hash(parts: Iterable[tuple[str, Sequence]]) -> str:
    """Return the SHA-256 of data in parts, (name, members): of all members, in their order."""
    digest = hashlib.sha256()
    for name, members in parts:
        digest.update(f"{name} {len(members)}\n".encode())
        for member in members:
            digest.update(f"{member!r}\n".encode())
    return digest.hexdigest()


def json_hash(value) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys. Caches use it as a key."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def splits(treebank: str, task: str = "joint", names: Sequence[str] = SPLITS) -> dict:
    """Return split -> sentences, without a test part if the treebank has none, as CRAFT. Raises as `data_hash` does."""
    parts = {}
    for split in names:
        try:
            parts[split] = load(treebank, split, task=task).sentences
        except CorpusError:
            if split != "test":
                raise
    return parts


def git_revision(root: Path) -> str | None:
    """Return the repository's commit, with "+changes" if tracked files differ from it; None outside git."""
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of lalkit, Python, and the packages that the numbers come from."""
    packages = {package: version(package) for package in ("torch", "transformers")}
    return {"lalkit": lalkit.__version__, "python": platform.python_version(), **packages}


def device() -> str:
    """Return the device that torch would use: the name of the GPU, or the processor's architecture."""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"cpu ({platform.machine()})"


def peak_memory() -> float | None:
    """Return the most memory this process has used, in MB of 1024 x 1024 bytes; None on other systems than Linux."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+)", status.read_text()) if status.exists() else None
    return round(int(found[1]) / 1024, 1) if found else None
