"""Measure whether the probabilities of a parser are right: of the parts with probability 0.8, 8 of 10 should be right.

The parts of every parse are judged one by one, then counted: reliability (is a probability right?), the expected calibration
error (how far off is it, on average?), and risk and coverage (how many errors are left if only the surest parts count?).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lalkit.treebank.tree import GROUP, Sentence

BINS = 10  # of probabilities, equally wide


def judge(tables: Sequence[pd.DataFrame], gold: Sequence[Sentence]) -> pd.DataFrame:
    """Say of every part of every parse whether it is right.

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
