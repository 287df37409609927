"""Three kinds of pretrained encoders, tiny and of random weights: alone or in a batch, whole or in windows, saved and loaded."""

import pytest
import torch
import transformers

from lalkit.config import override, tiny
from lalkit.errors import ModelError
from lalkit.network import word_vectors
from lalkit.network.batches import Collator, parts
from lalkit.network.parser import Network
from lalkit.network.predict import predict
from lalkit.network.vocabulary import Vocab
from lalkit.network.word_vectors import longest_row
from lalkit.training.checkpoint import load_model, save_model
from lalkit.training.objective import losses
from lalkit.treebank.corpora import load
from tests.network.families import tokenizer

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 66,
    "pad_token_id": 0,
}  # fmt: skip
MODELS = {
    "wordpiece": lambda size: transformers.BertConfig(vocab_size=size, **SMALL),
    "byte-bpe": lambda size: transformers.RobertaConfig(vocab_size=size, **SMALL),
    "unigram-left": lambda size: transformers.XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=32),
}


@pytest.fixture(scope="module", params=list(MODELS))
def encoder(request, tmp_path_factory):
    """The folder of an encoder with its tokenizer, as one would have downloaded it."""
    folder = tmp_path_factory.mktemp("encoders") / request.param
    made = tokenizer(request.param)
    made.save_pretrained(folder)
    torch.manual_seed(3)
    model = transformers.AutoModel.from_config(MODELS[request.param](len(made)))
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(std=0.3)  # so that context matters
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sentences():
    return sorted(load("sample-zh", "train").sentences + load("sample", "dev").sentences[:10], key=lambda s: s.id)[:16]


def config(folder, **more):
    settings = {
        "model.encoder.pretrained": str(folder),
        "model.encoder.window": 64,
        "model.encoder.freeze_embeddings": False,
    }
    return override(tiny(), {**settings, **{f"model.encoder.{k}": v for k, v in more.items()}})


def network(folder, sentences, **more):
    torch.manual_seed(1)
    vocab = Vocab.build(sentences)
    made = config(folder, **more)
    return Network(made.model, vocab).eval(), Collator(vocab, made.model.encoder), made


def test_alone_in_a_batch_and_shuffled_are_the_same(encoder, sentences):
    parser, collator, _ = network(encoder, sentences)
    with torch.no_grad():
        together = parser(collator(sentences))
        for i, sentence in enumerate(sentences):
            alone, n = parser(collator([sentence])), len(sentence)
            torch.testing.assert_close(
                together.label_scores[i, : n + 1, : n + 1], alone.label_scores[0], atol=2e-4, rtol=1e-3
            )
            torch.testing.assert_close(together.arc_scores[i, :n, : n + 1], alone.arc_scores[0], atol=2e-4, rtol=1e-3)


def test_rows_read_in_parts_are_the_same_as_all_together(encoder, sentences, monkeypatch):
    parser, collator, _ = network(encoder, sentences)
    batch, found, calls = collator(sentences), [], []
    monkeypatch.setattr(parser.words, "read", lambda *rows, usual=parser.words.read: calls.append(1) or usual(*rows))
    for cost in (0, 1_000_000):
        monkeypatch.setattr(word_vectors, "parts", lambda lengths, cost=cost: parts(lengths, cost))
        parser.zero_grad()
        vectors = parser.words(batch)
        (vectors * batch.mask[..., None]).square().sum().backward()
        found.append([vectors.detach(), *(p.grad for p in parser.words.parameters() if p.grad is not None)])
    assert len(calls) > 3
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_a_step_reaches_all_of_the_encoder_and_it_is_saved_whole(encoder, sentences, tmp_path):
    parser, collator, made = network(encoder, sentences)
    parser.train()
    losses(parser, collator(sentences, gold=True), made.train)["loss"].backward()
    without = {n for n, p in parser.words.transformer.named_parameters() if p.grad is None}
    other = ("mask_emb", "r_s_bias", "seg_embed")  # XLNet's for masked words, and for texts of two segments
    assert {name for name in without if not name.endswith(other)} == set()
    parser.eval()
    save_model(tmp_path / "p", parser, made, collator.vocab, "0", {})
    again = load_model(tmp_path / "p")
    ours, theirs = (predict(n, c, sentences[:4]) for n, c in ((parser, collator), (again.network, again.collator)))
    assert [p.sentence for p in ours] == [p.sentence for p in theirs]


def test_a_window_beyond_the_encoders_positions_is_refused(encoder, sentences):
    limit = longest_row(transformers.AutoConfig.from_pretrained(encoder))
    if "unigram-left" in str(encoder):  # XLNet's positions are relative
        assert limit == 0
        return
    network(encoder, sentences, window=limit)
    with pytest.raises(ModelError, match=f"takes {limit} sub-words, not {limit + 1}\n.*window={limit}"):
        network(encoder, sentences, window=limit + 1)
