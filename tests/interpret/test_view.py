"""The view of the paper's layer: it has the decisions of the parser, alone and in a batch, and agrees with the controls."""

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.interpret.paper_layer import PaperLayer, without_heads
from lalkit.network.parser import Network
from lalkit.probes.perturbation import ablate, permutation_tvd
from lalkit.probes.tables import ask, look_at


@pytest.fixture(scope="module")
def parser(tiny_parser):
    found = Parser.load(tiny_parser)
    found.network.double()
    with torch.no_grad():  # barely trained, all spans have one label; larger weights make differences that can be seen
        for p in (*found.network.label_attention.parameters(), *found.network.spans.parameters()):
            p.mul_(2)
    yield found
    found.network.float()


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[::40][:4]


def spans_of(sentence):
    return [(0, len(sentence), "S"), (0, 1, "NP"), (len(sentence) - 1, len(sentence), "no such label")]


def test_the_view_has_the_decisions_of_the_parser(parser, some):
    network, spans = parser.network, [spans_of(s) for s in some]
    seen = parser.view(some, spans=spans)
    with torch.no_grad():
        output = network(parser.collator(some), attention=True)
    assert torch.allclose(seen.weights[:, :, 0], output.attention)
    outcome = seen.predict(seen.weights)
    for b, sentence in enumerate(some):
        right = 0
        for u, (start, end, label) in enumerate(spans_of(sentence)):
            scores = torch.softmax(output.label_scores[b, start, end].double(), -1)
            assert outcome.probs[b, u].tolist() == pytest.approx(scores.tolist(), abs=1e-6)
            right += parser.vocab.label_index.get(label) == int(scores.argmax())
        assert outcome.score[b, 0] == right
    assert outcome.score[:, 1].tolist() == [3] * len(some)
    several = seen.predict(torch.stack([seen.weights] * 2))
    assert torch.allclose(several.probs[1], outcome.probs)


def test_arcs_are_those_of_the_parser(parser, some):
    seen = parser.view(some, decide="arcs")
    with torch.no_grad():
        output = parser.network(parser.collator(some))
    probs = seen.predict(seen.weights).probs
    for b, sentence in enumerate(some):
        n = len(sentence)
        assert torch.allclose(probs[b, :n].sum(-1), torch.ones(n, dtype=torch.float64), atol=1e-6)
        best = output.arc_scores[b, :n, : n + 1].masked_fill(output.arc_scores[b, :n, : n + 1] == 0, -1e9).argmax(-1)
        assert torch.equal(probs[b, :n].argmax(-1), best)


def test_ablations_agree_with_controls_and_exact_effects(parser, some):
    network, spans = parser.network, [spans_of(s) for s in some]
    seen = parser.view(some, spans=spans)
    mean = parser.attribution.mean(some)
    changes = {"context": torch.zeros_like, "mean": lambda c: mean.to(c.dtype).expand_as(c)}
    for mode, change in changes.items():
        with network.label_attention.hooked(contexts=change), torch.no_grad():
            chart = network(parser.collator(some)).label_scores
        found = ablate(seen, mode=mode, mean=mean).probs
        for b in range(len(some)):
            for u, (start, end, _) in enumerate(spans[b]):
                assert torch.allclose(found[b, u], torch.softmax(chart[b, start, end].double(), -1), atol=1e-6)
    with torch.no_grad():
        posts = network(parser.collator(some), posts=True).posts
    for head in (0, 3):
        found = ablate(seen, head, "slice").probs
        for b in range(len(some)):
            places = torch.tensor([(start, end) for start, end, _ in spans[b]])
            n = len(some[b])
            scores = without_heads(network.spans, posts[b, : n + 1], places)[:, head]
            assert torch.allclose(found[b, : len(places)], torch.softmax(scores.double(), -1), atol=1e-6)


def test_permutations_change_nothing_if_values_are_equal(parser, some):
    seen = parser.view(some, spans=[spans_of(s) for s in some])
    found = permutation_tvd(seen, 10)
    assert found.max() > 1e-9 and found.min() >= 0
    layer = parser.network.label_attention
    kept = [p.clone() for p in layer.value.parameters()]
    with torch.no_grad():
        for p in layer.value.parameters():
            p.zero_()
    same = parser.view(some, spans=[spans_of(s) for s in some])
    assert permutation_tvd(same, 10).nan_to_num().max() < 1e-12
    with torch.no_grad():
        for p, old in zip(layer.value.parameters(), kept):
            p.copy_(old)


def test_probes_are_the_same_alone_and_in_a_batch(parser, some):
    keys = ["measure", "example", "head", "unit"]

    def probes(sentences, numbers):
        spans = [spans_of(s) for s in sentences]
        seen = parser.view(sentences, spans=spans, examples=numbers)
        table = pd.concat([look_at(seen), ask(seen, 10)])
        return table[table["example"].notna()].astype(dict.fromkeys(keys, str)).set_index(keys)["value"].sort_index()

    together = probes(some, [3, 5, 8, 13])
    for b, number in ((0, 3), (2, 8), (3, 13)):
        alone = probes([some[b]], [number])
        assert np.allclose(alone, together.loc[alone.index], atol=1e-6, equal_nan=True)


def test_parsers_without_such_a_view_are_refused(parser, some):
    config, vocab = parser.config, parser.vocab
    for setting in ({"model.label_attention": None}, {"model.label_attention.query": "matrix"}):
        network = Network(override(config, setting).model, vocab)
        with pytest.raises(ModelError, match="no label attention with one query"):
            PaperLayer(network, parser.collator).view(some)
    network = Network(override(config, {"model.feedforward": 16}).model, vocab)
    mixed = PaperLayer(network, parser.collator).view(some)
    assert mixed.without_slices is None and mixed.predict(mixed.weights).probs.isfinite().all()
    with pytest.raises(ParameterError, match="decide is 'tags'\n.*spans or arcs"):
        parser.view(some, decide="tags")
    with pytest.raises(LalkitError, match="no sentence to look at"):
        parser.view([])
