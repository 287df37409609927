"""Every error says what is wrong, where it is, and what to do."""

import ast
import pickle
from pathlib import Path

import lalkit
from lalkit import errors
from lalkit.errors import TreebankError
from lalkit.reproduce.notebook import NotebookError

NAMES = {NotebookError.__name__, *(name for name in vars(errors) if name.endswith("Error"))}


def test_every_error_of_the_package_has_a_remedy():
    """mypy passes over functions without type hints, so a missing remedy could wait there until the error is raised."""
    calls, without = 0, []
    for file in Path(lalkit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in NAMES:
                calls += 1
                given = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "remedy")]
                if [*map(ast.unparse, given)] in ([], ["''"]):
                    without.append(f"{file.name}, line {node.lineno}")
    assert calls > 200 and without == []


def test_an_error_comes_back_whole_from_another_process():
    error = pickle.loads(pickle.dumps(TreebankError("a problem", "Mend it.", where="a file").at("here")))
    assert (error.problem, error.remedy, error.where) == ("a problem", "Mend it.", "here: a file")
    assert str(error) == "here: a file: a problem\n  Mend it."
    assert len(str(TreebankError("x" * 10**6, "Mend it."))) < 4_000


def test_the_reason_of_an_error_without_a_text():
    assert errors.reason(OSError()) == "OSError"
    assert errors.reason(OSError(2, "gone")) == errors.reason(OSError("gone")) == "gone"
