"""`lalkit models`: list, check and ship trained parsers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from lalkit.cli import options
from lalkit.cli.options import documented

logger = logging.getLogger(__name__)
app = typer.Typer(help="List, check and ship trained parsers.")


@app.callback(invoke_without_command=True)
def models_list(context: typer.Context) -> None:
    """List the shipped parsers with their scores.

    Example: lalkit models
    """
    if context.invoked_subcommand:
        return
    from lalkit.training.named import ALIASES, choices, places, read_card

    if not (here := places()):
        return logger.info(choices())
    print(f"{'name':15}{'F1':>7}{'UAS':>7}{'LAS':>7}  {'on':18}{'MB':>6}  {'encoder':10}licence of the weights")
    for name, place in here.items():
        card = read_card(place)
        facts = card.facts
        best = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
        split = "test" if best.get("test") else "dev"
        scores = "".join(f"{best[split][key]:7.2f}" for key in ("f1", "uas", "las"))
        on = f"{'a mixture' if '+' in facts['treebank'] else facts['treebank']} {split}"
        print(f"{name:15}{scores}  {on:18}{card.size / 1e6:6.1f}  {facts['encoder'] or 'none':10}{facts['licence']}")
    for alias, name in ALIASES.items():
        if name in here:
            print(f"{alias:15}the same as {name}")


@app.command("check")
@documented
def models_check(names: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Parse again what the cards report, for every treebank that is here. The exit code is 1 if anything differs.

    Example: lalkit models check en-news

    Args:
        names: The parsers to check; by default all.
    """
    from lalkit.models.ship import verify
    from lalkit.training import named

    same = True
    for name in names or named.names():
        for quantity, stated, measured in verify(name):
            same &= stated == measured
            print(f"{'ok ' if stated == measured else '-- '}{name:15}{quantity:20}{stated!s:>14}{measured!s:>14}")
    raise typer.Exit(0 if same else 1)


@app.command("calibrate")
@documented
def models_calibrate(
    model: options.Parser,
    treebank: options.Treebank,
    split: options.Split = "dev",
    sentences: Annotated[int | None, typer.Option(min=1)] = None,
    threads: options.Threads = None,
) -> None:
    """Fit the temperature that makes a parser's probabilities fit a treebank, and keep it in the parser's folder.

    Example: lalkit models calibrate runs/first --treebank sample

    Args:
        sentences: Use only this many sentences, from the start of the part; by default all.
    """
    from lalkit.models.temperature import calibrate
    from lalkit.training.named import find

    facts = calibrate(find(model), treebank, split, sentences)
    before, after = facts["log_likelihood"].values()
    print(f"temperature {facts['temperature']}; mean log p of {facts['sentences']} gold trees: {before} -> {after}")


@app.command("reliability")
@documented
def models_reliability(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    out: Annotated[Path, typer.Option(parser=options.png_file)] = Path("figures/calibration.png"),
    sentences: Annotated[int | None, typer.Option(min=1)] = None,
    threads: options.Threads = None,
) -> None:
    """Measure whether the probabilities of calibrated parsers are right, on sentences that their temperature was not fitted on.

    Example: lalkit models reliability en-news --out runs/reliability.png

    Args:
        names: The parsers; by default all shipped ones.
        out: The figure. The table that it draws is written beside it (CSV).
        sentences: Use only this many sentences, from the start of each part; by default all.
    """
    import pandas as pd

    from lalkit.draw.figures import calibration_figure
    from lalkit.draw.pages import png
    from lalkit.files import write_bytes, write_text
    from lalkit.models.temperature import measure
    from lalkit.training import named

    table = pd.concat([measure(name, sentences) for name in names or named.names()], ignore_index=True)
    errors = table[table["curve"] == "ece"].pivot(index=["parser", "kind"], columns="fitted", values="y")
    print(errors.rename(columns={False: "ECE before", True: "after"}).round(2).to_string())
    write_text(out.with_suffix(".csv"), table.to_csv(index=False, float_format="%.5g"))
    write_bytes(out, png(calibration_figure(table)))


@app.command("ship")
@documented
def models_ship(
    name: Annotated[str, typer.Option()],
    runs: Annotated[list[Path] | None, typer.Argument()] = None,
    control: list[Path] | None = None,
    seed: int | None = None,
    licence: str | None = None,
    language: str | None = None,
    add: bool = False,
    precision: Annotated[Literal["bf16"] | None, typer.Option()] = None,
    threads: options.Threads = None,
) -> None:
    """Put the parser of one run into data/models in 16 bits, with a card made from the files of the runs, and score it again.

    Example: lalkit models ship runs/craft-1 runs/craft-2 --name en-craft

    Args:
        name: The name of the parser, e.g. en-craft.
        runs: Runs that differ in their seed.
        control: A run of another kind to compare with; repeat it for more.
        seed: Ship the run with this seed; by default the one that is best on dev.
        licence: The licence of the weights; known for the named treebanks and their mixtures.
        language: The language, en or zh; by default that of the treebank.
        add: Add these runs to the card of a shipped parser, and leave the parser as it is.
        precision: Add the scores of a shipped parser in this precision to its card, and nothing else.
    """
    from lalkit.models import ship

    if precision:
        print(ship.add_precision(name, precision))
    elif add:
        print(ship.add(runs or [], name, controls=control or []))
    else:
        print(ship.ship(runs or [], name, seed=seed, controls=control or [], licence=licence, language=language))
