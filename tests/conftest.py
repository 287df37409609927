"""What several tests share: a tiny parser, trained once. And one rule: only a test with the marker `data` sees the corpora."""

import gc
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import nltk.data
import pytest
import torch
from hypothesis import settings

from lalkit.config import override, tiny
from lalkit.treebank import corpora
from lalkit.treebank.corpora import cache_folder, load

# Where the corpora of this machine are. Nothing sees it but tests with the marker `data`, and what they start.
# The other names are for the processes of pytest-xdist.
VARIABLES = ("NLTK_DATA", "LALKIT_DATA", "XDG_CACHE_HOME")
PLACES = {name: os.environ.setdefault(f"TESTS_{name}", os.environ.pop(name, "")) for name in VARIABLES}
NLTK_PLACES, nltk.data.path = [*filter(None, PLACES["NLTK_DATA"].split(os.pathsep)), *nltk.data.path], []

# No deadline: a first example that loads a tokenizer or compiles a kernel is not slow code.
settings.register_profile("lalkit", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("lalkit")


def pytest_addoption(parser):
    parser.addoption("--corpora", action="store_true", help="a corpus that is not here is a failure, not a skip")


def cache_of_the_test():
    return cache_folder() if "XDG_CACHE_HOME" in os.environ else Path("absent")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Show the corpora of this machine to a test with the marker `data`, and to no other one."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("data"):
            for name in filter(PLACES.get, PLACES):
                patch.setenv(name, PLACES[name])
            patch.setattr(nltk.data, "path", NLTK_PLACES)
        else:
            patch.setattr(corpora, "cache_folder", cache_of_the_test)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip a test with the marker `data` whose corpus is not on this machine."""
    report, error = (yield), call.excinfo and str(call.excinfo.value)
    absent = error and "is not on this machine" in error and item.get_closest_marker("data")
    if absent and not item.config.getoption("--corpora"):
        reason = next(line for line in error.splitlines() if "is not on this machine" in line)
        report.outcome, report.longrepr = "skipped", (str(item.path), item.reportinfo()[1], f"Skipped: {reason}")
    return report


@pytest.fixture(scope="session", autouse=True)
def one_thread_and_few_objects():
    """Let garbage collections pass over what all tests have imported: that takes 0.3 s, and some code and tests ask for many."""
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_bf16():
    """Let `--precision auto` be fp32 on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lalkit.network.model.has_bf16", lambda device: False)
        yield


@pytest.fixture(scope="session")
def sample():
    return load("sample", "train").sentences


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Train a tiny parser, with these settings of the model, and return its folder."""
    from lalkit.training.loop import train

    def train_one(treebank="sample", epochs=1, **model):
        folder = tmp_path_factory.mktemp("runs") / "tiny"
        settings = {"train.epochs": epochs, **{f"model.{name}": value for name, value in model.items()}}
        train(override(tiny(), settings), str(treebank), folder)
        return folder

    return train_one


@pytest.fixture(scope="session")
def tiny_parser(trained):
    """The folder of a parser trained for two epochs on data/sample: real in form, poor in judgement."""
    return trained(epochs=2)


@pytest.fixture(scope="module")
def parser(tiny_parser):
    """The tiny parser, loaded once for each file, so that its changes stay there."""
    import lalkit

    return lalkit.load(tiny_parser)


@pytest.fixture(scope="session")
def tiny_span_parser(trained):
    """As `tiny_parser`, with label attention inside the span, its boundaries linear.

    With large first weights, it finds noun phrases after ten epochs. Some tests need them.
    """
    inside = {"label_attention": "none", "span_attention": {"d_key": 8, "boundary": "glass"}}
    return trained(epochs=10, initial="glorot", **inside)
