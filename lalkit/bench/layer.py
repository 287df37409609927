"""The label attention layer against its equations, batched: forward, forward and backward, and from the cache."""

from __future__ import annotations

import torch

from lalkit.bench.measure import Settings, compare, twin
from lalkit.config import LabelAttentionConfig
from lalkit.network.label_attention import LabelAttention

HEADS = 112
SHAPES = ((8, 30), (20, 25), (1, 60))  # sentences x words
GROWTH = ((8, 15, HEADS), (8, 60, HEADS), (2, 30, HEADS), (32, 30, HEADS), (8, 30, 28), (8, 30, 56))


def rows(settings: Settings) -> list[dict]:
    found = []
    for count, words in SHAPES:
        found += cases(settings, count, words, HEADS, ("forward", "forward+backward", "cached"))
    for count, words, heads in GROWTH:
        found += cases(settings, count, words, heads, ("forward",))
    return found


def cases(settings: Settings, count: int, words: int, heads: int, modes: tuple[str, ...]) -> list[dict]:
    """Rows for one batch. d_model 1024, d_kv = d_out = 128, no dropout; START and STOP are added to the words."""
    literal = twin("label_attention_batched").batched
    case = f"{count}x{words}" if heads == HEADS else f"{count}x{words}, {heads} heads"
    torch.manual_seed(0)
    config = LabelAttentionConfig(heads=heads, attention_dropout=0.0, residual_dropout=0.0)
    layer = LabelAttention(config, 512, 512).to(settings.device)
    x = torch.randn(count, words + 2, 1024, device=settings.device)
    mask = torch.ones(count, words + 2, dtype=torch.bool, device=settings.device)
    gradient = torch.randn(count, words + 2, heads, 128, device=settings.device)
    kept = x.clone().requires_grad_()

    def forward(function, training: bool):
        layer.train(training)
        with torch.no_grad():
            function(x)

    def both(function):
        layer.train()
        function(kept)[0].backward(gradient)
        layer.zero_grad(set_to_none=True)  # here, not before: memory that was there already is not counted
        kept.grad = None

    ours, theirs = (lambda x: layer(x, mask)), (lambda x: literal(layer, x, mask))
    functions = {
        "forward": (lambda: forward(ours, True), lambda: forward(theirs, True)),
        "forward+backward": (lambda: both(ours), lambda: both(theirs)),
        "cached": (lambda: forward(ours, False), lambda: forward(theirs, False)),
    }
    return [compare(settings, "layer", case, mode, "the equations, batched", *functions[mode]) for mode in modes]
