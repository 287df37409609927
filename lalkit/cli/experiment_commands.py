"""`lalkit sweep`, `report`, `bench` and `study`: experiments. A study trains, measures and writes its tables."""

from __future__ import annotations

import logging
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from lalkit.cli import options
from lalkit.cli.options import command, group
from lalkit.config import override
from lalkit.errors import ParameterError
from lalkit.files import check_new, locked_folder

logger = logging.getLogger(__name__)
reports = group("report", "Write reports: of sweeps, of label heads, of errors.", no_args_is_help=True)
studies = group(
    "study", "Study the label heads of parsers; every study writes its tables to --out.", no_args_is_help=True
)

MODELS = "Trained parsers: names, folders or NAME=FOLDER, such as one for each seed."
Models = Annotated[list[str], typer.Argument(help=MODELS)]
Sentences = Annotated[
    int, typer.Option(min=0, help="The number of sentences of the split, evenly spread; 0 means all.")
]


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
        check: Train nothing; say where its table in figures/ has other settings or numbers of weights than it has now.
        out: The folder of the sweep; by default runs/sweeps/NAME or NAME-PROFILE.
    """
    from lalkit.reproduce import sweep as sweeps

    if check:
        print("\n".join(lines := sweeps.check(file, profile)) or "as the file gives it now")
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
    sweeps: list[Path], out: Annotated[Path, options.FOLDER] = Path("runs/report"), replace: options.Replace = False
) -> None:
    """Write tables, tests, the verdict on each claim and a figure of finished sweeps.

    Example: lalkit report sweeps runs/sweeps/ablation-1-sample

    Args:
        sweeps: Folders of sweeps, e.g. runs/sweeps/ablation-1-sample, or tables of reports, e.g. figures/sweeps/silver.csv.
        out: The folder of the report.
    """
    from lalkit.reproduce.report import report

    print(*report(sweeps, out, replace), sep="\n")


@command(reports, "heads")
def report_heads(
    models: Models,
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Sentences = 0,
    label: list[str] | None = None,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/report-heads"),
    replace: options.Replace = False,
) -> None:
    """Report which label heads lead which labels, and what they attend to: tables and a text.

    Example: lalkit report heads en-news --treebank sample

    Args:
        treebank: The treebank to parse.
        label: Report this label; repeat it for more labels. By default the frequent ones.
        out: The folder of the report.
    """
    from lalkit.studies import corpus_report

    check_new(out, "report.txt", replace)
    paths = corpus_report.report_heads(models, treebank, split, out, sentences=sentences, labels=label or ())
    print(*paths, sep="\n")


@command(reports, "errors")
def report_errors(
    models: Models,
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Sentences = 0,
    trace: str | None = None,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/report-errors"),
    replace: options.Replace = False,
) -> None:
    """Report where parsers are wrong, by class of error, label, length and label head: tables and a text.

    Example: lalkit report errors en-news --treebank sample --trace "Fed Ready to Inject Big Funds"

    Args:
        treebank: The treebank to parse; it needs both layers.
        trace: Also trace this sentence to its label heads: words and punctuation marks with spaces between them.
        out: The folder of the report.
    """
    from lalkit.studies import corpus_report

    check_new(out, "report.txt", replace)
    paths = corpus_report.report_errors(models, treebank, split, out, sentences=sentences, typed=trace or "")
    print(*paths, sep="\n")


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
        routines: layer, spans, decode, probabilities, look, parse, start, train; by default all.
        device: Where to compute: cpu or cuda.
        repeats: The number of rounds of each comparison.
        preset: The settings of the network in parse and train.
    """
    from lalkit import bench as comparisons

    rows = comparisons.bench(routines or [], comparisons.Settings(device, repeats, preset))
    if not options.given(rows, json_):
        print(comparisons.table(rows))


def between_commas(text: str) -> list[str]:
    """Split a list between commas. Raises ParameterError for an empty one."""
    if parts := [part.strip() for part in text.split(",") if part.strip()]:
        return parts
    raise ParameterError(f"{text!r} names nothing", remedy="Give a list between commas.")


@command(studies, "heads")
def study_heads(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    sentences: Sentences = 0,
    probed: Annotated[int, typer.Option(min=0)] = 40,
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/heads"),
    replace: options.Replace = False,
) -> None:
    """Test whether label heads mean labels: compare trained parsers under the same controls, with tests.

    A run may have the paper's layer, label attention inside the span, or neither. Another kind of control, for example
    uniform attention in training, is another run.

    Example: lalkit study heads paper=runs/paper span=runs/span --treebank sample

    Args:
        runs: Trained runs (FOLDER or NAME=FOLDER) and folders of sweeps; the others are compared with the first.
        treebank: The treebank to parse under controls.
        probed: The number of sentences for the probes; 0 means the controls alone.
        rounds: The number of random permutations of each attention.
        out: The folder for the tables and the figure.
    """
    from lalkit.studies.label_heads import compare_heads, read_runs, write

    sizes: dict[str, Any] = {"sentences": sentences, "probed": probed, "rounds": rounds}
    with locked_folder(out):
        check_new(out, "table.csv", replace)
        comparison = compare_heads(read_runs(runs), treebank, split, keep=out / "measured", **sizes)
        print(*write(comparison, out, f"Label heads under controls: {treebank} {split}"), sep="\n")


@command(studies, "gates")
def study_gates(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    closes: str = "contexts,output",
    prices: str = "3,30",
    epochs: int = 3,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/gates"),
    replace: options.Replace = False,
) -> None:
    """Continue training with a gate on every label head and a price for open gates, to see how many heads a parser needs.

    After an interruption the same command continues. A control continues without gates.

    Example: lalkit study gates paper=runs/paper --treebank sample --epochs 1

    Args:
        runs: Trained runs with the paper's layer (FOLDER or NAME=FOLDER) and folders of sweeps.
        treebank: The treebank to train on and to parse.
        closes: What gates multiply, between commas: contexts (what a head attends to) or output (all of a head).
        prices: Prices of open gates, between commas.
        epochs: How often the training sentences are seen.
        out: The folder for the pruned parsers and the tables.
    """
    from lalkit.studies.gates import GatesConfig, study
    from lalkit.studies.label_heads import read_runs

    kinds = [("nothing", "0"), *product(between_commas(closes), between_commas(prices))]
    configs = [override(GatesConfig(), {"closes": kind, "price": price, "epochs": epochs}) for kind, price in kinds]
    with locked_folder(out):
        check_new(out, "gates.csv", replace)
        print(*study(read_runs(runs), treebank, out, configs, split), sep="\n")
