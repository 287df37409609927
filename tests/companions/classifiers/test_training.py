"""Training: seeded, chosen on dev, resumed with the same bits; damaged or foreign folders are refused."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from lalkit.companions.classifiers.classifier import KINDS, Classifier, usual
from lalkit.companions.classifiers.classifier_training import (
    accuracy,
    area,
    begin_with,
    class_weights,
    load_classifier,
    shuffled,
    train,
)
from lalkit.companions.classifiers.examples import Dataset
from lalkit.errors import ModelError
from tests.companions.classifiers.small import config, questions, sentences, untrained
from tests.reference import probes_literal as literal

DATA = sentences()


def weights(folder):
    return {k: v.clone() for k, v in load_classifier(folder).state_dict().items()}


def same(a, b):
    return all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_a_run_and_a_resumed_run_is_the_same_run(kind, tmp_path, killed, caplog):
    asked = config(kind, epochs=3, rate=0.01)
    caplog.set_level("INFO", logger="lalkit")
    history = train(asked, DATA, tmp_path / "a")["history"]
    assert [row["epoch"] for row in history] == [1, 2, 3]
    assert len(caplog.messages) == 3 and "epoch 1/3" in caplog.messages[0] and "dev" in caplog.messages[0]
    other = train(config(kind, epochs=3, rate=0.01, seed=2), DATA, tmp_path / "b")["history"]
    assert other[0]["loss"] != history[0]["loss"]

    with killed():
        train(asked, DATA, tmp_path / "c")
    resumed = train(asked, DATA, tmp_path / "c", resume=True)["history"]
    assert [(r["loss"], r["dev"]) for r in resumed] == [(r["loss"], r["dev"]) for r in history]
    assert same(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_the_best_on_dev_is_kept_and_its_settings(tmp_path):
    asked = config(epochs=4, rate=0.05)
    state = train(asked, DATA, tmp_path / "run")
    kept = load_classifier(tmp_path / "run")
    assert accuracy(kept, DATA.dev) == state["best"] == max(row["dev"] for row in state["history"])
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["rate"] == 0.05
    assert kept.config == asked and not list((tmp_path / "run").glob(".*"))


def test_chosen_by_the_area_under_the_curve_where_that_is_asked_for(tmp_path):
    asked = config(epochs=4, rate=0.05, choose_by="roc_auc", sentinels=True)
    state = train(asked, DATA, tmp_path / "run")
    kept = load_classifier(tmp_path / "run")
    assert area(kept, DATA.dev) == state["best"] == max(row["dev"] for row in state["history"])
    batch = kept.vocabulary.collate(DATA.dev)
    chances = torch.softmax(kept(batch).logits, -1)[:, 1]
    assert state["best"] == pytest.approx(literal.roc_auc(chances.tolist(), batch.label.tolist()), abs=1e-6)
    with pytest.raises(ModelError, match="for two classes, not 6"):
        area(untrained("vanilla", questions()), questions().dev)
    with pytest.raises(ModelError, match="one class only"):
        area(kept, [e for e in DATA.dev if e.label == "good"])


def test_balanced_classes_are_the_authors_weighted_binary_loss(tmp_path):
    """The logit of two classes' difference, a positive example weighing N / N+ - 1."""
    data = Dataset("few", tuple(e for i, e in enumerate(DATA.train) if e.label == "bad" or i % 3), DATA.dev, DATA.test)
    positive = sum(e.label == "good" for e in data.train)
    asked = config(epochs=1, balanced=True)
    train(asked, data, tmp_path / "run")
    model = load_classifier(tmp_path / "run")
    assert model.weight.tolist() == pytest.approx([1, len(data.train) / positive - 1])
    assert torch.equal(model.weight, class_weights(model, data.train)) and model.weight[1] != 1
    batch = model.vocabulary.collate(data.train)
    logits = model(batch).logits
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        logits[:, 1] - logits[:, 0], batch.label.float(), pos_weight=model.weight[1]
    )
    assert torch.allclose(model.loss(batch), wanted)


def test_pairs_can_be_learned(tmp_path):
    """A few questions of bAbI 1 by heart."""
    data = Dataset("heart", *[questions().train[:20]] * 3, extractive=True)
    asked = config(epochs=40, batch=5, rate=0.01, hidden=16, stop_at=0.85)
    state = train(asked, data, tmp_path / "run")
    assert state["history"][0]["dev"] < 0.7 and state["best"] >= 0.85
    assert load_classifier(tmp_path / "run").paired


@pytest.mark.parametrize(("first", "data", "words"), [
    ("", questions(), ("kitchen", "where")), ("3 12\n", questions(), ("kitchen", "where")), ("", DATA, ("plot",)),
], ids=["GloVe", "fastText", "unpaired"])  # fmt: skip
def test_words_begin_with_the_vectors_of_a_file(first, data, words, tmp_path):
    file = tmp_path / "vectors.txt"
    numbers = [f"{i / 8:.3f}" for i in range(12)]
    file.write_text(first + "".join(f"{word} {' '.join(numbers)} \n" for word in (". . .", *words)))
    model = untrained("vanilla", data)
    sides = [getattr(model, side) for side in ("words", "asked")[: len(words)]]
    before = [side.weight.clone() for side in sides]
    begin_with(model, str(file))
    for side, ids, was, word in zip(sides, model.vocabulary.ids, before, words):
        assert side.weight[ids[word]].tolist() == [i / 8 for i in range(12)]
        others = torch.arange(len(was)) != ids[word]
        assert torch.equal(side.weight[others], was[others])
    for setting in ("", str(file)):
        train(config(epochs=1, vectors=setting, rate=1e-9), data, tmp_path / f"run{bool(setting)}")
    plain, begun = (load_classifier(tmp_path / f"run{bool(s)}").words.weight for s in ("", "x"))
    assert (plain != begun).any(1).nonzero()[:, 0].tolist() == [model.vocabulary.ids[0][words[0]]]


def test_vectors_that_cannot_be_used(tmp_path):
    model, file = untrained("vanilla", questions()), tmp_path / "vectors.txt"
    with pytest.raises(ModelError, match="no vectors that can be read"):
        begin_with(model, str(file))
    for text, says in (
        ("kitchen 1 2 3\n", "no vector of 12 numbers"),
        ("kitchen" + " x" * 12, "no vectors that can be"),
    ):
        file.write_text(text)
        with pytest.raises(ModelError, match=f"(?s)vectors.txt: has {says}.*embedding=N"):
            begin_with(model, str(file))


def test_training_ends_when_dev_is_good_enough(tmp_path):
    assert len(train(config(epochs=9, stop_at=0.0), DATA, tmp_path / "run")["history"]) == 1


def test_folders_that_are_refused(tmp_path):
    run = tmp_path / "run"
    train(config(epochs=1), DATA, run)
    with pytest.raises(ModelError, match="holds a run already"):
        train(config(epochs=1), DATA, run)
    with pytest.raises(ModelError, match="another config"):
        train(config(epochs=2), DATA, run, resume=True)
    with pytest.raises(ModelError, match="is of other data than this 'rest'"):
        train(config(epochs=1), replace(DATA, name="rest"), run, resume=True)
    for change in ({"train": DATA.train[1:]}, {"dev": DATA.dev[::-1]}, {"extractive": True}):
        with pytest.raises(ModelError, match="(?s)is of other data than this 'sentences'.*another --out"):
            train(config(epochs=1), replace(DATA, **change), run, resume=True)
    train(config(epochs=1), replace(DATA, test=DATA.test[1:]), run, resume=True)  # nothing is learned from it
    before = json.loads((run / "resume.json").read_text())
    (run / "resume.json").write_text(json.dumps({k: v for k, v in before.items() if k != "data_sha256"}))
    with pytest.raises(ModelError, match="a lalkit that did not take note"):
        train(config(epochs=1), DATA, run, resume=True)
    assert accuracy(load_classifier(run), DATA.dev)  # it is still a classifier
    with pytest.raises(ModelError, match="no classifier here"):
        load_classifier(tmp_path)
    file = next(run.glob("model-*.safetensors"))
    tensors = load_file(file)
    tensors["words.weight"][0, 0] = torch.inf
    save_file(tensors, file)
    with pytest.raises(ModelError, match="words.weight has a number that is not finite(?s:.*)Train it again"):
        load_classifier(run)
    file.write_bytes(b"x")
    with pytest.raises(ModelError, match="no classifier here, or not a whole one"):
        load_classifier(run)
    (run / "model.json").write_text('{"weights": "a", "format": "other"}')
    with pytest.raises(ModelError):
        load_classifier(run)


def test_a_loss_that_is_no_number_ends_the_run(tmp_path, monkeypatch):
    """No rate within the bounds makes this loss infinite, so the loss is multiplied here."""
    loss = Classifier.loss
    monkeypatch.setattr(Classifier, "loss", lambda self, batch: loss(self, batch) * float("inf"))
    with pytest.raises(ModelError, match="the loss is"):
        train(config(epochs=3), DATA, tmp_path / "run")


def test_epochs_are_shuffled_by_seed_and_complete():
    batches = [list(shuffled(DATA.train, 4, seed, epoch)) for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))]
    assert batches[0] == batches[1] != batches[2] and batches[0] != batches[3]
    key = [(e.words, e.label) for e in DATA.train]
    for some in batches:
        assert sorted((e.words, e.label) for group in some for e in group) == sorted(key)


def test_usual_settings():
    assert usual("babi-1").hidden == 64 and usual("babi-1").batch == 50
    assert usual("babi-2").hidden == usual("babi-10").hidden == 128
    assert (
        usual("subjectivity").diversity == 1
        and usual("sentence_polarity").diversity == usual("babi-2").diversity == 0.5
    )
    assert usual("snli").diversity == 0.1 and usual("cnn").diversity == 0.2  # [P]
    assert usual("subjectivity", "diversity", 3).epochs == 5 and usual("somewhere/else") == usual("sentence_polarity")
