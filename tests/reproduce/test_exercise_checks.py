"""The graded exercises: the solutions get all points, the student version gets none, and no wrong answer breaks a check."""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from lalkit.reproduce import exercise_checks

COURSE = Path(__file__).parents[2] / "book" / "course"
ASSIGNMENTS = sorted(path.stem for path in COURSE.glob("source/*/*.ipynb"))
CHECKS = {
    name.removeprefix("check_"): check
    for name, check in vars(exercise_checks).items()
    if name.startswith("check_") and hasattr(check, "__wrapped__")
}


def cells_of(assignment):
    return nbformat.read(COURSE / "source" / assignment / f"{assignment}.ipynb", as_version=4).cells


def run(assignment, student, solved):
    """Run the code of an assignment in this process. Return the points of every check, and the names that the code defined."""
    names, points = {}, {}
    for cell in cells_of(assignment):
        if cell.cell_type != "code":
            continue
        source = cell.source.replace("Ada Lovelace", student)
        if not solved:
            source = re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "# write your answer here", source, flags=re.S)
        if cell.metadata.get("nbgrader", {}).get("grade"):
            points[cell.source] = eval(source, names)
        else:
            exec(source, names)
    return points, names


def test_every_check_belongs_to_one_cell():
    graded = [cell.source for name in ASSIGNMENTS for cell in cells_of(name) if cell.source.startswith("check_")]
    assert sorted(graded) == sorted(f"check_{name}()" for name in CHECKS)
    assert ASSIGNMENTS == ["decoding", "learning", "measuring", "scores"]


@pytest.fixture(scope="module", params=ASSIGNMENTS)
def assignment(request):
    return request.param


@pytest.fixture(scope="module")
def solved(assignment):
    return run(assignment, "Ada Lovelace", True)


def test_the_solutions_get_all_points_and_the_gaps_none(assignment, solved, capsys):
    assert set(solved[0].values()) == {1} and len(solved[0]) >= 4
    assert set(run(assignment, "Ada Lovelace", False)[0].values()) == {0}
    assert "Traceback" not in capsys.readouterr().out


def test_the_solutions_are_right_for_every_student(assignment, solved):
    points, names = run(assignment, "Zoë 王", True)
    assert set(points.values()) == {1}
    numbers = {"decoding": "chart", "learning": "chart", "measuring": "gold", "scores": "x"}[assignment]
    assert repr(names[numbers]) != repr(solved[1][numbers])


class Strange:
    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __array__(self, *_):
        raise RuntimeError("no array")


WRONG = {
    "none": None,
    "dots": ...,
    "text": "NP",
    "empty text": "",
    "list": [1, [2, 3]],
    "tuples": [(1, [2]), (3, 4)],
    "shape": np.zeros((2, 3, 1)),
    "nan": float("nan"),
    "infinity": np.inf,
    "texts": np.array(["a", "b"]),
    "number": 12345.678,
    "boolean": True,
    "type": dict,
    "strange": Strange(),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_wrong_answer_gets_one_line_that_helps_and_does_not_tell(name, capsys):
    def stops(*arguments):
        raise KeyError("missing")

    answers = [*WRONG.values(), stops, lambda: 1, lambda *a: WRONG["nan"], lambda *a: Strange(), lambda *a: [1]]
    for answer in answers:
        assert CHECKS[name]({"student": "Ada", name: answer}) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("Not yet: ") and len(line) < 200 and line.endswith(".")


def test_an_error_in_a_later_call_is_named(capsys):
    def late(right, gold, predicted):
        counts.append(right)
        return 200 * right / (gold + predicted) if len(counts) == 1 else 1 / 0

    counts = []
    assert exercise_checks.check_f1({"student": "Ada", "f1": late}) == 0 and len(counts) == 2
    assert "f1 stops with ZeroDivisionError" in capsys.readouterr().out


def test_an_answer_nearly_right_is_told_apart_without_the_right_one(capsys):
    chart = exercise_checks.chart_of("Ada")
    gradient = exercise_checks._margin(chart)[1]
    for wrong, word in (
        (gradient.tolist(), "np.array"),
        (gradient[0], "shape"),
        (gradient * np.nan, "NaN"),
        (-gradient, "right"),
    ):
        assert exercise_checks.check_gradient({"student": "Ada", "gradient": wrong}) == 0
        assert word in capsys.readouterr().out
    loss = exercise_checks._margin(chart)[0]
    for answer, points in ((loss, 1), (np.float32(loss), 1), (loss + 1, 0), (str(loss), 0), (np.array([loss]), 0)):
        assert exercise_checks.check_margin({"student": "ada ", "margin": answer}) == points
    assert f"{loss:g}" not in capsys.readouterr().out.split("\n", 2)[2]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({}, "there is no margin yet. Run exercise 2 first"),
        ({"margin": 1.0}, "there is no student yet. Run the first code cell first"),
        ({"margin": 1.0, "student": ""}, "Write your name"),
        ({"margin": 1.0, "student": 7}, "Write your name"),
    ],
)
def test_a_cell_that_was_not_run_is_named(names, words, capsys):
    assert exercise_checks.check_margin(names) == 0
    assert words in capsys.readouterr().out


def test_a_check_looks_into_the_notebook_that_calls_it(capsys):
    notebook = {"check_f1": exercise_checks.check_f1, "student": "Ada", "f1": lambda r, g, p: 200 * r / (g + p)}
    assert eval("check_f1()", notebook) == 1
    assert eval("check_f1()", {"check_f1": exercise_checks.check_f1}) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of nbgrader and of what it needs
def test_nbgrader_makes_the_student_version_and_marks_both(tmp_path, monkeypatch):
    apps = pytest.importorskip("nbgrader.apps", reason="nbgrader is not installed: pip install 'lalkit[course]'")
    from traitlets.config import PyFileConfigLoader

    name = "measuring"
    shutil.copytree(COURSE / "source" / name, tmp_path / "source" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))  # for alembic
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(COURSE.parents[1]), os.environ.get("PYTHONPATH", "")]))
    config = PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()
    config.CourseDirectory.root = str(tmp_path)
    nbgrader = apps.NbGraderAPI(config=config)
    assert nbgrader.generate_assignment(name)["success"]
    student = Path("release", name, f"{name}.ipynb").read_text(encoding="utf-8")
    assert "SOLUTION" not in student and "200 * right" not in student and student.count("write your answer here") == 4
    for person, version in (("empty", "release"), ("full", "source")):
        shutil.copytree(tmp_path / version / name, tmp_path / "submitted" / person / name)
        assert nbgrader.autograde(name, person)["success"]
    marks = {mark["student"]: (mark["score"], mark["max_score"]) for mark in nbgrader.get_submissions(name)}
    assert marks == {"empty": (0, 4), "full": (4, 4)}
