"""Measure two functions in turn, and make one row of the table from their times and their memory.

Also here: the network and the sentences on which the whole parser is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate
from math import log
from statistics import median

import torch
from torch import nn

from lalkit.config import preset
from lalkit.errors import ParameterError
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.network.word_vectors import PretrainedEncoder, random_encoder
from lalkit.treebank.check import subset
from lalkit.treebank.corpora import find, load
from lalkit.treebank.tree import Sentence

LARGE = 100_000_000  # an encoder with more weights than this is measured on a few sentences only
FEW = 24
# The ratio of these routines says how many times as long ours takes.
MULTIPLES = ("probabilities", "look", "parse", "start", "parts", "train", "beside")


@dataclass(frozen=True)
class Settings:
    """repeats: rounds of each comparison; preset and random_weights: the network of `parse`, `train` and the like."""

    device: str = "cpu"
    repeats: int = 7
    preset: str = "minilm"
    random_weights: bool = False

    def at_most(self, repeats: int) -> Settings:
        """Return the same settings with fewer rounds, for comparisons that take long."""
        return replace(self, repeats=min(self.repeats, repeats))


def compare(
    settings: Settings, routine: str, case: str, mode: str, baseline: str, ours: Callable, theirs: Callable, memory=True
) -> dict:
    """Return one row. Its ratio says how many times as long the baseline takes; for `MULTIPLES`, how many times as long ours.

    Args:
        routine, case, mode, baseline: names for the row.
        ours, theirs: the two functions; `theirs` is the baseline.
        memory: also compare the peaks of memory, as ours / baseline, beyond what was held before; never for `MULTIPLES`,
            whose baseline is a part of ours.
    """
    compared = row(settings, routine, case, mode, baseline, alternate(settings, ours, theirs))
    if memory and routine not in MULTIPLES:
        compared["memory_ratio"] = round(peak_bytes(ours, settings.device) / peak_bytes(theirs, settings.device), 3)
    return compared


def alternate(settings: Settings, *functions: Callable) -> list[tuple[float, ...]]:
    """Return the milliseconds of each function, called in turn `repeats` times. A first call of each is not counted."""
    for function in functions:
        function()
    return [tuple(milliseconds(f, settings.device) for f in functions) for _ in range(settings.repeats)]


def row(
    settings: Settings, routine: str, case: str, mode: str, baseline: str,
    pairs: Sequence[tuple[float, ...]], ratios: Sequence[float] = (),
) -> dict:  # fmt: skip
    """Return a row of the table: medians over the rounds.

    pairs: milliseconds of (ours, baseline) in each round; ratios: by default those that `compare` describes.
    """
    ratios = ratios or [a / b if routine in MULTIPLES else b / a for a, b in pairs]
    return {
        "routine": routine, "case": case, "mode": mode, "device": settings.device, "baseline": baseline,
        "ours_ms": round(median(a for a, _ in pairs), 4), "baseline_ms": round(median(b for _, b in pairs), 4),
        "ratio": round(median(ratios), 4), "ratio_min": round(min(ratios), 4), "ratio_max": round(max(ratios), 4),
        "memory_ratio": None,
    }  # fmt: skip


def milliseconds(function: Callable, device: str = "cpu") -> float:
    """Return the time of one call. On a GPU it waits for the work before the call, and for that of the call."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    wait()
    started = time.perf_counter()
    function()
    wait()
    return 1000 * (time.perf_counter() - started)


def peak_bytes(function: Callable, device: str = "cpu") -> int:
    """Return the most bytes that torch holds at once while the function runs, beyond what it held before; at least 1."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return max(1, torch.cuda.max_memory_allocated() - before)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda e: e.start_ns())]
    return max(1, *accumulate(changes, initial=0))


def growth(small: tuple[float, float], large: tuple[float, float]) -> float:
    """Return the exponent with which time grows between two points (size, milliseconds)."""
    return log(large[1] / small[1]) / log(large[0] / small[0])


def network_and_sentences(settings: Settings) -> tuple[Network, Collator, list[Sentence], str]:
    """Return (network with new upper layers, collator, sentences of a test part, the name of these sentences).

    The sentences are the test part of the PTB sample, or of our own sample where that corpus is missing. A large encoder
    gets a few of them, evenly spread.
    """
    treebank, name = ("ptb-sample", "PTB sample test") if find("ptb-sample") else ("sample", "sample test")
    train, test = (list(load(treebank, part).sentences) for part in ("train", "test"))
    vocab = Vocab.build(train)
    torch.manual_seed(0)
    config = preset(settings.preset)
    with random_encoder(config.model) if settings.random_weights else nullcontext(config.model) as model:
        network = Network(model, vocab, weights=not settings.random_weights)
        collator = Collator(vocab, model.encoder)
    if sum(p.numel() for p in network.words.parameters()) > LARGE:
        test = subset(test, FEW)
        name += f", {len(test)} sentences"
    return network.to(settings.device), collator, test, name


def transformer(settings: Settings, network: Network) -> nn.Module:
    """Return the bare encoder of a network. Raises ParameterError if the encoder is not a pretrained one."""
    if not isinstance(network.words, PretrainedEncoder):
        problem = f"the preset {settings.preset} has no pretrained encoder to compare with"
        raise ParameterError(problem, remedy="Try --preset minilm.")
    return network.words.transformer
