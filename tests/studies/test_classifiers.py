"""The classifiers: their equations, their training, and the measures of the study."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from lalkit.errors import ModelError
from lalkit.files import read_json, write_json
from lalkit.probes.perturbation import ask
from lalkit.probes.weights import attribute, look_at
from lalkit.studies import classifiers, frame
from lalkit.studies.classifiers import KINDS, Classifier, OrthogonalLSTM, measure, view
from tests.reference.orthogonal_literal import orthogonal
from tests.studies.small import config, same, sentences, untrained

DATA = sentences()
train = partial(frame.train, Classifier)
LENGTHS = torch.tensor([50, 1, 2, 7, 31, 50])
MASK = torch.arange(50)[None] < LENGTHS[:, None]


# ---------------------------------------------------------------- encoders


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("scale", [0.01, 1, 10])
def test_every_state_is_orthogonal_to_the_sum_before_it(dtype, most, scale):
    torch.manual_seed(0)
    encoder = OrthogonalLSTM(16, 24).to(dtype)
    x = scale * torch.randn(6, 50, 16, dtype=dtype)
    states = encoder(x, MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        h = states[b, :length]
        cosines = torch.cosine_similarity(h[1:].double(), h.cumsum(0)[:-1].double(), dim=-1)
        assert cosines.abs().max() <= most if length > 1 else len(cosines) == 0
        assert torch.equal(states[b, length:], h[-1:].expand(50 - length, -1))  # padding carries the last state on


def test_the_orthogonal_lstm_is_gram_schmidt_and_has_gradients():
    torch.manual_seed(1)
    encoder, x = OrthogonalLSTM(6, 5).double(), torch.randn(6, 50, 6, dtype=torch.float64)
    found = encoder(x, MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        assert torch.allclose(found[b, :length], orthogonal(encoder.lstm, x[b, :length]), atol=1e-10)
    some, mask = x[:2, :4].clone().requires_grad_(), MASK[[0, 2], :4]
    assert torch.autograd.gradcheck(lambda x: encoder(x, mask) * mask[..., None], some)


# ---------------------------------------------------------------- the model and its view


@pytest.mark.parametrize("kind", KINDS)
def test_alone_or_padded_a_text_has_the_same_attention_class_and_probes(kind):
    model, some = untrained(kind, DATA), DATA.test[:7]
    together = model(model.collate(some))
    keys = ["measure", "example", "unit", "query"]

    def probes(texts, numbers):
        seen = view(model, model.collate(texts), numbers)
        table = pd.concat([look_at(seen), ask(seen, 20)])
        return table[table["example"].notna()].astype(dict.fromkeys(keys, str)).set_index(keys)["value"].sort_index()

    measured = probes(some, range(7))
    for b, text in enumerate(some):
        alone, n = model(model.collate([text])), len(text.words)
        assert torch.allclose(together.attention[b, :n], alone.attention[0], atol=1e-9)
        assert torch.allclose(together.logits[b], alone.logits[0], atol=1e-9)
        assert (together.attention[b, n:] == 0).all()
        one = probes([text], [b])
        assert np.allclose(one, measured.loc[one.index], atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_view_says_what_the_model_says(kind):
    model = untrained(kind, DATA)
    batch = model.collate(DATA.test)
    seen, found = view(model, batch), model(batch)
    outcome = seen.predict(seen.weights)
    assert torch.allclose(outcome.probs[:, 0], torch.softmax(found.logits, -1))
    assert torch.equal(outcome.score[:, 0].bool(), found.logits.argmax(-1) == batch.label)
    several = seen.predict(torch.stack([seen.weights, seen.weights.flip(-1)]))
    assert torch.allclose(several.probs[0], outcome.probs) and several.probs.shape[0] == 2


def test_the_loss_of_diversity_is_cross_entropy_and_conicity():
    plain, diverse = untrained("vanilla", DATA), untrained("diversity", DATA)
    batch = plain.collate(DATA.train)
    wanted = look_at(view(plain, batch)).query("measure == 'conicity'")["value"].mean()
    assert float((diverse.loss(batch) - plain.loss(batch)).detach()) == pytest.approx(0.5 * wanted)


def test_integrated_gradients_add_up_through_the_attention_only():
    model = untrained("vanilla", DATA)
    for p in model.parameters():
        p.data *= 2
    batch = model.collate([text for text in DATA.test if len(text.words) > 3][:4])
    embedded, rows, target = model.words(batch.x).detach(), torch.arange(4), batch.label
    errors = []
    for through in (True, False):
        function = classifiers.from_words(model, batch, through)
        ends = [function(x, rows).gather(1, target[:, None])[:, 0] for x in (embedded, torch.zeros_like(embedded))]
        found = attribute(function, embedded, target, "integrated", rows)
        errors.append(float((found.sum(-1) - (ends[0] - ends[1]).detach()).abs().max()))
    assert errors[0] < 1e-5 < 1e-4 < errors[1]


def test_a_sparsemax_classifier_differs_from_vanilla_in_its_weights_only():
    vanilla, sparse = untrained("vanilla", DATA), untrained("sparsemax", DATA)
    sparse.load_state_dict(vanilla.state_dict())
    for model in (vanilla, sparse):
        model.attention.score.weight.data *= 50
    batch = sparse.collate(DATA.test)
    found, other = sparse(batch), vanilla(batch)
    assert torch.equal(found.states, other.states)
    assert (found.attention[batch.mask] == 0).any() and (other.attention[batch.mask] > 0).all()


def test_texts_that_a_classifier_cannot_read():
    model = untrained("vanilla", DATA)
    for texts in ([], [replace(DATA.test[0], label="new")]):
        pytest.raises(ModelError, model.collate, texts)


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("kind", ["vanilla", "orthogonal"])
def test_a_seed_is_a_run(kind, tmp_path):
    asked = config(kind, rate=0.01, epochs=3)
    state = train(asked, DATA, tmp_path / "a")
    assert train(replace(asked, seed=2), DATA, tmp_path / "b")["history"][0]["loss"] != state["history"][0]["loss"]
    assert train(asked, DATA, tmp_path / "c")["history"] == state["history"]
    kept, again = (Classifier.load(tmp_path / name) for name in "ac")
    assert same(kept, again)
    assert kept.score(DATA.dev) == state["best"] == max(row["dev"] for row in state["history"])
    assert kept.config == asked


def test_texts_can_be_learned_and_training_ends_when_dev_is_good_enough(tmp_path):
    """A few texts by heart."""
    data = replace(DATA, dev=DATA.train)
    state = train(config(epochs=60, batch=5, rate=0.02, hidden=16, stop_at=0.9), data, tmp_path / "run")
    assert state["history"][0]["dev"] < 0.9 <= state["best"] and len(state["history"]) < 60


# Vocabularies of a folder.
DAMAGED = [None, {}, {"words": ["a"]}, *({"words": words, "classes": ["b", "c"]} for words in (3, [3], ["a", "a"]))]


def test_folders_that_are_refused(tmp_path, monkeypatch):
    run, one = tmp_path / "run", config(epochs=1)
    train(one, DATA, run)
    others = replace(DATA, train=DATA.train[1:]), replace(DATA, dev=DATA.dev[::-1])
    for wanted, given in ((config(epochs=2), DATA), *((one, other) for other in others)):
        with pytest.raises(ModelError) as caught:
            train(wanted, given, run)
        assert caught.value.where == str(run) and "another folder" in caught.value.remedy
    train(one, replace(DATA, test=DATA.test[1:]), run)  # nothing is learned from it
    content = read_json(run / "model.json", "")
    for vocabulary in DAMAGED:
        write_json(run / "model.json", content | {"vocabulary": vocabulary})
        with pytest.raises(ModelError, match=r"model\.json: has no whole vocabulary"):
            Classifier.load(run)
    write_json(run / "model.json", content)
    file = next(run.glob("model-*.safetensors"))
    save_file({name: tensor * torch.inf for name, tensor in load_file(file).items()}, file)
    for folder in (tmp_path, run):  # there is none; its weights are not finite
        pytest.raises(ModelError, Classifier.load, folder)
    loss = Classifier.loss
    monkeypatch.setattr(Classifier, "loss", lambda self, batch: loss(self, batch) * float("inf"))
    with pytest.raises(ModelError, match="the loss is"):
        train(one, DATA, tmp_path / "infinite")


# ---------------------------------------------------------------- measures


def test_tables_have_a_row_for_every_text_and_measure(monkeypatch):
    monkeypatch.setattr(classifiers, "ROUNDS", 5)
    monkeypatch.setattr(classifiers, "ATTRIBUTED", {"gradient": 3, "integrated": 2})
    model, count = untrained("vanilla", DATA), len(DATA.test)
    counts = measure(model, DATA.test)["measure"].value_counts()
    names = ["tvd", "erased", "erased_random", "conicity", "right", "length"]
    assert (counts[names] == count).all()
    assert counts["pearson_gradient"] == 3 and counts["jsd_integrated"] == counts["pearson_integrated_fixed"] == 2
    half = [replace(text, tags=("NOUN", *["VERB"] * (len(text.words) - 1))) for text in DATA.test]
    words = classifiers.samples([model], [*half, replace(half[0], tags=())])
    tags = classifiers.attention_by_tag(words)
    assert tags["attention"].sum() == pytest.approx(100) == tags["words"].sum()
    assert tags["tag"].tolist() == ["NOUN", "VERB"]
    assert tags["n"].tolist() == [count, sum(len(e.words) for e in half) - count]
    first = words[words["place"] == 0].iloc[:-1]["attention"].sum()
    assert tags["attention"][0] == pytest.approx(100 * first / count)


def test_texts_of_one_word():
    one = next(e for e in DATA.test if len(e.words) == 1)
    found = measure(untrained("orthogonal", DATA), [one]).set_index("measure")["value"]
    known = {"max_attention": 1, "conicity": 1, "tvd": 0, "erased": 1, "entropy": 0}
    assert found[list(known)].tolist() == pytest.approx(list(known.values()), abs=1e-12)
    assert np.isnan(found["pearson_gradient"])


def test_tables_of_the_study_on_known_numbers():
    def long(seed, **values):
        cells = ((name, i, v) for name, several in values.items() for i, v in enumerate(several))
        rows = [("d", "vanilla", seed, 9, 1, *cell) for cell in cells]
        return pd.DataFrame(rows, columns=["data", "system", "seed", "train", "epochs", "measure", "example", "value"])

    table = pd.concat([
        long(1, right=[1, 1, 0, 1], erased=[0.1, 0.2, 0.9, 0.3], max_attention=[0.1, 0.25, 1, 1], tvd=[0, 0.2, 1, 0.4],
             erased_random=[1.0] * 4, length=[2, 3, 4, 5]),
        long(2, right=[1, 0, 0, 0], erased=[1] * 4, max_attention=[0.2] * 4, tvd=[0.1] * 4, erased_random=[1.0] * 4,
             length=[1, 2, 2, 2]),
    ])  # fmt: skip
    runs = classifiers.runs(table)
    assert runs["accuracy"].tolist() == [75, 25] and runs["erased_median"].tolist() == [0.25, 1]
    found = classifiers.quantiles(table).set_index(["measure", "texts"])
    assert found.loc[("erased", "right"), ["n", "median"]].tolist() == [4, 0.25]
    assert found.loc[("erased", "all"), ["n", "low", "high"]].tolist() == [8, 0.275, 1]
    assert found.loc["tvd"]["n"].tolist() == [4, 1, 0, 2], "0.25 is in the second bin; a text of one word is left out"
    assert found.loc[("tvd", "[0.75, 1]"), "median"] == pytest.approx(0.7)
