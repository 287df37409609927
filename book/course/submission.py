"""Run the code of one submission, in a process with limits. grade.py starts this process, and it alone gives points.

Nothing here knows a right answer: `checks` is an empty stand-in whose data come from grade.py. A request is a pickle of
grade.py on the standard input. An answer is one line of JSON. So a submission can say what it likes, but not its points.
"""

import contextlib
import io
import json
import os
import pickle
import resource
import signal
import sys
import types

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import lalkit  # noqa: F401  (before the guard stands, and so that unpickled data find it)

SHOWN = 20_000  # characters of a cell's output that are kept
PROCESSES = ["subprocess.Popen", *(f"os.{name}" for name in "system exec fork forkpty posix_spawn spawn kill".split())]


def plain(value, depth=0):
    """Return a value as JSON can hold it. What has no such form keeps the name of its type."""
    if isinstance(value, (np.generic, np.ndarray, torch.Tensor)):
        listed = value.tolist()
        return {"array": listed} if isinstance(listed, list) else listed
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind in (list, tuple, set):
        if isinstance(value, kind) and depth < 5:
            return {kind.__name__: [plain(item, depth + 1) for item in value]}
    return {"function" if callable(value) else "type": type(value).__name__}


def guard(*folders):
    """Forbid this process to touch some folders, and to start or end processes. Python's audit events tell what it does."""
    closed = [os.path.join(os.path.realpath(folder), "") for folder in folders]

    def look(event, arguments):
        if event in PROCESSES:
            raise PermissionError(f"a submission may not do this ({event})")
        if event.split(".")[0] in ("open", "os", "shutil"):
            for path in (os.fsdecode(item) for item in arguments if isinstance(item, (str, bytes, os.PathLike))):
                if os.path.join(os.path.realpath(path), "").startswith(tuple(closed)):
                    raise PermissionError(f"a submission may not touch {path}")

    sys.addaudithook(look)


def serve(requests, answers, folder, constants, data, checks):
    """Answer requests until there are no more: run a cell, say what a name holds, call a function."""
    shell = InteractiveShell.instance(colors="NoColor", config=Config(HistoryManager={"enabled": False}))
    names = shell.user_ns

    def say(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def asked(name):
        def of(student):
            say({"data": name, "student": str(student)})
            return pickle.load(requests)

        return of

    stand_in = types.ModuleType("checks")
    vars(stand_in).update(constants, **{name: asked(name) for name in data}, **dict.fromkeys(checks, lambda: None))
    sys.modules["checks"] = stand_in
    guard(folder, f"/proc/{os.getppid()}")

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    while True:
        kind, seconds, *rest = pickle.load(requests)
        output, message = io.StringIO(), {}
        try:
            signal.alarm(seconds)
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                if kind == "run":
                    shell.run_cell(rest[0])
                elif kind == "has":
                    message = {"value": rest[0] in names}
                else:
                    value = names[rest[0]] if kind == "get" else names[rest[0]](*rest[1])
                    message = {"value": plain(value)}
        except BaseException as error:
            message = {"error": type(error).__name__}
        finally:
            signal.alarm(0)
        say(message | {"output": output.getvalue()[:SHOWN]})


if __name__ == "__main__":
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    start = pickle.load(requests)
    for name, most in start.pop("limits").items():
        resource.setrlimit(getattr(resource, name), (most, most))
    serve(requests, answers, **start)
