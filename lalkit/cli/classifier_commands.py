"""`lalkit transparent`: the LSTM classifiers whose attention the probes ask about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Set, pairs, say, set_threads

app = typer.Typer(no_args_is_help=True, help="LSTM classifiers with attention: train them, ask how far to believe it.")

Data = Annotated[str, typer.Option("--data", help="babi-1, sentence_polarity, subjectivity, ..., or a folder of files")]


@app.command()
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="folder of the run")],
    model: Annotated[str, typer.Option(help="vanilla, diversity, orthogonal, mlp")] = "vanilla",
    seed: Annotated[int, typer.Option()] = 1,
    epochs: Annotated[int | None, typer.Option()] = None,
    threads: Annotated[int, typer.Option()] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    set_: Set = None,
) -> None:
    """Train one classifier; the best on dev is kept in --out."""
    from lalkit.companions.classifiers import text_corpora as corpora
    from lalkit.companions.classifiers.classifier import usual
    from lalkit.companions.classifiers.classifier_training import train as train_
    from lalkit.config import override

    set_threads(threads)
    settings = {
        "model": model,
        "seed": seed,
        **({} if epochs is None else {"epochs": epochs}),
        **dict(pairs(set_ or [])),
    }
    known = corpora.load(data)
    train_(override(usual(known.name), settings), known, out, resume=resume, say=say)


@app.command()
def probe(
    run: Annotated[Path, typer.Argument(help="folder of a trained classifier")],
    data: Data,
    out: Annotated[Path | None, typer.Option(help="a .csv for the long table: a row for each text and measure")] = None,
    test: Annotated[int, typer.Option(help="texts of the test part; 0: all")] = 0,
    threads: Annotated[int, typer.Option()] = 1,
) -> None:
    """Measure a classifier's attention on the test part: what it looks at, and what follows from it."""
    from lalkit.companions.classifiers import text_corpora as corpora
    from lalkit.companions.classifiers.classifier_study import Size
    from lalkit.companions.classifiers.classifier_training import load_classifier
    from lalkit.companions.classifiers.examples import shorten
    from lalkit.companions.classifiers.faithfulness import measure
    from lalkit.files import write_text
    from lalkit.probes.tables import summary

    set_threads(threads)
    classifier, size = load_classifier(run), Size()
    examples = shorten(corpora.load(data), test=test).test
    table = measure(classifier, examples, size.rounds, size.attributed, size.integrated)
    if out:
        write_text(out, table.to_csv(index=False))
    print(summary(table).drop(columns=["system", "seed"]).round(3).to_string(index=False))


@app.command()
def study(
    data: Annotated[str, typer.Option("--data", help="names or folders, between commas")],
    out: Annotated[Path, typer.Option(help="folder of the runs; what is finished there is not repeated")],
    models: Annotated[str, typer.Option(help="between commas")] = "vanilla,diversity,orthogonal",
    seeds: Annotated[str, typer.Option(help="between commas")] = "1,2,3",
    train_: Annotated[int, typer.Option("--train", help="examples to train on; 0: all")] = 0,
    test: Annotated[int, typer.Option(help="examples to measure; 0: all")] = 0,
    epochs: Annotated[int, typer.Option(help="0: the usual number")] = 0,
    threads: Annotated[int, typer.Option()] = 1,
) -> None:
    """Train and measure every model on all data with every seed; writes OUT/summary.csv. The same command goes on."""
    from lalkit.companions.classifiers.classifier_study import Size
    from lalkit.companions.classifiers.classifier_study import study as study_
    from lalkit.errors import ParameterError
    from lalkit.files import write_text
    from lalkit.probes.tables import summary

    set_threads(threads)
    names, kinds, numbers = (
        [part.strip() for part in text.split(",") if part.strip()] for text in (data, models, seeds)
    )
    if not names or not kinds or not numbers or not all(number.isdigit() for number in numbers):
        raise ParameterError("--data, --models and --seeds are lists between commas", remedy="E.g. --seeds 1,2,3")
    size = replace(Size(), train=train_, test=test, epochs=epochs)
    table, tags = study_(names, kinds, [int(number) for number in numbers], out, size, say=say)
    found = summary(table, ("data", "system", "seed", "measure"))
    write_text(out / "summary.csv", found.to_csv(index=False, float_format="%.4f"))
    write_text(out / "tags.csv", tags.to_csv(index=False, float_format="%.4f"))
    say(f"{len(found)} rows in {out / 'summary.csv'}")
