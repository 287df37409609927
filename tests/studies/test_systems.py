"""Three systems, one table: tags at their places, the same columns for all, and words taken out of texts."""

from dataclasses import replace

import pytest
import torch

from lalkit.api import Parser
from lalkit.probes.perturbation import probe_all
from lalkit.probes.rankings import BETTER
from lalkit.studies import classifiers, systems
from lalkit.studies.classifiers import Classifier
from lalkit.studies.frame import exact
from lalkit.studies.summarizers import Summarizer, SummarizerConfig, Vocabulary
from lalkit.studies.systems import compare, numbers
from lalkit.studies.texts import OF_PENN, UNIVERSAL, news
from tests.reference.probes_literal import pos_kl
from tests.studies.small import sentences


def test_tags_stand_where_their_words_stand():
    noun, stop = UNIVERSAL.index("NOUN"), UNIVERSAL.index(".")
    found = numbers([["NOUN", "."], [], ["NOUN"] * 9], 4, first=1)
    assert found.tolist() == [[-1, noun, stop, -1], [-1] * 4, [-1, noun, noun, noun]]


@pytest.fixture(scope="module")
def some(sample):
    return sorted(sample, key=len)[20:23]


@pytest.fixture(scope="module")
def tables(tiny_parser, tiny_span_parser, some, tmp_path_factory):
    data = sentences()
    run, _ = classifiers.trained(tmp_path_factory.mktemp("c"), data, "vanilla", 1, {"epochs": "1"})
    classifier = Classifier.load(run)
    documents = news().train[:3]
    config = SummarizerConfig(d_model=8, d_ff=8, heads=2, layers=1, min_count=1)
    return compare([
        ("parser, paper", Parser.load(tiny_parser), some),
        ("parser, span", Parser.load(tiny_span_parser), some),
        ("LSTM, vanilla", classifier, data.test[:3]),
        ("LSTM, vanilla", Classifier(replace(classifier.config, seed=2), classifier.vocabulary), data.test[:3]),
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


def test_a_sentence_has_its_numbers_in_any_batch(tables, tiny_span_parser, some, monkeypatch):
    parser, row = Parser.load(tiny_span_parser), tables["systems"].set_index("system").loc["parser, span"]
    monkeypatch.setattr(systems, "SIZE", 1)
    alone = compare([("parser, span", parser, some)], 2)["systems"].iloc[0]
    columns = ["tvd", "erased", "pos_kl", "entropy"]
    assert alone[columns].astype(float).tolist() == pytest.approx(row[columns].astype(float).tolist(), abs=1e-4)
    (seen,) = systems.of_parser("x", parser, some[:1])
    first, last = seen.view.examples[0] // 1000, seen.view.examples[0] % 1000
    tags = [UNIVERSAL.index(OF_PENN[tag]) for tag in some[0].tags[first:last]]
    kl = probe_all(seen.view, 2, seen.tags, len(UNIVERSAL)).query("measure == 'pos_kl'")["value"].iloc[0]
    assert kl == pytest.approx(pos_kl(seen.view.weights[0, 0, 0, : last - first].tolist(), tags), abs=1e-5)


@torch.no_grad()
def test_words_are_taken_out_of_the_text_itself():
    """As if the text had been written without them; without any word, only the bias of the output is left."""
    data, config = sentences(), classifiers.ClassifierConfig()
    model = exact(Classifier(config, classifiers.Vocabulary.build(data.train, config)))
    long = [text for text in data.test if len(text.words) > 5][:2]
    batch = model.collate(long)
    kept = torch.zeros_like(batch.mask)
    kept[0, [1, 4]] = True
    shorter = replace(long[0], words=tuple(long[0].words[i] for i in (1, 4)), tags=())
    decision = model(batch).logits.argmax(-1)
    wanted = torch.softmax(model(model.collate([shorter])).logits, -1)[0, decision[0]]
    found = classifiers.by_words(model, batch)(kept)[:, 0]
    assert float(found[0]) == pytest.approx(float(wanted), abs=1e-12)
    logits = model.output(torch.zeros(2, config.hidden, dtype=torch.float64))
    assert float(found[1]) == pytest.approx(float(torch.softmax(logits, -1)[1, decision[1]]), abs=1e-12)
