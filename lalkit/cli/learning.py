"""`lalkit train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import Set, Treebank, pairs, say, set_threads
from lalkit.errors import ParameterError


def train(
    treebank: Treebank,
    out: Annotated[Path | None, typer.Option(help="folder of the run")] = None,
    preset: Annotated[
        str, typer.Option(help="tiny, minilm, minilm-span, chinese, paper-english, paper-chinese")
    ] = "minilm",
    task: Annotated[str | None, typer.Option(help="joint, or one layer alone: dependencies, constituents")] = None,
    seed: Annotated[int | None, typer.Option()] = None,
    start: Annotated[str | None, typer.Option(help="name or folder of a trained parser to begin with")] = None,
    epochs: Annotated[int | None, typer.Option()] = None,
    max_minutes: Annotated[float | None, typer.Option(help="plan the schedule to end in this time")] = None,
    workers: Annotated[
        int | None, typer.Option(help="processes of one core each; default one per core, at most 4 (from scratch: 1)")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="of the process, with one worker; default all cores")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="say how many weights, how much memory and time it would take; train nothing"),
    ] = False,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="in a dry run: an encoder of the preset's shape, not downloaded")
    ] = False,
    set_: Set = None,
) -> None:
    """Train a parser; the best on dev is kept in --out."""
    from lalkit.config import preset as preset_
    from lalkit.parallel import usual_size
    from lalkit.settings import override
    from lalkit.training import train as train_

    if (out is None) != dry_run:
        raise ParameterError("a run needs a folder, --out; a dry run leaves nothing behind, and has none")
    if random_weights and not dry_run:
        raise ParameterError("--random-weights are for a --dry-run: nothing would come of training on them")
    settings = dict(pairs(set_ or []))
    for name, value in (("seed", seed), ("start", start), ("epochs", epochs), ("max_minutes", max_minutes)):
        if value is not None:
            settings[f"train.{name}"] = value
    if task is not None:
        settings["model.task"] = task
    chosen = override(preset_(preset), settings)
    if "train.workers" not in settings:
        chosen = override(chosen, {"train.workers": workers or (1 if threads else usual_size(chosen))})
    set_threads(threads)
    if dry_run:
        from lalkit.estimate import estimate

        print("\n".join(estimate(chosen, treebank, random_weights=random_weights, say=say).lines(chosen)))
        return
    train_(chosen, treebank, out, resume=resume, say=say)
