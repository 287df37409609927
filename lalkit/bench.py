"""Speed as ratios, alternated in one process: the whole parser against its bare encoder, decoding against its growth.

A ratio says what the algorithm costs; milliseconds say what this machine was doing. Medians over `repeats` rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from lalkit.batch.collate import Batch
from lalkit.batch.vocab import Vocab
from lalkit.chart.joint import decode
from lalkit.checkpoint import make_collator
from lalkit.config import minilm
from lalkit.model.parser import Network
from lalkit.predict import best_labels, decode_output
from lalkit.treebank.corpora import load


def bench(repeats: int = 7) -> list[dict]:
    """Rows of routine, case, device, baseline, ours_ms, baseline_ms, ratio, ratio_min, ratio_max."""
    return [*parse_rows(repeats), *decode_rows(repeats)]


def parse_rows(repeats: int) -> list[dict]:
    """The network (random new weights, MiniLM) and its decoding against MiniLM alone, on sentences of data/sample."""
    config, sentences = minilm(), load("sample", "train").sentences
    vocab = Vocab.build(sentences)
    network = Network(config.model, vocab).eval()
    collator, rows = make_collator(config, vocab), []
    for count in (1, 8, 32):
        chosen = sorted(sentences, key=len)[80 : 80 + count]
        batch = collator(chosen)

        def parse(batch: Batch = batch, chosen=chosen) -> None:
            with torch.inference_mode():
                output = network(batch)
                best_labels(network, output, decode_output(output, [len(s) for s in chosen], 0.5))

        def encode(batch: Batch = batch) -> None:
            with torch.inference_mode():
                network.words(batch)

        rows.append(
            row("parse", f"{count} sentences of {len(chosen[-1])} words", "bare encoder", parse, encode, repeats)
        )
    return rows


def decode_rows(repeats: int) -> list[dict]:
    """Joint decoding of one random chart against half its length: O(n^4) is a ratio of 16, before caches have a say."""
    rng, rows = np.random.default_rng(0), []

    def chart(n: int) -> Callable[[], object]:
        labels = rng.normal(size=(n + 1, n + 1, 30)).astype(np.float32)
        labels[..., 0] = 0
        arcs = rng.normal(size=(n, n + 1)).astype(np.float32)
        return lambda: decode(labels, arcs)

    for n in (40, 80, 160):
        rows.append(row("decode", f"{n} words", f"{n // 2} words", chart(n), chart(n // 2), repeats))
    return rows


def row(routine: str, case: str, baseline: str, ours: Callable, theirs: Callable, repeats: int) -> dict:
    """Both alternated `repeats` times after a warm-up of each."""
    ours(), theirs()
    pairs = [(_milliseconds(ours), _milliseconds(theirs)) for _ in range(repeats)]
    ratios = [a / b for a, b in pairs]
    return {
        "routine": routine, "case": case, "device": "cpu", "baseline": baseline,
        "ours_ms": round(median(a for a, _ in pairs), 3), "baseline_ms": round(median(b for _, b in pairs), 3),
        "ratio": round(median(ratios), 2), "ratio_min": round(min(ratios), 2), "ratio_max": round(max(ratios), 2),
    }  # fmt: skip


def _milliseconds(function: Callable) -> float:
    started = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - started)
