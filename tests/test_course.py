"""The graded exercises: the solutions get all points, the student version gets none, and no wrong answer breaks a check."""

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

COURSE = Path(__file__).parents[1] / "book" / "course"
ASSIGNMENTS = sorted(path.stem for path in COURSE.glob("source/*/*.ipynb"))
SOLUTIONS = sorted((COURSE.parent / "solutions").glob("*.ipynb"))
USUAL = ("01", "02", "03", "05", "12")  # all of them take ten minutes
sys.path.append(str(COURSE))  # the notebooks import both by these names
checks, lessons = map(importlib.import_module, ("checks", "lessons"))
sys.path.pop()
CHECKS = {name[6:]: one for name, one in vars(checks).items() if name[:6] == "check_" and hasattr(one, "__wrapped__")}


def cells_of(assignment):
    return nbformat.read(COURSE / "source" / assignment / f"{assignment}.ipynb", as_version=4).cells


def run(assignment, student, solved=True):
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


@pytest.mark.parametrize(
    ("assignment", "numbers"), zip(ASSIGNMENTS, ("chart", "weights", "tops", "chart", "gold", "x"), strict=True)
)
def test_the_solutions_are_right_for_every_student_and_the_gaps_are_not(assignment, numbers, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the notebooks add the folder of the course
    (points, names), (more, others) = run(assignment, "Ada Lovelace"), run(assignment, "Zoë 王")
    assert {*points.values(), *more.values()} == {1} and len(points) >= 4
    assert repr(names[numbers]) != repr(others[numbers])
    assert set(run(assignment, "Ada Lovelace", solved=False)[0].values()) == {0}
    assert "Traceback" not in capsys.readouterr().out


class Strange:
    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __array__(self, *_):
        raise RuntimeError("no array")


def stops(*arguments):
    raise KeyError("missing")


NAN = float("nan")
WRONG = [None, ..., "NP", "", [1, [2, 3]], [(1, [2]), (3, 4)], np.zeros((2, 3, 1)), NAN, np.inf, np.array(["a", "b"]), 12345.678,
         True, dict, Strange(), stops, lambda *a: sys.exit(), lambda: 1, lambda *a: NAN, lambda *a: Strange(), lambda *a: [1],
         (stops, stops), ([], []), ([[1]], {}), 10**400, 1 + 2j, (NAN, NAN), ("12", "13"), {}, ("NP", NAN)]  # fmt: skip


@pytest.mark.parametrize("name", [*CHECKS, *lessons.EXERCISES])
def test_a_wrong_answer_gets_one_line_that_helps_and_does_not_tell(name, capsys):
    for answer in WRONG:
        if name in CHECKS:
            assert CHECKS[name]({"student": "Ada", name: answer}) == 0
        else:
            lessons.check(name, answer)
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("Not yet: ") and len(line) < 200 and line.endswith(".")
        assert "of a kind that does not" not in line or type(answer) is Strange


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[pytest.mark.release] * (p.stem[:2] not in USUAL), id=p.stem) for p in SOLUTIONS]
)
def test_the_solutions_of_a_lesson_try_all_its_checks_and_are_right(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    names = {}
    with torch.enable_grad():
        for source in code:
            exec(source, names)
    numbers = [number for number in lessons.EXERCISES if number.startswith(path.stem.split("_")[0] + ".")]
    assert re.findall(r'^check\(\s*"(.+?)"', "\n".join(code), re.M) == numbers
    said = capsys.readouterr().out
    assert "Not yet" not in said and all(f"{number} is right." in said for number in numbers)
    lesson = nbformat.read(COURSE.parents[1] / "notebooks" / path.name, as_version=4).cells[-1].source
    assert f"](../book/solutions/{path.name})" in lesson and all(f'check("{number}"' in lesson for number in numbers)


def test_an_answer_nearly_right_is_told_apart_without_the_right_one(capsys):
    loss, gradient = checks._margin(checks.chart_of("Ada"))
    rows = [(gradient.tolist(), "np.array"), (gradient[0], "shape"), (gradient * np.nan, "NaN"), (-gradient, "right")]
    for wrong, word in rows:
        assert checks.check_gradient({"student": "Ada", "gradient": wrong}) == 0
        assert word in capsys.readouterr().out
    for answer, points in ((loss, 1), (np.float32(loss), 1), (loss + 1, 0), (str(loss), 0), (np.array([loss]), 0)):
        assert checks.check_margin({"student": "ada ", "margin": answer}) == points
    assert f"{loss:g}" not in capsys.readouterr().out.split("\n", 2)[2]


def test_a_cell_that_was_not_run_is_named(capsys):
    for names, words in (({}, "no margin"), ({"margin": 1.0}, "no student"), ({"margin": 1.0, "student": 7}, "name")):
        assert checks.check_margin(names) == 0 and words in capsys.readouterr().out


def test_a_check_looks_into_the_notebook_that_calls_it(capsys):
    notebook = {"check_f1": checks.check_f1, "student": "Ada", "f1": lambda r, g, p: 200 * r / (g + p)}
    assert eval("check_f1()", notebook) == 1
    assert eval("check_f1()", {"check_f1": checks.check_f1}) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of nbgrader and of what it needs
def test_nbgrader_makes_the_student_version_and_marks_both(tmp_path, monkeypatch):
    apps = pytest.importorskip("nbgrader.apps", reason="nbgrader is not installed: pip install 'lalkit[course]'")
    from traitlets.config import PyFileConfigLoader

    name = "measuring"
    shutil.copytree(COURSE / "source" / name, tmp_path / "source" / name)
    shutil.copy(COURSE / "checks.py", tmp_path)
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
