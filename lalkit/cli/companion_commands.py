"""`lalkit transparent` (LSTM classifiers with attention) and `lalkit summarize` (summarizers that copy)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented
from lalkit.config import C, override
from lalkit.errors import ModelError, ParameterError
from lalkit.files import write_text

if TYPE_CHECKING:
    import pandas as pd

    from lalkit.companions.summarizers.documents import Document
    from lalkit.companions.summarizers.summarizer import Summarizer

logger = logging.getLogger(__name__)

ABOUT_CLASSIFIERS = "Train LSTM classifiers with attention, and measure how far their attention explains them."
ABOUT_SUMMARIZERS = "Train summarizers that copy; measure their heads, take them away, and prune them."
classifiers = typer.Typer(no_args_is_help=True, help=ABOUT_CLASSIFIERS)
summarizers = typer.Typer(no_args_is_help=True, help=ABOUT_SUMMARIZERS)

TEXTS = "A data set: babi-1, sentence_polarity, subjectivity ... or a folder of files."
DOCUMENTS = "Documents: news, hf:NAME or a folder of .jsonl files; gum only to measure."
OUT = "The folder of the run. A study repeats nothing that is finished there."

Texts = Annotated[str, typer.Option(help=TEXTS)]
Documents = Annotated[str, typer.Option(help=DOCUMENTS)]
Out = Annotated[Path, typer.Option(parser=options.output_folder, help=OUT)]
Table = Annotated[Path | None, typer.Option(parser=options.output_file, help="A .csv file for the table.")]
Seed = Annotated[int, typer.Option(help="The number that all random choices depend on.")]
Seeds = Annotated[str, typer.Option(help="Seeds of the trainings, between commas.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
Train = Annotated[int, typer.Option(min=0, help="The number of examples for training; 0 means all.")]
Test = Annotated[int, typer.Option(min=0, help="The number of examples of the test part; 0 means all.")]
Epochs = Annotated[int, typer.Option(min=0, help="How often the training examples are seen; 0 means the usual number.")]


def with_options(config: C, epochs: int, set_: list[str] | None, **settings: str | int) -> C:
    """Return the settings of a training: the usual ones, changed by the options of its command."""
    return override(config, settings | ({"epochs": epochs} if epochs else {}) | options.pairs(set_))


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


@classifiers.command("train")
@documented
def train_classifier(
    data: Texts,
    out: Out,
    model: str = "vanilla",
    seed: Seed = 1,
    epochs: Epochs = 0,
    threads: options.Threads = 1,
    resume: Resume = False,
    set_: options.Set = None,
) -> None:
    """Train one classifier, and keep in --out the one that is best on the dev part.

    Example: lalkit transparent train --data babi-1 --model orthogonal --out runs/orthogonal

    Args:
        model: The kind of classifier: vanilla, diversity, orthogonal, mlp or sparsemax.
    """
    from lalkit.companions.classifiers import classifier, classifier_training, text_corpora

    texts = text_corpora.load(data)
    config = with_options(classifier.usual(texts.name), epochs, set_, model=model, seed=seed)
    classifier_training.train(config, texts, out, resume=resume)


@classifiers.command("probe")
@documented
def probe_classifier(run: Path, data: Texts, out: Table = None, test: Test = 0, threads: options.Threads = 1) -> None:
    """Measure a classifier's attention on the test part: where it is, and what other attention would change.

    Example: lalkit transparent probe runs/orthogonal --data babi-1 --test 100

    Args:
        run: The folder of a trained classifier.
    """
    from lalkit.companions.classifiers import classifier_study, classifier_training, examples, text_corpora
    from lalkit.companions.classifiers.faithfulness import measure
    from lalkit.probes.perturbation import summary

    classifier, size = classifier_training.load_classifier(run), classifier_study.Size()
    texts = examples.shorten(text_corpora.load(data), test=test).test
    table = measure(classifier, texts, size.rounds, size.attributed, size.integrated)
    save(table, out)
    print(summary(table).drop(columns=["system", "seed"]).round(3).to_string(index=False))


@classifiers.command("ask")
@documented
def ask_people(first: Path, second: Path, data: Texts, out: Out, texts: int = 20, seed: Seed = 1) -> None:
    """Write a page on which people compare the attention of two classifiers, and the key that tells which is which.

    Example: lalkit transparent ask runs/vanilla runs/diversity --data subjectivity --out runs/people

    Args:
        first: The folder of a trained classifier.
        second: The folder of a classifier of another kind.
        texts: The number of texts on the page.
    """
    from lalkit.companions.classifiers import classifier_training, faithfulness, text_corpora
    from lalkit.draw.companion_figures import preference_page

    models = classifier_training.load_classifier(first), classifier_training.load_classifier(second)
    items, key = faithfulness.blinded(*models, text_corpora.load(data).test, texts, seed)
    write_text(out / "preference.html", preference_page(items))
    save(key, out / "preference_key.csv")


@classifiers.command("answers")
@documented
def count_answers(key: Path, answers: list[Path], out: Table = None) -> None:
    """Count by majority what people answered on the page of `lalkit transparent ask`, and say how far they agree.

    Example: lalkit transparent answers runs/people/preference_key.csv answers-anna.csv answers-ben.csv

    Args:
        key: The file preference_key.csv that was written with the page.
        answers: The files that the page saved, one for each person.
    """
    from lalkit.companions.classifiers.faithfulness import preferred
    from lalkit.companions.classifiers.text_corpora import read_table

    table = preferred([read_table(file) for file in answers], read_table(key))
    save(table, out)
    print(table.round(2).to_string(index=False))


@classifiers.command("study")
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
) -> None:
    """Train and measure every model on all data with every seed, and write OUT/summary.csv and the tables of notebook 17.

    A table is transparent-NAME.csv. After an interruption the same command continues. Example: lalkit transparent study
    --data babi-1 --out runs/transparent

    Args:
        data: Names of data sets or folders, between commas.
        models: Kinds of classifiers, between commas.
    """
    from lalkit.companions.classifiers.classifier_study import Size, study, tables
    from lalkit.probes.perturbation import summary

    numbers, (names, kinds) = between_commas(seeds, data=data, models=models)
    measured = study(names, kinds, numbers, out, Size(train=train, test=test, epochs=epochs))
    save(summary(measured[0], ("data", "system", "seed", "train", "epochs", "measure")), out / "summary.csv", "%.4f")
    for name, table in tables(*measured).items():
        save(table, out / f"transparent-{name}.csv", "%.4f")


@summarizers.command("train")
@documented
def train_summarizer(
    data: Documents,
    out: Out,
    sparse: str = "none",
    seed: Seed = 1,
    epochs: Epochs = 0,
    threads: options.Threads = 1,
    resume: Resume = False,
    set_: options.Set = None,
) -> None:
    """Train a summarizer, and keep in --out the one that is best on the dev part.

    Example: lalkit summarize train --data news --sparse encoder --out runs/sparse

    Args:
        sparse: The heads with sparse attention: none, encoder, but-top, but-copy or all.
    """
    from lalkit.companions.summarizers import documents, summarizer, summarizer_training

    config = with_options(summarizer.SummarizerConfig(), epochs, set_, sparse=sparse, seed=seed)
    summarizer_training.train(config, documents.load(data), out, resume=resume)


@summarizers.command("prune")
@documented
def prune_summarizer(
    run: Path,
    data: Documents,
    out: Out,
    lam: Annotated[float | None, typer.Option("--lambda")] = None,
    seed: Seed = 1,
    epochs: Epochs = 0,
    threads: options.Threads = 1,
    resume: Resume = False,
) -> None:
    """Train on with a gate on every head and a price for open gates, and print which heads are kept.

    Example: lalkit summarize prune runs/soft --data news --lambda 0.3 --out runs/soft-0.3

    Args:
        run: The folder of a trained summarizer.
        lam: The price of an open head; without it there are no gates (the control).
    """
    from lalkit.companions.summarizers import documents, pruning, summarizer_training

    summarizer = summarizer_training.load_summarizer(run)
    config = with_options(pruning.PruneConfig(lam=lam, seed=seed), epochs, None)
    gated = pruning.prune(summarizer, documents.load(data), out, config, resume=resume)
    print(gated.table().to_string(index=False) if lam is not None else "no gates: the control")


@summarizers.command("score")
@documented
def score_summarizer(
    run: Path, data: Documents, out: Table = None, test: Test = 0, show: int = 3, threads: options.Threads = 1
) -> None:
    """Summarize the test part greedily; print ROUGE beside that of the first sentences, and the unknown words that were copied.

    Example: lalkit summarize score runs/soft --data news --test 50

    Args:
        run: The folder of a trained summarizer, pruned or not.
        show: The number of summaries to print.
    """
    import pandas as pd

    from lalkit.companions.summarizers.headlines import lead, score, summarize_all

    model, tested = _to_measure(run, data, test)
    given = {"summarizer": summarize_all(model, tested)}
    given |= {f"first {count}": [lead(document, count) for document in tested] for count in (1, 3)}
    for document, words in list(zip(tested, given["summarizer"]))[:show]:
        print(f"{document.id}: {' '.join(words)}\n  true: {' '.join(document.summary)}")
    tables = {name: score(tested, summaries, model.vocabulary) for name, summaries in given.items()}
    means = [{"summary": name, "documents": len(t), **t.drop(columns="id").mean()} for name, t in tables.items()]
    table = pd.DataFrame(means).drop(columns=["unknown", "copied"])
    save(table, out, "%.4f")
    print(table.round(4).to_string(index=False))
    print(f"unknown words copied: {tables['summarizer']['copied'].sum()} of {tables['summarizer']['unknown'].sum()}")


@summarizers.command("heads")
@documented
def measure_heads(
    run: Path, data: Documents, out: Table = None, test: Test = 0, ablate: bool = False, threads: options.Threads = 1
) -> None:
    """Measure what every head attends to (parts of speech, names, neighbours, few words), or what is lost without it.

    Example: lalkit summarize heads runs/soft --data news --out heads.csv

    Args:
        run: The folder of a trained summarizer, pruned or not.
        ablate: Take the heads away one by one instead, and score the summaries.
    """
    from lalkit.companions.summarizers.attention_heads import ablate_heads, head_table
    from lalkit.companions.summarizers.summarizer_study import greedy

    model, tested = _to_measure(run, data, test)
    table = ablate_heads(model, tested, beam=greedy(tested)) if ablate else head_table(model, tested)
    save(table, out)
    print(table.round(4).to_string(index=False))


@summarizers.command("study")
@documented
def study_summarizers(
    data: Documents = "news",
    out: Annotated[Path | None, options.FOLDER] = None,
    variants: str = "soft,sparse-enc,sparse-tl,sparse-ch,sparse-all,entmax-all",
    seeds: Seeds = "1,2",
    train: Train = 0,
    test: Test = 0,
    epochs: Epochs = 0,
    prune_epochs: int = 0,
    ablated: int = 0,
    gum: int = 0,
    paper: bool = False,
    dry_run: bool = False,
    threads: options.Threads = 1,
    set_: options.Set = None,
) -> None:
    """Train every variant with every seed, prune some at several prices, and write the tables of notebook 18 to --out.

    A table is summarize-NAME.csv. After an interruption the same command continues. Example: lalkit summarize study
    --data news --out runs/summarize

    Args:
        out: The folder of the runs and tables. A study repeats nothing that is finished there.
        variants: Where attention is sparse, between commas.
        prune_epochs: How often the training examples are seen in pruning; 0 means the usual number.
        ablated: The number of test documents on which heads are taken away; 0 means all.
        gum: The number of documents of GUM; 0 means all, -1 means none.
        paper: Give the summarizers the paper's size. --set changes single settings, e.g. d_model=128.
        dry_run: Train nothing; compute a few documents, and estimate the weights, the memory and the time of one training.
    """
    from lalkit.companions.summarizers.documents import load
    from lalkit.companions.summarizers.summarizer import PAPER, SMALL
    from lalkit.companions.summarizers.summarizer_study import Size, shorten, study, tables
    from lalkit.companions.summarizers.summarizer_training import estimate

    numbers, (names,) = between_commas(seeds, variants=variants)
    size = Size(train, 0, test, epochs, prune_epochs, ablated, gum)
    config = with_options(PAPER if paper else SMALL, epochs, set_)
    if dry_run or not out:
        if out or not dry_run:
            remedy = "Give either --out FOLDER or --dry-run."
            raise ParameterError("a study needs --out, and a dry run has none", remedy=remedy)
        print("\n".join(estimate(config, shorten(load(data), size)).lines()))
        print(f"the study   {len(numbers) * len(names)} such trainings, and then pruning and measuring")
        return
    shown = tables(study(data, names, numbers, out, size, config), load(data).test[0])
    for name, table in shown.items():
        save(table, out / f"summarize-{name}.csv", "%.6g")
    print(shown.get("expected", shown["runs"]).round(4).to_string(index=False))


def _to_measure(run: Path, data: str, test: int) -> tuple[Summarizer, Sequence[Document]]:
    """Return a summarizer, or a pruned one with its closed heads cut out, and the documents of the test part."""
    from lalkit.companions.summarizers import documents, pruning, summarizer_training

    try:
        model = pruning.load_gated(run).cut()
    except ModelError:
        model = summarizer_training.load_summarizer(run)
    return model, documents.annotated(documents.load(data).test[: test or None])
