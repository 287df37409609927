"""Running notebooks strictly: parameters are checked before anything starts, and every run leaves a complete record.

A run has a folder of its own with the executed notebook, whatever the notebook saves there (`run_dir()`), and run.json.
Notebooks run in the repository root, so data/sample/... means the same in every notebook and on the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lalkit.errors import CorpusError, LalkitError, TreebankError
from lalkit.evaluation.provenance import code_hash, data_hash, device, files_hash, git_revision, parts_hash, versions
from lalkit.files import write_json
from lalkit.reproduce.parameters import TAG, convert_all, read_parameters

RUN_DIR = "LALKIT_RUN_DIR"  # environment variable: tells the notebook where to save
KERNEL = "python3"
PEAK = ".peak"  # file in the run's folder: the kernel's last words
CELL_TIMEOUT = 4 * 3600  # seconds; a cell that trains a parser on a CPU may take hours
SAME = ("notebook_sha256", "parameters", "code_sha256", "data_sha256")  # what makes two runs one
TREEBANK = ("treebank", "corpus")  # parameters that name the data
DATA = ("data", "classifier_data")  # and a companion's: folders, or what comes with the code or with NLTK


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
    cache: bool = False,
) -> RunResult:
    """Execute a notebook with papermill in this Python and this environment, in the repository root.

    parameters: name -> value, or text as from a command line (see `lalkit.reproduce.parameters`). timeout: seconds per cell.
    out: the run's folder, by default runs/<notebook>/<time>-<hash of notebook and parameters> under the repository
    root; files of an earlier run in it are replaced. progress: a bar on standard error. cache: a finished run with the
    same notebook, parameters, source of lalkit and data (see `SAME`: a treebank, or folders of files) is returned instead,
    from runs/<notebook>, or from `out` where that is given; what other files the notebook reads, such as a parser's, is
    not compared.

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
    record = {
        "notebook": path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name,
        "notebook_sha256": digest,
        "parameters": complete,
        "seed": complete.get("seed"),
        "code_sha256": code_hash(),
        "data_sha256": _data_hash(complete, root),
        "status": "running",
        "error": None,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None,
        "peak_memory_mb": None,  # of the kernel; None where it was killed
        "git": git_revision(root),
        "versions": versions(),
        "device": device(),
    }
    earlier = [Path(out)] if out else (root / "runs" / path.stem).glob("*")
    if cache and (found := _finished(record, path.name, earlier)):
        return found
    folder = _make_folder(path, out, root, digest, complete)
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
        record["peak_memory_mb"] = _peak(folder / PEAK)
        if partial.exists():
            _tidy(partial, path.name)
            os.replace(partial, final)
        write_json(folder / "run.json", record)
    return RunResult(folder, final, record)


def _finished(record: dict, name: str, folders: Iterable[Path]) -> RunResult | None:
    """The latest finished run of those in the folders that is the same as the record's would be."""
    found = []
    for folder in folders:
        with contextlib.suppress(OSError, ValueError):
            earlier = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            if earlier["status"] == "ok" and all(key in earlier and earlier[key] == record[key] for key in SAME):
                found.append(RunResult(folder.resolve(), folder.resolve() / name, earlier))
    return max(found, key=lambda result: result.record["started"], default=None)


def _data_hash(parameters: dict, root: Path) -> str | None:
    """Of the treebank, or else the folders, that parameters name; None where none does, or it cannot be read: the notebook
    will say so."""
    name = next((parameters[key] for key in TREEBANK if parameters.get(key)), None)
    if isinstance(name, str):
        with contextlib.suppress(CorpusError, TreebankError):
            return data_hash(name)
        return None
    given = [parameters[key] for key in DATA if parameters.get(key)]
    names = [name for value in given for name in (value if isinstance(value, list) else [value])]
    folders = {name: [files_hash(root / name)] for name in map(str, names) if name and (root / name).is_dir()}
    return parts_hash(folders.items()) if folders else None


def _peak(file: Path) -> float | None:
    """What the kernel said of its memory, in MB."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None
    finally:
        file.unlink(missing_ok=True)


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
        argv = [sys.executable, "-m", "lalkit.reproduce.kernel", str(folder / PEAK), "-f", "{connection_file}"]
        kernel = Path(jupyter) / "kernels" / KERNEL
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
        )
        paths = os.pathsep.join(filter(None, (jupyter, os.environ.get("JUPYTER_PATH"))))
        changes = {RUN_DIR: str(folder), "JUPYTER_PATH": paths, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        changes["PYTHONWARNINGS"] = "ignore:IProgress not found"  # bars are text here
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
