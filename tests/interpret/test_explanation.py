"""Explanations: values add up to scores, nothing depends on the batch, and words and pages have the numbers of the table."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

import lalkit
from lalkit.draw.playground import TypedSentences
from lalkit.errors import LalkitError
from lalkit.interpret import explainer
from lalkit.interpret.explanation import page
from lalkit.interpret.tables import FIRST, NORMS, PLACE, profile
from lalkit.treebank.tree import Span

TEXT = "She saw the man with the telescope ."
SPAN = [*PLACE, "label"]
load = cache(lalkit.load)


@pytest.fixture(params=["en-news", "en-news-span", "en-news-glass"])
def parser(request):
    return load(request.param)


@pytest.fixture(scope="module")
def treebank():
    return lalkit.Treebank.load("sample", "test")[:12]


@cache
def explained(parser, gold=True):
    return parser.explain(lalkit.Treebank.load("sample", "test")[:12], gold=gold)


def chart(parser, sentence):
    with torch.inference_mode():
        return parser.network(parser.model.collator([sentence])).label_scores[0]


def test_the_values_add_up_to_the_cells_of_the_chart(parser, treebank):
    table, index = explained(parser).table, parser.vocab.label_index
    sums = table.groupby(SPAN).agg(value=("value", "sum"), score=("score", "first"), role=("role", "first"))
    charts = [chart(parser, sentence) for sentence in treebank]
    cells = [float(charts[k][i, j, index[name]]) if name in index else np.nan for k, i, j, name in sums.index]
    known = np.isfinite(cells)
    assert sums["score"].to_numpy() == pytest.approx(np.array(cells), abs=1e-4, nan_ok=True)
    assert sums["value"].to_numpy()[known] == pytest.approx(sums["score"].to_numpy()[known], abs=5e-6)
    assert (np.isnan(table["score"]) == ~table["label"].isin(index)).all()
    parse, gold = (set(sums.index[(sums["role"] == role)]) for role in ("parse", "gold"))
    wanted = {(k, *span) for k, sentence in enumerate(treebank) for span in sentence.constituents}
    results = enumerate(parser.parse_all(treebank))
    assert parse == {(k, *span) for k, result in results for span in result.sentence.constituents}
    assert gold == wanted - parse
    words = table[(table["kind"] == "word") & table["label"].isin(index)]
    assert len(words) == 0 if parser is load("en-news") else (words["value"] == words["effect"]).all()
    if len(words):
        assert words.groupby(SPAN)["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
        assert (words["attention"] * words["evidence"]).to_numpy() == pytest.approx(words["value"].to_numpy(), abs=1e-6)
        assert {"parse", "second", "gold"} == set(table["role"])


def test_nothing_depends_on_the_batch(parser, treebank):
    numbers = ["value", "effect", "then_score", "raw", "score", "attention", "evidence"]
    whole, heads = explained(parser).table, explained(parser).heads()
    for number in (0, 5, 11):
        alone = parser.explain([treebank[number]], gold=True)
        here = whole[whole["sentence"] == number].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone.table[SPAN[1:]], here[SPAN[1:]])
        assert alone.table[numbers].to_numpy() == pytest.approx(here[numbers].to_numpy(), abs=2e-4, nan_ok=True)
        some = heads.where((heads.spans["sentence"] == number).to_numpy())
        found = alone.heads(explained(parser).mean).by(heads.norm)
        assert found == pytest.approx(some.by(heads.norm), abs=2e-4, nan_ok=True)


def test_a_part_really_taken_out(parser):
    """Against other weights and a whole new chart: the effect, and the label that comes first then."""
    (one,) = (found := parser.explain(TEXT)).sentences
    table = found.table[found.table["role"] == "parse"]
    with torch.inference_mode():
        output = parser.network(parser.model.collator([found.parses[0]]))
        for number in (1, 3, 5):
            if one.attention is not None:
                posts = output.posts.clone()
                posts[:, :, number] = 0
                scores = parser.network.spans.chart(parser.network.spans.project(posts))[0]
                rows = table[(table["kind"] == "head") & (table["head"] == number)]
            else:
                logits, evidence, *edges = output.span_parts
                evidence = evidence.clone()
                evidence[0, number - 1] = 0
                scores = parser.network.spans.chart((logits, evidence, *edges))[0]
                rows = table[(table["kind"] == "word") & (table["position"] == number)]
            for row in rows.itertuples():
                cell = scores[row.start, row.end]
                wanted = float(cell[parser.vocab.label_index[row.label]])
                assert row.score - row.effect == pytest.approx(wanted, abs=1e-4)
                # <H> and the empty label are not constituents.
                assert row.then_score == pytest.approx(float(cell[2:].max()), abs=1e-4)
                assert row.then == parser.vocab.labels[2 + int(cell[2:].argmax())]
            assert len(rows)


def test_the_table_has_the_words(parser, treebank):
    table, parses = explained(parser, gold=False).table, explained(parser, gold=False).parses
    assert list(table.columns[: len(FIRST)]) == FIRST
    for row in table.drop_duplicates(SPAN).itertuples():
        sentence, gold = parses[row.sentence], treebank[row.sentence]
        assert row.id == gold.id and row.text == " ".join(gold.words[row.start : row.end]) and row.length == len(gold)
        heads = [i for i in range(row.start, row.end) if not row.start < sentence.heads[i] <= row.end]
        assert row.head_word == gold.words[heads[0]]
        assert (row.tag, row.arc_label) == (sentence.tags[heads[0]], sentence.arc_labels[heads[0]])
        larger = [c for c in sentence.constituents if c.start <= row.start and row.end <= c.end]
        assert row.depth == sum((c.start, c.end) != (row.start, row.end) for c in larger)
        assert row.gold == ((row.start, row.end, row.label) in gold.constituents)
    for row in table[table["position"].notna()].iloc[::7].itertuples():
        sentence, place = parses[row.sentence], row.position - 1
        head = sentence.heads[place]
        assert row.start <= place < row.end
        assert (row.word, row.word_tag) == (sentence.words[place], sentence.tags[place])
        assert row.word_head == sentence.words[head - 1] if head else pd.isna(row.word_head)
    assert parser.explain(TEXT).table["gold"].isna().all(), "no tree was given"


def test_the_attention_is_of_sentences_or_of_spans(treebank):
    paper, span = (explained(load(name)).attention() for name in ("en-news", "en-news-span"))
    assert paper.groupby(["sentence", "head"])["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
    assert span.groupby(PLACE)["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
    assert list(paper.columns) == list(span.columns)
    inside = explained(load("en-news")).attention("NP")
    assert (inside["position"] > inside["start"]).all() and (inside["position"] <= inside["end"]).all()
    both = inside.merge(paper, on=["sentence", "head", "position"], suffixes=("", "_all"))
    assert len(both) == len(inside) and (both["attention"] == both["attention_all"]).all()
    assert set(inside["label"]) == set(explained(load("en-news-span")).attention("NP")["label"]) == {"NP"}


def test_top_heads_lead(parser):
    found, of_np = explained(parser, gold=False), explained(parser, gold=False).of("NP")
    top, every = of_np.top(2), found.top(99)
    assert set(top["label"]) == {"NP"} and (top["rank"].to_numpy().reshape(-1, 2) == [1, 2]).all()
    heads = found.heads()
    count = found.table.drop_duplicates(SPAN)["role"].eq("parse").sum()
    assert len(every) == heads.heads * len(heads.spans) == heads.heads * count
    assert every.loc[every["rank"] == 1, "value"].to_numpy() == pytest.approx(heads.by(heads.norm).max(1))
    if "head_label" in top:
        assert [parser.vocab.labels[head + 1] for head in top["head"]] == top["head_label"].tolist()
        assert found.mean == pytest.approx(parser.attribution.mean(found.parses).numpy(), abs=1e-6)
    else:
        rows = found.table[found.table["kind"] == "head"]
        assert heads.exact.ravel().tolist() == rows["effect"].astype(np.float32).tolist()
        assert heads.raw.ravel().tolist() == rows["raw"].astype(np.float32).tolist()


def test_the_text_has_the_numbers_of_the_table(parser):
    result = parser.parse(TEXT)
    table, texts = result.explain().table, result.explain().text(top=1).split("\n\n")
    rows = table[table["role"] == "parse"].groupby(SPAN[1:], sort=False)
    for text, ((_, _, label), some) in zip(texts, rows):
        ranked = some[some["kind"].isin(["head", "word"])].sort_values("value", key=abs, ascending=False, kind="stable")
        best, score = ranked.iloc[0], some["score"].iloc[0]
        assert text.startswith(f"{label} “{best['text']}”, head word “{best['head_word']}”, probability ")
        assert f". Most from {best['part']} ({best['value']:+.2f}" in text and f"{score:.2f}: {len(ranked)} " in text
        sums = re.split(r"\. |, together \S+", text.split(": ", 1)[1])
        all_parts, most = (np.array(re.findall(r"[+-]\d+\.\d\d", part), float) for part in sums[:2])
        assert all_parts.sum() == pytest.approx(score, abs=0.03), "all parts add up to the score"
        assert most.sum() == pytest.approx(all_parts[0], abs=0.03), "with the rest they add up to the sum of all"
        still = "still " * (best["then"] == label)
        assert f"Without {best['part']}, {best['then']} would {still}come first with {best['then_score']:.2f}." in text
        second = table[(table["start"] == best["start"]) & (table["end"] == best["end"]) & (table["role"] == "second")]
        wanted = [f"{row.label} comes second with {row.score:.2f}." for row in second.itertuples()]
        assert (wanted or ["in every span"])[0] in text
    assert len(texts) == rows.ngroups + (parser.profile is not None)
    assert str(explained(parser, gold=False)).count("# ") == 12
    assert result.explain().text(top=2) != result.explain().text()


def test_the_text_has_the_profile(treebank):
    parser = load("en-news")
    counts = profile(explained(parser, gold=False).heads(), "exact", "the corpus")
    text = replace(parser.explain(TEXT, "NP"), profile=counts).text(1)
    (head, *_), k = map(int, re.findall(r"Most from label head (\d+)", text)), counts["labels"].index("NP")
    assert f"it is the top head of {counts['led'][head][k] / counts['all'][k]:.0%} of NP" in text
    assert text.count("the corpus") == 1


def test_the_parts_of_two_labels_add_up_to_the_difference_of_their_scores(parser, treebank):
    other, index = parser.vocab.labels[-1], parser.vocab.label_index
    explained = parser.explain(treebank[:5], against=other)
    charts = [chart(parser, sentence) for sentence in treebank[:5]]
    for scores, one in zip(charts, explained.sentences):
        for place, (i, j, label) in enumerate(one.spans):
            if one.roles[place] == "parse":
                wanted = float(scores[i, j, index[label]] - scores[i, j, index[other]])
                assert one.difference(place, other).sum() == pytest.approx(wanted, abs=1e-3)
    result = parser.parse(TEXT)
    found = result.explain(against=other)
    (shown,) = page(found, "")["sentences"]
    for span, text in zip(shown["spans"], str(found).split("\n\n"), strict=True):
        numbers = [float(x) for x in re.findall(r"[+-]\d+\.\d\d", text.partition("difference of")[2])]
        assert [sum(numbers[1:]), sum(span["against"])] == pytest.approx(numbers[:1] * 2, abs=0.03)
        assert other == span.get("readings", [{}, {"label": other}])[1]["label"]
    html = TypedSentences(parser).page({"text": [TEXT], "against": [f" {other}"]})
    assert html == result.alternatives(1)[0].explore(constrain=True, against=other).html
    with pytest.raises(LalkitError, match="that is not NP"):
        str(result.explain("NP", against="NP"))


def test_a_page_has_the_numbers_of_the_table(parser, tmp_path):
    result = parser.parse("The clerk counted the ballots in the hall.")
    found = result.explain()
    data = page(found, "a model")
    (shown,), table = data["sentences"], found.table
    assert data["title"].startswith("Which ") and len(shown["spans"]) == len(found.sentences[0].constituents())
    for span in shown["spans"]:
        rows = table[(table["start"] == span["start"]) & (table["end"] == span["end"])]
        if data["pane"] == "heads":
            assert list(data["norms"]) == list(span["values"]) == list(NORMS)
            assert span["values"]["exact"] == pytest.approx(rows[rows["kind"] == "head"]["effect"].tolist(), rel=1e-6)
            continue
        for reading, role in zip(span["readings"], ("parse", "second"), strict=True):
            words, rest = (rows[(rows["role"] == role) & (rows["kind"].eq("word") == word)] for word in (True, False))
            assert reading["label"] == words["label"].iloc[0]
            assert reading["value"] == pytest.approx(words["value"].tolist(), abs=1e-6)
            assert list(reading["rest"].values()) == pytest.approx(rest["value"].tolist(), abs=1e-6)
        then = rows[(rows["kind"] == "word") & (rows["role"] == "parse")]["then"]
        assert [label for label, _ in span["then"]] == then.tolist()
    exploration = result.explore()
    assert "<iframe" in exploration._repr_html_()
    html = exploration.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == exploration.html and "ballots" in html
    for beside in (result, result.sentence):
        assert result.explore(beside=beside).html.count('"kind":') == 2
    with pytest.raises(LalkitError, match="no sentence"):
        page(replace(found, sentences=[]), "a model")


def test_a_gold_label_that_the_parser_does_not_know_has_no_score(parser, treebank):
    words = treebank[0].words
    never = replace(treebank[0], constituents=(Span(0, len(words), "NEVER"),), heads=None, arc_labels=None)
    rows = (found := parser.explain([never], gold=True)).table.query("label == 'NEVER'")
    assert set(rows["role"]) == {"gold"} and rows[["score", "value", "effect"]].isna().all(axis=None)
    last = found.heads().spans.iloc[-1]
    assert last["label"] == "NEVER" and not last["parsed"] and last["gold"]


def test_a_label_that_no_constituent_has(parser):
    for ask, *text in ((parser.explain, TEXT), (parser.parse(TEXT).explain,), (explained(parser).of,)):
        with pytest.raises(LalkitError, match="labelled 'ZZ'\n.*NP"):
            ask(*text, "ZZ")
    only = explained(parser).of("PP")
    assert 0 < len(only.table) < len(explained(parser).table)
    assert set(only.table.loc[only.table["role"] == "parse", "label"]) == {"PP"}
    assert explainer(parser.model).heads == only.heads().heads
