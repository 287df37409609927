"""One row of the table: two functions run in turn, medians and the spread of their ratio, and what memory each takes."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

import torch

from lalkit.errors import LalkitError

TWINS = Path(__file__).parents[2] / "tests" / "reference"


@dataclass(frozen=True)
class Settings:
    """repeats: rounds of each comparison; preset and random_weights: the network of `parse` and `train`."""

    device: str = "cpu"
    repeats: int = 7
    preset: str = "minilm"
    random_weights: bool = False
    memory: bool = True


def compare(
    settings: Settings, routine: str, case: str, mode: str, baseline: str, ours: Callable, theirs: Callable, memory=True
) -> dict:
    """ratio: how many times as long the baseline takes (for 'parse' and 'train', where ours holds the baseline, see
    `share`); memory_ratio: our peak over the baseline's, beyond what was there before, or None."""
    pairs = alternate(settings, ours, theirs)
    row = _row(settings, routine, case, mode, baseline, pairs, [b / a for a, b in pairs])
    if memory and settings.memory:
        row["memory_ratio"] = round(peak_bytes(ours, settings.device) / peak_bytes(theirs, settings.device), 3)
    return row


def share(
    settings: Settings, routine: str, case: str, mode: str, baseline: str, ours: Callable, theirs: Callable
) -> dict:
    """As `compare`, with ratio: how many times as long *ours* takes."""
    pairs = alternate(settings, ours, theirs)
    return _row(settings, routine, case, mode, baseline, pairs, [a / b for a, b in pairs])


def alternate(settings: Settings, *functions: Callable) -> list[tuple[float, ...]]:
    """Milliseconds of each function, in turn, `repeats` times after a first call that is not counted."""
    for function in functions:
        function()
    return [tuple(milliseconds(f, settings.device) for f in functions) for _ in range(settings.repeats)]


def _row(settings, routine, case, mode, baseline, pairs, ratios) -> dict:
    return {
        "routine": routine, "case": case, "mode": mode, "device": settings.device, "baseline": baseline,
        "ours_ms": round(median(a for a, _ in pairs), 4), "baseline_ms": round(median(b for _, b in pairs), 4),
        "ratio": round(median(ratios), 3), "ratio_min": round(min(ratios), 3), "ratio_max": round(max(ratios), 3),
        "memory_ratio": None,
    }  # fmt: skip


def milliseconds(function: Callable, device: str = "cpu") -> float:
    started = time.perf_counter()
    function()
    if device != "cpu":
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started)


def peak_bytes(function: Callable, device: str = "cpu") -> int:
    """The most that torch holds at once while the function runs, beyond what it held before. At least 1."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return max(1, torch.cuda.max_memory_allocated() - before)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return max(1, most)


def twin(name: str):
    """A module of tests/reference. Raises LalkitError where lalkit was installed without its tests."""
    path = TWINS / f"{name}.py"
    if not path.is_file():
        raise LalkitError(
            "the slow twins are not here", where=str(path), remedy="Run `lalkit bench` in a clone of the repository."
        )
    spec = importlib.util.spec_from_file_location(f"lalkit_twin_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def growth(small: tuple[float, float], large: tuple[float, float]) -> float:
    """The exponent between two (size, milliseconds)."""
    return log(large[1] / small[1]) / log(large[0] / small[0])
