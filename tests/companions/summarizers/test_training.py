"""Training a summarizer, and what its summaries are worth."""

import dataclasses

import pytest
import torch

from lalkit.companions.summarizers.documents import Dataset, Document, news
from lalkit.companions.summarizers.headlines import GREEDY, lead, score, summarize
from lalkit.companions.summarizers.summarizer import SummarizerConfig
from lalkit.companions.summarizers.summarizer_training import likelihood, load_summarizer, train
from lalkit.errors import ModelError

CONFIG = SummarizerConfig(layers=1, heads=2, d_model=16, d_ff=32, epochs=3, batch=10, min_count=2)
DATA = news(60, 20, 20)


def test_a_seed_is_a_run_and_a_resumed_run_is_the_same_run(tmp_path, killed):
    history = train(CONFIG, DATA, tmp_path / "a")["history"]

    with killed():
        train(CONFIG, DATA, tmp_path / "b")
    resumed = train(CONFIG, DATA, tmp_path / "b", resume=True)["history"]
    assert [(r["loss"], r["dev"]) for r in resumed] == [(r["loss"], r["dev"]) for r in history]
    first, second = (load_summarizer(tmp_path / name) for name in "ab")
    assert all(torch.equal(p, q) for p, q in zip(first.state_dict().values(), second.state_dict().values()))
    assert likelihood(first, DATA.dev) == max(r["dev"] for r in history)
    with pytest.raises(ModelError, match="holds a run already"):
        train(CONFIG, DATA, tmp_path / "a")
    with pytest.raises(ModelError, match="another config"):
        train(dataclasses.replace(CONFIG, rate=1.0), DATA, tmp_path / "a", resume=True)
    with pytest.raises(ModelError, match="is of other data"):
        train(CONFIG, dataclasses.replace(DATA, train=DATA.train[1:]), tmp_path / "a", resume=True)
    moved = tuple(dataclasses.replace(d, id=f"elsewhere/{d.id}") for d in DATA.train)
    train(CONFIG, dataclasses.replace(DATA, train=moved), tmp_path / "a", resume=True)
    with pytest.raises(ModelError, match="no summarizer here"):
        load_summarizer(tmp_path)


@pytest.mark.slow
def test_a_few_articles_can_be_learned_by_heart(tmp_path):
    few = Dataset("few", DATA.train[:20], DATA.train[:20], DATA.test)
    config = dataclasses.replace(CONFIG, epochs=60, rate=5e-3, dropout=0.0, d_model=32)
    state = train(config, few, tmp_path / "run")
    assert state["history"][0]["dev"] < 0.1 < 0.5 < state["best"]
    model = load_summarizer(tmp_path / "run")
    found = summarize(model, model.collate(few.train), dataclasses.replace(GREEDY, most=10))
    table = score(few.train, found, model.vocabulary)
    assert table["rouge1"].mean() > 0.6 and table["copied"].sum() <= table["unknown"].sum()


def test_rouge_of_summaries():
    documents = [Document(("a", "Zork", "ran"), ("Zork", "ran")), Document(("a",), ("a", "b"))]
    table = score(documents, [["Zork", "ran"], []])
    assert table["rouge1"].tolist() == [1.0, 0.0] and table["exact"].tolist() == [True, False]
    with pytest.raises(ValueError, match="1 summaries for 2 documents"):
        score(documents, [["a"]])
    assert [len(lead(Document(tuple("a . b c ! d".split())), count)) for count in (1, 2, 3)] == [2, 5, 6]
