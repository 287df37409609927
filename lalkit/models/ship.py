"""Put the best run's parser into data/models in 16 bits, with a card made from the runs' files; and check such cards."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from lalkit import __version__
from lalkit.api import Parser
from lalkit.config import read_saved
from lalkit.errors import CorpusError, ModelError
from lalkit.evaluation.provenance import splits
from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.files import read_json, write_json, write_text
from lalkit.interpret.contributions import contributions
from lalkit.interpret.tables import profile
from lalkit.models import card_scores
from lalkit.models.card_page import page
from lalkit.network.precision import Precision
from lalkit.training.checkpoint import read_content
from lalkit.training.named import find, folder, names, read_card
from lalkit.treebank.brackets import format_tree
from lalkit.treebank.corpora import SPLITS, load
from lalkit.treebank.mixture import SILVER, is_silver, parts_of, without_silver
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

PARSES = 200  # how many sentences of our own treebank, at most, go into the checksum of a card
OWN = {"en": "sample", "zh": "sample-zh"}  # our own treebank of each language, which anybody may be shown
EXAMPLES = 3
# The licence of the weights of a parser trained on each treebank.
LICENCES = {
    "craft": "CC BY 3.0",
    "ptb-sample": "non-commercial use only (weights learned from the Penn Treebank sample, LDC)",
    "ewt": "CC BY-SA 4.0",
    "gum": "CC BY-SA 4.0",  # of some of its texts
    "sample": "CC BY 4.0",
    "sample-zh": "CC BY 4.0",
    "sinica": "CC BY-NC-SA 2.5 (weights and word list learned from the Sinica Treebank sample, CKIP, Academia Sinica)",
}

OPEN = ("CC BY-SA 4.0", "CC BY 4.0", "CC BY 3.0")  # licences that mix, the strictest first
# The card of a parser of a mixture also has scores on the test parts of these treebanks.
BESIDES = ("sample:constituents", "ptb-sample:constituents")


def verify(name: str, quick: bool = False) -> list[tuple[str, object, object]]:
    """Return (quantity, value on the card, value here) for the parses and for every score.

    If a treebank is not on this machine, its scores are not compared. quick: parse only the first 100 sentences of each
    longer part of a mixture. The card has scores of these, too.
    """
    card = read_card(find(name))
    parser, parses = Parser.load(card.folder), card.facts["parses"]
    here = checksum(parser, parses["treebank"])
    rows: list[tuple[str, object, object]] = [("parses", parses["sha256"][:12], here[:12])]
    if stated := card.facts.get("parts"):
        return rows + list(_verify_parts(parser, stated, quick))
    try:
        scores, _ = card_scores.score(card_scores.parse_parts(parser, card.facts["treebank"]))
    except CorpusError as error:
        logger.info("scores are not checked: %s", error)
        return rows
    best = next(row for row in card.facts["seeds"] if row["seed"] == card.facts["seed"])
    return rows + [
        (f"{split} {key}", stated, scores[split][key])
        for split in ("dev", "test") if best.get(split) for key, stated in best[split].items()
    ]  # fmt: skip


def _verify_parts(parser: Parser, stated: list[dict], quick: bool) -> Iterator[tuple[str, object, object]]:
    """Yield (quantity, value on the card, value here) for parts of treebanks, except for those that are not here."""
    for (treebank, split), rows in groupby(stated, key=lambda row: (row["treebank"], row["split"])):
        on_card = {row["of"]: row for row in rows}
        most = card_scores.FIRST if quick and f"first {card_scores.FIRST}" in on_card else None
        try:
            gold = load(treebank, split).sentences[:most]
        except CorpusError as error:
            logger.info("scores are not checked: %s", error)
            continue
        here = {row["of"]: row for row in card_scores.rows_of(treebank, split, gold, card_scores.reparse(parser, gold))}
        for group in [f"first {card_scores.FIRST}"] if most else on_card:
            measured = here["all" if most else group]
            for key, value in on_card[group].items():
                if key not in ("treebank", "split", "of"):
                    yield f"{treebank} {split}, {group}: {key}", value, measured[key]


def checksum(parser: Parser, treebank: str = "sample") -> str:
    """Return the SHA-256 of trees, arcs, arc labels and tags of the first sentences of our own treebank, as parsed here."""
    parsed = hashlib.sha256()
    for result in parser.parse_all(card_scores.words_only(_every_sentence(treebank)[:PARSES])):
        record = result.to_dict()
        parsed.update(json.dumps([record[key] for key in ("words", "tags", "tree", "heads", "arc_labels")]).encode())
    return parsed.hexdigest()


def ship(
    runs: Sequence[str | Path],
    name: str,
    *,
    seed: int | None = None,
    controls: Sequence[str | Path] = (),
    licence: str | None = None,
    language: str | None = None,
) -> Path:
    """Choose one of several runs, save its parser in 16 bits, and write its card.json and README.md. Returns its folder.

    Every run's parser is scored as it would be shipped.

    Args:
        runs: folders of runs that differ only in their seed.
        name: the parser's name.
        seed: which run's parser; None: the one with the highest F1 + LAS on dev.
        controls: runs of other recipes to compare with.
        licence, language: by default those of the treebank.

    Raises:
        ModelError: the runs do not belong together or have no such seed, or no licence is known for their treebank.
    """
    if not runs:
        raise ModelError("there is no run to ship", where=name, remedy="Give its folder, such as runs/en-craft-1.")
    contents = [read_content(run, "model") for run in runs]
    given = [content["config"]["train"]["seed"] for content in contents]
    if len({*given}) < len(given):
        raise ModelError(f"two runs have the same seed: {given}", where=name, remedy="Give one run for each seed.")
    if seed is not None and seed not in given:
        raise ModelError(f"there is no run of seed {seed}", where=name, remedy=f"The seeds are {given}.")
    everything = [*contents, *(read_content(run, "model") for run in controls)]
    trained_on = _only("treebank", [content["info"]["treebank"] for content in everything])
    treebank = without_silver(trained_on)
    stages = _stages(_only("start", [content["config"]["train"].get("start") for content in contents]))
    silver = [_silver(part.name) for part in parts_of(trained_on) if is_silver(part.name)]
    starts = {stages[0]["start"] if stages else contents[0]["config"]["train"].get("start")} & {*names()}
    others = [read_card(find(start)).facts["licence"] for start in [*starts, *(row["model"] for row in silver)]]
    licence = licence or licence_of(treebank, others + [licence_of(stage["treebank"]) for stage in stages])
    language = language or ("zh" if treebank in ("sinica", "sample-zh") else "en")
    if not licence:
        raise ModelError(f"no licence is known for {treebank}", where=name, remedy="Name one: --licence.")
    task = _only("task", [content["config"]["model"].get("task", "joint") for content in contents])
    if task != "joint":
        problem = f"cards are for joint parsers, and these give {task} alone"
        raise ModelError(problem, where=name, remedy="Give runs of the task joint.")
    scored = [card_scores.measure(run, treebank) for run in runs]
    recipe = _only("recipe", [run.recipe for run in scored])
    seeds = [run.row for run in scored]
    candidates = [row for row in seeds if seed in (None, row["seed"])]
    best = max(candidates, key=lambda row: row["dev"]["f1"] + row["dev"]["las"])
    parser = card_scores.halved(Parser.load(runs[seeds.index(best)]))
    parser.info.update(name=name, seed=best["seed"])
    target, own, config = folder() / name, OWN.get(language, "sample"), parser.config.model
    parses, mixed = scored[seeds.index(best)].parses, parts_of(treebank)
    paper, inside = config.label_attention, config.span_attention
    facts = {
        "name": name, "licence": licence, "language": language, "treebank": treebank, "lalkit": __version__,
        "encoder": config.encoder.pretrained,
        "label_heads": paper.heads if paper else len(parser.vocab.labels) - 1 if inside else 0,
        "inside": inside.boundary if inside else None, "recipe": recipe, "seed": best["seed"], "seeds": seeds,
        "chosen": "before" if seed is not None else "on dev",
        "controls": card_scores.controls_of(controls, treebank, scored, recipe),
        "corpus": {split: len(part) for split, part in splits(treebank).items()},
        **_weaknesses(parser, card_scores.together(parses["dev"]), own, "test" if len(mixed) > 1 else None),
        "parses": {"treebank": own, "sentences": PARSES, "sha256": checksum(parser, own)},
    }  # fmt: skip
    if len(mixed) > 1:
        facts |= {"starts": sorted(starts), "stages": stages, "silver": silver, "trained_on": trained_on}
        parts = [_part_rows(run, one.parses["dev"]) for run, one in zip(runs, scored)]
        facts["parts"] = parts[seeds.index(best)]
        facts["by_seed"] = _by_seed(seeds, parts)
    if paper:
        looks = parser.look(card_scores.words_only(load(treebank, "dev").sentences))
        parser.profile = profile(contributions(looks), "exact", f"{treebank} dev")
    parser.save(target, half=True)  # only now: an error above leaves data/models as it was
    return _write_card(target, facts)


def add(runs: Sequence[str | Path], name: str, *, controls: Sequence[str | Path] = ()) -> Path:
    """Add runs of other seeds, and controls, to the card of a shipped parser, whose own run may be deleted by now.

    The parser stays as it is. A control is compared over the seeds that it shares with the runs and with the parser itself.
    Raises ModelError if a run is of another recipe or treebank, or if the card has its seed or control already.
    """
    card = read_card(find(name))
    facts = dict(card.facts)
    treebank, recipe = facts["treebank"], facts["recipe"]
    for run in (*runs, *controls):
        _only("treebank", [facts.get("trained_on", treebank), read_content(run, "model")["info"]["treebank"]])
    scored = [card_scores.measure(run, treebank) for run in runs]
    taken = [row["seed"] for row in facts["seeds"]]
    for added in scored:
        _only("recipe", [recipe, added.recipe])
        if added.row["seed"] in taken:
            raise ModelError(f"its card has seed {added.row['seed']} already", where=name, remedy="Leave that run out.")
        taken.append(added.row["seed"])
    row = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
    shipped = card_scores.Scored(
        row, recipe, card_scores.score(card_scores.parse_parts(Parser.load(card.folder), treebank))[1]
    )
    new = card_scores.controls_of(controls, treebank, [shipped, *scored], recipe)
    known = [control["differs"] for control in facts["controls"]]
    if again := [control["differs"] for control in new if control["differs"] in known]:
        raise ModelError(f"its card has this control already: {again[0]}", where=name, remedy="Leave these runs out.")
    facts["seeds"] = sorted(facts["seeds"] + [run.row for run in scored], key=lambda row: row["seed"])
    facts["controls"] = facts["controls"] + new
    if "by_seed" in facts:
        parts = [_part_rows(run, one.parses["dev"]) for run, one in zip(runs, scored)]
        more = facts["by_seed"] + _by_seed([run.row for run in scored], parts)
        facts["by_seed"] = sorted(more, key=lambda row: row["seed"])
    return _write_card(card.folder, facts)


def add_precision(name: str, precision: Precision) -> Path:
    """Add to the card of a shipped parser its scores in a lower precision, on the dev part of each treebank of its mixture.

    Raises ParameterError or ModelError where the precision cannot be used.
    """
    card = read_card(find(name))
    parser = Parser.load(card.folder, precision)
    parses = card_scores.parse_parts(parser, card.facts["treebank"], ["dev"])["dev"]
    rows = [card_scores.rows_of(treebank, "dev", *pair)[0] for treebank, pair in parses.items()]
    return _write_card(card.folder, card.facts | {"precisions": card.facts.get("precisions", {}) | {precision: rows}})


def _write_card(target: Path, facts: dict) -> Path:
    write_json(target / "card.json", facts)
    write_text(target / "README.md", page(facts))
    return target


def _part_rows(run: str | Path, dev: Mapping[str, card_scores.Pair]) -> list[dict]:
    """Return the scores of a run's parser, in 16 bits, on the parts of its mixture and on the test parts of `BESIDES`."""
    rows = [row for name, pair in dev.items() for row in card_scores.rows_of(name, "dev", *pair)]
    parser = card_scores.halved(Parser.load(run))
    for part in BESIDES:
        with suppress(CorpusError):
            gold = load(part, "test").sentences
            rows += card_scores.rows_of(part, "test", gold, card_scores.reparse(parser, gold))
    return rows


def _by_seed(seeds: Sequence[dict], parts: Sequence[list[dict]]) -> list[dict]:
    """Return the scores of each seed on whole parts."""
    return [{"seed": one["seed"]} | row for one, rows in zip(seeds, parts) for row in rows if row["of"] == "all"]


def _silver(folder: str) -> dict:
    """Return where constituents were added to a treebank, to which one, and by which parser."""
    remedy = "Write the folder again: lalkit data constituents --help."
    return {"out": folder, **read_json(Path(folder) / SILVER, remedy)}


def _stages(start: str | None) -> list[dict]:
    """Return which runs came before, the first one first: a training may start from a run instead of a shipped parser."""
    stages: list[dict] = []
    while start and start not in names():
        content = read_content(start, "model")
        config = read_saved(content["config"], start)
        stage = {"out": start, "start": config.train.start, "seed": config.train.seed}
        stages.insert(0, stage | {"treebank": content["info"]["treebank"], "recipe": card_scores.settings(config)})
        start = config.train.start
    return stages


def licence_of(treebank: str, others: Sequence[str] = ()) -> str | None:
    """Return the licence of a parser of a treebank or mixture; None if it is not known, or if two licences exclude each other.

    others: the licences of the parsers whose weights it started from.
    """
    known = [LICENCES.get(part.known_as) for part in parts_of(treebank)]
    usable = [licence for licence in OPEN if licence in {*known, *others}]
    closed = {*known, *others} - {*OPEN}
    if not closed:
        return usable[0]
    return closed.pop() if len(closed) == 1 and OPEN[0] not in usable else None


def _weaknesses(parser: Parser, dev: Sequence, own: str, split: str | None) -> dict:
    """Return scores on dev by length and by label, the scores on our own treebank, and its worst sentences.

    split: the part of our own treebank that the parser did not learn from; None: all of it. Where our own treebank has other
    tags, or other arc labels, than those that the parser learned, these scores are None.
    """
    (gold, parsed), ours = dev, load(own, split).sentences if split else _every_sentence(own)
    parsed_ours = card_scores.reparse(parser, ours)
    right, found = zip(*(pair for pair in zip(gold, parsed) if pair[0].constituents is not None))
    evaluation = evaluate(ours, parsed_ours)
    table, scores = evaluation.table(), card_scores.rounded(evaluation)
    worst = table[(table.length >= 8) & (table.length <= 14)].sort_values("f1", kind="stable").index[:EXAMPLES]
    if not set(parser.vocab.arc_labels) & {label for s in ours for label in s.arc_labels}:
        scores["las"] = None
    tags = {tag for s in ours for tag in s.tags}
    if 2 * len(tags & set(parser.vocab.tags)) < len(tags):
        scores.update(f1=None, exact=None, tag_accuracy=None)
    return {
        "by_length": by_length(evaluate(gold, parsed)).round(2).to_dict(orient="records"),
        "by_label": by_label(right, found, least=30).round(2).head(12).to_dict(orient="records"),
        "own": own,
        "sample": scores,
        "examples": [
            {
                "words": " ".join(ours[i].words), "gold": format_tree(ours[i].tree),
                "found": format_tree(parsed_ours[i].tree),
            }
            for i in worst
        ],
    }  # fmt: skip


def _every_sentence(treebank: str) -> list[Sentence]:
    return [sentence for split in SPLITS for sentence in load(treebank, split).sentences]


def _only(what: str, values: list):
    """Return the value that all runs have. Raises ModelError if they differ in it."""
    if any(value != values[0] for value in values):
        remedy = "Give runs that differ in their seed only."
        raise ModelError(f"the runs differ in their {what}: {values}", remedy=remedy)
    return values[0]
