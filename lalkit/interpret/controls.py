"""What if the heads had attended otherwise? Contexts zeroed, at their mean, swapped; scores and contributions looked at again.

c_h is one vector for a whole sentence, and a span vector is a difference of fenceposts: R P c_h would cancel exactly, and what a
head's attention does to a span it does through the norm alone,

    y_h[t] = LN(R x_t + R P c_h)

so before one says what a head's attention means for a label, one has to know how much it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata
from torch import Tensor

from lalkit.batch.collate import Batch, Collator
from lalkit.errors import LalkitError
from lalkit.evaluate import evaluate
from lalkit.interpret.agreement import correlation
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.look import look, refuse_mixed
from lalkit.model.parser import Network
from lalkit.predict import predict_batches
from lalkit.probes.statistics import f1_test
from lalkit.treebank.tree import Sentence

Change = Callable[[Tensor], Tensor]  # contexts [B, H, d_kv] -> contexts
CONTROLS = {
    "as trained": "the contexts as they are",
    "uniform attention": "every head attends to all words alike",
    "zeroed": "every context at zero",
    "mean": "every head's context at its mean over sentences",
    "swapped sentences": "every sentence has the contexts of another one",
    "swapped heads": "every head has the context of another head",
    "shuffled heads": "the heads' outputs in another order",
}
NAMED = ("uniform attention", "shuffled heads")  # controls of something else than contexts
# The counts of a sentence that a score is made of.
TESTED = {"f1": ["matched", "gold", "predicted"], "uas": ["arcs_right", "arcs", "arcs"]}


def changes(network: Network, collator: Collator, sentences: Sequence[Sentence], seed: int = 0) -> dict[str, Change]:
    """The controls as functions of contexts (those of `NAMED` apart, see `changed`). sentences: where means are taken.

    Sentences and heads are exchanged by fixed permutations without fixed points where there are two or more.
    """
    mean = mean_contexts(network, collator, sentences)
    order = _derangement(len(mean), seed).to(mean.device)
    return {
        "as trained": lambda c: c,
        "zeroed": torch.zeros_like,
        "mean": lambda c: mean.to(c.dtype).expand_as(c),
        "swapped sentences": lambda c: c.roll(1, 0),
        "swapped heads": lambda c: c[:, order],
    }


def compare(
    network: Network,
    collator: Collator,
    gold: Sequence[Sentence],
    norms: Sequence[str] = ("minmax", "exact"),
    lam: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Parse again under every control: contexts, meaning, f1, uas, las (percent), f1_p and uas_p (of a randomisation test over
    sentences against the parser as trained: how often chance alone differs as much), and for every norm same_top_NORM and
    rho_NORM (`likeness`)."""
    controls, rows, trained = changes(network, collator, gold, seed), [], None
    for name, meaning in CONTROLS.items():
        with changed(network, controls.get(name, name), seed):
            looks = look(network, collator, gold, exact="exact" in norms, lam=lam)
        evaluation, found = evaluate(gold, [seen.sentence for seen in looks]), contributions(looks)
        trained = trained or (evaluation.table(), found)
        scores, counts = evaluation.summary(), (trained[0], evaluation.table())
        row = {"contexts": name, "meaning": meaning, **{key: scores[key] for key in ("f1", "uas", "las")}}
        for score, columns in TESTED.items():
            row[f"{score}_p"] = f1_test(*(table[columns].to_numpy(float) for table in counts)).p
        for norm in norms:
            row[f"same_top_{norm}"], row[f"rho_{norm}"] = likeness(trained[1], found, norm)
        rows.append(row)
    return pd.DataFrame(rows)


def likeness(ours: Contributions, theirs: Contributions, norm: str) -> tuple[float, float]:
    """Over the spans that both have: the percent whose top head is the same, and the mean Spearman correlation of contributions
    over heads (nan where one side makes all heads alike)."""
    keys = ["sentence", "start", "end", "label"]
    both = ours.spans[keys].reset_index().merge(theirs.spans[keys].reset_index(), on=keys)
    a, b = ours.by(norm)[both["index_x"]], theirs.by(norm)[both["index_y"]]
    rho = correlation(rankdata(a, axis=1), rankdata(b, axis=1))
    same = 100 * (a.argmax(1) == b.argmax(1)).mean()
    return same, np.nanmean(rho) if np.isfinite(rho).any() else np.nan


@contextmanager
def changed(network: Network, change: Change | str, seed: int = 0) -> Iterator[Network]:
    """The network with other contexts while it lasts; or, by name, with uniform attention, or with its heads' outputs in another
    order. Raises ModelError where heads cannot be told apart, LalkitError for a control there is not.
    """
    refuse_mixed(network)
    if isinstance(change, str) and change not in NAMED:
        raise LalkitError(
            f"{change!r} needs its contexts", remedy=f"Take it from `changes`, or name one of {', '.join(NAMED)}."
        )
    layer = network.label_attention
    if layer.config.query != "vector":
        raise LalkitError("a query matrix gives every word contexts of its own", remedy="Use query=vector.")

    def forward(x: Tensor, mask: Tensor, dropout=None) -> tuple[Tensor, Tensor]:
        attention = layer.attend(x, mask)
        if change == "uniform attention":
            attention = (mask / mask.sum(-1, keepdim=True)).to(attention)[:, None].expand_as(attention)
        contexts = layer.contexts(x, attention)
        if callable(change):
            contexts = change(contexts)
        y = layer.combine(x, contexts, None)
        if change != "shuffled heads":
            return y, attention
        order = _derangement(contexts.shape[1], seed).to(x.device)
        return y[:, :, order], attention[:, order]

    usual = layer.forward
    layer.forward = forward
    try:
        yield network
    finally:
        layer.forward = usual


@contextmanager
def without_head(network: Network, head: int) -> Iterator[Network]:
    """The network without one head's slice of every word, for spans and arcs, while it lasts."""
    refuse_mixed(network)

    def out(layer, given, found: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        y = found[0].clone()
        y[:, :, head] = 0
        return y, found[1]

    hook = network.label_attention.register_forward_hook(out)
    try:
        yield network
    finally:
        hook.remove()


@contextmanager
def words_kept(network: Network) -> Iterator[Network]:
    """While it lasts, vectors of words that were computed once are kept: controls change what comes after them."""
    usual, kept = network.words.forward, {}

    def forward(batch: Batch) -> Tensor:
        given = [x for x in (batch.lengths, batch.subwords, batch.places, batch.words, batch.chars) if x is not None]
        key = tuple(x.cpu().numpy().tobytes() for x in given)
        if key not in kept:
            kept[key] = usual(batch)
        return kept[key]

    network.words.forward = forward
    try:
        yield network
    finally:
        network.words.forward = usual


def mean_contexts(network: Network, collator: Collator, sentences: Sequence[Sentence]) -> Tensor:
    """[H, d_kv]: the mean of each head's context over sentences."""
    layer, found = network.label_attention, []

    def remember(contexts: Tensor) -> Tensor:
        found.append(contexts.double().sum(0))
        return contexts

    with changed(network, remember):
        for _ in predict_batches(network, collator, sentences):
            pass
    return (sum(found) / len(sentences)).to(next(layer.parameters()).dtype)


def _derangement(size: int, seed: int) -> Tensor:
    """A cyclic order of a random permutation: nothing stays where it is."""
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    target = torch.empty(size, dtype=torch.long)
    target[order] = order.roll(1)
    return target
