"""A sentence's context cancels in a span vector before the norm; only the norm leaves a part of it."""

import pytest
import torch

from lalkit.api import Parser
from lalkit.errors import ModelError
from lalkit.interpret.controls import cancellation


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return Parser.load(tiny_parser)


def test_contexts_cancel_before_the_norm_and_the_other_columns_are_those_of_the_parser(parser, sample):
    network, sentence = parser.network, sample[4]
    table = cancellation(network, parser.collator, sentence, sample[:10])
    spans = [(s.start, s.end, s.label) for s in parser.parse(sentence).spans if s.label != "<H>"]
    assert list(table[["start", "end", "label"]].itertuples(index=False, name=None)) == spans
    assert table["contexts"].max() < 1e-5 < table["words"].min() and table["moved"].max() > 1e-3
    mean = parser.attribution.mean(sample[:10])
    found = []
    for change in (lambda c: c, lambda c: mean.expand_as(c)):
        with network.label_attention.hooked(contexts=change), torch.no_grad():
            output = network(parser.collator([sentence]), posts=True)
        found.append((output.posts[0], output.label_scores[0]))
    for row in table.itertuples():
        k = parser.vocab.label_index[row.label]
        vectors = [posts[row.end] - posts[row.start] for posts, _ in found]
        assert row.after == pytest.approx(float(vectors[0].norm()), abs=1e-4)
        assert row.moved == pytest.approx(float((vectors[1] - vectors[0]).norm()), abs=1e-4)
        scores = [float(chart[row.start, row.end, k]) for _, chart in found]
        assert [row.score, row.score_mean] == pytest.approx(scores, abs=1e-4)


def test_the_part_of_the_words_is_r_x(parser, sample):
    network, sentence = parser.network, sample[4]
    table = cancellation(network, parser.collator, sentence, sample[:10])
    with torch.no_grad():
        batch = parser.collator([sentence])
        x = network.encoder(network.words(batch), batch.mask)
        rx = network.label_attention.reduce(x)[0]
    row = table.iloc[0]
    half = network.slice[0] // 2, network.slice[1] // 2  # of content and of position: even here
    content, position = rx.split(network.slice, dim=-1)
    # of fencepost k the first halves of word k and the second halves of word k + 1
    ends = [
        torch.cat(
            [content[k, : half[0]], position[k, : half[1]], content[k + 1, half[0] :], position[k + 1, half[1] :]]
        )
        for k in (row["start"], row["end"])
    ]
    heads = network.config.label_attention.heads
    assert row["words"] == pytest.approx(float((ends[1] - ends[0]).norm()) * heads**0.5, rel=1e-4)


def test_label_attention_inside_the_span_is_refused(tiny_span_parser, sample):
    other = Parser.load(tiny_span_parser)
    with pytest.raises(ModelError, match="inside the span"):
        cancellation(other.network, other.collator, sample[0], sample[:2])
