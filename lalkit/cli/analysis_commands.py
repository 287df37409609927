"""`lalkit doctor`, `run`, `bench` and `demo`.

`lalkit heads`.

`lalkit sweep` and `lalkit report`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Model, pairs, say, set_threads


def heads(
    runs: Annotated[
        list[str],
        typer.Argument(help="trained runs, FOLDER or NAME=FOLDER, and folders of sweeps; the first is compared with"),
    ],
    treebank: Annotated[str, typer.Option(help="to parse under controls")] = "ptb-sample",
    split: Annotated[str, typer.Option(help="train, dev or test")] = "test",
    sentences: Annotated[int, typer.Option(help="of the split, evenly spread; 0: all")] = 0,
    label: Annotated[
        list[str] | None, typer.Option(help="whose head is taken out (repeatable); default: the six most frequent")
    ] = None,
    probed: Annotated[int, typer.Option(help="sentences for the probes")] = 40,
    rounds: Annotated[int, typer.Option(help="permutations of each attention")] = 20,
    threads: Annotated[int | None, typer.Option()] = 1,
    out: Annotated[Path, typer.Option(help="folder of the tables and the figure")] = Path("runs/heads"),
) -> None:
    """Do label heads mean labels? Runs of the paper's layer, of label attention inside the span, of neither: under one set of
    controls, with tests. Another kind of control, such as uniform attention in training, is another run."""
    from lalkit.reproduce.comparison import compare_heads, read_runs
    from lalkit.reproduce.comparison_report import write

    set_threads(threads)
    found = compare_heads(
        read_runs(runs), treebank, split, sentences=sentences, labels=label, probed=probed, rounds=rounds,
        keep=out / "measured", say=say,
    )  # fmt: skip
    for path in write(found, out, f"Label heads under controls: {treebank} {split}"):
        print(path)


def sweep(
    file: Annotated[Path, typer.Argument(help="e.g. notebooks/sweeps/ablation-1.yml")],
    profile: Annotated[str | None, typer.Option(help="smoke, sample or full, as the file has them")] = None,
    jobs: Annotated[int | None, typer.Option(help="runs at the same time, one core each; default 1")] = None,
    cluster: Annotated[str | None, typer.Option(help="address of a dask scheduler, e.g. tcp://host:8786")] = None,
    out: Annotated[Path | None, typer.Option(help="default runs/sweeps/NAME or NAME-PROFILE")] = None,
) -> None:
    """Train a grid of settings and seeds; the same command goes on after an interruption. Exit code 1 if a run failed."""
    from lalkit.errors import ParameterError
    from lalkit.reproduce.sweep_plan import plan
    from lalkit.reproduce.sweep_runs import outcome
    from lalkit.reproduce.sweep_runs import sweep as sweep_

    if jobs is not None and cluster is not None:
        raise ParameterError("--jobs are of this machine, --cluster of others", remedy="Give one of the two.")
    planned = plan(file, profile)
    out = out or Path("runs/sweeps") / "-".join(filter(None, (planned.name, profile)))
    try:
        results = sweep_(planned, out, jobs=1 if jobs is None else jobs, cluster=cluster)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        raise typer.Exit(130) from None
    failed = [(run, result) for run, result in results if result["status"] != "ok"]
    for run, result in failed:
        say(f"{run}: {outcome(result)}  ({out / run.folder})")
    raise typer.Exit(1 if failed else 0)


def report(
    folders: Annotated[list[Path], typer.Argument(help="folders of sweeps, e.g. runs/sweeps/ablation-1-sample")],
    out: Annotated[Path, typer.Option(help="folder of the report")] = Path("runs/report"),
) -> None:
    """Tables (CSV, Markdown, LaTeX), figures and one HTML page of finished sweeps; per claim whether it holds."""
    from lalkit.reproduce.sweep_report import report as report_

    for path in report_(folders, out):
        print(path)


def doctor() -> None:
    """Say what is installed and found, and how to get what is missing."""
    from lalkit.cli.first_steps import diagnose

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
    from lalkit.reproduce.notebook import run_notebook

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
    rows = bench_(routines or [], Settings(device, repeats, preset, random_weights))
    print(json.dumps(rows) if json_ == "-" else table(rows))


def demo(out: Annotated[Path, typer.Option()] = Path("runs/demo"), model: Model = "en-news") -> None:
    """The whole way in a minute, on what the repository ships: parse, draw, evaluate, run the first notebook."""
    from lalkit.cli.first_steps import run_demo

    set_threads(None)
    run_demo(out, model, say)
