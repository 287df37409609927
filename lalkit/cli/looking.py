"""`lalkit doctor`, `run`, `bench` and `demo`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Model, pairs, say, set_threads


def doctor() -> None:
    """Say what is installed and found, and how to get what is missing."""
    from lalkit.doctor import diagnose

    for what, finding, fine in diagnose():
        print(f"{'ok ' if fine else '-- '}{what:24}{finding}")


def run(
    notebook: Annotated[Path, typer.Argument(help="e.g. notebooks/00_quickstart.ipynb")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value, as the notebook's parameters cell declares")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder of the run; default runs/NOTEBOOK/...")] = None,
    cached: Annotated[
        bool, typer.Option("--cached", help="take a finished run of the same notebook, parameters, code and data")
    ] = False,
) -> None:
    """Run a notebook strictly: its output, figures and run.json land in a folder under runs/."""
    from lalkit.notebooks import run_notebook

    result = run_notebook(notebook, dict(pairs(parameter or [])), out, cache=cached)
    say(f"done in {result.seconds:.0f} s: {result.folder}")


def bench(
    routines: Annotated[
        list[str] | None,
        typer.Argument(
            help="layer, spans, inside, decode, contributions, look, parse, train, together, beside; none: all"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    threads: Annotated[int | None, typer.Option()] = 1,
    repeats: Annotated[int, typer.Option(help="rounds of each comparison")] = 7,
    preset: Annotated[str, typer.Option(help="the network of parse and train")] = "minilm",
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="an encoder of the preset's shape, not downloaded")
    ] = False,
    json_: Annotated[str | None, typer.Option("--json", help="- for a list of rows on standard output")] = None,
) -> None:
    """Speed and memory as ratios: fast routines against their literal twins, the whole parser against its bare encoder."""
    from lalkit.bench import bench as bench_
    from lalkit.bench import table
    from lalkit.bench.measure import Settings

    set_threads(threads)
    rows = bench_(routines or [], Settings(device, repeats, preset, random_weights), say)
    print(json.dumps(rows) if json_ == "-" else table(rows))


def demo(
    out: Annotated[Path, typer.Option()] = Path("runs/demo"),
    model: Model = "en-news",
) -> None:
    """The whole way in a minute, on what the repository ships: parse, draw, evaluate, run the first notebook."""
    from lalkit.demo import run_demo

    set_threads(None)
    run_demo(out, model, say)
