"""The copy summarizer: its equations, its view, its training; and its heads, against a loop over documents and queries."""

import math
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import get_args

import pandas as pd
import pytest
import torch

from lalkit.errors import ModelError
from lalkit.network.label_attention import NORMALISERS, normalise
from lalkit.probes.perturbation import permutation_tvd
from lalkit.studies import frame, summarizers
from lalkit.studies import summarizer_heads as heads
from lalkit.studies.frame import PADDING, UNKNOWN
from lalkit.studies.summarizer_heads import ablate_heads, change_without, head_tables, score, study
from lalkit.studies.summarizers import STOP, Summarizer, SummarizerConfig, Vocabulary, view
from lalkit.studies.texts import Text, news
from tests.reference import probes_literal as literal
from tests.studies.small import same

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, min_count=1)
KNOWN = Text(("a", "b", "c", "b"), summary=("b", "a"))
NEW = Text(("a", "Zork", "b", "Zork", "Quux"), summary=("Zork", "c"))


def make(config=CONFIG, documents=(KNOWN,), steep=1):
    """Return a model of random weights; with larger ones its scores are steep, and sparsemax has zeros."""
    torch.manual_seed(0)
    model = Summarizer(config, Vocabulary.build(documents, config)).double().eval()
    for p in model.parameters():
        p.data *= steep
    return model


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
    with model.hooked(copied=lambda _: copy):
        probs = model(batch).probs
    assert probs[0, 0, zork] == pytest.approx(0.8) and probs[0, 0, model.vocabulary.index["a"]] == pytest.approx(0.2)


def test_an_unknown_word_without_attention_costs_46_and_its_gradient_is_finite():
    model = make()
    batch = model.collate([Text(("a", "Zork"), summary=("Zork",))])
    copy = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 2, 2)
    with model.hooked(copied=lambda _: copy):
        probs = model(batch).probs[0, 0, len(model.vocabulary)]
        model.loss(batch).backward()
    assert float(-torch.log(probs.detach() + summarizers.LEAST)) == pytest.approx(46.05, abs=0.01)
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_a_word_that_cannot_be_written_is_wanted_as_unknown():
    model = make()
    batch, index = model.collate([NEW, Text(("a", "b"), summary=("Zork", "a"))]), model.vocabulary.index
    assert batch.target[0].tolist() == [len(model.vocabulary), index["c"], STOP]
    assert batch.target[1].tolist() == [UNKNOWN, index["a"], STOP], "not in its document"
    assert (batch.target_mask == (batch.target != PADDING)).all()


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
    found = model(model.collate([NEW, Text(tuple("abcabcabc"), summary=tuple("abcab"))]))
    assert torch.allclose(found.probs[0, : len(alone), : alone.shape[1]], alone, atol=1e-12)
    assert set(found.weights) == set(model.blocks) and all((w[0, ..., 5:] == 0).all() for w in found.weights.values())


@torch.no_grad()
def test_a_closed_gate_is_a_head_cut_out():
    model = make()
    batch = model.collate([KNOWN, NEW])
    found, gate = model(batch).probs, torch.tensor([1.0, 0.0], dtype=torch.float64)[:, None, None]
    for block in ("enc.1", "cross.0"):
        with model.attention(block).hooked(contexts=lambda contexts: contexts * gate):
            gated = model(batch).probs
        layer = model.attention(block).output
        kept = layer.weight.clone()
        layer.weight[:, 4:] = 0  # what reads the second head's context
        assert torch.allclose(model(batch).probs, gated, atol=1e-12) and not torch.allclose(gated, found, atol=1e-6)
        layer.weight.copy_(kept)


def test_a_gate_on_the_copy_heads_context_leaves_its_copying_and_given_weights_are_used():
    model = make()
    batch = model.collate([NEW])
    found = model(batch)
    with model.attention("cross.1").hooked(contexts=torch.zeros_like):
        gated = model(batch)
    assert torch.equal(gated.weights["cross.1"], found.weights["cross.1"])
    assert not torch.allclose(gated.probs, found.probs, atol=1e-6)
    uniform = batch.mask[:, None].expand(-1, 3, -1).double() / batch.mask.sum()
    for layer, point, value in ((model, "copied", uniform), (model.attention("enc.0"), "attention", torch.tensor(0.2))):
        with layer.hooked(**{point: lambda old, new=value: new.to(old).expand_as(old)}):
            assert not torch.allclose(model(batch).probs, found.probs, atol=1e-6)


@pytest.mark.parametrize("sparse", get_args(summarizers.Sparse))
def test_sparse_heads_are_where_they_are_meant_to_be(sparse):
    model = make(replace(CONFIG, sparse=sparse), (KNOWN, NEW), steep=2)
    encoder, cross = summarizers.normalisers(model.config)
    expected = {"none": (0, 0, 0), "encoder": (2, 0, 0), "but-top": (2, 2, 0), "but-copy": (2, 2, 1), "all": (2, 2, 2)}
    assert tuple(sum(kind == "sparsemax" for kind in kinds) for kinds in (encoder[0], *cross)) == expected[sparse]
    weights = model(model.collate([NEW])).weights
    for block, kinds in zip(model.blocks, encoder + cross):
        assert torch.allclose(weights[block].sum(-1), torch.ones_like(weights[block][..., 0]), atol=1e-9)
        assert all((weights[block][:, h] > 0).all() for h, kind in enumerate(kinds) if kind == "softmax")
    assert (weights["enc.0"] == 0).any() == (sparse != "none")


def test_sizes_that_do_not_fit_and_a_variant_that_is_not_known(tmp_path):
    pytest.raises(ModelError, study, ["sparse"], [1], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    with pytest.raises(ModelError, match="8 units cannot be shared by 3 heads"):
        make(replace(CONFIG, heads=3))


# ---------------------------------------------------------------- the view of the probes


@pytest.fixture(scope="module")
def seen():
    documents = news().train[:6]
    return make(replace(CONFIG, min_count=2, sparse="encoder"), documents, steep=2), documents


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
    layer, point, value = (
        (model, "copied", other[:, 0]) if block == "copy" else (model.attention(block), "attention", other)
    )
    with layer.hooked(**{point: lambda _: value}):
        expected = model(batch).probs
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


# ---------------------------------------------------------------- training

SMALL = SummarizerConfig(layers=1, heads=2, d_model=16, d_ff=32, epochs=3, batch=10, min_count=2)
DATA = news().shortened(40, 10, 10)
train = partial(frame.train, Summarizer)


def test_a_seed_is_a_run(tmp_path):
    state = train(SMALL, DATA, tmp_path / "a")
    assert train(SMALL, DATA, tmp_path / "b")["history"] == state["history"]
    kept = Summarizer.load(tmp_path / "a")
    assert same(kept, Summarizer.load(tmp_path / "b")) and kept.score(DATA.dev) == state["best"]
    pytest.raises(ModelError, train, SMALL, replace(DATA, train=DATA.train[1:]), tmp_path / "a")
    moved = tuple(replace(d, id=f"elsewhere/{d.id}") for d in DATA.train)
    train(SMALL, replace(DATA, train=moved), tmp_path / "a")


@pytest.mark.slow
def test_a_few_articles_can_be_learned_by_heart(tmp_path):
    few = replace(DATA, train=DATA.train[:20], dev=DATA.train[:20])
    state = train(replace(SMALL, epochs=60, rate=5e-3, d_model=32), few, tmp_path / "run")
    assert state["history"][0]["dev"] < 0.1 < 0.5 < state["best"]


# ---------------------------------------------------------------- sparse normalisers


@pytest.mark.parametrize("kind", NORMALISERS)
def test_every_normaliser_leaves_padding_out_and_has_gradients(kind):
    scores = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4), requires_grad=True)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False], [False, True, False, True, True]])
    found = normalise(scores, mask, kind)
    assert torch.allclose(found.sum(-1), torch.ones(3, dtype=torch.float64)) and (found[~mask] == 0).all()
    assert torch.autograd.gradcheck(lambda z: normalise(z, mask, kind), scores)
    assert (normalise(scores, torch.zeros_like(mask), kind) == 0).all()  # a row without keys: zeros, not nan
    with pytest.raises(ValueError, match="softmax, entmax15, sparsemax"):
        normalise(torch.zeros(2), torch.ones(2).bool(), "hardmax")


# ---------------------------------------------------------------- what heads attend to

STEEP = replace(CONFIG, min_count=2, sparse="but-copy")
DOCUMENTS = (*news().train[:12], Text(("a", "b", "a"), "", ("b", "c"), ("X", "DET", "X"), (False,) * 3))


@pytest.fixture(scope="module")
def model():
    return make(STEEP, DOCUMENTS, steep=2)


@torch.no_grad()
def by_definition(model, head):
    """pos_kl, ne_ratio, before, at, after, sparsity of a head, one document and one query at a time."""
    block, _, h = head.rpartition(".")
    kls, ratios, texts, places = [], [], [], []
    for document in DOCUMENTS:
        batch = model.collate([document])
        weights = model(batch).weights
        queries, own = range(len(document.words)), list(range(len(document.words)))
        if not block.startswith("enc"):  # the place of a word of the summary, where the copy head looks for it
            queries, own = [q for q, target in enumerate(batch.target[0]) if target != STOP], []
            for q in queries:
                same = [j for j, word in enumerate(batch.extended[0]) if word == batch.target[0, q]]
                own.append(max(same, key=lambda j: float(weights["cross.1"][0, 0, q, j]), default=-1))
        texts.append([weights[block][0, int(h), q].tolist() for q in queries])
        places.append(own)
        pooled = literal.pool(texts[-1])
        kls.append(literal.pos_kl(pooled, [*map(sorted(document.tags).index, document.tags)]))
        if any(document.entities):
            ratios.append(sum(mass for mass, entity in zip(pooled, document.entities) if entity))
    before, at, after = (literal.relative_position(texts, places, offset) for offset in (-1, 0, 1))
    zeros = fmean(weight == 0 for rows in texts for row in rows for weight in row)
    return fmean(kls), fmean(ratios), before, math.nan if block.startswith("enc") else at, after, zeros


def test_every_measure_is_what_a_loop_finds(model, monkeypatch):
    table, tags = head_tables(model, DOCUMENTS)
    columns = ["pos_kl", "ne_ratio", "before", "at", "after", "sparsity"]
    rows = table.set_index("head")
    for head in model.heads:
        assert rows.loc[head, columns].tolist() == pytest.approx(by_definition(model, head), abs=1e-6, nan_ok=True)
    assert set(table["documents"]) == {13} and set(table["named"]) == {12} and set(table["empty"]) == {0}
    share = [sum(d.entities) / len(d.words) for d in DOCUMENTS[:-1]]
    assert table["ne_share"].to_numpy() == pytest.approx(sum(share) / len(share))
    monkeypatch.setattr(heads, "SIZE", 4)
    for again, whole in zip(head_tables(model, DOCUMENTS), (table, tags)):
        pd.testing.assert_frame_equal(again, whole, rtol=1e-6)
    tokens = pd.Series([tag for d in DOCUMENTS for tag in d.tags]).value_counts(normalize=True)
    one = tags[tags["head"] == "enc.0.0"].set_index("tag")
    assert one["share"].sum() == pytest.approx(1) and one["tokens"].to_dict() == pytest.approx(tokens.to_dict())


def test_heads_with_nothing_to_find(model):
    """Even attention has null values; without names or words in common there is no ratio, and no place to be near to."""
    even = Summarizer(replace(STEEP, sparse="none"), model.vocabulary).double()
    for layer in even.encoder:
        torch.nn.init.zeros_(layer.own.query.weight)
        torch.nn.init.zeros_(layer.own.query.bias)
    table = head_tables(even, DOCUMENTS)[0].set_index("head").loc[["enc.0.0", "enc.1.1"]]
    assert table["pos_kl"].abs().max() < 1e-12 and (table["sparsity"] == 0).all() and table["at"].isna().all()
    assert table["ne_ratio"].tolist() == pytest.approx(table["ne_share"].tolist())
    bare = Text(("a", "b"), "", ("Zork",), ("X", "Y"), (False, False))
    table, _ = head_tables(make(replace(STEEP, layers=1, min_count=1), [bare]), [bare])
    assert table["ne_ratio"].isna().all() and set(table["named"]) == {0} and table["pos_kl"].notna().all()
    assert table.loc[table["head"].str.startswith("cross"), "position"].isna().all()


def test_heads_are_taken_away_one_by_one(model):
    few = DOCUMENTS[:6]
    table = ablate_heads(model, few, 6)
    assert list(table["head"]) == [*model.heads, "cross.1.0", "cross.1.0"] and (table["p_holm"] >= table["p"]).all()
    f1 = dict.fromkeys(("enc.0.1", ""), 0.0)
    for head in f1:
        for d in few:
            batch = model.collate([d])
            with change_without(model, head, "context", batch) if head else nullcontext():
                written = model.summarize(batch, 6)
            f1[head] += score([d], written, model.vocabulary)["rouge1"].item() / len(few)
    assert table.set_index("head").loc["enc.0.1", "difference"] == pytest.approx(f1["enc.0.1"] - f1[""]) != 0


def test_rouge_of_summaries():
    documents = [Text(("a", "Zork", "ran"), summary=("Zork", "ran")), Text(("a",), summary=("a", "b"))]
    table = score(documents, [["Zork", "ran"], []], Vocabulary.build([Text(("ran", "a"))], CONFIG))
    assert table["rouge1"].tolist() == [1.0, 0.0] and table["exact"].tolist() == [True, False]
    assert table["unknown"].tolist() == [1, 0] == table["copied"].tolist()


USES = {
    "summaries": lambda model: heads.summaries(model, DOCUMENTS, 4),
    "head_tables": lambda model: head_tables(model, DOCUMENTS)[0].to_csv(),
    "ablate_heads": lambda model: ablate_heads(model, DOCUMENTS[:3], 4).to_csv(),
    "score": lambda model: model.score(DOCUMENTS),
    "view": lambda model: permutation_tvd(view(model, model.collate(DOCUMENTS[:1]), "cross.1"), 2).tolist(),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_made_on_the_default_device(model, use):
    """A tensor that is made without a device lands on the meta device, and cannot be used beside weights on the CPU."""
    torch.manual_seed(0)
    expected = USES[use](model)
    with torch.device("meta"):
        torch.manual_seed(0)
        assert USES[use](model) == expected


def test_a_study_of_two_variants_that_does_nothing_twice(tmp_path):
    size = {"train": 40, "dev": 10, "test": 8, "ablated": 4}
    size["settings"] = {"d_model": "16", "d_ff": "32", "heads": "2", "epochs": "1"}
    found = study(["soft", "sparse-enc"], [1], tmp_path, **size)
    kept = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*") if p.is_file()}
    again = study(["soft", "sparse-enc"], [1], tmp_path, **size)
    assert kept == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*") if p.is_file()}, "nothing was done again"
    for name, table in found.items():
        pd.testing.assert_frame_equal(table, again[name])
    assert {p.name for p in (tmp_path / "news-40-10-8").iterdir()} == {"soft-1", "sparse-enc-1"}
    assert set(found) == {"runs", "heads", "tags", "attention", "ablation"}
    runs, table = found["runs"].set_index("variant"), found["heads"].set_index("variant")
    assert runs["rouge1"].between(0, 100).all() and "cross.1.0" in set(found["attention"]["head"])
    assert runs.loc["sparse-enc", "zeros_enc"] > 0 == runs.loc["soft", "zeros_enc"]
    assert table.loc["soft", "difference"].notna().all() and table.loc["sparse-enc", "difference"].isna().all()
    assert set(found["ablation"].query("mode != 'context'")["head"]) == {"cross.1.0"}
