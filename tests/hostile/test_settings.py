"""Settings of a training, from `--set` and from `override`: out of bounds or of a wrong type, they are refused by name.

No case builds a network: a size that is too large must be refused before any memory is asked for.
"""

import dataclasses
import multiprocessing
import subprocess
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import pytest

from lalkit.config import minilm, minilm_span, override
from lalkit.errors import ModelError
from tests.hostile.refusals import command_refused, refused

WRONG = {  # values that no setting of a kind accepts
    int: ["-1", "1e13", "nan", "2.5", "", "many", True, [1], b"x", "9" * 5000, 10**4999],
    float: ["-1e-9", "nan", "inf", "1e13", "", "many", True, {"a": 1}, b"x", "1,2"],
    bool: ["perhaps", "", 1, [True]],
    Literal: ["bogus", "NONE!", 3, ["none"]],
}  # fmt: skip
ODD = [  # a name and a value, and what the error names
    *((section, value, section) for section in ("model", "train") for value in ("x", 3, [])),
    *(("model.span_attention", value, "span_attention") for value in ("[1]", "3", '{"d_key": ', '{"d_key": 0}', "[" * 100_000)),
    ("model.span_attention", '{"keys": 3}', "keys"), ("model.span_attention", '{"d_key": 3, "d_key": 4}', "d_key"),
    ("train.epoch", "1", "train.epoch"), ("", "1", "''"), ("train..seed", "1", "train..seed"),
    ("train.seed.x", "1", "train.seed.x"), ("__class__", "1", "__class__"), ("model.encoder.__class__", "1", "__class__"),
]  # fmt: skip
TRAIN = ["train", "--treebank", "nowhere", "--preset", "tiny", "--out", "o"]
OPTIONS = [  # of `lalkit train`, and what the error names
    ("--set model.d_ff=0", "d_ff"), ("--set model.d_ff=1e12", "d_ff"),
    ("--epochs 0", "epochs"), ("--seed -1", "seed"), ("--max-minutes nan", "max_minutes"),
    ("--task both", "task"), ("--preset huge", "huge"), ("--set train.seed", "train.seed"), ("--set =3", "''"),
    (f"--threads {'9' * 5000}", "threads"), (f"--threads {2**40}", "threads"),
]  # fmt: skip


def kind_of(hint):
    """Return the kind of a setting's values: int, float, bool, Literal, tuple, or None for a text or a section."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kind = get_origin(hint) or hint
    return kind if kind in WRONG else None


def settings(config, path=""):
    """Yield the full name of every setting of a config that is not a text, with its type hint."""
    for name, hint in get_type_hints(type(config), include_extras=True).items():
        value = getattr(config, name)
        if dataclasses.is_dataclass(value):
            yield from settings(value, f"{path}{name}.")
        elif kind_of(hint):
            yield f"{path}{name}", hint


@pytest.mark.parametrize("config", [minilm(), minilm_span()], ids=["paper", "span"])
def test_wrong_values_of_every_setting(config, subtests):
    hints = dict(settings(config))
    assert set(map(kind_of, hints.values())) == set(WRONG) and len(hints) > 30
    for name, hint in hints.items():
        with subtests.test(f"{name} has bounds, so that no size asks for more memory than any machine has"):
            assert kind_of(hint) not in (int, float) or get_origin(hint) is Annotated
        for value in WRONG[kind_of(hint)]:
            with subtests.test(f"{name} {str(value)[:40] if isinstance(value, str) else type(value)}"), refused(name):
                override(config, {name: value})


def test_odd_names_and_values(subtests):
    for name, value, place in ODD:
        with subtests.test(f"{name} {value!r}"[:60]), refused(place, error=ModelError):
            override(minilm(), {name: value})
    with pytest.raises(ModelError, match="plateau"):  # the remedy lists the values
        override(minilm(), {"train.decay": "cosine"})


def test_options_of_a_training(tmp_path, subtests, monkeypatch):
    """The treebank is nowhere: settings are checked before anything is read, and before any process starts."""

    def start(*_, **__):
        raise AssertionError("a process was to be started")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)
    for options, place in OPTIONS:
        with subtests.test(options[:60]):
            command_refused(tmp_path, [*TRAIN, *options.split(" ")], place)
