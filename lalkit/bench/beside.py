"""A parser with label attention inside the span beside one with the paper's layer: the same encoder, sentences and batches."""

from __future__ import annotations

from dataclasses import replace

import torch

from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences
from lalkit.bench.parse import parser
from lalkit.bench.train import stepper

OURS, PAPERS = "minilm-span", "minilm"


def rows(settings: Settings) -> list[dict]:
    """Two rows: parsing, and a training step. ratio below 1: inside the span is cheaper."""
    few = replace(settings, repeats=min(settings.repeats, 5))
    both = [network_and_sentences(replace(settings, preset=name)) for name in (OURS, PAPERS)]
    name, found = both[0][-1], []
    for case, make in (("parse", parser), ("training step", stepper)):
        ours, theirs = (make(replace(settings, preset=p), *made[:3]) for p, made in zip((OURS, PAPERS), both))
        torch.manual_seed(0)
        found.append(share(few, "beside", f"{case}, {name}", OURS, PAPERS, ours, theirs))
    return found
