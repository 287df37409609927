"""The study leaves runs and tables, does nothing twice, and judges by its own lines."""

import dataclasses
import logging
import os
from pathlib import Path

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from lalkit.cli import app
from lalkit.companions.summarizers import summarizer_study as module
from lalkit.companions.summarizers.attention_heads import head_table
from lalkit.companions.summarizers.documents import Document, gum, news
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.summarizers.summarizer_study import (
    Size,
    Study,
    beside,
    copy_head,
    cut,
    examples,
    expected,
    lost,
    null,
    on_gum,
    prices,
    runs,
    seeds_apart,
    sharpest,
    shorten,
    study,
    tables,
)
from lalkit.errors import CorpusError, ModelError, ParameterError

SIZE = Size(train=40, dev=10, test=8, epochs=1, prune_epochs=1, ablated=4, gum=-1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Two variants, one of them pruned, of summarizers that are small."""
    folder, records = tmp_path_factory.mktemp("study"), []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger("lalkit").addHandler(handler)
    logging.getLogger("lalkit").setLevel("INFO")
    with pytest.MonkeyPatch.context() as patch:
        small = dataclasses.replace(SummarizerConfig(), d_model=16, d_ff=32, heads=2)
        patch.setattr(module, "PRICES", {"soft": (0.3,)})
        first = study("news", ["soft", "sparse-enc"], [1], folder, SIZE, small)
        kept = {p: p.stat().st_mtime_ns for p in folder.rglob("*.*") if p.is_file()}
        again = study("news", ["soft", "sparse-enc"], [1], folder, SIZE, small)
        assert kept == {p: p.stat().st_mtime_ns for p in folder.rglob("*.*") if p.is_file()}, "nothing was done again"
    logging.getLogger("lalkit").removeHandler(handler)
    return first, again, folder, records


def test_runs_and_tables(small):
    first, again, place, messages = small
    names = {"soft-1", "soft-1-0.3", "soft-1-control", "sparse-enc-1"}
    assert {p.name for p in (place / "news-0-40-10-8").iterdir()} == names
    for name in Study.__dataclass_fields__:
        pd.testing.assert_frame_equal(getattr(first, name), getattr(again, name))
    assert len(first.scores) == 4 * 8 and len(first.heads) == 4 * 8
    assert set(first.gates["price"].astype(str)) == {"0.3"} and len(first.gates) == 8
    assert first.cuts["moved"].max() < 1e-5 and len(first.cuts) == 2
    assert len(first.gum) == 0
    assert set(first.ablation.groupby(["variant", "price"]).size()) == {10}
    assert any("epoch 1/1" in text for text in messages) and any("measuring" in text for text in messages)


def test_other_documents_are_measured_anew(small, caplog):
    run = small[2] / "news-0-40-10-8" / "sparse-enc-1"
    data = shorten(news(), SIZE)
    caplog.set_level("INFO", logger="lalkit")
    for test, measures in ((data.test, 0), (data.test[::-1], 1)):
        other = dataclasses.replace(data, test=test)
        found = module.measured(run, "sparse-enc", "", other, (), SIZE)
        assert list(found["scores"]["id"]) == [d.id for d in test] and len(caplog.messages) == measures


def test_the_report_of_it(small):
    table = runs(small[0])
    assert len(table) == 4 and table["rouge1"].between(0, 100).all()
    sparse = table[table["variant"] == "sparse-enc"].iloc[0]
    soft = table[(table["variant"] == "soft") & (table["price"] == "")].iloc[0]
    assert sparse["zeros_enc"] > 0 == sparse["zeros_dec"] == soft["zeros_enc"]
    gated = table[table["price"] == "0.3"].iloc[0]
    assert gated["kept"] + gated["pruned_enc"] + gated["pruned_dec"] == 8
    heads = lost(small[0], "soft", 1, "0.3")
    assert len(heads) == 8 and (~heads["cut"]).sum() == gated["kept"]
    assert heads.loc[~heads["cut"], "difference"].notna().all()
    chosen = examples(lost(small[0], "soft", 1))
    assert chosen[-1] == "cross.1.0" and all(head.startswith("enc") for head in chosen[:-1])
    copying = copy_head(small[0])
    assert set(copying["head"]) == {"cross.1.0"} and set(copying["mode"]) >= {"copy", "both"}
    published = pd.DataFrame([{"table": n, "model": f"t{n}", "rouge1": 40.0} for n in (1, 2, 3, 4)])
    for number, models in ((1, ["soft"]), (2, ["soft, no gates", "soft, 0.3"]), (3, ["sparse-enc"]), (4, [])):
        rows = beside(table, published, number)
        assert rows["model"].tolist() == [*models, f"t{number}"]
        assert rows["whose"].str.startswith("NOT OURS").tolist() == [False] * len(models) + [True]
    assert prices(table)["price"].isna().tolist() == [True, False]
    assert sharpest(small[0], "soft", 1, "enc")["head"].nunique() == 3
    assert on_gum(small[0]).empty
    assert "ROUGE-1, percent" in set(expected(small[0])["what"])
    assert len(seeds_apart(small[0])) == 0


def test_the_tables_of_the_notebook_are_those_of_the_study(small):
    document = news(0, 0, 1).test[0]
    shown = tables(small[0], document)
    names = ["runs", "copy-head", "prices", "expected", "probes", "written", "heads", "heads-tags", "attention"]
    assert list(shown) == [*names, "pruned"], "no table is of sparse-tl, of GUM or of two seeds"
    assert set(shown["heads"]["panel"]) == {"soft, seed 1"} and set(shown["pruned"]["panel"]) == {"soft, 0.3, seed 1"}
    pd.testing.assert_frame_equal(shown["heads"].drop(columns="panel"), lost(small[0], "soft", 1))
    pd.testing.assert_frame_equal(shown["pruned"].drop(columns="panel"), lost(small[0], "soft", 1, "0.3"))
    probes, written = shown["probes"], shown["written"]
    assert probes["system"].tolist() == ["enc.0", "enc.1", "cross.0", "cross.1", "copy"] and set(probes["texts"]) == {4}
    assert probes[["tvd", "erased"]].apply(lambda column: column.between(0, 1).all()).all()
    assert written["measure"].tolist() == ["ne_ratio", "pos_kl", "position"] and set(written["text"]) == {"test"}
    forced = small[0].heads.query("variant == 'soft' and price == '' and head.str.startswith('cross')")
    assert written["true_words"].tolist() == pytest.approx(forced[written["measure"]].mean().tolist())
    assert (written["apart"] > 0).all(), "after one epoch the model writes other words"
    attention = shown["attention"].groupby(["head", "row"])
    assert attention["weight"].sum().to_numpy() == pytest.approx(1)
    assert all(tuple(words) == document.words for _, words in attention["word"])


def test_what_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no variant 'sparse'"):
        study("news", ["sparse"], [1], tmp_path)
    with pytest.raises(CorpusError, match="no documents 'nothing'"):
        study("nothing", ["soft"], [1], tmp_path)
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text('{"document": "a", "summary": ""}')
    for content in ('{"document": "a", "summary": ""}', ""):
        (tmp_path / "test.jsonl").write_text(content)
        with pytest.raises(CorpusError, match="the test part has no summaries"):
            study(str(tmp_path), ["soft"], [1], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_command(tmp_path):
    given = [
        "--data",
        "news",
        "--variants",
        "sparse-ch",
        "--seeds",
        "2",
        "--train",
        "20",
        "--test",
        "4",
        "--epochs",
        "1",
    ]
    done = CliRunner().invoke(app, ["summarize", "study", *given, "--out", str(tmp_path), "--gum", "-1"])
    assert done.exit_code == 0, done.output
    assert [file.name for file in tmp_path.glob("*.csv")] == ["summarize-runs.csv"], "no other is of this one alone"
    table = pd.read_csv(tmp_path / "summarize-runs.csv")
    assert table[["variant", "seed"]].values.tolist() == [["sparse-ch", 2]]
    wrong = (
        CliRunner().invoke(app, ["summarize", "study", *given[:4], "--seeds", "one", "--out", str(tmp_path)]).exception
    )
    assert isinstance(wrong, ParameterError) and "between commas" in str(wrong)


def run(variant="soft", price="", seed=1, rouge=0.95, copied=9, zeros=0.0, significant=2, kept=None):
    """Tables of one made-up run of 16 heads."""
    heads = [f"{b}.{h}" for b in ("enc.0", "enc.1", "cross.0", "cross.1") for h in range(4)]
    key = {"variant": variant, "seed": seed, "price": price}
    scores = [{**key, "id": i, "rouge1": rouge, "rouge2": rouge, "rougeL": rouge, "exact": True, "unknown": 10,
               "copied": copied} for i in "aa"]  # fmt: skip
    found = {
        "scores": scores,
        "heads": [{**key, "head": h, "sparsity": zeros} for h in heads],
        "ablation": [
            {**key, "head": h, "mode": "context", "difference": -0.1, "p_holm": 0.01 if i < significant else 1.0}
            for i, h in enumerate(heads)
        ],
        "gates": [{**key, "head": h, "kept": i < kept} for i, h in enumerate(heads)] if kept is not None else [],
        "cuts": [{**key, "moved": 1e-7}] if price else [],
    }
    return found


def together(*parts, gum=()):
    names = ("scores", "heads", "ablation", "gates", "cuts")
    tables = {n: pd.DataFrame([row for part in parts for row in part[n]]) for n in names}
    empty = dict.fromkeys(("folders", "tags", "written", "probes"), pd.DataFrame())
    return Study(**tables, **empty, gum=pd.DataFrame(gum))


def test_lines_that_hold_and_lines_that_do_not():
    fresh = [{"seed": 1, "untrained": True, "pos_kl": 0.01, "ne_ratio": 0.11, "ne_share": 0.1},
             {"seed": 1, "untrained": False, "pos_kl": 9.0, "ne_ratio": 0.9, "ne_share": 0.1}]  # fmt: skip
    pruned = [run(price=p, kept=k) for p, k in (("0.03", 14), ("0.1", 12), ("0.3", 9), ("1", 4), ("control", None))]
    good = together(run(), run("sparse-enc", zeros=0.7, rouge=0.91), *pruned, gum=fresh)
    lines = expected(good)
    assert len(lines) == 11 and lines["holds"].all()
    pruned = [
        run(price="0.03", kept=11), run(price="0.1", kept=12), run(price="0.3", kept=11, rouge=0.9),
        run(price="1", kept=4), run(price="control"),
    ]  # fmt: skip
    fresh[0] |= {"pos_kl": 0.2, "ne_ratio": 0.2}
    bad = run(rouge=0.8, copied=7, significant=0)
    for row in pruned[0]["cuts"]:
        row["moved"] = 0.1
    lines = expected(together(bad, run("sparse-enc", zeros=0.5, rouge=0.7), *pruned, gum=fresh))
    assert len(lines) == 11 and not lines["holds"].any()
    alone = expected(together(run("sparse-all", rouge=0.1)))
    assert alone.empty, "nothing is asked of what is sparse everywhere"


def test_seeds_are_set_side_by_side():
    found = seeds_apart(together(run(), run(seed=2, rouge=0.85)))
    assert found.to_dict("records") == [{"variant": "soft", "first": 1, "second": 2, "points": pytest.approx(10)}]


def test_a_shorter_set_has_another_name():
    data = news(6, 2, 2)
    assert shorten(data, Size()) is data and shorten(data, Size(train=6)) is data
    found = shorten(data, Size(train=3))
    assert found.name == "news-0-3-2-2" and found.train == data.train[:3] and found.test == data.test


def test_a_document_is_cut_with_all_that_is_known_of_it():
    document = Document(("a", "b", "c"), ("a",), ("X", "Y", "Z"), (True, False, True), "d")
    assert cut(document, 2) == Document(("a", "b"), ("a",), ("X", "Y"), (True, False), "d")
    assert cut(Document(("a", "b")), 1) == Document(("a",))


def test_before_any_training_heads_look_everywhere_alike():
    """The null that a trained head must leave: POS-KL near 0, NE-ratio near the share of tokens."""
    documents = news(0, 0, 60).test
    torch.manual_seed(5)
    model = Summarizer(SummarizerConfig(seed=3), Vocabulary.build(documents, SummarizerConfig(min_count=2)))
    with torch.no_grad():
        for p in model.parameters():
            p *= 6  # as if it had learned something
    table = null(model.eval(), documents)
    fresh, other = table[table["untrained"]], table[~table["untrained"]]
    assert list(fresh["head"]) == list(other["head"]) == list(model.heads)
    # Of these short texts' words a third are names: random weights stray further than in GUM's long ones.
    assert fresh["pos_kl"].max() < 0.05 and (fresh["ne_ratio"] - fresh["ne_share"]).abs().max() < 0.06
    assert other["pos_kl"].max() > 0.05


@pytest.mark.data
def test_the_null_holds_on_gum():
    if not any((Path(os.environ.get("LALKIT_DATA", "")) / "gum" / "dep").glob("*.conllu")):
        pytest.skip("GUM is not here: set LALKIT_DATA")
    documents = [cut(d, 200) for d in gum()[::9]]
    torch.manual_seed(1)
    config = SummarizerConfig(min_count=2)
    table = head_table(Summarizer(config, Vocabulary.build(documents, config)).eval(), documents)
    assert table["pos_kl"].max() < 0.05 and (table["ne_ratio"] - table["ne_share"]).abs().max() < 0.03


def test_documents_without_names_or_words_in_common():
    """No entities: no ratio, and counted; no word of the summary in the document: no place to be near to."""
    bare = Document(("a", "b"), ("Zork",), ("X", "Y"), (False, False), "bare")
    config = SummarizerConfig(layers=1, heads=2, d_model=8, d_ff=8, min_count=1)
    table = head_table(Summarizer(config, Vocabulary.build([bare], config)).eval(), [bare])
    assert table["ne_ratio"].isna().all() and set(table["named"]) == {0} and set(table["documents"]) == {1}
    cross = table[table["head"].str.startswith("cross")]
    assert cross["position"].isna().all() and table["pos_kl"].notna().all()
