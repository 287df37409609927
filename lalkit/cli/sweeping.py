"""`lalkit sweep` and `lalkit report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import say


def sweep(
    file: Annotated[Path, typer.Argument(help="e.g. notebooks/sweeps/ablation-1.yml")],
    profile: Annotated[str | None, typer.Option(help="smoke, sample or full, as the file has them")] = None,
    jobs: Annotated[int | None, typer.Option(help="runs at the same time, one core each; default 1")] = None,
    cluster: Annotated[str | None, typer.Option(help="address of a dask scheduler, e.g. tcp://host:8786")] = None,
    out: Annotated[Path | None, typer.Option(help="default runs/sweeps/NAME or NAME-PROFILE")] = None,
) -> None:
    """Train a grid of settings and seeds; the same command goes on after an interruption. Exit code 1 if a run failed."""
    from lalkit.errors import ParameterError
    from lalkit.sweep.execute import outcome
    from lalkit.sweep.execute import sweep as sweep_
    from lalkit.sweep.plan import plan

    if jobs is not None and cluster is not None:
        raise ParameterError("--jobs are of this machine, --cluster of others", remedy="Give one of the two.")
    planned = plan(file, profile)
    out = out or Path("runs/sweeps") / "-".join(filter(None, (planned.name, profile)))
    try:
        results = sweep_(planned, out, jobs=1 if jobs is None else jobs, cluster=cluster, say=say)
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
    from lalkit.sweep.report import report as report_

    for path in report_(folders, out):
        print(path)
