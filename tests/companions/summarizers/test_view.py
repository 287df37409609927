"""The summarizer as the shared probes see it: its own weights say what it says, others what it would say."""

import dataclasses

import pandas as pd
import pytest
import torch

from lalkit.companions.summarizers.documents import news
from lalkit.companions.summarizers.summarizer import Change, Summarizer, SummarizerConfig, Vocabulary, exact, view
from lalkit.errors import ModelError
from lalkit.probes.perturbation import overview, permutation_tvd, probe_all

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, min_count=2, sparse="encoder")
DOCUMENTS = news(6, 0, 0).train


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    found = exact(Summarizer(CONFIG, Vocabulary.build(DOCUMENTS, CONFIG)))
    with torch.no_grad():
        for p in found.parameters():
            p *= 2
    return found


def collate(model, documents=DOCUMENTS):
    return model.collate(documents)


@pytest.mark.parametrize("block", ["enc.0", "enc.1", "cross.0", "cross.1", "copy"])
def test_its_own_weights_say_what_it_says_and_others_what_it_would(model, block):
    batch = collate(model)
    seen = view(model, batch, block)
    whole = model(batch)
    outcome = seen.predict(seen.weights)
    assert torch.allclose(outcome.probs, whole.probs, atol=1e-12)
    right = ((whole.probs.argmax(-1) == batch.target) & batch.target_mask).sum(1)
    assert outcome.score.tolist() == [[r, n] for r, n in zip(right.tolist(), batch.target_mask.sum(1).tolist())]
    other = torch.rand_like(seen.weights) ** 3 * seen.key_mask[:, None, None]
    other = other / other.sum(-1, keepdim=True)
    change = Change(copy=other[:, 0]) if block == "copy" else Change(weights={block: other})
    expected = model(batch, change).probs
    assert torch.allclose(seen.predict(other).probs, expected, atol=1e-12)
    assert not torch.allclose(expected, whole.probs, atol=1e-4)
    several = seen.predict(torch.stack([seen.weights, other]))
    assert torch.allclose(several.probs[1], expected, atol=1e-12) and several.decision.shape[0] == 2
    assert several.score.shape == (2, 6, 2)


def test_what_is_mixed_are_the_values(model):
    batch = collate(model)
    seen = view(model, batch, "cross.0")
    layer = model.decoder[0].cross
    values = layer.value(model.encode(batch)[0])
    assert seen.values.shape == (6, 2, batch.source.shape[1], 4)
    assert torch.equal(seen.values[:, 1], values[..., 4:])
    assert torch.equal(view(model, batch, "copy").values[:, 0], view(model, batch, "cross.1").values[:, 0])


def test_alone_and_in_a_batch(model):
    together = permutation_tvd(view(model, collate(model), "enc.1"), 5)
    for i in (0, 4):
        batch = collate(model, DOCUMENTS[i : i + 1])
        alone = permutation_tvd(view(model, batch, "enc.1", [i]), 5)
        steps = int(batch.target_mask.sum())
        assert torch.allclose(together[i, :steps], alone[0, :steps], atol=1e-10)


def test_one_row_a_system(model):
    tags = torch.zeros(6, collate(model).source.shape[1], dtype=torch.long)
    parts = [
        probe_all(view(model, collate(model), block), 3, tags, 1, system=block, seed=seed)
        for block in ("enc.0", "copy")
        for seed in (1, 2)
    ]
    table = overview(pd.concat(parts)).set_index("system")
    assert list(table.index) == ["enc.0", "copy"] and table["heads"].tolist() == [2, 1]
    assert table["texts"].tolist() == [6, 6]
    assert (table["pos_kl"].abs() < 1e-9).all(), "of one tag nothing can be said"
    assert table["entropy_share"].between(0, 1).all() and table["erased"].between(0, 1).all()
    assert table.loc["enc.0", "sparsity"] > 0 == table.loc["copy", "sparsity"]
    rows = parts[2][parts[2]["measure"] == "tvd"]
    assert table.loc["copy", "tvd"] == pytest.approx(rows.groupby("example")["value"].mean().mean())


def test_no_such_attention(model):
    with pytest.raises(ModelError, match="no attention 'enc.9'\n.*enc.0, enc.1, cross.0, cross.1, copy"):
        view(model, collate(model), "enc.9")


def test_all_heads_of_a_softmax_view_are_named(model):
    soft = Summarizer(dataclasses.replace(CONFIG, sparse="none"), model.vocabulary)
    assert view(soft, collate(soft), "cross.1").heads == ["cross.1.0", "cross.1.1"]
