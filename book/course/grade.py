"""Give the points of a submission, for nbgrader: `nbgrader_config.py` puts `Judge` in the place of nbgrader's own step.

The code of a submission runs in another process (submission.py), with limits of time and memory. Here its answers arrive as
JSON, and the checks of this folder compare them. No check, file or output of the submission counts.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import checks
import numpy as np
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_locked
from traitlets import Integer

HERE = Path(__file__).resolve().parent
MEGABYTE = 2**20
MOST = 20 * MEGABYTE  # bytes of an answer
CALL = 10  # seconds that a call of a function of the submission may take
CHECK = re.compile(r"check_\w+(?=\(\)\s*$)")
DATA = ("trees_of", "chart_of", "arcs_of", "layer_of", "sentences_of", "heads_of", "terms_of", "text_of")


class Ended(checks.Mistake):
    """The process of a submission has ended, or was ended."""


class Submission(Mapping[str, Any]):
    """The names of a submission, as a check looks them up. Use it as a context manager: it owns a process.

    Args:
        memory: megabytes that the process may use.
    """

    def __init__(self, memory: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        source = (HERE / "submission.py").read_text(encoding="utf-8")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        alone = {"cwd": self.folder.name, "start_new_session": True}
        self.process = subprocess.Popen([sys.executable, "-c", source], **pipes, **alone)
        self.rest = b""
        limits = {"RLIMIT_DATA": memory * MEGABYTE, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
        constants = {name: getattr(checks, name) for name in ("WORDS", "LABELS", "GOLD")}
        names = [name for name in vars(checks) if name.startswith("check_")]
        self.send({"folder": str(HERE), "limits": limits, "constants": constants, "data": DATA, "checks": names})

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.folder.cleanup()

    def __contains__(self, name: object) -> bool:
        return self.ask("has", CALL, name)["value"] is True

    def __getitem__(self, name: str) -> Any:
        return self.value_of(name, self.ask("get", CALL, name))

    def __iter__(self) -> Iterator[str]:
        raise TypeError("a submission tells no names")

    __len__ = __iter__

    def send(self, request: Any) -> None:
        """Write a request. A process that has ended reads none."""
        with contextlib.suppress(OSError):
            pickle.dump(request, self.process.stdin)
            self.process.stdin.flush()

    def line(self, until: float) -> dict[str, Any]:
        """Return the next answer. Raise Ended if there is none until a time, or if it is no answer."""
        pipe = self.process.stdout.fileno()
        while (left := until - time.monotonic()) < 0 or b"\n" not in self.rest:
            ready = left > 0 and select.select([pipe], [], [], left)[0]
            more = os.read(pipe, MEGABYTE) if ready else b""
            self.rest += more
            if not more or len(self.rest) > MOST:
                self.process.kill()
                what = "has ended by itself" if ready and not more else "took too long, or said too much"
                raise Ended(f"the code of the notebook {what}.", "Restart the kernel and run all cells.")
        first, _, self.rest = self.rest.partition(b"\n")
        message = None
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(first)
        if not isinstance(message, dict):
            raise Ended("an answer cannot be read.", "Give a plain number, list, array or function.")
        return message

    def ask(self, kind: str, seconds: int, *rest: Any) -> dict[str, Any]:
        """Return the answer to a request. On the way the process may ask for the data of a student."""
        until = time.monotonic() + seconds + 5  # the process stops itself after `seconds`, if it can
        self.send((kind, seconds, *rest))
        while "data" in (message := self.line(until)):
            try:
                self.send(getattr(checks, message["data"])(message["student"]) if message["data"] in DATA else None)
            except checks.LalkitError:
                self.send(None)
        return message

    def run(self, source: str, seconds: int) -> str:
        """Run a cell, and return what it printed."""
        return str(self.ask("run", seconds, source).get("output", ""))

    def value_of(self, name: str, message: dict[str, Any]) -> Any:
        """Return the value of an answer: numbers, text, lists and arrays; functions call the process."""
        if "error" in message:
            raise type(str(message["error"])[:40], (Exception,), {})
        return self.decoded(name, message.get("value"))

    def decoded(self, name: str, item: Any) -> Any:
        if not isinstance(item, dict) or len(item) != 1:
            return item
        ((kind, content),) = item.items()
        if kind == "function":
            return lambda *arguments: self.value_of(name, self.ask("call", CALL, name, arguments))
        if kind == "array":
            return np.array(content)
        if kind in ("list", "tuple", "set"):
            return {"list": list, "tuple": tuple, "set": set}[kind](self.decoded(name, one) for one in content)
        return type(str(content)[:40], (), {})()  # a value of a kind that is never right; messages name its type


class Judge(NbGraderPreprocessor):
    """Run the cells of a submission in a process of its own, and write the line and the points of each check under it."""

    loading = Integer(600, help="seconds of a cell of the teacher: it loads and compiles").tag(config=True)
    seconds = Integer(60, help="seconds of a cell of the student").tag(config=True)
    memory = Integer(6000, help="megabytes of the process of a submission").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Return the notebook with outputs."""
        checks.hide(secrets.token_hex(8))
        with Submission(self.memory) as submission:
            for cell in (cell for cell in nb.cells if cell.cell_type == "code"):
                printed, points = io.StringIO(), None
                name = CHECK.match(cell.source)
                if is_grade(cell):
                    with contextlib.redirect_stdout(printed):
                        points = getattr(checks, name[0])(submission) if name and hasattr(checks, name[0]) else 0
                else:
                    try:
                        printed.write(submission.run(cell.source, self.loading if is_locked(cell) else self.seconds))
                    except Ended as error:
                        printed.write(f"{error.problem}\n")
                text = printed.getvalue()
                cell.outputs = [new_output("stream", name="stdout", text=text)] if text else []
                if points is not None:
                    cell.outputs.append(new_output("execute_result", {"text/plain": str(points)}))
        return nb, resources
