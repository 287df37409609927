"""Three systems, one table: tags at their places, and the same columns for all."""

import pandas as pd
import pytest
import torch

from lalkit.api import Parser
from lalkit.companions.classifiers.examples import UNIVERSAL, of_dependencies
from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.systems import (
    numbers,
    of_classifier,
    of_parser,
    of_summarizer,
    trained_classifier,
    trained_summarizer,
)
from lalkit.probes.tables import COLUMNS, overview


def test_tags_stand_where_their_words_stand():
    noun, stop = UNIVERSAL.index("NOUN"), UNIVERSAL.index(".")
    found = numbers([["NOUN", "."], [], ["NOUN"] * 9], 4, first=1)
    assert found.tolist() == [[-1, noun, stop, -1], [-1] * 4, [-1, noun, noun, noun]]
    assert [of_dependencies(t) for t in ("PROPN", "AUX", "PUNCT", "DET", "weird")] == ["NOUN", "VERB", ".", "DET", "X"]


@pytest.fixture(scope="module")
def tables(tiny_parser, sample, tmp_path_factory):
    some = sorted(sample, key=len)[:2]
    classifier, data = trained_classifier(tmp_path_factory.mktemp("c"), "babi-1", "vanilla", 1, 40, 1)
    documents = news(3, 0, 0).train
    config = SummarizerConfig(d_model=8, d_ff=8, heads=2, min_count=1)
    torch.manual_seed(0)
    summarizer = Summarizer(config, Vocabulary.build(documents, config))
    return {
        "parser": of_parser(Parser.load(tiny_parser), some, 2),
        "LSTM": of_classifier(classifier, data.test[:3], 2),
        "summarizer": of_summarizer(summarizer, documents, 2),
    }


def test_all_are_asked_the_same(tables):
    asked = {name: set(table["measure"]) for name, table in tables.items()}
    assert (
        asked["parser"] == asked["LSTM"] == asked["summarizer"] >= {"tvd", "erased", "conicity", "pos_kl", "isotropic"}
    )
    assert all(list(table.columns) == list(COLUMNS) for table in tables.values())
    found = overview(pd.concat(tables.values(), ignore_index=True)).set_index("system")
    blocks = [f"summarizer, {b}" for b in ("enc.0", "enc.1", "cross.0", "cross.1", "copy")]
    assert list(found.index) == ["parser", "LSTM, vanilla", *blocks]
    assert found["texts"].tolist() == [2, 3] + [3] * 5 and found.loc["LSTM, vanilla", "heads"] == 1
    assert found[["tvd", "erased", "entropy_share"]].stack().between(0, 1).all()


def test_what_was_trained_is_taken_again(tmp_path, caplog):
    caplog.set_level("INFO", logger="lalkit")
    model, data = trained_summarizer(tmp_path, "sparse-enc", 3, 10, 4, 1)
    assert model.config.sparse == "encoder" and model.config.seed == 3 and len(data.train) == 10
    assert any("epoch 1/1" in message for message in caplog.messages)
    caplog.clear()
    again, _ = trained_summarizer(tmp_path, "sparse-enc", 3, 10, 4, 1)
    assert not any("epoch" in message for message in caplog.messages)
    assert torch.equal(again.embed.weight, model.embed.weight)
