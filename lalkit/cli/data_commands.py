"""`lalkit data`: fetch, import, count and check corpora."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli import options
from lalkit.cli.options import documented

logger = logging.getLogger(__name__)
app = typer.Typer(no_args_is_help=True, help="Fetch, import, count and check corpora.")
Name = Annotated[str, typer.Argument(help=options.TREEBANK)]


@app.command("fetch")
@documented
def data_fetch(name: str) -> None:
    """Download a corpus from its owners.

    Example: lalkit data fetch ptb-sample

    Args:
        name: The corpus: ptb-sample, craft or sinica.
    """
    from lalkit.treebank.fetch import fetch

    print(fetch(name))


@app.command("import")
@documented
def data_import(
    name: str,
    path: Annotated[Path, typer.Option()],
    out: Annotated[Path | None, options.FOLDER] = None,
    dependencies: list[Path] | None = None,
    automatic_tags: bool = False,
    lenient: bool = False,
) -> None:
    """Convert your licensed copy of the Penn or the Chinese Treebank, by the standard splits, into a folder to train on.

    Example: lalkit data import ptb --path ~/corpora/treebank_3

    Args:
        name: ptb, ctb, or ctb-dependencies (the split that is usual for dependencies).
        path: The folder of your copy.
        out: The folder to write; by default runs/corpora/NAME, which git ignores.
        dependencies: CoNLL-X files for train, dev and test (repeat it three times); by default our head rules are used.
        automatic_tags: Replace gold tags by those of a tagger (10-way jackknifing), as in the paper's data.
        lenient: Leave out what cannot be read, and report it.
    """
    from lalkit.treebank.licensed import import_treebank

    folder = out or Path("runs/corpora") / name
    import_treebank(name, path, folder, dependencies=dependencies or [], automatic_tags=automatic_tags, lenient=lenient)
    print(folder)


@app.command("constituents")
@documented
def data_constituents(
    treebank: options.Treebank,
    model: options.Model,
    out: Annotated[Path, options.FOLDER],
    threads: options.Threads = None,
) -> None:
    """Let a parser add constituents to the train part of a dependency treebank, and keep the arcs. Write a folder to train on.

    Example: lalkit data constituents --treebank ewt --model en --out runs/ewt-silver

    The constituents are "silver": the best ones of the parser among those that agree with the arcs, found by the exact decoder.
    Sentences with crossing arcs are left out, because they have no joint tree. The dev part keeps its dependencies alone.

    Args:
        out: The folder to write.
    """
    from lalkit import __version__
    from lalkit.chart.machine import progress
    from lalkit.files import write_json, write_text
    from lalkit.network.confidence import check_joint
    from lalkit.network.predict import predict, with_arcs
    from lalkit.training import checkpoint, named
    from lalkit.treebank import brackets, check, conllu, corpora
    from lalkit.treebank.mixture import SILVER
    from lalkit.treebank.silver import penn_form

    parser = checkpoint.load_model(named.find(model))
    check_joint(parser.config.model.task)
    dev = corpora.load(treebank, "dev").sentences
    gold, line = check.trainable(corpora.load(treebank, "train").sentences, 10_000, "dependencies")
    with progress(total=len(gold), desc="parsing", unit=" sentences") as bar:
        predictions = predict(
            parser.network, parser.collator, gold, lam=parser.config.train.lam, tick=bar.update, decode=with_arcs(gold),
            threads=threads or None,
        )  # fmt: skip
    silver = [penn_form(replace(p.sentence, tags=g.tags)) for p, g in zip(predictions, gold)]
    write_text(out / "train.trees", "".join(f"{brackets.format_tree(s.tree)}\n" for s in silver))
    write_text(out / "train.conllu", conllu.format_conllu(gold))
    write_text(out / "dev.conllu", conllu.format_conllu(dev))
    write_json(out / SILVER, {"treebank": treebank, "model": model, "lalkit": __version__})
    logger.info("%s: %d sentences with silver constituents; %s", out, len(silver), line)


@app.command("stats")
def data_stats(name: Name) -> None:
    """Count sentences, words and trees of a corpus, split by split.

    Example: lalkit data stats sample
    """
    import pandas as pd

    from lalkit.treebank.check import stats

    table = pd.DataFrame({split: pd.Series(stats(corpus), dtype=object) for split, corpus in _splits(name)})
    print(table.rename_axis(columns=name).to_string())


@app.command("check")
def data_check(name: Name) -> None:
    """Name every problem of a corpus, and every sentence that has no joint tree. The exit code is 1 if there is a problem.

    Example: lalkit data check sample
    """
    from lalkit.treebank.check import check

    clean = True
    for split, corpus in _splits(name):
        report = check(corpus)
        clean &= report.clean
        for error in (*report.problems, *report.not_joint):
            print(f"{split}: {error}")
        counts = f"{report.sentences} sentences read, {len(report.problems)} problems"
        print(f"{name} {split}: {counts}, {len(report.not_joint)} without a joint form")
    raise typer.Exit(0 if clean else 1)


def _splits(name: str) -> Iterator[tuple]:
    """Yield (split, corpus) for every split. Only the training part must be there."""
    from lalkit.errors import CorpusError
    from lalkit.treebank.corpora import SPLITS, load

    for split in SPLITS:
        try:
            yield split, load(name, split, lenient=True)
        except CorpusError as error:
            if split == "train":
                raise
            logger.info("%s: %s", split, error.problem)
