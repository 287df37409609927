"""A network of a preset and sentences to parse, as `bench parse` and `bench train` need them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from lalkit.bench.measure import Settings
from lalkit.config import EncoderConfig, preset
from lalkit.errors import CorpusError, ParameterError
from lalkit.network.batches import Collator
from lalkit.network.parser import Network
from lalkit.network.pretrained import PretrainedEncoder, random_encoder
from lalkit.network.vocabulary import Vocab
from lalkit.training.checkpoint import make_collator
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

LARGE = 100_000_000  # weights of an encoder, from which on a few sentences are enough
FEW = 24


def network_and_sentences(settings: Settings) -> tuple[Network, Collator, list[Sentence], str]:
    """(network with new upper layers, collator, sentences of a test part, what they are).

    The PTB sample's test part; without that corpus our own sample's. Large encoders get some of them, evenly spread.
    """
    try:
        corpus, name = [load("ptb-sample", part).sentences for part in ("train", "test")], "PTB sample test"
    except CorpusError:
        corpus, name = [load("sample", part).sentences for part in ("train", "test")], "sample test"
    train, test = corpus
    vocab = Vocab.build(train)
    torch.manual_seed(0)
    config = preset(settings.preset)
    if settings.random_weights:
        with random_encoder(config.model) as model:
            network = Network(model, vocab, weights=False)
        # Any tokenizer whose ids the encoder knows gives sub-words of the usual number.
        collator = make_collator(replace(config, model=replace(config.model, encoder=EncoderConfig())), vocab)
    else:
        network, collator = Network(config.model, vocab), make_collator(config, vocab)
    if sum(p.numel() for p in network.words.parameters()) > LARGE:
        test, name = test[:: max(1, len(test) // FEW)], f"{name}, {FEW} sentences"
    return network.to(settings.device), collator, test, name


def transformer(settings: Settings, network: Network) -> nn.Module:
    """The bare encoder of a network. Raises ParameterError for an encoder from scratch, which holds none."""
    if not isinstance(network.words, PretrainedEncoder):
        raise ParameterError(
            f"the preset {settings.preset} has no pretrained encoder to compare with", remedy="Try --preset minilm."
        )
    return network.words.transformer
