"""The classifier as the shared probes see it: one head, one query, one decision a text."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lalkit.probes.view import AttentionView, Outcome
from lalkit.transparent.batch import Batch
from lalkit.transparent.classifier import Classifier


def exact(model: Classifier) -> Classifier:
    """A copy in float64 for probes: padding then moves no number by more than 1e-12, and near-ties stay what they are."""
    return copy.deepcopy(model).double().eval()


@torch.no_grad()
def view(model: Classifier, batch: Batch, examples: Sequence[int] = ()) -> AttentionView:
    """H = Q = U = 1. weights [B, 1, 1, T] -> contexts -> the output layer, any number of weights at once.

    examples: the number of each example in its data.
    """
    found = model(batch)

    @torch.no_grad()
    def from_contexts(contexts: Tensor) -> Outcome:
        logits = model.classify(contexts[..., 0, 0, :], found.asked, batch.allowed)
        probs = torch.softmax(logits, dim=-1)[..., None, :]
        decision = probs.argmax(-1)
        right = (decision == batch.label[:, None]).to(probs.dtype)
        return Outcome(
            probs, torch.ones_like(batch.mask[:, :1]), decision, torch.cat([right, torch.ones_like(right)], -1)
        )

    def predict(weights: Tensor) -> Outcome:
        return from_contexts(torch.einsum("...bhqt,bhtd->...bhqd", weights, found.states[:, None]))

    return AttentionView(
        found.attention[:, None, None], found.states[:, None], batch.mask, torch.ones_like(batch.mask[:, :1]), ("attention",),
        predict, tuple(examples), from_contexts,
    )  # fmt: skip


def from_words(model: Classifier, batch: Batch, through_attention: bool = True) -> Callable[[Tensor, Tensor], Tensor]:
    """For `attribute`: (embedded [K, T, e], rows of the batch [K]) -> probabilities [K, 1, C]."""

    def function(embedded: Tensor, rows: Tensor) -> Tensor:
        found = model.read(embedded, batch.rows(rows), through_attention)
        return torch.softmax(found.logits, dim=-1)[:, None]

    return function


def from_some_words(model: Classifier, batch: Batch) -> Callable[[Tensor, Tensor], Tensor]:
    """For `rationale`: (embedded [B, t, e], mask [B, t]) of the words that are left -> probabilities [B, C]."""

    @torch.no_grad()
    def function(embedded: Tensor, mask: Tensor) -> Tensor:
        left = Batch(batch.examples, batch.x, mask, batch.question, batch.question_mask, batch.label, batch.allowed)
        return torch.softmax(model.read(embedded, left).logits, dim=-1)

    return function
