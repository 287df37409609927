"""Controls change the contexts as their names say, inside their block only; and the algebra of contexts holds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.errors import ModelError
from lalkit.evaluation.scores import evaluate
from lalkit.interpret.controls import CONTROLS, FORCED, compare, forced, words_kept
from lalkit.interpret.paper_layer import PaperLayer, unchanged
from lalkit.network.scores import fenceposts


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return Parser.load(tiny_parser)


def scores(parser, sentences):
    with torch.inference_mode():
        return parser.network(parser.collator(sentences)).label_scores


@pytest.fixture(scope="module")
def controls(parser, sample):
    return parser.attribution.controls(parser.attribution.mean(sample[:20]))


def hooked(parser, hooks):
    return parser.network.label_attention.hooked(**hooks)


def test_a_control_acts_inside_its_block_only(parser, sample, controls):
    before = scores(parser, sample[:3])
    assert {"as trained", *controls} == set(CONTROLS)
    with hooked(parser, {"contexts": unchanged}):
        torch.testing.assert_close(scores(parser, sample[:3]), before, rtol=0, atol=1e-4)
    with hooked(parser, controls["zeroed"]):
        assert not torch.allclose(scores(parser, sample[:3]), before, atol=1e-3)
    with pytest.raises(ZeroDivisionError), hooked(parser, controls["zeroed"]):
        raise ZeroDivisionError
    torch.testing.assert_close(scores(parser, sample[:3]), before)


def test_every_control_does_what_its_name_says(parser, sample, controls):
    contexts = torch.randn(3, 6, 8)
    change = {name: hooks["contexts"] for name, hooks in controls.items() if "contexts" in hooks}
    assert (change["zeroed"](contexts) == 0).all()
    assert torch.equal(change["swapped sentences"](contexts), contexts[[2, 0, 1]])
    swapped = change["swapped heads"](contexts)
    assert not any(torch.equal(swapped[:, h], contexts[:, h]) for h in range(6))
    assert sorted(swapped[0, :, 0].tolist()) == sorted(contexts[0, :, 0].tolist())
    torch.testing.assert_close(change["mean"](contexts)[1], parser.attribution.mean(sample[:20]))


def test_the_mean_is_over_sentences_in_any_batches(parser, sample):
    contexts = []
    with hooked(parser, {"contexts": lambda c: contexts.append(c) or c}):
        for sentence in sample[:5]:
            scores(parser, [sentence])
    expected = torch.cat(contexts).mean(0)
    torch.testing.assert_close(parser.attribution.mean(sample[:5]), expected, atol=1e-5, rtol=0)


def test_with_shared_projections_only_the_contexts_of_heads_differ(parser, sample, controls):
    """P, R and the norm are the same for all heads: to exchange contexts is to exchange the heads' outputs."""
    with hooked(parser, controls["swapped heads"]):
        swapped = scores(parser, sample[:2])
    with hooked(parser, controls["shuffled heads"]):
        torch.testing.assert_close(scores(parser, sample[:2]), swapped, rtol=0, atol=1e-5)


def test_uniform_attention_is_what_equal_keys_give(parser, sample, controls):
    """Without keys all logits are equal; and the zeroed keys are put back."""
    with hooked(parser, controls["uniform attention"]):
        uniform = scores(parser, sample[:3])
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
    torch.testing.assert_close(uniform, expected, rtol=0, atol=1e-4)
    assert not torch.allclose(scores(parser, sample[:3]), expected, atol=1e-4)


def test_without_a_head_its_slice_is_zero_inside_the_block(parser, sample):
    before = scores(parser, sample[:1])
    with torch.inference_mode():
        posts = parser.network(parser.collator(sample[:1]), posts=True).posts.clone()
        posts[:, :, 2] = 0
        expected = parser.network.spans(posts)
    with hooked(parser, parser.attribution.without(2, parser.attribution.mean(sample[:5]))["head out"]):
        torch.testing.assert_close(scores(parser, sample[:1]), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(scores(parser, sample[:1]), before)


def test_word_vectors_are_computed_once_and_stay_the_same(parser, sample):
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


def test_only_the_norm_keeps_a_context_from_cancelling_in_a_span():
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


def test_heads_that_are_made_to_attend_to_the_root(parser, sample):
    """Against sentences parsed one by one, with an attention that is written down as it must be."""
    some = sample[:25]
    table = forced(parser.network, parser.collator, some, shares=(0.0, 1.0), count=2).set_index(
        ["to", "heads", "share"]
    )
    assert list(table.index.unique("to")) == ["as trained", *FORCED] and len(table) == 1 + 2 * 2 * len(FORCED)
    nothing = table.xs(0.0, level="share")
    assert (nothing[["repaired", "broken"]] == 0).all(axis=None) and (nothing["f1_p"] == 1).all()
    parses, trained = [], [r.sentence for r in parser.parse_all(some)]
    for sentence in some:
        root = sentence.heads.index(0) + 1

        def only_the_root(attention, mask, root=root):
            return (
                torch.nn.functional.one_hot(torch.tensor(root), attention.shape[2]).to(attention).expand_as(attention)
            )

        with hooked(parser, {"attention": only_the_root}):
            parses.append(parser.parse_all([sentence])[0].sentence)
    row, after = table.loc["root of gold", "all", 1.0], evaluate(some, parses).summary()
    assert (row["f1"], row["uas"]) == pytest.approx((after["f1"], after["uas"]))
    right, old, new = (
        {(i, c) for i, s in enumerate(trees) for c in s.constituents} for trees in (some, trained, parses)
    )
    gained, lost = right & new - old, right & old - new
    assert (row["repaired"], row["broken"]) == (len(gained), len(lost)) and gained | lost
    assert row["broken_S"] == sum(c.label == "S" for _, c in lost)
    assert table.loc["random word", "all", 1.0].tolist() != row.tolist()
    assert row.tolist() != table.loc["root of gold", "top 2 of S", 1.0].tolist()


def test_a_parser_without_label_attention_has_no_controls(parser, tiny_parser, sample):
    network = Parser.load(tiny_parser).network
    network.config = replace(network.config, label_attention=None)
    with pytest.raises(ModelError, match="no label attention"):
        PaperLayer(network, parser.collator).mean(sample[:2])
