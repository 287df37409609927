"""Ask how much the attention of the paper's layer does for a span: parse again with other contexts, and compare.

A head has one context vector c_h for a whole sentence. A span vector is a difference of fenceposts, so R P c_h would cancel
exactly, and the attention of a head acts on a span through the norm alone:

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

So before one says what a head's attention means for a label, one has to know how much it does. `compare` parses under every
control; `cancellation` measures what is left of the contexts in the span vectors of one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata
from torch import Tensor

from lalkit.evaluation.scores import evaluate
from lalkit.evaluation.statistics import score_test
from lalkit.interpret.attention_views import layer_input
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.paper_layer import PaperLayer, unchanged
from lalkit.interpret.source import parsed_spans
from lalkit.interpret.tables import correlation
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


def compare(
    network: Network,
    collator: Collator,
    gold: Sequence[Sentence],
    norms: Sequence[str] = ("minmax", "exact"),
    lam: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Parse sentences again under every control of the paper's layer.

    Args: lam: the weight of label scores in the score of a tree. seed: of the order in which heads are exchanged.
    Returns: a row for each control: contexts (its name), meaning, f1, uas, las (percent), f1_p and uas_p (p of a randomisation
        test over sentences against the parser as trained); for each norm same_top_NORM and rho_NORM (see `likeness`).
    Raises: ModelError for a parser whose heads are mixed.
    """
    source, rows, trained = PaperLayer(network, collator, lam), [], None
    controls = {"as trained": {"contexts": unchanged}, **source.controls(source.mean(gold), seed)}
    for name, meaning in CONTROLS.items():
        with source.layer.hooked(**controls[name]):
            looks = source.look(gold, exact="exact" in norms)
        evaluation, effects = evaluate(gold, [look.sentence for look in looks]), contributions(looks)
        trained = trained or (evaluation.table(), effects)
        scores = evaluation.summary()
        row = {"contexts": name, "meaning": meaning, **{key: scores[key] for key in ("f1", "uas", "las")}}
        for score in TESTED:
            row[f"{score}_p"] = score_test([trained[0]], [evaluation.table()], score).p
        for norm in norms:
            row[f"same_top_{norm}"], row[f"rho_{norm}"] = likeness(trained[1], effects, norm)
        rows.append(row)
    return pd.DataFrame(rows)


def likeness(first: Contributions, second: Contributions, norm: str) -> tuple[float, float]:
    """Compare two sets of contributions on the spans that both have.

    Returns: the percent of spans with the same top head, and the mean Spearman correlation of contributions over heads. A span
        has no correlation if all its heads are alike on one side; the mean is nan if no span has one.
    """
    keys = ["sentence", "start", "end", "label"]
    both = first.spans[keys].reset_index().merge(second.spans[keys].reset_index(), on=keys)
    a, b = first.by(norm)[both["index_x"]], second.by(norm)[both["index_y"]]
    rho = correlation(rankdata(a, axis=1), rankdata(b, axis=1))
    same = 100 * (a.argmax(1) == b.argmax(1)).mean()
    return same, np.nanmean(rho) if np.isfinite(rho).any() else np.nan


@contextmanager
def words_kept(network: Network) -> Iterator[None]:
    """Compute the vectors of a batch's words only once inside the `with` block. Controls change only what comes after them."""
    usual = network.words.forward
    kept: dict[tuple, Tensor] = {}

    def forward(batch: Batch) -> Tensor:
        inputs = [x for x in (batch.lengths, batch.subwords, batch.places, batch.words, batch.chars) if x is not None]
        key = tuple(x.cpu().numpy().tobytes() for x in inputs)
        if key not in kept:
            kept[key] = usual(batch)
        return kept[key]

    with patch.object(network.words, "forward", forward):
        yield


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sequence[Sentence], lam: float = 0.5
) -> pd.DataFrame:
    """Measure the parts of the span vector of every constituent of a parse, over all heads together.

    Args: others: the sentences over which mean contexts are taken. lam: the weight of label scores in the score of a tree.
    Returns: start, end, label; words and contexts: the lengths of R x and of R P c before the norm; after: the length of the
        span vector, after the norm; moved: the length of its change if contexts are at their mean; score and score_mean: of the
        label, with the sentence's own contexts and with the mean.
    Raises: ModelError for a parser whose heads are mixed.
    """
    source = PaperLayer(network, collator, lam)
    mean = source.mean(others)
    (parse,) = predict(network, collator, [sentence], lam=lam)
    network.eval()
    layer, batch = source.layer, collator([sentence])
    own = network(batch, posts=True)
    x, mask = layer_input(network, batch)
    contexts = layer.contexts(x, layer.attend(x, mask))
    words = layer.reduce(x)
    if words.dim() == 3:  # R is shared: R x is the same for every head.
        words = words[:, :, None].expand(-1, -1, contexts.shape[1], -1)
    heads = layer.reduce.per_head(layer.project.per_head(contexts))[:, None]
    before = [fenceposts(part.expand(-1, x.shape[1], -1, -1).contiguous(), network.slice)[0] for part in (words, heads)]
    with layer.hooked(**source.controls(mean)["mean"]):
        other = network(batch, posts=True)
    rows = []
    for start, end, label in parsed_spans(parse):
        word, context, span, there = (posts[end] - posts[start] for posts in (*before, own.posts[0], other.posts[0]))
        lengths = (float(vector.norm()) for vector in (word, context, span, there - span))
        k = collator.vocab.label_index[label]
        scores = (float(output.label_scores[0, start, end, k]) for output in (own, other))
        rows.append((start, end, label, *lengths, *scores))
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)
