"""Contributions, views and controls of the paper's layer: the numbers of the scorer, and the algebra of contexts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lalkit import bench
from lalkit.api import Parser
from lalkit.config import override
from lalkit.errors import LalkitError, ModelError
from lalkit.interpret.paper_layer import PaperLayer, parts_of, without_heads
from lalkit.interpret.tables import NORMS, normalise
from lalkit.network.parser import Network
from lalkit.network.scores import SpanScorer
from lalkit.probes.perturbation import ablate

# ---------------------------------------------------------------- contributions


def test_without_each_head_against_the_scorer_run_once_per_head():
    torch.manual_seed(0)
    scorer, posts = SpanScorer(5 * 6, 11, 7, 0.3).double().eval(), torch.randn(9, 5, 6, dtype=torch.float64)
    for p in scorer.parameters():
        p.data += 0.5 * torch.randn_like(p)
    spans, without = torch.triu_indices(9, 9, 1).T, torch.eye(posts.shape[1]) == 0
    charts = torch.cat([bench.span_scores_twin(scorer, (posts * kept[:, None])[None]) for kept in without])
    found = without_heads(scorer, posts, spans)
    torch.testing.assert_close(found, charts[:, spans[:, 0], spans[:, 1]].transpose(0, 1), rtol=0, atol=1e-12)
    few = without_heads(scorer, posts, spans[3:7])  # fewer than fenceposts: the other way round
    torch.testing.assert_close(few, found[3:7], rtol=0, atol=1e-12)
    chart, literal = scorer.chart(scorer.project(posts[None]))[0], bench.span_scores_twin(scorer, posts[None])[0]
    start, end = spans.T
    torch.testing.assert_close(chart[start, end], literal[start, end], rtol=0, atol=1e-5)  # the chart is in float32
    assert (found - literal[start, end][:, None]).abs().amax((0, 2)).min() > 1e-3, "every head has an effect"
    slices, label = posts[end] - posts[start], torch.arange(len(spans)) % 6 + 1
    parts, without_third = (parts_of(scorer, slices * kept, label) for kept in (1, torch.arange(5)[:, None] != 2))
    torch.testing.assert_close(parts.sum(1), literal[start, end, label], rtol=0, atol=1e-12)
    assert without_third[:, 2].abs().max() == 0 and parts[:, :5].abs().min() > 0, "each part is of its own slice"


def test_raw_sums_are_of_the_heads_slices(parser, sample):
    found = parser.explain(sample[:1])
    with torch.inference_mode():
        posts = parser.network(parser.model.collator(sample[:1])).posts[0]
    for raw, (start, end, _) in zip(found.heads().raw, found.sentences[0].spans):
        assert raw == pytest.approx((posts[end] - posts[start]).sum(-1).numpy(), abs=1e-4)


def test_every_norm_as_it_is_defined():
    raw = np.array([[1.0, -3.0, 0.0], [2.0, 2.0, 2.0]])
    exact = np.array([[0.5, -0.5, 0.0], [1.0, 2.0, 3.0]])
    e = np.exp([1.0, -3.0, 0.0])
    wanted = {
        "raw": raw, "exact": exact, "minmax": [[1, 0, 0.75], [0, 0, 0]], "share": [[0.25, 0.75, 0], [1 / 3] * 3],
        "softmax": [e / e.sum(), [1 / 3] * 3],
    }  # fmt: skip
    assert set(wanted) == set(NORMS)
    for norm, values in wanted.items():
        assert normalise(raw, exact, norm) == pytest.approx(np.array(values))
    assert normalise(np.zeros((1, 2)), None, "share").tolist() == [[0, 0]]
    for other, norm in ((exact, "max"), (None, "exact")):
        pytest.raises(LalkitError, normalise, raw, other, norm)


# ---------------------------------------------------------------- the view of the probes


@pytest.fixture(scope="module")
def larger(tiny_parser):
    """In float64. Barely trained, all spans have one label; larger weights make differences that can be seen."""
    found = Parser.load(tiny_parser)
    found.network.double()
    with torch.no_grad():
        for p in (*found.network.label_attention.parameters(), *found.network.spans.parameters()):
            p.mul_(2)
    return found


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[::40][:4]


def spans_of(sentence):
    return [(0, len(sentence), "S"), (0, 1, "NP"), (len(sentence) - 1, len(sentence), "no such label")]


def test_the_view_has_the_decisions_of_the_parser(larger, some):
    seen = larger.view(some, spans=[spans_of(s) for s in some])
    with torch.no_grad():
        output = larger.network(larger.model.collator(some))
    assert torch.allclose(seen.weights[:, :, 0], output.attention)
    outcome = seen.predict(seen.weights)
    for b, sentence in enumerate(some):
        right = 0
        for u, (start, end, label) in enumerate(spans_of(sentence)):
            scores = torch.softmax(output.label_scores[b, start, end].double(), -1)
            assert outcome.probs[b, u].tolist() == pytest.approx(scores.tolist(), abs=1e-6)
            right += larger.vocab.label_index.get(label) == int(scores.argmax())
        assert outcome.score[b].tolist() == [right, 3]
    several = seen.predict(torch.stack([seen.weights] * 2))
    assert torch.allclose(several.probs[1], outcome.probs)


def test_ablations_agree_with_controls(larger, some):
    network, spans = larger.network, [spans_of(s) for s in some]
    seen, mean = larger.view(some, spans=spans), larger.attribution.mean(some)
    means = seen.from_contexts(mean[None, :, None].to(seen.values).expand(*seen.weights.shape[:3], -1))
    changes = {torch.zeros_like: ablate(seen, "context"), (lambda c: mean.to(c.dtype).expand_as(c)): means}
    for change, outcome in changes.items():
        with network.label_attention.hooked(contexts=change), torch.no_grad():
            chart = network(larger.model.collator(some)).label_scores
        for b in range(len(some)):
            for u, (start, end, _) in enumerate(spans[b]):
                wanted = torch.softmax(chart[b, start, end].double(), -1)
                assert torch.allclose(outcome.probs[b, u], wanted, atol=1e-6)


def test_a_parser_with_mixed_heads_has_a_view(larger, some):
    network = Network(override(larger.config, {"model.feedforward": 16}).model, larger.vocab)
    mixed = PaperLayer(replace(larger.model, network=network)).view(some)
    assert mixed.predict(mixed.weights).probs.isfinite().all()


@pytest.fixture(scope="module")
def controls(parser, sample):
    return parser.attribution.controls(parser.attribution.mean(sample[:20]))


def scores(parser, sentences):
    with torch.inference_mode():
        return parser.network(parser.model.collator(sentences)).label_scores


def hooked(parser, hooks):
    return parser.network.label_attention.hooked(**hooks)


def close(found, wanted, within=1e-5):
    torch.testing.assert_close(found, wanted, rtol=0, atol=within)


def test_every_control_does_what_its_name_says(parser, sample, controls):
    contexts = torch.randn(3, 6, 8)
    change = {name: hooks["contexts"] for name, hooks in controls.items() if "contexts" in hooks}
    assert (change["zeroed"](contexts) == 0).all()
    assert torch.equal(change["swapped sentences"](contexts), contexts[[2, 0, 1]])
    swapped = change["swapped heads"](contexts)
    assert not any(torch.equal(swapped[:, h], contexts[:, h]) for h in range(6))
    assert sorted(swapped[0, :, 0].tolist()) == sorted(contexts[0, :, 0].tolist())
    found = []
    with hooked(parser, {"contexts": lambda c: found.append(c) or c}):
        for sentence in sample[:20]:
            scores(parser, [sentence])
    close(change["mean"](contexts)[1], torch.cat(found).mean(0))
    with hooked(parser, controls["swapped heads"]):  # P, R and the norm are shared: only the contexts of heads differ
        swapped = scores(parser, sample[:2])
    with hooked(parser, controls["shuffled heads"]):
        close(scores(parser, sample[:2]), swapped)


def test_uniform_attention_is_what_equal_keys_give(parser, sample, controls):
    """Without keys all logits are equal; and the zeroed keys are put back."""
    with hooked(parser, controls["uniform attention"]):
        uniform = scores(parser, sample[:3])
    layer = parser.network.label_attention
    kept = [p.clone() for p in layer.key.parameters()]
    with torch.no_grad():
        for p in layer.key.parameters():
            p.zero_()
        expected = scores(parser, sample[:3])
        for p, old in zip(layer.key.parameters(), kept):
            p.copy_(old)
    close(uniform, expected, 1e-4)
    assert not torch.allclose(scores(parser, sample[:3]), expected, atol=1e-4)


def test_without_a_head_its_slice_is_zero_inside_the_block(parser, sample):
    with torch.inference_mode():
        posts = parser.network(parser.model.collator(sample[:1])).posts.clone()
        posts[:, :, 2] = 0
        expected = parser.network.spans.chart(parser.network.spans.project(posts))
    with hooked(parser, parser.attribution.without(2, parser.attribution.mean(sample[:5]))["head out"]):
        close(scores(parser, sample[:1]), expected)
    assert not torch.allclose(scores(parser, sample[:1]), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "slices"), [({"model.feedforward": 16}, True), ({"model.label_attention.combine": "project"}, False)]
)
def test_where_heads_are_mixed_there_are_controls_without_contributions(parser, sample, change, slices):
    torch.manual_seed(0)
    network = Network(override(parser.config, change).model, parser.vocab)
    model = replace(parser.model, network=network)
    source = PaperLayer(model)
    assert ("shuffled heads" in source.controls(source.mean(sample[:5]))) == slices
    pytest.raises(ModelError, source.explain, sample[:1])
    other = Parser(model)
    before = other.parse(sample[3]).score
    with other.patched({"label_attention.contexts": source.mean(sample[:5])}):
        assert other.parse(sample[3]).score != before
    if slices:  # its heads have slices, which can be removed
        with other.without(heads=[0, 1, 2]):
            assert other.parse(sample[3]).score != before
    else:
        with pytest.raises(ModelError), other.without(heads=[0]):
            pass


def test_other_parsers_are_refused(parser, sample):
    for change in ({"model.label_attention": None}, {"model.label_attention.query": "matrix"}):
        config = override(parser.config, change)
        source = PaperLayer(replace(parser.model, network=Network(config.model, parser.vocab), config=config))
        for ask in (source.mean, source.view):
            pytest.raises(ModelError, ask, sample[:2])
    explanation = Parser(source.model).explain("It rained.")  # by a query matrix, each word has an attention of its own
    assert "Most from" in explanation.text()
    pytest.raises(LalkitError, explanation.attention).match("no head here has one attention")
