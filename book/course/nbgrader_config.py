"""The graded exercises of the course, for nbgrader: `nbgrader generate_assignment decoding` makes the student version of one."""

import sys
from pathlib import Path

from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute

sys.path.insert(0, str(Path(__file__).resolve().parent))
from grade import Judge

c = get_config()  # noqa: F821  (nbgrader defines it)
c.CourseDirectory.course_id = "lalkit"
# A gap of the student version is an empty line of code, so that a notebook with gaps runs to its end and shows its checks.
c.ClearSolutions.code_stub = {"python": "# write your answer here"}
# Points come from grade.py, which runs a submission in a process of its own, and never from what its kernel shows.
steps = Autograde.class_traits()["autograde_preprocessors"].default()
c.Autograde.autograde_preprocessors = [Judge if step is Execute else step for step in steps]
# Seconds of a teacher's cell, of a student's; megabytes.
c.Judge.loading, c.Judge.seconds, c.Judge.memory = 600, 60, 6000
