"""The parser's label attention as the shared probes see it: H heads, one query for the whole sentence, many decisions.

y_h[t] = LN(R (x_t + P c_h)): other weights are other contexts c_h, and with them the outputs, the fenceposts and the scores are
computed anew, from the same x. What comes before the label attention is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.errors import ModelError
from lalkit.interpret.look import Span, refuse_mixed
from lalkit.interpret.span_view import span_view
from lalkit.model.parser import Network, arc_log_probabilities
from lalkit.model.scores import fenceposts
from lalkit.predict import predict
from lalkit.probes.view import AttentionView, Outcome
from lalkit.treebank.tree import Sentence

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
