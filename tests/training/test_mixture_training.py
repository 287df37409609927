"""Training on a mixture: which losses a batch reaches, what <H> learns, and resume with the same bits."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from lalkit.chart.cky import SUBHEAD
from lalkit.config import override, tiny
from lalkit.network.batches import Collator, batches
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.training.loop import Training, estimate
from lalkit.training.objective import MAX_LENGTH, losses
from lalkit.treebank.check import lessons
from tests.hostile.test_kills import result_of
from tests.mixed import mixed  # noqa: F401

MIXTURE = "sample:constituents*0.2+ewt*2+gum"
OBJECTIVES = ("margin", "span-likelihood")


@pytest.fixture(scope="module")
def material(mixed):  # noqa: F811
    return lessons(MIXTURE, "joint", MAX_LENGTH)


@pytest.fixture(scope="module")
def new(material):
    torch.manual_seed(0)
    vocab = Vocab.build(material.sentences)
    return Model(Network(tiny().model, vocab).eval(), vocab, Collator(vocab, tiny().model.encoder), tiny(), {})


def test_a_batch_has_sentences_of_one_kind():
    lengths, kinds = [3, 5, 4, 3, 6, 3] * 9, ["a", "b", "a", "c", "b", "c"] * 9
    for seed in (None, 1):
        groups = batches(lengths, 12, seed, 3, kinds)
        assert sorted(i for group in groups for i in group) == list(range(54))
        assert all(len({kinds[i] for i in group}) == 1 for group in groups)
        assert batches(lengths, 12, seed, 3, ["x"] * 54) == batches(lengths, 12, seed, 3)
    order = [kinds[group[0]] for group in groups]
    assert order != sorted(order), "the kinds are shuffled"


def of(material, constituents, heads):
    return [s for s in material.sentences if (s.constituents is not None, s.heads is not None) == (constituents, heads)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_sentence_trains_the_layers_it_has(material, new, objective):
    net, model = new.network, replace(new, config=override(tiny(), {"train.objective": objective}))
    for layers, reached in (
        ((True, True), {"spans", "arcs"}), ((True, False), {"spans"}), ((False, True), {"arcs"}),
    ):  # fmt: skip
        sentences = of(material, *layers)[:5]
        net.zero_grad()
        terms = losses(model, model.collator(sentences, gold=True))
        terms["loss"].backward()
        expected = reached | {"tags"} | ({"arc_labels"} if layers[1] else set())
        assert {name for name, value in terms.items() if name != "loss" and value > 0} == expected
        assert terms["loss"].isfinite()
        assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
        spans = net.spans.second.weight.grad
        assert (spans is not None and bool(spans.any())) == layers[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_heads_a_sentence_says_nothing_about_groups(material, new, objective):
    """Even if <H> is the best label everywhere. With heads, the same scores are corrected."""
    net, model = new.network, replace(new, config=override(tiny(), {"train.objective": objective}))
    before = net.spans.second.bias.data.clone()
    net.spans.second.bias.data[SUBHEAD - 1] = 9.0
    try:
        for heads in (False, True):
            net.zero_grad()
            losses(model, model.collator(of(material, True, heads)[:4], gold=True))["loss"].backward()
            assert bool(net.spans.second.weight.grad[SUBHEAD - 1].any()) == heads
    finally:
        net.spans.second.bias.data = before


def small(folder, **more):
    settings = {"train.epochs": 3, "train.dev_sentences": 20, "train.average": 0.9, **more}
    return override(tiny(), settings), MIXTURE, folder


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_the_same_bits(tmp_path, mixed):  # noqa: F811
    """In the middle of the second epoch, whose sentences are others than those of the first."""
    Training(*small(tmp_path / "whole")).finish()
    run, seen = Training(*small(tmp_path / "killed")), ([], [])

    def killed(sentences, *arguments):
        if seen[1]:
            raise KeyboardInterrupt
        seen[run.state.epoch].extend(sentences)
        return Training.step(run, sentences, *arguments)

    run.step = killed
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    assert Counter(seen[0]) == Counter(run.lessons.epoch(0)) and set(seen[1]) <= set(run.lessons.epoch(1))
    assert set(run.lessons.epoch(0)) != set(run.lessons.epoch(1))
    resumed = Training(*small(tmp_path / "killed"), resume=True)
    assert resumed.state.epoch == 1
    resumed.finish()
    whole = result_of(tmp_path / "whole")
    assert result_of(tmp_path / "killed") == whole
    row = whole["resume.json"]["state"]["history"][-1]
    assert row["f1"] is not None and row["las"] is not None and row["sentences"] == 20


def test_the_dry_run_counts_what_an_epoch_sees(material, mixed):  # noqa: F811
    assert f"steps, {sum(map(len, material.epoch(0))):,} words" in estimate(small("")[0], MIXTURE)
