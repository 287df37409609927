"""Measure the whole parser, in parsing and in training, against its bare encoder or against another way to do the same."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, get_args
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import nn

from lalkit.bench.measure import FEW, Settings, alternate, compare, milliseconds, network_and_sentences, transformer
from lalkit.bench.measure import row as one_row
from lalkit.config import override, preset
from lalkit.errors import ParameterError
from lalkit.interpret import source_of
from lalkit.interpret.contributions import contributions as contributions_of
from lalkit.network import parser as assembly
from lalkit.network import predict as predicting
from lalkit.network.batches import IGNORE, Batch, Collator, batches, usual
from lalkit.network.parser import Network
from lalkit.network.precision import Precision, bf16_is_fast, resolve
from lalkit.network.word_vectors import PretrainedEncoder
from lalkit.training.objective import losses, make_optimizer
from lalkit.treebank.check import trainable
from lalkit.treebank.tree import Sentence

STEPS = 4  # batches of a measured training, evenly spread over lengths
# The parsers that `beside` compares with the paper's layer.
PAPERS = "minilm"
OTHERS = {
    f"span {boundary}": {"model.label_attention": "none", "model.span_attention": {"boundary": boundary}}
    for boundary in ("full", "lean", "glass")
} | {"no label attention": {"model.label_attention": "none"}}  # the last: the time that label attention does not take


def parse(settings: Settings) -> list[dict]:
    """Compare parsing, from sentences to checked trees, with the bare encoder on the same batches; and show where time goes.

    Returns one row of the whole against the encoder in fp32 for each precision that the hardware has, with words per second
    and the processor's name; one per part in fp32 against the whole, and one of their sum.
    """
    network, collator, sentences, name = network_and_sentences(settings)
    bare = transformer(settings, network)
    network.eval()
    groups = batches([len(s) for s in sentences], usual(settings.device))
    ready = [collator([sentences[i] for i in group]).to(settings.device) for group in groups]
    parse_all = parser(settings, network, collator, sentences)

    def encode() -> None:
        with torch.inference_mode():
            for batch in ready:
                bare(input_ids=batch.subwords, attention_mask=batch.subword_mask.long())

    if len(sentences) <= FEW:
        settings = settings.at_most(3)
    usable: list[Precision] = ["fp32"]
    for low in get_args(Precision)[2:]:
        with contextlib.suppress(ParameterError):
            usable.append(resolve(low, torch.device(settings.device).type))
    rounds = alternate(settings, *(partial(parse_all, precision=precision) for precision in usable), encode)
    rows, words, baseline = [], sum(map(len, sentences)), f"bare encoder on {processor(settings.device)}"
    for place, precision in enumerate(usable):
        pairs = [(times[place], times[-1]) for times in rounds]
        mode = f"{settings.preset}, {precision}, {1000 * words / median(ours for ours, _ in pairs):,.0f} words/s"
        rows.append(one_row(settings, "parse", name, mode, baseline, pairs))
    return [*rows, *_parts(settings, network, parse_all, name)]


def processor(device: str) -> str:
    """Return the name of a GPU or of this machine's processor."""
    if device != "cpu":
        return torch.cuda.get_device_name(device)
    return torch.cpu.get_capabilities().get("cpu_name") or platform.processor()


def parser(settings: Settings, network: Network, collator: Collator, sentences: list[Sentence]) -> Callable:
    """Return a function that parses all the sentences."""
    return partial(predicting.predict, network, collator, sentences, threads=torch.get_num_threads())


def _parts(settings: Settings, network: Network, parse_all: Callable, name: str) -> list[dict]:
    """Return rows of the routine 'parts'. The ratio is a part's share of the whole, which runs in turn without clocks."""
    rounds = []

    def clocked() -> None:
        with _clocks(network, settings.device) as spent:
            total = milliseconds(parse_all, settings.device)
        rounds.append({**spent, "everything else": total - sum(spent.values()), "sum": total})

    totals = [total for total, _ in alternate(settings, parse_all, clocked)]
    rows = []
    for part in rounds[0]:
        pairs = [(times[part], total) for times, total in zip(rounds[1:], totals)]
        rows.append(one_row(settings, "parts", part, f"{settings.preset}, {name}", "whole parser", pairs))
    return rows


@contextlib.contextmanager
def _clocks(network: Network, device: str) -> Iterator[dict[str, float]]:
    """Count the milliseconds spent in each part of the parser while the block runs."""
    timed: dict[str, list[tuple[Any, str]]] = {
        "encoder": [(network.words.transformer, "forward")],
        "self-attention": [(network.encoder, "forward")],
        "label attention": [(network.label_attention, "forward"), (network.feedforward, "forward")],
        "spans": [(assembly, "fenceposts"), (network.spans, "project"), (network.spans, "chart")],
        "arcs": [(network.arcs, name) for name in ("parts", "arcs", "labels")],
        "decoding": [(predicting, "decode_output")],
    }
    spent = dict.fromkeys(timed, 0.0)
    with contextlib.ExitStack() as undo:
        for part, places in timed.items():
            for owner, name in places:
                if owner is not None:
                    clocked = partial(_clocked, getattr(owner, name), spent, part, device)
                    undo.enter_context(patch.object(owner, name, clocked))
        yield spent


def _clocked(function: Callable, spent: dict[str, float], part: str, device: str, /, *args, **kwargs):
    """Call a function and add its time to spent[part]."""
    results = []
    spent[part] += milliseconds(lambda: results.append(function(*args, **kwargs)), device)
    return results[0]


def start(settings: Settings) -> list[dict]:
    """Compare one sentence on the command line with `import torch`: the processor time of new processes, in turn."""
    commands = ("-m", "lalkit", "parse", "It works."), ("-c", "import torch")
    _, *pairs = [(_process(commands[0]), _process(commands[1])) for _ in range(settings.at_most(5).repeats + 1)]
    return [one_row(settings, "start", "one sentence", "lalkit parse, processor time", "import torch", pairs)]


def _process(arguments: Sequence[str]) -> float:
    """Return the milliseconds that processors spend on one run of Python."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    return 1000 * (after.children_user + after.children_system - before.children_user - before.children_system)


def look(settings: Settings) -> list[dict]:
    """Compare parsing and explaining with parsing alone. A ratio below 2: the explanations cost less than the parse.

    Explained are all label heads' contributions by every norm or, with label attention inside the span, every term of every
    constituent's score.
    """
    network, collator, sentences, name = network_and_sentences(settings)
    network.eval()
    source = source_of(network, collator)

    def explain() -> None:
        looks = source.look(sentences)
        if source.norms:
            contributions = contributions_of(looks)
            for norm in source.norms:
                contributions.by(norm)

    case = f"{len(sentences)} sentences, {name}"
    parse_alone = partial(predicting.predict, network, collator, sentences)
    return [compare(settings.at_most(3), "look", case, source.content, "parsing", explain, parse_alone)]


def train(settings: Settings) -> list[dict]:
    """Compare training steps of the whole parser with steps of its bare encoder, fine-tuned to tag words.

    Both collate, run forward and backward, clip and update (AdamW), in bf16 where the hardware has it.
    """
    network, collator, sentences, name = network_and_sentences(settings)
    config, encoder = preset(settings.preset).train, transformer(settings, network)
    tagger = nn.Linear(network.words.project.in_features, len(collator.vocab.tags)).to(settings.device)
    trained = [p for p in (*encoder.parameters(), *tagger.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, config.encoder_rate, fused=True)

    def tagging_loss(batch: Batch) -> torch.Tensor:
        hidden = encoder(input_ids=batch.subwords, attention_mask=batch.subword_mask.long()).last_hidden_state
        line, _, last = batch.places[:, 1:-1].unbind(-1)
        scores = tagger(hidden[line, last])
        return F.cross_entropy(scores.float().flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE)

    whole = stepper(settings, network, collator, sentences)
    bare = _steps(settings, collator, sentences, False, tagging_loss, trained, optimizer)
    chosen, _ = _training_batches(settings, sentences)
    case = f"{len(chosen)} batches of {config.batch_tokens} words, {name}"
    return [compare(settings, "train", case, settings.preset, "bare encoder, fine-tuned", whole, bare)]


def stepper(settings: Settings, network: Network, collator: Collator, sentences: list[Sentence]) -> Callable[[], None]:
    """Return a function that takes a training step on each of a few batches."""
    config = preset(settings.preset).train
    trained = [p for p in network.parameters() if p.requires_grad]

    def parsing_loss(batch: Batch) -> torch.Tensor:
        network.train()
        return losses(network, batch, config)["loss"]

    return _steps(settings, collator, sentences, True, parsing_loss, trained, make_optimizer(network, config))


def _steps(
    settings: Settings, collator: Collator, sentences: list[Sentence], gold: bool,
    loss_of: Callable[[Batch], torch.Tensor], parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer,
) -> Callable[[], None]:  # fmt: skip
    """Return a function that takes one step on each of a few batches: collate, forward, backward, clip, update."""
    chosen, autocast = _training_batches(settings, sentences)

    def steps() -> None:
        for group in chosen:
            batch = collator(group, gold=gold).to(settings.device)
            with torch.autocast(settings.device, torch.bfloat16, enabled=autocast):
                loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()

    return steps


def _training_batches(settings: Settings, sentences: list[Sentence]) -> tuple[list[list[Sentence]], bool]:
    """Return a few batches, and whether to train in bf16."""
    config = preset(settings.preset).train
    sentences, _ = trainable(sentences, config.max_length)
    groups = batches([len(s) for s in sentences], config.batch_tokens)
    steps = min(STEPS, len(groups))
    chosen = [[sentences[i] for i in groups[step * len(groups) // steps]] for step in range(steps)]
    return chosen, config.autocast and bf16_is_fast(settings.device)


def together(settings: Settings) -> list[dict]:
    """Compare the encoder with rows of similar length read together, with every row padded to the batch's longest.

    Returns two rows on training batches: forward, and forward and backward. There is no row on other devices than a CPU,
    where batches are not divided, and none for an encoder from scratch, which has no rows of sub-words.
    """
    network, collator, sentences, name = network_and_sentences(settings)
    encoder = network.words
    if settings.device != "cpu" or not isinstance(encoder, PretrainedEncoder):
        return []
    chosen, autocast = _training_batches(settings, sentences)
    ready = [collator(group) for group in chosen]
    network.train()

    def run(read, backward: bool) -> None:
        with torch.set_grad_enabled(backward):
            for batch in ready:
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    hidden = read(batch.subwords, batch.subword_mask)
                if backward:
                    (hidden * batch.subword_mask[..., None]).float().sum().backward()
        if backward:
            network.zero_grad()

    return [
        compare(
            settings, "together", f"{len(ready)} batches, {name}", mode, "padded to the longest",
            partial(run, encoder.hidden, backward), partial(run, encoder.read, backward),
        )
        for mode, backward in (("forward", False), ("forward+backward", True))
    ]  # fmt: skip


def beside(settings: Settings) -> list[dict]:
    """Compare parsers without the paper's layer with one that has it: the same encoder, sentences and batches.

    Returns a row for parsing and one for a training step of each. A ratio below 1: cheaper than with the paper's layer.
    """
    settings = replace(settings.at_most(5), preset=PAPERS)
    theirs, collator, sentences, name = network_and_sentences(settings)
    rows = []
    for system, changes in OTHERS.items():
        torch.manual_seed(0)
        ours = Network(override(preset(PAPERS), changes).model, collator.vocab).to(settings.device)
        for case, make in (("parse", parser), ("training step", stepper)):
            torch.manual_seed(0)
            both = (make(settings, network, collator, sentences) for network in (ours, theirs))
            rows.append(compare(settings, "beside", f"{case}, {name}", system, PAPERS, *both))
    return rows
