"""What a card says, done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from lalkit.api import Parser
from lalkit.cards.scored import bare, rounded
from lalkit.errors import CorpusError
from lalkit.evaluate import evaluate
from lalkit.models import folder, read_card
from lalkit.treebank.corpora import load

PARSES = 200  # sentences of our own, at most, whose parses a card has the checksum of


def verify(name: str, say: Callable[[str], None] = print) -> list[tuple[str, object, object]]:
    """(what, as the card says, as it is here) of every score whose treebank is on this machine, and of the parses."""
    card = read_card(folder() / name)
    parser = Parser.load(card.folder)
    best = next(row for row in card.facts["seeds"] if row["seed"] == card.facts["seed"])
    parses = card.facts["parses"]
    rows = [("parses", parses["sha256"][:12], checksum(parser, parses["treebank"])[:12])]
    for split in ("dev", "test"):
        if best.get(split):
            try:
                gold = load(card.facts["treebank"], split).sentences
            except CorpusError as error:
                say(f"{split}: not checked: {error}")
                continue
            found = rounded(evaluate(gold, [r.sentence for r in parser.parse_all(bare(gold))]))
            rows += [(f"{split} {key}", best[split][key], found[key]) for key in best[split]]
    return rows


def checksum(parser: Parser, treebank: str = "sample") -> str:
    """SHA-256 of the trees, arcs, arc labels and tags that the parser gives the first sentences of our own treebank."""
    sentences = bare([s for split in ("train", "dev", "test") for s in load(treebank, split).sentences][:PARSES])
    found = hashlib.sha256()
    for result in parser.parse_all(sentences):
        record = result.to_dict()
        found.update(json.dumps([record[key] for key in ("words", "tags", "tree", "heads", "arc_labels")]).encode())
    return found.hexdigest()
