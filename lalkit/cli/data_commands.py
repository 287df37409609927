"""`lalkit data`: corpora are fetched, imported, counted, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import say

app = typer.Typer(no_args_is_help=True, help="Corpora: fetch, import, count, check.")


@app.command("fetch")
def data_fetch(name: str) -> None:
    """Download a corpus from its owners."""
    from lalkit.treebank.fetch import fetch

    print(fetch(name))


@app.command("import")
def data_import(
    name: Annotated[str, typer.Argument(help="ptb, ctb, or ctb-dependencies (its other split)")],
    path: Annotated[Path, typer.Option(help="the folder of your own licensed copy")],
    out: Annotated[Path | None, typer.Option(help="default runs/corpora/NAME, which git ignores")] = None,
    dependencies: Annotated[
        list[Path] | None,
        typer.Option(help="CoNLL-X files for train, dev and test (repeat it three times); default our head rules"),
    ] = None,
    automatic_tags: Annotated[
        bool, typer.Option("--automatic-tags", help="instead of gold tags: 10-way jackknifing, as the paper's data has")
    ] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="leave out what cannot be read, and say so")] = False,
) -> None:
    """Read your copy of the Penn or the Chinese Treebank, by the standard splits, into a folder to train on."""
    from lalkit.treebank.licensed import import_treebank

    folder = out or Path("runs/corpora") / name
    import_treebank(name, path, folder, dependencies=dependencies or [], automatic_tags=automatic_tags, lenient=lenient)
    print(folder)


@app.command("stats")
def data_stats(name: str) -> None:
    """Count a corpus, split by split."""
    from lalkit.treebank.check import stats

    columns = {split: stats(corpus) for split, corpus in _splits(name)}
    print(f"{name:28}" + "".join(f"{split:>10}" for split in columns))
    for row in next(iter(columns.values())):
        print(f"{row:28}" + "".join(f"{column[row]:>10}" for column in columns.values()))


@app.command("check")
def data_check(name: str) -> None:
    """Name every problem of a corpus, and every sentence the joint form cannot represent. Exit code 1 if there is any."""
    from lalkit.treebank.check import check

    clean = True
    for split, corpus in _splits(name):
        report = check(corpus)
        clean &= report.clean
        for error in (*report.problems, *report.not_joint):
            print(f"{split}: {error}")
        print(
            f"{name} {split}: {report.sentences} sentences read, {len(report.problems)} problems, "
            f"{len(report.not_joint)} without a joint form"
        )
    raise typer.Exit(0 if clean else 1)


def _splits(name: str):
    from lalkit.errors import CorpusError
    from lalkit.treebank.corpora import SPLITS, load

    found = 0
    for split in SPLITS:
        try:
            corpus = load(name, split, lenient=True)
        except CorpusError as error:
            if split == "train" or not found:
                raise
            say(f"{split}: {error.problem}")
            continue
        found += 1
        yield split, corpus
