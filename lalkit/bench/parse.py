"""The whole parser, from sentences to checked trees, against its bare encoder on the same batches; and where its time goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import torch

from lalkit.bench.measure import Settings, alternate, milliseconds, share
from lalkit.bench.networks import FEW, network_and_sentences, transformer
from lalkit.network import parser as assembly
from lalkit.network import predict as predicting
from lalkit.network.batches import Collator, batches, usual
from lalkit.network.parser import Network
from lalkit.treebank.tree import Sentence


def rows(settings: Settings) -> list[dict]:
    """One row of the whole against the encoder, one per part against the whole, one of their sum against the whole."""
    network, collator, sentences, name = network_and_sentences(settings)
    bare = transformer(settings, network)
    network.eval()
    groups = batches([len(s) for s in sentences], usual(settings.device))
    ready = [collator([sentences[i] for i in group]).to(settings.device) for group in groups]
    parse = parser(settings, network, collator, sentences)

    def encode() -> None:
        with torch.inference_mode():
            for batch in ready:
                bare(input_ids=batch.subwords, attention_mask=batch.subword_mask.long())

    if len(sentences) <= FEW:
        settings = replace(settings, repeats=min(settings.repeats, 3))
    whole = share(settings, "parse", name, settings.preset, "bare encoder", parse, encode)
    return [whole, *parts(settings, network, parse, name)]


def parser(settings: Settings, network: Network, collator: Collator, sentences: list[Sentence]) -> Callable[[], None]:
    """What parses them all."""

    def parse() -> None:
        network.eval()
        predicting.predict(network, collator, sentences, threads=torch.get_num_threads())

    return parse


def parts(settings: Settings, network: Network, parse: Callable, name: str) -> list[dict]:
    """Rows of routine 'parts': ratio is the part's share of the whole, which is measured without the clocks, in turn."""
    rounds = []

    def clocked() -> None:
        with clocks(network, settings.device) as spent:
            total = milliseconds(parse, settings.device)
        rounds.append({**spent, "everything else": total - sum(spent.values())})

    totals = [total for total, _ in alternate(settings, parse, clocked)]
    rounds = rounds[1:]
    found = []
    for part in [*rounds[0], "sum"]:
        times = [sum(r.values()) if part == "sum" else r[part] for r in rounds]
        ratios = [t / total for t, total in zip(times, totals)]
        found.append(
            {
                "routine": "parts", "case": part, "mode": f"{settings.preset}, {name}", "device": settings.device,
                "baseline": "whole parser", "ours_ms": round(median(times), 3), "baseline_ms": round(median(totals), 3),
                "ratio": round(median(ratios), 4), "ratio_min": round(min(ratios), 4),
                "ratio_max": round(max(ratios), 4), "memory_ratio": None,
            }
        )  # fmt: skip
    return found


@contextlib.contextmanager
def clocks(network: Network, device: str) -> Iterator[dict[str, float]]:
    """Milliseconds spent in each part while the block runs."""
    timed = {
        "encoder": [(network.words.transformer, "forward")],
        "self-attention": [(network.encoder, "forward")],
        "label attention": [(network.label_attention, "forward"), (network.feedforward, "forward")],
        "spans": [(assembly, "fenceposts"), (network.spans, "project"), (network.spans, "chart")],
        "arcs": [(network.arcs, name) for name in ("parts", "arcs", "labels")],
        "decoding": [(predicting, "decode_output")],
    }
    spent = dict.fromkeys(timed, 0.0)
    with contextlib.ExitStack() as undo:
        for part, places in timed.items():
            for owner, name in places:
                if owner is not None:
                    undo.enter_context(_clock(owner, name, spent, part, device))
        yield spent


@contextlib.contextmanager
def _clock(owner, name: str, spent: dict[str, float], part: str, device: str) -> Iterator[None]:
    """`owner.name` adds its time to spent[part]."""
    function, own = getattr(owner, name), name in vars(owner)

    def clocked(*args, **kwargs):
        if device != "cpu":
            torch.cuda.synchronize()
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            if device != "cpu":
                torch.cuda.synchronize()
            spent[part] += 1000 * (time.perf_counter() - started)

    setattr(owner, name, clocked)
    try:
        yield
    finally:
        setattr(owner, name, function) if own else delattr(owner, name)
