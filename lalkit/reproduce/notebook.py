"""Run notebooks strictly: check the parameters before anything starts, and leave a complete record of every run.

A run has a folder of its own with the executed notebook, whatever the notebook saves there (`run_dir()`), and run.json.
Notebooks run in the repository root, so that data/sample/... means the same in every notebook and on the command line.

As a program, `python -m lalkit.reproduce.notebook FILE -f CONNECTION`, this file is the kernel of such a run: a usual one, which
at its end writes into FILE how much memory it took.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from lalkit.errors import CorpusError, LalkitError, TreebankError
from lalkit.evaluation import provenance
from lalkit.files import find_json, write_json, write_text, writing
from lalkit.reproduce.parameters import TAG, convert_all, read_parameters

RUN_DIR = "LALKIT_RUN_DIR"  # environment variable that tells the notebook where to save
KERNEL = "python3"
PEAK = ".peak"  # file in the run's folder into which the kernel writes its memory
PATIENCE = 60.0  # seconds that a kernel has to end by itself, so that it can write that file on a busy machine, too
CELL_TIMEOUT = 4 * 3600  # seconds; a cell that trains a parser on a CPU may take hours
SAME = ("notebook_sha256", "parameters", "code_sha256", "data_sha256")  # two runs are the same if these are equal
TREEBANK = ("treebank", "corpus")  # parameters that name a treebank
DATA = ("data", "classifier_data")  # parameters that name a companion's data: folders, or data of the code or of NLTK


class NotebookError(LalkitError):
    """A notebook that was started and did not reach its end; its folder is kept."""


@dataclass(frozen=True)
class RunResult:
    """A finished run. record is what run.json holds; its parameters are complete, with defaults."""

    folder: Path
    notebook: Path
    record: dict


def run_dir() -> Path:
    """Return where a notebook saves: its run's folder, or runs/by-hand if it is run cell by cell."""
    folder = Path(os.environ.get(RUN_DIR) or find_root(Path.cwd()) / "runs" / "by-hand")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find_root(start: Path) -> Path:
    """Return the repository root: the nearest folder upwards with a pyproject.toml, or start itself if there is none."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / "pyproject.toml").exists()), start)


def run_notebook(
    path: str | Path,
    parameters: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    cache: bool = False,
) -> RunResult:
    """Execute a notebook with papermill in this Python and this environment, in the repository root.

    It changes this process's environment while it runs. For several notebooks at once, use several processes.

    Args:
        path: the notebook.
        parameters: name -> value, or text as from a command line (see `lalkit.reproduce.parameters`).
        out: the run's folder, by default runs/<notebook>/<time>-<hash of notebook and parameters> under the repository
            root. Files of an earlier run in it are replaced.
        progress: whether to show a bar on standard error.
        cache: whether to return an earlier finished run instead, from runs/<notebook> or from `out`, if its notebook,
            parameters, source of lalkit and data are the same (`SAME`). Other files that the notebook reads, such as a
            parser, are not compared.

    Raises:
        ParameterError: a parameter is wrong; nothing was written.
        NotebookError: a cell failed or took longer than CELL_TIMEOUT, or the kernel died. The error has the number of
            the cell, from 1 in the notebook as it stands. The folder stays, with the notebook as far as it got and
            status "failed" in run.json.
    """
    path = Path(path).resolve()
    declared = read_parameters(path)
    changed = convert_all(declared, parameters or {}, path.name)
    complete = {name: p.default for name, p in declared.items()} | changed
    root = find_root(path.parent)
    record = {
        "notebook": path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name,
        "notebook_sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "parameters": complete,
        "seed": complete.get("seed"), "code_sha256": provenance.code_hash(), "data_sha256": _data_hash(complete, root),
        "status": "running", "error": None, "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None, "peak_memory_mb": None,  # of the kernel; None if it was killed
        "git": provenance.git_revision(root), "versions": provenance.versions(), "device": provenance.device(),
    }  # fmt: skip
    runs = root / "runs" / path.stem
    if cache and (earlier := _finished(record, path.name, [Path(out)] if out else runs.glob("*"))):
        return earlier
    folder = _make_folder(runs, out, record)
    write_json(folder / "run.json", record)
    final, partial = folder / path.name, folder / f"{path.stem}.partial.ipynb"
    begun = time.perf_counter()
    try:
        with writing(folder):
            _execute(path, partial, changed, folder, root, progress)
        record["status"] = "ok"
    except NotebookError as error:
        record.update(status="failed", error=error.problem)
        raise error.at(path.name) from None
    except BaseException as error:
        record.update(status="failed", error=f"{type(error).__name__}: {error}")
        raise
    finally:
        record["seconds"] = round(time.perf_counter() - begun, 3)
        with contextlib.suppress(OSError, ValueError):
            record["peak_memory_mb"] = float((folder / PEAK).read_text())
        (folder / PEAK).unlink(missing_ok=True)
        if notebook := find_json(partial, nan=True):  # papermill may have written only half of it, on a full disk
            write_json(final, _tidy(notebook, path.name))
        partial.unlink(missing_ok=True)
        write_json(folder / "run.json", record)
    return RunResult(folder, final, record)


def _finished(record: dict, name: str, folders: Iterable[Path]) -> RunResult | None:
    """Return the latest finished run in these folders that is the same as a run with this record would be."""
    earlier = [(folder.resolve(), find_json(folder / "run.json") or {}) for folder in folders]
    same = [
        RunResult(folder, folder / name, theirs)
        for folder, theirs in earlier
        if theirs.get("status") == "ok" and all(key in theirs and theirs[key] == record[key] for key in SAME)
    ]
    return max(same, key=lambda result: result.record["started"], default=None)


def _data_hash(parameters: dict, root: Path) -> str | None:
    """Return the hash of the treebank, or else of the folders, that the parameters name.

    None if they name none, or if the treebank cannot be read; the notebook itself will then say so.
    """
    treebank = next((parameters[key] for key in TREEBANK if parameters.get(key)), None)
    if isinstance(treebank, str):
        with contextlib.suppress(CorpusError, TreebankError):
            return provenance.data_hash(treebank)
        return None
    values = [parameters[key] for key in DATA if parameters.get(key)]
    names = [str(name) for value in values for name in (value if isinstance(value, list) else [value])]
    folders = {name: [provenance.files_hash(root / name)] for name in names if name and (root / name).is_dir()}
    return provenance.parts_hash(folders.items()) if folders else None


def _make_folder(runs: Path, out: str | Path | None, record: dict) -> Path:
    """Make the run's folder, and not one that another run of this second already has."""
    if out is not None:
        folder = Path(out).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    key = provenance.json_hash([record["notebook_sha256"], record["parameters"]])[:8]
    name, number = f"{datetime.now():%Y%m%d-%H%M%S}-{key}", 1
    while True:
        folder = runs / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
        number += 1


def _execute(path: Path, output: Path, changed: dict, folder: Path, root: Path, progress: bool) -> None:
    """Run papermill, and turn its many ways to fail into NotebookError."""
    import nbformat
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    node = nbformat.read(path, as_version=4)
    remedy = f"The notebook as far as it got: {folder / path.name}"
    try:
        with _environment(folder):
            papermill.execute_notebook(
                node,
                str(output).replace("{", "{{").replace("}", "}}"),  # papermill expands braces in paths
                parameters=changed or None,
                kernel_name=KERNEL,
                progress_bar={"ascii": True, "desc": path.stem, "file": sys.stderr} if progress else False,
                execution_timeout=CELL_TIMEOUT,
                cwd=str(root),
                config=Config({"KernelManager": {"shutdown_wait_time": PATIENCE}}),
            )
    except papermill.PapermillExecutionError as error:
        number = error.cell_index + 1 - _cells_added(node, changed, error.cell_index)
        problem = f"cell {number} failed with {error.ename}: {error.evalue}".rstrip(": ")
        line = next(iter(error.source.strip().splitlines()), "")
        raise NotebookError(problem, remedy=f"In: {line}\n  {remedy}") from None
    except CellTimeoutError:
        number = _cell_reached(output, node, changed)
        raise NotebookError(f"cell {number} took longer than {CELL_TIMEOUT} seconds", remedy=remedy) from None
    except (DeadKernelError, NoSuchKernel) as error:
        number = _cell_reached(output, node, changed)
        problem = f"the kernel did not start or died in cell {number} ({error})"
        raise NotebookError(problem, remedy=f"Often the memory is too small. {remedy}") from None


def _cells_added(node, changed: dict, index: int) -> int:
    """Return how many cells papermill put before this index of the executed notebook: its own parameters cell, or none."""
    tags = [cell.get("metadata", {}).get("tags", []) for cell in node.cells]
    if not changed or any("injected-parameters" in t for t in tags):
        return 0
    return int(index > next(i for i, t in enumerate(tags) if TAG in t))


def _cell_reached(output: Path, node, changed: dict) -> int | str:
    """Return the number, in the notebook as it stands, of the last cell that was started; "?" if none was."""
    cells = (find_json(output, nan=True) or {}).get("cells", [])
    states = [cell["metadata"].get("papermill", {}).get("status", "pending") for cell in cells]
    started = [i for i, state in enumerate(states) if state != "pending"]
    return started[-1] + 1 - _cells_added(node, changed, started[-1]) if started else "?"


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Tell the notebook its folder, and describe a kernel that is this very Python."""
    with tempfile.TemporaryDirectory(prefix="lalkit-kernel-") as jupyter:
        argv = [sys.executable, "-m", "lalkit.reproduce.notebook", str(folder / PEAK), "-f", "{connection_file}"]
        # It would warn that others could listen, but it is reached from this machine only.
        kernel = {"argv": [*argv, "--log-level=ERROR"], "display_name": "Python 3", "language": "python"}
        write_json(Path(jupyter) / "kernels" / KERNEL / "kernel.json", kernel)
        changes = {
            RUN_DIR: str(folder),
            "JUPYTER_PATH": os.pathsep.join(filter(None, (jupyter, os.environ.get("JUPYTER_PATH")))),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PYTHONWARNINGS": "ignore:IProgress not found",  # bars are text here
        }
        with patch.dict(os.environ, changes):
            yield


def _tidy(notebook: dict, name: str) -> dict:
    """Take out what a notebook should not hold if it is shared: paths of this machine, and the state of widgets."""
    notebook["metadata"].pop("widgets", None)
    notebook["metadata"].get("papermill", {}).update(input_path=name, output_path=name)
    return notebook


if __name__ == "__main__":
    peak_file = Path(sys.argv.pop(1))
    atexit.register(lambda: write_text(peak_file, f"{provenance.peak_memory()}"))
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
