"""Trainings that go wrong: nothing that was finished is lost, and the message says what to do."""

import os
import shutil
import sys

import pytest
import torch

import lalkit
from lalkit.chart import machine
from lalkit.errors import LalkitError
from lalkit.training import loop
from tests.command import lalkit as command
from tests.hostile.refusals import TREES, check_refusal, command_refused, files_of

LONG = "( (S " + "(NP (NN a) (NN b)) " * 30 + "(VP (VB go))) )\n"
TRAIN = ["train", "--treebank", "small", "--preset", "tiny", "--threads", "1", "--out", "run"]
ONE = [*TRAIN, "--epochs", "1"]
ANOTHER_RUN = {  # changes of a run that `--resume` does not accept: a change of the files, more options, and the place
    "another seed": (None, ["--seed", "2", "--resume"], "config"),
    "another treebank": (None, ["--treebank", "sample", "--resume"], "run"),
    "other sentences": (lambda at: (at / "small" / "train.trees").write_text(TREES * 2), ["--resume"], "sentences"),
    "no treebank": (lambda small: shutil.rmtree(small / "small"), ["--resume"], "small"),
    "no --resume": (None, [], "--resume"),
}


@pytest.mark.parametrize("part", ["train", "dev"])
def test_a_sentence_too_long_for_the_chart(small, monkeypatch, part):
    """It is found before the first step, with its file and its place; no folder of a run is begun."""
    (small / "small" / f"{part}.trees").write_text(TREES + LONG)
    monkeypatch.setattr(machine, "SMALL", 0)
    monkeypatch.setattr(machine, "available_bytes", lambda: machine.chart_bytes(50, 4))
    command_refused(small, ONE, f"{part}.trees", "line 3")


def test_an_epoch_is_saved_before_it_is_evaluated(small, monkeypatch):
    """Whatever ends an evaluation, the epoch before it is not trained again."""

    def no_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("lalkit.network.model.Model.parse", no_memory)
        with pytest.raises((MemoryError, LalkitError)):
            command(*ONE, cwd=small)
    assert (small / "run" / "resume.json").exists()
    monkeypatch.setattr(loop.Training, "step", None)
    code, _, err = command(*ONE, "--resume", cwd=small)
    assert code == 0, err
    assert lalkit.load(small / "run").info["dev"]["sentences"] == 2


def test_two_trainings_into_one_folder(small, monkeypatch):
    """The second is refused while the first is at work, and the first ends as if there had been no second."""
    (small / "run").mkdir()
    (small / "run" / ".model.json.4194305.part").write_text("half")  # a kill left this behind: it is cleared away
    second, epoch = [], loop.Training.epoch

    def epoch_and_another_training(run):
        if not second:
            second.append(None)
            second[0] = command(*ONE, "--seed", "2", cwd=small)
        epoch(run)

    monkeypatch.setattr(loop.Training, "epoch", epoch_and_another_training)
    code, _, err = command(*ONE, cwd=small)
    assert code == 0, err
    check_refusal(second[0][0], second[0][2], "run")
    assert lalkit.load(small / "run").config.train.seed == 1
    assert not [name for name in files_of(small / "run") if name.endswith(".part")]


def test_the_best_parser_is_kept_when_weights_turn_nan(small, monkeypatch):
    epoch = loop.Training.epoch

    def spoiled(run):
        epoch(run)
        if run.state.epoch == 2:
            with torch.no_grad():
                next(p for p in run.model.network.parameters() if p.requires_grad).fill_(float("nan"))

    monkeypatch.setattr(loop.Training, "epoch", spoiled)
    code, _, err = command(*TRAIN, "--epochs", "3", cwd=small)
    check_refusal(code, err, "train.rate")
    assert lalkit.load(small / "run").info["epoch"] == 1


def test_resuming_another_run(small, tmp_path_factory, subtests):
    assert command(*ONE, cwd=small)[0] == 0
    for name, (change, more, says) in ANOTHER_RUN.items():
        copy = shutil.copytree(small, tmp_path_factory.mktemp("runs") / "copy")
        if change:
            change(copy)
        with subtests.test(name):
            command_refused(copy, [*ONE, *more], says)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf_8(small):
    name = os.fsdecode(b"caf\xe9")
    (small / "small").rename(small / name)
    train = [*TRAIN[:-1], f"{name}-run", "--treebank", name, "--epochs"]
    score = ["evaluate", f"{name}-run", "--treebank", name, "--json", "scores.json"]
    explain = ["explain", "--model", f"{name}-run", "One.", "--html", f"{name}.html"]
    for command_ in ([*train, "1"], [*train, "1", "--resume"], score, explain, ["data", "check", name]):
        code, _, err = command(*command_, cwd=small)
        assert code == 0, err
    assert lalkit.load(small / f"{name}-run").info["epoch"] == 1


def test_starting_from_what_does_not_fit(tiny_parser, small, subtests):
    for start, more in (("nowhere", []), ("small", []), (tiny_parser, ["--set", "model.d_content=16"])):
        with subtests.test(str(start)):
            command_refused(small, [*TRAIN, "--set", f"train.start={start}", *more])
