"""`lalkit heads`, `prune`, `sweep`, `report` and `bench`: experiments."""

from __future__ import annotations

import json
import logging
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.config import override
from lalkit.errors import ParameterError
from lalkit.files import write_json

logger = logging.getLogger(__name__)


@documented
def heads(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Annotated[int, typer.Option(min=0)] = 0,
    label: list[str] | None = None,
    probed: Annotated[int, typer.Option(min=1)] = 40,
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/heads"),
) -> None:
    """Test whether label heads mean labels: compare trained parsers under the same controls, with tests.

    A run may have the paper's layer, label attention inside the span, or neither. Another kind of control, for example
    uniform attention in training, is another run.

    Example: lalkit heads paper=runs/paper span=runs/span --treebank sample

    Args:
        runs: Trained runs (FOLDER or NAME=FOLDER) and folders of sweeps; the others are compared with the first.
        treebank: The treebank to parse under controls.
        sentences: The number of sentences of the split, evenly spread; 0 means all.
        label: Remove the head of this label; repeat it for more labels. By default the six most frequent ones.
        probed: The number of sentences for the probes.
        rounds: The number of random permutations of each attention.
        out: The folder for the tables and the figure.
    """
    from lalkit.reproduce.comparison import compare_heads, read_runs
    from lalkit.reproduce.comparison_report import write

    comparison = compare_heads(
        read_runs(runs), treebank, split, sentences=sentences, labels=label, probed=probed, rounds=rounds,
        keep=out / "measured",
    )  # fmt: skip
    for path in write(comparison, out, f"Label heads under controls: {treebank} {split}"):
        print(path)


@documented
def prune(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    closes: str = "contexts,output",
    prices: str = "3,30",
    epochs: int = 3,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/gates"),
) -> None:
    """Train parsers on with a gate on every label head and a price for open gates, to see how many heads they need.

    After an interruption the same command continues. A control is trained on without gates.

    Example: lalkit prune paper=runs/paper --treebank sample --epochs 1

    Args:
        runs: Trained runs with the paper's layer (FOLDER or NAME=FOLDER) and folders of sweeps.
        treebank: The treebank to train on and to parse.
        closes: What gates multiply, between commas: contexts (what a head attends to) or output (all of a head).
        prices: Prices of open gates, between commas.
        epochs: How often the training sentences are seen.
        out: The folder for the pruned parsers and the tables.
    """
    from lalkit.reproduce.comparison import read_runs
    from lalkit.reproduce.gates import GatesConfig, study

    choices = ([part.strip() for part in text.split(",")] for text in (closes, prices))
    kinds = [("nothing", "0"), *product(*choices)]
    configs = [override(GatesConfig(), {"closes": kind, "price": price, "epochs": epochs}) for kind, price in kinds]
    for path in study(read_runs(runs), treebank, out, configs, split):
        print(path)


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
    from lalkit.reproduce import corpus_report

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
    from lalkit.reproduce import corpus_report

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
