"""Linear maps that learn a difference of low rank."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

from lalkit.network.word_vectors import LowRankLinear, learn_low_rank


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
