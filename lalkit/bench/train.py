"""A training step of the whole parser against one of its bare encoder, fine-tuned to tag words."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences, transformer
from lalkit.config import preset
from lalkit.network.batches import IGNORE, Collator, batches
from lalkit.network.parser import Network
from lalkit.training.objective import has_bf16, losses, make_optimizer
from lalkit.treebank.check import trainable
from lalkit.treebank.tree import Sentence

STEPS = 4  # batches, evenly spread over lengths


def rows(settings: Settings) -> list[dict]:
    """One row. Both collate, run forward and backward, clip and update (AdamW); bf16 where the hardware has it."""
    network, collator, sentences, name = network_and_sentences(settings)
    config, encoder = preset(settings.preset).train, transformer(settings, network)
    chosen, autocast = some(settings, sentences)
    tagger = nn.Linear(network.words.project.in_features, len(collator.vocab.tags)).to(settings.device)
    trained = [p for p in (*encoder.parameters(), *tagger.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, config.encoder_rate, fused=True)
    whole = stepper(settings, network, collator, sentences)

    def bare() -> None:
        for batch in (collator(sentences).to(settings.device) for sentences in chosen):
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                hidden = encoder(input_ids=batch.subwords, attention_mask=batch.subword_mask.long()).last_hidden_state
                row, _, last = batch.places[:, 1:-1].unbind(-1)
                scores = tagger(hidden[row, last])
            loss = F.cross_entropy(scores.float().flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE)
            update(loss, trained, optimizer)

    case = f"{len(chosen)} batches of {config.batch_tokens} words, {name}"
    return [share(settings, "train", case, settings.preset, "bare encoder, fine-tuned", whole, bare)]


def stepper(settings: Settings, network: Network, collator: Collator, sentences: list[Sentence]) -> Callable[[], None]:
    """What takes a step of training on each of some batches."""
    config = preset(settings.preset).train
    chosen, autocast = some(settings, sentences)
    everything = [p for p in network.parameters() if p.requires_grad]
    optimizer = make_optimizer(network, everything, config)

    def steps() -> None:
        network.train()
        for batch in (collator(sentences, gold=True).to(settings.device) for sentences in chosen):
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                loss = losses(network, batch, config)["loss"]
            update(loss, everything, optimizer)

    return steps


def some(settings: Settings, sentences: list[Sentence]) -> tuple[list[list[Sentence]], bool]:
    """(batches, whether in bf16)."""
    config = preset(settings.preset).train
    sentences, _ = trainable(sentences, config.max_length)
    groups = batches([len(s) for s in sentences], config.batch_tokens)
    chosen = [[sentences[i] for i in group] for group in groups[:: max(1, len(groups) // STEPS)]]
    return chosen, config.autocast and has_bf16(torch.device(settings.device))


def update(loss, parameters, optimizer) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
