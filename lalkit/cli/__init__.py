"""The command line. A command reads its options, calls the package and prints.

A mistake of the user ends with one clear line on standard error and exit code 2. Messages go to standard error, so that
standard output holds nothing but results.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import logging
import os
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

# These must be set before torch and transformers are loaded.
# Threads that spin while they wait are 3-7 times slower on shared cores
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a sentence is too little work to share
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")  # of 1,024 shapes, bf16 kept 270 MB for a large text
os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # silences the profiler with which `bench` measures memory

# While modules load, the system ends the process at once on Ctrl-C: Python would print a traceback.
HEARD = signal.getsignal(signal.SIGINT)
with suppress(ValueError):  # not in the first thread
    signal.signal(signal.SIGINT, signal.SIG_DFL if HEARD is signal.default_int_handler else HEARD)

import typer
from tqdm import tqdm

from lalkit import __version__
from lalkit.chart.machine import keep_memory
from lalkit.cli import experiment_commands, first_steps, parser_commands  # noqa: F401 (they add their commands to app)
from lalkit.cli.options import app
from lalkit.config import import_modules
from lalkit.errors import LalkitError, ParameterError, reason, safe
from lalkit.files import writing

with suppress(ValueError):
    signal.signal(signal.SIGINT, HEARD)
atexit.register(gc.freeze)  # otherwise Python checks all objects once more when it ends, which takes a second


class Messages(logging.Handler):
    """Write every message of the package on standard error, above a progress bar. A name in it cannot begin a new line."""

    def emit(self, record: logging.LogRecord) -> None:
        write = tqdm.write if sys.stderr.isatty() else print
        if isinstance(record.args, tuple):
            record.args = tuple(safe(str(a)) if isinstance(a, str | Path) else a for a in record.args)
        with suppress(OSError):  # do not lose the results because a message cannot be written
            write(safe(self.format(record), keep="\n\t"), file=sys.stderr)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"lalkit {__version__}")
        raise typer.Exit


IMPORT = "Import a module of yours that registers layers (lalkit.register_layer), e.g. my_layers. Write it before the command."
IMPORT = typer.Option("--import", callback=import_modules, metavar="MODULE", help=IMPORT)
VERSION = typer.Option("--version", callback=show_version, is_eager=True, help="Print the version, and exit.")


@app.callback()
def show_messages(
    context: typer.Context, version: Annotated[bool, VERSION] = False, import_: Annotated[str, IMPORT] = ""
) -> None:
    # Only while a command runs, so that a program that imports this module decides about messages itself.
    logger, handler = logging.getLogger("lalkit"), Messages()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False  # rouge-score gives the root a handler of its own, which would print each message again
    context.call_on_close(partial(setattr, warnings, "showwarning", warnings.showwarning))
    warnings.showwarning = lambda message, *place: logger.warning(message)  # without the line of our code
    context.call_on_close(lambda: logger.removeHandler(handler))
    context.call_on_close(partial(setattr, logger, "propagate", True))


def prepare_streams() -> None:
    """Make the streams of this process ready for any text. Raises LalkitError if standard output is closed.

    Output to a file or a pipe is UTF-8, as all our files are. On a terminal, a character that its encoding does not have is
    shown as an escape.
    """
    sys.stdin = sys.stdin or open(os.devnull)
    sys.stderr = sys.stderr or open(os.devnull, "w")
    if sys.stdout is None:
        remedy = "Direct it to a file, or to /dev/null if you do not need it."
        raise LalkitError("is closed", where="standard output", remedy=remedy)
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def flush_output() -> None:
    """Write the buffer of standard output. Raises LalkitError if that fails."""
    try:
        with writing("standard output"):
            sys.stdout.flush()
    except (LalkitError, BrokenPipeError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python tries it again when it ends
        if isinstance(error, LalkitError):
            raise
        sys.exit(1)  # the reader has gone, for example `| head -1`


def main() -> None:
    """Run the command line, and turn errors that the user can correct into one message and exit code 2."""
    keep_memory()
    try:
        prepare_streams()
        if "" in sys.argv:
            place = f"after {sys.argv[sys.argv.index('') - 1]}"
            raise ParameterError("a word is empty", where=place, remedy="Write something, or leave it out.")
        for before, text in zip(sys.argv, sys.argv[1:]) if "--" not in sys.argv else ():
            if text[0] == "-" and " " in text.partition("=")[0] and before[0] != "-":
                remedy = f"Write -- before the text: {' '.join(sys.argv[1:2])} -- '{text}'"
                raise ParameterError("a text begins as an option does", where=text, remedy=remedy)
        try:
            app()
        except SystemExit as end:
            if end.code == 130:  # Ctrl-C: under load, Python would need a second to clear all modules
                atexit.register(os._exit, 130)
            raise
        finally:
            flush_output()
    except (LalkitError, OSError) as error:
        problem = error
        if isinstance(error, OSError):  # of the system, for example a folder that may not be read
            full = error.errno in (errno.ENOSPC, errno.EFBIG)  # all files but standard output are written by files.py
            where = error.filename or ("standard output" if full else "")
            remedy = "Check the path, its rights and the free space on the disk."
            problem = LalkitError(reason(error), where=str(where), remedy=remedy)
        with suppress(OSError):
            # papermill leaves its bar open: the message gets a line of its own.
            for bar in list(getattr(tqdm, "_instances", ())):
                bar.close()
            print(f"lalkit: {problem}", file=sys.stderr)
        sys.exit(2)
