"""`lalkit study`: studies of attention in parsers, classifiers and summarizers. Each trains, measures and writes its tables."""

from __future__ import annotations

import logging
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.config import override
from lalkit.errors import ParameterError
from lalkit.files import write_text

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

ABOUT = "Study attention in parsers, LSTM classifiers and summarizers; every study writes its tables to --out."
app = typer.Typer(no_args_is_help=True, help=ABOUT)

OUT = "The folder of runs and tables. After an interruption the same command continues."
Out = Annotated[Path, typer.Option(parser=options.output_folder, help=OUT)]
Seeds = Annotated[str, typer.Option(help="Seeds of the trainings, between commas.")]
Train = Annotated[int, typer.Option(min=0, help="The number of examples for training; 0 means all.")]
Test = Annotated[int, typer.Option(min=0, help="The number of examples of the test part; 0 means all.")]
Epochs = Annotated[int, typer.Option(min=0, help="The number of training epochs; 0 means the usual number.")]


def between_commas(seeds: str, **lists: str) -> tuple[list[int], list[list[str]]]:
    """Split lists between commas. Raises ParameterError for an empty list, or a seed that is not a number."""
    numbers, *names = ([part.strip() for part in text.split(",") if part.strip()] for text in (seeds, *lists.values()))
    if not all([numbers, *names]) or not all(number.isdecimal() for number in numbers):
        options_ = " and ".join(f"--{name}" for name in (*lists, "seeds"))
        raise ParameterError(f"{options_} are lists between commas", remedy="E.g. --seeds 1,2,3")
    return [int(number) for number in numbers], names


def save(table: pd.DataFrame, file: Path | None, numbers: str | None = None) -> None:
    """Write a table as a .csv file, if there is a name for it. numbers: the format of its numbers."""
    if file:
        write_text(file, table.to_csv(index=False, float_format=numbers))
        logger.info("%d rows in %s", len(table), file)


@app.command("transparent")
@documented
def study_classifiers(
    data: Annotated[str, typer.Option()],
    out: Out,
    models: str = "vanilla,diversity,orthogonal",
    seeds: Seeds = "1,2,3",
    train: Train = 0,
    test: Test = 0,
    epochs: Epochs = 0,
    threads: options.Threads = 1,
    set_: options.Set = None,
) -> None:
    """Train LSTM classifiers, and measure how far their attention explains them (Mohankumar et al. 2020).

    Example: lalkit study transparent --data babi-1 --out runs/transparent

    Args:
        data: Between commas: babi-1, babi-2, babi-3, entailment, paraphrase, sentence_polarity, subjectivity, movie_reviews, or
            folders with train, dev and test as .csv, .tsv or .jsonl files.
        models: Kinds of classifiers, between commas: vanilla, diversity, orthogonal, mlp, sparsemax.
    """
    from lalkit.studies.classifiers import quantiles, runs, study

    numbers, (names, kinds) = between_commas(seeds, data=data, models=models)
    settings = ({"epochs": str(epochs)} if epochs else {}) | options.pairs(set_)
    measures, tags = study(names, kinds, numbers, out, train=train, test=test, settings=settings)
    save(runs(measures), out / "transparent.csv", "%.4f")
    save(quantiles(measures), out / "transparent-quantiles.csv", "%.4f")
    save(tags, out / "transparent-tags.csv", "%.4f")


@app.command("summarize")
@documented
def study_summarizers(
    out: Out,
    data: str = "news",
    variants: str = "soft,sparse-enc,sparse-tl,sparse-ch,sparse-all,entmax-all",
    seeds: Seeds = "1,2,3",
    train: Train = 0,
    test: Test = 0,
    epochs: Epochs = 0,
    prune_epochs: int = 0,
    ablated: int = 0,
    gum: int = 0,
    paper: bool = False,
    threads: options.Threads = 1,
    set_: options.Set = None,
) -> None:
    """Train summarizers that copy, measure their heads, take them away, and prune them (Baan et al. 2019).

    Example: lalkit study summarize --variants soft --seeds 1 --out runs/summarize

    Args:
        data: news, hf:NAME, or a folder of .jsonl files with article and highlights.
        variants: Where attention is sparse, between commas.
        prune_epochs: The number of epochs of pruning; 0 means the usual number.
        ablated: The number of test documents on which heads are taken away; 0 means all.
        gum: The number of documents of GUM; 0 means all, -1 means none.
        paper: Give the summarizers the paper's size. --set changes single settings, e.g. d_model=128.
    """
    from lalkit.studies.summarizer_heads import seeds_apart, study
    from lalkit.studies.summarizers import PAPER, SMALL

    numbers, (names,) = between_commas(seeds, variants=variants)
    settings = ({"epochs": str(epochs)} if epochs else {}) | options.pairs(set_)
    tables = study(
        data, names, numbers, out, train=train, test=test, prune_epochs=prune_epochs, ablated=ablated, gum=gum,
        settings=settings, config=PAPER if paper else SMALL,
    )  # fmt: skip
    tables["seeds-apart"] = seeds_apart(tables.pop("documents"))
    for name, table in tables.items():
        save(table, out / f"summarize-{name}.csv", "%.6g")


@app.command("systems")
@documented
def study_systems(
    out: Out,
    parsers: str = "en-news,en-news-span,en-news-glass,en-craft-glass",
    models: str = "vanilla,diversity,orthogonal,sparsemax",
    variants: str = "soft,sparse-tl",
    seeds: Seeds = "1,2,3",
    data: str = "subjectivity",
    train: Train = 0,
    epochs: Epochs = 0,
    texts: int = 40,
    rounds: int = 20,
    threads: options.Threads = 1,
) -> None:
    """Apply the same probes to parsers, classifiers and summarizers.

    Example: lalkit study systems --out runs/systems

    Args:
        parsers: Trained parsers, between commas; NAME=FOLDER for several seeds of one kind.
        models: Kinds of classifiers, between commas.
        variants: Variants of summarizers, between commas.
        data: A data set of the classifiers.
        texts: The number of test texts of classifiers and summarizers.
        rounds: The number of permutations.
    """
    from lalkit.studies.systems import study

    numbers, (names, kinds, where) = between_commas(seeds, parsers=parsers, models=models, variants=variants)
    options_ = {"data": data, "train": train, "epochs": epochs, "texts": texts, "rounds": rounds}
    for name, table in study(names, kinds, where, numbers, out, **options_).items():
        save(table, out / f"{name}.csv", "%.4f")


@app.command("heads")
@documented
def study_heads(
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

    Example: lalkit study heads paper=runs/paper span=runs/span --treebank sample

    Args:
        runs: Trained runs (FOLDER or NAME=FOLDER) and folders of sweeps; the others are compared with the first.
        treebank: The treebank to parse under controls.
        sentences: The number of sentences of the split, evenly spread; 0 means all.
        label: Remove the head of this label; repeat it for more labels. By default the six most frequent ones.
        probed: The number of sentences for the probes.
        rounds: The number of random permutations of each attention.
        out: The folder for the tables and the figure.
    """
    from lalkit.studies.label_heads import compare_heads, read_runs, write

    comparison = compare_heads(
        read_runs(runs), treebank, split, sentences=sentences, labels=label, probed=probed, rounds=rounds,
        keep=out / "measured",
    )  # fmt: skip
    for path in write(comparison, out, f"Label heads under controls: {treebank} {split}"):
        print(path)


@app.command("gates")
@documented
def study_gates(
    runs: list[str],
    treebank: str = "ptb-sample",
    split: options.Split = "test",
    closes: str = "contexts,output",
    prices: str = "3,30",
    epochs: int = 3,
    threads: options.Threads = 1,
    out: Annotated[Path, options.FOLDER] = Path("runs/gates"),
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

    choices = ([part.strip() for part in text.split(",")] for text in (closes, prices))
    kinds = [("nothing", "0"), *product(*choices)]
    configs = [override(GatesConfig(), {"closes": kind, "price": price, "epochs": epochs}) for kind, price in kinds]
    for path in study(read_runs(runs), treebank, out, configs, split):
        print(path)
