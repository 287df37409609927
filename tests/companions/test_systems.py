"""Three systems, one table: tags at their places, and the same columns for all."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.api import Parser
from lalkit.companions.classifiers.babi import generate
from lalkit.companions.classifiers.classifier import Classifier, by_words, usual
from lalkit.companions.classifiers.classifier import Vocabulary as TextVocabulary
from lalkit.companions.classifiers.examples import UNIVERSAL, of_dependencies, universal
from lalkit.companions.frame import exact
from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.systems import compare, numbers, of_parser, trained_classifier, trained_summarizer
from lalkit.probes.perturbation import permutation_tvd
from lalkit.probes.removal import BETTER


def test_tags_stand_where_their_words_stand():
    noun, stop = UNIVERSAL.index("NOUN"), UNIVERSAL.index(".")
    found = numbers([["NOUN", "."], [], ["NOUN"] * 9], 4, first=1)
    assert found.tolist() == [[-1, noun, stop, -1], [-1] * 4, [-1, noun, noun, noun]]
    assert [of_dependencies(t) for t in ("PROPN", "AUX", "PUNCT", "DET", "weird")] == ["NOUN", "VERB", ".", "DET", "X"]


@pytest.fixture(scope="module")
def tables(tiny_parser, tiny_span_parser, sample, tmp_path_factory):
    some = sorted(sample, key=len)[5:8]
    classifier, data = trained_classifier(tmp_path_factory.mktemp("c"), "babi-1", "vanilla", 1, 40, 1)
    documents = news(3, 0, 0).train
    config = SummarizerConfig(d_model=8, d_ff=8, heads=2, layers=1, min_count=1)
    other = replace(classifier.config, seed=2)
    return compare([
        ("parser, paper", Parser.load(tiny_parser), some),
        ("parser, span", Parser.load(tiny_span_parser), some),
        ("LSTM, vanilla", classifier, data.test[:3]),
        ("LSTM, vanilla", Classifier(other, classifier.vocabulary), data.test[:3]),
        ("summarizer, soft", Summarizer(config, Vocabulary.build(documents, config)), documents),
    ], 2)  # fmt: skip


BLOCKS = [f"summarizer, soft, {b}" for b in ("enc.0", "cross.0", "copy")]


def test_all_are_asked_the_same(tables):
    found = tables["systems"]
    assert list(found["system"]) == ["parser, paper", "parser, span", "LSTM, vanilla", "LSTM, vanilla", *BLOCKS]
    assert list(found["group"]) == ["parser"] * 2 + ["LSTM"] * 2 + ["summarizer"] * 3
    assert found["seed"].tolist()[2:4] == [1, 2] and found["tvd"].nunique() == len(found)
    assert set(found["texts"]) == {3}, "spans of a sentence are one text"
    assert found[["tvd", "erased", "entropy_share", "pos_kl", "conicity"]].notna().all(axis=None)
    assert found[["tvd", "erased", "entropy_share"]].stack().between(0, 1).all()


def test_all_are_measured_in_the_words_of_the_field(tables):
    found, inside = tables["systems-faithful"], ["parser, span", "parser, span, terms"]
    assert list(found["system"].unique()) == ["parser, paper", *inside, "LSTM, vanilla", *BLOCKS]
    asked = found[found["system"] == "LSTM, vanilla"]
    assert list(asked["ranking"].unique()) == ["attention", "gradient", "integrated", "random"]
    assert set(asked["texts"]) == {3} and asked["value"].notna().all()
    graded = tables["systems-grades"]
    assert list(graded["system"].unique()) == inside and set(graded["measure"]) == set(BETTER)


def test_each_head_of_the_papers_layer_is_asked_alone(tables, tiny_parser, sample):
    """The slow twin: sentences one by one, and the weights of one head permuted by the probe itself."""
    found = tables["systems-heads"].set_index("head")
    assert set(found["system"]) == {"parser, paper"} and len(found) == found.index.nunique() == 6
    parser, alike, moved = Parser.load(tiny_parser), [], []
    some = sorted(sample, key=len)[5:8]
    for number, sentence in enumerate(some):
        view = parser.view([sentence], examples=[number])
        vectors = view.values[0, 3][view.key_mask[0]]
        alike.append(torch.cosine_similarity(vectors, vectors.mean(0)[None]).abs().mean())
        moved.append(permutation_tvd(view, 1, heads=[3]).nanmean())
    assert found.loc["lal.003", "conicity"] == pytest.approx(float(np.mean(alike)), abs=1e-5)
    assert found.loc["lal.003", "tvd"] == pytest.approx(float(np.mean(moved)), abs=1e-5)


def test_a_sentence_has_its_numbers_in_any_batch(tiny_span_parser, sample, monkeypatch):
    parser, some = Parser.load(tiny_span_parser), sample[:3]
    together = of_parser(parser, some, 2)
    monkeypatch.setattr("lalkit.companions.systems.SIZE", 1)
    key = ["measure", "example", "head"]
    apart, together = (t.groupby(key, dropna=False)["value"].mean() for t in (of_parser(parser, some, 2), together))
    assert apart.to_numpy() == pytest.approx(together[apart.index].to_numpy(), abs=1e-4, nan_ok=True)
    seen, tags = parser.view(some[:1]), [universal(tag) for tag in some[0].tags]
    first, last = seen.examples[0] // 1000, seen.examples[0] % 1000
    counts = pd.DataFrame(
        {"tag": tags[first:last], "p": 1 / (last - first), "q": seen.weights[0, 0, 0, : last - first]}
    )
    p, q = counts.groupby("tag").sum().to_numpy().T
    kl = of_parser(parser, some[:1], 2).query("measure == 'pos_kl'")["value"].iloc[0]
    assert kl == pytest.approx((q[q > 0] * np.log(q[q > 0] / p[q > 0])).sum(), abs=1e-5)


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
