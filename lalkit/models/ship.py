"""Runs -> a folder under data/models: the best run's parser in 16 bits, and its card, from the runs' own files.

What a card says, done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from lalkit import __version__
from lalkit.api import Parser
from lalkit.errors import CorpusError, ModelError
from lalkit.evaluation.scores import Evaluation, by_label, by_length, evaluate
from lalkit.files import write_json, write_text
from lalkit.interpret.contributions import contributions
from lalkit.interpret.tables import profile
from lalkit.models.card_page import page
from lalkit.models.card_scores import Scored, bare, control_of, groups, halved, measure, rounded, splits, tables_of
from lalkit.training.checkpoint import read_content
from lalkit.training.named import folder, read_card
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

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


OWN = {"en": "sample", "zh": "sample-zh"}  # our own treebanks, on which every parser of a language may be shown
EXAMPLES = 3
# What a parser trained on these may be used for, and what they are.
LICENCES = {
    "craft": "CC BY 3.0",
    "ptb-sample": "non-commercial use only (weights learned from the Penn Treebank sample, LDC)",
    "sample": "CC BY 4.0",
    "sample-zh": "CC BY 4.0",
    "sinica": "CC BY-NC-SA 2.5 (weights and word list learned from the Sinica Treebank sample, CKIP, Academia Sinica)",
}


def ship(
    runs: Sequence[str | Path],
    name: str,
    *,
    seed: int | None = None,
    controls: Sequence[str | Path] = (),
    licence: str | None = None,
    language: str | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Choose among runs that differ in their seed, save the parser in 16 bits, score every run's parser as it would be
    shipped, and write card.json and README.md beside it.

    seed: which run's parser; None: the one with the highest F1 + LAS on dev. controls: runs of another kind to compare with,
    described by how their config differs. Raises ModelError where the runs do not belong together or have no such seed, or
    there is no licence for what they were trained on.
    """
    if not runs:
        raise ModelError("there is no run to ship", where=name, remedy="Give its folder, such as runs/en-craft-1.")
    if seed is not None and seed not in (
        found := [read_content(run, "model")["config"]["train"]["seed"] for run in runs]
    ):
        raise ModelError(f"there is no run of seed {seed}", where=name, remedy=f"The seeds are {found}.")
    treebank = _one("treebank", [read_content(run, "model")["info"]["treebank"] for run in runs])
    licence = licence or LICENCES.get(treebank)
    language = language or ("zh" if treebank in ("sinica", "sample-zh") else "en")
    if not licence:
        raise ModelError(f"no licence is known for {treebank}", where=name, remedy="Name one: --licence.")
    task = _one("task", [read_content(run, "model")["config"]["model"].get("task", "joint") for run in runs])
    if task != "joint":
        raise ModelError(f"cards are for joint parsers, and these give {task} alone", where=name)
    target, own = folder() / name, OWN.get(language, "sample")
    scored = [measure(run, treebank, say) for run in runs]
    recipe = _one("recipe", [found.recipe for found in scored])
    others = [measure(run, treebank, say) for run in controls]
    seeds = [found.row for found in scored]
    best = max(
        [row for row in seeds if seed in (None, row["seed"])], key=lambda row: row["dev"]["f1"] + row["dev"]["las"]
    )
    parser = halved(Parser.load(runs[seeds.index(best)]))
    parser.info.update(name=name, seed=best["seed"])
    parser.save(target, half=True)
    inside = parser.config.model.span_attention
    facts = {
        "name": name, "licence": licence, "language": language, "treebank": treebank, "lalkit": __version__,
        "encoder": parser.config.model.encoder.pretrained, "label_heads": _heads(parser),
        "inside": inside.boundary if inside else None, "recipe": recipe,
        "seed": best["seed"], "seeds": seeds,
        "chosen": "before" if seed is not None else "on dev",
        "controls": [control_of(group, scored, recipe) for group in groups(others)],
        "corpus": {split: len(part) for split, part in splits(treebank)}, **_weaknesses(parser, treebank, own),
        "parses": {"treebank": own, "sentences": PARSES, "sha256": checksum(parser, own)},
    }  # fmt: skip
    if parser.config.model.label_attention:
        looks = parser.look(bare(load(treebank, "dev").sentences))
        write_json(target / "profile.json", profile(contributions(looks), "exact", f"{treebank} dev"))
    write_json(target / "card.json", facts)
    write_text(target / "README.md", page(facts))
    return target


def add(
    runs: Sequence[str | Path], name: str, *, controls: Sequence[str | Path] = (), say: Callable[[str], None] = print
) -> Path:
    """Adds runs of other seeds, and controls, to the card of a parser that is shipped; the parser stays what it is.

    For where its own run is no more. A control is compared over the seeds it shares with the runs given and with the
    parser itself. Raises ModelError where a run is of another recipe or treebank, or the card has its seed or control.
    """
    card = read_card(folder() / name)
    facts = dict(card.facts)
    for run in (*runs, *controls):
        _one("treebank", [facts["treebank"], read_content(run, "model")["info"]["treebank"]])
    scored = [measure(run, facts["treebank"], say) for run in runs]
    for one in scored:
        _one("recipe", [facts["recipe"], one.recipe])
        if one.row["seed"] in [row["seed"] for row in facts["seeds"]]:
            raise ModelError(f"its card has seed {one.row['seed']} already", where=name, remedy="Leave that run out.")
    own = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
    shipped = Scored(own, facts["recipe"], tables_of(Parser.load(card.folder), facts["treebank"])[1])
    others = [measure(run, facts["treebank"], say) for run in controls]
    found = [control_of(group, [shipped, *scored], facts["recipe"]) for group in groups(others)]
    known = [control["differs"] for control in facts["controls"]]
    if again := [control["differs"] for control in found if control["differs"] in known]:
        raise ModelError(f"its card has this control already: {again[0]}", where=name, remedy="Leave these runs out.")
    facts["seeds"] = sorted(facts["seeds"] + [one.row for one in scored], key=lambda row: row["seed"])
    facts["controls"] = facts["controls"] + found
    write_json(card.folder / "card.json", facts)
    write_text(card.folder / "README.md", page(facts))
    return card.folder


def _weaknesses(parser: Parser, treebank: str, own: str) -> dict:
    """Scores on dev by length and by label; and what goes worst in sentences of our own that may be shown.

    Where our own sentences are annotated in another way (their tags, or arc labels, are not the parser's), there is nothing to
    agree on, and no score.
    """
    gold = load(treebank, "dev").sentences
    found = [r.sentence for r in parser.parse_all(bare(gold))]
    ours = [s for split in ("train", "dev", "test") for s in load(own, split).sentences]
    guesses = [r.sentence for r in parser.parse_all(bare(ours))]
    on_ours: Evaluation = evaluate(ours, guesses)
    table = on_ours.table()
    worst = table[(table.length >= 8) & (table.length <= 14)].sort_values("f1", kind="stable").index[:EXAMPLES]
    records, on_sample = {"orient": "records"}, rounded(on_ours)
    if not set(parser.vocab.arc_labels) & {label for s in ours for label in s.arc_labels}:
        on_sample["las"] = None
    tags = {tag for s in ours for tag in s.tags}
    if 2 * len(tags & set(parser.vocab.tags)) < len(tags):
        on_sample.update(f1=None, exact=None, tag_accuracy=None)
    return {
        "by_length": by_length(evaluate(gold, found)).round(2).to_dict(**records),
        "by_label": by_label(gold, found, least=30).round(2).head(12).to_dict(**records),
        "own": own,
        "sample": on_sample,
        "examples": [
            {"words": " ".join(ours[i].words), "gold": _line(ours[i]), "found": _line(guesses[i])} for i in worst
        ],
    }


def _line(sentence: Sentence) -> str:
    from lalkit.treebank.brackets import format_tree

    return format_tree(sentence.tree)


def _heads(parser: Parser) -> int:
    """Of the paper's layer, or inside the span: one per label."""
    lal = parser.config.model.label_attention
    return lal.heads if lal else len(parser.vocab.labels) - 1 if parser.config.model.span_attention else 0


def _one(what: str, values: list):
    if any(value != values[0] for value in values):
        raise ModelError(
            f"the runs differ in their {what}: {values}", remedy="Give runs that differ in their seed only."
        )
    return values[0]
