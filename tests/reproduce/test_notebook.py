"""Notebooks: how parameters are read and converted, what a run leaves behind, how it fails, and when an earlier one is used."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lalkit.errors import ParameterError
from lalkit.evaluation.provenance import OF_TRAINING, git_revision, training_hash
from lalkit.reproduce.notebook import NotebookError, convert_all, parse_declarations, read_parameters, run_notebook
from tests.draw.local_clients import until

CELL = """\
# what this notebook takes
model: str = "data/models/tiny"  # a folder, or a name
epochs: int = 3
rate: float = 5e-5  # peak
exact: bool = False
heads: list[int] = [1, 2]
labels: list[str] = []
"""
RIGHT = [
    ("epochs", "12", 12), ("epochs", 12, 12), ("rate", "5e-4", 5e-4), ("rate", 1, 1.0), ("exact", "true", True),
    ("exact", "FALSE", False), ("model", "none", "none"), ("model", "7", "7"), ("model", Path("a") / "b", "a/b"),
    ("heads", "3,4", [3, 4]), ("heads", "[3, 4]", [3, 4]),
    ("heads", (3, 4), [3, 4]), ("labels", "", []), ("labels", "NP, VP", ["NP", "VP"]), ("labels", "['a, b', 'c']", ["a, b", "c"]),
]  # fmt: skip
WRONG = [
    ("epochs", 3.0), ("epochs", True), ("epochs", ""), ("rate", "nan"), ("exact", 1), ("heads", "a"),
    ("heads", 1), ("labels", [1]), ("model", 3), ("epoch", "3"),
]  # fmt: skip
NO_DECLARATIONS = [
    "epochs = 3", "epochs: int", "import os", "epochs: int = True", "rate: float = 1 / 3", "path: Path = 'x'",
    "epochs: int = 1\nepochs: int = 2", f"epochs: int = {'-' * 20_000}1",
]  # fmt: skip


def test_parameters_are_read_and_converted():
    declared = parse_declarations(CELL)
    assert list(declared) == ["model", "epochs", "rate", "exact", "heads", "labels"]
    assert declared["heads"].default == [1, 2]
    for name, given, wanted in RIGHT:
        got = convert_all(declared, {name: given})[name]
        assert got == wanted and type(got) is type(wanted), (name, given)


@pytest.mark.parametrize(("name", "given"), WRONG)
def test_the_error_for_a_wrong_parameter_names_it_and_its_notebook(name, given):
    with pytest.raises(ParameterError, match=name) as error:
        convert_all(parse_declarations(CELL), {name: given}, "07_train.ipynb")
    assert "07_train.ipynb" in str(error.value)


@pytest.mark.parametrize("line", NO_DECLARATIONS)
def test_a_wrong_line_of_the_cell_is_named(line):
    with pytest.raises(ParameterError, match=r"x\.ipynb, cell 2.*line [12]"):
        parse_declarations(line, "x.ipynb, cell 2")


def write_notebook(path, *sources, tagged=(1,)):
    """A notebook of code cells; the second one is the parameters cell."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for number in tagged:
        cells[number].metadata["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)  # without a language, which papermill would ask for
    return path


def test_a_notebook_has_exactly_one_parameters_cell(tmp_path):
    path = tmp_path / "x.ipynb"
    assert read_parameters(write_notebook(path, "1 + 1", CELL))["epochs"].default == 3
    for tagged in ((), (0, 1)):
        with pytest.raises(ParameterError, match=rf"x\.ipynb: has {len(tagged)} cells"):
            read_parameters(write_notebook(path, CELL, CELL, tagged=tagged))


GOOD = """\
import os, sys
from pathlib import Path
out = Path(os.environ["LALKIT_RUN_DIR"])
(out / "figure.txt").write_text(f"{name} {times * 2} {os.getcwd()} {sys.executable}")"""
SLOW_END = "import atexit, time\natexit.register(time.sleep, 3)"  # as on a busy machine


@pytest.fixture
def root(tmp_path):
    """A small repository root with a notebooks folder."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


def test_a_run_leaves_the_notebook_its_files_and_a_complete_record(root, capfd, monkeypatch):
    (root / "tmp" / ".lalkit-kernel.x.4194305.part").mkdir(parents=True)  # of a run that was killed
    monkeypatch.setattr("tempfile.tempdir", str(root / "tmp"))
    # Braces in the name: papermill would read them as a format field.
    declared = "name: str = 'a'\ntimes: int = 2\nrate: float = 0.5"
    book = write_notebook(root / "notebooks" / "demo{x}.ipynb", "1", declared, GOOD, SLOW_END)
    environment = dict(os.environ)
    result = run_notebook(book, {"times": "21"}, progress=False)
    assert "WARNING" not in capfd.readouterr().err and dict(os.environ) == environment
    assert result.folder.parent == root / "runs" / "demo{x}"
    assert list((root / "tmp").iterdir()) == []
    # The default, the given one, the root, this Python.
    assert (result.folder / "figure.txt").read_text() == f"a 42 {root} {sys.executable}"
    assert {p.name for p in result.folder.iterdir()} == {"demo{x}.ipynb", "run.json", "figure.txt"}  # nothing partial
    record = json.loads((result.folder / "run.json").read_text())
    assert record == result.record and record["seconds"] > 0
    assert record["parameters"] == {"name": "a", "times": 21, "rate": 0.5}
    assert (record["status"], record["notebook"]) == ("ok", "notebooks/demo{x}.ipynb")
    assert [record[key] for key in ("error", "git", "seed")] == [None] * 3
    assert set(record["versions"]) == {"lalkit", "python", "torch", "transformers"}
    assert all(record[key] for key in ("notebook_sha256", "started", "device"))
    executed = nbformat.read(result.notebook, as_version=4)
    assert "times = 21" in executed.cells[2].source and str(root) not in json.dumps(executed.metadata)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["1 / n", "import sys; sys.exit(n)", "raise ValueError('x' * 100_000)"])
def test_a_failed_run_stays_and_its_error_has_the_number_of_the_cell(root, line):
    book = write_notebook(root / "notebooks" / "bad.ipynb", "1", "n: int = 1", "reached = n", line, "never = 1")
    with pytest.raises(NotebookError, match=rf"bad\.ipynb: cell 4 .*(Error|Exit).*{re.escape(line)}") as error:
        run_notebook(book, {"n": 0}, out=root / "here", progress=False)  # papermill adds a cell before the failing one
    assert len(str(error.value)) < 1_000
    record = json.loads((root / "here" / "run.json").read_text())
    assert record["status"] == "failed" and "cell 4" in record["error"]
    executed = nbformat.read(root / "here" / "bad.ipynb", as_version=4)
    assert any(out.output_type == "error" for cell in executed.cells for out in cell.get("outputs", []))
    assert {p.name for p in (root / "here").iterdir()} == {"bad.ipynb", "run.json"}
    assert line != "1 / n" or run_notebook(root / "here" / "bad.ipynb", out=root / "again", progress=False)


@pytest.mark.slow
def test_a_signal_ends_a_run_and_the_record_says_so(root):
    waits = "import os, pathlib, time\npathlib.Path(os.environ['LALKIT_RUN_DIR'], 'begun').touch()\ntime.sleep(300)"
    book = write_notebook(root / "notebooks" / "slow.ipynb", "1", "n: int = 0", "reached = n", waits)
    command = [sys.executable, "-m", "lalkit", "run", str(book), "--out"]

    def heard():  # a shell in the background ignores Ctrl-C, and nohup the end of the terminal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    (root / "tmp").mkdir()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True,
             "env": dict(os.environ, TMPDIR=str(root / "tmp")), "preexec_fn": heard}  # fmt: skip
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    runs = {number: subprocess.Popen([*command, root / number.name], **pipes) for number in signals}
    for number, run in runs.items():
        until((root / number.name / "begun").exists, 300)
        os.killpg(run.pid, number)
    killed = runs.pop(signal.SIGKILL)
    assert killed.wait(300) == -9
    for number, run in runs.items():
        said, folder = run.communicate(timeout=300)[0], root / number.name
        assert run.returncode == 130 and "Traceback" not in said and "interrupted; the notebook as far as it" in said
        assert {p.name for p in folder.iterdir()} == {"slow.ipynb", "run.json", "begun"}
        assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    # The next run removes it.
    assert [path.name.split(".")[-2] for path in (root / "tmp").iterdir()] == [str(killed.pid)]


def test_wrong_parameters_stop_a_run_before_anything_is_written(root):
    book = write_notebook(root / "notebooks" / "demo.ipynb", "1", "times: int = 2", "raise SystemError")
    wrong = ({"time": "3"}, None, "demo.ipynb"), ({"times": "many"}, None, "demo.ipynb"), ({}, book.parent, "its own")
    for given, out, named in wrong:
        with pytest.raises(ParameterError, match=named):
            run_notebook(book, given, out, progress=False)
    with pytest.raises(ParameterError, match="is not UTF-8"):
        run_notebook(book.rename(book.with_name(os.fsdecode(b"caf\xe9.ipynb"))), progress=False)
    assert not (root / "runs").exists()


# ---------------------------------------------------------------- where a number comes from


def test_git_revision_says_when_files_were_changed(root):
    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)

    git("init")
    assert git_revision(root) is None  # no commit yet
    git("add", "pyproject.toml")
    git("commit", "-m", "x")
    assert len(git_revision(root)) == 40
    (root / "pyproject.toml").write_text("changed")
    assert git_revision(root).endswith("+changes")


def test_the_hash_of_the_code_that_trains_ignores_comments_and_other_rooms(tmp_path):
    for name in OF_TRAINING:
        path = tmp_path / (name if name.endswith(".py") else f"{name}/a.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text('"""Say one thing."""\n\n\ndef f(x):\n    """Return x."""\n    return x  # as it is\n')
    (tmp_path / "draw").mkdir()
    before = training_hash(tmp_path)
    (tmp_path / "config.py").write_text('"""Say another."""\ndef f(x):\n    return x\n')
    (tmp_path / "draw" / "a.py").write_text("x = 2\n")
    (tmp_path / "training" / ".ipynb_checkpoints").mkdir()
    for name in (".DS_Store", ".a.py.swp", "a.py~", ".ipynb_checkpoints/a.py"):
        (tmp_path / "training" / name).write_bytes(b"\xff left by an editor")
    assert training_hash(tmp_path) == before
    (tmp_path / "training" / "a.py").write_text("def f(x):\n    return 2 * x\n")
    changed = training_hash(tmp_path)
    (tmp_path / "treebank" / "rules.json").write_text("{}")
    assert len({before, changed, training_hash(tmp_path)}) == 3, "tables of rules count"
