"""The view of label attention inside the span: the probes find what a direct computation gives."""

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.api import Parser
from lalkit.errors import LalkitError, ModelError, ParameterError
from lalkit.interpret.span_layer import SpanLayer
from lalkit.probes.perturbation import ablate, erasure_flip, permutation_tvd
from lalkit.probes.tables import ask, look_at


@pytest.fixture(scope="module")
def parser(tiny_span_parser):
    found = Parser.load(tiny_span_parser)
    found.network.double()
    with torch.no_grad():  # barely trained, attention is even; larger weights make differences that can be seen
        for p in (found.network.spans.query, found.network.spans.evidence.weight):
            p.mul_(12)
    return found


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[40::40][:4]


def spans_of(sentence):
    n = len(sentence)
    return [(0, n, "S"), (0, 1, "NP"), (n // 2, n, "VP"), (n - 1, n, "no such label")]


@pytest.fixture(scope="module")
def seen(parser, some):
    return parser.view(some, spans=[spans_of(s) for s in some])


@pytest.fixture(scope="module")
def parts(parser, some):
    """Each sentence's (logits, evidence, chart), as the parser computes them."""
    found = []
    for sentence in some:
        with torch.no_grad():
            output = parser.network.eval()(parser.collator([sentence]))
        found.append((output.span_parts[0][0], output.span_parts[1][0], output.label_scores[0]))
    return found


def each(some):
    return [(b, *span) for b, sentence in enumerate(some) for span in spans_of(sentence)]


def probabilities(scores):
    return torch.softmax(scores.double(), -1).tolist()


def test_the_view_has_the_decisions_of_the_parser(parser, some, seen, parts):
    outcome = seen.predict(seen.weights)
    assert seen.heads[0] == "span.<H>" and len(seen.heads) == len(parser.vocab.labels) - 1
    for k, (b, start, end, label) in enumerate(each(some)):
        logits, evidence, chart = parts[b]
        wanted = torch.softmax(logits[start:end], 0).T
        assert (
            torch.allclose(seen.weights[k, :, 0, : end - start], wanted)
            and (seen.weights[k, :, 0, end - start :] == 0).all()
        )
        assert torch.allclose(seen.values[k, :, : end - start, 0], evidence[start:end].T)
        assert outcome.probs[k, 0].tolist() == pytest.approx(probabilities(chart[start, end]), abs=1e-9)
        right = parser.vocab.label_index.get(label, -2) == int(chart[start, end].argmax())
        assert outcome.score[k].tolist() == [right, 1]
    several = seen.predict(torch.stack([seen.weights] * 2))
    assert torch.allclose(several.probs[1], outcome.probs) and several.score.shape == (2, len(each(some)), 2)


def test_ablations_are_sums_without_a_head(parser, some, seen, parts):
    head = parser.vocab.label_index["NP"] - 1
    for mode in ("context", "uniform", "slice"):
        found = ablate(seen, head, mode).probs
        for k, (b, start, end, _) in enumerate(each(some)):
            logits, evidence, chart = parts[b]
            own = evidence[start:end, head]
            scores = chart[start, end].clone()
            scores[head + 1] -= torch.softmax(logits[start:end, head], 0) @ own
            scores[head + 1] += own.mean() if mode == "uniform" else 0
            assert found[k, 0].tolist() == pytest.approx(probabilities(scores), abs=1e-9)
    mean = torch.randn(len(seen.heads), 1, dtype=torch.float64)
    found = ablate(seen, head, "mean", mean).probs
    (b, start, end, _), (logits, evidence, chart) = each(some)[0], parts[0]
    scores = chart[start, end].clone()
    scores[head + 1] += mean[head, 0] - torch.softmax(logits[start:end, head], 0) @ evidence[start:end, head]
    assert found[0, 0].tolist() == pytest.approx(probabilities(scores), abs=1e-9)


def test_erasure_takes_words_of_the_span_in_the_order_of_attention(some, seen, parts, parser):
    """By one head: words go while the rest is normalised again, until another label comes first."""
    flips = 0
    for head in range(1, 8):
        found = erasure_flip(seen, heads=head)
        for k, (b, start, end, _) in enumerate(each(some)):
            logits, evidence, chart = parts[b]
            attention, own = torch.softmax(logits[start:end, head], 0), evidence[start:end, head]
            order = torch.argsort(attention, descending=True, stable=True)
            before, wanted = int(chart[start, end].argmax()), 1.0
            for gone in range(1, end - start):
                rest = attention.clone()
                rest[order[:gone]] = 0
                scores = chart[start, end].clone()
                scores[head + 1] += rest @ own / rest.sum() - attention @ own
                if int(scores.argmax()) != before:
                    wanted, flips = gone / (end - start), flips + 1
                    break
            assert float(found.fraction[k, 0]) == pytest.approx(wanted)
    assert flips > 0


def test_permutations_change_nothing_if_evidence_is_equal(parser, some, seen):
    found = permutation_tvd(seen, 10)
    lengths = torch.tensor([end - start for _, start, end, _ in each(some)])
    assert (found[lengths == 1] == 0).all() and found[lengths > 1].max() > 1e-6
    keep = parser.network.spans.evidence.weight.clone()
    with torch.no_grad():
        parser.network.spans.evidence.weight.zero_()
    same = parser.view(some, spans=[spans_of(s) for s in some])
    with torch.no_grad():
        parser.network.spans.evidence.weight.copy_(keep)
    assert permutation_tvd(same, 10).max() == 0


def test_probes_are_the_same_alone_and_in_a_batch(parser, some):
    tags = [[k % 3 for k in range(len(s))] for s in some]

    def probes(which, numbers):
        spans = [spans_of(some[b]) for b in which]
        view = parser.view([some[b] for b in which], spans=spans, examples=numbers)
        rows = [tags[b][start:end] for b, inside in zip(which, spans) for start, end, _ in inside]
        numbers_of_tags = torch.tensor([row + [-1] * (view.weights.shape[-1] - len(row)) for row in rows])
        table = pd.concat([look_at(view, numbers_of_tags, 3), ask(view, 10)])
        keys = ["measure", "example", "head", "unit"]
        return table[table["example"].notna()].astype(dict.fromkeys(keys, str)).set_index(keys)["value"].sort_index()

    together = probes([0, 1, 2, 3], [3, 5, 8, 13])
    assert "pos_kl" in together.index.get_level_values(0) and together.index.is_unique
    for b, number in ((0, 3), (3, 13)):
        alone = probes([b], [number])
        assert np.allclose(alone, together.loc[alone.index], atol=1e-9, equal_nan=True)


def test_by_default_the_spans_are_those_of_the_parse(parser, some):
    seen = parser.view(some)
    assert len(seen.weights) == sum(len(r.spans) for r in parser.parse_all(some))
    outcome = seen.predict(seen.weights)
    assert outcome.score[:, 1].sum() == len(seen.weights)


def test_arcs_and_other_layers_are_refused(parser, some, tiny_parser):
    with pytest.raises(ParameterError, match="decide is 'arcs'\n.*no part in arcs"):
        parser.view(some, decide="arcs")
    with pytest.raises(LalkitError, match="no span to look at"):
        parser.view([])
    other = Parser.load(tiny_parser)
    with pytest.raises(ModelError, match="not scored by words inside them"):
        SpanLayer(other.network, other.collator).view(some)
