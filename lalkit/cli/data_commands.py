"""`lalkit data`: fetch, import, count and check corpora."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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
    from lalkit.treebank.corpora import fetch

    print(fetch(name))


@app.command("import")
@documented
def data_import(
    name: str,
    path: Annotated[Path, typer.Option()],
    out: Annotated[Path | None, options.FOLDER] = None,
    dependencies: list[Path] | None = None,
    lenient: bool = False,
) -> None:
    """Convert your licensed copy of the Penn or the Chinese Treebank, by the standard splits, into a folder to train on.

    Example: lalkit data import ptb --path ~/corpora/treebank_3

    Args:
        name: ptb, ctb, or ctb-dependencies (the split that is usual for dependencies).
        path: The folder of your copy.
        out: The folder to write; by default runs/corpora/NAME, which git ignores.
        dependencies: CoNLL-X files for train, dev and test (repeat it three times); by default our head rules are used.
        lenient: Leave out what cannot be read, and report it.
    """
    from lalkit.treebank.licensed import import_treebank

    folder = out or Path("runs/corpora") / name
    import_treebank(name, path, folder, dependencies=dependencies or [], lenient=lenient)
    print(folder)


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
        errors = check(corpus)
        clean &= not errors
        for error in errors:
            print(f"{split}: {error}")
        problems = len(corpus.problems)
        counts = f"{len(corpus)} sentences read, {problems} problems, {len(errors) - problems} without a joint form"
        print(f"{name} {split}: {counts}")
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
