"""Run tiny notebooks with papermill: what a run leaves behind, how a run fails, and when an earlier run is used again."""

import json
import os
import sys

import nbformat
import pytest

from lalkit.errors import ParameterError
from lalkit.evaluation.provenance import OF_TRAINING, code_hash, data_hash, git_revision, training_hash
from lalkit.reproduce.notebook import RUN_DIR, NotebookError, find_root, run_dir, run_notebook
from tests.test_house import RANK

GOOD = """\
import os, sys
from pathlib import Path
out = Path(os.environ["LALKIT_RUN_DIR"])
(out / "figure.txt").write_text(f"{name} {times * 2} {os.getcwd()} {sys.executable}")"""

SLOW_END = "import atexit, time\natexit.register(time.sleep, 3)"  # as on a busy machine


def write_notebook(path, *sources):
    """A notebook of code cells; the second one is the parameters cell."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[1].metadata["tags"] = ["parameters"]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)
    return path


@pytest.fixture
def root(tmp_path):
    """A small repository root with a notebooks folder."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


def test_a_run_leaves_the_notebook_its_files_and_a_complete_record(root, capfd):
    # Braces in the name: papermill would read them as a format field.
    book = write_notebook(
        root / "notebooks" / "demo{x}.ipynb", "1", "name: str = 'a'\ntimes: int = 2\nrate: float = 0.5", GOOD, SLOW_END
    )
    environment = dict(os.environ)
    result = run_notebook(book, {"times": "21"}, progress=False)

    assert "WARNING" not in capfd.readouterr().err  # the kernel is quiet
    assert dict(os.environ) == environment
    assert result.folder.parent == root / "runs" / "demo{x}"
    # The default, the given one, the root, this Python.
    assert (result.folder / "figure.txt").read_text() == f"a 42 {root} {sys.executable}"
    assert {p.name for p in result.folder.iterdir()} == {"demo{x}.ipynb", "run.json", "figure.txt"}  # nothing partial

    record = json.loads((result.folder / "run.json").read_text())
    assert record == result.record
    assert record["status"] == "ok"
    assert record["error"] is None
    assert record["parameters"] == {"name": "a", "times": 21, "rate": 0.5}
    assert record["notebook"] == "notebooks/demo{x}.ipynb"
    assert record["git"] is None
    assert record["seconds"] > 0
    assert record["peak_memory_mb"] > 20  # a Python with a kernel in it
    assert record["seed"] is None and record["data_sha256"] is None
    assert set(record["versions"]) == {"lalkit", "python", "torch", "transformers"}
    assert all(record[key] for key in ("notebook_sha256", "started", "device"))
    executed = nbformat.read(result.notebook, as_version=4)
    assert "times = 21" in executed.cells[2].source
    assert str(root) not in json.dumps(executed.metadata)  # no path of this machine


def test_a_failed_run_stays_and_its_error_has_the_number_of_the_cell(root):
    book = write_notebook(root / "notebooks" / "bad.ipynb", "1", "n: int = 0", "reached = n", "1 / n", "never = 1")
    with pytest.raises(NotebookError) as error:
        run_notebook(book, {"n": 0}, out=root / "here", progress=False)
    # papermill inserts a cell of its own before the failing one, which must not be counted.
    assert str(error.value).startswith("bad.ipynb: cell 4 failed with ZeroDivisionError: division by zero")
    assert "In: 1 / n" in str(error.value)
    record = json.loads((root / "here" / "run.json").read_text())
    assert record["status"] == "failed"
    assert "cell 4" in record["error"]
    executed = nbformat.read(root / "here" / "bad.ipynb", as_version=4)
    assert any(out.output_type == "error" for cell in executed.cells for out in cell.get("outputs", []))
    assert {p.name for p in (root / "here").iterdir()} == {"bad.ipynb", "run.json"}


def test_a_cell_that_takes_too_long_is_stopped(root, monkeypatch):
    # The cell waits for longer than any test may: only the limit can end it.
    book = write_notebook(root / "slow.ipynb", "1", "n: int = 0", "import time\ntime.sleep(3600)")
    monkeypatch.setattr("lalkit.reproduce.notebook.CELL_TIMEOUT", 1)
    with pytest.raises(NotebookError, match="cell 3 took longer than 1 seconds"):
        run_notebook(book, out=root / "here", progress=False)
    assert json.loads((root / "here" / "run.json").read_text())["status"] == "failed"


def test_wrong_parameters_stop_a_run_before_anything_is_written(root):
    book = write_notebook(root / "notebooks" / "demo.ipynb", "1", "times: int = 2", "raise SystemError")
    for wrong in ({"time": "3"}, {"times": "many"}):
        with pytest.raises(ParameterError, match="demo.ipynb"):
            run_notebook(book, wrong, progress=False)
    assert not (root / "runs").exists()


def test_run_dir_is_the_folder_of_the_run_or_runs_by_hand(root, monkeypatch):
    monkeypatch.setenv(RUN_DIR, str(root / "given"))
    assert run_dir() == root / "given"
    assert run_dir().is_dir()
    monkeypatch.delenv(RUN_DIR)
    monkeypatch.chdir(root / "notebooks")
    assert run_dir() == root / "runs" / "by-hand"
    assert find_root(root / "notebooks") == root


def test_git_revision_says_when_files_were_changed(root):
    import subprocess

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


@pytest.fixture
def no_kernel(monkeypatch):
    """Let every notebook end at once, for tests that do not depend on its cells."""
    monkeypatch.setattr("lalkit.reproduce.notebook._execute", lambda *given: None)


def test_the_cache_compares_notebook_parameters_code_and_data(root, monkeypatch, no_kernel):
    book = write_notebook(root / "notebooks" / "a.ipynb", "1", "n: int = 0\nseed: int = 1\ntreebank: str = ''", "2")

    def run(**parameters):
        return run_notebook(book, parameters, progress=False, cache=True)

    first = run(n=1)
    assert first.record["seed"] == 1 and first.record["code_sha256"] == code_hash()
    assert run(n="1").folder == first.folder, "complete parameters, as converted, are the same"
    assert run(n=1).record == json.loads((first.folder / "run.json").read_text())
    assert run_notebook(book, {"n": 1}, progress=False).folder != first.folder, "the cache is asked for"
    second = run(n=2)
    assert second.folder != first.folder
    # A run that failed, was killed, or whose record is damaged never counts.
    for status in ("failed", "running"):
        (second.folder / "run.json").write_text(json.dumps(second.record | {"status": status}))
        assert run_notebook(book, {"n": 2}, second.folder, progress=False, cache=True).record["status"] == "ok"
    (second.folder / "run.json").write_text('{"status":')
    third = run(n=2)
    assert third.folder != second.folder
    with monkeypatch.context() as patch:
        patch.setattr("lalkit.evaluation.provenance.code_hash", lambda: "other")
        assert run(n=2).folder != third.folder
    book.write_text(book.read_text().replace('"2"', '"3"'))
    assert run(n=2).folder not in (second.folder, third.folder)


def test_the_cache_compares_the_treebank(root, no_kernel):
    book = write_notebook(root / "a.ipynb", "1", "treebank: str = ''", "2")
    corpus = root / "corpus"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        (corpus / f"{split}.trees").write_text("(S (NP (NN Rain)) (VP (VBZ falls)))\n")

    def run():
        return run_notebook(book, {"treebank": str(corpus)}, progress=False, cache=True)

    first = run()
    assert first.record["data_sha256"] == data_hash(str(corpus))
    assert run().folder == first.folder
    (corpus / "test.trees").write_text("(S (NP (NN Snow)) (VP (VBZ falls)))\n")
    assert run().folder != first.folder


@pytest.mark.parametrize(
    "line", ["data: list[str] = ['babi-1', 'films']", "data: str = 'films'", "classifier_data: str = 'films'"]
)
def test_the_cache_compares_folders_of_data(root, no_kernel, line):
    book = write_notebook(root / "a.ipynb", "1", line, "2")
    (root / "films").mkdir()
    (root / "films" / "train.tsv").write_text("label\ttext\n")
    first = run_notebook(book, progress=False, cache=True)
    assert run_notebook(book, progress=False, cache=True).folder == first.folder
    (root / "films" / "train.tsv").write_text("text\tlabel\n")
    assert run_notebook(book, progress=False, cache=True).folder != first.folder


def test_the_code_hash_reads_source_and_nothing_else(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text("x = 1\n")
    before = code_hash(tmp_path)
    (tmp_path / "a" / "__pycache__").mkdir()
    (tmp_path / "a" / "__pycache__" / "b.cpython-311.pyc").write_bytes(b"1")
    assert code_hash(tmp_path) == before
    (tmp_path / "a" / "b.py").rename(tmp_path / "b.py")
    moved = code_hash(tmp_path)
    (tmp_path / "b.py").write_text("x = 2\n")
    assert len({before, moved, code_hash(tmp_path)}) == 3


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


def test_the_code_that_trains_is_every_room_up_to_training():
    assert {name.removesuffix(".py") for name in OF_TRAINING if "/" not in name and name != "__init__.py"} == {
        room for room, rank in RANK.items() if rank <= RANK["training"]
    }
