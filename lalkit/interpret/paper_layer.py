"""The parser's label attention as the shared probes see it: H heads, one query for the whole sentence, many decisions.

y_h[t] = LN(R (x_t + P c_h)): other weights are other contexts c_h, and with them the outputs, the fenceposts and the scores are
computed anew, from the same x. What comes before the label attention is computed once.

What the scores of a span would be without each label head: exactly, for all heads, from one forward pass.

The span scorer is Linear, LN, ReLU, Linear (eq. 6), and its first step adds the heads up:

    W1 s_ij + b1 = b1 + sum_h W1[:, h] s_ij[h]        s_ij[h] = f_j[h] - f_i[h]

so taking head h's slice out of the span vector is one subtraction after that step. What a head adds to *other* heads' slices
does not exist here: each makes its own. (A feed-forward after the label attention would mix them.)

Sentences parsed with what the label attention did kept: attention, and each label head's part in every span's score.

What a head contributes to a span (Mrini et al. 2020, section 4.5) is the sum over its slice of the span vector,

    raw[h] = sum_d s_ij[h, d]        s_ij = f_j - f_i

and since a difference of sums is a sum of differences, one number a fencepost and head is enough for all spans. `exact` is
what the score of the span's label loses when the head's slice is taken out (`effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.interpret.source import Span
from lalkit.interpret.span_layer import span_view
from lalkit.network.batches import Collator
from lalkit.network.parser import Network, arc_log_probabilities
from lalkit.network.predict import Prediction, predict, predict_batches
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.probes.view import AttentionView, Outcome
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence


@torch.no_grad()
def parts(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> tuple[Float[Tensor, "m h k"], Float[Tensor, "k"]]:
    """(W1[:, h] s_ij[h] of every head, b1): over heads they add up to what the norm is given."""
    weight = scorer.first.weight.unflatten(1, posts.shape[1:]).permute(1, 2, 0)  # [H, d, hidden]
    start, end = spans.unbind(1)
    if len(spans) < len(posts):  # fewer spans than fenceposts: their vectors are projected, else what they are made of
        found = (posts[end] - posts[start]).transpose(0, 1) @ weight
    else:
        projected = posts.transpose(0, 1) @ weight
        found = projected[:, end] - projected[:, start]
    return found.transpose(0, 1), scorer.bias


@torch.no_grad()
def without_heads(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Int[Tensor, "m 2"]
) -> Float[Tensor, "m h l"]:
    """The label scores of each span (start, end) with each head's slice of its vector at zero; the empty label scores 0.

    posts: the fenceposts of one sentence, f = n + 1. Takes m * h * hidden floats.
    """
    each, bias = parts(scorer, posts, spans)
    each = each.transpose(0, 1)
    before = (each.sum(0) + bias) - each
    found = scorer.second(torch.relu_(scorer.norm(before))).transpose(0, 1)
    return torch.cat([torch.zeros_like(found[..., :1]), found], dim=-1)


@dataclass(frozen=True)
class Look:
    """A parsed sentence from within. H label heads, n words, m spans; m_f = n + 1 fenceposts.

    spans: the parse's constituents (not <H>), then those asked for besides. attention [H, n + 2]: START, words, STOP.
    sums [n + 1, H]: of each head's slice of each fencepost. scores [m], exact [m, H]: of spans' own labels, nan for a label
    the parser does not know; exact is None if not asked for.
    """

    prediction: Prediction
    spans: tuple[Span, ...]
    attention: np.ndarray = field(repr=False)
    sums: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    exact: np.ndarray | None = field(repr=False)

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def raw(self) -> np.ndarray:
        """[m, H]."""
        starts, ends = [s for s, _, _ in self.spans], [e for _, e, _ in self.spans]
        return self.sums[ends] - self.sums[starts]


def look(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    *,
    besides: Sequence[Sequence[Span]] | None = None,
    exact: bool = True,
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> list[Look]:
    """Parse sentences, in order, and look into the parser as it does; the same alone and in any batch.

    besides: for each sentence, spans to look at beside those of the parse. Raises ModelError for a parser in which a label
    head's part cannot be told from the others'.
    """
    refuse_mixed(network)
    found: list[Look | None] = [None] * len(sentences)
    asked = {"attention": True, "posts": True}
    for group, predictions, output in predict_batches(network, collator, sentences, lam, budget, threads, **asked):
        sums = output.posts.sum(-1)
        for b, (index, prediction) in enumerate(zip(group, predictions)):
            n = len(prediction.sentence)
            spans = [(s.start, s.end, s.label) for s in prediction.spans if s.label != GROUP]
            spans += [span for span in (besides[index] if besides else ()) if span not in spans]
            posts = output.posts[b, : n + 1]
            known = [collator.vocab.label_index.get(label, 0) for _, _, label in spans]
            found[index] = Look(
                prediction,
                tuple(spans),
                _numbers(output.attention[b, :, : n + 2]),
                _numbers(sums[b, : n + 1]),
                own_scores(output.label_scores[b], spans, known),
                exact_effects(network.spans, posts, spans, known) if exact else None,
            )
        tick(len(group))
    return found


def own_scores(chart: Float[Tensor, "f f l"], spans: Sequence[Span], known: Sequence[int]) -> np.ndarray:
    """[m]: the score of each span's label, by its index; nan where that is 0."""
    found = [float(chart[start, end, k]) if k else np.nan for (start, end, _), k in zip(spans, known)]
    return np.array(found, dtype=np.float32)


@torch.inference_mode()
def exact_effects(
    scorer: SpanScorer, posts: Float[Tensor, "f h d"], spans: Sequence[Span], known: Sequence[int]
) -> np.ndarray:
    """[m, H]: the score of each span's label, by its index, less its score without each head; nan where that is 0."""
    if not spans:
        return np.zeros((0, posts.shape[1]), dtype=np.float32)
    places = torch.tensor([(start, end) for start, end, _ in spans], device=posts.device)
    label = torch.tensor(known, device=posts.device)
    vectors = (posts[places[:, 1]] - posts[places[:, 0]]).flatten(1)
    whole = scorer.second(torch.relu(scorer.norm(scorer.first(vectors) + scorer.bias)))
    whole = torch.cat([torch.zeros_like(whole[:, :1]), whole], dim=-1).gather(1, label[:, None])
    without = without_heads(scorer, posts, places)
    without = without.gather(2, label[:, None, None].expand(-1, without.shape[1], 1))[..., 0]
    return _numbers((whole - without).masked_fill((label == 0)[:, None], torch.nan))


def _numbers(x: Tensor) -> np.ndarray:
    """On its own, not a view of a batch that would be kept with it."""
    return x.float().cpu().numpy().copy()


def refuse_mixed(network: Network) -> None:
    """Raises ModelError where a head's part ends before the spans are scored."""
    lal = network.config.label_attention
    reason = (
        "it gives dependencies alone" if network.config.task == "dependencies"
        else "its label attention is inside the span" if network.config.span_attention
        else "it has no label attention" if lal is None
        else "a feed-forward after the label attention mixes its heads" if lal.feedforward
        else "its heads are projected together" if lal.combine == "project"
        else None
    )  # fmt: skip
    if reason:
        raise ModelError(
            f"contributions of label heads are not defined for this parser: {reason}",
            remedy="Its scores are sums of words' terms: ask for these (`Parser.terms`, `lalkit explain`)."
            if network.config.span_attention
            else "Use a parser whose heads stay apart: en-news-x, en-craft-x, or one trained with "
            "model.label_attention.feedforward=false and combine=concat.",
        )


DECISIONS = ("spans", "arcs")


@torch.no_grad()
def view(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    decide: str = "spans",
    spans: Sequence[Sequence[Span]] | None = None,
    examples: Sequence[int] = (),
    lam: float = 0.5,
) -> AttentionView:
    """weights [B, H, 1, T], T positions with START and STOP; values [B, H, T, d_kv], V_h x.

    decide "spans": a unit is a span (by default those of the parse), its classes all labels with the empty one, its score
    counts (label as given, 1). "arcs": a unit is a word, its classes its possible heads, 0 the root. without_slices takes a
    head's output out of every word; it is there only if heads stay apart. Use some tens of sentences at a time.

    Label attention inside the span has a view of its own, in which an example is a span (`span_view`).

    Raises ModelError for a parser without label attention, or whose heads have a query matrix; ValueError for other decisions.
    """
    if decide not in DECISIONS:
        raise ValueError(f"no decision {decide!r}: {' or '.join(DECISIONS)}")
    if network.config.span_attention:
        if decide == "arcs":
            raise ValueError("arcs see nothing of label attention inside the span: decide spans")
        return span_view(network, collator, sentences, spans, examples, lam)
    layer = network.label_attention
    if layer is None or layer.config.query != "vector":
        raise ModelError("has no label attention with one query a head", remedy="Use a parser with query=vector.")
    network.eval()
    batch = collator(sentences, gold=decide == "arcs").to(next(network.parameters()).device)
    x, mask = _before(network, batch)
    weights = layer.attend(x, mask)[:, :, None]
    values = layer.value(x).transpose(1, 2)
    if spans is None and decide == "spans":
        parsed = predict(network, collator, sentences, lam=lam)
        spans = [[(s.start, s.end, s.label) for s in p.spans] for p in parsed]
    read = _Spans(network, collator, spans, x) if decide == "spans" else _Arcs(network, batch, x)

    @torch.no_grad()
    def outcome(contexts: Tensor, without: Sequence[int] = ()) -> Outcome:
        y = layer.combine(x, contexts[:, :, 0].to(x.dtype), None)
        if len(without):
            y = y.clone()
            y[:, :, list(without)] = 0
        return read(y if network.feedforward is None else network.feedforward(y))

    def from_contexts(contexts: Tensor) -> Outcome:
        if contexts.dim() == 4:
            return outcome(contexts)
        several = [outcome(one) for one in contexts]
        stacked = [torch.stack([getattr(o, name) for o in several]) for name in ("probs", "decision", "score")]
        return Outcome(stacked[0], several[0].unit_mask, stacked[1], stacked[2])

    def from_weights(given: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", given.to(values.dtype), values))

    def without_slices(heads: Sequence[int]) -> Outcome:
        return outcome(torch.einsum("bhqt,bhtd->bhqd", weights, values), heads)

    return AttentionView(
        weights, values, mask, torch.ones_like(mask[:, :1]), [f"lal.{h:03d}" for h in range(weights.shape[1])],
        from_weights, tuple(examples), from_contexts, without_slices if _apart(network) else None,
    )  # fmt: skip


def _before(network: Network, batch) -> tuple[Tensor, Tensor]:
    """What the label attention is given."""
    kept: list[tuple[Tensor, Tensor]] = []
    hook = network.label_attention.register_forward_pre_hook(lambda module, given: kept.append(given[:2]))
    try:
        network(batch, chart_gradient=False)
    finally:
        hook.remove()
    return kept[0]


def _apart(network: Network) -> bool:
    try:
        refuse_mixed(network)
    except ModelError:
        return False
    return True


class _Spans:
    """y [B, T, H, d] -> the labels of the spans that were asked about."""

    def __init__(self, network: Network, collator: Collator, spans: Sequence[Sequence[Span]], x: Tensor):
        self.network, most = network, max(1, *map(len, spans))
        self.places = torch.zeros(len(spans), most, 2, dtype=torch.long, device=x.device)
        self.label = torch.full((len(spans), most), -1, device=x.device)
        for b, some in enumerate(spans):
            for u, (start, end, label) in enumerate(some):
                self.places[b, u] = torch.tensor([start, end])
                self.label[b, u] = collator.vocab.label_index.get(label, -2)  # -2: there, and never right
        self.mask = self.label != -1

    def __call__(self, y: Tensor) -> Outcome:
        scorer, sentence = self.network.spans, torch.arange(len(y), device=y.device)[:, None]
        projected, _ = scorer.project(fenceposts(y, self.network.slice))
        start, end = self.places.unbind(-1)
        hidden = torch.relu(scorer.norm(projected[sentence, end] - projected[sentence, start] + scorer.bias))
        scores = scorer.second(hidden)
        scores = torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)
        return _outcome(torch.softmax(scores.double(), -1), self.mask, self.label)


class _Arcs:
    """y [B, T, H, d] -> the heads of words."""

    def __init__(self, network: Network, batch, x: Tensor):
        self.network, self.mask = network, batch.word_mask
        self.gold = batch.heads if batch.heads is not None else torch.full_like(batch.tags, -2)

    def __call__(self, y: Tensor) -> Outcome:
        arcs = self.network.arcs
        log = arc_log_probabilities(arcs.arcs(arcs.parts(y.flatten(-2))), self.mask)
        probs = torch.where(log == 0, 0.0, log.double().exp())  # 0 stands for what cannot be
        return _outcome(probs, self.mask, self.gold)


def _outcome(probs: Tensor, mask: Tensor, right: Tensor) -> Outcome:
    decision = probs.argmax(-1)
    counts = ((decision == right) & mask).sum(-1).double(), mask.sum(-1).double()
    return Outcome(probs, mask, decision, torch.stack(counts, dim=-1))
