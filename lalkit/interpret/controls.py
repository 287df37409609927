"""Measure how much the attention of the paper's layer does for a span: parse again with other contexts, and compare.

A head has one context vector c_h for a whole sentence. A span vector is a difference of fenceposts, so R P c_h would cancel
exactly, and the attention of a head acts on a span through the norm alone:

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

So before one says that a head's attention means a label, one has to know how much it does: `compare` parses under every control.
A feed-forward after the label attention mixes the heads: then only the contributions are not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import pandas as pd
from torch import Tensor

from lalkit.evaluation.scores import evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.interpret.contributions import contributions
from lalkit.interpret.paper_layer import PaperLayer, unchanged
from lalkit.interpret.source import Sentences
from lalkit.interpret.tables import likeness
from lalkit.network.batches import Batch, Collator
from lalkit.network.parser import Network
from lalkit.network.predict import predict

CONTROLS = {
    "as trained": "the contexts as they are",
    "uniform attention": "every head attends to all words alike",
    "zeroed": "every context at zero",
    "mean": "every head's context at its mean over sentences",
    "swapped sentences": "every sentence has the contexts of another one",
    "swapped heads": "every head has the context of another head",
    "shuffled heads": "the heads' outputs in another order",
}
TESTED = ("f1", "uas")  # the scores that are tested


class Controlled(NamedTuple):
    """The result of `compare`.

    table: a row for each control: contexts (its name), meaning, f1, uas, las (percent), f1_p and uas_p (p of a randomisation
    test over sentences against the parser as trained); for each norm same_top_NORM and rho_NORM (see `tables.likeness`, on the
    spans of both parses), if heads have contributions.
    counts: the counts of every sentence under every control: contexts, and the columns of `Evaluation.table`.
    """

    table: pd.DataFrame
    counts: pd.DataFrame


def compare(
    network: Network, collator: Collator, gold: Sentences, norms: Sequence[str] = ("minmax", "exact"), lam: float = 0.5
) -> Controlled:
    """Parse sentences again under every control of the paper's layer.

    Args: lam: the weight of label scores in the score of a tree.
    Raises: ModelError for a parser whose heads do not have one context each for a sentence.
    """
    source, rows, tables, usual_effects = PaperLayer(network, collator, lam), [], {}, None
    controls = {"as trained": {"contexts": unchanged}, **source.controls(source.mean(gold))}
    for name, hooks in controls.items():
        with source.layer.hooked(**hooks):
            looks = None if source.mixed else source.look(gold)
            predictions = [look.prediction for look in looks] if looks else predict(network, collator, gold, lam=lam)
        evaluation = evaluate(gold, [one.sentence for one in predictions], arc_labels=collator.vocab.arc_labels)
        tables[name], summary = evaluation.table(), evaluation.summary()
        scores = {measure: summary[measure] for measure in ("f1", "uas", "las") if summary[measure] is not None}
        tests = {f"{x}_p": score_test([tables["as trained"]], [tables[name]], x).p for x in TESTED if x in scores}
        row = {"contexts": name, "meaning": CONTROLS[name], **scores, **tests}
        if looks:
            effects = contributions(looks)
            usual_effects = usual_effects or effects
            for norm in norms:
                a, b = usual_effects.common(effects)
                row[f"same_top_{norm}"], row[f"rho_{norm}"] = likeness(a.by(norm), b.by(norm))
        rows.append(row)
    return Controlled(pd.DataFrame(rows), pd.concat(tables, names=["contexts"]).reset_index("contexts"))


@contextmanager
def words_kept(network: Network) -> Iterator[None]:
    """Compute the vectors of a batch's words only once inside the `with` block. Controls change only the steps after them."""
    compute = network.words.forward
    kept: dict[tuple, Tensor] = {}

    def forward(batch: Batch) -> Tensor:
        inputs = [x for x in (batch.lengths, batch.subwords, batch.places, batch.words, batch.chars) if x is not None]
        key = tuple(x.cpu().numpy().tobytes() for x in inputs)
        if key not in kept:
            kept[key] = compute(batch)
        return kept[key]

    with patch.object(network.words, "forward", forward):
        yield
