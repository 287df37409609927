"""Estimate, before a training run, how many weights it trains, how much memory it needs, and how long an epoch takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import psutil
import torch

from lalkit.chart.machine import available_bytes
from lalkit.config import Config
from lalkit.network.batches import batches
from lalkit.training.objective import Learner, check_heads, in_parts
from lalkit.treebank.check import lessons
from lalkit.treebank.tree import Sentence

ADAM = 8  # bytes for each trained weight: two moments of 32 bits


def estimate(config: Config, treebank: str) -> dict:
    """Compute a few parts of the first epoch's batches and one update, on the device that training would use.

    Nothing is written. The memory of the largest part is extrapolated from two short parts, linearly in their words. The
    time of an epoch comes from the measured seconds per word; workers are assumed to share a step as well as cores do.

    Args:
        config: The settings of the run.
        treebank: A treebank's name or folder, or a mixture of them.

    Returns:
        weights and trained: numbers of weights. In bytes: fixed (weights, gradients and moments), activations (for the backward
        pass of the largest part of a batch), program (all else), available (free memory; None if not known). steps and words
        of an epoch. largest: words of the largest part, with padding. seconds of an epoch, without evaluation.

    Raises:
        ModelError, CorpusError: where training would raise them.
    """
    check_heads(config)
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else available_bytes()
    train = config.train
    material = lessons(treebank, config.model.task, train.max_length)
    learner = Learner(config, material.sentences)
    network, trained = learner.network.train(), sum(p.numel() for p in learner.parameters)
    weights = sum(p.numel() * p.element_size() for p in network.parameters())
    program = max(psutil.Process().memory_info().rss - weights, 0)

    sentences = material.epoch(0)
    kinds = [(s.constituents is None, s.heads is None) for s in sentences]
    groups = batches([len(s) for s in sentences], train.batch_tokens, train.seed, 0, kinds)
    parts = [part for group in groups for part in in_parts([sentences[i] for i in group], train.part_tokens)]
    parts.sort(key=size_of)
    largest, words = size_of(parts[-1]), sum(map(size_of, parts))
    probes = [parts[len(parts) * k // 6] for k in (1, 3, 5)]

    # These two are not timed: they also compile the kernels.
    short = probes[0][: max(1, len(probes[0]) // 3)]
    kept = [kept_bytes(learner, part) for part in (short, probes[0])]
    per_word = (kept[1] - kept[0]) / max(size_of(probes[0]) - size_of(short), 1)
    timed(_update, learner)  # the first update creates the moments
    update = timed(_update, learner)
    spent = sum(timed(learner.add_gradient, part) for part in probes)
    computing = spent / sum(map(size_of, probes)) * words / max(train.workers, 1)
    return {
        "weights": sum(p.numel() for p in network.parameters()), "trained": trained,
        "fixed": weights + trained * (ADAM + 4), "activations": int(kept[1] + per_word * (largest - size_of(probes[0]))),
        "program": program, "available": free, "steps": len(groups), "words": sum(map(len, sentences)), "largest": largest,
        "seconds": computing + len(groups) * update,
    }  # fmt: skip


def describe(found: dict, config: Config) -> str:
    """Return an estimate as lines for people, with advice if the memory is too small."""
    gb = {name: f"{found[name] / 1e9:.1f} GB" for name in ("fixed", "activations", "program")}
    needed, seconds = found["fixed"] + found["activations"], found["seconds"]
    minutes = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    lines = [
        f"weights     {found['weights'] / 1e6:.1f} M, of which {found['trained'] / 1e6:.1f} M are trained",
        f"memory      about {(needed + found['program']) / 1e9:.1f} GB: {gb['fixed']} for weights, gradients and moments, "
        f"{gb['activations']} to compute {found['largest']} words at once, {gb['program']} for the program",
        f"an epoch    about {minutes}: {found['steps']:,} steps, {found['words']:,} words; {config.train.epochs} epochs take "
        f"{seconds * config.train.epochs / 3600:.1f} hours, without evaluation",
    ]
    if found["available"] is not None and needed > found["available"]:
        now = config.train.part_tokens or config.train.batch_tokens
        advice = f"lower train.part_tokens (now {now}); it changes memory, but no result"
        lines.append(f"too much    {found['available'] / 1e9:.1f} GB are free: {advice}")
    return "\n".join(lines)


def size_of(part: Sequence[Sentence]) -> int:
    """Return the number of words, with padding."""
    return len(part) * max(map(len, part))


def kept_bytes(learner: Learner, part: Sequence[Sentence]) -> int:
    """Return how many bytes a forward pass keeps for its backward pass, without weights. Each piece of memory counts once."""
    weights = {p.untyped_storage().data_ptr() for p in learner.network.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        learner.add_gradient(part)
    return sum(kept.values())


def _update(learner: Learner) -> None:
    """Run one optimizer step at learning rate 0, so that the weights stay as they are."""
    for p in learner.parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
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
