"""Contexts are changed as said, and given back; what the algebra says of them holds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.errors import LalkitError, ModelError
from lalkit.evaluation.scores import evaluate
from lalkit.interpret.controls import (
    CONTROLS,
    NAMED,
    changed,
    changes,
    compare,
    mean_contexts,
    without_head,
    words_kept,
)
from lalkit.network.scores import fenceposts


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return Parser.load(tiny_parser)


def scores(parser, sentences):
    with torch.inference_mode():
        return parser.network(parser.collator(sentences)).label_scores


def test_as_trained_is_as_trained_and_is_given_back(parser, sample):
    before = scores(parser, sample[:3])
    controls = changes(parser.network, parser.collator, sample[:20])
    assert set(controls) | set(NAMED) == set(CONTROLS)
    with changed(parser.network, controls["as trained"]):
        torch.testing.assert_close(scores(parser, sample[:3]), before, rtol=0, atol=1e-4)
    with changed(parser.network, controls["zeroed"]):
        assert not torch.allclose(scores(parser, sample[:3]), before, atol=1e-3)
    with pytest.raises(ZeroDivisionError), changed(parser.network, controls["zeroed"]):
        raise ZeroDivisionError
    torch.testing.assert_close(scores(parser, sample[:3]), before)


def test_every_control_does_what_it_says(parser, sample):
    contexts = torch.randn(3, 6, 8)
    controls = changes(parser.network, parser.collator, sample[:20])
    assert (controls["zeroed"](contexts) == 0).all()
    assert torch.equal(controls["swapped sentences"](contexts), contexts[[2, 0, 1]])
    swapped = controls["swapped heads"](contexts)
    assert not any(torch.equal(swapped[:, h], contexts[:, h]) for h in range(6))
    assert sorted(swapped[0, :, 0].tolist()) == sorted(contexts[0, :, 0].tolist())
    mean = controls["mean"](contexts)
    torch.testing.assert_close(mean[1], mean_contexts(parser.network, parser.collator, sample[:20]))


def test_the_mean_is_over_sentences_whatever_the_batches(parser, sample):
    found = []
    with changed(parser.network, lambda c: found.append(c) or c):
        for sentence in sample[:5]:
            scores(parser, [sentence])
    expected = torch.cat(found).mean(0)
    torch.testing.assert_close(mean_contexts(parser.network, parser.collator, sample[:5]), expected, atol=1e-5, rtol=0)


def test_with_shared_projections_heads_differ_by_their_contexts_alone(parser, sample):
    """P, R and the norm are the same for all heads: to exchange contexts is to exchange the heads' outputs."""
    controls = changes(parser.network, parser.collator, sample[:5])
    with changed(parser.network, controls["swapped heads"]):
        swapped = scores(parser, sample[:2])
    with changed(parser.network, "shuffled heads"):
        torch.testing.assert_close(scores(parser, sample[:2]), swapped, rtol=0, atol=1e-5)


def test_uniform_attention_is_what_equal_keys_give(parser, sample):
    """Without keys all logits are equal; and the zeroed keys are put back."""
    with changed(parser.network, "uniform attention"):
        found = scores(parser, sample[:3])
    layer = parser.network.label_attention
    kept = [p.clone() for p in layer.key.parameters()]
    with torch.no_grad():
        for p in layer.key.parameters():
            p.zero_()
    layer.train().eval()  # forget what was folded
    expected = scores(parser, sample[:3])
    with torch.no_grad():
        for p, old in zip(layer.key.parameters(), kept):
            p.copy_(old)
    layer.train().eval()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert not torch.allclose(scores(parser, sample[:3]), expected, atol=1e-4)


def test_without_a_head_its_slice_is_gone_and_given_back(parser, sample):
    before = scores(parser, sample[:1])
    with torch.inference_mode():
        posts = parser.network(parser.collator(sample[:1]), posts=True).posts.clone()
        posts[:, :, 2] = 0
        expected = parser.network.spans(posts)
    with without_head(parser.network, 2):
        torch.testing.assert_close(scores(parser, sample[:1]), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(scores(parser, sample[:1]), before)


def test_words_are_computed_once_and_the_same(parser, sample):
    before, calls = scores(parser, sample[:3]), []
    hook = parser.network.encoder.register_forward_hook(lambda *_: calls.append(1))
    usual = parser.network.words.forward
    parser.network.words.forward = lambda batch: calls.append("words") or usual(batch)
    with words_kept(parser.network):
        for some in (sample[:3], sample[:3], sample[1:3]):
            found = scores(parser, some)
            torch.testing.assert_close(found, scores(parser, some), rtol=0, atol=0)
    assert calls.count("words") == 2 and calls.count(1) == 6
    parser.network.words.forward = usual
    hook.remove()
    torch.testing.assert_close(scores(parser, sample[:3]), before)


def test_a_context_cancels_in_a_span_but_for_the_norm():
    words, contexts = torch.randn(1, 7, 1, 8, dtype=torch.double), torch.randn(2, 1, 1, 5, 8, dtype=torch.double)
    before = [fenceposts(words + c, (4, 4)) for c in contexts]
    after = [fenceposts(torch.nn.functional.layer_norm(words + c, (8,)), (4, 4)) for c in contexts]
    spans = [[post[:, 5] - post[:, 2] for post in posts] for posts in (before, after)]
    torch.testing.assert_close(*spans[0], rtol=0, atol=1e-12)
    assert (spans[1][0] - spans[1][1]).abs().max() > 0.1


def test_all_controls_in_one_table(parser, sample):
    table = compare(parser.network, parser.collator, sample[:30], ("share", "exact")).set_index("contexts")
    assert list(table.index) == list(CONTROLS)
    trained = [f"{what}_{norm}" for norm in ("share", "exact") for what in ("same_top", "rho")]
    assert table.loc["as trained", trained].tolist() == pytest.approx([100, 1, 100, 1])
    assert table.loc["as trained", ["f1_p", "uas_p"]].tolist() == [1, 1]
    assert table["f1_p"].between(0, 1, inclusive="right").all() and table["f1_p"].min() < 1
    expected = evaluate(sample[:30], [r.sentence for r in parser.parse_all(sample[:30])]).summary()
    assert table.loc["as trained", ["f1", "uas", "las"]].tolist() == pytest.approx(
        [expected[k] for k in ("f1", "uas", "las")]
    )
    assert table.loc["swapped heads"].drop("meaning").tolist() == pytest.approx(
        table.loc["shuffled heads"].drop("meaning").tolist(), abs=1e-6
    )
    assert np.isnan(table.loc["zeroed", "rho_share"]), "all heads are alike: there is no ranking"


def test_what_cannot_be_changed(parser, tiny_parser):
    with pytest.raises(LalkitError, match="'zeroed' needs its contexts"), changed(parser.network, "zeroed"):
        pass
    network = Parser.load(tiny_parser).network
    network.config = replace(network.config, label_attention=None)
    with pytest.raises(ModelError, match="no label attention"), changed(network, "shuffled heads"):
        pass
