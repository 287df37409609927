"""Span scores of one sentence against eq. 5 and 6 as written, where every span vector is formed before it is scored."""

from __future__ import annotations

import torch

from lalkit.bench.measure import Settings, compare, twin
from lalkit.network.scores import SpanScorer


def rows(settings: Settings) -> list[dict]:
    literal = twin("spans_literal").literal
    torch.manual_seed(0)
    scorer = SpanScorer(112 * 128, 250, 112, 0.0).to(settings.device).eval()
    return [row(settings, words, scorer, literal) for words in (20, 40, 80)]


@torch.no_grad()
def row(settings: Settings, words: int, scorer: SpanScorer, literal) -> dict:
    posts = torch.randn(1, words + 1, 112, 128, device=settings.device)
    case, baseline = f"{words} words", "every span vector formed"
    return compare(settings, "spans", case, "forward", baseline, lambda: scorer(posts), lambda: literal(scorer, posts))
