"""Settings of a training, from `--set` and from `override`: out of bounds or of a wrong type, they are refused by name.

No case builds a network: a size that is too large must be refused before any memory is asked for.
"""

import multiprocessing
import subprocess
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest

from lalkit.companions.classifiers.classifier import ClassifierConfig
from lalkit.companions.summarizers.pruning import PruneConfig
from lalkit.companions.summarizers.summarizer import SummarizerConfig
from lalkit.config import (
    Config,
    EncoderConfig,
    LabelAttentionConfig,
    ModelConfig,
    SpanAttentionConfig,
    TrainConfig,
    minilm,
    minilm_span,
    override,
    tiny,
)
from lalkit.errors import LalkitError
from tests.hostile.table import case, command_refused, refused, table

SIZES = (
    "model.encoder.word_dim",
    "model.encoder.char_dim",
    "model.encoder.char_hidden",
    "model.encoder.window",
    "model.label_attention.heads",
    "model.label_attention.d_kv",
    "model.label_attention.d_out",
    "model.feedforward",
    "model.span_attention.d_key",
    "model.span_attention.d_lean",
    "model.d_content",
    "model.d_position",
    "model.attention_heads",
    "model.d_head",
    "model.d_ff",
    "model.label_hidden",
    "model.arc_hidden",
    "model.arc_label_hidden",
)
MAY_BE_ZERO = ("model.layers", "model.encoder.rank", "model.encoder.lstm")
RATES = ("train.rate", "train.encoder_rate", "train.clip", "train.arc_weight",
         "train.tag_weight", "train.head_word_weight", "train.max_minutes")  # fmt: skip
SHARES = ("model.dropout", "train.lam", "model.encoder.word_dropout", "model.label_attention.attention_dropout",
          "model.label_attention.residual_dropout")  # fmt: skip
SWITCHES = ("train.autocast", "model.encoder.mix_layers", "model.label_attention.shared")
NAMES = (
    "train.decay",
    "model.task",
    "model.initial",
    "model.tag_input",
    "model.label_attention.query",
    "model.encoder.subword",
)


def preset(name):
    return minilm_span() if name.startswith("model.span_attention") else minilm()


@table(
    ("name", "value"),
    [
        *(case(f"{name} {value}", name, value) for name in SIZES for value in ("0", "1e12")),
        *(case(f"{name} 1e8", name, "1e8") for name in (*SIZES, *MAY_BE_ZERO, "train.workers")),
        *(case(f"{name} -1", name, "-1") for name in (*SIZES, *MAY_BE_ZERO)),
    ],
)
def test_sizes(name, value):
    with refused([name, "Give "]):
        override(preset(name), {name: value})


@table(
    ("name", "value"),
    [
        *(case(f"{name} {value}", name, value) for name in RATES for value in ("nan", "-1e-9")),
        *(case(f"{name} inf", name, "inf") for name in RATES),
        *(case(f"{name} {value}", name, value) for name in SHARES for value in ("1.01", "-0.01", "nan", "inf")),
        case("epochs 0", "train.epochs", "0"),
        case("epochs 1e300", "train.epochs", "1e300"),
        case("a batch of 0 words", "train.batch_tokens", "0"),
        case("evaluation every 0 epochs", "train.evaluate_every", "0"),
        case("workers 0", "train.workers", "0"),
        case("a seed of 40 digits", "train.seed", "9" * 40),
        case("a longest sentence of 0 words", "train.max_length", "0"),
    ],
)
def test_numbers(name, value):
    with refused([name, "Give "]):
        override(minilm(), {name: value})


@table(
    ("name", "value", "says"),
    [
        *(
            case(f"{name}: {kind}", name, value, name)
            for name in ("train.epochs", "train.rate", "model.d_content")
            for kind, value in (
                ("text", "many"),
                ("nothing", ""),
                ("true", "true"),
                ("a truth value", True),
                ("a list", [1]),
                ("an object", {"a": 1}),
                ("None", None),
                ("bytes", b"x"),
                ("two numbers", "1,2"),
                ("none", "none"),
            )
        ),
        *(case(f"{name}: a part of one", name, "2.5", name) for name in SIZES[:2]),
        *(case(f"{name}: perhaps", name, "perhaps", name) for name in SWITCHES),
        *(case(f"{name}: 1", name, 1, name) for name in SWITCHES),
        *(case(f"{name}: bogus", name, "bogus", name) for name in NAMES),
        *(case(f"{name}: capitals", name, "NONE", name) for name in NAMES),
        *(case(f"{name}: a list", name, ["none"], name) for name in NAMES),
        case("5,000 digits", "train.epochs", "9" * 5000, "train.epochs"),
        case("a number of 5,000 digits", "train.epochs", 10**4999, "train.epochs"),
        case("a section as text", "model", "x", "model"),
        case("a section as a number", "model", 3, "model"),
        case("a section as a list", "train", [], "train"),
        case("JSON that is a list", "model.span_attention", "[1]", "model.span_attention"),
        case("JSON that is a number", "model.span_attention", "3", "model.span_attention"),
        case("JSON that is true", "model.span_attention", "true", "model.span_attention"),
        case("JSON cut off", "model.span_attention", '{"d_key": ', "model.span_attention"),
        case("JSON with an unknown key", "model.span_attention", '{"keys": 3}', "keys"),
        case("JSON with null", "model.span_attention", '{"d_key": null}', "d_key"),
        case("JSON with NaN", "model.span_attention", '{"d_key": NaN}', "d_key"),
        case("JSON with a size of 0", "model.span_attention", '{"d_key": 0}', "d_key"),
        case("JSON with a key twice", "model.span_attention", '{"d_key": 3, "d_key": 4}', "d_key"),
        case("JSON nested deeply", "model.span_attention", "[" * 100_000, "model.span_attention"),
        case("an unknown setting", "train.epoch", "1", "train.epoch"),
        case("an unknown section", "trains.epochs", "1", "trains.epochs"),
        case("no name", "", "1", "''"),
        case("a dot", ".", "1", "'.'"),
        case("two dots", "train..seed", "1", "train..seed"),
        case("below a number", "train.seed.x", "1", "train.seed.x"),
        case("a method", "model.encoder.keeps_weights", "1", "keeps_weights"),
        case("a private name", "__class__", "1", "__class__"),
        case("below a layer that is not there", "model.span_attention.d_key", "1", "d_key"),
    ],
)
def test_kinds(name, value, says):
    with refused(says):
        override(minilm(), {name: value})


TRAIN = ["train", "--treebank", "nowhere", "--preset", "tiny", "--out", "o"]


@table(
    ("options", "says"),
    [
        case("a size of 0", ["--set", "model.d_ff=0"], "d_ff"),
        case("a size of 1e12", ["--set", "model.d_ff=1e12"], "d_ff"),
        case("1e8 layers", ["--set", "model.layers=1e8"], "layers"),
        case("-1 workers", ["--workers", "-1"], "workers"),
        case("0 epochs", ["--epochs", "0"], "epochs"),
        case("a negative seed", ["--seed", "-1"], "seed"),
        case("a negative time", ["--max-minutes", "-1"], "max_minutes"),
        case("a time of NaN", ["--max-minutes", "nan"], "max_minutes"),
        case("an infinite time", ["--max-minutes", "inf"], "max_minutes"),
        case("an unknown task", ["--task", "both"], "task"),
        case("an unknown preset", ["--preset", "huge"], "huge"),
        case("a setting without a value", ["--set", "train.seed"], "train.seed"),
        case("a setting without a name", ["--set", "=3"], "''"),
        case("an empty setting", ["--set", ""], "--set is empty"),
        case("threads -3", ["--threads", "-3"], "threads"),
        case("threads of 5,000 digits", ["--threads", "9" * 5000], "threads"),
        case("threads that do not fit 32 bits", ["--threads", str(2**40)], "threads"),
    ],
)
def test_settings_of_the_command(tmp_path, options, says):
    """The treebank is nowhere: settings are checked before anything is read."""
    command_refused(tmp_path, [*TRAIN, *options], says)


@pytest.fixture
def no_process(monkeypatch):
    """Let every attempt to start a process fail, so that a number that is not refused cannot bring the machine down."""

    def start(*_, **__):
        raise AssertionError("a process was to be started")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)


@table(
    ("arguments", "says"),
    [
        case("train", [*TRAIN, "--workers", "1000000"], "train.workers is 1000000"),
        case("train, by its setting", [*TRAIN, "--set", "train.workers=257"], "train.workers is 257"),
        case("train --workers 0", [*TRAIN, "--workers", "0"], "train.workers is 0"),
        case("parse", ["parse", "--model", "PARSER", "One two.", "--workers", "1000000"], "--workers is 1000000"),
        case("parse --out", ["parse", "--model", "PARSER", "x", "--out", "o", "--workers", "257"], "--workers is 257"),
        case("sweep", ["sweep", "a.yml", "--out", "o", "--jobs", "1000000"], "--jobs is 1000000"),
        case("sweep --jobs 257", ["sweep", "a.yml", "--out", "o", "--jobs", "257"], "--jobs is 257"),
    ],
)
def test_numbers_of_processes(tmp_path, tiny_parser, no_process, arguments, says):
    (tmp_path / "a.yml").write_text(
        "{name: a, question: why, treebank: sample, preset: tiny, seeds: [1], grid: {a: {b: {}}}}"
    )
    arguments = [tiny_parser if argument == "PARSER" else argument for argument in arguments]
    command_refused(tmp_path, arguments, [says, "Give 1 to 256"])


CONFIGS = (Config, ModelConfig, TrainConfig, EncoderConfig, LabelAttentionConfig, SpanAttentionConfig,
           ClassifierConfig, SummarizerConfig, PruneConfig)  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_every_number_has_bounds(config):
    """Also if the config is made directly."""
    for name, kind in get_type_hints(config, include_extras=True).items():
        assert not {int, float} & {kind, *get_args(kind)} or get_origin(kind) is Annotated, name
        if get_origin(kind) is Annotated:
            with refused([name, "Give 0 to" if get_args(kind)[1].least == 0 else "Give 1 to"]):
                config(**{name: -1})


def test_what_is_accepted_stays_within_reach():
    """Every bound leaves room for the largest published setting."""
    try:
        override(
            tiny(), {"model.d_ff": 16_384, "model.layers": 48, "model.label_attention.heads": 512, "train.workers": 64}
        )
    except LalkitError as error:
        pytest.fail(str(error))
