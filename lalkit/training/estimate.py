"""Estimate, before a training run, how many weights it trains, how much memory it needs, and how long an epoch takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import psutil
import torch
from torch import nn

from lalkit.chart.machine import available_bytes
from lalkit.config import Config
from lalkit.network.batches import batches
from lalkit.network.word_vectors import random_encoder
from lalkit.training.objective import Learner, check_heads, in_parts
from lalkit.treebank.check import lessons
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)
PROBES = 3  # parts of batches that are computed, from a short one to a long one
ADAM = 8  # bytes for each trained weight: two moments of 32 bits


@dataclass(frozen=True)
class Estimate:
    """What a run will need. All memory is in bytes.

    weights, trained: number of all weights, and of those that are trained. fixed: weights with their gradients and moments.
    activations: what the largest part of a batch keeps for its backward pass. program: everything that was there before.
    largest: words of that part, with padding. seconds: of one epoch, without evaluation. available: free memory. epochs: of the
    run. advice: what to do if memory is too small.
    """

    weights: int
    trained: int
    fixed: int
    activations: int
    program: int
    steps: int
    words: int
    largest: int
    seconds: float
    available: int | None
    epochs: int
    advice: str

    def lines(self) -> list[str]:
        """Return the estimate as lines for people."""
        needed = self.fixed + self.activations
        minutes = f"{self.seconds:.0f} seconds" if self.seconds < 120 else f"{self.seconds / 60:.0f} minutes"
        lines = [
            f"weights     {self.weights / 1e6:.1f} M, of which {self.trained / 1e6:.1f} M are trained",
            f"memory      about {_gb(needed + self.program)}: {_gb(self.fixed)} for weights, gradients and moments, "
            f"{_gb(self.activations)} to compute {self.largest} words at once, {_gb(self.program)} for the program",
            f"an epoch    about {minutes}: {self.steps:,} steps, {self.words:,} words; {self.epochs} epochs take "
            f"{self.seconds * self.epochs / 3600:.1f} hours, without evaluation",
        ]
        if self.available is not None and needed > self.available:
            lines.append(f"too much    {_gb(self.available)} are free: {self.advice}")
        return lines


def estimate(config: Config, treebank: str, *, random_weights: bool = False) -> Estimate:
    """Compute a few parts of the first epoch's batches and one update, on the device that training would use.

    Nothing is written. The memory of the largest part is extrapolated from two short parts, linearly in their words. The
    time of an epoch comes from the measured seconds per word; workers are assumed to share a step as well as cores do.

    Args:
        config: The settings of the run.
        treebank: A treebank's name or folder, or a mixture of them.
        random_weights: Use an encoder of the preset's published shape that is not downloaded, with MiniLM's tokenizer.

    Raises:
        ModelError, CorpusError: where training would raise them.
    """
    check_heads(config)
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else available_bytes()
    task, train = config.model.task, config.train
    material = lessons(treebank, task, train.max_length)
    with random_encoder(config.model) if random_weights else nullcontext(config.model) as model:
        learner = Learner(replace(config, model=model), material.sentences, weights=not random_weights)
    parameters, trained = list(learner.network.parameters()), learner.parameters
    memory = needed_by(parameters, trained)
    sentences = material.epoch(0)
    kinds = [(s.constituents is None, s.heads is None) for s in sentences]
    groups = batches([len(s) for s in sentences], train.batch_tokens, train.seed, 0, kinds)
    parts = [part for group in groups for part in in_parts([sentences[i] for i in group], train.part_tokens)]
    parts.sort(key=_size)
    largest, words = _size(parts[-1]), sum(map(_size, parts))
    logger.info(
        f"{memory['weights'] / 1e6:.1f} M weights, {len(parts):,} parts of batches; a few of them are computed now"
    )

    learner.network.train()
    chosen = [parts[(2 * k + 1) * len(parts) // (2 * PROBES)] for k in range(PROBES)]
    # These two are not timed: they also compile the kernels.
    short = _kept(learner, chosen[0][: max(1, len(chosen[0]) // 3)])
    long = _kept(learner, chosen[0])
    per_word = (long[1] - short[1]) / max(long[0] - short[0], 1)
    activations = int(long[1] + per_word * (largest - long[0]))
    timed(_update, learner)  # the first update creates the moments
    update = timed(_update, learner)
    spent = sum(timed(learner.add_gradient, part) for part in chosen)
    seconds = spent / sum(map(_size, chosen)) * words / max(train.workers, 1) + len(groups) * update
    now = train.part_tokens or train.batch_tokens
    return Estimate(
        **memory, activations=activations, steps=len(groups), words=sum(map(len, sentences)), largest=largest, seconds=seconds,
        available=free, epochs=train.epochs, advice=f"lower train.part_tokens (now {now}); it changes memory, but no result",
    )  # fmt: skip


def needed_by(parameters: Sequence[nn.Parameter], trained: Sequence[nn.Parameter]) -> dict[str, int]:
    """Return weights, trained, fixed and program of an `Estimate`."""
    weights = sum(p.numel() * p.element_size() for p in parameters)
    return {
        "weights": sum(p.numel() for p in parameters),
        "trained": sum(p.numel() for p in trained),
        "fixed": weights + sum(p.numel() * (p.element_size() + ADAM) for p in trained),
        "program": max(psutil.Process().memory_info().rss - weights, 0),
    }


def _kept(learner: Learner, part: Sequence[Sentence]) -> tuple[int, int]:
    """Return (words with padding, bytes that a forward pass keeps for its backward pass)."""
    return _size(part), kept_bytes(learner.network, lambda: learner.add_gradient(part))


def kept_bytes(network: nn.Module, compute: Callable[[], object]) -> int:
    """Return how many bytes a forward pass keeps for its backward pass.

    Weights do not count, and each piece of memory counts once.
    """
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        compute()
    return sum(kept.values())


def _size(part: Sequence[Sentence]) -> int:
    """Return the number of words, with padding."""
    return len(part) * max(map(len, part))


def _update(learner: Learner) -> None:
    """Run one optimizer step at learning rate 0, so that the weights stay as they are."""
    for p in learner.parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    torch.nn.utils.clip_grad_norm_(learner.parameters, max(learner.config.train.clip, 1.0))
    for group in learner.optimizer.param_groups:
        group["lr"] = 0.0
    learner.optimizer.step()


def timed(function: Callable, *arguments) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    function(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # a GPU computes on after the call
    return time.perf_counter() - started


def _gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
