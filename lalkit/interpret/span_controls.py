"""What if the words of a span had attended otherwise? The controls of `controls`, for label attention inside the span.

A(i, j, l) is a sum over the words of the span of attention times evidence, so each control is another set of logits or of
evidence; boundaries stay. A control changes all spans of the chart, and the parse is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from lalkit.batch.collate import Collator
from lalkit.interpret.controls import _derangement
from lalkit.interpret.span_terms import refuse_outside
from lalkit.model.parser import Network
from lalkit.predict import predict_batches
from lalkit.treebank.tree import Sentence

# (logits [B, N, H], evidence [B, N, H], lengths [B]) -> (logits, evidence)
Change = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
SPAN_CONTROLS = {
    "as trained": "attention and evidence as they are",
    "uniform attention": "every word of a span has the same weight",
    "swapped attention": "words have the attention of another sentence's words, and their own evidence",
    "swapped sentences": "every sentence has the words' attention and evidence of another one",
    "swapped heads": "every label has the attention and evidence of another label",
    "mean": "A at its mean over the spans of training sentences, one number a label",
    "zeroed": "A at zero",
}


def span_changes(mean: Float[Tensor, "h"], seed: int = 0) -> dict[str, Change]:
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


def only(head: int, value: float | Tensor = 0.0) -> Change:
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
def span_changed(network: Network, change: Change) -> Iterator[Network]:
    """The network with other logits and evidence, while it lasts. Raises ModelError for a parser that has none."""
    refuse_outside(network)
    usual, lengths = network.spans.project, []
    hook = network.register_forward_pre_hook(lambda module, given: lengths.append(given[0].lengths))

    def project(x: Tensor, posts: Tensor) -> tuple[Tensor | None, ...]:
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
