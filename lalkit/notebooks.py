"""Running notebooks strictly: parameters are checked before anything starts, and every run leaves a complete record.

A run has a folder of its own with the executed notebook, whatever the notebook saves there (`run_dir()`), and run.json.
Notebooks run in the repository root, so data/sample/... means the same in every notebook and on the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import lalkit
from lalkit.errors import LalkitError
from lalkit.files import write_json
from lalkit.parameters import TAG, convert_all, read_parameters

RUN_DIR = "LALKIT_RUN_DIR"  # environment variable: tells the notebook where to save
KERNEL = "python3"
CELL_TIMEOUT = 4 * 3600  # seconds; a cell that trains a parser on a CPU may take hours


class NotebookError(LalkitError):
    """A notebook that was started and did not reach its end; its folder is kept."""


@dataclass(frozen=True)
class RunResult:
    """A finished run. record is what run.json holds; parameters in it are complete, defaults included."""

    folder: Path
    notebook: Path
    record: dict

    @property
    def seconds(self) -> float:
        return self.record["seconds"]

    def files(self) -> list[Path]:
        """What the notebook saved: everything in the folder but the notebook itself and run.json."""
        own = {self.notebook, self.folder / "run.json"}
        return sorted(p for p in self.folder.rglob("*") if p.is_file() and p not in own)


def run_dir() -> Path:
    """Where a notebook saves its figures and tables: its run's folder, or runs/by-hand where it is run cell by cell."""
    folder = Path(os.environ.get(RUN_DIR) or find_root(Path.cwd()) / "runs" / "by-hand")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find_root(start: Path) -> Path:
    """The repository root: the nearest folder upwards that has a pyproject.toml; without one, start itself."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / "pyproject.toml").exists()), start)


def run_notebook(
    path: str | Path,
    parameters: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    *,
    timeout: float = CELL_TIMEOUT,
    progress: bool = True,
) -> RunResult:
    """Execute a notebook with papermill in this Python and this environment, in the repository root.

    parameters: name -> value, or text as from a command line (see `lalkit.parameters`). timeout: seconds per cell.
    out: the run's folder, by default runs/<notebook>/<time>-<hash of notebook and parameters> under the repository
    root; files of an earlier run in it are replaced. progress: a bar on standard error.

    Raises ParameterError before anything is written, and NotebookError, with the number of the cell (from 1, in the
    notebook as it stands) and its error, if a cell fails, takes too long or the kernel dies. The folder is kept then,
    with the notebook as far as it got and status "failed" in run.json. Changes this process's environment while it
    runs: for several notebooks at once use several processes.
    """
    path = Path(path).resolve()
    declared = read_parameters(path)
    given = convert_all(declared, parameters or {}, str(path.name))
    complete = {name: p.default for name, p in declared.items()} | given
    root = find_root(path.parent)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    folder = _make_folder(path, out, root, digest, complete)
    record = {
        "notebook": path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name,
        "notebook_sha256": digest,
        "parameters": complete,
        "status": "running",
        "error": None,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None,
        "git": git_revision(root),
        "versions": _versions(),
        "device": _device(),
    }
    write_json(folder / "run.json", record)
    final, partial = folder / path.name, folder / f"{path.stem}.partial.ipynb"
    begun = time.perf_counter()
    try:
        _execute(path, partial, given, folder, root, timeout, progress)
        record["status"] = "ok"
    except NotebookError as error:
        record.update(status="failed", error=error.problem)
        raise error.at(str(path.name)) from None
    except BaseException as error:
        record.update(status="failed", error=f"{type(error).__name__}: {error}")
        raise
    finally:
        record["seconds"] = round(time.perf_counter() - begun, 3)
        if partial.exists():
            _tidy(partial, path.name)
            os.replace(partial, final)
        write_json(folder / "run.json", record)
    return RunResult(folder, final, record)


def _execute(path: Path, output: Path, given: dict, folder: Path, root: Path, timeout: float, progress: bool) -> None:
    """Papermill, with its many ways to fail turned into NotebookError."""
    import nbformat
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    node = nbformat.read(path, as_version=4)
    remedy = f"The notebook as far as it got: {folder / path.name}"
    try:
        with _environment(folder):
            papermill.execute_notebook(
                node,
                str(output).replace("{", "{{").replace("}", "}}"),  # papermill expands braces in paths
                parameters=given or None,
                kernel_name=KERNEL,
                progress_bar={"ascii": True, "desc": path.stem, "file": sys.stderr} if progress else False,
                execution_timeout=max(1, round(timeout)),
                cwd=str(root),
            )
    except papermill.PapermillExecutionError as error:
        number = error.cell_index + 1 - _cells_added(node, given, error.cell_index)
        problem = f"cell {number} failed with {error.ename}: {error.evalue}".rstrip(": ")
        raise NotebookError(problem, remedy=f"In: {_first_line(error.source)}\n  {remedy}") from None
    except CellTimeoutError:
        number = _cell_reached(output, node, given)
        raise NotebookError(f"cell {number} took longer than {timeout:g} seconds", remedy=remedy) from None
    except (DeadKernelError, NoSuchKernel) as error:
        number = _cell_reached(output, node, given)
        problem = f"the kernel did not start or died in cell {number} ({error})"
        raise NotebookError(problem, remedy=f"Often the memory is too small. {remedy}") from None


def _cells_added(node, given: dict, index: int) -> int:
    """How many cells papermill put before the cell at index of the executed notebook: its parameters cell, or none."""
    tags = [cell.get("metadata", {}).get("tags", []) for cell in node.cells]
    if not given or any("injected-parameters" in t for t in tags):
        return 0
    return int(index > next(i for i, t in enumerate(tags) if TAG in t))


def _cell_reached(output: Path, node, given: dict) -> int | str:
    """The number, in the notebook as it stands, of the last cell that was started; "?" if none was."""
    try:
        cells = json.loads(output.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return "?"
    started = [
        i for i, c in enumerate(cells) if c["metadata"].get("papermill", {}).get("status", "pending") != "pending"
    ]
    return started[-1] + 1 - _cells_added(node, given, started[-1]) if started else "?"


def _first_line(source: str) -> str:
    return next((line.strip() for line in source.splitlines() if line.strip()), "")


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """The run's folder for the notebook, and a kernel description that means this very Python."""
    with tempfile.TemporaryDirectory(prefix="lalkit-kernel-") as jupyter:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel = Path(jupyter) / "kernels" / KERNEL
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
        )
        paths = os.pathsep.join(filter(None, (jupyter, os.environ.get("JUPYTER_PATH"))))
        changes = {RUN_DIR: str(folder), "JUPYTER_PATH": paths, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def _make_folder(path: Path, out: str | Path | None, root: Path, digest: str, parameters: dict) -> Path:
    """The run's folder, made; never one that another run of this second already has."""
    if out is not None:
        folder = Path(out).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    key = hashlib.sha256((digest + json.dumps(parameters, sort_keys=True)).encode()).hexdigest()[:8]
    base = root / "runs" / path.stem / f"{datetime.now():%Y%m%d-%H%M%S}-{key}"
    for attempt in range(1, 1000):
        folder = base if attempt == 1 else base.with_name(f"{base.name}-{attempt}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise NotebookError(f"{base} and its successors all exist", remedy="Remove old runs.")


def _tidy(path: Path, name: str) -> None:
    """Takes out what does not belong into a notebook that may be shared: paths of this machine, and widget state."""
    with contextlib.suppress(ValueError):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["metadata"].pop("widgets", None)
        notebook["metadata"].get("papermill", {}).update(input_path=name, output_path=name)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def git_revision(root: Path) -> str | None:
    """The commit the repository stands on, with "+changes" if tracked files differ from it; None outside git."""

    def ask(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return ask("rev-parse", "HEAD") + ("+changes" if ask("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"lalkit": lalkit.__version__, "python": platform.python_version()}
    for package in ("torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _device() -> str:
    """What torch would compute on: the name of the GPU, or the processor's architecture."""
    try:
        import torch
    except ImportError:
        return f"cpu ({platform.machine()})"
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"cpu ({platform.machine()})"
