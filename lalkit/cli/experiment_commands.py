"""`lalkit sweep`, `report`, `bench` and `study`: experiments. A study trains, measures and writes its tables."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from lalkit.cli import options
from lalkit.cli.options import command, group
from lalkit.files import check_new, locked_folder

logger = logging.getLogger(__name__)
reports = group("report", "Write reports of sweeps.", no_args_is_help=True)
studies = group("study", "Study the label heads of parsers, and write tables to --out.", no_args_is_help=True)


@command()
def sweep(
    file: Path, profile: str | None = None, jobs: int = 1, check: bool = False,
    out: Annotated[Path | None, options.FOLDER] = None,
) -> None:  # fmt: skip
    """Train a grid of settings and seeds. The same command continues an interrupted sweep.

    The exit code is 1 if a run failed, or if the check finds a difference.

    Example: lalkit sweep notebooks/sweeps/ablation-1.yml --profile smoke

    Args:
        file: The description of the sweep, e.g. notebooks/sweeps/ablation-1.yml.
        profile: The size of the sweep: a profile of the file, e.g. smoke.
        jobs: The number of runs at the same time, one core each.
        check: Train nothing; list the settings and numbers of weights that differ from its table in figures/.
        out: The folder of the sweep; by default runs/sweeps/NAME or NAME-PROFILE.
    """
    from lalkit.reproduce import sweep as sweeps

    if check:
        from lalkit.reproduce import report

        print("\n".join(lines := report.check(file, profile)) or "as the file gives it now")
        raise typer.Exit(bool(lines))
    planned = sweeps.plan(file, profile)
    out = out or Path("runs/sweeps") / "-".join(filter(None, (planned.name, profile)))
    results = sweeps.sweep(planned, out, jobs=jobs)
    failed = [(run, result) for run, result in results if result["status"] != "ok"]
    for run, result in failed:
        logger.info("%s: %s  (%s)", run, sweeps.outcome(result), out / run.folder)
    raise typer.Exit(1 if failed else 0)


@command(reports, "sweeps")
def report_sweeps(
    sweeps: list[Path], out: Annotated[Path, options.FOLDER] = Path("runs/report"), replace: options.Replace = False,
    no_picture: bool = False,
) -> None:  # fmt: skip
    """Write tables, tests, the verdict on each claim and a figure of finished sweeps.

    Example: lalkit report sweeps runs/sweeps/ablation-1

    Args:
        sweeps: Folders of sweeps, e.g. runs/sweeps/ablation-1, or tables of reports, e.g. figures/sweeps/silver.csv.
        out: The folder of the report.
        no_picture: Leave the figure out; the page says how to draw it.
    """
    from lalkit.reproduce.report import report

    print(*report(sweeps, out, replace, not no_picture), sep="\n")


@command()
def bench(
    routines: Annotated[list[str] | None, typer.Argument()] = None,
    device: str = "cpu",
    threads: options.Threads = 1,
    repeats: int = 7,
    preset: str = "minilm",
    json_: options.Json = None,
) -> None:
    """Measure speed and memory as ratios: fast routines against slow twins, the parser against its bare encoder.

    Example: lalkit bench layer decode

    Args:
        routines: layer, spans, decode, probabilities, parse, host, train; by default all.
        device: Where to compute: cpu or cuda.
        repeats: The number of rounds of each comparison.
        preset: The settings of the network in parse, host and train.
    """
    from lalkit import bench as comparisons

    rows = comparisons.bench(routines or [], comparisons.Settings(device, repeats, preset))
    if not options.given(rows, json_):
        print(comparisons.table(rows))


@command(studies, "heads")
def study_heads(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Annotated[int, typer.Option(min=0)] = 0,
    probed: Annotated[int, typer.Option(min=0)] = 40,
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/heads"),
    replace: options.Replace = False,
) -> None:
    """Test whether label heads stand for labels: compare trained parsers under the same controls.

    A run may have the paper's layer, label attention inside the span, or neither. Another kind of control, for example
    uniform attention in training, is another run.

    Example: lalkit study heads paper=runs/paper span=runs/span --treebank sample

    Args:
        runs: Trained runs (FOLDER or NAME=FOLDER) and folders of sweeps; the others are compared with the first.
        treebank: The treebank to parse under controls.
        sentences: The number of sentences of the split, evenly spread; 0 means all.
        probed: The number of sentences for the probes; 0 means the controls alone.
        rounds: The number of random permutations of each attention.
        out: The folder for the tables and the page.
    """
    from lalkit.studies.label_heads import compare_heads, read_runs, write

    sizes: dict[str, Any] = {"sentences": sentences, "probed": probed, "rounds": rounds}
    with locked_folder(out):
        check_new(out, "table.csv", replace)
        comparison = compare_heads(read_runs(runs), treebank, split, keep=out / "measured", **sizes)
        print(*write(*comparison, out, f"Label heads under controls: {treebank} {split}"), sep="\n")
