"""The command line: every command makes one call into the package.

A mistake of the user ends with one clear line on standard error and exit code 2. Messages go to standard error, so that
standard output holds nothing but results.
"""

from __future__ import annotations

import logging
import os
import sys

# Threads that spin while they wait for work are 3-7 times slower on shared cores. This must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a sentence is too little work to share
os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # silences the profiler with which `bench` measures memory

import typer
from tqdm import tqdm

from lalkit.chart.machine import keep_memory
from lalkit.cli import analysis_commands, companion_commands, data_commands, model_commands, parser_commands
from lalkit.errors import LalkitError

HELP = "Train parsers with label attention, parse with them, and look inside them."
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)
for command in (
    parser_commands.train, parser_commands.evaluate, parser_commands.parse, parser_commands.explain,
    analysis_commands.heads, analysis_commands.doctor, analysis_commands.run, analysis_commands.bench,
    analysis_commands.demo, analysis_commands.sweep, analysis_commands.report,
):  # fmt: skip
    app.command()(command)
app.add_typer(data_commands.app, name="data")
app.add_typer(model_commands.app, name="models")
app.add_typer(companion_commands.classifiers, name="transparent")
app.add_typer(companion_commands.summarizers, name="summarize")


class Messages(logging.Handler):
    """Write every message of the package as one line on standard error, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        write = tqdm.write if sys.stderr.isatty() else print
        write(self.format(record), file=sys.stderr)


@app.callback()
def show_messages(context: typer.Context) -> None:
    # Only while a command runs, so that a program that imports this module decides about messages itself.
    logger, handler = logging.getLogger("lalkit"), Messages()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    context.call_on_close(lambda: logger.removeHandler(handler))


def main() -> None:
    """Run the command line, and turn errors that the user can mend into one line and exit code 2."""
    keep_memory()
    try:
        app()
    except (LalkitError, OSError) as error:
        problem = str(error)
        if isinstance(error, OSError):  # for example a path that is not a folder, or a full disk
            if not error.filename:
                raise
            problem = f"{error.filename}: {error.strerror}"
        print(f"lalkit: {problem}", file=sys.stderr)
        sys.exit(2)
