"""`kill -9` at random moments of train, parse and sweep: what is resumed ends as if nothing had happened.

LALKIT_KILLS=20 kills each command 20 times. The moments come from a seed, as shares of the time that an
undisturbed run takes; no moment may change the result.
"""

import json
import os
import random
import subprocess
import sys

import pytest
import yaml

from lalkit.treebank.brackets import unescape
from tests.hostile.table import files_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that were forked")]
KILLS = os.environ.get("LALKIT_KILLS")
# Starts commands as children that need few imports. Kills each some seconds after its work has begun, which is when a file
# appears, and prints its exit code and the seconds of its work.
STARTER = """
import glob, json, os, sys, time, torch, torch._dynamo
torch.set_num_threads(1)
from lalkit import api, cli, corpus
from lalkit.reproduce import sweep_plan, sweep_runs
from lalkit.training import loop
corpus.BATCHES = 0.1  # many blocks in a short text
for line in sys.stdin:
    seconds, sign, arguments = json.loads(line)
    start, pid = None, os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(2, 1)
        sys.argv = ["lalkit", *arguments]
        try:
            cli.main()
        except SystemExit as end:
            os._exit(end.code or 0)
        finally:
            sys.stderr.flush()
        os._exit(0)
    status = (0, 0)
    while status[0] == 0:
        status = os.waitpid(pid, os.WNOHANG)
        if not start and glob.glob(sign):
            start = time.perf_counter()
        if status[0] == 0 and start and time.perf_counter() - start > seconds:
            os.kill(pid, 9)
            status = os.waitpid(pid, 0)
        time.sleep(0.001)
    print(json.dumps([os.waitstatus_to_exitcode(status[1]), time.perf_counter() - (start or 0)]), flush=True)
"""
LONG = 3600  # seconds, for many kills on a busy machine
# What depends on the clock, or on the process.
CLOCK = ("seconds", "evaluation", "ended", "peak_memory_mb")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a command, and kills it so many seconds after a file (a pattern) has appeared.

    It returns the exit code and the seconds from that file to the end.
    """
    messages = tmp_path_factory.mktemp("messages") / "err.txt"
    with messages.open("w") as err:
        command = [sys.executable, "-c", STARTER]
        starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)

    def run_command(*arguments, sign="", seconds=1e9):
        starter.stdin.write(json.dumps([seconds, str(sign), [str(part) for part in arguments]]) + "\n")
        starter.stdin.flush()
        code, spent = json.loads(starter.stdout.readline())
        assert code in (0, -9), messages.read_text()
        return code, spent

    yield run_command
    starter.stdin.close()
    assert starter.wait() == 0
    starter.stdout.close()


def timeless(value):
    """Return a JSON value without what depends on the clock."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in CLOCK}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def result_of(folder):
    """Return every file with its bytes; JSON without times, and a log without its text."""
    files = {name: data for name, data in files_of(folder).items() if not name.endswith("log.txt")}
    return {name: timeless(json.loads(data)) if name.endswith(".json") else data for name, data in files.items()}


def kill_and_resume(run, folder, command, resumed, sign, usual_kills):
    """Kill a command at random moments, each time in a new folder, and compare what is resumed with an undisturbed run.

    No folder stands beside another one, because a sweep copies finished runs from the sweeps beside it.

    command, resumed: functions from a folder to the arguments of the command, and of the one that goes on; None: it is done.
    sign: the file with which the work begins.
    """
    whole = folder / "whole" / "out"
    _, usual = run(*command(whole), sign=whole / sign)
    expected, rng, kills, trials = result_of(whole), random.Random(26), 0, 0
    while kills < int(KILLS or usual_kills):
        trials += 1
        out = folder / f"killed-{trials}" / "out"
        code, spent = run(*command(out), sign=out / sign, seconds=usual * rng.random())
        if code == 0:  # it was faster than the undisturbed run
            usual = min(usual, spent)
            continue
        kills += 1
        if arguments := resumed(out):
            code, _ = run(*arguments)
            assert code == 0
        assert result_of(out) == expected, f"kill {kills}"


def test_training(run, tmp_path, alarm):
    alarm(LONG)
    settings = ["--preset", "tiny", "--epochs", "2", "--workers", "1", "--set", "train.dev_sentences=10"]
    train = ["train", "--treebank", "sample", *settings, "--out"]
    kill_and_resume(run, tmp_path, lambda out: [*train, out], lambda out: [*train, out, "--resume"], "config.json", 2)


def test_parsing(run, tiny_parser, sample, tmp_path, alarm):
    alarm(LONG)
    text = tmp_path / "text.txt"
    lines = [" ".join(map(unescape, sentence.words)) for sentence in sample]
    text.write_text("\n\n".join(lines * 3), encoding="utf-8")
    parse = ["parse", "--model", tiny_parser, "--file", text, "--form", "tokens", "--to", "ptb,conllu", "--out"]

    def the_same(out):
        return [*parse, out / "trees"]

    kill_and_resume(run, tmp_path, the_same, the_same, "*.parts/0*", 2)


def test_sweeps(run, sample, tmp_path, alarm):
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
