"""The command line's groups, the options that several commands have, and help texts from docstrings."""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from lalkit.config import MOST_THREADS
from lalkit.errors import ParameterError, safe, whole_number
from lalkit.files import check_folder, check_writable, write_json

logger = logging.getLogger(__name__)
HELP = "Train parsers with label attention, parse with them, and look inside them."
# The commands in the order of work.
PANELS = {
    "First steps": ("demo", "doctor", "models"),
    "Parse, and look inside": ("parse", "serve", "explain", "search", "export"),
    "Train, and score": ("data", "train", "evaluate"),
    "Experiments": ("run", "sweep", "study", "report", "bench"),
}


class InOrder(TyperGroup):
    """The commands under the headings of PANELS."""

    def list_commands(self, ctx) -> list[str]:
        for panel, names in PANELS.items():
            for name in names:
                self.commands[name].rich_help_panel = panel  # type: ignore[attr-defined]
        return [name for names in PANELS.values() for name in names]


app = typer.Typer(cls=InOrder, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)


def group(name: str, help: str, **options) -> typer.Typer:
    """Return a new group of commands."""
    made = typer.Typer(help=help, **options)
    app.add_typer(made, name=name)
    return made


def command(group: typer.Typer = app, name: str | None = None) -> Callable:
    """Add a function to a group of commands. The help of its options is the `Args:` section at the end of its docstring.

    A parameter without a default becomes an argument, any other an option. A flag has no opposite: there is --resume, but
    no --no-resume. Under `python -OO` there are no docstrings, and the help has no texts.
    """

    def add(function: Callable) -> Callable:
        function.__doc__, _, section = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
        lines = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.M)
        texts = {name: " ".join(text.split()) for name, text in lines}
        hints = get_type_hints(function, include_extras=True)
        for name_, parameter in inspect.signature(function).parameters.items():
            hint = hints[name_]
            kind, info = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
            if info is None:
                flag = [f"--{name_.replace('_', '-')}"] if kind is bool else []
                info = typer.Argument() if parameter.default is inspect.Parameter.empty else typer.Option(*flag)
            info = copy(info)
            info.help = info.help or texts.get(name_)
            hints[name_] = Annotated[kind, info]
        function.__annotations__ = hints
        group.command(name)(on_terminal(function))
        return function

    return add


class Terminal:
    """Standard output on a terminal: control characters are shown as escapes. Output to a file keeps them."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(safe(text, keep="\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def on_terminal(function: Callable) -> Callable:
    """Return a command that prints through `Terminal` if standard output is a terminal."""

    @wraps(function)
    def run(*args, **options):
        with redirect_stdout(Terminal(sys.stdout)) if sys.stdout.isatty() else nullcontext():
            return function(*args, **options)

    return run


def set_threads(count: int | None) -> int | None:
    """Let torch use this many threads; None and 0: one per core. Return the count as it was given."""
    import torch

    from lalkit.chart.machine import cpu_count

    if count is not None:
        whole_number("--threads", count, 0, MOST_THREADS)
    torch.set_num_threads(count or cpu_count())
    return count


def output_file(text: str) -> Path:
    """Return the path of a file that a command will write. Raises LalkitError now if it cannot be written."""
    if text == "-":
        raise ParameterError("- is not the name of a file", remedy="Give a file. Only --json can print, with -.")
    check_writable(text)
    return Path(text)


def json_file(text: str) -> Path:
    """Return the same for --json, where - is standard output."""
    return Path(text) if text == "-" else output_file(text)


def output_folder(text: str) -> Path:
    """Return the path of a folder into which a command will write. Raises LalkitError now if that is not possible."""
    check_folder(text)
    return Path(text)


TREEBANK = (
    "A treebank: sample, sample-zh, ptb-sample, craft, ewt, gum (gum/news,voyage for some genres), masc, sinica, a folder of "
    ".trees and .conllu files, or a mixture such as craft:constituents+ewt*0.5."
)
PARSER = "A trained parser: a shipped one by name, default for the usual one, a folder, or hf:owner/name."
PRECISION = "The precision of the computation: fp32 (exact), bf16, or auto (bf16 for many words where it is faster)."
DEVICE = "Where to compute: cpu, cuda, cuda:1 (the second GPU) or mps; auto is cuda if there is one, else cpu."
SET = "Change a setting, e.g. model.label_attention.heads=32. Repeat it for more settings."


def given(value: Any, to: Path | None) -> bool:
    """Print a value as JSON if `to` is -, or write it to this file; None: do neither. Return whether one of them was done."""
    if to == Path("-"):
        print(json.dumps(value))
    elif to:
        logger.info("written: %s", write_json(to, value))
    return to is not None


Treebank = Annotated[str, typer.Option("--treebank", help=TREEBANK)]
HEADS = "Head rules for a treebank of trees alone, a file: see book/treebanks.md."
DROP = "Leave out the words with these tags, e.g. ID,CODE. traces stands for empty elements such as *T*-1."
Heads = Annotated[str | None, typer.Option("--heads", metavar="FILE", help=HEADS)]
Drop = Annotated[str | None, typer.Option("--drop-tags", metavar="TAGS", help=DROP)]
Model = Annotated[str, typer.Option("--model", help=PARSER)]
Parser = Annotated[str, typer.Argument(help=PARSER)]
Split = Annotated[str, typer.Option(help="A part of the treebank: train, dev or test.")]
# With its callback the option --threads acts by itself, before the command starts.
Threads = Annotated[
    int | None, typer.Option(callback=set_threads, help="The number of processor threads; 0 means one per core.")
]
Precision = Annotated[Literal["auto", "fp32", "bf16"], typer.Option(help=PRECISION)]
Device = Annotated[str, typer.Option(help=DEVICE)]
# Places that a command writes.
FILE, FOLDER = typer.Option(parser=output_file, metavar="FILE"), typer.Option(parser=output_folder, metavar="FOLDER")
JSON = "Write the results as JSON to this file, and no text; - prints the JSON."
Json = Annotated[Path | None, typer.Option("--json", parser=json_file, metavar="FILE", help=JSON)]
REPLACE = "Replace earlier results; without it the command is refused. A single file named by --out is always replaced."
Replace = Annotated[bool, typer.Option("--replace", help=REPLACE)]
Set = Annotated[list[str] | None, typer.Option("--set", help=SET)]


def read_as(treebank: str, heads: str | None, drop: str | None) -> str:
    """Return the name of a treebank that is read with head rules and without some tags: see `corpora.parts_of`.

    Raises ParameterError for a mixture, where they would act on the last treebank alone.
    """
    if (heads or drop) and "+" in treebank and not os.path.exists(treebank):
        remedy = "In a mixture they follow each name: NAME@heads=FILE@drop=TAGS+..."
        raise ParameterError("--heads and --drop-tags are for one treebank", where=treebank, remedy=remedy)
    return treebank + (f"@heads={heads}" if heads else "") + (f"@drop={drop}" if drop else "")


def pairs(texts: list[str] | None) -> dict[str, str]:
    """Return {name: value} of texts 'name=value'; the last value of a name counts. Raises ParameterError without '='."""
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"{text!r} is not name=value", remedy="Write it like train.seed=2.")
        values[name.strip()] = value
    return values
