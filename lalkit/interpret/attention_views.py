"""Show label attention to the shared probes, as an `AttentionView`: one function for each layer, which is its method `view`.

The paper's layer: an example is a sentence, and each head has one query for it. y_h[t] = LN(R (x_t + P c_h)), so other weights
give other contexts c_h. The view computes the outputs, the fenceposts and the scores anew from the same x. It computes only once
what comes before the label attention.

Label attention inside the span: an example is a span, and its keys are the words of the span. A(i, j, l) = sum_t a_t v_t,l: the
weights are a, the values are the evidence v (of size 1), and a context is A itself. The scores of all labels are contexts plus
boundaries. So a probe changes weights within the span, and only the sum is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.interpret.source import AttributionSource, Sentences, Spans
from lalkit.network.batches import Batch, Collator
from lalkit.network.parser import Network, arc_log_probabilities
from lalkit.network.predict import predict
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.probes.view import AttentionView, Outcome, by_mixing, judged

if TYPE_CHECKING:
    from lalkit.interpret.paper_layer import PaperLayer
    from lalkit.interpret.span_layer import SpanLayer

STRIDE = 1_000_000  # The number of a span is the number of its sentence * STRIDE + start * 1000 + end.


@torch.no_grad()
def view_of_paper_layer(
    source: PaperLayer,
    sentences: Sentences,
    decide: str = "spans",
    spans: Spans | None = None,
    examples: Sequence[int] = (),
) -> AttentionView:
    """Return the view of the paper's layer on a batch of sentences.

    Args: decide: with "spans", a unit is a span, its classes are all labels and the empty one, and its score counts (label is
        as given, 1); with "arcs", a unit is a word, and its classes are its possible head words, 0 the root. spans: those to
        decide; None: those of the parse. examples: the numbers of the sentences in their data.
    Returns: weights [B, H, 1, T], over T positions with START and STOP; values [B, H, T, d_kv], V_h x. If
        the heads are not mixed, there is `without_slices`, which sets a head's output to zero at every word.
    Raises: ModelError without label attention, or with a query matrix; ParameterError for an unknown decision; LalkitError
        without a sentence.
    """
    if decide not in ("spans", "arcs"):
        raise ParameterError(f"decide is {decide!r}", remedy="Give spans or arcs.")
    if not sentences:
        raise LalkitError("there is no sentence to look at", remedy="Give at least one.")
    network, collator, layer = source.network, source.collator, source.layer
    if layer is None or layer.config.query != "vector":
        raise ModelError("has no label attention with one query a head", remedy="Use a parser with query=vector.")
    network.eval()
    batch = collator(sentences, gold=decide == "arcs").to(next(network.parameters()).device)
    x, mask = layer_input(network, batch)
    weights = layer.attend(x, mask)[:, :, None]
    values = layer.value(x).transpose(1, 2)
    if decide == "spans":
        spans = _parsed(source, sentences) if spans is None else spans
        decisions = span_decisions(network, collator, spans, x.device)
    else:
        decisions = _arc_decisions(network, batch)

    @torch.no_grad()
    def outcome(contexts: Tensor, without: Sequence[int] = ()) -> Outcome:
        y = layer.combine(x, contexts[:, :, 0].to(x.dtype), None)
        if len(without):
            y = y.clone()
            y[:, :, list(without)] = 0
        return decisions(y if network.feedforward is None else network.feedforward(y))

    def from_contexts(contexts: Tensor) -> Outcome:
        if contexts.dim() == 4:
            return outcome(contexts)
        several = [outcome(one) for one in contexts]
        probs, decision, score = (
            torch.stack([getattr(o, key) for o in several]) for key in ("probs", "decision", "score")
        )
        return Outcome(probs, several[0].unit_mask, decision, score)

    def without_slices(heads: Sequence[int]) -> Outcome:
        return outcome(torch.einsum("bhqt,bhtd->bhqd", weights, values), heads)

    return AttentionView(
        weights, values, mask, torch.ones_like(mask[:, :1]), [f"lal.{h:03d}" for h in range(weights.shape[1])],
        by_mixing(values, from_contexts), tuple(examples), from_contexts, None if source.mixed else without_slices,
    )  # fmt: skip


@torch.no_grad()
def view_of_span_layer(
    source: SpanLayer,
    sentences: Sentences,
    decide: str = "spans",
    spans: Spans | None = None,
    examples: Sequence[int] = (),
) -> AttentionView:
    """Return the view of label attention inside the span, on the spans of all sentences, in their order.

    The only unit is the label of the span, out of all labels and the empty one; its score counts (label is as given, 1). To take
    out a head's slice is to take out its sum; the boundary score of its label stays.

    Args: decide: spans. spans: those of each sentence; None: those of the parse. examples: the numbers of the sentences in
        their data.
    Raises: ParameterError for another decision, LalkitError without a span.
    Returns: weights [B, H, 1, T] for B spans of at most T words and H heads, one for each label (also <H>); values [B, H, T, 1].
    """
    if decide != "spans":
        remedy = "Give spans: label attention inside the span has no part in arcs."
        raise ParameterError(f"decide is {decide!r}", remedy=remedy)
    network, vocab, scorer = source.network, source.collator.vocab, source.layer
    device = next(network.parameters()).device
    network.eval()
    spans = _parsed(source, sentences) if spans is None else spans
    places = [(b, *span) for b, in_sentence in enumerate(spans) for span in in_sentence]
    if not places:
        raise LalkitError("there is no span to look at", remedy="Give at least one sentence with constituents.")
    b, start, end = (torch.tensor([place[k] for place in places], device=device) for k in range(3))
    right = torch.tensor([vocab.label_index.get(label, -2) for *_, label in places], device=device)
    parts = network(source.collator(sentences).to(device), chart_gradient=False).span_parts
    logits, evidence, *_ = parts
    heads = torch.arange(logits.shape[-1], device=device)
    every_b, every_start, every_end = (x.repeat_interleave(len(heads)) for x in (b, start, end))
    label = heads.repeat(len(b))
    words = start[:, None] + torch.arange(int((end - start).max()), device=device)
    inside = words < end[:, None]
    words = words.clamp(max=logits.shape[1] - 1)
    weights = scorer.attention(logits, every_b, every_start, every_end, label).unflatten(0, (len(b), len(heads)))
    weights = weights.gather(2, words[:, None].expand(-1, len(heads), -1)) * inside[:, None]
    values = (evidence[b[:, None], words] * inside[..., None]).transpose(1, 2)[..., None].to(weights.dtype)
    scores = scorer.at(parts, b=every_b, i=every_start, j=every_end, label=label + 1).unflatten(0, (len(b), -1))
    boundary = scores - (weights * values[..., 0]).sum(-1)
    units = torch.ones_like(right, dtype=torch.bool)[:, None]

    def from_contexts(contexts: Tensor) -> Outcome:
        scores = contexts[..., 0, 0] + boundary
        probs = torch.softmax(torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1).double(), -1)
        return judged(probs[..., None, :], units, right[:, None])

    def without_slices(out: Sequence[int]) -> Outcome:
        contexts = torch.einsum("bht,bhtd->bhd", weights, values)[:, :, None]
        contexts[:, list(out)] = 0
        return from_contexts(contexts)

    numbers = examples or range(len(sentences))
    return AttentionView(
        weights[:, :, None], values, inside, torch.ones_like(inside[:, :1]),
        [f"span.{name}" for name in vocab.labels[1:]], by_mixing(values, from_contexts),
        tuple(numbers[s] * STRIDE + i * 1000 + j for s, i, j, _ in places), from_contexts, without_slices,
    )  # fmt: skip


def layer_input(network: Network, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what the label attention gets: the vectors x and the mask."""
    inputs: list[tuple[Tensor, Tensor]] = []
    hook = network.label_attention.register_forward_pre_hook(lambda module, arguments: inputs.append(arguments[:2]))
    try:
        network(batch, chart_gradient=False)
    finally:
        hook.remove()
    return inputs[0]


def _parsed(source: AttributionSource, sentences: Sentences) -> Spans:
    predictions = predict(source.network, source.collator, sentences, lam=source.lam)
    return [[span[:3] for span in prediction.spans] for prediction in predictions]


def span_decisions(network: Network, collator: Collator, spans: Spans, device) -> Callable[[Tensor], Outcome]:
    """Return a function from y [B, T, H, d] to the labels of these spans."""
    most = max(1, *map(len, spans))
    places = torch.zeros(len(spans), most, 2, dtype=torch.long, device=device)
    label = torch.full((len(spans), most), -1, device=device)  # -1: padding
    for b, in_sentence in enumerate(spans):
        for u, (first, last, name) in enumerate(in_sentence):
            places[b, u] = torch.tensor([first, last])
            label[b, u] = collator.vocab.label_index.get(name, -2)  # -2: a label that is never right
    start, end = places.unbind(-1)
    sentence, scorer = torch.arange(len(spans), device=device)[:, None], cast(SpanScorer, network.spans)

    def decide(y: Tensor) -> Outcome:
        projected, _ = scorer.project(fenceposts(y, network.slice))
        hidden = torch.relu(scorer.norm(projected[sentence, end] - projected[sentence, start] + scorer.bias))
        scores = scorer.second(hidden)
        scores = torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)
        return judged(torch.softmax(scores.double(), -1), label != -1, label)

    return decide


def _arc_decisions(network: Network, batch: Batch) -> Callable[[Tensor], Outcome]:
    """Return a function from y [B, T, H, d] to the head words of all words."""
    gold = batch.heads if batch.heads is not None else torch.full_like(batch.tags, -2)

    def decide(y: Tensor) -> Outcome:
        log = arc_log_probabilities(network.arcs.arcs(network.arcs.parts(y.flatten(-2))), batch.word_mask)
        probs = torch.where(log == 0, 0.0, log.double().exp())  # 0 stands for what is impossible
        return judged(probs, batch.word_mask, gold)

    return decide
