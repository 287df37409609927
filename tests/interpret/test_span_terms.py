"""The terms of a score add up to it; without a word's evidence the score is less by its term."""

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.draw import explorer
from lalkit.errors import LalkitError, ModelError
from lalkit.interpret.span_layer import balance
from lalkit.training.loop import train

GRADES = ("full", "lean", "glass")


@pytest.fixture(scope="module", params=GRADES)
def parser(request, tmp_path_factory):
    settings = {
        "model.label_attention": "none", "train.epochs": 2,
        "model.span_attention": {"d_key": 8, "boundary": request.param, "d_lean": 8},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("runs") / request.param
    train(override(tiny(), settings), "sample", folder)
    return Parser.load(folder)


def random_spans(sentences, labels, count):
    torch.manual_seed(0)
    asked = [[] for _ in sentences]
    for k in range(count):
        place = k % len(sentences)
        start = int(torch.randint(0, len(sentences[place]), ()))
        end = int(torch.randint(start + 1, len(sentences[place]) + 1, ()))
        asked[place].append((start, end, labels[int(torch.randint(2, len(labels), ()))]))
    return asked


def test_the_terms_of_a_thousand_spans_add_up(parser, sample):
    sentences = sample[:50]
    asked = random_spans(sentences, parser.vocab.labels, 1000)
    seen = 0
    for terms in parser.terms(sentences, besides=asked):
        place, words = ["start", "end", "label"], terms.table[terms.table["term"] == "word"]
        spans = terms.table.groupby(place)
        assert spans["value"].sum().to_numpy() == pytest.approx(spans["score"].first().to_numpy(), abs=1e-5)
        assert words.groupby(place)["attention"].sum().to_numpy() == pytest.approx(np.ones(len(spans)), abs=1e-5)
        seen += len(spans)
    assert seen >= 1000
    if parser.config.model.span_attention.boundary == "glass":
        assert set(terms.table["term"]) == {"word", "first", "last", "constant"}, "nothing is hidden"


def test_without_a_words_evidence_the_score_is_less_by_its_term(parser, sample):
    """Really taken out: the evidence is set to zero before spans are scored."""
    sentence = next(s for s in sample if len(s) == 8)
    (terms,) = parser.terms([sentence])
    scorer, index = parser.network.spans, parser.vocab.label_index
    with torch.inference_mode():
        output = parser.network.eval()(parser.collator([sentence]))
        logits, evidence, *edges = output.span_parts
        for row in terms.table[terms.table["term"] == "word"].itertuples():
            changed = evidence.clone()
            changed[0, row.position - 1] = 0
            chart = scorer.chart((logits, changed, *edges))
            assert float(chart[0, row.start, row.end, index[row.label]]) == pytest.approx(
                row.score - row.value, abs=1e-5
            )


def test_every_constituent_has_the_terms_of_two_labels(parser, sample):
    (terms,) = parser.terms([sample[3]])
    own = {(s.start, s.end, s.label) for s in terms.prediction.spans if s.label != "<H>"}
    there = terms.table.groupby(["start", "end"])["label"].unique()
    for start, end, label in own:
        assert label in there[start, end] and len(there[start, end]) == 2


def test_the_label_that_comes_first_without_a_word(parser, sample):
    """Evidence of one word really at zero, for every label; <H> and the empty label are no constituents."""
    sentence = next(s for s in sample if len(s) == 6)
    (terms,) = parser.terms([sentence])
    scorer, labels = parser.network.spans, parser.vocab.labels
    with torch.inference_mode():
        logits, evidence, *edges = parser.network.eval()(parser.collator([sentence])).span_parts
        for row in terms.table[terms.table["term"] == "word"].itertuples():
            changed = evidence.clone()
            changed[0, row.position - 1] = 0
            scores = scorer.chart((logits, changed, *edges))[0, row.start, row.end, 2:]
            assert row.then_score == pytest.approx(float(scores.max()), abs=1e-5)
            assert row.then == labels[2 + int(scores.argmax())]


def test_the_text_has_the_numbers_of_the_table(parser, sample):
    (terms,) = parser.terms([sample[5]])
    own = terms.table[terms.table["role"] == "parse"]
    text = parser.attribution.explain(terms, top=1)
    assert len(text.split("\n\n")) == len(own.groupby(["start", "end", "label"]))
    first = own[(own["start"] == own["start"].iloc[0]) & (own["end"] == own["end"].iloc[0])]
    best = first[first["term"] == "word"].sort_values("value", key=abs, ascending=False).iloc[0]
    said = text.split("\n\n")[0]
    assert f"score {best['score']:.2f}: its words give {first.loc[first['term'] == 'word', 'value'].sum():+.2f}" in said
    assert f"(“{best['word']}” {best['value']:+.2f} ({best['attention']:.0%} of the attention))" in said
    assert f"{best['label']} would score {best['score'] - best['value']:.2f} and" in said
    with pytest.raises(LalkitError, match="there is no ZZ in this parse\n.*It has: "):
        parser.attribution.explain(terms, "ZZ")
    with pytest.raises(LalkitError, match="top is 0\n.*1 or more"):
        parser.attribution.explain(terms, top=0)


def test_the_text_names_the_label_that_comes_first_without_the_word(parser, sample):
    """Also one that came neither first nor second: with its score."""
    endings = set()
    for terms in parser.terms(sample[:16]):
        said = parser.attribution.explain(terms, top=1).split("\n\n")
        own = terms.table[terms.table["role"] == "parse"].groupby(["start", "end", "label"], sort=False)
        for (start, end, label), some in own:
            line = said.pop(0)
            there = terms.table[(terms.table["start"] == start) & (terms.table["end"] == end)]
            second = there.loc[there["role"] == "second", "label"].to_list()[:1]
            best = some[some["term"] == "word"].sort_values("value", key=abs, ascending=False).iloc[0]
            kind = "still" if best["then"] == label else "second" if best["then"] in second else "third"
            endings.add(kind)
            wanted = {"still": "would still come first.", "second": "would come first."}
            third = f"would come first with {best['then_score']:.2f}."
            assert not second or line.endswith(f": {best['then']} {wanted.get(kind, third)}")
    assert {"still", "third"} <= endings


def test_a_result_has_the_text_and_the_page(parser, tmp_path):
    result = parser.parse("The clerk counted the ballots in the hall.")
    assert result.explain(top=2) == parser.attribution.explain(result.terms, top=2)
    html = result.explore(gold=result.sentence).save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ballots" in html and "Terms of scores" in html
    with pytest.raises(ModelError, match=r"inside the span\n.*Parser.terms"):
        result.look  # noqa: B018


def test_the_page_has_the_terms_of_both_labels(parser, sample):
    found = parser.terms(sample[:3])
    data = parser.attribution.page(found, title="t", model="m", gold=sample[:3])
    explorer(data)  # checks that terms add up
    for terms, shown in zip(found, data["sentences"], strict=True):
        assert len(shown["spans"]) == sum(s.label != "<H>" for s in terms.prediction.spans)
        for span in shown["spans"]:
            rows = terms.table[(terms.table["start"] == span["start"]) & (terms.table["end"] == span["end"])]
            for reading, role in zip(span["readings"], ("parse", "second"), strict=True):
                own = rows[rows["role"] == role]
                assert reading["label"] == own["label"].iloc[0]
                words = own[own["term"] == "word"]
                assert reading["value"] == pytest.approx(words["value"].tolist(), abs=1e-6)
                assert set(reading["rest"]) == set(own["term"]) - {"word"}
            assert [label for label, _ in span["then"]] == words["then"].tolist()


def test_unknown_labels_and_other_layers_are_refused(parser, tiny_parser, sample):
    with pytest.raises(ModelError, match="there is no label 'ZZ'"):
        parser.terms([sample[0]], besides=[[(0, 1, "ZZ")]])
    other = Parser.load(tiny_parser)
    with pytest.raises(ModelError, match="not scored by words inside them\n.*minilm-span"):
        other.terms([sample[0]])


def test_balance_between_words_and_edges(parser, sample):
    found = parser.terms(sample[:8])
    table = balance(found).set_index("label")
    leads = {}
    for terms in found:
        for _, rows in terms.table.groupby(["start", "end"]):
            parts = []
            for term in (rows["term"] == "word", rows["term"] != "word"):
                sums = rows[term].groupby("role")["value"].sum()
                parts.append(sums["parse"] - sums["second"])
            label = rows.loc[rows["role"] == "parse", "label"].iloc[0]
            leads.setdefault(label, []).append(parts)
    assert list(table["spans"]) == sorted(map(len, leads.values()), reverse=True)
    for label, parts in leads.items():
        words, edges = zip(*parts)
        assert table.loc[label, "by_words"] == pytest.approx(sum(words) / len(words))
        assert table.loc[label, "lead"] == pytest.approx(sum(map(sum, parts)) / len(parts))
        assert table.loc[label, "words_alone"] == pytest.approx(100 * sum(w > 0 for w in words) / len(words))
        assert table.loc[label, "edges_alone"] == pytest.approx(100 * sum(e > 0 for e in edges) / len(edges))
    assert len(balance([])) == 0
