"""Training: it learns, a kill changes nothing, bad runs are refused."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.network.predict import predict
from lalkit.training import loop
from lalkit.training.checkpoint import load_model
from lalkit.training.loop import Run, train
from lalkit.training.objective import losses, rate_factor
from tests.launch import launch

SCRIPT = """
import sys, torch
torch.set_num_threads(1)
from lalkit.config import tiny
from lalkit.config import override
from lalkit.training.loop import train
settings = {"train.epochs": 4, "train.dev_sentences": 10, "train.workers": sys.argv[2], "train.average": 0.9}
train(override(tiny(), settings), "sample", sys.argv[1], resume="resume" in sys.argv)
"""


def run(folder, workers, *more):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(workers), *more], stdout=subprocess.DEVNULL)


def result(folder):
    content = json.loads((folder / "model.json").read_text())
    resume = json.loads((folder / "resume.json").read_text())
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in resume["state"]["history"]]
    return load_file(folder / content["weights"]), load_file(folder / resume["weights"]), history


@pytest.mark.slow
def test_sigkill_and_resume_end_with_the_same_bits(tmp_path):
    """With two workers; tests/hostile/test_kills.py kills a training with one."""
    workers = 2
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(whole, workers).wait() == 0
    process = run(killed, workers)
    while process.poll() is None and not (killed / "resume.json").exists():
        time.sleep(0.005)
    time.sleep(0.13)  # it is some steps after its first checkpoint: in the middle of an epoch, an evaluation or a save
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert run(killed, workers, "resume").wait() == 0
    for ours, theirs in zip(result(killed), result(whole)):
        if isinstance(ours, dict):
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[k], theirs[k]) for k in ours)
        else:
            assert ours == theirs
    assert sorted(p.suffix for p in killed.iterdir()) == [".json"] * 3 + [".safetensors"] * 2, (
        "nothing half-written stays"
    )


@pytest.mark.parametrize("objective", ["margin", pytest.param("likelihood", marks=pytest.mark.slow)])
def test_it_learns_twenty_sentences_by_heart(tmp_path, sample, objective):
    """Every part of the loss goes down, and gold wins under the trained scores."""
    torch.manual_seed(0)
    config = override(
        tiny(),
        {
            f"model.{name}dropout": 0.0
            for name in ("", "encoder.word_", "label_attention.attention_", "label_attention.residual_")
        }
        | {"train.objective": objective},
    )
    run_ = Run(config, "sample", tmp_path / "run")
    chosen = sorted(sample, key=len)[20:40]
    run_.network.train()
    first, _ = run_.step(chosen, 0.0)
    for _ in range(250):
        last, _ = run_.step(chosen, 0.0)
    assert all(last[name] < 0.3 * first[name] for name in first), (first, last)
    found = [p.sentence for p in predict(run_.network, run_.collator, chosen)]
    right = sum(f.constituents == g.constituents and f.heads == g.heads for f, g in zip(found, chosen))
    assert right >= 18


def test_a_run_is_not_overwritten_and_not_resumed_with_other_settings(tiny_parser):
    with pytest.raises(ModelError, match="holds a run already"):
        train(tiny(), "sample", tiny_parser)
    with pytest.raises(ModelError, match="other settings"):
        train(override(tiny(), {"train.seed": 2}), "sample", tiny_parser, resume=True)


def test_a_run_goes_on_with_the_sentences_it_began_with(tmp_path):
    for part in ("train", "dev"):
        (tmp_path / f"{part}.trees").write_text("( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n")
    config = override(tiny(), {"train.epochs": 1})
    train(config, str(tmp_path), tmp_path / "run")
    train(config, str(tmp_path), tmp_path / "run", resume=True)
    (tmp_path / "train.trees").write_text("( (S (NP (DT The) (NN start)) (VP (VBD came))) )\n")
    with pytest.raises(ModelError, match="run: was started with other sentences"):
        train(config, str(tmp_path), tmp_path / "run", resume=True)


def test_a_parser_is_not_overwritten_and_a_damaged_run_is_named(tiny_parser, tmp_path):
    alone = Parser.load(tiny_parser).save(tmp_path / "alone")
    for resume in (False, True):
        with pytest.raises(ModelError, match="alone: holds a parser, but no run to continue"):
            train(tiny(), "sample", alone, resume=resume)
    run = shutil.copytree(tiny_parser, tmp_path / "run")
    content = json.loads((run / "resume.json").read_text())
    (run / "resume.json").write_text(json.dumps({name: value for name, value in content.items() if name != "state"}))
    with pytest.raises(ModelError, match="resume.json: does not say how far it is"):
        train(override(tiny(), {"train.epochs": 2}), "sample", run, resume=True)


@pytest.mark.parametrize("objective", ["margin", "span-likelihood", "likelihood"])
def test_losses_are_means_over_sentences(tiny_parser, sample, objective):
    loaded = load_model(tiny_parser)
    config = replace(loaded.config.train, objective=objective)
    one = [losses(loaded.network, loaded.collator([s], gold=True), config)["loss"].item() for s in sample[:6]]
    all_ = losses(loaded.network, loaded.collator(sample[:6], gold=True), config)["loss"].item()
    assert abs(sum(one) / 6 - all_) < 1e-3 * all_


def test_the_likelihood_is_that_of_the_layers_that_are_there(tiny_parser, sample):
    """Of the joint tree, of spans alone, of arcs alone. Joint trees are some of the pairs of both, so they are more likely."""
    loaded = load_model(tiny_parser)
    config, terms = replace(loaded.config.train, objective="likelihood"), {}
    for left_out in ((), ("heads", "arc_labels"), ("constituents",)):
        part = [replace(s, **dict.fromkeys(left_out)) for s in sample[:4]]
        terms[left_out] = losses(loaded.network, loaded.collator(part, gold=True), config)
    joint, spans, arcs = (each["trees"].item() for each in terms.values())
    apart = losses(loaded.network, loaded.collator(sample[:4], gold=True), replace(config, objective="span-likelihood"))
    assert 0 < spans < apart["spans"].item(), "without heads, trees with <H> do not count"
    assert apart["arcs"].item() == pytest.approx(config.arc_weight * arcs)
    assert set(next(iter(terms.values()))) == {"loss", "trees", "arc_labels", "tags"}
    assert 0 < spans and 0 < arcs and 0 < joint < spans + arcs


def test_the_average_of_the_weights_is_scored_and_saved(tmp_path):
    config = override(tiny(), {"train.epochs": 1, "train.average": 0.5, "train.dev_sentences": 4})
    run, steps = Run(config, "sample", tmp_path), []
    run.optimizer.register_step_post_hook(lambda *_: steps.append(run.parameters[0].detach().clone()))
    start = run.parameters[0].detach().clone()
    run.finish()
    mean = start
    for i, weights in enumerate(steps):
        keep = min(0.5, (1 + i) / (10 + i))
        mean = keep * mean + (1 - keep) * weights
    name = next(name for name, p in run.network.named_parameters() if p is run.parameters[0])
    saved = load_file(tmp_path / json.loads((tmp_path / "model.json").read_text())["weights"])[name]
    assert torch.allclose(saved, mean, atol=1e-6) and not torch.allclose(saved, steps[-1], atol=1e-4)
    assert torch.equal(run.parameters[0], steps[-1]), "training goes on with the weights themselves"


def test_schedule():
    config = tiny().train
    assert rate_factor(config, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(config, 100, 0.25) == pytest.approx(0.75)
    assert rate_factor(config, 100, 1.0) == 0
    share = replace(config, warmup_share=0.2)
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


@pytest.mark.slow
def test_two_workers_and_two_launched_processes_do_what_one_does(tmp_path):
    """Without dropout, the same batches give the same losses up to the order of additions; also with `accelerate launch`."""
    dropouts = ("", "encoder.word_", "label_attention.attention_", "label_attention.residual_")
    settings = {**{f"model.{name}dropout": 0.0 for name in dropouts}, "train.epochs": 2, "train.dev_sentences": 5}
    for workers in (1, 2):
        train(override(tiny(), {**settings, "train.workers": workers}), "sample", tmp_path / str(workers))
    asked = ["train", "--treebank", "sample", "--preset", "tiny", "--out", tmp_path / "launched"]
    for name, value in settings.items():
        asked += ["--set", f"{name}={value}"]
    code, err = launch(*asked)
    assert code == 0 and err.count("best after epoch") == 1, f"the first process speaks for all: {err}"
    one, *others = (result(tmp_path / name)[2] for name in ("1", "2", "launched"))
    for history in others:
        assert len(history) == len(one) == 2
        for ours, theirs in zip(history, one):
            for name in ("loss", "spans", "arcs", "arc_labels", "tags"):
                assert ours[name] == pytest.approx(theirs[name], rel=1e-3)
    assert json.loads((tmp_path / "launched" / "config.json").read_text())["train"]["workers"] == 2
    code, err = launch(*asked)
    assert code != 0 and err.count("holds a run already") == 1
    with pytest.raises(ModelError):
        train(override(tiny(), {**settings, "train.workers": 1}), "sample", tmp_path / "2", resume=True)
