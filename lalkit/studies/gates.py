"""How many label heads does a parser need? A gate on every label head of a trained parser, and a price for open gates.

Training continues from a trained parser with the paper's layer (Voita et al. 2019 do so for translation):

    loss = eq. 12 + price * mean over label heads of P(gate open)

A gate closes a head's context c_h, so that the head passes R x_t on and its attention has no effect; or its output y_h, so that
nothing of the head is left. The word vectors stay as they are, so they are computed once. Afterwards the gates are multiplied
into the weights, so that the result is an ordinary parser. A control continues without gates, because more training changes the
scores, too.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor, nn

from lalkit.chart.machine import progress
from lalkit.config import Count, Number, Settings
from lalkit.errors import LalkitError, ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.scores import evaluate
from lalkit.files import write_text
from lalkit.interpret import source_of
from lalkit.interpret.paper_layer import PaperLayer
from lalkit.network.batches import batches
from lalkit.network.model import Model
from lalkit.network.parser import Network
from lalkit.studies.frame import one_epoch
from lalkit.studies.label_heads import COLUMNS, TRAINED, HeadsRun, tests, words_kept
from lalkit.training.checkpoint import fingerprint, load_model, save_model
from lalkit.training.objective import MAX_LENGTH, losses
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)


BETA, LOW, HIGH = 0.33, -0.1, 1.1  # the temperature, and the two ends to which the concrete distribution is stretched
EDGE = 1e-6  # the uniform draw is from EDGE to 1 - EDGE


class HardConcreteGate(nn.Module):
    """Gates [n] in [0, 1] that can close exactly, and can be learned by gradients (hard-concrete, Louizos et al. 2018).

    In training they are drawn, once for each batch. In evaluation a gate is clip(1.2 sigmoid(log a) - 0.1, 0, 1): exactly 0 if
    log a <= -log 11, and exactly 1 if log a >= log 11 (2.398).
    """

    def __init__(self, size: int):
        super().__init__()
        self.log_a = nn.Parameter(torch.full((size,), 2.0))

    def forward(self) -> Tensor:
        """Return the gates [n]."""
        s = torch.sigmoid(self.log_a)
        if self.training:
            u = torch.rand_like(self.log_a).clamp(EDGE, 1 - EDGE)
            s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + self.log_a) / BETA)
        return (s * (HIGH - LOW) + LOW).clamp(0, 1)

    def open(self) -> Tensor:
        """Return P(gate > 0) = sigmoid(log a + beta log 11), [n]. A loss adds lambda times its mean."""
        return torch.sigmoid(self.log_a - BETA * math.log(-LOW / HIGH))


@dataclass(frozen=True)
class GatesConfig(Settings):
    """closes: what a gate multiplies; nothing: there are no gates (the control). price: what an open gate costs in the loss."""

    closes: Literal["nothing", "contexts", "output"] = "nothing"
    price: Number = 0.0
    epochs: Count = 3  # [D]
    rate: Number = 2e-4  # [D] of the weights: a fifth of the rate in training
    gate_rate: Number = 0.05  # [D] learning rate of the gates' log a


def study(
    runs: Sequence[HeadsRun], treebank: str, out: str | Path, configs: Sequence[GatesConfig], split: str = "test"
) -> list[Path]:
    """Prune every run by every config; score all parsers on a split; write gates.csv, gates-heads.csv and gates-tests.csv.

    A pruned parser is OUT/SYSTEM-SEED-CLOSES-PRICE. One that is there is not trained again. The tables have, for each parser:
    heads, kept, f1, uas, las (percent); for each head: the value of its gate; for each price: the test of the control ("as
    trained") against it, see `label_heads.tests`.

    Raises ModelError for a parser without the paper's layer, or whose heads are mixed, or for a folder of another pruning.
    """
    gold, train, out = load(treebank, split).sentences, load(treebank, "train").sentences, Path(out)
    rows, heads, scored = [], [], []
    for run, config in progress([*product(runs, configs)], desc="prunings", unit="run"):
        key = {"system": run.system, "seed": run.seed, "closes": config.closes, "price": config.price}
        loaded = pruned(run.folder, config, train, treebank, out / "-".join(map(str, key.values())))
        parses = [parse.sentence for parse in loaded.parse(gold)]
        summary, gates = evaluate(gold, parses).summary(), loaded.info["gates"]
        scores = {name: summary[name] for name in ("f1", "uas", "las")}
        kept = sum(value > 0 for value in gates["values"])
        rows.append(key | {"heads": len(gates["values"]), "kept": kept} | scores)
        heads += [key | {"head": head, "gate": value} for head, value in enumerate(gates["values"])]
        what = TRAINED if config.closes == "nothing" else f"{config.closes}, {config.price:g}"
        scored += [(run.system, run.seed, what, "", name, value) for name, value in scores.items()]
    compared = tests(pd.DataFrame(scored, columns=list(COLUMNS)))
    # The last one means that the study has ended.
    tables = {"gates-heads": pd.DataFrame(heads), "gates-tests": compared, "gates": pd.DataFrame(rows)}
    return [write_text(out / f"{n}.csv", t.to_csv(index=False, float_format="%.6g")) for n, t in tables.items()]


def pruned(folder: Path, config: GatesConfig, sentences: Sequence[Sentence], treebank: str, out: Path) -> Model:
    """Return the parser of a folder after pruning. It is kept in `out`, with the gates in its info."""
    task = {**asdict(config), "parser": fingerprint(folder), "train_sha256": parts_hash([("train", sentences)])}
    if not (out / "model.json").exists():
        loaded = load_model(folder)
        try:
            info = {"treebank": treebank, "gates": task | {"values": prune(loaded, sentences, config).tolist()}}
        except LalkitError as error:
            raise error.at(str(folder)) from None
        save_model(replace(loaded, info=info), out, "0")
    loaded = load_model(out)
    if not task.items() <= loaded.info.get("gates", {}).items():
        raise ModelError("holds another pruning", where=str(out), remedy="Give another --out.")
    return loaded


def prune(model: Model, sentences: Sequence[Sentence], config: GatesConfig) -> Tensor:
    """Train a parser on with gates, and multiply them into its weights. Return the values of the gates."""
    network, train, source = model.network, model.config.train, source_of(model)
    if not isinstance(source, PaperLayer):
        raise ModelError("has no layer of the paper", remedy="Give a parser with model.label_attention.")
    source.check()
    source.check_contexts()
    gate = HardConcreteGate(source.heads)
    used = [s for s in sentences if len(s) <= MAX_LENGTH]

    def loss(group: Sequence[Sentence]) -> Tensor:
        with gated(network, config.closes, gate()) if config.closes != "nothing" else nullcontext():
            terms = losses(model, model.collator(group, gold=True))
        return terms["loss"] + config.price * gate.open().mean()

    torch.manual_seed(train.seed)
    groups = [[used[i] for i in group] for group in batches([len(s) for s in used], train.batch_tokens, train.seed)]
    with words_kept(network):
        with torch.no_grad():
            for group in groups:
                network.words(model.collator(group))
        weights = [p for name, p in network.named_parameters() if not name.startswith("words.")]
        parts = [{"params": weights, "lr": config.rate}, {"params": [gate.log_a], "lr": config.gate_rate}]
        optimizer = torch.optim.Adam(parts, fused=True)
        network.train()
        for epoch in range(1, config.epochs + 1):
            order = torch.randperm(len(groups))
            mean = one_epoch(optimizer, (groups[i] for i in order), loss, (weights, train.clip) if train.clip else None)
            logger.info("%s, price %g: epoch %d, loss %.3f", config.closes, config.price, epoch, mean)
    network.eval(), gate.eval()
    with torch.no_grad():
        values = torch.ones(source.heads) if config.closes == "nothing" else gate()
        cut(network, config.closes, values)
    return values


def gated(network: Network, closes: str, gates: Tensor) -> AbstractContextManager:
    """Multiply the contexts or the outputs of all label heads by their gates [heads], inside the `with` block only."""
    if closes == "output":
        return network.label_attention.hooked(output=lambda y, attention: y * gates[:, None])
    return network.label_attention.hooked(contexts=lambda contexts: contexts * gates[:, None])


def cut(network: Network, closes: str, gates: Tensor) -> None:
    """Multiply the gates into the weights: into W^V for contexts; for outputs, into the columns that read them."""
    if closes == "contexts":
        for block in network.label_attention.value.blocks:
            block *= gates[:, None, None]
    spans: Any = network.spans
    for reader in (spans.first, network.arcs.project) if closes == "output" else ():
        reader.weight *= gates.repeat_interleave(reader.in_features // len(gates))
