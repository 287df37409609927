"""Where the errors are: scores by sentence length and by constituent label."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from lalkit.evalb import COLLINS, EvalbRules, brackets, percent
from lalkit.evaluate import Evaluation
from lalkit.treebank.tree import Sentence

LENGTHS = (10, 20, 30, 40, 60)  # words; the last group has the longer ones


def by_length(evaluation: Evaluation, lengths: Sequence[int] = LENGTHS) -> pd.DataFrame:
    """A row per group of lengths: words, sentences, f1, uas (without punctuation) and las, percent over the group; None where
    a layer is missing.

    lengths: the most words of each group but the last.
    """
    table = evaluation.table()
    rows = []
    for low, high in zip((0, *lengths), (*lengths, None)):
        group = table[(table.length > low) & (table.length <= (high or table.length.max() + 1))]
        if len(group):
            sums = group[["matched", "gold", "predicted", "arcs", "arcs_right", "labels_right"]].sum()
            rows.append(
                {
                    "words": f"{low + 1} to {high}" if high else f"over {low}",
                    "sentences": len(group),
                    "f1": percent(2 * sums.matched, sums.gold + sums.predicted) if evaluation.has_trees else None,
                    "uas": percent(sums.arcs_right, sums.arcs) if table.arcs.notna().any() else None,
                    "las": percent(sums.labels_right, sums.arcs) if evaluation.has_labels else None,
                }
            )
    return pd.DataFrame(rows)


def by_label(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], rules: EvalbRules = COLLINS, least: int = 1
) -> pd.DataFrame:
    """A row per label of at least `least` gold brackets (0: those that are only predicted, too): label, gold, predicted, matched
    (brackets), precision, recall, f1 (percent), the most frequent first. Brackets are compared under the gold tags, as in
    `evaluate`."""
    counts = {"gold": Counter(), "predicted": Counter(), "matched": Counter()}
    for expected, found in zip(gold, predicted, strict=True):
        right = brackets(expected.tree, rules)
        tagged = found if expected.tags is None else dataclasses.replace(found, tags=expected.tags)
        given = brackets(tagged.tree, rules)
        for name, spans in (("gold", right), ("predicted", given), ("matched", right & given)):
            for (_, _, label), times in spans.items():
                counts[name][label] += times
    rows = []
    invented = [(label, 0) for label in counts["predicted"] if label not in counts["gold"]]
    for label, count in [*counts["gold"].most_common(), *invented]:
        if count >= least:
            p, m = counts["predicted"][label], counts["matched"][label]
            rows.append(
                {
                    "label": label, "gold": count, "predicted": p, "matched": m, "precision": percent(m, p),
                    "recall": percent(m, count), "f1": percent(2 * m, count + p),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)
