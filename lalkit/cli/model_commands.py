"""`lalkit models`: the parsers that are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lalkit.cli.options import say, set_threads

app = typer.Typer(help="The parsers that are shipped: list, check, ship.")


@app.callback(invoke_without_command=True)
def models_list(context: typer.Context) -> None:
    """The parsers that are shipped."""
    if context.invoked_subcommand:
        return
    from lalkit.training.named import ALIASES, folder, names, read_card

    print(f"{'name':15}{'F1':>7}{'UAS':>7}{'LAS':>7}  {'on':18}{'MB':>6}  {'encoder':10}licence of the weights")
    for name in names():
        card = read_card(folder() / name)
        best = next(row for row in card.facts["seeds"] if row["seed"] == card.facts["seed"])
        split = "test" if best.get("test") else "dev"
        scores = "".join(f"{best[split][key]:7.2f}" for key in ("f1", "uas", "las"))
        place = f"{card.facts['treebank']} {split}"
        print(
            f"{name:15}{scores}  {place:18}{card.size / 1e6:6.1f}  {card.facts['encoder'] or 'none':10}{card.facts['licence']}"
        )
    for alias, name in ALIASES.items():
        if name in names():
            print(f"{alias:15}the same as {name}")


@app.command("check")
def models_check(names: Annotated[list[str] | None, typer.Argument(help="default: all")] = None) -> None:
    """Parse again what the cards report on, as far as the treebanks are here. Exit code 1 if anything differs."""
    from lalkit.models.ship import verify
    from lalkit.training import named as shipped

    same = True
    for name in names or shipped.names():
        for what, stated, found in verify(name, say):
            same &= stated == found
            print(f"{'ok ' if stated == found else '-- '}{name:15}{what:20}{stated!s:>14}{found!s:>14}")
    raise typer.Exit(0 if same else 1)


@app.command("ship")
def models_ship(
    name: Annotated[str, typer.Option(help="what it is called, e.g. en-craft")],
    runs: Annotated[list[Path] | None, typer.Argument(help="runs that differ in their seed")] = None,
    control: Annotated[
        list[Path] | None, typer.Option(help="a run of another kind to compare with (repeatable)")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="ship this run, whatever the others score; default: the best on dev")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="of the weights; known for craft, ptb-sample and sample")] = None,
    language: Annotated[str | None, typer.Option(help="default: that of the treebank, en or zh")] = None,
    add: Annotated[
        bool, typer.Option("--add", help="add these runs to the card of a shipped parser, which stays what it is")
    ] = False,
    threads: Annotated[int | None, typer.Option()] = None,
) -> None:
    """Put one run's parser into data/models in 16 bits, with a card made from the runs' files and scored again."""
    from lalkit.models import ship as cards

    set_threads(threads)
    if add:
        print(cards.add(runs or [], name, controls=control or [], say=say))
        return
    print(cards.ship(runs or [], name, seed=seed, controls=control or [], licence=licence, language=language, say=say))
