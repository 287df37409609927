"""What a card says of a run: its scores in 16 bits, how its config differs from a preset, how it compares with controls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
import torch

from lalkit.api import Parser
from lalkit.config import PRESETS, Config
from lalkit.errors import CorpusError
from lalkit.evaluation.scores import Evaluation, evaluate
from lalkit.evaluation.statistics import f1_test
from lalkit.training.checkpoint import read_content
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

SCORES = ("f1", "exact", "uas", "las", "tag_accuracy")
TESTED = {"f1": ("matched", "gold", "predicted"), "uas": ("arcs_right", "arcs", "arcs")}  # against a control


@dataclass(frozen=True)
class Scored:
    """A run: what a card says of it, how its config differs from a preset, and a table of sentences for each split."""

    row: dict
    recipe: dict
    tables: dict[str, pd.DataFrame]


def measure(run: str | Path, treebank: str, say: Callable[[str], None]) -> Scored:
    """What is known of a run, and what its parser in 16 bits scores."""
    content, state = read_content(run, "model"), read_content(run, "resume")["state"]
    parser = halved(Parser.load(run))
    config = parser.config
    scores, tables = tables_of(parser, treebank)
    for split, found in scores.items():
        say(f"{run}: {split} {found}")
    row = {
        "seed": config.train.seed,
        "epochs": state["epoch"],
        "best_epoch": content["info"]["epoch"],
        "hours": round(state["seconds"] / 3600, 2),
        "cores": config.train.workers,
        "weights": sum(p.numel() for p in parser.network.parameters() if p.requires_grad),
        "dev": scores.get("dev"),
        "test": scores.get("test"),
    }
    return Scored(row, settings(config), tables)


def tables_of(parser: Parser, treebank: str) -> tuple[dict[str, dict], dict[str, pd.DataFrame]]:
    """split -> scores, split -> table of sentences; of dev and test."""
    scores, tables = {}, {}
    for split, gold in splits(treebank):
        if split != "train":
            result = evaluate(gold, [r.sentence for r in parser.parse_all(bare(gold))])
            scores[split], tables[split] = rounded(result), result.table()
    return scores, tables


def groups(scored: Sequence[Scored]) -> list[list[Scored]]:
    """Runs of one recipe together."""
    found: dict[str, list[Scored]] = {}
    for one in scored:
        found.setdefault(json.dumps(one.recipe), []).append(one)
    return list(found.values())


def control_of(group: Sequence[Scored], ours: Sequence[Scored], recipe: dict) -> dict:
    """Runs of another recipe: how it differs (of a part that it does not have, no settings), their scores, and whether ours are
    better by more than chance: a randomisation test over sentences, counts added up over the seeds that both have."""
    theirs = group[0].recipe
    ours_only = dict.fromkeys(recipe.keys() - theirs.keys(), "as in the preset")
    differs = ours_only | {key: value for key, value in theirs.items() if key not in recipe or recipe[key] != value}
    without = tuple(f"{key}." for key, value in theirs.items() if value is None)
    differs = {key: value for key, value in sorted(differs.items()) if not key.startswith(without)}
    pairs = [(a, b) for a in ours for b in group if a.row["seed"] == b.row["seed"]]
    tests = {}
    for split in group[0].tables if pairs else ():
        sides = [[pair[side].tables[split] for pair in pairs] for side in (0, 1)]
        tests[split] = {}
        for score, columns in TESTED.items():
            first, second = (sum(table[list(columns)].to_numpy(float) for table in tables) for tables in sides)
            found = f1_test(first, second)
            tests[split][score] = {"difference": round(found.difference, 2), "p": round(found.p, 4)}
    return {"differs": differs, "seeds": [one.row for one in group], "paired": len(pairs), "tests": tests}


def settings(config: Config) -> dict:
    """How a config differs from the nearest preset, its seed apart: {'preset': 'minilm', 'train.epochs': 8}."""
    ours = _flat(asdict(config))
    found = []
    for name, make in PRESETS.items():
        theirs = _flat(asdict(make()))
        differs = {k: v for k, v in ours.items() if k != "train.seed" and (k not in theirs or theirs[k] != v)}
        found.append({"preset": name, **differs})
    return min(found, key=len)


def _flat(values: dict, path: str = "") -> dict:
    found = {}
    for key, value in values.items():
        found |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": value}
    return found


def rounded(result: Evaluation) -> dict[str, float]:
    summary = result.summary()
    return {key: round(summary[key], 2) for key in SCORES}


def bare(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Their words alone."""
    return [Sentence(s.words, id=s.id) for s in sentences]


def halved(parser: Parser) -> Parser:
    """The parser as it is after it was saved in 16 bits and loaded again."""
    with torch.no_grad():
        for p in parser.network.parameters():
            if p.requires_grad:
                p.copy_(p.half())
    return parser


def splits(treebank: str):
    for split in ("train", "dev", "test"):
        try:
            yield split, load(treebank, split).sentences
        except CorpusError:
            continue
