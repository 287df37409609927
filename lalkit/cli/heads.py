"""`lalkit heads`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import say, set_threads


def heads(
    runs: Annotated[
        list[str],
        typer.Argument(help="trained runs, FOLDER or NAME=FOLDER, and folders of sweeps; the first is compared with"),
    ],
    treebank: Annotated[str, typer.Option(help="to parse under controls")] = "ptb-sample",
    split: Annotated[str, typer.Option(help="train, dev or test")] = "test",
    sentences: Annotated[int, typer.Option(help="of the split, evenly spread; 0: all")] = 0,
    label: Annotated[
        list[str] | None, typer.Option(help="whose head is taken out (repeatable); default: the six most frequent")
    ] = None,
    probed: Annotated[int, typer.Option(help="sentences for the probes")] = 40,
    rounds: Annotated[int, typer.Option(help="permutations of each attention")] = 20,
    threads: Annotated[int | None, typer.Option()] = 1,
    out: Annotated[Path, typer.Option(help="folder of the tables and the figure")] = Path("runs/heads"),
) -> None:
    """Do label heads mean labels? Runs of the paper's layer, of label attention inside the span, of neither: under one set of
    controls, with tests. Another kind of control, such as uniform attention in training, is another run."""
    from lalkit.heads.compare import compare_heads
    from lalkit.heads.page import write
    from lalkit.heads.runs import read_runs

    set_threads(threads)
    found = compare_heads(
        read_runs(runs), treebank, split, sentences=sentences, labels=label, probed=probed, rounds=rounds,
        keep=out / "measured", say=say,
    )  # fmt: skip
    for path in write(found, out, f"Label heads under controls: {treebank} {split}"):
        print(path)
