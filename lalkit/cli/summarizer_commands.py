"""`lalkit summarize`: summarizers that copy, and what their heads do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Set, pairs, say, set_threads

app = typer.Typer(
    no_args_is_help=True, help="Summarizers that copy: train them, measure, take away and prune their heads."
)

Data = Annotated[str, typer.Option("--data", help="news, hf:NAME, a folder of .jsonl files; gum, to measure on")]
Out = Annotated[Path, typer.Option(help="folder of the run")]
Run = Annotated[Path, typer.Argument(help="folder of a trained summarizer")]
Threads = Annotated[int, typer.Option()]
Resume = Annotated[bool, typer.Option("--resume", help="go on with the run in --out")]


@app.command()
def train(
    data: Data,
    out: Out,
    sparse: Annotated[str, typer.Option(help="none, encoder, but-top, but-copy, all")] = "none",
    seed: Annotated[int, typer.Option()] = 1,
    epochs: Annotated[int | None, typer.Option()] = None,
    threads: Threads = 1,
    resume: Resume = False,
    set_: Set = None,
) -> None:
    """Train a summarizer; the best on dev is kept in --out."""
    from lalkit.companions.summarizers.documents import load
    from lalkit.companions.summarizers.summarizer import SummarizerConfig
    from lalkit.companions.summarizers.summarizer_training import train as train_
    from lalkit.config import override

    set_threads(threads)
    settings = {
        "sparse": sparse,
        "seed": seed,
        **({} if epochs is None else {"epochs": epochs}),
        **dict(pairs(set_ or [])),
    }
    train_(override(SummarizerConfig(), settings), load(data), out, resume=resume, say=say)


@app.command()
def prune(
    run: Run,
    data: Data,
    out: Out,
    lam: Annotated[
        float | None, typer.Option("--lambda", help="the price of an open head; left out: no gates, the control")
    ] = None,
    seed: Annotated[int, typer.Option()] = 1,
    epochs: Annotated[int, typer.Option()] = 6,
    threads: Threads = 1,
    resume: Resume = False,
) -> None:
    """Train on with a gate on every head and a price on open ones; prints which heads are kept."""
    from lalkit.companions.summarizers.documents import load
    from lalkit.companions.summarizers.pruning import PruneConfig
    from lalkit.companions.summarizers.pruning import prune as prune_
    from lalkit.companions.summarizers.summarizer_training import load_summarizer

    set_threads(threads)
    model = prune_(
        load_summarizer(run), load(data), out, PruneConfig(lam=lam, epochs=epochs, seed=seed), resume=resume, say=say
    )
    print(model.table().to_string(index=False) if lam is not None else "no gates: the control")


@app.command()
def score(
    run: Run,
    data: Data,
    test: Annotated[int, typer.Option(help="documents of the test part; 0: all")] = 0,
    show: Annotated[int, typer.Option(help="summaries to print")] = 3,
    threads: Threads = 1,
) -> None:
    """Summarize the test part (greedily): ROUGE, exact matches, unknown words that were copied."""
    from lalkit.companions.summarizers.documents import load
    from lalkit.companions.summarizers.headlines import score as score_
    from lalkit.companions.summarizers.headlines import summarize

    set_threads(threads)
    model = _model(run)
    documents = load(data).test[: test or None]
    found = [
        words
        for start in range(0, len(documents), 100)
        for words in summarize(model, model.vocabulary.collate(documents[start : start + 100], model.config))
    ]
    for document, words in list(zip(documents, found))[:show]:
        print(f"{document.id}: {' '.join(words)}\n  true: {' '.join(document.summary)}")
    table = score_(documents, found, model.vocabulary)
    for name in ("rouge1", "rouge2", "rougeL", "exact"):
        print(f"{name:8}{table[name].mean():8.4f}")
    print(f"unknown words copied: {table['copied'].sum()} of {table['unknown'].sum()}")


@app.command()
def heads(
    run: Run,
    data: Data,
    out: Annotated[Path | None, typer.Option(help="a .csv")] = None,
    test: Annotated[int, typer.Option(help="documents of the test part; 0: all")] = 0,
    ablate: Annotated[bool, typer.Option("--ablate", help="take heads away one by one instead, and score")] = False,
    threads: Threads = 1,
) -> None:
    """What every head looks at: parts of speech, names, neighbours, how few words; or what is lost without it."""
    from lalkit.companions.summarizers.attention_heads import ablate_heads, head_table
    from lalkit.companions.summarizers.documents import load
    from lalkit.files import write_text

    set_threads(threads)
    model, documents = _model(run), load(data).test[: test or None]
    table = ablate_heads(model, documents, say=say) if ablate else head_table(model, documents)
    if out:
        write_text(out, table.to_csv(index=False))
    print(table.round(4).to_string(index=False))


@app.command()
def study(
    data: Data,
    out: Annotated[Path, typer.Option(help="folder of the runs; what is finished there is not repeated")],
    variants: Annotated[
        str, typer.Option(help="between commas")
    ] = "soft,sparse-enc,sparse-tl,sparse-ch,sparse-all,entmax-all",
    seeds: Annotated[str, typer.Option(help="between commas")] = "1,2",
    train_: Annotated[int, typer.Option("--train", help="documents to train on; 0: all")] = 0,
    test: Annotated[int, typer.Option(help="documents to measure; 0: all")] = 0,
    epochs: Annotated[int, typer.Option(help="0: the usual number")] = 0,
    prune_epochs: Annotated[int, typer.Option(help="0: the usual number")] = 0,
    ablated: Annotated[int, typer.Option(help="test documents on which heads are taken away; 0: all")] = 0,
    gum: Annotated[int, typer.Option(help="documents of GUM; 0: all, -1: none")] = 0,
    threads: Threads = 1,
) -> None:
    """Train every variant with every seed, prune some at several prices, measure all; writes OUT/runs.csv and
    OUT/expected.csv. The same command goes on."""
    from lalkit.companions.summarizers.summarizer_study import Size
    from lalkit.companions.summarizers.summarizer_study import study as study_
    from lalkit.companions.summarizers.summarizer_tables import expected, runs
    from lalkit.errors import ParameterError
    from lalkit.files import write_text

    set_threads(threads)
    names, numbers = ([part.strip() for part in text.split(",") if part.strip()] for text in (variants, seeds))
    if not names or not numbers or not all(number.isdigit() for number in numbers):
        raise ParameterError("--variants and --seeds are lists between commas", remedy="E.g. --seeds 1,2")
    size = Size(train_, 0, test, epochs, prune_epochs, ablated, gum)
    found = study_(data, names, [int(number) for number in numbers], out, size, say=say)
    table, lines = runs(found), expected(found)
    write_text(out / "runs.csv", table.to_csv(index=False, float_format="%.4f"))
    write_text(out / "expected.csv", lines.to_csv(index=False, float_format="%.6g"))
    print(lines.round(4).to_string(index=False))
    say(f"{len(table)} runs in {out / 'runs.csv'}")


def _model(run: Path):
    """A summarizer, or a pruned one with its closed heads cut out."""
    from lalkit.companions.summarizers.pruning import load_gated
    from lalkit.companions.summarizers.summarizer_training import load_summarizer
    from lalkit.errors import ModelError

    try:
        return load_summarizer(run)
    except ModelError as error:
        try:
            return load_gated(run).cut()
        except ModelError:
            raise error from None
