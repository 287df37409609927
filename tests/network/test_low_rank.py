"""Linear maps that learn a difference of low rank."""

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import BertConfig, BertModel

from lalkit.config import minilm, override
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.network.word_vectors import LowRankLinear, learn_low_rank
from lalkit.training.checkpoint import load_model, save_model
from lalkit.training.objective import losses
from lalkit.treebank.corpora import load


def encoder() -> BertModel:
    torch.manual_seed(0)
    made = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    return BertModel(made, add_pooling_layer=False).eval()


def learning(model: nn.Module) -> list[LowRankLinear]:
    return [m for m in model.modules() if isinstance(m, LowRankLinear)]


def test_nothing_is_changed_before_training_and_then_by_the_product():
    model, words = encoder(), torch.arange(12).reshape(2, 6)
    before, usual = model(words).last_hidden_state, model.encoder.layer[1].output.dense
    learn_low_rank(model.encoder, 3)
    assert torch.equal(model(words).last_hidden_state, before)
    changed, x = model.encoder.layer[1].output.dense, torch.randn(5, 32)
    with torch.no_grad():
        changed.up.normal_()
    torch.testing.assert_close(changed(x), usual(x) + x @ (changed.up @ changed.down).T)
    assert torch.linalg.matrix_rank(changed.up @ changed.down) == 3
    assert not torch.equal(model(words).last_hidden_state, before)


def test_only_what_was_to_be_trained_learns_and_only_where_it_is_less():
    model = encoder()
    model.encoder.layer[0].requires_grad_(False)
    learn_low_rank(model.encoder, 3)
    assert len(learning(model)) == len(learning(model.encoder.layer[1])) == 6
    assert not any(map_.weight.requires_grad for map_ in learning(model))
    assert model.encoder.layer[1].output.dense.bias.requires_grad
    whole = encoder()
    learn_low_rank(whole.encoder, 16)
    assert not learning(whole) and all(p.requires_grad for p in whole.parameters())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A parser over MiniLM after two steps, and its folder."""
    config = override(minilm(), {"model.encoder.rank": 4, "model.encoder.freeze_layers": 4})
    sentences = load("sample", "dev").sentences[:6]
    vocab = Vocab.build(sentences, 1)
    torch.manual_seed(1)
    network, collator = Network(config.model, vocab), Collator(vocab, config.model.encoder)
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], 0.05)
    for _ in range(2):  # the first moves U alone: D has no gradient while U is zero
        optimizer.zero_grad()
        losses(network.train(), collator(sentences, gold=True), config.train)["loss"].backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("low-rank")
    save_model(folder, network, config, vocab, "0", {})
    return network.eval(), collator(sentences), folder


def test_the_differences_are_saved_and_the_weights_are_not(saved):
    network, batch, folder = saved
    stored = load_file(next(folder.glob("*.safetensors")))
    inside = {name: tensor for name, tensor in stored.items() if ".layer." in name and tensor.dim() == 2}
    assert len(inside) == 2 * 6 * 2 and all(4 in tensor.shape for tensor in inside.values())
    found = load_model(folder).network
    with torch.no_grad():
        assert torch.equal(found(batch).label_scores, network(batch).label_scores)
    assert all(map_.up.abs().max() > 0 for map_ in learning(found))
