"""The graded exercises of the course, for nbgrader: `nbgrader generate_assignment decoding` makes the student version of one."""

c = get_config()  # noqa: F821  (nbgrader defines it)
c.CourseDirectory.course_id = "lalkit"
# A gap of the student version is an empty line of code, so that a notebook with gaps runs to its end and shows its checks.
c.ClearSolutions.code_stub = {"python": "# write your answer here"}
# A cell may take long where the first parse compiles its kernels: on a slow machine more than the 30 seconds of nbgrader.
c.ExecutePreprocessor.timeout = 600
