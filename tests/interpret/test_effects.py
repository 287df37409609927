"""The effect of every head from one pass, against the scorer run once per head; and eq. 5-6 as written for the chart."""

import torch

from lalkit.bench import twins
from lalkit.interpret.paper_layer import without_heads
from lalkit.network.scores import SpanScorer


def scorer_and_posts():
    torch.manual_seed(0)
    scorer = SpanScorer(5 * 6, 11, 7, 0.3).double().eval()
    for p in scorer.parameters():
        p.data += 0.5 * torch.randn_like(p)
    return scorer, torch.randn(9, 5, 6, dtype=torch.float64)


def test_without_each_head():
    scorer, posts = scorer_and_posts()
    charts = twins.span_scores_without_heads(scorer, posts)
    spans = torch.triu_indices(9, 9, 1).T
    found = without_heads(scorer, posts, spans)
    torch.testing.assert_close(found, charts[:, spans[:, 0], spans[:, 1]].transpose(0, 1), rtol=0, atol=1e-12)
    few = without_heads(scorer, posts, spans[3:7])  # fewer than fenceposts: the other way round
    torch.testing.assert_close(few, found[3:7], rtol=0, atol=1e-12)
    whole = twins.span_scores(scorer, posts[None])[0][spans[:, 0], spans[:, 1]]
    assert (found - whole[:, None]).abs().amax((0, 2)).min() > 1e-3, (
        "a head without effect: the test would prove nothing"
    )


def test_the_chart_is_that_of_the_equations():
    scorer, posts = scorer_and_posts()
    posts = torch.stack([posts, posts.flip(0)])
    chart, literal = scorer(posts), twins.span_scores(scorer, posts)
    i, j = torch.triu_indices(9, 9, 1)
    # The scorer gives its chart in float32.
    torch.testing.assert_close(chart[:, i, j].double(), literal[:, i, j], rtol=0, atol=1e-5)
