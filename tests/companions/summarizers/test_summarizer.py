"""The copy summarizer: what its equations say, alone and in a batch, and what gates and sparse heads do to it."""

import dataclasses
import itertools
import math
from typing import get_args

import pytest
import torch

from lalkit.companions.frame import PADDING, UNKNOWN
from lalkit.companions.summarizers.documents import Document
from lalkit.companions.summarizers.headlines import GREEDY, Beam, summarize
from lalkit.companions.summarizers.summarizer import (
    LEAST,
    STOP,
    Change,
    Sparse,
    Summarizer,
    SummarizerConfig,
    Vocabulary,
    normalisers,
)
from lalkit.errors import CorpusError, ModelError

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, dropout=0.0, min_count=1)
KNOWN = Document(("a", "b", "c", "b"), ("b", "a"))
NEW = Document(("a", "Zork", "b", "Zork", "Quux"), ("Zork", "c"), id="new")


def make(config=CONFIG, documents=(KNOWN,), seed=0):
    torch.manual_seed(seed)
    return Summarizer(config, Vocabulary.build(documents, config)).double().eval()


def collate(model, *documents):
    return model.collate(documents)


def test_the_distribution_sums_to_one_over_the_extended_vocabulary():
    model = make()
    batch = collate(model, NEW, KNOWN)
    assert batch.unknown == ("Zork", "Quux")
    probs = model(batch).probs
    assert probs.shape == (2, 3, len(model.vocabulary) + 2)
    assert torch.allclose(probs.sum(-1), torch.ones_like(probs[..., 0]), atol=1e-12)
    assert (probs[1, :, -2:] == 0).all(), "a document cannot copy another's words"


@torch.no_grad()
def test_a_word_that_stands_twice_gets_the_attention_of_both_places():
    model = make()
    batch = collate(model, NEW)
    with torch.no_grad():
        model.copy.weight.zero_()
        model.copy.bias.fill_(50.0)  # p = 1
    copy = torch.zeros(1, 3, 5, dtype=torch.float64)
    copy[..., 1], copy[..., 3], copy[..., 0] = 0.5, 0.3, 0.2
    probs = model(batch, Change(copy=copy)).probs
    zork = len(model.vocabulary)
    assert probs[0, 0, zork] == pytest.approx(0.8) and probs[0, 0, model.vocabulary.index["a"]] == pytest.approx(0.2)
    copy = torch.zeros_like(copy)
    copy[..., 4] = 1.0
    assert model(batch, Change(copy=copy)).probs[0, 0, zork + 1] == pytest.approx(1), "p = 1, one place: that word"


def test_an_unknown_word_off_the_support_costs_46_and_its_gradient_is_a_number():
    model = make()
    batch = collate(model, Document(("a", "Zork"), ("Zork",)))
    copy = torch.zeros(1, 2, 2, dtype=torch.float64)
    copy[..., 0] = 1.0
    probs = model(batch, Change(copy=copy)).probs[0, 0, len(model.vocabulary)]
    assert float(-torch.log(probs.detach() + LEAST)) == pytest.approx(46.05, abs=0.01)
    loss = model.loss(batch, Change(copy=copy))
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_what_cannot_be_said_is_wanted_as_unknown():
    model = make()
    batch = collate(model, NEW, Document(("a", "b"), ("Zork", "a")))
    zork = len(model.vocabulary)
    assert batch.target[0].tolist() == [zork, model.vocabulary.index["c"], STOP]
    assert batch.target[1].tolist() == [UNKNOWN, model.vocabulary.index["a"], STOP], "not in its document"
    assert (batch.target_mask == (batch.target != PADDING)).all()


def test_words_that_look_like_special_ones_can_be_copied():
    """The document of a web page may have the word </s>. It does not end the summary."""
    model = make()
    batch = collate(model, Document(("</s>", "a"), ("</s>", "<s>")))
    assert batch.unknown == ("</s>",) and batch.target[0].tolist() == [len(model.vocabulary), UNKNOWN, STOP]
    with torch.no_grad():
        model.copy.bias.fill_(50.0)
    first = Change(copy=torch.tensor([[[1.0, 0.0]]], dtype=torch.float64))
    assert summarize(model, batch, dataclasses.replace(GREEDY, most=2), first) == [["</s>", "</s>"]]


def test_alone_and_in_a_batch_the_probabilities_are_the_same():
    model = make()
    alone = model(collate(model, NEW)).probs[0]
    longer = Document(tuple("abcabcabc"), tuple("abcab"))
    batch = model(collate(model, NEW, longer)).probs[0]
    assert torch.allclose(batch[: len(alone), : alone.shape[1]], alone, atol=1e-12)
    weights = model(collate(model, NEW, longer)).weights
    assert set(weights) == set(model.blocks) and all((w[0, ..., 5:] == 0).all() for w in weights.values())


def test_open_gates_change_nothing_and_a_closed_one_is_a_head_cut_out():
    model = make()
    batch = collate(model, KNOWN, NEW)
    whole = model(batch).probs
    ones = {block: torch.ones(2, dtype=torch.float64) for block in model.blocks}
    assert torch.equal(model(batch, Change(gates=ones)).probs, whole)
    for block, layer in (("enc.1", model.encoder[1].own), ("cross.0", model.decoder[0].cross)):
        gated = model(batch, Change(gates={block: torch.tensor([1.0, 0.0], dtype=torch.float64)})).probs
        kept = layer.output.weight.detach().clone()
        with torch.no_grad():
            layer.output.weight[:, 4:] = 0  # what reads the second head's context
        assert torch.allclose(model(batch).probs, gated, atol=1e-12)
        with torch.no_grad():
            layer.output.weight.copy_(kept)
        assert not torch.allclose(gated, whole, atol=1e-6)


def test_a_gate_on_the_copy_heads_context_leaves_its_copying():
    """Of the last layer's attention over the document the context goes on to y, the weights say what is copied."""
    model = make()
    batch = collate(model, NEW)
    gated = model(batch, Change(gates={"cross.1": torch.zeros(2, dtype=torch.float64)}))
    assert torch.equal(gated.weights["cross.1"], model(batch).weights["cross.1"])
    uniform = batch.mask[:, None].expand(-1, 3, -1).double() / batch.mask.sum()
    assert not torch.allclose(model(batch, Change(copy=uniform)).probs, model(batch).probs, atol=1e-6)


def test_given_weights_are_used():
    model = make()
    batch = collate(model, NEW)
    found = model(batch)
    again = model(batch, Change(weights=found.weights))
    assert torch.allclose(again.probs, found.probs, atol=1e-12)
    other = torch.full_like(found.weights["enc.0"], 1 / 5)
    assert not torch.allclose(model(batch, Change(weights={"enc.0": other})).probs, found.probs, atol=1e-6)


@pytest.mark.parametrize("sparse", get_args(Sparse))
def test_sparse_heads_are_where_they_are_meant_to_be(sparse):
    model = make(dataclasses.replace(CONFIG, sparse=sparse), (KNOWN, NEW))
    encoder, cross = normalisers(model.config)
    expected = {
        "none": (0, 0, 0), "encoder": (2, 0, 0), "but-top": (2, 2, 0), "but-copy": (2, 2, 1), "all": (2, 2, 2),
    }[sparse]  # fmt: skip
    assert tuple(sum(kind == "sparsemax" for kind in kinds) for kinds in (encoder[0], *cross)) == expected
    with torch.no_grad():
        for p in model.parameters():
            p *= 2  # steep scores: sparsemax has zeros
    batch = collate(model, NEW, Document(tuple("abcab"), ("a",)))
    for block, weights in model(batch).weights.items():
        kinds = dict(zip(model.blocks, encoder + cross))[block]
        assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-9)
        for h, kind in enumerate(kinds):
            if kind == "softmax":
                assert (weights[:, h] > 0).all()
    if sparse != "none":
        assert (model(batch).weights["enc.0"] == 0).any()
    assert (normalisers(model.config)[1][-1][0] == "softmax") is (sparse != "all")


def exhaustive(model, document, most):
    """Every sequence of at most `most` words and its probability, one at a time."""
    batch = collate(model, document)
    size = len(model.vocabulary) + len(batch.unknown)
    best = (-math.inf, None)
    for length in range(most + 1):
        for words in itertools.product([i for i in range(size) if i not in (0, 2, 3)], repeat=length):
            before = torch.tensor([[2, *(w if w < len(model.vocabulary) else UNKNOWN for w in words)]])
            memory, _ = model.encode(batch)
            probs, _ = model.decode(batch, memory, before)
            log = sum(math.log(probs[0, t, w]) for t, w in enumerate((*words, STOP)))
            best = max(best, (log, [model.vocabulary.word(w, batch) for w in words]))
    return best[1]


@torch.no_grad()
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_what_trying_everything_finds(seed):
    document = Document(("a", "Zork", "a"), ())
    model = make(documents=(Document(("a", "b")),), seed=seed)
    with torch.no_grad():
        model.say.bias[STOP] -= 2.0  # longer summaries are worth looking at
        for p in model.parameters():
            p *= 2
    beam = Beam(width=100, least=0, most=3, length=0.0, coverage=0.0, repeat=True)
    assert summarize(model, collate(model, document), beam) == [exhaustive(model, document, 3)]


def test_beam_of_one_is_greedy_and_constraints_hold():
    model = make(documents=(KNOWN, NEW), seed=3)
    batch = collate(model, NEW, KNOWN)
    one = dataclasses.replace(GREEDY, most=12)
    searched = dataclasses.replace(one, least=-1)  # says the same, and is not taken for greedy
    assert summarize(model, batch, searched) == summarize(model, batch, one)
    long = summarize(model, batch, Beam(width=3, least=8, most=12, repeat=False))
    for words in long:
        assert 8 <= len(words) <= 12
        trigrams = [tuple(words[i : i + 3]) for i in range(len(words) - 2) if "." not in words[i : i + 3]]
        assert len(set(trigrams)) == len(trigrams)
    assert summarize(model, collate(model, KNOWN), Beam(width=3, least=8, most=12)) == [long[1]], "alone as in a batch"


def test_long_documents_are_cut_with_a_word():
    model = make(dataclasses.replace(CONFIG, source=3))
    with pytest.warns(UserWarning, match="a document has more than 3 tokens, and the rest is not read; set `source`"):
        batch = collate(model, NEW)
    assert batch.source.shape == (1, 3) and batch.target.shape == (1, 3)


def test_bad_documents():
    with pytest.raises(CorpusError, match="x.*no words"):
        Document((), id="x")
    with pytest.raises(CorpusError, match="1 tags for 2 words"):
        Document(("a", "b"), tags=("DET",))
    with pytest.raises(ModelError, match="no document"):
        make().collate([])


def test_the_papers_size_has_the_papers_shape():
    config = SummarizerConfig(
        layers=4, heads=8, d_model=64, d_ff=64, dropout=0.2, min_count=1
    )  # the paper's layers and heads, narrower
    model = make(config, (KNOWN, NEW))
    assert len(model.heads) == 64 and model.heads[0] == "enc.0.0" and model.heads[-1] == "cross.3.7"
    weights = model(collate(model, NEW)).weights
    assert weights["enc.3"].shape == (1, 8, 5, 5) and weights["cross.3"].shape == (1, 8, 3, 5)
