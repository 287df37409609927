"""`kill -9` at random moments of train, parse and sweep: what is resumed ends as if nothing had happened.

LALKIT_KILLS=20 kills each command 20 times. The moments come from a seed, as shares of the time that an undisturbed run takes;
no moment may change the result.
"""

import glob
import json
import multiprocessing
import os
import random
import sys
import time

import pytest
import torch
import yaml

from lalkit import cli, corpus
from lalkit.treebank.brackets import unescape
from tests.hostile.refusals import files_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that were forked")]
KILLS = os.environ.get("LALKIT_KILLS")
LONG = 3600  # seconds, for many kills on a busy machine
PRELOADED = ["tests.hostile.test_kills", "lalkit.api", "lalkit.training.loop", "torch._dynamo"]
CLOCK = ("seconds", "evaluation", "ended", "peak_memory_mb")  # depend on the clock, or on the process


def command(arguments, log):
    """Run `lalkit ARGUMENTS` in a process of its own."""
    torch.set_num_threads(1)
    corpus.BATCHES = 0.1  # many blocks in a short text
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.argv = ["lalkit", *map(str, arguments)]
    cli.main()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a command, and kills it so many seconds after a file (a pattern) has appeared.

    It returns the exit code and the seconds from that file to the end.
    """
    log, context = tmp_path_factory.mktemp("messages") / "err.txt", multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # a command then starts without imports

    def run_command(*arguments, sign="", seconds=1e9):
        process, start = context.Process(target=command, args=(arguments, log)), None
        process.start()
        while process.is_alive():
            if not start and glob.glob(str(sign)):
                start = time.perf_counter()
            if start and time.perf_counter() - start > seconds:
                process.kill()
            time.sleep(0.001)
        process.join()
        assert process.exitcode in (0, -9), log.read_text()
        return process.exitcode, time.perf_counter() - (start or 0)

    return run_command


def timeless(value):
    """Return a JSON value without what depends on the clock."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in CLOCK}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def result_of(folder):
    """Return every file with its bytes; JSON without times, and without logs and locks."""
    files = {name: data for name, data in files_of(folder).items() if not name.endswith(("log.txt", ".lock"))}
    return {name: timeless(json.loads(data)) if name.endswith(".json") else data for name, data in files.items()}


def kill_and_resume(run, folder, command, resumed, sign, usual_kills):
    """Kill a command at random moments, each time in a new folder, and compare what is resumed with an undisturbed run.

    No folder stands beside another one, because a sweep copies finished runs from the sweeps beside it.

    command, resumed: functions from a folder to the arguments of the command, and of the one that continues it. sign: the file
    with which the work begins.
    """
    undisturbed = folder / "undisturbed" / "out"
    _, usual = run(*command(undisturbed), sign=undisturbed / sign)
    expected, rng, kills, trials = result_of(undisturbed), random.Random(26), 0, 0
    while kills < int(KILLS or usual_kills):
        trials += 1
        out = folder / f"killed-{trials}" / "out"
        code, spent = run(*command(out), sign=out / sign, seconds=usual * rng.random())
        if code == 0:  # it was faster than the undisturbed run
            usual = min(usual, spent)
            continue
        kills += 1
        assert run(*resumed(out))[0] == 0
        assert result_of(out) == expected, f"kill {kills}"


def test_training(run, tmp_path, alarm):
    alarm(LONG)
    settings = ["--preset", "tiny", "--epochs", "2", "--set", "train.dev_sentences=10"]
    train = ["train", "--treebank", "sample", *settings, "--out"]
    kill_and_resume(run, tmp_path, lambda out: [*train, out], lambda out: [*train, out, "--resume"], "config.json", 2)


def test_parsing(run, tiny_parser, sample, tmp_path, alarm):
    alarm(LONG)
    text = tmp_path / "text.txt"
    lines = [" ".join(map(unescape, sentence.words)) for sentence in sample]
    text.write_text("\n\n".join(lines * 3), encoding="utf-8")
    parse = ["parse", "--model", tiny_parser, text, "--form", "tokens", "--to", "ptb,conllu", "--out"]

    def the_same(out):
        return [*parse, out / "trees"]

    kill_and_resume(run, tmp_path, the_same, the_same, "*.parts/0*", 2)


@pytest.mark.release  # two minutes
def test_sweeps(run, tmp_path, alarm):
    alarm(LONG)
    content = {
        "name": "two", "question": "One layer or two?", "treebank": "sample", "preset": "tiny", "seeds": [1],
        "set": {"train.epochs": 2, "train.dev_sentences": 10},
        "grid": {"layers": {1: {"model.layers": 1}, 2: {"model.layers": 2}}},
    }  # fmt: skip
    file = tmp_path / "two.yml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))

    def sweep(out):
        return ["sweep", file, "--jobs", 2, "--out", out]

    kill_and_resume(run, tmp_path, sweep, sweep, "runs/*/parser/config.json", 1)  # late: there is a checkpoint
