"""The dry run says what a run needs; parts of a batch add up to the batch; nothing is left behind."""

import itertools

import pytest
import torch

from lalkit.config import override, preset, tiny
from lalkit.errors import ModelError
from lalkit.training import loop
from lalkit.training.loop import Run, estimate, kept_bytes, padded
from lalkit.training.objective import Learner, in_parts
from tests.command import lalkit


def test_a_dry_run_counts_what_the_run_has_and_leaves_nothing_behind(tmp_path):
    asked = ("train", "--treebank", "sample", "--preset", "tiny", "--dry-run")
    code, out, err = lalkit(*asked, cwd=tmp_path)
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["weights", "memory", "an"], err
    assert list(tmp_path.iterdir()) == []
    run = Run(tiny(), "sample", tmp_path / "run")
    groups = run.batches(run.lessons, 0)
    millions = f"{sum(p.numel() for p in run.parameters) / 1e6:.1f} M"
    assert f"{millions}, of which {millions} are trained" in out
    assert f"{len(groups):,} steps, {sum(map(len, run.train)):,} words; 3 epochs" in out
    assert f"to compute {max(map(padded, groups))} words at once" in out
    for wrong in ([*asked, "--workers", "0", "--set", "train.workers=1"], asked[:-1], [*asked, "--out", "x"]):
        assert lalkit(*wrong, cwd=tmp_path)[0] == 2


@pytest.mark.slow
def test_frozen_weights_take_no_gradient():
    text = estimate(override(preset("minilm"), {"train.batch_tokens": 60}), "sample-zh")
    whole, trained, fixed = (float(text.split(mark)[0].split()[-1]) for mark in (" M, of", " M are", " GB for weights"))
    assert trained < whole and fixed == pytest.approx((4 * whole + 12 * trained) / 1000, abs=0.1)


def test_memory_grows_with_the_words_of_a_part(sample):
    torch.manual_seed(1)
    learner = Learner(tiny(), sample)
    learner.network.train()
    parts = [sorted(sample, key=len)[-some:] for some in (3, 7)]
    small, large = (kept_bytes(learner, part) / padded(part) for part in parts)
    assert small > 1000 and small == pytest.approx(large, rel=0.2)


def test_time_is_seconds_a_word_and_updates(monkeypatch):
    """The clock is ours: every look at it is a second later, so each part and each update takes one. A part is a batch here."""
    ticks = itertools.count()
    monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))
    seconds, config = [], override(tiny(), {"train.batch_tokens": 200})
    for workers in (1, 2):
        text = estimate(override(config, {"train.workers": workers}), "sample")
        seconds.append(60 * float(text.split("about ")[-1].split()[0]))
    steps = int(text.split(" steps")[0].split()[-1])
    assert seconds[0] == pytest.approx(2 * steps, rel=0.3) and seconds[1] == pytest.approx(1.5 * steps, rel=0.3)


def test_it_says_what_does_not_fit_and_refuses_what_training_refuses(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "available_bytes", lambda device: 10**6)
    assert "too much    0.0 GB are free: lower train.part_tokens" in estimate(tiny(), "sample")
    config = override(tiny(), {"train.head_word_weight": 1.0})
    for start in (lambda: estimate(config, "sample"), lambda: Run(config, "sample", tmp_path / "run")):
        with pytest.raises(ModelError):
            start()


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
    assert all(len(p) == 1 or padded(p) <= 80 for p in parts)
    assert in_parts([], 0) == in_parts([], 80) == [] and in_parts(sample[:3], 0) == [list(sample[:3])]
