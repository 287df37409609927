"""Shipped parsers; the command line inside this process, as a process of its own would import for five seconds."""

import contextlib
import io
import logging
import sys
import tempfile
from pathlib import Path

import pytest
import torch
import typer
from click.testing import CliRunner

from lalkit import cli
from lalkit.api import Parser
from lalkit.errors import ModelError


def shipped_parser(name):
    """Load a shipped parser. Skip the test if the encoder of a large one is not installed."""
    try:
        return Parser.load(name)
    except ModelError as error:
        assert name.endswith("-large")
        pytest.skip(str(error))


def lalkit(*arguments, stdin=b"", cwd=".", **streams):
    """Run `lalkit ARGUMENTS` in the folder `cwd` with these bytes as standard input.

    streams: stdout=... puts another stream, or None, in its place. At the end it is flushed, as Python does.
    Returns (exit code, standard output, standard error).
    """
    threads, before = torch.get_num_threads(), sys.argv
    with CliRunner().isolation() as (out, err, _), contextlib.chdir(Path(cwd or ".")), tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        sys.stdin = io.TextIOWrapper(file)  # a real file: the command asks for its size
        sys.argv, sys.stdout = ["lalkit", *map(str, arguments)], streams.get("stdout", sys.stdout)
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.argv = before
            torch.set_num_threads(threads)
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
        return code, out.getvalue().decode(), err.getvalue().decode()


@contextlib.contextmanager
def logged(name="lalkit"):
    """Yield the list of the messages that are logged meanwhile. For fixtures of a module, which cannot ask for caplog."""
    messages, handler, logger = [], logging.Handler(), logging.getLogger(name)
    handler.emit = lambda record: messages.append(record.getMessage())
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)
    logger.setLevel(level)


def commands(group=None, path="lalkit"):
    """Yield (name, command) for every command of the command line, or of a group and of the groups in it."""
    for name, command in (group or typer.main.get_command(cli.app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command
