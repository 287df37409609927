"""Run notebooks strictly: check the parameters before anything starts, and leave a complete record of every run.

A run has a folder of its own with the executed notebook, its files (see `run_dir`), and run.json. Notebooks run in the repository
root, so that data/sample/... means the same in every notebook and on the command line.

A notebook has one cell with the tag `parameters`. It holds lines of the form `name: type = literal  # help` and comments, nothing
else. The types are str, int, float, bool, and a list of these. We read this cell ourselves: papermill's own inspection skips
lines that it does not understand, and papermill only warns about unknown names.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

from pydantic import AllowInfNan, TypeAdapter, ValidationError

from lalkit.errors import LalkitError, ParameterError, did_you_mean
from lalkit.evaluation import provenance
from lalkit.files import find_json, in_utf8, read_json, remove_parts, write_json, writing
from lalkit.treebank.corpora import repository

TAG = "parameters"
FORM = "Write each line like: epochs: int = 3  # help. Types: str, int, float, bool, list[...]."
# The name of a type in a notebook -> the type.
TYPES: dict[str, Any] = {"str": str, "int": int, "float": Annotated[float, AllowInfNan(False)], "bool": bool}
TYPES |= {f"list[{name}]": list[kind] for name, kind in TYPES.items()}  # type: ignore[valid-type]
RUN_DIR = "LALKIT_RUN_DIR"  # environment variable that tells the notebook where to save
MOST_SHOWN = 300  # characters of a cell and of its error in a message
PATIENCE = 60.0  # seconds that a kernel has to end by itself on a busy machine


class NotebookError(LalkitError):
    """A notebook that was started and did not reach its end; its folder is kept."""


# ---------------------------------------------------------------- parameters


class Parameter(NamedTuple):
    """One declared parameter; `type` is as the notebook writes it, `default` is a Python value of that type."""

    name: str
    type: str
    default: object

    def convert(self, value: Any, notebook: str = "") -> object:
        """Return the value as the declared type. Text from a command line is read: 3, 5e-5, true, or a,b,c for a list.

        Raises ParameterError with the notebook, the parameter, its declared type and the value.
        """
        given, text = value, isinstance(value, str)
        if isinstance(value, Path | tuple):
            value = str(value) if isinstance(value, Path) else list(value)
        elif text and self.type.startswith("list"):
            value = _items(value)
        try:
            return TypeAdapter(TYPES[self.type]).validate_python(value, strict=not text)
        except ValidationError:
            problem = f"parameter {self.name} is declared as {self.type}, but was given {given!r}"
            raise ParameterError(problem, where=notebook, remedy="Give such a value; a list is a,b,c.") from None


def read_parameters(path: str | Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, in its order.

    Raises ParameterError if the file is not a notebook, if it has not exactly one cell tagged `parameters`, or if that cell
    has a line of another form, an unknown type, a default of another type, or a name twice.
    """
    import nbformat

    remedy = "Give an .ipynb file that Jupyter can open, with one code cell tagged 'parameters' (gear, Cell Tags)."
    notebook = read_json(path, remedy, ParameterError, nan=True)
    try:
        nbformat.validate(nbformat.from_dict(notebook), version=4, relax_add_props=True)
    except Exception as error:  # of many kinds
        problem = f"is not a Jupyter notebook (version 4): {str(error).partition(chr(10))[0][:200]}"
        raise ParameterError(problem, where=str(path), remedy=remedy) from None
    tagged = [(i, cell) for i, cell in enumerate(notebook["cells"], 1) if TAG in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        problem = f"has {len(tagged)} cells tagged '{TAG}', and must have one"
        raise ParameterError(problem, where=str(path), remedy=remedy)
    ((number, cell),) = tagged
    return parse_declarations("".join(cell["source"]), f"{path}, cell {number}")


def parse_declarations(source: str, where: str = "") -> dict[str, Parameter]:
    """Return the parameters that the text of a cell declares. Raises ParameterError as `read_parameters` does."""
    parameters: dict[str, Parameter] = {}
    line = 1
    try:
        for statement in ast.parse(source).body:
            line = statement.lineno
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=declared, value=ast.expr() as literal):
                    kind, default = ast.unparse(declared), ast.literal_eval(literal)
                    TypeAdapter(TYPES[kind]).validate_python(default, strict=True)
                case _:
                    raise ValueError
            if name in parameters:
                raise ValueError
            parameters[name] = Parameter(name, kind, default)
    except (SyntaxError, ValueError, KeyError, MemoryError, RecursionError):  # pydantic's are ValueErrors, too
        problem = f"line {line} declares no parameter, or one twice, or with a wrong type"
        raise ParameterError(problem, where=where, remedy=FORM) from None
    return parameters


def convert_all(declared: Mapping[str, Parameter], values: Mapping[str, object], where: str = "") -> dict[str, object]:
    """Return the values, converted. Raises ParameterError for a wrong type or an unknown name, and suggests a near one."""
    for name in values:
        if name not in declared:
            raise ParameterError(f"unknown parameter {name}", where=where, remedy=suggest(name, declared))
    return {name: declared[name].convert(value, where) for name, value in values.items()}


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a remedy for an unknown name: the nearest known one, and a list of all."""
    known = list(known)
    return f"{did_you_mean(name, known)}Known: {', '.join(known) or 'none'}."


# ---------------------------------------------------------------- runs


class RunResult(NamedTuple):
    """A finished run. record is the content of run.json; its parameters are complete, with defaults."""

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


def read_profile(profile: str, *tables: str) -> str:
    """Check the profile of a notebook, and return a sentence about it: which files it reads, and their dates.

    Args:
        profile: committed (read our results), five-minutes (compute small ones), or full (compute ours again).
        tables: the files, as the first column of book/reproduce.md names them.

    Raises: ParameterError for an unknown profile.
    """
    known = {
        "five-minutes": "computes small results now, in a few minutes",
        "full": "computes all results again, in hours",
    }
    if profile == "committed":
        page = committed("book/reproduce.md").read_text(encoding="utf-8")
        rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
        made = {name.strip("`"): row[-1] for row in rows for name in row[0].split(", ")}
        known[profile] = "reads " + ", ".join(f"figures/{name} (made on {made[name]})" for name in tables)
    if profile not in known:
        raise ParameterError(f"there is no profile {profile!r}", remedy=f"Profiles: committed, {', '.join(known)}.")
    return f"Profile {profile}: this notebook {known[profile]}. book/reproduce.md has the commands."


def committed(file: str) -> Path:
    """Return the path of a file of the repository, such as figures/table.csv, wherever a notebook runs.

    >>> committed("figures/peers/peers.csv").name
    'peers.csv'
    """
    return repository() / file


def read_list(value: str | Sequence) -> Sequence:
    """Return a list parameter. In a text (`papermill -p`: '["NP", "VP"]', or NP,VP), whole numbers become int."""
    if not isinstance(value, str):
        return value
    return [int(item) if item.isdecimal() else item for item in _items(value)]


def _items(text: str) -> list[str]:
    """Return the items of a list that is written as a,b,c or as ['a', 'b', 'c']."""
    with contextlib.suppress(Exception):  # a literal, whose texts may hold commas
        if isinstance(items := ast.literal_eval(text.strip()), list) and {*map(type, items)} == {str}:
            return items
    items = (item.strip().strip("'\"") for item in text.strip().strip("[]").split(","))
    return [item for item in items if item]


def run_notebook(
    path: str | Path, parameters: Mapping | None = None, out: str | Path | None = None, *, progress: bool = True
) -> RunResult:
    """Execute a notebook with papermill in this Python and this environment, in the repository root.

    It changes this process's environment while it runs. For several notebooks at once, use several processes.

    Args:
        path: the notebook.
        parameters: name -> value, or text as from a command line.
        out: the run's folder, by default runs/<notebook>/<time>-<hash of notebook and parameters> under the repository
            root. Files of an earlier run in it are replaced.
        progress: whether to show a bar on standard error.

    Raises:
        ParameterError: a parameter is wrong; nothing was written.
        NotebookError: a cell failed, or the kernel died. The error has the number of the cell that failed, from 1 in the
            notebook file. The folder stays, with the outputs before the failure and status "failed" in run.json.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP ended it. The folder stays in the same way, with status "interrupted".
    """
    declared, path = read_parameters(path), Path(path).resolve()
    if in_utf8(path) != str(path):
        raise ParameterError("its name, or that of a folder, is not UTF-8", where=str(path), remedy="Rename it.")
    changed = convert_all(declared, parameters or {}, path.name)
    complete = {name: p.default for name, p in declared.items()} | changed
    root = find_root(path.parent)
    record = {
        "notebook": path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name,
        "notebook_sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "parameters": complete,
        "seed": complete.get("seed"), "code_sha256": provenance.code_hash(), "status": "running", "error": None,
        "started": datetime.now(UTC).isoformat(timespec="seconds"), "seconds": None,
        "git": provenance.git_revision(root), "versions": provenance.versions(), "device": provenance.device(),
    }  # fmt: skip
    key = provenance.json_hash([record["notebook_sha256"], complete])[:8]
    usual = root / "runs" / path.stem / f"{datetime.now():%Y%m%d-%H%M%S.%f}-{key}"
    folder = Path(out).resolve() if out else usual
    if folder == path.parent:
        raise ParameterError("the run would replace its own notebook", where=str(folder), remedy="Give another folder.")
    folder.mkdir(parents=True, exist_ok=out is not None)
    write_json(folder / "run.json", record)
    final, partial = folder / path.name, folder / f"{path.stem}.partial.ipynb"
    begun = time.perf_counter()
    try:
        with writing(folder), _stopped_by_signals():
            _execute(path, partial, changed, complete, folder, root, progress)
        record["status"] = "ok"
    except KeyboardInterrupt as error:
        record.update(status="interrupted", error=str(error) or None)
        raise KeyboardInterrupt(f"the notebook as far as it got: {final}") from None
    except BaseException as error:
        failure = error.problem if isinstance(error, NotebookError) else f"{type(error).__name__}: {error}"
        record.update(status="failed", error=failure)
        raise
    finally:
        record["seconds"] = round(time.perf_counter() - begun, 3)
        if notebook := find_json(partial, nan=True):  # papermill may have written only half of it, on a full disk
            # Take out what a notebook should not hold if it is shared: paths of this machine, and the state of widgets.
            notebook["metadata"].pop("widgets", None)
            notebook["metadata"].get("papermill", {}).update(input_path=path.name, output_path=path.name)
            write_json(final, notebook)
        partial.unlink(missing_ok=True)
        write_json(folder / "run.json", record)
    return RunResult(folder, final, record)


def _execute(path: Path, output: Path, changed: dict, complete: dict, folder: Path, root: Path, progress: bool) -> None:
    """Run papermill, and turn its different errors into NotebookError."""
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns of parameters whose comment it cannot read
    node = nbformat.read(path, as_version=4)
    tags = [cell.get("metadata", {}).get("tags", []) for cell in node.cells]
    place = next(i for i, names in enumerate(tags) if TAG in names)
    # papermill adds its own cell after the parameters, or replaces the one of an earlier run
    injected = any("injected-parameters" in names for names in tags)
    adds_cell = bool(changed) and not injected

    try:
        with _environment(folder) as jupyter:
            manager = {"shutdown_wait_time": PATIENCE, "connection_file": f"{jupyter}/connection.json"}
            done = papermill.execute_notebook(
                node,
                str(output).replace("{", "{{").replace("}", "}}"),  # papermill expands braces in paths
                parameters=(complete if injected else changed) or None,
                kernel_name="python3",
                language="python",
                progress_bar={"ascii": True, "desc": path.stem, "file": sys.stderr} if progress else False,
                cwd=str(root),
                config=Config({"KernelManager": manager}),
            )
        for index, cell in enumerate(done.cells):
            for out in cell.get("outputs", ()):
                if out.get("ename") == "SystemExit":  # of sys.exit(0), which papermill takes for a success
                    raise papermill.PapermillExecutionError(index, None, cell.source, out.ename, out.evalue, [])
        return
    except papermill.PapermillExecutionError as error:
        line = next(iter(error.source.strip().splitlines()), "")[:MOST_SHOWN]
        number = error.cell_index + 1 - (adds_cell and error.cell_index > place)  # in the notebook file
        said = f"{error.ename}: {' '.join(error.evalue[: 9 * MOST_SHOWN].split())[:MOST_SHOWN]}".rstrip(": ")
        problem = f"cell {number} failed with {said} in: {line}"
    except (DeadKernelError, RuntimeError) as error:  # the second before it has begun
        problem = f"the kernel died, often because of too little memory or too few open files ({error})"
    raise NotebookError(problem, where=path.name, remedy=f"The notebook as far as it got: {folder / path.name}")


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that nothing half-written is left behind."""

    def stop(number: int, _) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    in_main = threading.current_thread() is threading.main_thread()  # Python allows it in no other
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if in_main and hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[str]:
    """Tell the notebook its folder, and describe a kernel that is this very Python in a temporary folder, which is yielded."""
    remove_parts(Path(tempfile.gettempdir()), "lalkit-kernel")
    with tempfile.TemporaryDirectory(prefix=".lalkit-kernel.", suffix=f".{os.getpid()}.part") as jupyter:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        # It would warn that others could listen (it is reached from this machine only), and report its own interruption.
        kernel = {"argv": [*argv, "--log-level=CRITICAL"], "display_name": "Python 3", "language": "python"}
        write_json(Path(jupyter) / "kernels" / "python3" / "kernel.json", kernel)
        changes = {
            RUN_DIR: str(folder),
            "JUPYTER_PATH": os.pathsep.join(filter(None, (jupyter, os.environ.get("JUPYTER_PATH")))),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PYTHONWARNINGS": "ignore:IProgress not found",  # bars are text here
        }
        with patch.dict(os.environ, changes):
            yield jupyter
