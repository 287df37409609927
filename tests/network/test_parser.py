"""The whole network: the same scores alone, in a batch, in any order, with any padding; for every variant and input."""

import itertools

import pytest
import torch

from lalkit.chart import joint_torch
from lalkit.chart.loss import span_margin_loss
from lalkit.config import ModelConfig, minilm, override, preset, tiny
from lalkit.errors import ModelError
from lalkit.network import model as modelling
from lalkit.network import scores
from lalkit.network.batches import Collator
from lalkit.network.encoder import Encoder
from lalkit.network.model import Model
from lalkit.network.parser import FeedForward, Network
from lalkit.network.scores import SpanScorer, fenceposts
from lalkit.network.vocabulary import Vocab
from lalkit.training.objective import losses
from tests.reference.label_attention_literal import feedforward

VARIANTS = [
    {}, {"label_attention.query": "matrix"}, {"label_attention.combine": "project"},
    {"label_attention.query": "matrix", "label_attention.combine": "project"}, {"label_attention.shared": "false"},
    {"label_attention.normaliser": "entmax15"}, {"feedforward": "24"}, {"feedforward": "24", "label_attention": "none"},
    {"feedforward": "24", "feedforward_split": "released"}, {"label_attention.partition": "all"}, {"label_attention": None},
    {"layers": "3"}, {"tag_input": "predicted"}, {"tag_input": "given"}, {"encoder.pretrained": "minilm"},
    {"encoder.pretrained": "minilm", "encoder.mix_layers": "false"},
]  # fmt: skip


def build(changes, sample):
    torch.manual_seed(3)
    config = override(tiny(), {f"model.{name}": value for name, value in changes.items()})
    vocab = Vocab.build(sample)
    network = Network(config.model, vocab)
    for name, p in network.named_parameters():
        if p.requires_grad and "transformer" not in name:
            p.data += 0.05 * torch.randn_like(p)
    if config.model.encoder.pretrained is None:  # padding is read as zeros, which training does not change
        network.words.char.weight.data[0] = 0
    # In float64: what is left of a difference is then a defect, not the rounding of differently shaped products.
    return network.eval().double(), Collator(vocab, config.model.encoder)


@pytest.mark.parametrize("changes", VARIANTS, ids=lambda c: ",".join(f"{k}={v}" for k, v in c.items()) or "default")
def test_batch_order_and_padding_invariance(changes, sample):
    network, collator = build(changes, sample)
    chosen = [min(sample, key=len), *sorted(sample[:30], key=len)[::6], sample[1]]
    with torch.inference_mode():
        together = network(collator(chosen))
        backwards = network(collator(chosen[::-1]))
        for b, sentence in enumerate(chosen):
            n, alone = len(sentence), network(collator([sentence]))
            heads = torch.tensor([sentence.heads])
            labels = network.arc_labels(alone, heads)[0]
            for output, row in ((together, b), (backwards, len(chosen) - 1 - b)):
                where = {"rtol": 0, "atol": 1e-5}
                scores = output.label_scores[row, : n + 1, : n + 1]
                torch.testing.assert_close(scores, alone.label_scores[0], **where)
                torch.testing.assert_close(output.arc_scores[row, :n, : n + 1], alone.arc_scores[0], **where)
                torch.testing.assert_close(output.tag_scores[row, :n], alone.tag_scores[0], **where)
                padded = torch.zeros(len(chosen), output.arc_scores.shape[1], dtype=torch.long)
                padded[row, :n] = heads[0]
                torch.testing.assert_close(network.arc_labels(output, padded)[row, :n], labels, **where)
    assert together.label_scores[..., 1:].abs().max() > 0.1, "scores of nothing would always agree"
    network.to("meta")(
        collator(chosen).to("meta")
    )  # it stands for a GPU: an error where the host would wait for a value


def test_a_device_that_is_ahead_gives_the_same_parses(parser, sample, monkeypatch):
    """The CPU stands for a GPU. s: the network scores a batch, d: a batch is decoded, a: a sentence is assembled."""
    options, told = {"batch_words": 1, "probabilities": True}, []
    with parser.without([0]):
        expected = parser.model.parse(sample[:4], **options)
    monkeypatch.setitem(modelling.AHEAD, "cpu", 1)
    for owner, name, letter in (
        (Network, "forward", "s"),
        (joint_torch, "map_charts", "d"),
        (modelling, "assemble", "a"),
    ):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *of, f=original, x=letter: told.append(x) or f(*of))
    with parser.without([0]), torch.autocast("cpu", torch.bfloat16):
        found = parser.model.parse(sample[:4], **options)
    assert "".join(told) == "ssd" + "sda" * 2 + "da" + "a"
    assert found == expected and [p.confidence for p in found] == [p.confidence for p in expected]
    assert found != parser.model.parse(sample[:4], **options)


@pytest.mark.parametrize("split", ["released", "within-heads", "whole"])
def test_the_feed_forward_equals_its_equations(split):
    config = ModelConfig(feedforward=10, feedforward_split=split, d_position=9, dropout=0)
    layer = FeedForward(config, 4, (4, 3)).double()
    for p in layer.parameters():
        p.data += 0.5 * torch.randn_like(p)
    y = torch.randn(2, 6, 4, 7, dtype=torch.float64)
    torch.testing.assert_close(layer(y), feedforward(layer, split, y, 4, 9), rtol=0, atol=1e-12)


def test_the_authors_last_four_heads_have_half_of_the_feed_forward():
    with torch.device("meta"):
        layer = FeedForward(preset("paper-best").model, 112, (64, 64))
    assert [[*block.shape] for block in layer.up.blocks] == [[1024, 108 * 128], [1024, 4 * 128]]
    assert sum(p.numel() for p in layer.parameters()) == 2 * 1024 * 112 * 128 + 2048 + 3 * 112 * 128
    with pytest.raises(ModelError, match="feedforward_split"):
        FeedForward(preset("paper-best").model, 4, (64, 64))


def test_arc_labels_depend_on_the_head(sample):
    """The released program scores them from the dependent alone."""
    network, collator = build({}, sample)
    sentence = next(s for s in sample if len(s) > 6)
    with torch.inference_mode():
        output = network(collator([sentence]))
        one = network.arc_labels(output, torch.full((1, len(sentence)), 1))
        other = network.arc_labels(output, torch.full((1, len(sentence)), 4))
    assert (one - other).abs().amax(-1).min() > 1e-4


def test_spans_are_scored_as_differences_of_fenceposts():
    torch.manual_seed(0)
    scorer = SpanScorer(24, 10, 5, 0.0).double()
    y = torch.randn(2, 7, 3, 8, dtype=torch.float64)
    scores = scorer.chart(scorer.project(fenceposts(y, (5, 3))))
    forward, backward = [0, 1, 2, 5, 6], [3, 4, 7]  # halves of content (rounded up) and of position
    for b, (i, j) in itertools.product(range(2), itertools.combinations(range(6), 2)):
        halves = lambda k: torch.cat([torch.cat([y[b, k, h, forward], y[b, k + 1, h, backward]]) for h in range(3)])  # noqa: B023, E731
        s = halves(j) - halves(i)
        hidden = torch.relu(scorer.norm(scorer.first.weight @ s + scorer.bias))
        torch.testing.assert_close(scores[b, i, j, 1:], scorer.second.weight @ hidden + scorer.second.bias)
        assert scores[b, i, j, 0] == 0


def test_spans_scored_a_few_at_a_time_and_only_up_to_a_sentences_length(monkeypatch):
    torch.manual_seed(0)
    scorer, posts = SpanScorer(24, 10, 5, 0.0).double(), torch.randn(3, 6, 3, 8, dtype=torch.float64)
    lengths = [2, 5, 1]
    parts, size = scorer.project(posts), torch.tensor(lengths)
    whole, own = scorer.chart(parts), scorer.chart(parts, size)
    for b, n in enumerate(lengths):
        assert torch.equal(whole[b, : n + 1, : n + 1], own[b, : n + 1, : n + 1])
        assert (own[b, :, n + 1 :] == 0).all() and (own[b, n + 1 :] == 0).all()
    monkeypatch.setitem(scores.CHUNK, "cpu", 4)
    torch.testing.assert_close(scorer.chart(parts, size), own, rtol=0, atol=1e-12)
    monkeypatch.delitem(scores.CHUNK, "cpu")  # as on a GPU, where every span is computed
    torch.testing.assert_close(scorer.chart(parts, size), own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_spans_scored_again_are_those_of_the_chart(training):
    """What training relies on, with the same dropout. Their gradients: see the next test."""
    torch.manual_seed(0)
    scorer = SpanScorer(24, 10, 5, 0.5).double().train(training)
    posts = torch.randn(2, 6, 3, 8, dtype=torch.float64)
    parts = scorer.project(posts)
    chart = scorer.chart(parts)
    at = torch.tensor([[0, 0, 3, 0], [1, 2, 3, 4], [1, 0, 5, 1], [0, 0, 3, 2]]).T
    again = scorer.at(parts, *at)
    torch.testing.assert_close(again, chart[tuple(at)])
    assert again[0] == 0 and again[1:].abs().min() > 0


def test_losses_are_those_of_the_whole_chart(sample):
    """The chart without gradients and the spans scored again: the same loss and gradients as through the chart."""
    network, collator = build({}, sample)
    batch = collator(sample[:3], gold=True)
    found = losses(Model(network, None, collator, tiny(), {}), batch)["spans"]
    output = network(batch)
    assert output.label_scores.requires_grad and not network(batch, chart_gradient=False).label_scores.requires_grad
    expected = span_margin_loss(output.label_scores, batch.lengths, batch.spans) / 3
    torch.testing.assert_close(found, expected)
    parameters = list(network.spans.parameters()) + list(network.label_attention.parameters())
    for one, other in zip(torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("initial", "least", "most"), [("small", 0, 0.3), ("glorot", 0.9, 1)])
def test_self_attention_keeps_words_apart_at_first(initial, least, most):
    """With large first weights, the words of a sentence become nearly equal in 8 layers."""
    torch.manual_seed(0)
    encoder = Encoder(override(minilm(), {"model.layers": 8, "model.initial": initial}).model).eval()
    with torch.inference_mode():
        words = encoder(torch.randn(4, 20, 256), torch.ones(4, 20, dtype=torch.bool))
        words = torch.nn.functional.normalize(words, dim=-1)
    cosines = words @ words.transpose(1, 2)
    assert least < (cosines.sum() - 4 * 20) / (4 * 20 * 19) < most


def test_an_encoder_that_cannot_be_had():
    config = override(tiny(), {"model.encoder.pretrained": "no/such-encoder"})
    with pytest.raises(ModelError, match="encoder 'no/such-encoder' cannot be loaded"):
        Network(config.model, Vocab(("", "<H>", "S"), ("X",), ("Y",)))
