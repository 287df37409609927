"""What each label head adds to the scores of a parse's spans, from one pass, against the scorer run once per head."""

from __future__ import annotations

from dataclasses import replace

import torch

from lalkit.bench.measure import Settings, compare, twin
from lalkit.interpret.paper_layer import without_heads
from lalkit.network.scores import SpanScorer
from lalkit.treebank.corpora import load
from lalkit.treebank.joint import to_joint


def rows(settings: Settings) -> list[dict]:
    """20 words at the paper's size. 'parse': the labelled spans of one tree of our sample, where the baseline scores the chart
    without each head and reads the spans off, as one must who has nothing but the scorer; 'chart': every span."""
    slow = twin("spans_literal").without_heads
    torch.manual_seed(0)
    words, heads = 20, 112
    sentence = next(s for s in load("sample", "train").sentences if len(s) == words)
    scorer = SpanScorer(heads * 128, 250, 112, 0.0).to(settings.device).eval()
    posts = torch.randn(words + 1, heads, 128, device=settings.device)
    everything = torch.triu_indices(words + 1, words + 1, 1, device=settings.device).T
    tree = torch.tensor([(span.start, span.end) for span in to_joint(sentence)], device=settings.device)
    few = replace(settings, repeats=min(settings.repeats, 3))

    def literal() -> None:
        with torch.no_grad():
            slow(scorer, posts)

    return [
        compare(
            few, "contributions", f"{words} words, {mode}", "all heads, all labels", "the chart scored without each head",
            lambda spans=spans: without_heads(scorer, posts, spans), literal,
        )
        for mode, spans in ((f"the {len(tree)} spans of a parse", tree), ("every span", everything))
    ]  # fmt: skip
