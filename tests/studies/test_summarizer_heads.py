"""Measures of heads against a loop over documents and queries; heads taken away; and the study that does nothing twice."""

import dataclasses
import itertools
import math

import pandas as pd
import pytest
import torch

from lalkit.errors import CorpusError, ModelError
from lalkit.probes.perturbation import ask
from lalkit.studies import summarizer_heads as heads
from lalkit.studies.frame import exact
from lalkit.studies.summarizer_data import Document, news
from lalkit.studies.summarizer_heads import ablate_heads, change_without, head_table, score, study, tag_table
from lalkit.studies.summarizers import (
    STOP,
    UNCHANGED,
    Gated,
    Summarizer,
    SummarizerConfig,
    Vocabulary,
    likelihood,
    view,
)

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


def test_every_measure_is_what_a_loop_finds(model, monkeypatch):
    table = head_table(model, DOCUMENTS)
    columns = ["pos_kl", "ne_ratio", "before", "at", "after", "sparsity"]
    rows = table.set_index("head")
    for head in model.heads:
        assert rows.loc[head, columns].tolist() == pytest.approx(literal(model, head), abs=1e-6, nan_ok=True)
    assert set(table["documents"]) == {13} and set(table["named"]) == {12} and set(table["empty"]) == {0}
    share = [sum(d.entities) / len(d.words) for d in DOCUMENTS[:-1]]
    assert table["ne_share"].to_numpy() == pytest.approx(sum(share) / len(share))
    monkeypatch.setattr(heads, "SIZE", 4)
    pd.testing.assert_frame_equal(head_table(model, DOCUMENTS), table, rtol=1e-6)
    tags = tag_table(model, DOCUMENTS).groupby("head")
    assert tags["share"].sum().to_numpy() == pytest.approx(1) == tags["tokens"].sum().to_numpy()
    with pytest.raises(CorpusError):
        head_table(model, [Document(("a",))])


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
        written = [model.summarize(model.collate([d]), 8)[0] for d in documents]
    for document, words in zip(documents, written):
        read.append(dataclasses.replace(document, summary=tuple(words)))
        weights = model(model.collate(read[-1:])).weights
        for block in ("cross.0", "cross.1"):
            when_written = torch.stack([step[block] for step in steps[place : place + len(words)]], 2)
            torch.testing.assert_close(weights[block][:, :, : len(words)], when_written)
        place += min(len(words) + 1, 8)
    assert place == len(steps)
    own, forced = head_table(model, documents, own=True), head_table(model, documents)
    pd.testing.assert_frame_equal(own, head_table(model, read))
    inside = own["head"].str.startswith("enc")
    pd.testing.assert_frame_equal(own[inside], forced[inside])
    assert (own.loc[~inside, "pos_kl"] != forced.loc[~inside, "pos_kl"]).all()


def test_a_head_that_attends_evenly_has_null_values(model):
    even = Summarizer(dataclasses.replace(CONFIG, sparse="none"), model.vocabulary).double()
    for layer in even.encoder:
        torch.nn.init.zeros_(layer.own.query.weight)
        torch.nn.init.zeros_(layer.own.query.bias)
    table = head_table(even, DOCUMENTS).set_index("head").loc[["enc.0.0", "enc.1.1"]]
    assert table["pos_kl"].abs().max() < 1e-12 and (table["sparsity"] == 0).all() and table["at"].isna().all()
    assert table["ne_ratio"].tolist() == pytest.approx(table["ne_share"].tolist())


def test_documents_without_names_or_words_in_common():
    """Without entities there is no ratio; without a word of the summary in the document no place to be near to."""
    bare = Document(("a", "b"), ("Zork",), ("X", "Y"), (False, False), "bare")
    config = dataclasses.replace(CONFIG, layers=1, min_count=1)
    table = head_table(Summarizer(config, Vocabulary.build([bare], config)), [bare])
    assert table["ne_ratio"].isna().all() and set(table["named"]) == {0} and table["pos_kl"].notna().all()
    assert table.loc[table["head"].str.startswith("cross"), "position"].isna().all()


def test_heads_are_taken_away_one_by_one(model):
    few = DOCUMENTS[:6]
    table = ablate_heads(model, few, 6)
    assert list(table["head"]) == [*model.heads, "cross.1.0", "cross.1.0"] and (table["p_holm"] >= table["p"]).all()
    f1 = dict.fromkeys(("enc.0.1", ""), 0.0)
    for head, d in itertools.product(f1, few):
        batch = model.collate([d])
        change = change_without(model, head, "context", batch) if head else UNCHANGED
        f1[head] += score([d], model.summarize(batch, 6, change))["rouge1"].item() / len(few)
    assert table.set_index("head").loc["enc.0.1", "difference"] == pytest.approx(f1["enc.0.1"] - f1[""]) != 0
    for head, mode in (("cross.0.0", "copy"), ("enc.9.0", "context"), ("enc.0.0", "none")):
        with pytest.raises(ValueError, match=head):
            change_without(model, head, mode, model.collate(few))


def test_rouge_of_summaries():
    documents = [Document(("a", "Zork", "ran"), ("Zork", "ran")), Document(("a",), ("a", "b"))]
    vocabulary = Vocabulary.build([Document(("ran", "a"))], CONFIG)
    table = score(documents, [["Zork", "ran"], []], vocabulary)
    assert table["rouge1"].tolist() == [1.0, 0.0] and table["exact"].tolist() == [True, False]
    assert table["copied"].sum() <= table["unknown"].sum() and table["unknown"][0] >= 1


USES = {
    "summaries": lambda model: heads.summaries(model, DOCUMENTS, 4),
    "head_table": lambda model: head_table(model, DOCUMENTS),
    "tag_table": lambda model: tag_table(model, DOCUMENTS),
    "ablate_heads": lambda model: ablate_heads(model, DOCUMENTS[:3], 4),
    "gates": lambda model: Gated(model).table(),
    "loss": lambda model: model.loss(model.collate(DOCUMENTS), Gated(model).change()) + Gated(model, False).price(),
    "likelihood": lambda model: likelihood(model, DOCUMENTS),
    "probes": lambda model: ask(view(exact(model), model.collate(DOCUMENTS[:1]), "cross.1"), rounds=2),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_made_on_the_default_device(model, use):
    """A tensor that is made without a device lands on the meta device, and cannot be used beside weights on the CPU."""
    torch.manual_seed(0)
    expected = USES[use](model)
    with torch.device("meta"):
        torch.manual_seed(0)
        found = USES[use](model)
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    else:
        assert found == expected


# ---------------------------------------------------------------- the study


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """Two variants, one of them pruned, of summarizers that are small; studied twice."""
    folder = tmp_path_factory.mktemp("study")
    size = {"train": 40, "dev": 10, "test": 8, "prune_epochs": 1, "ablated": 4}
    settings = {"d_model": "16", "d_ff": "32", "heads": "2", "epochs": "1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heads, "PRICES", {"soft": (None, 0.3)})
        found = study("news", ["soft", "sparse-enc"], [1], folder, settings=settings, **size)
        kept = {p: p.stat().st_mtime_ns for p in folder.rglob("*.*") if p.is_file()}
        again = study("news", ["soft", "sparse-enc"], [1], folder, settings=settings, **size)
        assert kept == {p: p.stat().st_mtime_ns for p in folder.rglob("*.*") if p.is_file()}, "nothing was done again"
    for name, table in found.items():
        pd.testing.assert_frame_equal(table, again[name])
    return found, folder


def test_the_tables_of_a_study(studied):
    found, folder = studied
    names = {"soft-1", "soft-1-0.3", "soft-1-control", "sparse-enc-1"}
    assert {p.name for p in (folder / "news-0-40-10-8").iterdir()} == names
    assert list(found) == ["runs", "heads", "tags", "documents", "ablation", "written", "probes"]
    runs = found["runs"].set_index(["variant", "price"])
    assert len(runs) == 4 and runs["rouge1"].between(0, 100).all() and len(found["documents"]) == 4 * 8
    assert runs.loc[("sparse-enc", ""), "zeros_enc"] > 0 == runs.loc[("soft", ""), "zeros_enc"]
    gated = runs.loc[("soft", "0.3")]
    assert gated[["kept", "pruned_enc", "pruned_dec"]].sum() == 8 and gated["moved"] < 1e-5
    table = found["heads"].query("variant == 'soft' and price == '0.3'")
    assert (~table["cut"]).sum() == gated["kept"] and table.loc[~table["cut"], "difference"].notna().all()
    assert set(found["ablation"].query("mode != 'context'")["head"]) == {"cross.1.0"}
    written, probes = found["written"], found["probes"]
    assert written.groupby("own").size().tolist() == [8] * 2
    assert probes["system"].tolist() == ["enc.0", "enc.1", "cross.0", "cross.1", "copy"] and set(probes["texts"]) == {4}
    forced = written.query("not own")["pos_kl"]
    assert forced.tolist() == pytest.approx(
        found["heads"].query("variant == 'soft' and price == ''")["pos_kl"].tolist()
    )


def test_a_shorter_set_has_another_name():
    data = news(6, 2, 2)
    assert heads.shortened(data) is data and heads.shortened(data, train=6) is data
    found = heads.shortened(data, train=3)
    assert found.name == "news-0-3-2-2" and found.train == data.train[:3] and found.test == data.test


def test_studies_that_are_refused(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text('{"document": "a", "summary": ""}')
    for kind, data, variant in (
        (ModelError, "news", "sparse"),
        (CorpusError, "nothing", "soft"),
        (CorpusError, str(tmp_path), "soft"),
    ):
        with pytest.raises(kind):
            study(data, [variant], [1], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
