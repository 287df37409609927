"""One training step: the loss (Mrini et al. 2020, eq. 12), its gradient, the optimizer, and the learning rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lalkit.chart.cky import SUBHEAD
from lalkit.chart.loss import arc_loss, span_likelihood_loss, span_margin_loss
from lalkit.config import Config, TrainConfig
from lalkit.network.batches import IGNORE, Batch, batches
from lalkit.network.model import Model, bf16_is_fast
from lalkit.network.parser import Network
from lalkit.treebank.check import Lessons
from lalkit.treebank.tree import Sentence

MAX_LENGTH = 150  # longer sentences are left out of training, but not out of evaluation [D]
TERMS = ("loss", "spans", "arcs", "arc_labels", "tags")  # the keys of `losses`, in its order
TAG_WEIGHT = 0.2  # weight of the cross-entropy of tags [D]


def begin(config: Config, sentences: Sequence[Sentence], device: str = "auto") -> tuple[Model, torch.optim.Optimizer]:
    """Return a new model for these sentences, and its optimizer. device: as in `find_device`."""
    model = Model.new(config, sentences, device)
    return model, make_optimizer(model.network, config.train)


def groups_of(lessons: Lessons, train: TrainConfig, epoch: int) -> list[list[Sentence]]:
    """Return the batches of an epoch. All sentences of a batch have the same layers."""
    sentences = lessons.epoch(epoch)
    kinds = [(s.constituents is None, s.heads is None) for s in sentences]
    groups = batches([len(s) for s in sentences], train.batch_tokens, train.seed, epoch, kinds)
    return [[sentences[i] for i in group] for group in groups]


def add_gradient(model: Model, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """Add the gradient of the loss of these sentences. Return the terms of the loss."""
    batch, kind = model.collator(sentences, gold=True).to(model.device), model.device.type
    autocast = model.config.train.autocast and bf16_is_fast(kind)
    with torch.autocast(kind, torch.bfloat16, enabled=autocast):
        terms = losses(model, batch)
    terms["loss"].backward()
    return terms


def losses(model: Model, batch: Batch) -> dict[str, Tensor]:
    """Return the weighted terms of eq. 12, each a mean over sentences, and their sum as 'loss'.

    The terms of a layer for which the batch has no gold are 0. All sentences of a batch have the same layers.

    Without heads a joint parser's gold has no groups <H>: they are not known, because heads by our rules would give other
    groups than the heads of Universal Dependencies. The loss would then teach that there are no groups. So <H> is forbidden in
    the charts of such sentences [D]: they teach nothing about it, neither for nor against.
    """
    network, config = model.network, model.config.train
    output = network(batch, chart_gradient=config.objective != "margin", chart=batch.spans is not None)
    if batch.heads is None and network.config.task == "joint":
        index = torch.tensor([SUBHEAD], device=output.label_scores.device)
        output = replace(output, label_scores=output.label_scores.index_fill(-1, index, -torch.inf))
    terms = {name: output.arc_scores.new_zeros(()) for name in TERMS[1:]}
    if batch.spans is not None and config.objective == "span-likelihood":
        terms["spans"] = span_likelihood_loss(output.label_scores, batch.lengths, batch.spans)
    elif batch.spans is not None:
        scores_at = partial(network.spans.at, output.span_parts)
        gold = batch.lengths, batch.spans
        terms["spans"] = span_margin_loss(output.label_scores, *gold, torch.get_num_threads(), scores_at)
    if batch.heads is not None:
        terms["arcs"] = config.arc_weight * arc_loss(output.arc_scores, batch.heads, batch.word_mask)
        arc_labels = _cross_entropy(network.arc_labels(output, batch.heads), batch.arc_labels)
        terms["arc_labels"] = config.arc_weight * arc_labels
    terms["tags"] = TAG_WEIGHT * _cross_entropy(output.tag_scores, batch.tags)
    terms = {name: term / len(batch.lengths) for name, term in terms.items()}
    return {"loss": sum(terms.values()), **terms}


def _cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")


def make_optimizer(network: Network, config: TrainConfig) -> torch.optim.Optimizer:
    """Return AdamW over two groups of weights: the pretrained encoder has a learning rate of its own."""
    trained = [p for p in network.parameters() if p.requires_grad]
    encoder = {id(p) for p in getattr(network.words, "transformer", torch.nn.Module()).parameters()}
    groups = [
        {"params": [p for p in trained if id(p) not in encoder], "rate": config.rate},
        {"params": [p for p in trained if id(p) in encoder], "rate": config.encoder_rate},
    ]
    groups = [group for group in groups if group["params"]]
    settings: dict = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0}  # [R], without decay [D]
    return torch.optim.AdamW(groups, fused=True, **settings)


def rate_factor(config: TrainConfig, step: int, progress: float) -> float:
    """Return the share of the full learning rate: a linear warm-up, then, with linear decay, the share of the run that is left.

    progress: the share of the planned epochs that is done.
    """
    warm = (step + 1) / config.warmup if config.warmup >= 1 else progress / config.warmup if config.warmup else 1.0
    return min(1.0, warm) * (max(0.0, 1.0 - progress) if config.decay == "linear" else 1.0)


def milliseconds(function: Callable, device: str = "cpu", clock: Callable = time.perf_counter) -> float:
    """Return the milliseconds of one call. On a GPU, wait for earlier work before it, and for the call's work after it."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    wait()
    started = clock()
    function()
    wait()
    return 1000 * (clock() - started)
