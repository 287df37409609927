"""Joint decoding of one random chart, O(n^4), against O(n^5): both compiled, both checking their input, the same trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from lalkit.bench.measure import Settings, alternate, compare, growth, twin
from lalkit.chart.joint import decode, decode_batch
from lalkit.chart.joint_torch import decode_batch_torch

LABELS = 112


def rows(settings: Settings) -> list[dict]:
    slow = twin("joint_n5").decode_n5
    found = []
    for words in (10, 20, 40, 80):
        chart = random_chart(words)
        found.append(
            compare(
                settings, "decode", f"{words} words", "numba", "O(n^5), numba",
                lambda chart=chart: decode(*chart), lambda chart=chart: slow(*chart), memory=False,
            )
        )  # fmt: skip
    return [*found, growth_row(settings), batch_row(settings)]


def random_chart(words: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=(words + 1, words + 1, LABELS)).astype(np.float32)
    labels[..., 0] = 0
    return labels, rng.normal(size=(words, words + 1)).astype(np.float32)


def growth_row(settings: Settings) -> dict:
    """ratio: the exponent of n between 40 and 120 words, from the fastest of the rounds."""
    charts = [random_chart(words) for words in (40, 120)]
    times = alternate(settings, *(lambda chart=chart: decode(*chart) for chart in charts))
    short, long = (min(t[i] for t in times) for i in range(2))
    exponents = [growth((40, a), (120, b)) for a, b in times]
    return {
        "routine": "decode", "case": "40 to 120 words", "mode": "growth exponent", "device": "cpu",
        "baseline": "40 words", "ours_ms": round(long, 4), "baseline_ms": round(short, 4),
        "ratio": round(growth((40, short), (120, long)), 3), "ratio_min": round(min(exponents), 3),
        "ratio_max": round(max(exponents), 3), "memory_ratio": None,
    }  # fmt: skip


def batch_row(settings: Settings) -> dict:
    """64 sentences of 40 words: torch on the device against numba over the cores, from scores where the network leaves them."""
    pairs = [random_chart(40, seed) for seed in range(64)]
    labels, arcs = (torch.from_numpy(np.stack(part)).to(settings.device) for part in zip(*pairs))
    lengths = [40] * len(pairs)
    few = replace(settings, repeats=min(settings.repeats, 3))

    def numba() -> None:
        on_cpu = labels.cpu().numpy(), arcs.cpu().numpy()
        decode_batch(list(zip(*on_cpu)))

    return compare(
        few, "decode", "64 x 40 words", f"torch on {settings.device}", "numba over the cores",
        lambda: decode_batch_torch(labels, arcs, lengths), numba, memory=False,
    )  # fmt: skip
