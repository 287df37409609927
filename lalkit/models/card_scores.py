"""Measure what a card states about a run: its scores in 16 bits, its recipe, and how it compares with its controls."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pandas as pd
import torch

from lalkit.api import Parser
from lalkit.config import PRESETS, Config, flatten, to_dict
from lalkit.evaluation.provenance import splits
from lalkit.evaluation.scores import Evaluation, evaluate, out_of_reach, universal_scores
from lalkit.evaluation.statistics import score_test
from lalkit.models.card_page import COLUMNS
from lalkit.training.checkpoint import read_content
from lalkit.treebank.mixture import parts_of
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

TESTED = ("f1", "uas")  # against a control
FIRST = 100  # sentences of a part that a quick check parses
# Which part of a sentence's id is the genre: weblog-blogspot.com-1, GUM_news_iodine-1.
GENRES = {"ewt": 0, "gum": 1}
Pair = tuple[Sequence[Sentence], Sequence[Sentence]]  # gold, parsed
Parses = dict[str, dict[str, Pair]]


@dataclass(frozen=True)
class Scored:
    """A run. row: what a card states about it; recipe: see `settings`; tables: split -> table of its sentences.

    parses: see `parse_parts`.
    """

    row: dict
    recipe: dict
    tables: dict[str, pd.DataFrame]
    parses: Parses = field(default_factory=dict)


def measure(run: str | Path, treebank: str) -> Scored:
    """Score the parser of a run in 16 bits, as it would be shipped, and read what its files state about its training."""
    content, state = read_content(run, "model"), read_content(run, "resume")["state"]
    parser = halved(Parser.load(run))
    config = parser.config
    parses = parse_parts(parser, treebank)
    scores, tables = score(parses)
    for split, values in scores.items():
        logger.info("%s: %s %s", run, split, values)
    weights = sum(p.numel() for p in parser.network.parameters() if p.requires_grad)
    row = {
        "seed": config.train.seed, "epochs": state["epoch"], "best_epoch": content["info"]["epoch"],
        "hours": round(state["seconds"] / 3600, 2), "cores": config.train.workers, "weights": weights,
        "dev": scores.get("dev"), "test": scores.get("test"),
    }  # fmt: skip
    return Scored(row, settings(config), tables, parses)


def parse_parts(parser: Parser, treebank: str, only: Sequence[str] = ("dev", "test")) -> Parses:
    """Return gold and parsed sentences of dev and, if there is one, test: split -> the treebanks of a mixture -> both.

    Raises CorpusError if a treebank is not on this machine.
    """
    named = [part.name if part.task == "joint" else f"{part.name}:{part.task}" for part in parts_of(treebank)]
    golds = {name: splits(name, names=only) for name in named}
    return {
        split: {name: (gold[split], reparse(parser, gold[split])) for name, gold in golds.items()}
        for split in only if all(split in gold for gold in golds.values())
    }  # fmt: skip


def together(parses: Mapping[str, Pair]) -> Pair:
    """Return gold and parsed sentences of all treebanks of a mixture, one after the other."""
    golds, parsed = zip(*parses.values())
    return [*chain(*golds)], [*chain(*parsed)]


def score(parses: Parses) -> tuple[dict[str, dict], dict[str, pd.DataFrame]]:
    """Return (split -> scores, split -> table of sentences)."""
    evaluations = {split: evaluate(*together(parts)) for split, parts in parses.items()}
    scores = {split: rounded(evaluation) for split, evaluation in evaluations.items()}
    return scores, {split: evaluation.table() for split, evaluation in evaluations.items()}


def rows_of(treebank: str, split: str, gold: Sequence[Sentence], parsed: Sequence[Sentence]) -> list[dict]:
    """Return what a card states about one part of one treebank: a row for all, for its genres, and for its first sentences.

    A row has the scores of `COLUMNS` and, if the arcs are those of Universal Dependencies, of `UNIVERSAL`.
    """
    groups = {"all": [*range(len(gold))]}
    place = GENRES.get(treebank)
    for i, sentence in enumerate(gold if place is not None else ()):
        groups.setdefault(re.split("[-_]", sentence.id)[place], []).append(i)
    if len(gold) > FIRST:
        groups[f"first {FIRST}"] = groups["all"][:FIRST]
    rows = []
    for group, members in groups.items():
        sides = [gold[i] for i in members], [parsed[i] for i in members]
        row: dict = {"treebank": treebank, "split": split, "of": group, "sentences": len(members)}
        row |= rounded(evaluate(*sides))
        for (_, scores), suffix in zip(universal_scores(*sides).iterrows(), ("_all", "")):
            row |= {f"ud_{name}{suffix}": round(scores[name], 2) for name in ("uas", "las", "upos") if name in scores}
            row["out_of_reach"] = out_of_reach(sides[0])[1]
        rows.append(row)
    return rows


def controls_of(runs: Sequence[str | Path], treebank: str, ours: Sequence[Scored], recipe: dict) -> list[dict]:
    """Measure runs of other recipes, and return what a card states about each recipe."""
    groups: dict[str, list[Scored]] = {}
    for run in runs:
        scored = measure(run, treebank)
        groups.setdefault(json.dumps(scored.recipe), []).append(scored)
    return [control_of(group, ours, recipe) for group in groups.values()]


def control_of(group: Sequence[Scored], ours: Sequence[Scored], recipe: dict) -> dict:
    """Return what a card states about runs of another recipe.

    Say how their recipe differs, give their scores, and test whether ours are better by more than chance. The test is a
    randomisation over sentences; it adds up the counts of the seeds that both recipes have. If their model lacks a part, such
    as the label attention, the settings of this part are not named.
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
    """Return how a config differs from the nearest preset: {'preset': 'minilm', 'train.epochs': 8}.

    The seed and the number of processes that share a batch are left out: runs that differ in these have the same recipe.
    """
    ours = flatten(to_dict(config))
    del ours["train.seed"], ours["train.workers"]
    presets = {name: flatten(to_dict(make())) for name, make in PRESETS.items()}
    differing = [
        {"preset": name} | {key: value for key, value in ours.items() if key not in theirs or theirs[key] != value}
        for name, theirs in presets.items()
    ]
    return min(differing, key=len)


def rounded(evaluation: Evaluation) -> dict[str, float]:
    summary = evaluation.summary()
    return {name: None if summary[name] is None else round(summary[name], 2) for name in COLUMNS}


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
