"""Parsers without the paper's layer beside one with it: the same encoder, sentences and batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences
from lalkit.bench.parse import parser
from lalkit.bench.train import stepper
from lalkit.config import override, preset
from lalkit.network.parser import Network

PAPERS = "minilm"
NEITHER = "no label attention"  # how much of the time is not label attention's at all
OURS = {
    f"span {boundary}": {"model.label_attention": "none", "model.span_attention": {"boundary": boundary}}
    for boundary in ("full", "lean", "glass")
} | {NEITHER: {"model.label_attention": "none"}}


def rows(settings: Settings) -> list[dict]:
    """Parsing and a training step of every system. ratio below 1: cheaper than with the paper's layer."""
    return list(_rows(replace(settings, preset=PAPERS, repeats=min(settings.repeats, 5))))


def _rows(settings: Settings) -> Iterator[dict]:
    theirs, collator, sentences, name = network_and_sentences(settings)
    for system, changes in OURS.items():
        torch.manual_seed(0)
        ours = Network(override(preset(PAPERS), changes).model, collator.vocab).to(settings.device)
        for case, make in (("parse", parser), ("training step", stepper)):
            torch.manual_seed(0)
            pair = (make(settings, network, collator, sentences) for network in (ours, theirs))
            yield share(settings, "beside", f"{case}, {name}", system, PAPERS, *pair)
