"""Controls inside the span change what their names say, inside their block only; identities hold that a mistake would break."""

import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override
from lalkit.errors import ModelError
from lalkit.interpret.span_layer import SpanLayer, of_next
from lalkit.network.parser import Network


@pytest.fixture
def parser(tiny_span_parser):
    found = Parser.load(tiny_span_parser)
    with torch.no_grad():  # barely trained, attention is even; larger weights make differences that can be seen
        for p in (found.network.spans.query, found.network.spans.evidence.weight):
            p.mul_(6)
    return found


def scores(parser, sentences):
    with torch.inference_mode():
        return parser.network.eval()(parser.collator(sentences)).label_scores


def hooked(parser, hooks):
    return parser.network.spans.hooked(**hooks)


def same(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_every_control_changes_scores_inside_its_block_only(parser, sample):
    before = scores(parser, sample[:3])
    controls = parser.attribution.controls(parser.attribution.mean(sample[:20]))
    assert len(controls) == 6
    for name, hooks in controls.items():
        with hooked(parser, hooks):
            assert not torch.equal(scores(parser, sample[:3]), before), name
    with pytest.raises(ZeroDivisionError), hooked(parser, controls["zeroed"]):
        raise ZeroDivisionError
    same(scores(parser, sample[:3]), before)


def test_a_sentence_swapped_with_itself_is_the_same(parser, sample):
    controls = parser.attribution.controls(torch.zeros(len(parser.vocab.labels) - 1))
    for some in (sample[:1], [sample[2]] * 3):
        before = scores(parser, some)
        for name in ("swapped sentences", "swapped attention"):
            with hooked(parser, controls[name]):
                same(scores(parser, some), before)


def test_a_shorter_next_sentence_is_repeated():
    x = torch.arange(10.0).reshape(2, 5, 1)
    found = of_next(x, torch.tensor([5, 2]))[..., 0]
    assert found[0].tolist() == [5, 6, 5, 6, 5]
    assert found[1].tolist() == [0, 1, 2, 3, 4]


def test_sentences_of_one_length_exchange_their_terms(parser, sample):
    """Two sentences of one length: what words add is exchanged, boundaries stay."""
    one = next(s for s in sample if len(s) == 9)
    two = next(s for s in sample if len(s) == 9 and s is not one)
    controls = parser.attribution.controls(torch.zeros(len(parser.vocab.labels) - 1))
    with hooked(parser, controls["zeroed"]):
        edges = scores(parser, [one, two])
    inside = scores(parser, [one, two]) - edges
    with hooked(parser, controls["swapped sentences"]):
        same(scores(parser, [one, two]), edges + inside[[1, 0]])


def test_uniform_attention_is_that_of_a_parser_trained_with_it(parser, sample):
    network = Network(override(parser.config, {"model.span_attention.attention": "uniform"}).model, parser.vocab).eval()
    network.load_state_dict(parser.network.state_dict())
    uniform = parser.attribution.controls(torch.zeros(len(parser.vocab.labels) - 1))["uniform attention"]
    with torch.inference_mode():
        made = network(parser.collator(sample[:3])).label_scores
        with network.spans.hooked(**uniform):
            same(network(parser.collator(sample[:3])).label_scores, made)
    with hooked(parser, uniform):
        same(scores(parser, sample[:3]), made)


def test_taking_out_a_head_is_zero_evidence_and_leaves_other_labels_alone(parser, sample):
    head = parser.vocab.label_index["NP"] - 1
    before = scores(parser, sample[:3])
    with hooked(parser, parser.attribution.without(head, torch.zeros(before.shape[-1] - 1))["head out"]):
        without = scores(parser, sample[:3])
    others = [k for k in range(before.shape[-1]) if k != head + 1]
    assert torch.equal(without[..., others], before[..., others])
    assert not torch.allclose(without[..., head + 1], before[..., head + 1], atol=1e-2)
    with torch.no_grad():
        parser.network.spans.evidence.weight[head] = 0
    same(scores(parser, sample[:3]), without)
    with hooked(parser, parser.attribution.without(head, torch.zeros(before.shape[-1] - 1))["head out"]):
        same(scores(parser, sample[:3]), without)


def test_the_mean_is_over_all_spans_in_any_batches(parser, sample):
    """Against the terms of every span, summed one by one."""
    some = sorted(sample, key=len)[20:24]
    labels = parser.vocab.labels
    asked = [[(i, j, "NP") for i in range(len(s)) for j in range(i + 1, len(s) + 1)] for s in some]
    sums = []
    for terms in parser.terms(some, besides=asked):
        words = terms.table[(terms.table["term"] == "word") & (terms.table["label"] == "NP")]
        sums += words.groupby(["start", "end"])["value"].sum().tolist()
    assert len(sums) == sum(map(len, asked))
    mean, head = parser.attribution.mean(some), labels.index("NP") - 1
    assert float(mean[head]) == pytest.approx(sum(sums) / len(sums), abs=1e-5)
    with hooked(parser, parser.attribution.without(head, torch.full((len(labels) - 1,), 1.5))["head at its mean"]):
        assert float(parser.attribution.mean(some)[head]) == pytest.approx(1.5)


def test_the_papers_layer_is_refused(tiny_parser, sample):
    parser = Parser.load(tiny_parser)
    with pytest.raises(ModelError, match="not scored by words"):
        SpanLayer(parser.network, parser.collator).view(sample[:1])
