"""The dry run: weights are counted, memory is what a step keeps, parts of a batch add up to the batch, nothing is left behind."""

import itertools

import pytest
import torch

from lalkit.config import override, preset, tiny
from lalkit.errors import ModelError
from lalkit.network.batches import batches
from lalkit.training import estimate as module
from lalkit.training.estimate import describe, estimate, kept_bytes, size_of
from lalkit.training.loop import Run
from lalkit.training.objective import Learner, in_parts
from tests.command import lalkit


def test_counts_are_those_of_the_run(tmp_path):
    found = estimate(tiny(), "sample")
    run = Run(tiny(), "sample", tmp_path / "run")
    assert found["weights"] == found["trained"] == sum(p.numel() for p in run.parameters)
    assert found["fixed"] == 16 * found["trained"]  # weights, gradients and two moments of 4 bytes
    assert found["words"] == sum(map(len, run.train))
    groups = batches([len(s) for s in run.train], 200, 1, 0)
    assert found["steps"] == len(groups)
    assert found["largest"] == max(len(g) * max(len(run.train[i]) for i in g) for g in groups)


@pytest.mark.slow
def test_frozen_weights_take_no_gradient():
    found = estimate(override(preset("minilm"), {"train.batch_tokens": 60}), "sample-zh")
    assert found["trained"] < found["weights"]
    assert found["fixed"] == 4 * found["weights"] + 12 * found["trained"]


def test_memory_is_what_the_largest_part_keeps(sample):
    """The line through two parts against a third one, measured; and smaller parts keep less."""
    config = override(tiny(), {"train.batch_tokens": 300})
    found = estimate(config, "sample")
    torch.manual_seed(1)
    learner = Learner(config, sample)
    learner.network.train()
    part = sorted(sample, key=len)[-7:]  # of about 300 words with padding
    assert found["activations"] * size_of(part) / found["largest"] == pytest.approx(kept_bytes(learner, part), rel=0.2)
    less = estimate(override(config, {"train.part_tokens": 60}), "sample")
    assert less["activations"] < 0.6 * found["activations"] and less["steps"] == found["steps"]


def test_time_is_seconds_a_word_and_updates(monkeypatch):
    """The clock is ours: every look at it is a second later, so each part and each update takes one."""
    ticks = itertools.count()
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(ticks)))
    config = override(tiny(), {"train.batch_tokens": 200})
    one, two = (estimate(override(config, {"train.workers": workers}), "sample") for workers in (1, 2))
    computing = one["seconds"] - one["steps"]
    assert two["seconds"] - two["steps"] == pytest.approx(computing / 2)
    assert computing == pytest.approx(one["steps"], rel=0.5), "a part is a batch here, and takes a second"


def test_it_refuses_what_training_refuses(tmp_path):
    config = override(tiny(), {"train.head_word_weight": 1.0})
    for start in (lambda: estimate(config, "sample"), lambda: Run(config, "sample", tmp_path / "run")):
        with pytest.raises(ModelError):
            start()


def test_it_says_what_does_not_fit():
    found = {"weights": 1e9, "trained": 1e9, "fixed": 16e9, "activations": 4e9, "program": 1e9, "steps": 100, "words": 50_000,
             "largest": 800, "seconds": 240.0, "available": 24e9}  # fmt: skip
    assert "too much" not in describe(found, tiny())
    text = describe({**found, "available": 12e9}, override(tiny(), {"train.epochs": 30}))
    assert all(part in text for part in ("1000.0 M", "about 21.0 GB", "4 minutes", "2.0 hours", "12.0 GB are free"))


def test_a_batch_in_parts_has_the_gradient_of_the_batch(sample, tmp_path):
    names = ("", "encoder.word_", "label_attention.attention_", "label_attention.residual_")
    still = {f"model.{name}dropout": 0.0 for name in names}
    gradients, terms = [], []
    for words in (0, 60):
        config = override(tiny(), {**still, "train.part_tokens": words})
        torch.manual_seed(1)
        run = Run(config, "sample", tmp_path / str(words))
        run.network.train()
        terms.append(run.gradients(sample[:20], 20))
        gradients.append(torch.cat([p.grad.flatten() for p in run.parameters]))
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4 * gradients[0].abs().max().item())
    assert terms[0] == pytest.approx(terms[1], rel=1e-3)


def test_parts_hold_every_sentence_once(sample):
    parts = in_parts(sample[:30], 80)
    assert len(parts) > 3 and sorted(s.id for part in parts for s in part) == sorted(s.id for s in sample[:30])
    assert all(len(p) == 1 or size_of(p) <= 80 for p in parts)
    assert in_parts([], 0) == in_parts([], 80) == [] and in_parts(sample[:3], 0) == [list(sample[:3])]


def test_from_the_command_line(tmp_path):
    code, out, err = lalkit("train", "--treebank", "sample", "--preset", "tiny", "--dry-run", cwd=tmp_path)
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["weights", "memory", "an"]
    assert list(tmp_path.iterdir()) == []
    both = ("--workers", "0", "--set", "train.workers=1")
    code, out, err = lalkit("train", "--treebank", "sample", "--preset", "tiny", "--dry-run", *both)
    assert code == 2 and "workers" in err, "the option counts"
    assert lalkit("train", "--treebank", "sample", "--preset", "tiny")[0] == 2, "a training needs --out"
