"""Label attention inside the span: what the equations say, alone and in a batch, near and far from the greatest logit."""

import pytest
import torch

from lalkit.config import SpanAttentionConfig, override, tiny
from lalkit.errors import ModelError
from lalkit.network.parser import Network
from lalkit.network.scores import fenceposts
from lalkit.network.span_attention import SpanLabelAttention
from lalkit.network.vocabulary import Vocab
from tests.reference import span_attention_literal as literal

FEATURES, LABELS = 12, 6
GRADES = ("full", "glass")
KINDS = [(b, a) for b in GRADES for a in ("learned", "uniform", "none")]


def make(boundary="glass", attention="learned", dtype=torch.float64, scale=1.0):
    torch.manual_seed(0)
    config = SpanAttentionConfig(d_key=5, boundary=boundary, attention=attention)
    module = SpanLabelAttention(config, FEATURES, 7, LABELS, 0.0).to(dtype).eval()
    with torch.no_grad():
        module.query *= scale
    return module


def inputs(b, n, dtype=torch.float64, seed=1):
    torch.manual_seed(seed)
    x = torch.randn(b, n + 2, FEATURES, dtype=dtype)
    return x, fenceposts(x[:, :, None], (FEATURES - 4, 4))


def spans_of(chart, lengths):
    """(b, i, j, label) of every cell that counts."""
    b, i, j, label = chart.new_ones(chart.shape).nonzero().T
    count = (i < j) & (j <= torch.tensor(lengths)[b])
    return [column[count] for column in (b, i, j, label)]


def test_words_of_another_model_are_scored():
    """All spans, or only some; what stands before and after the words does not count."""
    module, lengths = make(), torch.tensor([6, 3, 1])
    x, posts = inputs(3, 6)
    chart = module(x[:, 1:-1], lengths)
    assert torch.equal(chart, module.chart(module.project(x, posts, lengths), lengths))
    spans = torch.tensor([(0, 0, 6), (0, 2, 3), (1, 1, 3), (2, 0, 1)])
    b, i, j = spans.T
    torch.testing.assert_close(module(x[:, 1:-1], lengths, spans), chart[b, i, j])
    with pytest.raises(ModelError, match="boundary full needs fenceposts"):
        make("full")(x[:, 1:-1])


@pytest.mark.parametrize(("boundary", "attention"), KINDS)
def test_chart_and_single_spans_are_what_the_equations_say(boundary, attention):
    module, lengths = make(boundary, attention), torch.tensor([6, 3, 1])
    x, posts = inputs(3, 6)
    parts = module.project(x, posts)
    expected = literal.chart(module, x, posts, lengths)
    found = module.chart(parts, lengths=lengths)
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    b, i, j, label = spans_of(found, lengths.tolist())
    assert torch.allclose(module.at(parts, b=b, i=i, j=j, label=label), expected[b, i, j, label], rtol=0, atol=1e-12)


@pytest.mark.parametrize("boundary", GRADES)
def test_gradients_are_those_of_the_equations(boundary):
    module, lengths = make(boundary), torch.tensor([5, 4])
    x, posts = inputs(2, 5)
    weights = torch.randn(2, 6, 6, LABELS, dtype=torch.float64)
    b, i, j, label = spans_of(weights, lengths.tolist())
    found = []
    for way in ("literal", "chart", "at"):
        own = x.clone().requires_grad_()
        fences = fenceposts(own[:, :, None], (FEATURES - 4, 4))
        if way == "literal":
            total = (literal.chart(module, own, fences, lengths) * weights).sum()
        elif way == "chart":
            total = (module.chart(module.project(own, fences), lengths=lengths) * weights).sum()
        else:
            read = module.at(module.project(own, fences), b=b, i=i, j=j, label=label)
            total = (read * weights[b, i, j, label]).sum()
        module.zero_grad()
        total.backward()
        found.append([own.grad, *(p.grad.clone() for p in module.parameters())])
    for other in found[1:]:
        assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-11) for a, b in zip(found[0], other))


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_long_sentences_and_steep_logits_lose_nothing(dtype, most, scale):
    """250 words; at scale 200 most spans hold e^-100 and less of what the sentence's greatest word holds."""
    module = make("glass", dtype=dtype, scale=scale)
    x, posts = inputs(1, 250, dtype)
    with torch.no_grad():
        logits, evidence, *edges = module.project(x, posts)
        chart = module.chart((logits, evidence, *edges))
    if scale > 1:
        assert (logits.amax(1) - logits.amin(1)).min() > 100
    torch.manual_seed(2)
    i = torch.randint(0, 250, (400,))
    j = torch.minimum(i + torch.randint(1, 60, (400,)), torch.tensor(250))
    for label in range(1, LABELS):
        head = label - 1
        for s, e in zip(i.tolist(), j.tolist()):
            weights = torch.softmax(logits[0, s:e, head].double(), 0)
            inside = float(weights @ evidence[0, s:e, head].double())
            expected = inside + float(edges[0][0, s, head].double() + edges[1][0, e - 1, head].double())
            assert float(chart[0, s, e, label]) == pytest.approx(expected, abs=most * 5, rel=most)


@pytest.mark.parametrize("boundary", GRADES)
def test_padding_does_not_count_however_large_it_is(boundary):
    module, lengths = make(boundary), torch.tensor([5])
    x, _ = inputs(1, 5)
    padded = torch.cat([x, 1000 * torch.randn(1, 4, FEATURES, dtype=x.dtype)], dim=1)
    alone, chart = (module.chart(module.project(y, fenceposts(y[:, :, None], (8, 4))), lengths) for y in (x, padded))
    torch.testing.assert_close(chart[:, :6, :6], alone, rtol=0, atol=1e-9)
    assert not chart[:, 6:].any() and not chart[:, :, 6:].any()


def test_two_label_attentions_are_refused(sample):
    config = override(tiny(), {"model.span_attention": {}})
    with pytest.raises(ModelError, match="both set\n.*none"):
        Network(config.model, Vocab.build(sample))


def test_hooks_change_logits_and_evidence_and_see_the_lengths():
    module, lengths = make(), torch.tensor([6, 3, 1])
    x, posts = inputs(3, 6)
    plain, seen = module.project(x, posts, lengths), []
    with module.hooked(logits=lambda s, n: seen.append(n) or torch.zeros_like(s), evidence=lambda v, n: 2 * v):
        logits, evidence, *edges = module.project(x, posts, lengths)
    assert torch.equal(seen[0], lengths) and not logits.any() and torch.equal(evidence, 2 * plain[1])
    assert all(torch.equal(a, b) for a, b in zip(edges, plain[2:]))
    assert all(torch.equal(a, b) for a, b in zip(module.project(x, posts, lengths), plain))
