"""How many heads does a summarizer need? A gate on every head of a trained summarizer, and a price for open gates.

    loss = -log P + lambda * mean over all gated heads of P(gate open)

Training goes on from the trained model. The gates are open at first (log a = 2), and have a learning rate of their own. A
control goes on for the same number of steps without gates, because what pruning seems to gain may come from the training alone.
Our lambda multiplies a mean over heads, so it cannot be compared with that of another paper.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor, nn

from lalkit.companions.frame import fill, fit, one_epoch, read_run
from lalkit.companions.summarizers.documents import Dataset, Document
from lalkit.companions.summarizers.summarizer import Batch, Change, Output, Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.summarizers.summarizer_training import likelihood, shuffled, task_of
from lalkit.config import Count, Number, Seed, Settings, from_dict, to_dict

FORMAT = "lalkit-gated-summarizer-1"
BETA, LOW, HIGH = 0.33, -0.1, 1.1  # the temperature, and the two ends to which the concrete distribution is stretched
SMALL = 1e-6  # the uniform draw is from SMALL to 1 - SMALL
FIRST_EPOCH = 10_000  # pruning numbers its epochs from here, so that its random numbers are not those of the training


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
            u = torch.rand_like(self.log_a).clamp(SMALL, 1 - SMALL)
            s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + self.log_a) / BETA)
        return (s * (HIGH - LOW) + LOW).clamp(0, 1)

    def open(self) -> Tensor:
        """Return P(gate > 0) = sigmoid(log a + beta log 11), [n]. A loss adds lambda times its mean."""
        return torch.sigmoid(self.log_a - BETA * math.log(-LOW / HIGH))


@dataclass(frozen=True)
class PruneConfig(Settings):
    """lam: the price of an open head; None: no gates, the control. All other settings are those of the summarizer."""

    lam: Number | None = 0.3
    epochs: Count = 6  # [D]
    rate: Number = 5e-4  # [D] of the weights: half of the rate in training
    gate_rate: Number = 0.05  # [D] of log a
    seed: Seed = 1


class Gated(nn.Module):
    """A summarizer with a gate on every head that is measured. Its `forward` is the summarizer's, through the gates."""

    def __init__(self, summarizer: Summarizer, gated: bool = True):
        super().__init__()
        self.summarizer = summarizer
        blocks = summarizer.blocks if gated else ()
        with summarizer.say.weight.device:  # the name of a module cannot have a dot
            gates = {b.replace(".", "-"): HardConcreteGate(summarizer.config.heads) for b in blocks}
        self.gates = nn.ModuleDict(gates)

    def change(self) -> Change:
        """Return the gates as they are now: drawn in training, fixed in evaluation."""
        return Change(gates={name.replace("-", "."): gate() for name, gate in self.gates.items()})

    def forward(self, batch: Batch) -> Output:
        return self.summarizer(batch, self.change())

    def price(self) -> Tensor:
        """Return the mean over all gated heads of P(open). It is 0 without gates."""
        opened = [gate.open() for gate in self.modules() if isinstance(gate, HardConcreteGate)]
        return torch.cat(opened).mean() if opened else self.summarizer.say.weight.new_zeros(())

    @torch.no_grad()
    def table(self) -> pd.DataFrame:
        """Return head, gate (its fixed value), and kept (whether that is above 0)."""
        gates = self.eval().change().gates
        rows = [(f"{b}.{h}", float(g), bool(g > 0)) for b, values in gates.items() for h, g in enumerate(values)]
        return pd.DataFrame(rows, columns=["head", "gate", "kept"])

    @torch.no_grad()
    def cut(self) -> Summarizer:
        """Return a summarizer without gates. The outputs of closed heads are removed, those of other heads are scaled."""
        self.eval()
        model = copy.deepcopy(self.summarizer)
        size = model.config.d_model // model.config.heads
        for block, values in self.change().gates.items():
            model.attention(block).output.weight *= values.repeat_interleave(size)[None]
        return model.eval()


def prune(
    summarizer: Summarizer, data: Dataset, out: str | Path, config: PruneConfig, *, resume: bool = False
) -> Gated:
    """Train a copy of the summarizer on, with gates, and leave the last state in `out` (see `frame.fit`).

    Raises ModelError if `out` holds another run or the pruning of another summarizer, CorpusError for data without train or dev.
    """
    task = task_of(FORMAT, data, to_dict(config) | {"summarizer": to_dict(summarizer.config)})
    task["summarizer_sha256"] = hashlib.sha256(save(summarizer.state_dict())).hexdigest()
    model = Gated(copy.deepcopy(summarizer), config.lam is not None)
    parts = [{"params": [*model.summarizer.parameters()], "lr": config.rate}]
    if config.lam is not None:
        parts.append({"params": [*model.gates.parameters()], "lr": config.gate_rate})
    optimizer = torch.optim.Adam(parts, fused=True)

    def loss(group: Sequence[Document]) -> Tensor:
        says = model.summarizer.loss(model.summarizer.collate(group), model.change())
        return says + (config.lam or 0.0) * model.price()

    def run_epoch(number: int) -> float:
        torch.manual_seed((config.seed << 20) + FIRST_EPOCH + number)
        batches = shuffled(data.train, summarizer.config.batch, config.seed, FIRST_EPOCH + number)
        return one_epoch(optimizer, batches, loss, ([*model.summarizer.parameters()], summarizer.config.clip))

    fit(
        model, optimizer, out, task, epochs=config.epochs, run_epoch=run_epoch,
        score=lambda: likelihood(model.cut(), data.dev), last=True,  # gates close late, after the best likelihood
        kept={"vocabulary": summarizer.vocabulary.words}, resume=resume, name=f"{data.name} lambda {config.lam}",
    )  # fmt: skip
    return load_gated(out)


def load_gated(folder: str | Path) -> Gated:
    """Return the gated summarizer of a run. Raises ModelError unless the folder holds a whole one of lalkit."""
    remedy = "Give a folder written by `lalkit summarize prune`."
    content, tensors = read_run(folder, FORMAT, "gated summarizer", remedy)
    config = from_dict(SummarizerConfig, content["config"]["summarizer"], f"{folder}/model.json: config")
    summarizer = Summarizer(config, Vocabulary(tuple(content["vocabulary"])))
    return fill(Gated(summarizer, content["config"]["lam"] is not None), tensors, folder)
