"""Measures of heads against a loop over documents and queries; heads taken away."""

import dataclasses
import itertools
import math

import pandas as pd
import pytest
import torch

from lalkit.companions.summarizers.attention_heads import ablate_heads, change_without, head_table, tag_table
from lalkit.companions.summarizers.documents import Document, news
from lalkit.companions.summarizers.headlines import GREEDY, Beam, score, summarize
from lalkit.companions.summarizers.summarizer import STOP, UNCHANGED, Summarizer, SummarizerConfig, Vocabulary
from lalkit.errors import CorpusError

CONFIG = SummarizerConfig(layers=2, heads=2, d_model=8, d_ff=16, dropout=0.0, min_count=2, sparse="but-copy")
DOCUMENTS = (*news(12, 0, 0).train, Document(("a", "b", "a"), ("b", "c"), ("X", "DET", "X"), (False,) * 3))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    found = Summarizer(CONFIG, Vocabulary.build(DOCUMENTS, CONFIG)).double().eval()
    with torch.no_grad():
        for p in found.parameters():
            p *= 2
    return found


@torch.no_grad()
def literal(model, head):
    """pos_kl, ne_ratio, before, at, after, sparsity of a head, one document and one query at a time."""
    block, _, h = head.rpartition(".")
    kls, ratios, hits, asked, zeros, cells = [], [], dict.fromkeys((-1, 0, 1), 0.0), dict.fromkeys((-1, 0, 1), 0), 0, 0
    for document in DOCUMENTS:
        batch = model.collate([document])
        weights = model(batch).weights
        w, copying = weights[block][0, int(h)], weights["cross.1"][0, 0]
        n = len(document.words)
        queries = list(range(n)) if block.startswith("enc") else [q for q, t in enumerate(batch.target[0]) if t != STOP]
        mass = [sum(float(w[q, j]) for q in queries) for j in range(n)]
        mass = [m / sum(mass) for m in mass]
        tags = sorted(set(document.tags))
        p = {tag: document.tags.count(tag) / n for tag in tags}
        q_ = {tag: sum(m for m, t in zip(mass, document.tags) if t == tag) for tag in tags}
        kls.append(sum(q_[t] * math.log(q_[t] / p[t]) for t in tags if q_[t] > 0))
        if any(document.entities):
            ratios.append(sum(m for m, e in zip(mass, document.entities) if e))
        zeros += sum(float(w[q, j]) == 0 for q in queries for j in range(n))
        cells += len(queries) * n
        for q in queries:
            place = q
            if not block.startswith("enc"):
                same = [j for j in range(n) if batch.extended[0, j] == batch.target[0, q]]
                if not same:
                    continue
                place = max(same, key=lambda j: float(copying[q, j]))
            most = [j for j in range(n) if w[q, j] == w[q].max()]
            for offset in (-1, 1) if block.startswith("enc") else (-1, 0, 1):
                if 0 <= place + offset < n:
                    asked[offset] += 1
                    hits[offset] += (place + offset in most) / len(most)
    near = [hits[o] / asked[o] if asked[o] else math.nan for o in (-1, 0, 1)]
    return sum(kls) / len(kls), sum(ratios) / len(ratios), *near, zeros / cells


def test_every_measure_is_what_a_loop_finds(model):
    table = head_table(model, DOCUMENTS).set_index("head")
    assert list(table.index) == list(model.heads)
    columns = ["pos_kl", "ne_ratio", "before", "at", "after", "sparsity"]
    for head in model.heads:
        assert table.loc[head, columns].tolist() == pytest.approx(literal(model, head), abs=1e-6, nan_ok=True)
    assert set(table["documents"]) == {13} and set(table["named"]) == {12} and set(table["empty"]) == {0}
    share = [sum(d.entities) / len(d.words) for d in DOCUMENTS[:-1]]
    assert table["ne_share"].to_numpy() == pytest.approx(sum(share) / len(share))


def test_attention_is_measured_while_the_model_writes(model, monkeypatch):
    """A summary that is read again has the attention of each step in which its words were chosen."""
    steps, decode = [], Summarizer.decode

    def noted(self, batch, memory, before, *change):
        found = decode(self, batch, memory, before, *change)
        steps.append({block: weights[:, :, -1] for block, weights in found[1].items()})
        return found

    documents, read, place = [*DOCUMENTS[:4], DOCUMENTS[-1]], [], 0
    monkeypatch.setattr(model, "config", dataclasses.replace(CONFIG, target=8))
    with monkeypatch.context() as patch:
        patch.setattr(Summarizer, "decode", noted)
        summaries = [summarize(model, model.collate([d]), dataclasses.replace(GREEDY, most=8))[0] for d in documents]
    for document, words in zip(documents, summaries):
        batch = model.collate([dataclasses.replace(document, summary=tuple(words))])
        weights = model(batch).weights
        for block in ("cross.0", "cross.1"):
            when_written = torch.stack([step[block] for step in steps[place : place + len(words)]], 2)
            torch.testing.assert_close(weights[block][:, :, : len(words)], when_written)
        place += min(len(words) + 1, 8)
        read.append(dataclasses.replace(document, summary=tuple(words)))
    assert place == len(steps)
    own, forced = head_table(model, documents, own=True), head_table(model, documents)
    assert all(summaries), "else the next line cannot be asked"
    pd.testing.assert_frame_equal(own, head_table(model, read))
    inside = own["head"].str.startswith("enc")
    pd.testing.assert_frame_equal(own[inside], forced[inside])
    assert (own.loc[~inside, "pos_kl"] != forced.loc[~inside, "pos_kl"]).all()


def test_a_head_that_looks_everywhere_alike_has_null_values(model):
    even = Summarizer(dataclasses.replace(CONFIG, sparse="none"), model.vocabulary).double()
    with torch.no_grad():
        for layer in even.encoder:
            layer.own.query.weight.zero_()
            layer.own.query.bias.zero_()
    table = head_table(even, DOCUMENTS).set_index("head")
    for head in ("enc.0.0", "enc.1.1"):
        assert table.loc[head, "pos_kl"] == pytest.approx(0, abs=1e-12)
        assert table.loc[head, "ne_ratio"] == pytest.approx(table.loc[head, "ne_share"])
        assert table.loc[head, "sparsity"] == 0 and math.isnan(table.loc[head, "at"])


def test_shares_of_tags(model):
    table = tag_table(model, DOCUMENTS)
    assert table.groupby("head")["share"].sum().to_numpy() == pytest.approx(1)
    assert table.groupby("head")["tokens"].sum().to_numpy() == pytest.approx(1)


def test_documents_that_nothing_is_known_of(model):
    with pytest.raises(CorpusError, match="tags, entities and summaries are needed"):
        head_table(model, [Document(("a",))])


def test_heads_are_taken_away_one_by_one(model):
    limit, few = dataclasses.replace(GREEDY, most=6), DOCUMENTS[:6]
    table = ablate_heads(model, few, beam=limit)
    assert list(table["head"]) == [*model.heads, "cross.1.0", "cross.1.0"]
    assert (table["p_holm"] >= table["p"]).all()
    f1 = dict.fromkeys(("enc.0.1", ""), 0.0)
    for head, d in itertools.product(f1, few):
        batch = model.collate([d])
        change = change_without(model, head, "context", batch) if head else UNCHANGED
        f1[head] += score([d], summarize(model, batch, limit, change))["rouge1"].item() / len(few)
    assert table.set_index("head").loc["enc.0.1", "difference"] == pytest.approx(f1["enc.0.1"] - f1[""]) != 0
    short = Beam(width=2, least=0, most=4)
    batch = model.collate(DOCUMENTS[:3])
    change = change_without(model, "cross.1.0", "both", batch)
    alone = [
        summarize(model, b, short, change_without(model, "cross.1.0", "both", b))[0]
        for b in (model.collate([d]) for d in DOCUMENTS[:3])
    ]
    assert summarize(model, batch, short, change) == alone
    with pytest.raises(ValueError, match="cross.0.0 does not copy; the copy head is cross.1.0"):
        change_without(model, "cross.0.0", "copy", batch)
    with pytest.raises(ValueError, match="no head 'enc.9.0'"):
        change_without(model, "enc.9.0", "context", batch)


def test_the_table_is_the_same_however_documents_are_grouped(model, monkeypatch):
    whole = head_table(model, DOCUMENTS)
    monkeypatch.setattr("lalkit.companions.summarizers.attention_heads.SIZE", 4)
    pd.testing.assert_frame_equal(head_table(model, DOCUMENTS), whole, rtol=1e-6)
