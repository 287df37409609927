"""Checkpoints that are not whole, or not ours, are refused with their name; a whole one comes back the same."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertConfig, BertModel

from lalkit.api import Parser
from lalkit.config import minilm, override, read_saved, tiny, to_dict
from lalkit.errors import ModelError
from lalkit.network.alignment import resolve
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.training.checkpoint import adam_tensors, load_model, restore_adam, save_model, start_from
from lalkit.treebank.corpora import load


@pytest.fixture
def copy(tiny_parser, tmp_path):
    return shutil.copytree(tiny_parser, tmp_path / "copy")


def weights(folder):
    return folder / json.loads((folder / "model.json").read_text())["weights"]


def test_there_and_back(tiny_parser, copy):
    a, b = load_model(tiny_parser), load_model(copy)
    assert a.vocab == b.vocab and a.config == b.config
    assert all(torch.equal(x, y) for x, y in zip(a.network.state_dict().values(), b.network.state_dict().values()))
    assert a.info["dev"]["sentences"] == 44


def test_frozen_weights_come_from_the_encoder(tmp_path):
    config = override(minilm(), {"model.encoder.freeze_layers": 5})
    vocab = Vocab.build(load("sample", "dev").sentences, 1)
    network = Network(config.model, vocab)
    save_model(tmp_path, network, config, vocab, "0", {})
    stored = {name for name in load_file(weights(tmp_path)) if ".layer." in name}
    assert stored and all(".layer.5." in name for name in stored)
    found = load_model(tmp_path).network.state_dict()
    assert all(torch.equal(x, found[name]) for name, x in network.state_dict().items())


def test_a_corpus_keeps_its_words(tmp_path):
    vocab = Vocab.build(load("sample", "dev").sentences, 1)
    save_model(tmp_path, Network(minilm().model, vocab), minilm(), vocab, "0", {})
    kept = json.loads((tmp_path / "model.json").read_text())["vocab"]
    assert kept["words"] == kept["chars"] == ["<pad>", "<unk>"] and tuple(kept["labels"]) == vocab.labels


def test_half_precision(tiny_parser, tmp_path):
    Parser.load(tiny_parser).save(tmp_path, half=True)
    assert weights(tmp_path).stat().st_size < 0.6 * weights(tiny_parser).stat().st_size
    exact, rounded = load_model(tiny_parser).network.state_dict(), load_model(tmp_path).network.state_dict()
    assert all(torch.equal(x.half().float(), rounded[name]) for name, x in exact.items())


@pytest.mark.parametrize("fused", [True, False])
def test_adam_counts_its_steps_where_it_wants_them(fused):
    """The fused Adam on the device of the parameter, any other on the CPU. The device meta stands for a GPU."""
    trained, moved = (torch.nn.Linear(2, 1, device=device) for device in ("cpu", "meta"))
    before, after = (torch.optim.AdamW(model.parameters(), fused=fused) for model in (trained, moved))
    trained(torch.ones(1, 2)).sum().backward()
    before.step()
    restore_adam(moved, after, adam_tensors(trained, before), "here")
    assert {state["step"].device.type for state in after.state.values()} == {"meta" if fused else "cpu"}
    assert {state["exp_avg"].device.type for state in after.state.values()} == {"meta"}


def test_the_config_of_an_older_version_is_read():
    saved = to_dict(tiny())
    saved["model"]["label_attention"] |= {"feedforward": False, "d_ff": 2048, "ties": "none"}
    del saved["model"]["label_attention"]["reduce"]
    saved["model"]["encoder"]["subword"] = "last"
    assert read_saved(saved) == override(tiny(), {"model.label_attention.reduce": "partitioned"})
    saved["model"]["encoder"]["subword"] = "mean"
    with pytest.raises(ModelError):
        read_saved(saved)


def test_starting_from_another_parser(tiny_parser):
    """Labels, tags, words and characters are known by their names."""
    theirs, kept = load_model(tiny_parser), slice(2, None)
    known = theirs.vocab
    vocab = replace(
        known, labels=("", "<H>", "NEW", *known.labels[:1:-1]), tags=known.tags[:5],
        words=(*known.words[:2], *known.words[:1:-1]), chars=(*known.chars[:2], "\u2603", *known.chars[kept]),
    )  # fmt: skip
    network = Network(theirs.config.model, vocab)
    before = network.spans.second.weight[1].clone()
    start_from(network, vocab, tiny_parser)
    assert torch.equal(network.spans.first.weight, theirs.network.spans.first.weight)
    assert torch.equal(network.spans.second.weight[1], before), "of a label they do not know"
    assert torch.equal(network.spans.second.weight[0], theirs.network.spans.second.weight[0])
    assert torch.equal(network.spans.second.weight[2:], theirs.network.spans.second.weight[1:].flip(0))
    assert torch.equal(network.tag_scorer.bias, theirs.network.tag_scorer.bias[:5])
    assert torch.equal(network.words.word.weight[kept], theirs.network.words.word.weight[kept].flip(0))
    assert torch.equal(network.words.char.weight[3:], theirs.network.words.char.weight[kept])
    larger = Network(override(theirs.config, {"model.label_hidden": 40}).model, theirs.vocab)
    with pytest.raises(ModelError, match="spans.bias"):
        start_from(larger, theirs.vocab, tiny_parser)


@pytest.mark.parametrize("boundary", ["full", "lean", "glass"])
def test_starting_from_another_parser_with_heads_of_labels(tiny_parser, tmp_path, boundary):
    """Inside the span, too, a head is known by its label."""
    theirs = load_model(tiny_parser)
    inside = {"model.label_attention": None, "model.span_attention": {"d_key": 4, "d_lean": 6, "boundary": boundary}}
    config = override(theirs.config, inside)
    first = Network(config.model, theirs.vocab)
    save_model(tmp_path, first, config, theirs.vocab, "0", {})
    vocab = replace(theirs.vocab, labels=("", "<H>", "NEW", *theirs.vocab.labels[:1:-1]))
    network = Network(config.model, vocab)
    start_from(network, vocab, tmp_path)
    ours = [network.spans.query, network.spans.evidence.weight]
    old = [first.spans.query, first.spans.evidence.weight]
    if boundary == "glass":
        ours, old = [*ours, network.spans.boundary.last.bias], [*old, first.spans.boundary.last.bias]
    else:
        ours, old = [*ours, network.spans.boundary.second.weight], [*old, first.spans.boundary.second.weight]
        assert torch.equal(network.spans.boundary.first.weight, first.spans.boundary.first.weight)
    for mine, its in zip(ours, old):
        assert torch.equal(mine[0], its[0]) and torch.equal(mine[2:], its[1:].flip(0))


def test_another_encoder_is_noticed(tmp_path, tiny_encoder):
    config = override(minilm(), {"model.encoder.pretrained": str(tiny_encoder())})
    vocab = Vocab.build(load("sample", "dev").sentences, 1)
    save_model(tmp_path / "parser", Network(config.model, vocab), config, vocab, "0", {})
    load_model(tmp_path / "parser")
    tiny_encoder()  # other weights in the same place
    with pytest.raises(ModelError, match="not the one this parser was trained with"):
        load_model(tmp_path / "parser")


@pytest.fixture
def tiny_encoder(tmp_path):
    """Saves an encoder of random weights and a tokenizer; again: the same with other weights."""

    def make():
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        BertModel(BertConfig(vocab_size=30522, **shape)).save_pretrained(tmp_path / "encoder")
        AutoTokenizer.from_pretrained(resolve("minilm")).save_pretrained(tmp_path / "encoder")
        return tmp_path / "encoder"

    return make
