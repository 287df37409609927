"""Fit the temperature of a parser, and measure whether its probabilities are then right.

The scores of a parser that was trained by a margin say which tree is best, but not how probable it is. Dividing them by one
number, the temperature, leaves the best tree as it is, and changes how sure the parser is of it (Guo et al. 2017, "On
calibration of modern neural networks"). It is fitted on sentences that the parser was not trained on: the temperature under
which the gold joint trees are most probable. calibration.json in the parser's folder keeps it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from lalkit.api import Parser
from lalkit.chart.marginals import marginals_batch
from lalkit.errors import CorpusError, LalkitError, ModelError
from lalkit.evaluation.calibration import calibration_error, judge, reliability, risk_coverage
from lalkit.files import write_json
from lalkit.models.card_scores import words_only
from lalkit.network.confidence import check_joint, joint_score
from lalkit.network.predict import predict_batches, scores_of
from lalkit.training import named
from lalkit.training.checkpoint import CALIBRATION, read_content
from lalkit.treebank.check import trainable
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence

BOUNDS = 0.01, 100.0  # between which the temperature is looked for
COLUMNS = ["parser", "part", "fitted", "temperature", "kind", "curve", "x", "y", "parts"]


def fit_temperature(parser: Parser, sentences: Sequence[Sentence]) -> dict:
    """Return the temperature under which the gold joint trees of sentences are most probable, and what it changes.

    sentences: with both layers. A sentence with a label that the parser does not know has no probability and is left out.

    Returns: temperature; sentences, the number of those that count, and left_out, of those that do not; log_likelihood: the mean
        over sentences of log p(gold tree) before (at temperature 1) and after, in nats.

    Raises: LalkitError for a parser of one layer, or if no sentence is left: one that could be trained on, with known labels.
    """
    check_joint(parser.config.model.task)
    index, lam = parser.vocab.label_index, parser.config.train.lam
    pairs, gold_scores = [], []
    joint, _ = trainable(sentences, max(map(len, sentences)))  # where arcs were drawn freely, not all gold is joint
    for group, _, output in predict_batches(parser.network, parser.collator, joint, lam):
        chosen = [joint[i] for i in group]
        for sentence, pair in zip(chosen, scores_of(output, [len(s) for s in chosen])):
            spans = [(start, end, index.get(label)) for start, end, label, _ in to_joint(sentence)]
            if all(label is not None for _, _, label in spans):
                pairs.append((pair[0].copy(), pair[1].copy()))
                gold_scores.append(joint_score(*pair, spans, sentence.heads, lam))
    if not pairs:
        remedy = "Use a treebank with the labels that the parser was trained on."
        raise LalkitError("the parser does not know the labels of any sentence", remedy=remedy)

    def log_likelihood(temperature: float) -> float:
        sums = marginals_batch(pairs, lam, temperature)
        return float(np.mean([gold / temperature - m.log_partition for gold, m in zip(gold_scores, sums)]))

    bounds = [math.log(bound) for bound in BOUNDS]
    search = minimize_scalar(lambda log: -log_likelihood(math.exp(log)), bounds=bounds, options={"xatol": 5e-3})
    temperature = round(math.exp(search.x), 4)
    likelihood = {"before": round(log_likelihood(1.0), 4), "after": round(log_likelihood(temperature), 4)}
    counts = {"sentences": len(pairs), "left_out": len(sentences) - len(pairs)}
    return {"temperature": temperature, **counts, "log_likelihood": likelihood}


def calibrate(folder: Path, treebank: str, split: str = "dev", most: int | None = None) -> dict:
    """Fit the temperature of the parser in a folder, write calibration.json there, and return what it holds.

    most: the number of sentences to use, from the beginning of the split; None means all. Raises as `fit_temperature` does.
    """
    parser = folder.name if folder.parent == named.folder() else str(folder)
    command = shlex.join(["lalkit", "models", "calibrate", parser, "--treebank", treebank, "--split", split])
    facts = {
        **fit_temperature(Parser.load(folder), load(treebank, split).sentences[:most]), "treebank": treebank, "split": split,
        "command": command + (f" --sentences {most}" if most else ""), "weights": read_content(folder, "model")["weights"],
    }  # fmt: skip
    write_json(folder / CALIBRATION, facts)
    return facts


def measure(name: str, most: int | None = None) -> pd.DataFrame:
    """Return what `draw.figures.calibration_figure` draws of one parser, on sentences that its temperature was not fitted on.

    These are the test part of its treebank or, if there is none, what comes after the fitted sentences in their part.
    most: the number of these sentences to use, from the beginning; None means all.

    Returns: parser, part (the sentences), fitted, temperature, kind, curve, x, y, parts. The curve "reliability" has the mean
        probability of a bin as x, and the share that is right as y; "risk" has the coverage and the share of errors; "ece" has
        the expected calibration error in percent as y. parts: how many parts of parses a row counts.

    Raises: ModelError for a parser that was not calibrated; CorpusError if its treebank is not here.
    """
    parser = Parser.load(name)
    if parser.calibration is None:
        raise ModelError("this parser was not calibrated", where=name, remedy="Run: lalkit models calibrate")
    treebank, split = parser.calibration["treebank"], parser.calibration["split"]
    used = parser.calibration["sentences"] + parser.calibration["left_out"]
    part, gold = f"{treebank} {split}, after the first {used}", load(treebank, split).sentences[used:]
    if split != "test":
        with suppress(CorpusError):  # it has no test part
            part, gold = f"{treebank} test", load(treebank, "test").sentences
    gold = gold[:most]
    if not gold:
        remedy = "Calibrate with fewer --sentences."
        raise ModelError(f"no sentence of {treebank} is left that it was not fitted on", where=name, remedy=remedy)
    tables = []
    for fitted, temperature in ((False, 1.0), (True, parser.temperature)):
        results = parser.parse_all(words_only(gold), temperature=temperature)
        judged = judge([result.confidence() for result in results], gold)
        sizes = judged.groupby("kind").size()
        curves = {
            "reliability": reliability(judged).rename(columns={"probability": "x", "right": "y"}),
            "risk": risk_coverage(judged).rename(columns={"coverage": "x", "risk": "y"}),
            "ece": calibration_error(judged).rename("y").reset_index(),
        }
        for curve, rows in curves.items():
            parts = rows["parts"] if "parts" in rows else rows["kind"].map(sizes)
            columns = {"parser": name, "part": part, "fitted": fitted, "temperature": temperature, "curve": curve}
            tables.append(rows.assign(parts=parts, **columns).reindex(columns=COLUMNS))
    return pd.concat(tables, ignore_index=True)
