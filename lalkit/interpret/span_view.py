"""Label attention inside the span as the shared probes see it: an example is a span, its keys are the words of the span.

A(i, j, l) = sum_t a_t v_t,l: weights are a, values the evidence v (of size 1), a context is A itself, and the scores of all
labels are contexts plus boundaries. So whatever a probe does to weights it does within the span, and nothing is computed anew
but the sum. Arcs see nothing of this attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.interpret.look import Span
from lalkit.interpret.span_terms import refuse_outside
from lalkit.model.parser import Network
from lalkit.predict import predict
from lalkit.probes.view import AttentionView, Outcome
from lalkit.treebank.tree import Sentence

STRIDE = 1_000_000  # an example's number: its sentence's times this, and its place among the spans (start * 1000 + end)


@torch.no_grad()
def span_view(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    spans: Sequence[Sequence[Span]] | None = None,
    examples: Sequence[int] = (),
    lam: float = 0.5,
) -> AttentionView:
    """weights [B, H, 1, T], B spans of at most T words, sentence by sentence in the order given (by default those of the parse);
    H heads, one per label, <H> among them; values [B, H, T, 1].

    Its only unit is the label of the span, of all labels with the empty one; its score counts (label as given, 1). A head's slice
    is its sum: the boundaries of its label stay. examples: the sentences' numbers. Use some tens of sentences at a time.

    Raises ModelError for a parser without label attention inside the span.
    """
    refuse_outside(network)
    scorer, device = network.spans, next(network.parameters()).device
    network.eval()
    if spans is None:
        parsed = predict(network, collator, sentences, lam=lam)
        spans = [[(s.start, s.end, s.label) for s in p.spans] for p in parsed]
    places = [(b, *span) for b, some in enumerate(spans) for span in some]
    b, start, end = (torch.tensor([place[k] for place in places], device=device) for k in range(3))
    right = torch.tensor([collator.vocab.label_index.get(label, -2) for *_, label in places], device=device)
    parts = network(collator(sentences).to(device), chart_gradient=False).span_parts
    logits, evidence, *_ = parts
    heads = torch.arange(logits.shape[-1], device=device)

    def every(x: Tensor) -> Tensor:
        return x.repeat_interleave(len(heads))

    label = heads.repeat(len(b))
    most = int((end - start).max())
    words = start[:, None] + torch.arange(most, device=device)
    inside = words < end[:, None]
    words = words.clamp(max=logits.shape[1] - 1)
    weights = scorer.attention(logits, every(b), every(start), every(end), label).unflatten(0, (len(b), len(heads)))
    weights = weights.gather(2, words[:, None].expand(-1, len(heads), -1)) * inside[:, None]
    values = (evidence[b[:, None], words] * inside[..., None]).transpose(1, 2)[..., None].to(weights.dtype)
    scores = scorer.at(*parts, b=every(b), i=every(start), j=every(end), label=label + 1).unflatten(0, (len(b), -1))
    boundary = scores - (weights * values[..., 0]).sum(-1)

    def from_contexts(contexts: Tensor) -> Outcome:
        found = contexts[..., 0, 0] + boundary
        probs = torch.softmax(torch.cat([torch.zeros_like(found[..., :1]), found], dim=-1).double(), -1)[..., None, :]
        decision, ones = probs.argmax(-1), torch.ones_like(right)[:, None]
        count = (decision == right[:, None]).double().sum(-1)
        return Outcome(probs, ones.bool(), decision, torch.stack([count, torch.ones_like(count)], dim=-1))

    def from_weights(given: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", given.to(values.dtype), values))

    def without_slices(out: Sequence[int]) -> Outcome:
        contexts = torch.einsum("bht,bhtd->bhd", weights, values)[:, :, None]
        contexts[:, list(out)] = 0
        return from_contexts(contexts)

    numbers = examples or range(len(sentences))
    return AttentionView(
        weights[:, :, None], values, inside, torch.ones_like(inside[:, :1]),
        [f"span.{name}" for name in collator.vocab.labels[1:]], from_weights,
        tuple(numbers[s] * STRIDE + i * 1000 + j for s, i, j, _ in places), from_contexts, without_slices,
    )  # fmt: skip


def of_spans(values: Sequence[Sequence[int]], spans: Sequence[Sequence[Span]]) -> Tensor:
    """[B, T], as the keys of a view of these spans: a number of every word (such as its tag), -1 on padding."""
    rows = [list(own[start:end]) for own, some in zip(values, spans, strict=True) for start, end, _ in some]
    most = max(map(len, rows))
    return torch.tensor([row + [-1] * (most - len(row)) for row in rows])
