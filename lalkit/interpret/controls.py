"""Measure how much the attention of the paper's layer does for a span: parse again with other contexts, and compare.

A head has one context vector c_h for a whole sentence. A span vector is a difference of fenceposts, so R P c_h would cancel
exactly, and the attention of a head acts on a span through the norm alone:

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

So before one says that a head's attention means a label, one has to know how much it does. `compare` parses under every control;
`cancellation` measures the part of the contexts that is left in the span vectors of one sentence.
A feed-forward after the label attention mixes the heads: then only the contributions are not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import pandas as pd
import torch
from torch import Tensor

from lalkit.evaluation.scores import evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.interpret.contributions import contributions
from lalkit.interpret.paper_layer import PaperLayer, layer_input, unchanged
from lalkit.interpret.source import Sentences, parsed_spans
from lalkit.interpret.tables import likeness
from lalkit.network.batches import Batch, Collator
from lalkit.network.parser import Network
from lalkit.network.predict import predict
from lalkit.network.scores import fenceposts
from lalkit.treebank.tree import Sentence

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


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sentences, lam: float = 0.5
) -> pd.DataFrame:
    """Measure the parts of the span vector of every constituent of a parse, over all heads together.

    Args: others: the sentences over which mean contexts are taken. lam: the weight of label scores in the score of a tree.
    Returns: start, end, label; words and contexts: the lengths of R x and of R P c before the norm; after: the length of the
        span vector, after the norm; moved: the length of its change if contexts are at their mean; score and score_mean: of the
        label, with the contexts of the sentence and with the mean.
    Raises: ModelError for a parser whose heads have no contributions or no single context.
    """
    source = PaperLayer(network, collator, lam)
    source.check()
    mean, layer = source.mean(others), source.layer
    (parse,) = predict(network, collator, [sentence], lam=lam)
    batch = collator([sentence]).to(mean.device)
    with network.parsing():
        usual_output = network(batch, posts=True)
        x, mask = layer_input(network, batch)
        contexts = layer.contexts(x, layer.attend(x, mask))
        with layer.hooked(**source.controls(mean)["mean"]):
            mean_output = network(batch, posts=True)
    words = layer.reduce(x)
    words = words if words.dim() == 4 else words[:, :, None].expand(-1, -1, source.heads, -1)  # a shared R
    added = layer.reduce.per_head(layer.project.per_head(contexts))[:, None].expand_as(words)
    parts = [fenceposts(part.contiguous(), network.slice)[0] for part in (words, added)]
    parts += [usual_output.posts[0], mean_output.posts[0] - usual_output.posts[0]]
    rows = []
    for start, end, label in parsed_spans(parse):
        lengths = (float((posts[end] - posts[start]).norm()) for posts in parts)
        k = collator.vocab.label_index[label]
        scores = (float(output.label_scores[0, start, end, k]) for output in (usual_output, mean_output))
        rows.append((start, end, label, *lengths, *scores))
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)
