"""The whole network: the same scores alone, in a batch, in any order, with any padding; for every variant and input."""

import itertools

import pytest
import torch

from lalkit.batch.collate import Collator
from lalkit.batch.vocab import Vocab
from lalkit.checkpoint import make_collator
from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.model.parser import Network
from lalkit.model.scores import SpanScorer, fenceposts
from lalkit.predict import predict
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence

VARIANTS = [
    {},
    {"label_attention.query": "matrix"},
    {"label_attention.combine": "project"},
    {"label_attention.query": "matrix", "label_attention.combine": "project"},
    {"label_attention.shared": "false"},
    {"label_attention.normaliser": "entmax15"},
    {"label_attention.normaliser": "sparsemax"},
    {"label_attention.feedforward": "true", "label_attention.d_ff": "24"},
    {"label_attention": None},
    {"layers": "3"},
    {"tag_input": "predicted"},
    {"tag_input": "given"},
    {"encoder.pretrained": "minilm"},
    {"encoder.pretrained": "minilm", "encoder.subword": "mean", "encoder.mix_layers": "false", "encoder.window": "24"},
]


def build(changes, sample):
    torch.manual_seed(3)
    config = override(tiny(), {f"model.{name}": value for name, value in changes.items()})
    vocab = Vocab.build(sample, 1)
    network = Network(config.model, vocab)
    for name, p in network.named_parameters():
        if p.requires_grad and "transformer" not in name:
            p.data += 0.05 * torch.randn_like(p)
    if config.model.encoder.pretrained is None:  # padding is read as zeros, which training does not change
        network.words.char.weight.data[0] = 0
    # In float64: what is left of a difference is then a defect, not the rounding of differently shaped products.
    return network.eval().double(), make_collator(config, vocab)


@pytest.mark.parametrize("changes", VARIANTS, ids=lambda c: ",".join(f"{k}={v}" for k, v in c.items()) or "default")
def test_batch_order_and_padding_invariance(changes, sample):
    network, collator = build(changes, sample)
    chosen = [min(sample, key=len), *sorted(sample[:30], key=len)[::6], sample[1]]
    with torch.inference_mode():
        together = network(collator(chosen))
        backwards = network(collator(chosen[::-1]))
        for b, sentence in enumerate(chosen):
            n, alone = len(sentence), network(collator([sentence]))
            heads = torch.tensor([sentence.heads])
            labels = network.arc_labels(alone, heads)[0]
            for output, row in ((together, b), (backwards, len(chosen) - 1 - b)):
                where = {"rtol": 0, "atol": 1e-5}
                scores = output.label_scores[row, : n + 1, : n + 1]
                torch.testing.assert_close(scores, alone.label_scores[0], **where)
                torch.testing.assert_close(output.arc_scores[row, :n, : n + 1], alone.arc_scores[0], **where)
                torch.testing.assert_close(output.tag_scores[row, :n], alone.tag_scores[0], **where)
                padded = torch.zeros(len(chosen), output.arc_scores.shape[1], dtype=torch.long)
                padded[row, :n] = heads[0]
                torch.testing.assert_close(network.arc_labels(output, padded)[row, :n], labels, **where)
    assert together.label_scores[..., 1:].abs().max() > 0.1, "scores of nothing would always agree"


def test_arc_labels_depend_on_the_head(sample):
    """The released program scores them from the dependent alone."""
    network, collator = build({}, sample)
    sentence = next(s for s in sample if len(s) > 6)
    with torch.inference_mode():
        output = network(collator([sentence]))
        one = network.arc_labels(output, torch.full((1, len(sentence)), 1))
        other = network.arc_labels(output, torch.full((1, len(sentence)), 4))
    assert (one - other).abs().amax(-1).min() > 1e-4


def test_spans_are_scored_as_differences_of_fenceposts():
    torch.manual_seed(0)
    scorer = SpanScorer(24, 10, 5, 0.0).double()
    y = torch.randn(2, 7, 3, 8, dtype=torch.float64)
    scores = scorer(fenceposts(y))
    for b, (i, j) in itertools.product(range(2), itertools.combinations(range(6), 2)):
        halves = lambda k: torch.cat([torch.cat([y[b, k, h, 0::2], y[b, k + 1, h, 1::2]]) for h in range(3)])  # noqa: B023, E731
        s = halves(j) - halves(i)
        hidden = torch.relu(scorer.norm(scorer.first.weight @ s + scorer.bias))
        torch.testing.assert_close(scores[b, i, j, 1:], (scorer.second.weight @ hidden + scorer.second.bias).float())
        assert scores[b, i, j, 0] == 0


def test_every_parse_is_consistent(sample, tiny_parser):
    """Each constituent has exactly one head word whose arc leaves it (separate decoding broke 10.8% of them)."""
    from lalkit.checkpoint import load_model

    loaded = load_model(tiny_parser)
    for prediction in predict(loaded.network, loaded.collator, sample[:60]):
        assert {span[:2] for span in to_joint(prediction.sentence)} <= {span[:2] for span in prediction.spans}
        for start, end, _, head in prediction.spans:
            assert [i + 1 for i in range(start, end) if not start < prediction.sentence.heads[i] <= end] == [head]


def test_predictions_are_the_same_alone(sample, tiny_parser):
    from lalkit.checkpoint import load_model

    loaded = load_model(tiny_parser)
    together = predict(loaded.network, loaded.collator, sample[:25])
    for sentence, prediction in zip(sample[:25], together):
        alone = predict(loaded.network, loaded.collator, [sentence])[0]
        assert alone.sentence == prediction.sentence
        assert alone.score == pytest.approx(prediction.score, abs=1e-3)


def test_a_400_word_sentence(sample, tiny_parser):
    from lalkit.checkpoint import load_model

    loaded = load_model(tiny_parser)
    words = tuple(word for s in sample for word in s.words)[:400]
    assert len(predict(loaded.network, loaded.collator, [Sentence(words)])[0].sentence.heads) == 400


def test_an_encoder_that_cannot_be_had():
    config = override(tiny(), {"model.encoder.pretrained": "no/such-encoder"})
    with pytest.raises(ModelError, match="encoder 'no/such-encoder' cannot be loaded"):
        Network(config.model, Vocab(("", "<H>", "S"), ("X",), ("Y",)))


def test_collator_needs_no_gold(sample):
    batch = Collator(Vocab.build(sample))([Sentence(("Some", "unseen-worţ"))])
    assert batch.words.tolist()[0][1] == 1
    assert batch.spans is None
