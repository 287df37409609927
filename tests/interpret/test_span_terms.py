"""The terms of a score add up to it, and taking one out changes it by what was said."""

import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.interpret.span_terms import span_terms
from lalkit.training import train

GRADES = ("full", "lean", "glass")


@pytest.fixture(scope="module", params=GRADES)
def parser(request, tmp_path_factory):
    settings = {
        "model.label_attention": "none", "train.epochs": 2,
        "model.span_attention": {"d_key": 8, "boundary": request.param, "d_lean": 8},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("runs") / request.param
    train(override(tiny(), settings), "sample", folder, say=str)
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
    for terms in span_terms(parser.network, parser.collator, sentences, besides=asked):
        for _, own in terms.table.groupby(["start", "end", "label"], sort=False):
            assert own["value"].sum() == pytest.approx(own["score"].iloc[0], abs=1e-5)
            assert own.loc[own["term"] == "word", "attention"].sum() == pytest.approx(1, abs=1e-5)
            seen += 1
    assert seen >= 1000
    if parser.config.model.span_attention.boundary == "glass":
        assert set(terms.table["term"]) == {"word", "first", "last", "constant"}, "nothing is hidden"


def test_without_a_words_evidence_the_score_is_less_by_its_term(parser, sample):
    """Really taken out: the evidence is set to zero before spans are scored."""
    sentence = next(s for s in sample if len(s) == 8)
    (terms,) = span_terms(parser.network, parser.collator, [sentence])
    scorer, index = parser.network.spans, parser.vocab.label_index
    with torch.inference_mode():
        output = parser.network.eval()(parser.collator([sentence]))
        logits, evidence, *edges = output.span_parts
        for row in terms.table[terms.table["term"] == "word"].itertuples():
            changed = evidence.clone()
            changed[0, row.position - 1] = 0
            chart = scorer.chart(logits, changed, *edges)
            assert float(chart[0, row.start, row.end, index[row.label]]) == pytest.approx(
                row.score - row.value, abs=1e-5
            )


def test_every_constituent_stands_beside_the_label_that_comes_second(parser, sample):
    (terms,) = span_terms(parser.network, parser.collator, [sample[3]])
    own = {(s.start, s.end, s.label) for s in terms.prediction.spans if s.label != "<H>"}
    there = terms.table.groupby(["start", "end"])["label"].unique()
    for start, end, label in own:
        assert label in there[start, end] and len(there[start, end]) == 2


def test_what_cannot_be_explained(parser, tiny_parser, sample):
    with pytest.raises(ModelError, match="there is no label 'ZZ'"):
        span_terms(parser.network, parser.collator, [sample[0]], besides=[[(0, 1, "ZZ")]])
    other = Parser.load(tiny_parser)
    with pytest.raises(ModelError, match="not scored by words inside them\n.*minilm-span"):
        span_terms(other.network, other.collator, [sample[0]])
