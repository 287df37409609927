"""Measure what a card states about a run: its scores in 16 bits, its recipe, and how it compares with its controls."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from lalkit.api import Parser
from lalkit.config import PRESETS, Config, flatten, to_dict
from lalkit.evaluation.provenance import splits
from lalkit.evaluation.scores import Evaluation, evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.models.card_page import COLUMNS
from lalkit.training.checkpoint import read_content
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

TESTED = ("f1", "uas")  # against a control


@dataclass(frozen=True)
class Scored:
    """A run. row: what a card states about it; recipe: see `settings`; tables: split -> table of its sentences."""

    row: dict
    recipe: dict
    tables: dict[str, pd.DataFrame]


def measure(run: str | Path, treebank: str) -> Scored:
    """Score the parser of a run in 16 bits, as it would be shipped, and read what its files state about its training."""
    content, state = read_content(run, "model"), read_content(run, "resume")["state"]
    parser = halved(Parser.load(run))
    config = parser.config
    scores, tables = score(parser, treebank)
    for split, values in scores.items():
        logger.info("%s: %s %s", run, split, values)
    weights = sum(p.numel() for p in parser.network.parameters() if p.requires_grad)
    row = {
        "seed": config.train.seed, "epochs": state["epoch"], "best_epoch": content["info"]["epoch"],
        "hours": round(state["seconds"] / 3600, 2), "cores": config.train.workers, "weights": weights,
        "dev": scores.get("dev"), "test": scores.get("test"),
    }  # fmt: skip
    return Scored(row, settings(config), tables)


def score(parser: Parser, treebank: str) -> tuple[dict[str, dict], dict[str, pd.DataFrame]]:
    """Return (split -> scores, split -> table of sentences) for dev and, if the treebank has one, test.

    Raises CorpusError if the treebank is not on this machine.
    """
    parts = splits(treebank, names=("dev", "test"))
    evaluations = {split: evaluate(gold, reparse(parser, gold)) for split, gold in parts.items()}
    scores = {split: rounded(evaluation) for split, evaluation in evaluations.items()}
    return scores, {split: evaluation.table() for split, evaluation in evaluations.items()}


def controls_of(runs: Sequence[str | Path], treebank: str, ours: Sequence[Scored], recipe: dict) -> list[dict]:
    """Measure runs of other recipes, and return what a card states about each recipe."""
    groups: dict[str, list[Scored]] = {}
    for run in runs:
        scored = measure(run, treebank)
        groups.setdefault(json.dumps(scored.recipe), []).append(scored)
    return [control_of(group, ours, recipe) for group in groups.values()]


def control_of(group: Sequence[Scored], ours: Sequence[Scored], recipe: dict) -> dict:
    """Return what a card states about runs of another recipe.

    That is how their recipe differs, their scores, and whether ours are better by more than chance: a randomisation test
    over sentences, with the counts added up over the seeds that both recipes have. Of a part that they do not have, no
    settings are named.
    """
    theirs = group[0].recipe
    differs = dict.fromkeys(recipe.keys() - theirs.keys(), "as in the preset")
    differs |= {name: value for name, value in theirs.items() if name not in recipe or recipe[name] != value}
    without = tuple(f"{name}." for name, value in theirs.items() if value is None)
    pairs = [(a.tables, b.tables) for a in ours for b in group if a.row["seed"] == b.row["seed"]]
    tests = {}
    for split in group[0].tables if pairs else ():
        first, second = ([tables[split] for tables in side] for side in zip(*pairs))
        results = {score: score_test(first, second, score) for score in TESTED}
        tests[split] = {s: {"difference": round(r.difference, 2), "p": round(r.p, 4)} for s, r in results.items()}
    return {
        "differs": {name: value for name, value in sorted(differs.items()) if not name.startswith(without)},
        "seeds": [run.row for run in group], "paired": len(pairs), "tests": tests,
    }  # fmt: skip


def settings(config: Config) -> dict:
    """Return how a config differs from the nearest preset, except for its seed: {'preset': 'minilm', 'train.epochs': 8}."""
    ours = flatten(to_dict(config))
    del ours["train.seed"]
    presets = {name: flatten(to_dict(make())) for name, make in PRESETS.items()}
    differing = [
        {"preset": name} | {key: value for key, value in ours.items() if key not in theirs or theirs[key] != value}
        for name, theirs in presets.items()
    ]
    return min(differing, key=len)


def rounded(evaluation: Evaluation) -> dict[str, float]:
    summary = evaluation.summary()
    return {name: round(summary[name], 2) for name in COLUMNS}


def reparse(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Parse sentences from their words alone."""
    return [result.sentence for result in parser.parse_all(words_only(sentences))]


def words_only(sentences: Sequence[Sentence]) -> list[Sentence]:
    return [Sentence(s.words, id=s.id) for s in sentences]


def halved(parser: Parser) -> Parser:
    """Return the parser as it is after it was saved in 16 bits and loaded again."""
    with torch.no_grad():
        for p in parser.network.parameters():
            if p.requires_grad:
                p.copy_(p.half())
    return parser
