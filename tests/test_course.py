"""The graded exercises: the solutions get all points, the student version gets none, and no wrong answer breaks a check."""

import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
import yaml

COURSE = Path(__file__).parents[1] / "book" / "course"
ASSIGNMENTS = sorted(path.stem for path in COURSE.glob("source/*/*.ipynb"))
SOLUTIONS = sorted((COURSE.parent / "solutions").glob("*.ipynb"))
USUAL = ("02", "03", "05", "14")  # all of them take ten minutes
sys.path.append(str(COURSE))  # the notebooks import both by these names
checks, lessons = map(importlib.import_module, ("checks", "lessons"))
sys.path.pop()
TABLE, FORGED = (yaml.safe_load(Path(__file__).with_name(n).read_text("utf-8")) for n in ("checks.yml", "forged.yml"))
EVERY = TABLE.pop("every")  # names for all rows, and answers that are wrong everywhere
CHECKS = {name[6:]: one for name, one in vars(checks).items() if name[:6] == "check_" and hasattr(one, "__wrapped__")}


def cells_of(assignment):
    return nbformat.read(COURSE / "source" / assignment / f"{assignment}.ipynb", as_version=4).cells


needs_limits = pytest.mark.skipif(
    sys.platform == "win32" or not importlib.util.find_spec("nbgrader"), reason="grade.py needs nbgrader, and limits"
)


def test_every_check_belongs_to_one_cell_and_has_right_and_wrong_answers():
    graded = [cell.source for name in ASSIGNMENTS for cell in cells_of(name) if cell.source.startswith("check_")]
    assert sorted(graded) == sorted(f"check_{name}()" for name in CHECKS)
    assert TABLE.keys() == {*CHECKS, *lessons.EXERCISES}
    assert [name for name, rows in TABLE.items() if len(rows["right"]) < 3 or len(rows["wrong"]) < 5] == []


def test_the_numbers_belong_to_the_student():
    for name in "trees_of chart_of arcs_of layer_of sentences_of text_of".split():
        of = getattr(checks, name)
        assert repr(of("Ada")) == repr(of("ada ")) != repr(of("Zoë 王"))


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


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n[:2] in "00 02 08 10 13 15".split())) for n in TABLE]
)
def test_a_check_judges_the_question(name, capsys):
    names, rows = {**vars(checks), **vars(lessons)}, TABLE[name]
    exec(EVERY["let"] + rows.get("let", ""), names)

    def said(text):
        answer = eval(text, names)
        points = CHECKS[name]({"student": "Ada", name: answer}) if name in CHECKS else lessons.check(name, answer)
        assert points in (None, int(text in rows["right"]))
        return capsys.readouterr().out

    for answer in rows["right"]:
        assert said(answer) == f"{name} is right.\n"
    for answer, part in (dict.fromkeys(EVERY["wrong"], "") | rows["wrong"]).items():
        line = said(answer)
        assert re.fullmatch(r"Not yet: .{5,250}[.?!]\n", line) and part in line, (answer, line)
        assert "of a kind that does not" not in line or answer == "Strange()"


def test_a_cell_that_was_not_run_is_named(capsys):
    for names, words in (({}, "no margin"), ({"margin": 1.0}, "no student"), ({"margin": 1.0, "student": 7}, "name")):
        assert checks.check_margin(names) == 0 and words in capsys.readouterr().out
    notebook = {"check_f1": checks.check_f1, "student": "Ada", "f1": lambda r, g, p: 200 * r / (g + p)}
    assert eval("check_f1()", notebook) == 1


@pytest.mark.slow
@needs_limits
@pytest.mark.filterwarnings("ignore")  # of nbgrader and of what it needs
@pytest.mark.parametrize("name", [name for part in FORGED.values() for name in part])
def test_points_come_from_answers_alone(name, monkeypatch):
    monkeypatch.syspath_prepend(str(COURSE))
    monkeypatch.setattr(checks, "_hidden", "")  # as it was, for the other tests
    rows, before = (FORGED["forged"] | FORGED["honest"])[name], {p: p.read_bytes() for p in COURSE.glob("*.py")}
    cells = cells_of(rows["of"])
    cells[1].source = cells[1].source.replace("Ada Lovelace", rows.get("student", "Ada")) + "\n" + rows.get("first", "")
    for cell in cells:
        if (marks := cell.metadata.get("nbgrader", {})).get("solution"):
            gap = cell.source if rows.get("kept") else "# write your answer here"
            cell.source = rows.get("code", {}).get(marks["grade_id"], gap)
    judge = importlib.import_module("grade").Judge(seconds=rows.get("seconds", 5))
    notebook, _ = judge.preprocess(nbformat.v4.new_notebook(cells=cells), {})
    results = [cell.outputs for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert sum(int(result["data"]["text/plain"]) for *_, result in results) == rows.get("points", 0)
    assert all(line.text.count("\n") == 1 for line, _ in results)
    assert {p: p.read_bytes() for p in COURSE.glob("*.py")} == before


@pytest.mark.slow
@needs_limits
def test_the_commands_of_the_course_make_the_student_version_and_mark_it(tmp_path):
    page = (COURSE.parent / "teaching.md").read_text(encoding="utf-8")
    name = "decoding"
    shutil.copytree(COURSE / "source" / name, tmp_path / "source" / name)
    for file in COURSE.glob("*.py"):
        shutil.copy(file, tmp_path)
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    environment["PYTHONPATH"] = os.pathsep.join([str(COURSE.parents[1]), os.environ.get("PYTHONPATH", "")])

    def nbgrader(command):
        subprocess.run([sys.executable, "-m", *command.split()], cwd=tmp_path, env=environment, check=True, timeout=500)

    nbgrader(f"nbgrader generate_assignment --force {name}")  # what `make course` does for each of them
    student = (tmp_path / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "SOLUTION" not in student and "a[0] < b[0]" not in student and student.count("write your answer here") == 5
    for person, version in (("empty", "release"), ("full", "source"), ("forger", "release")):
        shutil.copytree(tmp_path / version / name, tmp_path / "submitted" / person / name)
    forged = tmp_path / "submitted" / "forger" / name / "checks.py"
    forged.write_text("def __getattr__(name):\n    return lambda *a: 1\n")
    for command in re.findall(r"^nbgrader (?:autograde|export)[^#\n]*", page, re.M):
        nbgrader(command)
    marks = {row["student_id"]: row["score"] for row in csv.DictReader((tmp_path / "grades.csv").open())}
    assert {person: float(score) for person, score in marks.items()} == {"empty": 0, "forger": 0, "full": 5}
