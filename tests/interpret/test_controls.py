"""Controls change the contexts as their names say, inside their block only; and the algebra of contexts holds."""

from dataclasses import replace

import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override
from lalkit.errors import ModelError
from lalkit.interpret.paper_layer import PaperLayer
from lalkit.network.parser import Network
from lalkit.studies.label_heads import words_kept


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
        expected = parser.network.spans(posts)
    with hooked(parser, parser.attribution.without(2, parser.attribution.mean(sample[:5]))["head out"]):
        close(scores(parser, sample[:1]), expected)
    assert not torch.allclose(scores(parser, sample[:1]), expected, atol=1e-4)


def test_word_vectors_are_computed_once_and_stay_the_same(parser, sample, monkeypatch):
    before, calls, compute = scores(parser, sample[:3]), [], parser.network.words.forward
    monkeypatch.setattr(parser.network.words, "forward", lambda batch: calls.append("words") or compute(batch))
    with words_kept(parser.network):
        for some in (sample[:3], sample[:3], sample[1:3]):
            close(scores(parser, some), scores(parser, some), 0)
    assert len(calls) == 2
    close(scores(parser, sample[:3]), before)


@pytest.mark.parametrize(
    ("change", "slices"), [({"model.feedforward": 16}, True), ({"model.label_attention.combine": "project"}, False)]
)
def test_where_heads_are_mixed_there_are_controls_without_contributions(parser, sample, change, slices):
    torch.manual_seed(0)
    network = Network(override(parser.config, change).model, parser.vocab)
    model = replace(parser.model, network=network)
    source = PaperLayer(model)
    assert ("shuffled heads" in source.controls(source.mean(sample[:5]))) == slices
    with pytest.raises(ModelError):
        source.explain(sample[:1])
    other = Parser.load(parser.folder)
    other.model = model
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
            with pytest.raises(ModelError):
                ask(sample[:2])
