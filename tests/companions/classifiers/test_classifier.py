"""The classifiers, and the view that probes have of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lalkit.companions.classifiers.classifier import KINDS, from_some_words, from_words, usual, view
from lalkit.companions.classifiers.faithfulness import attention_by_tag, by_text, measure
from lalkit.companions.frame import exact
from lalkit.errors import ModelError
from lalkit.probes.attribution import attribute
from lalkit.probes.perturbation import ask
from lalkit.probes.weights import look_at
from tests.companions.classifiers.small import questions, sentences, untrained

DATA = {"sentences": sentences(), "questions": questions()}


@pytest.mark.parametrize("sentinels", [False, True])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_alone_or_padded_a_text_has_the_same_attention_class_and_probes(kind, data, sentinels):
    model, some = untrained(kind, DATA[data], sentinels=sentinels), DATA[data].test[:7]
    whole = model(model.vocabulary.collate(some))
    keys = ["measure", "example", "unit", "query"]

    def probes(examples, numbers):
        seen = view(model, model.vocabulary.collate(examples), numbers)
        table = pd.concat([look_at(seen), ask(seen, 20)])
        return table[table["example"].notna()].astype(dict.fromkeys(keys, str)).set_index(keys)["value"].sort_index()

    together = probes(some, range(7))
    for b, example in enumerate(some):
        alone = model(model.vocabulary.collate([example]))
        n = len(example.words)
        assert torch.allclose(whole.attention[b, :n], alone.attention[0], atol=1e-9)
        assert torch.allclose(whole.logits[b], alone.logits[0], atol=1e-9)
        assert (whole.attention[b, n:] == 0).all()
        one = probes([example], [b])
        assert np.allclose(one, together.loc[one.index], atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_view_says_what_the_model_says(kind):
    for data in DATA.values():
        model = untrained(kind, data)
        batch = model.vocabulary.collate(data.test)
        seen, found = view(model, batch), model(batch)
        outcome = seen.predict(seen.weights)
        assert torch.allclose(outcome.probs[:, 0], torch.softmax(found.logits, -1))
        assert torch.equal(outcome.score[:, 0].bool(), found.logits.argmax(-1) == batch.label)
        several = seen.predict(torch.stack([seen.weights, seen.weights.flip(-1)]))
        assert torch.allclose(several.probs[0], outcome.probs) and several.probs.shape[0] == 2


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_sentinels_are_two_more_words_that_nothing_looks_at(kind, data):
    """The slow twin: the words written into each text, read one by one; attention, output and conicity of the words between."""
    model = untrained(kind, DATA[data], sentinels=True)
    some = DATA[data].test[:6]
    batch = model.vocabulary.collate(some)
    found, there = model(batch), view(model, batch)
    for b, example in enumerate(some):
        one, n = model.vocabulary.collate([example]), len(example.words)

        def written(encoder, embedding, ids, side):
            x = torch.cat([model.ends[side, :1], embedding(ids[0]), model.ends[side, 1:]])[None]
            return encoder(x, torch.ones(1, x.shape[1], dtype=torch.bool))[0]

        states = written(model.encoder, model.words, one.x, 0)[1:-1]
        asked = None
        if model.paired:
            asked = written(model.question_encoder, model.asked, one.question, 1)[-1:]
        weights = model.attention(states[None], torch.ones(1, n, dtype=torch.bool), asked)
        assert weights.shape == (1, n) and torch.allclose(found.attention[b, :n], weights[0])
        assert torch.allclose(found.logits[b], model.classify(weights @ states, asked, one.allowed)[0])
        assert torch.allclose(there.values[b, 0, :n], states)
    plain = untrained(kind, DATA[data])
    assert kind == "mlp" or not torch.allclose(plain(batch).logits, found.logits, atol=1e-4)


def test_the_loss_of_diversity_is_cross_entropy_and_conicity():
    data = DATA["sentences"]
    plain, diverse = untrained("vanilla", data), untrained("diversity", data)
    batch = plain.vocabulary.collate(data.train)
    seen = look_at(view(plain, batch))
    wanted = seen[seen["measure"] == "conicity"]["value"].mean()
    assert float((diverse.loss(batch) - plain.loss(batch)).detach()) == pytest.approx(0.5 * wanted)


def test_integrated_gradients_add_up_through_the_attention_only():
    model = untrained("vanilla", DATA["questions"])
    for p in model.parameters():
        p.data *= 3
    batch = model.vocabulary.collate(DATA["questions"].test[:4])
    embedded, rows, target = model.words(batch.x).detach(), torch.arange(4), batch.label[:, None]
    errors = []
    for through in (True, False):
        function = from_words(model, batch, through)
        ends = [function(x, rows).gather(2, target[..., None])[..., 0] for x in (embedded, torch.zeros_like(embedded))]
        found = attribute(function, embedded, target, "integrated", rows)
        errors.append(float((found.sum(-1) - (ends[0] - ends[1]).detach()).abs().max()))
    assert errors[0] < 1e-5 < 1e-4 < errors[1]


@pytest.mark.parametrize("kind", ["context", "both"])
def test_a_pair_is_read_from_the_context_alone_or_with_its_question(kind):
    model = untrained("vanilla", DATA["questions"], pair_output=kind)
    context, asked = torch.randn(2, 3, model.config.hidden, dtype=torch.float64)
    found, other = (model.classify(context, question, None) for question in (asked, -asked))
    assert torch.equal(found, other) == (kind == "context")
    read = context
    if kind == "both":
        w, b, v = model.from_text.weight, model.from_text.bias, model.from_question.weight
        read = torch.tanh(context @ w.T + b + asked @ v.T)
    assert torch.allclose(found, read @ model.output.weight.T + model.output.bias)
    assert usual("babi-1").pair_output == "both" and usual("rte").pair_output == "context"


def test_answers_are_words_of_the_text():
    model = untrained("vanilla", DATA["questions"])
    batch = model.vocabulary.collate(DATA["questions"].test)
    probs = torch.softmax(model(batch).logits, -1)
    for example, row in zip(batch.examples, probs.tolist()):
        said = {c for c, p in zip(model.vocabulary.classes, row) if p > 0}
        assert said == set(example.words) & set(model.vocabulary.classes)
    whole = from_some_words(model, batch)(model.words(batch.x), batch.mask)
    assert torch.allclose(whole, probs)


def test_tables_have_a_row_for_every_text_and_measure():
    data = DATA["questions"]
    model, count = untrained("vanilla", data), len(data.test)
    table = measure(model, data.test, rounds=5, attributed=3, integrated=2)
    counts = table["measure"].value_counts()
    for name in ("tvd", "erased", "erased_random", "conicity", "right", "supported", "length"):
        assert counts[name] == count, name
    assert counts["pearson_gradient"] == 3 and counts["jsd_integrated"] == counts["pearson_integrated_fixed"] == 2
    through, fixed = (table.loc[table["measure"] == f"jsd_integrated{end}", "value"] for end in ("", "_fixed"))
    assert not np.allclose(through, fixed)
    wide = by_text(table)
    assert len(wide) == count and wide["supported"].between(0, 1).all()
    assert wide["length"].tolist() == [len(e.words) for e in data.test]
    tags = attention_by_tag(model, data.test)
    assert tags["attention"].sum() == pytest.approx(100) == tags["words"].sum()
    assert set(tags["tag"]) == {t for e in data.test for t in e.tags}  # what never occurs has no row, not 0/0
    assert tags["n"].sum() == sum(len(e.words) for e in data.test)


def test_texts_of_one_word():
    data = DATA["sentences"]
    model = untrained("orthogonal", data)
    one = next(e for e in data.test if len(e.words) == 1)
    found = measure(model, [one], rounds=3).set_index("measure")["value"]
    known = {"max_attention": 1, "conicity": 1, "tvd": 0, "erased": 1, "entropy": 0}
    assert found[list(known)].tolist() == pytest.approx(list(known.values()), abs=1e-12)
    assert np.isnan(found["pearson_gradient"])


def test_what_cannot_be_collated():
    model = untrained("vanilla", DATA["sentences"])
    with pytest.raises(ModelError, match="the classifier knows no class"):
        model.vocabulary.collate(DATA["questions"].test)
    with pytest.raises(ModelError, match="no examples"):
        model.vocabulary.collate([])
    one = DATA["questions"].test[0]
    for few in ([replace(one, question=())], [one, replace(one, question=())]):
        with pytest.raises(ModelError, match="(?s)reads a question with each text.*Give texts with questions"):
            untrained("vanilla", DATA["questions"]).vocabulary.collate(few)
    assert exact(untrained("vanilla", DATA["sentences"]).float()).output.weight.dtype == torch.float64


def test_a_sparsemax_classifier_differs_from_vanilla_in_its_weights_only():
    data = DATA["sentences"]
    vanilla, sparse = untrained("vanilla", data), untrained("sparsemax", data)
    sparse.load_state_dict(vanilla.state_dict())
    for model in (vanilla, sparse):
        model.attention.score.weight.data *= 50
    batch = sparse.vocabulary.collate(data.test)
    found, other = sparse(batch), vanilla(batch)
    assert torch.equal(found.states, other.states)
    assert (found.attention[batch.mask] == 0).any() and (other.attention[batch.mask] > 0).all()
    assert torch.allclose(found.attention.sum(-1), torch.ones(len(batch.x), dtype=torch.float64))
