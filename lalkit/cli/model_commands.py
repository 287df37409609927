"""`lalkit models`: list and check trained parsers."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from lalkit.cli.options import documented

logger = logging.getLogger(__name__)
app = typer.Typer(help="List and check trained parsers.")


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
    from lalkit.reproduce.cards import verify
    from lalkit.training import named

    same = True
    for name in names or named.names():
        for quantity, stated, measured in verify(name):
            same &= stated == measured
            print(f"{'ok ' if stated == measured else '-- '}{name:15}{quantity:40}{stated!s:>14}{measured!s:>14}")
    raise typer.Exit(0 if same else 1)
