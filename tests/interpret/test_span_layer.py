"""Label attention inside the span: terms add up to scores, and probes and controls do what a direct computation gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override
from lalkit.interpret.explanation import BOUNDARY, CONSTANT, FIRST, LAST, WORD
from lalkit.network.parser import Network
from lalkit.probes.perturbation import ablate


@pytest.fixture(scope="module", params=["full", "glass"])
def parser(request, tiny_span_parser, trained):
    if request.param == "glass":
        return Parser.load(tiny_span_parser)
    return Parser.load(trained(label_attention="none", span_attention={"d_key": 8, "boundary": request.param}))


# ---------------------------------------------------------------- terms


def test_the_terms_of_any_span_add_up(parser, sample):
    """Also of spans and labels that no tree has: all the words of a sentence, and each word, as each label."""
    labels = range(1, len(parser.vocab.labels))
    for sentence in sample[:12]:
        n = len(sentence)
        places = [(0, n), *((i, i + 1) for i in range(n))]
        spans = torch.tensor([(*place, label) for place in places for label in labels])
        with torch.inference_mode():
            output = parser.network.eval()(parser.model.collator([sentence]))
            parts, sums = parser.attribution.split(output, 0, n, spans)
        start, end, label = spans.T
        scores = np.bincount(parts.span, parts.value)
        assert scores == pytest.approx(output.label_scores[0, start, end, label].numpy(), abs=1e-5)
        words = parts.where(parts.part == WORD)
        assert np.bincount(words.span, words.value) == pytest.approx(sums[np.arange(len(spans)), label - 1], abs=1e-9)
        assert np.bincount(words.span, words.attention) == pytest.approx(1, abs=1e-5)
    glass = parser.config.model.span_attention.boundary == "glass"
    assert set(parts.part) == ({WORD, FIRST, LAST, CONSTANT} if glass else {WORD, BOUNDARY})


# ---------------------------------------------------------------- the view of the probes


def larger(folder, factor):
    """Barely trained, attention is even; larger weights make differences that can be seen."""
    found = Parser.load(folder)
    with torch.no_grad():
        for p in (found.network.spans.query, found.network.spans.evidence.weight):
            p.mul_(factor)
    return found


@pytest.fixture(scope="module")
def probed(tiny_span_parser):
    found = larger(tiny_span_parser, 12)
    found.network.double()
    return found


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[40::40][:4]


def spans_of(sentence):
    n = len(sentence)
    return [(0, n, "S"), (0, 1, "NP"), (n // 2, n, "VP"), (n - 1, n, "no such label")]


@pytest.fixture(scope="module")
def seen(probed, some):
    return probed.view(some, spans=[spans_of(s) for s in some])


@pytest.fixture(scope="module")
def parts(probed, some):
    """For each span: (start, end, label), the logits and the evidence of its words, and its scores by the parser."""
    found = []
    for sentence in some:
        with torch.no_grad():
            output = probed.network.eval()(probed.model.collator([sentence]))
        for start, end, label in spans_of(sentence):
            logits, evidence = (part[0][start:end] for part in output.span_parts[:2])
            found.append(((start, end, label), logits, evidence, output.label_scores[0, start, end]))
    return found


def probabilities(scores):
    return torch.softmax(scores.double(), -1).tolist()


def test_the_view_has_the_decisions_of_the_parser(probed, some, seen, parts):
    outcome = seen.predict(seen.weights)
    assert seen.heads[0] == "span.<H>" and len(seen.heads) == len(probed.vocab.labels) - 1
    for k, ((start, end, label), logits, evidence, scores) in enumerate(parts):
        weights = seen.weights[k, :, 0]
        assert torch.allclose(weights[:, : end - start], torch.softmax(logits, 0).T)
        assert (weights[:, end - start :] == 0).all()
        assert torch.allclose(seen.values[k, :, : end - start, 0], evidence.T)
        assert outcome.probs[k, 0].tolist() == pytest.approx(probabilities(scores), abs=1e-9)
        assert outcome.score[k].tolist() == [probed.vocab.label_index.get(label, -2) == int(scores.argmax()), 1]
    several = seen.predict(torch.stack([seen.weights] * 2))
    assert torch.allclose(several.probs[1], outcome.probs)
    assert len(probed.view(some).weights) == sum(len(r.spans) for r in probed.parse_all(some)), "the spans of the parse"


def test_ablations_are_sums_without_attention(seen, parts):
    for mode in ("context", "uniform"):
        found = ablate(seen, mode).probs
        for k, (_, logits, evidence, scores) in enumerate(parts):
            changed = scores.clone()
            changed[1:] -= (torch.softmax(logits, 0) * evidence).sum(0)
            changed[1:] += evidence.mean(0) * (mode == "uniform")
            assert found[k, 0].tolist() == pytest.approx(probabilities(changed), abs=1e-9)


# ---------------------------------------------------------------- controls


@pytest.fixture
def changed(tiny_span_parser):
    return larger(tiny_span_parser, 6)


def scores_of(parser, sentences, **hooks):
    with torch.inference_mode(), parser.network.spans.hooked(**hooks):
        return parser.network.eval()(parser.model.collator(sentences)).label_scores


def same(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_every_control_changes_scores_inside_its_block_only(changed, sample):
    before = scores_of(changed, sample[:3])
    controls = changed.attribution.controls(changed.attribution.mean(sample[:20]))
    assert len(controls) == 6
    for name, hooks in controls.items():
        assert not torch.equal(scores_of(changed, sample[:3], **hooks), before), name
    same(scores_of(changed, sample[:3]), before)
    alike = [sample[2]] * 3
    for name in ("swapped sentences", "swapped attention"):
        same(scores_of(changed, alike, **controls[name]), scores_of(changed, alike))
    # Two sentences of one length exchange the sums of their words, and keep their boundaries.
    pair = [s for s in sample if len(s) == 9][:2]
    edges = scores_of(changed, pair, **controls["zeroed"])
    inside = scores_of(changed, pair) - edges
    same(scores_of(changed, pair, **controls["swapped sentences"]), edges + inside[[1, 0]])
    network = Network(override(changed.config, {"model.span_attention.attention": "uniform"}).model, changed.vocab)
    network.load_state_dict(changed.network.state_dict())
    uniform = scores_of(changed, sample[:3], **controls["uniform attention"])
    changed.model = replace(changed.model, network=network)
    same(scores_of(changed, sample[:3]), uniform)  # as of a parser that was trained with it


def test_the_mean_is_over_all_spans_in_any_batches(changed, sample):
    """Against the sums of every span, one by one."""
    some, labels, sums = sorted(sample, key=len)[20:24], changed.vocab.labels, []
    head = labels.index("NP") - 1
    for sentence in some:
        spans = torch.tensor([(i, j, head + 1) for i in range(len(sentence)) for j in range(i + 1, len(sentence) + 1)])
        with torch.inference_mode():
            output = changed.network.eval()(changed.model.collator([sentence]))
            sums += changed.attribution.split(output, 0, len(sentence), spans)[1][:, head].tolist()
    assert float(changed.attribution.mean(some)[head]) == pytest.approx(sum(sums) / len(sums), abs=1e-5)
    hooks = changed.attribution.without(head, torch.full((len(labels) - 1,), 1.5))["head at its mean"]
    with changed.network.spans.hooked(**hooks):
        assert float(changed.attribution.mean(some)[head]) == pytest.approx(1.5)
