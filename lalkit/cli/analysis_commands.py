"""`lalkit sweep`, `report` and `bench`: experiments."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.errors import ParameterError
from lalkit.files import write_json

logger = logging.getLogger(__name__)


@documented
def sweep(
    file: Path,
    profile: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: Annotated[Path | None, options.FOLDER] = None,
) -> None:
    """Train a grid of settings and seeds. The same command continues an interrupted sweep.

    The exit code is 1 if a run failed.

    Example: lalkit sweep notebooks/sweeps/ablation-1.yml --profile smoke

    Args:
        file: The description of the sweep, e.g. notebooks/sweeps/ablation-1.yml.
        profile: The size of the sweep: a profile of the file, e.g. smoke.
        jobs: The number of runs at the same time, one core each; by default 1.
        cluster: Train on the workers of this dask scheduler, e.g. tcp://host:8786.
        out: The folder of the sweep; by default runs/sweeps/NAME or NAME-PROFILE.
    """
    from lalkit.reproduce import sweep as sweeps

    if jobs is not None and cluster is not None:
        raise ParameterError("--jobs and --cluster exclude each other", remedy="Give one of the two.")
    planned = sweeps.plan(file, profile)
    out = out or Path("runs/sweeps") / "-".join(filter(None, (planned.name, profile)))
    try:
        results = sweeps.sweep(planned, out, jobs=1 if jobs is None else jobs, cluster=cluster)
    except KeyboardInterrupt:
        logger.info("interrupted; the same command continues from here")
        raise typer.Exit(130) from None
    failed = [(run, result) for run, result in results if result["status"] != "ok"]
    for run, result in failed:
        logger.info("%s: %s  (%s)", run, sweeps.outcome(result), out / run.folder)
    raise typer.Exit(1 if failed else 0)


reports = typer.Typer(help="Write reports: of sweeps, of label heads, of errors.", no_args_is_help=True)


@reports.command("sweeps")
@documented
def report_sweeps(sweeps: list[Path], out: Annotated[Path, options.FOLDER] = Path("runs/report")) -> None:
    """Write tables, tests, the verdict on each claim and a figure of finished sweeps.

    Example: lalkit report sweeps runs/sweeps/ablation-1-sample

    Args:
        sweeps: Folders of sweeps, e.g. runs/sweeps/ablation-1-sample, or tables of reports, e.g. figures/sweeps/silver.csv.
        out: The folder of the report.
    """
    from lalkit.reproduce.report import report

    for path in report(sweeps, out):
        print(path)


@reports.command("heads")
@documented
def report_heads(
    models: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Annotated[int, typer.Option(min=0)] = 0,
    label: list[str] | None = None,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/report-heads"),
) -> None:
    """Report which label heads lead which labels, and what they attend to: tables, figures and a page.

    Example: lalkit report heads en-news --treebank sample

    Args:
        models: Trained parsers: names, folders or NAME=FOLDER, such as one for each seed.
        treebank: The treebank to parse.
        sentences: The number of sentences of the split, evenly spread; 0 means all.
        label: Report this label; repeat it for more labels. By default the frequent ones.
        out: The folder of the report.
    """
    from lalkit.studies import corpus_report

    for path in corpus_report.report_heads(models, treebank, split, out, sentences=sentences, labels=label or ()):
        print(path)


@reports.command("errors")
@documented
def report_errors(
    models: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Annotated[int, typer.Option(min=0)] = 0,
    trace: str | None = None,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/report-errors"),
) -> None:
    """Report where parsers are wrong, by class of error, label, length and label head: tables, a figure and a page.

    Example: lalkit report errors en-news --treebank sample --trace "Fed Ready to Inject Big Funds"

    Args:
        models: Trained parsers: names, folders or NAME=FOLDER, such as one for each seed.
        treebank: The treebank to parse; it needs both layers.
        sentences: The number of sentences of the split, evenly spread; 0 means all.
        trace: Also trace this sentence to its label heads: words and punctuation marks with spaces between them.
        out: The folder of the report.
    """
    from lalkit.studies import corpus_report

    for path in corpus_report.report_errors(models, treebank, split, out, sentences=sentences, typed=trace or ""):
        print(path)


@documented
def bench(
    routines: Annotated[list[str] | None, typer.Argument()] = None,
    device: str = "cpu",
    threads: options.Threads = 1,
    repeats: int = 7,
    preset: str = "minilm",
    random_weights: bool = False,
    json_: options.Json = None,
) -> None:
    """Measure speed and memory as ratios: fast routines against slow twins, the parser against its bare encoder.

    Example: lalkit bench layer decode

    Args:
        routines: layer, spans, decode, probabilities, contributions, look, parse, start, train; by default all.
        device: Where to compute: cpu or cuda.
        repeats: The number of rounds of each comparison.
        preset: The settings of the network in parse and train.
        random_weights: Give the encoder random weights, so that none are downloaded.
        json_: Write all rows as a JSON list to this file; - prints the list.
    """
    from lalkit import bench as comparisons

    rows = comparisons.bench(routines or [], comparisons.Settings(device, repeats, preset, random_weights))
    print(json.dumps(rows) if json_ == Path("-") else comparisons.table(rows))
    if json_ and json_ != Path("-"):
        write_json(json_, rows)
