"""A look has the sums, effects and attention that the scorer used, alone and in any batch."""

import numpy as np
import pytest
import torch

from lalkit.api import Parser
from lalkit.config import override
from lalkit.errors import LalkitError, ModelError
from lalkit.interpret.contributions import NORMS, contributions, normalise
from lalkit.interpret.paper_layer import PaperLayer
from lalkit.network.parser import Network
from lalkit.treebank.joint import GROUP


@pytest.fixture(scope="module")
def parser(tiny_parser):
    return Parser.load(tiny_parser)


@pytest.fixture(scope="module")
def looks(parser, sample):
    return parser.look(sample[:12])


def test_a_look_has_the_usual_parse(parser, looks, sample):
    for seen, result in zip(looks, parser.parse_all(sample[:12])):
        assert seen.sentence == result.sentence
        assert seen.spans == tuple((s.start, s.end, s.label) for s in result.spans if s.label != GROUP)


def test_a_decoder_can_be_named_as_for_a_parse(parser, sample):
    named = [seen.prediction.spans for seen in parser.look(sample[:12], decode="mbr")]
    assert named == [result.prediction.spans for result in parser.parse_all(sample[:12], decode="mbr")]
    assert named != [seen.prediction.spans for seen in parser.look(sample[:12])]


def test_raw_is_the_sum_over_the_slice_of_the_span_vector(parser, looks, sample):
    batch = parser.collator(sample[:1])
    with torch.inference_mode():
        posts = parser.network(batch, posts=True).posts[0]
    for (start, end, _), raw in zip(looks[0].spans, looks[0].raw):
        assert raw == pytest.approx((posts[end] - posts[start]).sum(-1).numpy(), abs=1e-4)


def test_exact_is_what_the_score_loses_without_the_head(parser, looks, sample):
    """Against really taking the head's slice out of every fencepost and scoring the whole chart again."""
    with torch.inference_mode():
        output = parser.network(parser.collator(sample[:1]), posts=True)
        for head in range(6):
            posts = output.posts.clone()
            posts[:, :, head] = 0
            without = parser.network.spans(posts)[0]
            for (start, end, label), exact in zip(looks[0].spans, looks[0].exact):
                place = 0, start, end, parser.vocab.label_index[label]
                score = looks[0].scores[looks[0].spans.index((start, end, label))]
                assert score == pytest.approx(float(output.label_scores[place]), abs=1e-3)
                lost = output.label_scores[place] - without[place[1:]]
                assert exact[head] == pytest.approx(float(lost), abs=1e-3)


def test_attention_sums_to_one_over_the_sentence(parser, looks):
    for seen in looks:
        assert seen.attention.shape == (6, len(seen.sentence) + 2)
        assert seen.attention.sum(1) == pytest.approx(1, abs=1e-5)
    table = parser.attribution.attention_table(looks)
    assert table.groupby(["sentence", "head"])["attention"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
    assert list(table.loc[(table.sentence == 0) & (table["head"] == 1), "word"])[1:-1] == list(looks[0].sentence.words)


def test_nothing_depends_on_the_batch(parser, looks, sample):
    for number in (0, 5, 11):
        (alone,) = parser.look([sample[number]])
        assert alone.spans == looks[number].spans
        for name in ("raw", "exact", "attention"):
            assert getattr(alone, name) == pytest.approx(getattr(looks[number], name), abs=2e-4)


def test_more_spans_can_be_looked_at(parser, sample):
    (seen,) = parser.look(sample[:1], besides=[[(0, 2, "NP"), (1, 3, "NEVER")]])
    assert seen.spans[-1] == (1, 3, "NEVER") and np.isnan([*seen.exact[-1], seen.scores[-1]]).all()
    found = contributions([seen], sample[:1])
    assert not found.spans["parsed"].iloc[-1] and not found.spans["gold"].iloc[-1]
    assert len(found.parsed.spans) < len(found.spans) == len(seen.spans)


def test_every_norm_as_it_is_defined():
    raw = np.array([[1.0, -3.0, 0.0], [2.0, 2.0, 2.0]])
    exact = np.array([[0.5, -0.5, 0.0], [1.0, 2.0, 3.0]])
    assert normalise(raw, exact, "raw") is raw and normalise(raw, exact, "exact") is exact
    assert normalise(raw, exact, "minmax") == pytest.approx(np.array([[1, 0, 0.75], [0, 0, 0]]))
    assert normalise(raw, exact, "share") == pytest.approx(np.array([[0.25, 0.75, 0], [1 / 3] * 3]))
    e = np.exp([1.0, -3.0, 0.0])
    assert normalise(raw, exact, "softmax") == pytest.approx(np.array([e / e.sum(), [1 / 3] * 3]))
    assert normalise(np.zeros((1, 2)), None, "share").tolist() == [[0, 0]]
    with pytest.raises(LalkitError, match="no norm 'max'\n.*minmax"):
        normalise(raw, exact, "max")
    with pytest.raises(LalkitError, match="no exact contributions here\n.*leave the norm out"):
        normalise(raw, None, "exact")


def test_the_tidy_table(looks, sample):
    found = contributions(looks, sample[:12])
    table = found.table(["raw", "share"])
    assert len(table) == 2 * len(found.spans) * 6
    row = table[(table["norm"] == "share") & (table["head"] == 2)].iloc[3]
    assert row["value"] == pytest.approx(found.by("share")[3, 2]) and row["label"] == found.spans["label"][3]
    assert table[table["norm"] == "share"].groupby(["sentence", "start", "end", "label"])["value"].sum().to_numpy() == (
        pytest.approx(1, abs=1e-5)
    )
    assert set(NORMS) == {"raw", "minmax", "softmax", "share", "exact"}


def test_no_looks_are_refused():
    with pytest.raises(LalkitError, match="no span to look at"):
        contributions([])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model.feedforward": 16}, "a feed-forward .* mixes its heads"),
        ({"model.label_attention": None}, "it has no label attention"),
        ({"model.label_attention.combine": "project"}, "projected together"),
    ],
)
def test_a_parser_whose_heads_are_mixed_is_refused(parser, sample, change, says):
    network = Network(override(parser.config, change).model, parser.vocab)
    with pytest.raises(ModelError, match=f"(?s){says}.*en-news-x"):
        PaperLayer(network, parser.collator).look(sample[:1])
