"""What a training step minimises (eq. 12), and how far it goes: losses, optimizer, learning rates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lalkit.chart.loss import arc_loss, span_margin_loss
from lalkit.config import TrainConfig
from lalkit.network.batches import IGNORE, Batch
from lalkit.network.parser import Network, ParserOutput


def terms_of(config: TrainConfig) -> tuple[str, ...]:
    """The names of what `losses` returns."""
    return ("loss", "spans", "arcs", "arc_labels", "tags") + ("head_words",) * (config.head_word_weight > 0)


def losses(network: Network, batch: Batch, config: TrainConfig) -> dict[str, Tensor]:
    """The terms of eq. 12, each a mean over sentences, weighted as they are added up; 'loss' is their sum. The terms of a layer
    that the batch has no gold for are 0."""
    output = network(batch, chart_gradient=False)
    words, threads = batch.word_mask, torch.get_num_threads()
    scores_at = partial(network.label_scores_at, output)
    terms = {name: output.arc_scores.new_zeros(()) for name in terms_of(config)[1:]}
    if batch.spans is not None:
        terms["spans"] = span_margin_loss(output.label_scores, batch.lengths, batch.spans, threads, scores_at)
    if batch.heads is not None:
        arc_labels = _cross_entropy(network.arc_labels(output, batch.heads), batch.arc_labels)
        terms["arcs"] = config.arc_weight * arc_loss(output.arc_scores, batch.heads, words)
        terms["arc_labels"] = config.arc_weight * arc_labels
    if config.head_word_weight and batch.spans is not None and batch.heads is not None:
        terms["head_words"] = config.head_word_weight * head_word_loss(network, output, batch)
    terms["tags"] = config.tag_weight * _cross_entropy(output.tag_scores, batch.tags)
    terms = {name: term / len(batch.lengths) for name, term in terms.items()}
    return {"loss": sum(terms.values()), **terms}


def head_word_loss(network: Network, output: ParserOutput, batch: Batch) -> Tensor:
    """- sum over gold spans (two words and more) of log a(head word), a being the attention of the span's label inside it, and
    the head word the one whose head is outside [D]."""
    spans = [(b, i, j, label) for b, own in enumerate(batch.spans) for i, j, label in own if j - i > 1]
    if not spans:
        return output.arc_scores.new_zeros(())
    b, i, j, label = torch.tensor(spans, device=output.arc_scores.device).T
    logits = network.spans.logits_inside(output.span_parts[0], b, i, j, label - 1)
    heads, place = batch.heads[b], torch.arange(logits.shape[1], device=logits.device)
    outside = (place >= i[:, None]) & (place < j[:, None]) & ((heads <= i[:, None]) | (heads > j[:, None]))
    return F.cross_entropy(logits, outside.int().argmax(-1), reduction="sum")


def _cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")


def make_optimizer(
    network: Network, parameters: Sequence[torch.nn.Parameter], config: TrainConfig
) -> torch.optim.Optimizer:
    """AdamW over two groups, the pretrained encoder with its own rate."""
    encoder = {id(p) for p in getattr(network.words, "transformer", torch.nn.Module()).parameters()}
    groups = [
        {"params": [p for p in parameters if id(p) not in encoder], "rate": config.rate},
        {"params": [p for p in parameters if id(p) in encoder], "rate": config.encoder_rate},
    ]
    return torch.optim.AdamW(
        [g for g in groups if g["params"]],
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )


def rate_factor(config: TrainConfig, step: int, progress: float) -> float:
    """Share of the full rate: linear warm-up over steps, times (linear decay) what is left of the planned epochs."""
    warm = min(1.0, (step + 1) / max(config.warmup, 1))
    return warm * (max(0.0, 1.0 - progress) if config.decay == "linear" else 1.0)


def has_bf16(device: torch.device) -> bool:
    """Whether bf16 is computed in hardware; where it is emulated, a step takes 15 times as long as in float32."""
    return device.type == "cuda" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
