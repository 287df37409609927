"""Label attention inside the span by sums that run on, against a softmax over the words of every span."""

from __future__ import annotations

import torch

from lalkit.bench.measure import Settings, compare, twin
from lalkit.config import SpanAttentionConfig
from lalkit.network.scores import fenceposts
from lalkit.network.span_attention import SpanLabelAttention

LABELS = 51
PARTS = (256, 128)  # features of a word, as in the preset minilm-span


def rows(settings: Settings) -> list[dict]:
    literal = twin("span_attention_batched").chart
    torch.manual_seed(0)
    # Linear boundaries: what is compared is the attention, and not the scorer of fenceposts that both would run.
    module = SpanLabelAttention(SpanAttentionConfig(boundary="glass"), sum(PARTS), 250, LABELS, 0.0).to(settings.device)
    sizes = ((8, 20), (8, 40), (1, 80))
    return [row(settings, *size, module, literal, mode) for size in sizes for mode in ("forward", "forward+backward")]


def row(settings: Settings, count: int, words: int, module: SpanLabelAttention, literal, mode: str) -> dict:
    """count sentences of so many words. In training only a few spans are read with gradients; this is a pass through all."""
    x = torch.randn(count, words + 2, sum(PARTS), device=settings.device)
    parts = [part.detach().requires_grad_() for part in module.project(x, fenceposts(x[:, :, None], PARTS))]
    gradient = torch.randn(count, words + 1, words + 1, LABELS, device=settings.device)

    def run(chart):
        with torch.set_grad_enabled(mode != "forward"):
            found = chart(*parts)
        if mode != "forward":
            found.backward(gradient)
            for part in parts:
                part.grad = None

    case, baseline = f"{count}x{words}", "a softmax for every span"
    return compare(
        settings, "inside", case, mode, baseline,
        lambda: run(module.chart), lambda: run(lambda *given: literal(module, *given)),
    )  # fmt: skip
