"""Three systems, one table: tags at their places, and the same columns for all."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from lalkit.api import Parser
from lalkit.companions.classifiers.babi import generate
from lalkit.companions.classifiers.classifier import Classifier, by_words, exact, usual
from lalkit.companions.classifiers.classifier import Vocabulary as TextVocabulary
from lalkit.companions.classifiers.examples import UNIVERSAL, of_dependencies
from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.systems import (
    faithful_classifier,
    faithful_parser,
    faithful_summarizer,
    numbers,
    of_classifier,
    of_parser,
    of_summarizer,
    trained_classifier,
    trained_summarizer,
)
from lalkit.probes.removal import BETTER, areas, grades
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


def test_all_are_measured_in_the_words_of_the_field(tiny_parser, tiny_span_parser, sample, tmp_path):
    some = sorted(sample, key=len)[5:8]
    documents = news(3, 0, 0).train
    config = SummarizerConfig(d_model=8, d_ff=8, heads=2, layers=1, min_count=1)
    classifier, data = trained_classifier(tmp_path, "babi-1", "vanilla", 1, 40, 1)
    inside = faithful_parser(Parser.load(tiny_span_parser), some)
    table = pd.concat([
        inside, faithful_parser(Parser.load(tiny_parser), some, "paper"), faithful_classifier(classifier, data.test[:3]),
        faithful_summarizer(Summarizer(config, Vocabulary.build(documents, config)), documents),
    ])  # fmt: skip
    found = areas(table)
    blocks = [f"summarizer, {b}" for b in ("enc.0", "cross.0", "copy")]
    assert list(found["system"].unique()) == ["parser", "parser, terms", "paper", "LSTM, vanilla", *blocks]
    asked = found[found["system"] == "LSTM, vanilla"]
    assert list(asked["ranking"].unique()) == ["attention", "gradient", "integrated", "random"]
    assert set(asked["texts"]) == {3} and asked["value"].notna().all()
    assert inside["example"].nunique() > inside["text"].nunique() and set(grades(inside)["measure"]) == set(BETTER)


@torch.no_grad()
def test_words_are_taken_out_of_the_text_itself():
    """As if the text had been written without them; without any word, only the bias of the output is left."""
    data = generate(1, 40, 10)
    model = exact(Classifier(config := usual("babi-1"), TextVocabulary.build(data, config)))
    batch = model.vocabulary.collate(data.test[:2])
    kept = torch.zeros_like(batch.mask)
    kept[0, [1, 4]] = True
    shorter = replace(data.test[0], words=tuple(data.test[0].words[i] for i in (1, 4)), tags=(), supports=())
    decision = model(batch).logits.argmax(-1)
    wanted = torch.softmax(model(model.vocabulary.collate([shorter])).logits, -1)[0, decision[0]]
    found = by_words(model, batch)(kept)[:, 0]
    assert float(found[0]) == pytest.approx(float(wanted), abs=1e-12)
    logits = model.classify(torch.zeros(2, config.hidden, dtype=torch.float64), model(batch).asked, None)
    assert float(found[1]) == pytest.approx(float(torch.softmax(logits, -1)[1, decision[1]]), abs=1e-12)


def test_what_was_trained_is_taken_again(tmp_path, caplog):
    caplog.set_level("INFO", logger="lalkit")
    model, data = trained_summarizer(tmp_path, "sparse-enc", 3, 10, 4, 1)
    assert model.config.sparse == "encoder" and model.config.seed == 3 and len(data.train) == 10
    assert any("epoch 1/1" in message for message in caplog.messages)
    caplog.clear()
    again, _ = trained_summarizer(tmp_path, "sparse-enc", 3, 10, 4, 1)
    assert not any("epoch" in message for message in caplog.messages)
    assert torch.equal(again.embed.weight, model.embed.weight)
