"""What a training run will take, before anyone waits for it: weights, memory, time for an epoch."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lalkit.chart.machine import available_bytes
from lalkit.config import Config, EncoderConfig
from lalkit.network.batches import batches
from lalkit.network.parser import Network
from lalkit.network.pretrained import random_encoder
from lalkit.network.vocabulary import Vocab
from lalkit.training.checkpoint import make_collator
from lalkit.training.loop import in_parts
from lalkit.training.objective import has_bf16, losses, make_optimizer
from lalkit.treebank.check import trainable
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

PROBES = 3  # parts of batches that are computed, from a short one to a long one
ADAM = 8  # bytes a trained weight: two moments in 32 bits


@dataclass(frozen=True)
class Estimate:
    """weights, trained: numbers. fixed, activations, program: bytes of weights with gradients and moments, of what the largest
    part keeps for its backward pass, of everything before. seconds: of an epoch, without evaluation."""

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

    @property
    def memory(self) -> int:
        return self.fixed + self.activations + self.program

    def lines(self, config: Config) -> list[str]:
        """For people."""
        epochs, hours = config.train.epochs, self.seconds * config.train.epochs / 3600
        found = [
            f"weights     {self.weights / 1e6:.1f} M, of which {self.trained / 1e6:.1f} M are trained",
            f"memory      about {_gb(self.memory)}: {_gb(self.fixed)} weights, gradients and moments, "
            f"{_gb(self.activations)} to compute {self.largest} words at once, {_gb(self.program)} the program",
            f"an epoch    about {_time(self.seconds)}: {self.steps:,} steps, {self.words:,} words; {epochs} epochs "
            f"{hours:.1f} hours; evaluation is not counted",
        ]
        if self.available is not None and self.memory - self.program > self.available:
            found.append(
                f"too much    {_gb(self.available)} are free: lower train.part_tokens (now "
                f"{config.train.part_tokens or config.train.batch_tokens}), which changes nothing but memory"
            )
        return found


def estimate(
    config: Config, treebank: str, *, random_weights: bool = False, say: Callable[[str], None] = print
) -> Estimate:
    """Computes a few parts of batches of the first epoch, and one update, on the device that training would use; writes nothing.

    random_weights: an encoder of the preset's published shape, not downloaded; its sub-words are then those of MiniLM's
    tokenizer. Memory: what a short part keeps, by its words; time: seconds a word, measured. Workers share a step's words
    as well as cores do. Raises ModelError or CorpusError as training would.
    """
    free = available_bytes()
    task = config.model.task
    sentences, _ = trainable(load(treebank, "train", task=task).sentences, config.train.max_length, task)
    vocab = Vocab.build(sentences, config.model.encoder.min_count, task)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    context = random_encoder(config.model) if random_weights else nullcontext(config.model)
    with context as model:
        network = Network(model, vocab, weights=not random_weights).to(device)
    program = max(_resident() - sum(p.numel() * p.element_size() for p in network.parameters()), 0)
    shown = replace(config, model=replace(config.model, encoder=EncoderConfig())) if random_weights else config
    collator = make_collator(shown, vocab)
    trained = [p for p in network.parameters() if p.requires_grad]
    groups = batches([len(s) for s in sentences], config.train.batch_tokens, config.train.seed, 0)
    parts = [part for group in groups for part in in_parts([sentences[i] for i in group], config.train.part_tokens)]
    parts.sort(key=_size)
    numbers = sum(p.numel() for p in network.parameters()), sum(p.numel() for p in trained)
    fixed = sum(p.numel() * p.element_size() for p in network.parameters())
    fixed += sum(p.numel() * (p.element_size() + ADAM) for p in trained)
    say(f"{numbers[0] / 1e6:.1f} M weights, {len(parts):,} parts of batches; computing a few of them")

    network.train()
    optimizer = make_optimizer(network, trained, config.train)

    def compute(part: Sequence[Sentence]) -> float:
        started = time.perf_counter()
        batch = collator(part, gold=True).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=config.train.autocast and has_bf16(device)):
            loss = losses(network, batch, config.train)["loss"]
        loss.backward()
        return time.perf_counter() - started

    largest = _size(parts[-1])
    chosen = [parts[(2 * k + 1) * len(parts) // (2 * PROBES)] for k in range(PROBES)]
    small, large = (
        _kept(network, compute, part) for part in (_first(chosen[0]), chosen[0])
    )  # not timed: compiles, too
    per_word = (large[1] - small[1]) / max(large[0] - small[0], 1)
    activations = int(large[1] + per_word * (largest - large[0]))
    update = _timed(lambda: _update(network, trained, optimizer, config))  # the first makes the moments
    update = _timed(lambda: _update(network, trained, optimizer, config))
    spent = sum(map(compute, chosen))
    workers = max(config.train.workers, 1)
    words = sum(map(_size, parts))
    seconds = spent / sum(map(_size, chosen)) * words / workers + len(groups) * update
    return Estimate(
        *numbers, fixed, activations, program, len(groups), sum(map(len, sentences)), largest, seconds, free
    )  # fmt: skip


def _first(part: Sequence[Sentence]) -> Sequence[Sentence]:
    return part[: max(1, len(part) // 3)]


def _kept(network: Network, compute: Callable, part: Sequence[Sentence]) -> tuple[int, int]:
    """(words, bytes kept for the backward pass)."""
    with _Kept(network) as kept:
        compute(part)
    return _size(part), kept.bytes


def _size(part: Sequence[Sentence]) -> int:
    """Words with padding."""
    return len(part) * max(map(len, part))


def _update(network: Network, trained: list, optimizer, config: Config) -> None:
    """One of no effect on what comes next: a rate of 0, and gradients of zeros where there are none."""
    for p in trained:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    torch.nn.utils.clip_grad_norm_(trained, max(config.train.clip, 1.0))
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()


def _timed(function: Callable[[], None]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


class _Kept(torch.autograd.graph.saved_tensors_hooks):
    """Counts the bytes that a forward pass keeps for the backward pass, weights apart, each piece of memory once."""

    def __init__(self, network: Network):
        self.bytes, self._seen = 0, {p.untyped_storage().data_ptr() for p in network.parameters()}
        super().__init__(self._pack, lambda tensor: tensor)

    def __enter__(self) -> _Kept:
        super().__enter__()
        return self

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor


def _resident() -> int:
    """The memory this process has, in bytes; where the system does not say, the most it has had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
