"""The command line: one call each. Bad input ends with one clear line on standard error and exit code 2."""

from __future__ import annotations

import os
import sys

# Threads that spin while they wait for work are 3-7 times slower on shared cores; must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a sentence is too little to share
os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the profiler that measures memory in `bench` announces itself

import typer

from lalkit.chart.machine import keep_memory
from lalkit.cli import analysis_commands as heads
from lalkit.cli import analysis_commands as looking
from lalkit.cli import analysis_commands as sweeping
from lalkit.cli import classifier_commands as transparent
from lalkit.cli import data_commands as corpora
from lalkit.cli import model_commands as models
from lalkit.cli import parser_commands as explaining
from lalkit.cli import parser_commands as learning
from lalkit.cli import parser_commands as parsing
from lalkit.cli import summarizer_commands as summarizing
from lalkit.errors import LalkitError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__.split(".")[0] + "."
)
for command in (
    learning.train, parsing.evaluate, parsing.parse, explaining.explain, heads.heads, looking.doctor, looking.run,
    looking.bench, looking.demo,
    sweeping.sweep, sweeping.report,
):  # fmt: skip
    app.command()(command)
app.add_typer(corpora.app, name="data")
app.add_typer(models.app, name="models")
app.add_typer(transparent.app, name="transparent")
app.add_typer(summarizing.app, name="summarize")


def main() -> None:
    """The entry point."""
    keep_memory()
    try:
        app()
    except LalkitError as error:
        print(f"lalkit: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a path that is no folder, a full disk: theirs to mend
        if not error.filename:
            raise
        print(f"lalkit: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
