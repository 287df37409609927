"""Train a shipped parser again by the recipe on its card, with all stages before it; or add a parser's trees to its treebanks.

    python tools/en_recipe.py train en --seed 1                                     runs/en-1, and all runs before it
    python tools/en_recipe.py constituents --treebank ewt --model en --out runs/ewt-silver
    python tools/en_recipe.py films --model en-large --out runs/films

`en` and `en-span` learn from several treebanks, and from constituents that another parser added to EWT ("silver"); `en` also
from the trees of another parser for raw sentences. A run that is there already is not trained again.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import nltk
import torch
import typer

from lalkit import __version__
from lalkit.chart.joint import JointTree
from lalkit.cli.parser_commands import parse
from lalkit.config import PRESETS, override
from lalkit.errors import LalkitError
from lalkit.files import write_json, write_text
from lalkit.network.model import Model, Scored, check_joint
from lalkit.studies.texts import NLTK
from lalkit.studies.texts import load as load_texts
from lalkit.training import checkpoint, named
from lalkit.training.loop import train as train_parser
from lalkit.treebank.brackets import format_tree
from lalkit.treebank.check import trainable
from lalkit.treebank.conllu import format_conllu
from lalkit.treebank.corpora import load, penn_form
from lalkit.treebank.tree import Sentence

STRANGE = re.compile(r"[^\x00-\x7F]|[<>{}_|\\^~=*]|http|www")
FORBIDDEN = 1e6  # more than all labels of a tree score
SILVER = "silver.json"  # in a folder of `constituents` or `films`: which texts these are, and which parser drew trees
logger = logging.getLogger("lalkit")
app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


def with_arcs(model: Model, scored: Scored) -> list[JointTree]:
    """Return the best joint trees of sentences among those that have their arcs.

    The arcs must not cross. Every other arc costs more than labels can gain.
    """
    arcs = torch.full_like(scored.output.arc_scores, -FORBIDDEN)
    for row, sentence in zip(arcs, scored.sentences):
        row[range(len(sentence)), torch.tensor(sentence.heads)] = 0
    even = override(model.config, {"train.lam": 0.5})  # with lam 1 arcs would weigh nothing
    return replace(model, config=even).decode(scored._replace(output=replace(scored.output, arc_scores=arcs)))


def stages(cards: Path) -> dict[str, dict]:
    """Return the recipe of every run that came before a shipped parser, by the folder of the run."""
    facts = [json.loads(card.read_text(encoding="utf-8")) for card in sorted(cards.glob("*/card.json"))]
    return {stage["out"]: stage for card in facts for stage in card.get("stages", ())}


def train_stage(treebank: str, recipe: dict, seed: int, out: str) -> None:
    """Train one run if it does not exist; before it, the run from which it starts."""
    if (Path(out) / "model.json").is_file():
        return
    earlier = stages(named.folders()[0])
    if (start := recipe.get("train.start")) in earlier:
        train_stage(earlier[start]["treebank"], earlier[start]["recipe"], earlier[start]["seed"], start)
    settings = {key: value for key, value in recipe.items() if key != "preset"}
    train_parser(override(PRESETS[recipe["preset"]](), {**settings, "train.seed": seed}), treebank, out, resume=True)


@app.command()
def train(name: str, seed: int = 1) -> None:
    """Train a shipped parser again into runs/NAME-SEED."""
    facts = named.read_card(named.find(name)).facts
    for row in facts.get("silver", ()):
        if not (Path(row["out"]) / SILVER).is_file():
            if stage := stages(named.folders()[0]).get(row["model"]):
                train_stage(stage["treebank"], stage["recipe"], stage["seed"], row["model"])
            make = films if row["treebank"] == "films" else partial(constituents, row["treebank"])
            make(row["model"], Path(row["out"]))
    train_stage(facts.get("trained_on", facts["treebank"]), facts["recipe"], seed, f"runs/{name}-{seed}")


@app.command()
def constituents(
    treebank: Annotated[str, typer.Option()],
    model: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Let a parser add constituents to the train part of a dependency treebank, and keep the arcs. Write a folder to train on.

    The constituents are the best ones of the parser among those that agree with the arcs, found by the exact decoder. Sentences
    with crossing arcs are left out, because they have no joint tree. The dev part keeps its dependencies alone.
    """
    parser = checkpoint.load_model(named.find(model))
    check_joint(parser.config.model.task)
    dev = load(treebank, "dev").sentences
    gold, line = trainable(load(treebank, "train").sentences, 10_000, "dependencies")
    silver: list[Sentence] = [*gold]
    for scored in parser.scores(gold, progress=True):
        for place, p in zip(scored.places, parser.predictions(scored, with_arcs(parser, scored))):
            silver[place] = penn_form(replace(p.sentence, tags=gold[place].tags))
    write_text(out / "train.trees", "".join(f"{format_tree(s.tree)}\n" for s in silver))
    write_text(out / "train.conllu", format_conllu(gold))
    write_text(out / "dev.conllu", format_conllu(dev))
    write_json(out / SILVER, {"treebank": treebank, "model": model, "lalkit": __version__})
    logger.info("%s: %d sentences with silver constituents; %s", out, len(silver), line)


@app.command()
def films(model: Annotated[str, typer.Option()], out: Annotated[Path, typer.Option()]) -> None:
    """Let a parser parse raw sentences of film reviews and plots. Write a folder to train on, with the dev part of EWT.

    They are the lines of NLTK's three corpora of film texts (Pang and Lee, CC BY 4.0) with 4 to 45 words, in ASCII and without
    markup, each once; the first letter and I become capitals. Raises CorpusError for a corpus that is not on this machine.
    """
    raw = "\n".join(getattr(nltk.corpus, name).raw() for name in NLTK if load_texts(name))  # this raises CorpusError
    kept = [s for s in {*map(str.strip, raw.splitlines())} if 4 <= len(s.split()) <= 45 and not STRANGE.search(s)]
    text = re.sub(r"\bi\b(?!\.)", "I", "".join(f"{line}\n" for line in sorted(kept)))
    write_text(out / "films.txt", re.sub(r"^[^a-zA-Z\n]*[a-z]", lambda m: m[0].upper(), text, flags=re.M))
    parse([str(out / "films.txt")], model, to="ptb,conllu", out=out / "train", replace=True)
    (out / "train.ptb").replace(out / "train.trees")
    write_text(out / "dev.conllu", format_conllu(load("ewt", "dev").sentences))
    write_json(out / SILVER, {"treebank": "films", "model": model, "lalkit": __version__, "lines": len(kept)})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        app()
    except LalkitError as error:
        sys.exit(f"en_recipe: {error}")
