"""Training: it learns, also on a mixture; an interruption changes nothing, bad runs are refused, a dry run says its needs."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from lalkit.api import Parser
from lalkit.chart.cky import SUBHEAD
from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.network.batches import Collator, batches
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.training import loop
from lalkit.training.checkpoint import load_model
from lalkit.training.loop import Training, estimate, train
from lalkit.training.objective import MAX_LENGTH, groups_of, losses, rate_factor
from lalkit.treebank.check import lessons
from tests.command import lalkit
from tests.hostile.test_kills import result_of
from tests.mixed import mixed  # noqa: F401


def test_it_learns_twenty_sentences_by_heart(tmp_path, sample):
    """Every part of the loss goes down, and gold wins under the trained scores."""
    still = override(tiny(), {"model.dropout": 0.0, "model.label_attention.residual_dropout": 0.0})
    run_ = Training(still, "sample", tmp_path / "run")
    chosen = sorted(sample, key=len)[20:40]
    run_.model.network.train()
    first = run_.step(chosen, 0.0)
    for _ in range(250):
        last = run_.step(chosen, 0.0)
    assert all(last[name] < 0.3 * first[name] for name in first), (first, last)
    found = [p.sentence for p in run_.model.parse(chosen)]
    right = sum(f.constituents == g.constituents and f.heads == g.heads for f, g in zip(found, chosen))
    assert right >= 18


def test_a_parser_is_not_overwritten(tiny_parser, tmp_path):
    alone = Parser.load(tiny_parser).save(tmp_path / "alone")
    for resume in (False, True):
        with pytest.raises(ModelError, match="alone: holds a parser, but no run to continue"):
            train(tiny(), "sample", alone, resume=resume)


@pytest.mark.parametrize("objective", ["margin", "span-likelihood"])
def test_losses_are_means_over_sentences(tiny_parser, sample, objective):
    model = load_model(tiny_parser)
    model = replace(model, config=override(model.config, {"train.objective": objective}))
    one = [losses(model, model.collator([s], gold=True))["loss"].item() for s in sample[:6]]
    all_ = losses(model, model.collator(sample[:6], gold=True))["loss"].item()
    assert abs(sum(one) / 6 - all_) < 1e-3 * all_


def test_the_average_of_the_weights_is_scored_and_saved(tmp_path):
    config = override(tiny(), {"train.epochs": 1, "train.average": 0.5, "train.dev_sentences": 4})
    run, steps = Training(config, "sample", tmp_path), []
    run.optimizer.register_step_post_hook(lambda *_: steps.append(run.parameters[0].detach().clone()))
    start = run.parameters[0].detach().clone()
    run.finish()
    mean = start
    for i, weights in enumerate(steps):
        keep = min(0.5, (1 + i) / (10 + i))
        mean = keep * mean + (1 - keep) * weights
    name = next(name for name, p in run.model.network.named_parameters() if p is run.parameters[0])
    saved = load_file(tmp_path / json.loads((tmp_path / "model.json").read_text())["weights"])[name]
    assert torch.allclose(saved, mean, atol=1e-6) and not torch.allclose(saved, steps[-1], atol=1e-4)
    assert torch.equal(run.parameters[0], steps[-1]), "training goes on with the weights themselves"


def test_schedule():
    config = tiny().train
    assert rate_factor(config, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(config, 100, 0.25) == pytest.approx(0.75)
    assert rate_factor(config, 100, 1.0) == 0
    share = replace(config, warmup=0.2)
    assert rate_factor(share, 100, 0.1) == pytest.approx(0.5 * 0.9)
    assert rate_factor(share, 0, 0.25) == pytest.approx(0.75)


@pytest.mark.slow
def test_a_time_limit_ends_the_run_in_the_middle_of_an_epoch_with_rates_at_zero(tmp_path, monkeypatch):
    """The clock is ours here: every look at it is a second later. 60 seconds end within the first of 50 epochs."""
    ticks = itertools.count()
    monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))
    rates = []
    monkeypatch.setattr(loop, "rate_factor", lambda *a: rates.append(rate_factor(*a)) or rates[-1])
    settings = {"epochs": 50, "max_minutes": 1, "dev_sentences": 3, "batch_tokens": 60, "warmup": 1}
    settings = {f"train.{name}": value for name, value in settings.items()}
    train(override(tiny(), settings), "sample", tmp_path / "run")
    state = json.loads((tmp_path / "run" / "resume.json").read_text())["state"]
    assert state["epoch"] == 1 and state["step"] == len(rates) < 60
    assert rates[0] > 0.9 and rates[-1] == 0 and rates == sorted(rates, reverse=True)


# ---------------------------------------------------------------- the dry run


def test_a_dry_run_counts_what_the_run_has_and_leaves_nothing_behind(tmp_path):
    asked = ("train", "--treebank", "sample", "--preset", "tiny", "--out", "x", "--dry-run")
    code, out, err = lalkit(*asked, cwd=tmp_path)
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["weights", "memory", "an"], err
    assert list(tmp_path.iterdir()) == []
    run = Training(tiny(), "sample", tmp_path / "run")
    groups = groups_of(run.lessons, run.config.train, 0)
    millions = f"{sum(p.numel() for p in run.parameters) / 1e6:.1f} M"
    assert f"{millions}, of which {millions} are trained" in out
    assert f"{len(groups):,} steps, {sum(map(len, run.train)):,} words; 3 epochs" in out
    assert lalkit(*asked[:-3], cwd=tmp_path)[0] == 2


def test_time_is_seconds_a_word_and_updates(monkeypatch):
    """The clock is ours: each batch and each update takes a second."""
    monkeypatch.setattr("lalkit.training.loop.milliseconds", lambda call, device: (call(), 1000.0)[1])
    text = estimate(override(tiny(), {"train.batch_tokens": 200}), "sample")
    steps = int(text.split(" steps")[0].split()[-1])
    assert 60 * float(text.split("about ")[-1].split()[0]) == pytest.approx(2 * steps, rel=0.3)


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
    pytest.raises(KeyboardInterrupt, run.finish)
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
