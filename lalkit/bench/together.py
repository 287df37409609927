"""The encoder with rows of like length read together, against every row padded to the batch's longest."""

from __future__ import annotations

from functools import partial

import torch

from lalkit.bench.measure import Settings, compare
from lalkit.bench.networks import network_and_sentences
from lalkit.bench.train import some
from lalkit.network.pretrained import PretrainedEncoder


def rows(settings: Settings) -> list[dict]:
    """Two rows, on batches as in training: forward, and forward and backward. On a CPU alone: elsewhere nothing is parted, and
    an encoder from scratch has no rows of sub-words."""
    network, collator, sentences, name = network_and_sentences(settings)
    encoder: PretrainedEncoder = network.words
    if settings.device != "cpu" or not isinstance(encoder, PretrainedEncoder):
        return []
    chosen, autocast = some(settings, sentences)
    ready = [collator(group) for group in chosen]
    network.train()

    def forward(read) -> None:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            for batch in ready:
                read(batch.subwords, batch.subword_mask)

    def both(read) -> None:
        for batch in ready:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                hidden = read(batch.subwords, batch.subword_mask)
            (hidden * batch.subword_mask[..., None]).float().sum().backward()
        network.zero_grad()

    return [
        compare(
            settings, "together", f"{len(ready)} batches, {name}", mode, "padded to the longest",
            partial(step, encoder.hidden), partial(step, encoder.read),
        )
        for mode, step in (("forward", forward), ("forward+backward", both))
    ]  # fmt: skip
