"""What several tests share: a tiny parser, trained once."""

import gc
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from hypothesis import settings

from lalkit.config import override, tiny
from lalkit.treebank.corpora import load

# No deadline: a first example that loads a tokenizer or compiles a kernel is not slow code.
settings.register_profile("lalkit", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("lalkit")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def frozen():
    """Let garbage collections pass over what all tests have imported: that takes 0.3 s, and some code and tests ask for many."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_bf16():
    """Let `--precision auto` be fp32 on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lalkit.network.predict.has_bf16", lambda device: False)
        yield


@pytest.fixture(scope="session")
def sample():
    return load("sample", "train").sentences


@pytest.fixture(scope="session")
def tiny_parser(tmp_path_factory):
    """The folder of a parser trained for two epochs on data/sample: real in form, poor in judgement."""
    from lalkit.training.loop import train

    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(override(tiny(), {"train.epochs": 2}), "sample", folder)
    return folder


@pytest.fixture(scope="module")
def parser(tiny_parser):
    """The tiny parser, loaded once for each file, so that its changes stay there."""
    import lalkit

    return lalkit.load(tiny_parser)


@pytest.fixture(scope="session")
def tiny_span_parser(tmp_path_factory):
    """As `tiny_parser`, with label attention inside the span, its boundaries linear.

    With large first weights, it finds noun phrases after two epochs. Some tests need them.
    """
    from lalkit.training.loop import train

    inside = {"model.label_attention": "none", "model.span_attention": {"d_key": 8, "boundary": "glass"}}
    folder = tmp_path_factory.mktemp("runs") / "tiny-span"
    train(override(tiny(), {"train.epochs": 2, "model.initial": "glorot", **inside}), "sample", folder)
    return folder
