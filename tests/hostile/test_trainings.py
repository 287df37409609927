"""Trainings that go wrong: nothing that was finished is lost, and the message says what to do."""

import shutil

import pytest
import torch

import lalkit
from lalkit.chart import machine
from lalkit.errors import LalkitError
from lalkit.training import loop
from tests.command import lalkit as command
from tests.hostile.table import case, check_refusal, command_refused, files_of, table

TREES = "( (S (NP (DT The) (NN end)) (VP (VBD came))) )\n( (S (NP (NN Time)) (VP (VBD went))) )\n"
LONG = "( (S " + "(NP (NN a) (NN b)) " * 30 + "(VP (VB go))) )\n"
TRAIN = ["train", "--treebank", "small", "--preset", "tiny", "--workers", "1", "--threads", "1", "--out", "run"]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "small").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "small" / f"{part}.trees").write_text(TREES)
    return tmp_path


def settings(**values):
    return [part for name, value in values.items() for part in ("--set", f"{name.replace('__', '.')}={value}")]


@table(
    ("part", "says"),
    [
        case("dev", "dev", ("dev.trees", "line 3", "61 words")),
        case("train", "train", ("train.trees", "line 3", "61 words")),
    ],
    sample=False,
)
def test_a_sentence_too_long_for_the_chart(place, monkeypatch, part, says):
    """It is found before the first step, with its file, its place and its words; no folder of a run is begun."""
    (place / "small" / f"{part}.trees").write_text(TREES + LONG)
    monkeypatch.setattr(machine, "SMALL", 0)
    monkeypatch.setattr(machine, "available_bytes", lambda: machine.chart_bytes(50, 4))
    command_refused(place, [*TRAIN, "--epochs", "1"], says)


def test_an_epoch_is_saved_before_it_is_evaluated(place, monkeypatch):
    """Whatever ends an evaluation, the epoch before it is not trained again."""

    def no_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(loop, "predict", no_memory)
        with pytest.raises((MemoryError, LalkitError)):
            command(*TRAIN, "--epochs", "1", cwd=place)
    assert (place / "run" / "resume.json").exists()
    monkeypatch.setattr(loop.Run, "step", None)
    code, _, err = command(*TRAIN, "--epochs", "1", "--resume", cwd=place)
    assert code == 0, err
    assert lalkit.load(place / "run").info["dev"]["sentences"] == 2


def test_two_trainings_into_one_folder(place, monkeypatch):
    """The second is refused while the first is at work, and the first ends as if there had been no second."""
    second, epoch = [], loop.Run.epoch

    def epoch_and_another_training(run):
        if not second:
            second.append(None)
            second[0] = command(*TRAIN, "--epochs", "1", "--seed", "2", cwd=place)
        epoch(run)

    monkeypatch.setattr(loop.Run, "epoch", epoch_and_another_training)
    code, _, err = command(*TRAIN, "--epochs", "1", cwd=place)
    assert code == 0, err
    check_refusal(second[0][0], second[0][2], "run")
    assert lalkit.load(place / "run").config.train.seed == 1


def test_what_a_kill_left_behind_is_cleared_away(place):
    (place / "run").mkdir()
    for name in (".config.json.4194305.part", ".model.json.4194305.part", ".resume-1.safetensors.4194305.part"):
        (place / "run" / name).write_text("half")
    code, _, err = command(*TRAIN, "--epochs", "1", cwd=place)
    assert code == 0, err
    assert not [name for name in files_of(place / "run") if name.endswith(".part")]


@table(
    "values",
    [
        case("a rate of 1e9", {"train__rate": 1e9}),
        case("a rate of 1e30", {"train__rate": 1e30}),
        case("an eps of 0", {"train__eps": 0, "train__rate": 1e6}),
    ],
    sample=False,
)
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_training_that_diverges(place, values, epochs):
    """One batch an epoch: weights that turn NaN are met by the evaluation, not by the next loss."""
    arguments = [
        *TRAIN,
        "--epochs",
        epochs,
        *settings(**values, train__warmup=1, train__clip=0, train__decay="plateau"),
    ]
    code, _, err = command(*arguments, cwd=place)
    check_refusal(code, err, "train.rate")
    assert not [name for name in files_of(place) if name.endswith(".part")]


def test_the_best_parser_is_kept_when_weights_turn_nan(place, monkeypatch):
    epoch = loop.Run.epoch

    def spoiled(run):
        epoch(run)
        if run.state.epoch == 2:
            with torch.no_grad():
                next(p for p in run.network.parameters() if p.requires_grad).fill_(float("nan"))

    monkeypatch.setattr(loop.Run, "epoch", spoiled)
    code, _, err = command(*TRAIN, "--epochs", "3", cwd=place)
    check_refusal(code, err, "train.rate")
    assert lalkit.load(place / "run").info["epoch"] == 1


@table(
    ("change", "more", "says"),
    [
        case("another seed", None, ["--seed", "2"], "config"),
        case("another setting", None, ["--set", "model.d_ff=16"], "config"),
        case("another treebank", None, ["--treebank", "sample"], "run"),
        case("other sentences", lambda place: (place / "small" / "train.trees").write_text(TREES * 2), [], "sentences"),
        case("no treebank", lambda place: shutil.rmtree(place / "small"), [], "small"),
        case("another parser in its place", lambda place: (place / "run" / "resume.json").unlink(), ["--seed", "2"], "run"),
        case("no --resume", None, ["without"], "--resume"),
    ],
    sample=False,
)  # fmt: skip
def test_resuming_another_run(place, change, more, says):
    assert command(*TRAIN, "--epochs", "1", cwd=place)[0] == 0
    if change:
        change(place)
    resume = [] if more == ["without"] else [*more, "--resume"]
    command_refused(place, [*TRAIN, "--epochs", "1", *resume], says)


@table(
    ("start", "says"),
    [
        case("a name there is not", "nowhere", "nowhere"),
        case("an empty folder", "small", "model.json"),
        case("an empty name", "", ""),
        case("another network", "{parser}", "tiny"),
    ],
    sample=False,
)
def test_starting_from_what_does_not_fit(tiny_parser, place, start, says):
    more = ["--set", "model.d_content=16"] if start == "{parser}" else []
    command_refused(place, [*TRAIN, "--start", start.format(parser=tiny_parser), *more], says)
