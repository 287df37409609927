"""Settings from text and JSON: read as their type, or refused by name."""

import json

import pytest

from lalkit.config import PRESETS, Config, from_dict, minilm, override, preset, to_dict
from lalkit.errors import ModelError


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("train.epochs", "3", 3),
        ("train.epochs", "3.0", 3),
        ("train.rate", "1e-3", 0.001),
        ("train.clip", 0, 0.0),
        ("train.autocast", "false", False),
        ("train.start", "none", None),
        ("train.start", "en-news", "en-news"),
        ("model.label_attention", "none", None),
    ],
)
def test_text_is_read_as_the_type_of_the_setting(name, text, value):
    found = override(minilm(), {name: text})
    for part in name.split("."):
        found = getattr(found, part)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("train.epochs", "3.5", "train.epochs must be of type int, not '3.5'"),
        ("train.epochs", "1e400", "train.epochs must be of type int"),
        ("train.epochs", True, "train.epochs must be of type int, not True"),
        ("train.epochs", -1, "train.epochs is -1\n.*1 to 1,000,000,000"),
        ("train.rate", "-0.1", "train.rate is -0.1"),
        ("train.rate", "nan", "train.rate is nan"),
        ("model.encoder.rank", "-2", "model.encoder.rank is -2"),
        ("train.epochs", 0, "train.epochs is 0\n.*Give 1 to 1,000,000,000"),
        ("train.lam", 2, "train.lam is 2.0\n.*0 to 1"),
        ("train.seed", 99999999999, "train.seed is 99999999999"),
        ("model.dropout", 3, "model.dropout is 3.0"),
        ("model.label_attention.residual_dropout", 1.5, "model.label_attention.residual_dropout is 1.5"),
        ("train.autocast", "perhaps", "train.autocast must be of type bool"),
        ("train.epoch", "1", "there is no setting 'train.epoch'\n.*epochs"),
        ("train.decay", "cosine", "train.decay is 'cosine'\n.*linear, plateau"),
        ("model.span_attention", "glass", "model.span_attention is 'glass'.*JSON"),
        ("model.span_attention", '{"key": 3}', "model.span_attention has unknown settings: 'key'"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, value, says):
    with pytest.raises(ModelError, match=f"(?s){says}"):
        override(minilm(), {name: value})


@pytest.mark.parametrize("name", PRESETS)
def test_there_and_back_through_json(name):
    config = preset(name)
    assert from_dict(Config, json.loads(json.dumps(to_dict(config)))) == config


def test_the_paper_presets_are_rows_of_its_tables():
    english, best, chinese = (preset(f"paper-{name}") for name in ("english", "best", "chinese"))
    assert english.model.label_attention.residual_dropout and not best.model.label_attention.residual_dropout
    assert not chinese.model.label_attention.residual_dropout, "section 4.4: the best English parser's settings"
    assert all(config.model.feedforward for config in (english, best, chinese))
    assert {config.train.arc_weight for config in (english, best, chinese)} == {1.0}, "eq. 12"
