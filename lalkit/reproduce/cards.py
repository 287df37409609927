"""Compute the numbers on the card of a shipped parser again: its parses of our own treebank, and its scores."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from lalkit.api import Parser
from lalkit.errors import CorpusError
from lalkit.evaluation.scores import Evaluation, evaluate, out_of_reach, universal_scores
from lalkit.training.named import find, read_card
from lalkit.treebank.corpora import SPLITS, load
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

COLUMNS = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
PARSES = 200  # how many sentences of our own treebank, at most, go into the checksum of a card
GENRES = {"ewt": 0, "gum": 1}  # the part of a sentence's id that is its genre: weblog-blogspot.com-1, GUM_news_iodine-1


def verify(name: str) -> Iterator[tuple[str, object, object]]:
    """Yield (quantity, value on the card, value here) for the parses and for every score of a shipped parser.

    If a treebank is not on this machine, its scores are not compared.
    """
    card = read_card(find(name))
    facts, parser = card.facts, Parser.load(card.folder)
    here = checksum(parser, facts["parses"]["treebank"])
    yield "parses", facts["parses"]["sha256"][:12], here[:12]
    best = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
    rows = facts.get("parts") or [
        {"treebank": facts["treebank"], "split": split, "of": "all", **best[split]}
        for split in SPLITS
        if best.get(split)
    ]
    for (treebank, split), stated in groupby(rows, key=lambda row: (row["treebank"], row["split"])):
        try:
            gold = load(treebank, split).sentences
        except CorpusError as error:
            logger.info("scores are not checked: %s", error)
            continue
        measured = {row["of"]: row for row in score_rows(treebank, split, gold, parse_again(parser, gold))}
        for row in stated:
            for key, value in row.items():
                if key not in ("treebank", "split", "of"):
                    yield f"{treebank} {split}, {row['of']}: {key}", value, measured[row["of"]][key]


def checksum(parser: Parser, treebank: str = "sample") -> str:
    """Return the SHA-256 of trees, arcs, arc labels and tags of the first sentences of our own treebank, as parsed here."""
    digest = hashlib.sha256()
    for result in parser.parse_all(words_only(all_sentences(treebank)[:PARSES])):
        record = result.to_dict()
        digest.update(json.dumps([record[key] for key in ("words", "tags", "tree", "heads", "arc_labels")]).encode())
    return digest.hexdigest()


def score_rows(treebank: str, split: str, gold: Sequence[Sentence], parsed: Sequence[Sentence]) -> list[dict]:
    """Return the rows of a card about one part of a treebank: a row for all sentences, and one for each genre.

    A row has the scores of `COLUMNS` and, if the arcs are those of Universal Dependencies, the scores by their conventions.
    """
    groups = {"all": [*range(len(gold))]}
    place = GENRES.get(treebank)
    for i, sentence in enumerate(gold if place is not None else ()):
        groups.setdefault(re.split("[-_]", sentence.id)[place], []).append(i)
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


def rounded(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the scores of a card, with two decimals."""
    summary = evaluation.summary()
    return {name: None if summary[name] is None else round(summary[name], 2) for name in COLUMNS}


def parse_again(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Parse sentences from their words alone."""
    return [result.sentence for result in parser.parse_all(words_only(sentences))]


def words_only(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return sentences without tags and trees."""
    return [Sentence(s.words, id=s.id) for s in sentences]


def all_sentences(treebank: str) -> list[Sentence]:
    """Return the sentences of all parts of a treebank."""
    return [sentence for split in SPLITS for sentence in load(treebank, split).sentences]
