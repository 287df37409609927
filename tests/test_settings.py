"""Settings from text and JSON: read as their type, or refused by name."""

import json
from dataclasses import replace
from operator import attrgetter

import pytest

from lalkit.config import PRESETS, Config, from_dict, minilm, override, preset, to_dict
from lalkit.treebank.corpora import repository

EIGHT = replace(minilm().model.label_attention, heads=8)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("train.epochs", "3", 3), ("train.epochs", "3.0", 3), ("train.rate", "1e-3", 0.001), ("train.average", 0, 0.0),
        ("train.autocast", "false", False), ("train.start", "none", None), ("train.start", "en-news", "en-news"),
        ("model.label_attention", "none", None),
        # A dict changes only the settings that it names.
        *(("model.label_attention", value, EIGHT) for value in ({"heads": 8}, '{"heads": 8}')),
        ("model", {"label_attention": {"heads": 8}}, replace(minilm().model, label_attention=EIGHT)),
    ],
)  # fmt: skip
def test_text_is_read_as_the_type_of_the_setting(name, text, value):
    found = attrgetter(name)(override(minilm(), {name: text}))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("name", PRESETS)
def test_there_and_back_through_json(name):
    config = preset(name)
    assert from_dict(Config, json.loads(json.dumps(to_dict(config)))) == config


def test_the_preset_for_chinese_trains_as_the_shipped_parser_was_trained():
    shipped = json.loads((repository() / "data/models/zh-sinica/model.json").read_text())["config"]
    usual = to_dict(preset("chinese"))
    assert shipped["train"] == usual["train"]
    different = {key for key, value in usual["model"].items() if shipped["model"][key] != value}
    assert different == {"label_attention", "span_attention"}


def test_the_paper_presets_are_rows_of_its_tables():
    english, best, chinese = (preset(f"paper-{name}") for name in ("english", "best", "chinese"))
    assert english.model.label_attention.residual_dropout and not best.model.label_attention.residual_dropout
    assert not chinese.model.label_attention.residual_dropout, "section 4.4: the best English parser's settings"
    assert all(config.model.feedforward for config in (english, best, chinese))
    assert {config.train.arc_weight for config in (english, best, chinese)} == {1.0}, "eq. 12"
