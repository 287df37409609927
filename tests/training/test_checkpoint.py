"""A parser comes back from its folder as it was; a new one can start from its weights."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertConfig, BertModel

from lalkit.api import Parser
from lalkit.config import minilm, override
from lalkit.errors import ModelError
from lalkit.network.alignment import resolve
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.network.vocabulary import Vocab
from lalkit.training.checkpoint import adam_tensors, load_model, restore_adam, save_model, start_from
from lalkit.treebank.corpora import load


def weights(folder):
    return folder / json.loads((folder / "model.json").read_text())["weights"]


def test_there_and_back(tiny_parser, tmp_path):
    a, b = load_model(tiny_parser), load_model(shutil.copytree(tiny_parser, tmp_path / "copy"))
    assert a.vocab == b.vocab and a.config == b.config and a.info["dev"]["sentences"] == 44
    states = [loaded.network.state_dict() for loaded in (a, b)]
    assert all(torch.equal(x, y) for x, y in zip(*(state.values() for state in states)))
    Parser.load(tiny_parser).save(tmp_path / "half", half=True)
    assert weights(tmp_path / "half").stat().st_size < 0.6 * weights(tiny_parser).stat().st_size
    rounded = load_model(tmp_path / "half").network.state_dict()
    assert all(torch.equal(x.half().float(), rounded[name]) for name, x in states[0].items())


def test_frozen_weights_come_from_the_encoder_and_a_corpus_keeps_its_words(tmp_path):
    config = override(minilm(), {"model.encoder.freeze_layers": 5})
    vocab = Vocab.build(load("sample", "dev").sentences)
    network = Network(config.model, vocab)
    save_model(Model(network, vocab, None, config, {}), tmp_path, "0")
    stored = {name for name in load_file(weights(tmp_path)) if ".layer." in name}
    assert stored and all(".layer.5." in name for name in stored)
    found = load_model(tmp_path).network.state_dict()
    assert all(torch.equal(x, found[name]) for name, x in network.state_dict().items())
    kept = json.loads((tmp_path / "model.json").read_text())["vocab"]
    assert kept["words"] == kept["chars"] == ["<pad>", "<unk>"] and tuple(kept["labels"]) == vocab.labels


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


@pytest.mark.parametrize("boundary", [None, "full", "glass"])
def test_starting_from_another_parser(tiny_parser, tmp_path, boundary):
    """Labels, tags, words, characters and the label heads inside the span are known by their names."""
    loaded, kept = load_model(tiny_parser), slice(2, None)
    known, config = loaded.vocab, loaded.config
    if boundary:
        inside = {"d_key": 4, "boundary": boundary}
        config = override(config, {"model.label_attention": None, "model.span_attention": inside})
    first = Network(config.model, known)
    save_model(replace(loaded, network=first, config=config), tmp_path, "0")
    vocab = replace(
        known, labels=("", "<H>", "NEW", *known.labels[:1:-1]), tags=known.tags[:5],
        words=(*known.words[:2], *known.words[:1:-1]), chars=(*known.chars[:2], "\u2603", *known.chars[kept]),
    )  # fmt: skip
    network = Network(config.model, vocab)
    new = dict(network.named_parameters())
    before = {name: p[1].clone() for name, p in new.items() if name.startswith("spans.")}
    start_from(Model(network, vocab, None, config, {}), tmp_path)
    assert torch.equal(network.tag_scorer.bias, first.tag_scorer.bias[:5])
    assert torch.equal(network.words.word.weight[kept], first.words.word.weight[kept].flip(0))
    assert torch.equal(network.words.char.weight[3:], first.words.char.weight[kept])
    of_labels = {
        None: ["spans.second.weight"], "full": ["spans.query", "spans.evidence.weight", "spans.boundary.second.weight"],
        "glass": ["spans.query", "spans.evidence.weight", "spans.boundary.first.weight", "spans.boundary.last.bias"],
    }[boundary]  # fmt: skip
    for name, old in first.named_parameters():
        if name in of_labels:
            assert torch.equal(new[name][0], old[0]) and torch.equal(new[name][2:], old[1:].flip(0)), name
            assert torch.equal(new[name][1], before[name]), f"{name} of a label they do not know"
        elif name.startswith("spans.") and "bias" not in name and old.shape == new[name].shape:
            assert torch.equal(new[name], old), name
    other = override(config, {"model.arc_hidden": 40})
    model = Model(Network(other.model, known), known, None, other, {})
    pytest.raises(ModelError, start_from, model, tmp_path).match("arcs")


def test_a_start_with_another_last_layer_gives_all_but_that_layer(tiny_parser):
    loaded = load_model(tiny_parser)
    config = override(loaded.config, {"model.label_attention": None, "model.span_attention": {"d_key": 4}})
    network, old = Network(config.model, loaded.vocab), dict(loaded.network.named_parameters())
    before = {name: p.clone() for name, p in network.named_parameters()}
    start_from(Model(network, loaded.vocab, None, config, {}), tiny_parser)
    for name, p in network.named_parameters():
        anew = name.startswith(("spans.", "arcs.project."))
        assert torch.equal(p, before[name] if anew else old[name]), name


def test_a_start_never_loses_what_its_encoder_learned(sample):
    en = Parser.load("en")
    model = Model.new(override(en.config, {"model.encoder.freeze_layers": 6}), sample[:9])
    pytest.raises(ModelError, start_from, model, en.folder).match(r"its words\.transformer\..* would be lost")


def test_an_encoder_of_a_folder_travels_with_its_parser(tmp_path):
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=30522, **shape)).save_pretrained(tmp_path / "encoder")
    AutoTokenizer.from_pretrained(resolve("minilm")).save_pretrained(tmp_path / "encoder")
    vocab, texts = Vocab.build(load("sample", "dev").sentences), ["The end.", "Who saw it?"]
    for number, name in enumerate((tmp_path / "encoder", shutil.copytree(resolve("e5-han"), tmp_path / "4 bits"))):
        config, parser = override(minilm(), {"model.encoder.pretrained": str(name)}), tmp_path / f"parser-{number}"
        save_model(Model(Network(config.model, vocab), vocab, None, config, {}), parser, "0")
        before = [*map(str, Parser.load(parser).parse_all(texts))]
        shutil.rmtree(name)
        Parser.load(parser.rename(tmp_path / f"moved-{number}")).save(parser)
        assert [*map(str, Parser.load(parser).parse_all(texts))] == before
