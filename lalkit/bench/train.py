"""A training step of the whole parser against one of its bare encoder, fine-tuned to tag words."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from lalkit.batch.budget import batches
from lalkit.batch.collate import IGNORE
from lalkit.bench.measure import Settings, share
from lalkit.bench.networks import network_and_sentences
from lalkit.config import preset
from lalkit.objective import has_bf16, losses, make_optimizer
from lalkit.treebank.trainable import trainable

STEPS = 4  # batches, evenly spread over lengths


def rows(settings: Settings) -> list[dict]:
    """One row. Both collate, run forward and backward, clip and update (AdamW); bf16 where the hardware has it."""
    network, collator, sentences, name = network_and_sentences(settings)
    config = preset(settings.preset).train
    sentences, _ = trainable(sentences, config.max_length)
    groups = batches([len(s) for s in sentences], config.batch_tokens)
    chosen = [[sentences[i] for i in group] for group in groups[:: max(1, len(groups) // STEPS)]]
    everything = [p for p in network.parameters() if p.requires_grad]
    tagger = nn.Linear(network.words.project.in_features, len(collator.vocab.tags)).to(settings.device)
    encoder = [p for p in (*network.words.transformer.parameters(), *tagger.parameters()) if p.requires_grad]
    optimizers = (
        make_optimizer(network, everything, config),
        torch.optim.AdamW(encoder, config.encoder_rate, fused=True),
    )
    autocast = config.autocast and has_bf16(torch.device(settings.device))
    network.train()

    def update(loss, parameters, optimizer) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    def whole() -> None:
        for batch in (collator(sentences, gold=True).to(settings.device) for sentences in chosen):
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                loss = losses(network, batch, config)["loss"]
            update(loss, everything, optimizers[0])

    def bare() -> None:
        for batch in (collator(sentences).to(settings.device) for sentences in chosen):
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                hidden = network.words.transformer(
                    input_ids=batch.subwords, attention_mask=batch.subword_mask.long()
                ).last_hidden_state
                row, _, last = batch.places[:, 1:-1].unbind(-1)
                scores = tagger(hidden[row, last])
            loss = F.cross_entropy(scores.float().flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE)
            update(loss, encoder, optimizers[1])

    case = f"{len(chosen)} batches of {config.batch_tokens} words, {name}"
    return [share(settings, "train", case, settings.preset, "bare encoder, fine-tuned", whole, bare)]
