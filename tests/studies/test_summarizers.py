"""The copy summarizer: its equations, its view, its training, and gates on its heads."""

import dataclasses
import math
from typing import get_args

import pytest
import torch
from scipy.integrate import quad

from lalkit.errors import CorpusError, ModelError
from lalkit.network.label_attention import NORMALISERS, normalise
from lalkit.probes.perturbation import permutation_tvd
from lalkit.studies.frame import PADDING, UNKNOWN
from lalkit.studies.summarizer_data import Document, Documents, news
from lalkit.studies.summarizers import (
    BETA,
    LEAST,
    PAPER,
    STOP,
    Change,
    Gated,
    HardConcreteGate,
    PruneConfig,
    Sparse,
    Summarizer,
    SummarizerConfig,
    Vocabulary,
    likelihood,
    load_gated,
    load_summarizer,
    normalisers,
    prune,
    train,
    view,
)  # fmt: skip

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, dropout=0.0, min_count=1)
KNOWN = Document(("a", "b", "c", "b"), ("b", "a"))
NEW = Document(("a", "Zork", "b", "Zork", "Quux"), ("Zork", "c"), id="new")


def make(config=CONFIG, documents=(KNOWN,)):
    torch.manual_seed(0)
    return Summarizer(config, Vocabulary.build(documents, config)).double().eval()


# ---------------------------------------------------------------- equations


def test_the_distribution_sums_to_one_over_the_extended_vocabulary():
    model = make()
    batch = model.collate([NEW, KNOWN])
    assert batch.unknown == ("Zork", "Quux")
    probs = model(batch).probs
    assert probs.shape == (2, 3, len(model.vocabulary) + 2)
    assert torch.allclose(probs.sum(-1), torch.ones_like(probs[..., 0]), atol=1e-12)
    assert (probs[1, :, -2:] == 0).all(), "a document cannot copy another's words"


@torch.no_grad()
def test_a_word_that_stands_twice_gets_the_attention_of_both_places():
    model = make()
    batch, zork = model.collate([NEW]), len(model.vocabulary)
    model.copy.weight.zero_()
    model.copy.bias.fill_(50.0)  # p = 1
    copy = torch.tensor([0.2, 0.5, 0, 0.3, 0], dtype=torch.float64).expand(1, 3, 5)
    probs = model(batch, Change(copy=copy)).probs
    assert probs[0, 0, zork] == pytest.approx(0.8) and probs[0, 0, model.vocabulary.index["a"]] == pytest.approx(0.2)


def test_an_unknown_word_without_attention_costs_46_and_its_gradient_is_finite():
    model = make()
    batch = model.collate([Document(("a", "Zork"), ("Zork",))])
    copy = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 2, 2)
    probs = model(batch, Change(copy=copy)).probs[0, 0, len(model.vocabulary)]
    assert float(-torch.log(probs.detach() + LEAST)) == pytest.approx(46.05, abs=0.01)
    model.loss(batch, Change(copy=copy)).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_a_word_that_cannot_be_written_is_wanted_as_unknown():
    model = make()
    batch, index = model.collate([NEW, Document(("a", "b"), ("Zork", "a"))]), model.vocabulary.index
    assert batch.target[0].tolist() == [len(model.vocabulary), index["c"], STOP]
    assert batch.target[1].tolist() == [UNKNOWN, index["a"], STOP], "not in its document"
    assert (batch.target_mask == (batch.target != PADDING)).all()


@torch.no_grad()
def test_words_that_look_like_special_ones_can_be_copied():
    """The document of a web page may have the word </s>. It does not end the summary."""
    model = make()
    batch = model.collate([Document(("</s>", "a"), ("</s>", "<s>"))])
    assert batch.unknown == ("</s>",) and batch.target[0].tolist() == [len(model.vocabulary), UNKNOWN, STOP]
    model.copy.bias.fill_(50.0)
    first = Change(copy=torch.tensor([[[1.0, 0.0]]], dtype=torch.float64))
    assert model.summarize(batch, 2, first) == [["</s>", "</s>"]]


@torch.no_grad()
def test_a_summary_has_the_likeliest_word_at_each_step_alone_and_in_a_batch():
    model = make(documents=(KNOWN, NEW))
    together = model.summarize(model.collate([NEW, KNOWN]), 6)
    for document, words in zip((NEW, KNOWN), together):
        batch, written = model.collate([document]), []
        memory, _ = model.encode(batch)
        for _ in range(6):
            before = [2, *(model.vocabulary.index.get(w, UNKNOWN) for w in written)]
            best = int(model.decode(batch, memory, torch.tensor([before]))[0][0, -1].argmax())
            if best == STOP:
                break
            written.append(model.vocabulary.word(best, batch))
        assert words == written == model.summarize(batch, 6)[0]


def test_alone_and_in_a_batch_the_probabilities_are_the_same():
    model = make()
    alone = model(model.collate([NEW])).probs[0]
    found = model(model.collate([NEW, Document(tuple("abcabcabc"), tuple("abcab"))]))
    assert torch.allclose(found.probs[0, : len(alone), : alone.shape[1]], alone, atol=1e-12)
    assert set(found.weights) == set(model.blocks) and all((w[0, ..., 5:] == 0).all() for w in found.weights.values())


@torch.no_grad()
def test_open_gates_change_nothing_and_a_closed_one_is_a_head_cut_out():
    model = make()
    batch = model.collate([KNOWN, NEW])
    found = model(batch).probs
    ones = {block: torch.ones(2, dtype=torch.float64) for block in model.blocks}
    assert torch.equal(model(batch, Change(gates=ones)).probs, found)
    for block in ("enc.1", "cross.0"):
        gated = model(batch, Change(gates={block: torch.tensor([1.0, 0.0], dtype=torch.float64)})).probs
        layer = model.attention(block).output
        kept = layer.weight.clone()
        layer.weight[:, 4:] = 0  # what reads the second head's context
        assert torch.allclose(model(batch).probs, gated, atol=1e-12) and not torch.allclose(gated, found, atol=1e-6)
        layer.weight.copy_(kept)


def test_a_gate_on_the_copy_heads_context_leaves_its_copying_and_given_weights_are_used():
    model = make()
    batch = model.collate([NEW])
    found = model(batch)
    gated = model(batch, Change(gates={"cross.1": torch.zeros(2, dtype=torch.float64)}))
    assert torch.equal(gated.weights["cross.1"], found.weights["cross.1"])
    uniform = batch.mask[:, None].expand(-1, 3, -1).double() / batch.mask.sum()
    assert not torch.allclose(model(batch, Change(copy=uniform)).probs, found.probs, atol=1e-6)
    assert torch.allclose(model(batch, Change(weights=found.weights)).probs, found.probs, atol=1e-12)
    other = torch.full_like(found.weights["enc.0"], 1 / 5)
    assert not torch.allclose(model(batch, Change(weights={"enc.0": other})).probs, found.probs, atol=1e-6)


@pytest.mark.parametrize("sparse", get_args(Sparse))
def test_sparse_heads_are_where_they_are_meant_to_be(sparse):
    model = make(dataclasses.replace(CONFIG, sparse=sparse), (KNOWN, NEW))
    encoder, cross = normalisers(model.config)
    expected = {"none": (0, 0, 0), "encoder": (2, 0, 0), "but-top": (2, 2, 0), "but-copy": (2, 2, 1), "all": (2, 2, 2)}
    assert tuple(sum(kind == "sparsemax" for kind in kinds) for kinds in (encoder[0], *cross)) == expected[sparse]
    with torch.no_grad():
        for p in model.parameters():
            p *= 2  # steep scores: sparsemax has zeros
    weights = model(model.collate([NEW])).weights
    for block, kinds in zip(model.blocks, encoder + cross):
        assert torch.allclose(weights[block].sum(-1), torch.ones_like(weights[block][..., 0]), atol=1e-9)
        assert all((weights[block][:, h] > 0).all() for h, kind in enumerate(kinds) if kind == "softmax")
    assert (weights["enc.0"] == 0).any() == (sparse != "none")


def test_documents_that_are_refused_or_cut():
    for given in ({"words": ()}, {"words": ("a", "b"), "tags": ("DET",)}):
        with pytest.raises(CorpusError):
            Document(**given)
    with pytest.raises(ModelError):
        make().collate([])
    with pytest.raises(ModelError, match="8 units cannot be shared by 3 heads"):
        make(dataclasses.replace(CONFIG, heads=3))
    model = make(dataclasses.replace(CONFIG, source=3))
    with pytest.warns(UserWarning, match="more than 3 tokens, and the rest is not read; set `source`"):
        assert model.collate([NEW]).source.shape == (1, 3)


def test_the_papers_size_has_the_papers_heads():
    model = make(dataclasses.replace(PAPER, d_model=64, d_ff=64), (KNOWN, NEW))
    assert len(model.heads) == 64 and (model.heads[0], model.heads[-1], model.copying) == (
        "enc.0.0",
        "cross.3.7",
        "cross.3",
    )


# ---------------------------------------------------------------- the view of the probes


@pytest.fixture(scope="module")
def seen():
    config, documents = dataclasses.replace(CONFIG, min_count=2, sparse="encoder"), news(6, 0, 0).train
    model = make(config, documents)
    with torch.no_grad():
        for p in model.parameters():
            p *= 2
    return model, documents


@pytest.mark.parametrize("block", ["enc.0", "enc.1", "cross.0", "cross.1", "copy"])
def test_its_own_weights_give_its_own_outcome_and_others_the_changed_one(seen, block):
    model, documents = seen
    batch = model.collate(documents)
    there, found = view(model, batch, block), model(batch)
    outcome = there.predict(there.weights)
    assert torch.allclose(outcome.probs, found.probs, atol=1e-12)
    right = ((found.probs.argmax(-1) == batch.target) & batch.target_mask).sum(1)
    assert outcome.score.tolist() == [[r, n] for r, n in zip(right.tolist(), batch.target_mask.sum(1).tolist())]
    other = torch.rand_like(there.weights) ** 3 * there.key_mask[:, None, None]
    other = other / other.sum(-1, keepdim=True)
    change = Change(copy=other[:, 0]) if block == "copy" else Change(weights={block: other})
    expected = model(batch, change).probs
    assert not torch.allclose(expected, found.probs, atol=1e-4)
    several = there.predict(torch.stack([there.weights, other]))
    assert torch.allclose(several.probs[1], expected, atol=1e-12) and several.score.shape == (2, 6, 2)


def test_the_view_mixes_values_and_does_not_depend_on_the_batch(seen):
    model, documents = seen
    batch = model.collate(documents)
    values = model.decoder[0].cross.value(model.encode(batch)[0])
    assert torch.equal(view(model, batch, "cross.0").values[:, 1], values[..., 4:])
    together = permutation_tvd(view(model, batch, "enc.1"), 5)
    one = model.collate(documents[4:5])
    alone = permutation_tvd(view(model, one, "enc.1", [4]), 5)
    assert torch.allclose(together[4, : int(one.target_mask.sum())], alone[0], atol=1e-10)
    with pytest.raises(ModelError, match=r"enc.9(?s:.*)cross.1, copy"):
        view(model, batch, "enc.9")


# ---------------------------------------------------------------- training and pruning

SMALL = SummarizerConfig(layers=1, heads=2, d_model=16, d_ff=32, epochs=3, batch=10, min_count=2)
DATA = news(40, 10, 10)


def same(first, second):
    return all(
        torch.equal(p, q) for p, q in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_a_seed_is_a_run_and_a_resumed_run_is_the_same_run(tmp_path, killed):
    state = train(SMALL, DATA, tmp_path / "a")
    with killed():
        train(SMALL, DATA, tmp_path / "b")
    assert train(SMALL, DATA, tmp_path / "b", resume=True)["history"] == state["history"]
    kept = load_summarizer(tmp_path / "a")
    assert same(kept, load_summarizer(tmp_path / "b")) and likelihood(kept, DATA.dev) == state["best"]
    for config, data, resume in ((SMALL, DATA, False), (dataclasses.replace(SMALL, rate=1.0), DATA, True),
                                 (SMALL, dataclasses.replace(DATA, train=DATA.train[1:]), True)):  # fmt: skip
        with pytest.raises(ModelError):
            train(config, data, tmp_path / "a", resume=resume)
    moved = tuple(dataclasses.replace(d, id=f"elsewhere/{d.id}") for d in DATA.train)
    train(SMALL, dataclasses.replace(DATA, train=moved), tmp_path / "a", resume=True)
    with pytest.raises(ModelError, match="no complete run here"):
        load_summarizer(tmp_path)
    with pytest.raises(CorpusError, match="no dev part"):
        train(SMALL, Documents("own", DATA.test, (), DATA.test), tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_a_few_articles_can_be_learned_by_heart(tmp_path):
    few = Documents("few", DATA.train[:20], DATA.train[:20], DATA.test)
    state = train(dataclasses.replace(SMALL, epochs=60, rate=5e-3, d_model=32), few, tmp_path / "run")
    assert state["history"][0]["dev"] < 0.1 < 0.5 < state["best"]


@pytest.fixture
def summarizer():
    torch.manual_seed(0)
    config = dataclasses.replace(SMALL, layers=2)
    return Summarizer(config, Vocabulary.build(DATA.train, config)).eval()


@torch.no_grad()
def test_open_gates_are_no_gates_and_closed_ones_are_cuts(summarizer):
    model, batch = Gated(summarizer).eval(), summarizer.collate(DATA.test)
    for gate in model.gates.values():
        gate.log_a.fill_(4.0)
    assert torch.equal(model(batch).probs, summarizer(batch).probs)
    model.gates["enc-1"].log_a[0] = model.gates["cross-0"].log_a[1] = -4.0
    model.gates["enc-0"].log_a[1] = 0.0
    gated = model(batch).probs
    assert torch.allclose(model.cut()(batch).probs, gated, atol=1e-5)
    assert not torch.allclose(gated, summarizer(batch).probs, atol=1e-4)
    table = model.table().set_index("head")["gate"]
    assert table["enc.1.0"] == table["cross.0.1"] == 0 and table["enc.0.1"] == pytest.approx(0.5)


@pytest.mark.slow
def test_a_price_closes_gates_and_no_price_has_none(summarizer, tmp_path):
    closed = prune(summarizer, DATA, tmp_path / "dear", PruneConfig(lam=300.0, gate_rate=0.3, epochs=6))
    assert not closed.table()["kept"].any()
    control = prune(summarizer, DATA, tmp_path / "control", PruneConfig(lam=None, epochs=1))
    assert control.table().empty and float(control.price()) == 0 and not same(control.cut(), summarizer)


def test_a_resumed_pruning_is_the_same(summarizer, tmp_path, killed):
    config = PruneConfig(lam=1.0, epochs=2)
    found = prune(summarizer, DATA, tmp_path / "a", config)
    with killed():
        prune(summarizer, DATA, tmp_path / "b", config)
    assert same(found, prune(summarizer, DATA, tmp_path / "b", config, resume=True)) and same(
        found, load_gated(tmp_path / "a")
    )
    with torch.no_grad():
        summarizer.copy.bias += 1
    for resume in (False, True):  # there is a run, and it began with other weights
        with pytest.raises(ModelError):
            prune(summarizer, DATA, tmp_path / "a", config, resume=resume)


@pytest.mark.parametrize(("log_a", "chance", "mean"), [(-3, 0.0990, 0.0506), (0, 0.6881, 0.5), (2, 0.9422, 0.8749)])
def test_the_chance_to_be_open_and_the_mean_of_a_gate(log_a, chance, mean):
    gate = HardConcreteGate(10**6)
    torch.nn.init.constant_(gate.log_a, log_a)
    torch.manual_seed(0)
    drawn = gate.train()().detach()
    assert float(gate.open()[0].detach()) == pytest.approx(chance, abs=1e-4)
    assert float((drawn > 0).float().mean()) == pytest.approx(chance, abs=0.002)

    def above(x):  # P(g > x), by inverting the stretched concrete distribution
        s = (x + 0.1) / 1.2
        return 1 / (1 + math.exp(-(log_a - BETA * math.log(s / (1 - s)))))

    assert quad(above, 0, 1)[0] == pytest.approx(mean, abs=1e-4)
    assert float(drawn.mean()) == pytest.approx(mean, abs=0.002)


def test_in_evaluation_gates_close_and_open_exactly():
    gate, points = HardConcreteGate(6), torch.tensor([-3, -2.399, 0, 2.399, 4, -2.39])
    gate.log_a.data = points
    found = gate.eval()().detach()
    assert found[:5].tolist() == pytest.approx([0, 0, 0.5, 1, 1], abs=1e-7) and found[5] > 0


# ---------------------------------------------------------------- sparse normalisers


def test_sparsemax_as_in_the_paper():
    for scores, wanted in (
        ([0, 0], [0.5, 0.5]), ([0.5, 0], [0.75, 0.25]), ([1, 0], [1, 0]), ([0.1, 1.1, 0.2], [0, 0.95, 0.05]),
        ([1, 0.8, 0.1], [0.6, 0.4, 0]), ([0.2, 0.5, 0.3], [0.2, 0.5, 0.3]),
    ):  # fmt: skip
        z = torch.tensor(scores, dtype=torch.float64)
        for shifted in (z, z + 5):
            found = normalise(shifted, torch.ones_like(z, dtype=torch.bool), "sparsemax")
            assert found.tolist() == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("kind", NORMALISERS)
def test_every_normaliser_leaves_padding_out_and_has_gradients(kind):
    scores = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4), requires_grad=True)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False], [False, True, False, True, True]])
    found = normalise(scores, mask, kind)
    assert torch.allclose(found.sum(-1), torch.ones(3, dtype=torch.float64)) and (found[~mask] == 0).all()
    assert torch.allclose(found[1, :2], normalise(scores[1:2, :2], mask[1:2, :2], kind)[0])
    assert torch.autograd.gradcheck(lambda z: normalise(z, mask, kind), scores)
    assert (normalise(scores, torch.zeros_like(mask), kind) == 0).all()  # a row without keys: zeros, not nan
    with pytest.raises(ValueError, match="softmax, entmax15, sparsemax"):
        normalise(torch.zeros(2), torch.ones(2).bool(), "hardmax")
