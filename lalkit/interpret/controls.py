"""What if the heads had attended otherwise? Contexts zeroed, at their mean, swapped; scores and contributions looked at again.

c_h is one vector for a whole sentence, and a span vector is a difference of fenceposts: R P c_h would cancel exactly, and what a
head's attention does to a span it does through the norm alone,

    y_h[t] = LN(R x_t + R P c_h)

so before one says what a head's attention means for a label, one has to know how much it does.

What is left of a context in a span: nothing before the norm, little after it.

    y_h[t] = LN(R x_t + R P c_h)        s_ij = f_j - f_i

Fenceposts hold halves of y, and c_h is the same for every t: without the norm R P c_h would be taken from itself.

What if the words of a span had attended otherwise? The controls of `controls`, for label attention inside the span.

A(i, j, l) is a sum over the words of the span of attention times evidence, so each control is another set of logits or of
evidence; boundaries stay. A control changes all spans of the chart, and the parse is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scipy.stats import rankdata
from torch import Tensor

from lalkit.errors import LalkitError
from lalkit.evaluation.scores import evaluate
from lalkit.evaluation.statistics import f1_test
from lalkit.interpret.contributions import Contributions, contributions
from lalkit.interpret.paper_layer import look, refuse_mixed
from lalkit.interpret.span_layer import refuse_outside
from lalkit.interpret.tables import correlation
from lalkit.network.batches import Batch, Collator
from lalkit.network.parser import Network
from lalkit.network.predict import predict, predict_batches
from lalkit.network.scores import fenceposts
from lalkit.treebank.joint import GROUP
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


@torch.no_grad()
def cancellation(
    network: Network, collator: Collator, sentence: Sentence, others: Sequence[Sentence], lam: float = 0.5
) -> pd.DataFrame:
    """Of every constituent of the sentence's parse, lengths of parts of its span vector over all heads together.

    start, end, label; words, contexts: of R x and of R P c before the norm; after: of the span vector as it is, after the
    norm; moved: of what it changes by when contexts are at their mean over `others`; score, score_mean: of the label, with
    the sentence's own contexts and with these. Raises ModelError for a parser whose heads cannot be told apart.
    """
    refuse_mixed(network)
    (parse,) = predict(network, collator, [sentence], lam=lam)
    network.eval()
    layer, batch, given = network.label_attention, collator([sentence]), []
    hook = layer.register_forward_pre_hook(lambda module, arguments: given.append(arguments[:2]))
    own = network(batch, posts=True)
    hook.remove()
    x, mask = given[0]
    contexts = layer.contexts(x, layer.attend(x, mask))
    parts = per_head(layer.reduce(x), contexts.shape[1]), layer.reduce.per_head(layer.project.per_head(contexts))
    before = [fenceposts(part.expand(-1, x.shape[1], -1, -1).contiguous(), network.slice)[0] for part in
              (parts[0], parts[1][:, None])]  # fmt: skip
    mean = mean_contexts(network, collator, others)
    with changed(network, lambda c: mean.to(c.dtype).expand_as(c)):
        other = network(batch, posts=True)
    rows = []
    for start, end, label, _ in parse.spans:
        if label == GROUP:
            continue
        words, context, span, there = (posts[end] - posts[start] for posts in (*before, own.posts[0], other.posts[0]))
        k = collator.vocab.label_index[label]
        rows.append(
            (start, end, label, *(float(v.norm()) for v in (words, context, span, there - span)),
             float(own.label_scores[0, start, end, k]), float(other.label_scores[0, start, end, k]))
        )  # fmt: skip
    names = ["start", "end", "label", "words", "contexts", "after", "moved", "score", "score_mean"]
    return pd.DataFrame(rows, columns=names)


def per_head(rx: Tensor, heads: int) -> Tensor:
    """[B, T, H, d]: R x of every head, where R is shared [B, T, d]."""
    return rx[:, :, None].expand(-1, -1, heads, -1) if rx.dim() == 3 else rx


# (logits [B, N, H], evidence [B, N, H], lengths [B]) -> (logits, evidence)
SpanChange = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
SPAN_CONTROLS = {
    "as trained": "attention and evidence as they are",
    "uniform attention": "every word of a span has the same weight",
    "swapped attention": "words have the attention of another sentence's words, and their own evidence",
    "swapped sentences": "every sentence has the words' attention and evidence of another one",
    "swapped heads": "every label has the attention and evidence of another label",
    "mean": "A at its mean over the spans of training sentences, one number a label",
    "zeroed": "A at zero",
}


def span_changes(mean: Float[Tensor, "h"], seed: int = 0) -> dict[str, SpanChange]:
    """The controls. mean: `mean_inside`. Another sentence is the next of the batch, its words repeated where it is shorter; the
    only sentence of a batch is its own."""
    order = _derangement(len(mean), seed).to(mean.device)
    return {
        "as trained": lambda logits, evidence, lengths: (logits, evidence),
        "uniform attention": lambda logits, evidence, lengths: (torch.zeros_like(logits), evidence),
        "swapped attention": lambda logits, evidence, lengths: (of_next(logits, lengths), evidence),
        "swapped sentences": lambda logits, evidence, lengths: (of_next(logits, lengths), of_next(evidence, lengths)),
        "swapped heads": lambda logits, evidence, lengths: (logits[..., order], evidence[..., order]),
        "mean": lambda logits, evidence, lengths: (logits, mean.to(evidence).expand_as(evidence)),
        "zeroed": lambda logits, evidence, lengths: (logits, torch.zeros_like(evidence)),
    }


def only(head: int, value: float | Tensor = 0.0) -> SpanChange:
    """One head's evidence replaced: by 0, which takes the head out, or by its mean, which leaves it nothing to say."""

    def change(logits: Tensor, evidence: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        evidence = evidence.clone()
        evidence[..., head] = value
        return logits, evidence

    return change


def of_next(x: Float[Tensor, "b n h"], lengths: Tensor) -> Float[Tensor, "b n h"]:
    """At word t what the next sentence of the batch has at word t, or at t modulo its length."""
    place = torch.arange(x.shape[1], device=x.device)[None] % lengths.roll(-1)[:, None]
    return x.roll(-1, 0).gather(1, place[..., None].expand_as(x))


@contextmanager
def span_changed(network: Network, change: SpanChange) -> Iterator[Network]:
    """The network with other logits and evidence, while it lasts. Raises ModelError for a parser that has none."""
    refuse_outside(network)
    usual, lengths = network.spans.project, []
    hook = network.register_forward_pre_hook(lambda module, given: lengths.append(given[0].lengths))

    def project(x: Tensor, posts: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        logits, evidence, *edges = usual(x, posts)
        return *change(logits, evidence, lengths.pop()), *edges

    network.spans.project = project
    try:
        yield network
    finally:
        network.spans.project = usual
        hook.remove()


@torch.inference_mode()
def mean_inside(network: Network, collator: Collator, sentences: Sequence[Sentence]) -> Float[Tensor, "h"]:
    """The mean of A(i, j, l) over all spans of the sentences, for every head: what its chart holds beyond boundaries."""
    refuse_outside(network)
    total, count = 0.0, 0
    for group, _, output in predict_batches(network, collator, sentences):
        logits, evidence, *edges = output.span_parts
        lengths = torch.tensor([len(sentences[i]) for i in group], device=logits.device)
        without = network.spans.chart(logits, torch.zeros_like(evidence), *edges, lengths=lengths)
        total = total + (output.label_scores - without)[..., 1:].double().sum((0, 1, 2))
        count += int((lengths * (lengths + 1) // 2).sum())
    return total / count
