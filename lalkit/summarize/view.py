"""One attention of the summarizer as the shared probes see it: the decisions are the words of the true summary, each given those
before it."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.errors import ModelError
from lalkit.probes.view import AttentionView, Outcome
from lalkit.summarize.batch import Batch
from lalkit.summarize.model import Change, Summarizer

COPY = "copy"


def exact(model: Summarizer) -> Summarizer:
    """A copy in float64 for probes, as of the classifiers: near-ties stay what they are."""
    return copy.deepcopy(model).double().eval()


@torch.no_grad()
def view(model: Summarizer, batch: Batch, block: str, examples: Sequence[int] = ()) -> AttentionView:
    """weights [B, H, Q, T] of a block ('enc.0', 'cross.1'); U steps of the summary, its end too; C the extended vocabulary.

    Other weights are used wherever the block's are: where its first head is the one that copies, for copying too. block "copy":
    that head alone, and only what is copied changes. Raises ModelError for a block there is not.
    """
    if block not in (*model.blocks, COPY):
        raise ModelError(f"there is no attention {block!r}", remedy=f"One of {', '.join((*model.blocks, COPY))}.")
    top = f"cross.{model.config.layers - 1}"
    inside = top if block == COPY else block
    found, values = _values(model, batch, inside)
    weights, heads = found.weights[inside], [f"{inside}.{h}" for h in range(model.config.heads)]
    if block == COPY:
        weights, values, heads = weights[:, :1], values[:, :1], [COPY]
    memory = None if block.startswith("enc") else model.encode(batch)[0]

    @torch.no_grad()
    def one(given: Tensor) -> Tensor:
        change = Change(copy=given[:, 0]) if block == COPY else Change(weights={block: given})
        if memory is None:
            return model(batch, change).probs
        return model.decode(batch, memory, batch.before, change)[0]

    def predict(given: Tensor) -> Outcome:
        given = given.to(weights.dtype)
        probs = one(given) if given.dim() == 4 else torch.stack([one(w) for w in given])
        decision = probs.argmax(-1)
        right = ((decision == batch.target) & batch.target_mask).sum(-1)
        score = torch.stack([right, batch.target_mask.sum(-1).expand_as(right)], dim=-1).double()
        return Outcome(probs, batch.target_mask, decision, score)

    asking = batch.mask if block.startswith("enc") else batch.target_mask
    return AttentionView(weights, values, batch.mask, asking, heads, predict, tuple(examples))


def _values(model: Summarizer, batch: Batch, block: str):
    """(the output, what the block's heads mix [B, H, T, d / H])."""
    kind, number = block.split(".")
    layer = model.encoder[int(number)].own if kind == "enc" else model.decoder[int(number)].cross
    kept: list[Tensor] = []
    hook = layer.value.register_forward_hook(lambda module, given, out: kept.append(out))
    try:
        found = model(batch)
    finally:
        hook.remove()
    return found, kept[0].unflatten(-1, (layer.heads, -1)).transpose(1, 2)
