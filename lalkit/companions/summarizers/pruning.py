"""How many heads are needed? Hard-concrete gates on every head of a trained summarizer, with a price on open ones.

    loss = -log P + lambda * mean over all gated heads of P(gate open)

Training goes on from the converged model, gates open at first (log a = 2) and with a rate of their own. A control goes on for as
many steps without gates: what pruning seems to gain may be the training alone. lambda is ours (a mean over heads): it compares
with no other paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn

from lalkit.companions.summarizers.documents import Dataset, Document
from lalkit.companions.summarizers.summarizer import Batch, Change, Output, Summarizer, SummarizerConfig, Vocabulary
from lalkit.companions.summarizers.summarizer_training import likelihood, shuffled, task_of
from lalkit.config import from_dict, to_dict
from lalkit.probes.gates import HardConcreteGate
from lalkit.training.small_loop import fill, fit, read_fitted

FORMAT = "lalkit-gated-summarizer-1"


@dataclass(frozen=True)
class PruneConfig:
    """lam: the price of an open head; None: no gates, the control. Everything else as the summarizer was trained."""

    lam: float | None = 0.3
    epochs: int = 6  # [D]
    rate: float = 5e-4  # [D] of the weights, half of what they were trained with
    gate_rate: float = 0.05  # [D] of log a
    seed: int = 1


class Gated(nn.Module):
    """A summarizer with a gate on every head that is measured; its `forward` is the summarizer's through the gates."""

    def __init__(self, summarizer: Summarizer, gated: bool = True):
        super().__init__()
        self.summarizer = summarizer
        names = summarizer.blocks if gated else ()
        self.gates = nn.ModuleDict({_key(name): HardConcreteGate(summarizer.config.heads) for name in names})

    def change(self) -> Change:
        """The gates as they are: drawn in training, fixed in evaluation."""
        return Change(
            gates={name: self.gates[_key(name)]() for name in self.summarizer.blocks if _key(name) in self.gates}
        )

    def forward(self, batch: Batch) -> Output:
        return self.summarizer(batch, self.change())

    def price(self) -> Tensor:
        """Mean over all gated heads of P(open); 0 without gates."""
        opened = [gate.open() for gate in self.gates.values()]
        return torch.cat(opened).mean() if opened else torch.zeros(())

    @torch.no_grad()
    def table(self) -> pd.DataFrame:
        """head, gate (its fixed value), kept (is it above 0?)."""
        self.eval()
        gates = self.change().gates or {}
        rows = [
            {"head": f"{name}.{h}", "gate": float(value), "kept": bool(value > 0)}
            for name, values in gates.items()
            for h, value in enumerate(values)
        ]
        return pd.DataFrame(rows, columns=["head", "gate", "kept"])

    @torch.no_grad()
    def cut(self) -> Summarizer:
        """A summarizer without gates: what is behind a closed one is no more, what is behind another is scaled by it."""
        self.eval()
        found = Summarizer(self.summarizer.config, self.summarizer.vocabulary).to(self.summarizer.say.weight.dtype)
        found.load_state_dict(self.summarizer.state_dict())
        size = found.config.d_model // found.config.heads
        for name, values in (self.change().gates or {}).items():
            kind, number = name.split(".")
            layer = found.encoder[int(number)].own if kind == "enc" else found.decoder[int(number)].cross
            layer.output.weight *= values.repeat_interleave(size)[None]
        return found.eval()


def prune(
    summarizer: Summarizer,
    data: Dataset,
    out: str | Path,
    config: PruneConfig = PruneConfig(),  # noqa: B008 (frozen)
    *,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> Gated:
    """Trains on, from a copy of the summarizer; leaves the last state in `out` (see `lalkit.training.small_loop.fit`). Raises ModelError
    where `out` holds another run, CorpusError for data without train or dev."""
    task = task_of(FORMAT, data, to_dict(config) | {"summarizer": to_dict(summarizer.config)})
    model = Gated(_copy(summarizer), config.lam is not None)
    parts = [{"params": [*model.summarizer.parameters()], "lr": config.rate}]
    if config.lam is not None:
        parts.append({"params": [*model.gates.parameters()], "lr": config.gate_rate})
    optimizer = torch.optim.Adam(parts, fused=True)
    fit(
        model, optimizer, out, task, epochs=config.epochs,
        one_epoch=lambda number: _epoch(model, optimizer, data.train, config, number),
        score=lambda: likelihood(model.cut(), data.dev), last=True,  # gates close late, when the likelihood is past its best
        kept={"vocabulary": summarizer.vocabulary.words}, resume=resume, name=f"{data.name} lambda {config.lam}", say=say,
    )  # fmt: skip
    return load_gated(out)


def load_gated(folder: str | Path) -> Gated:
    """Raises ModelError for anything that is not a whole gated summarizer of lalkit's."""
    content, tensors = read_fitted(
        folder, FORMAT, "gated summarizer", "Give a folder written by `summarize.prune.prune`."
    )
    own = from_dict(SummarizerConfig, content["config"]["summarizer"], f"{folder}/model.json: config")
    model = Gated(Summarizer(own, Vocabulary(tuple(content["vocabulary"]))), content["config"]["lam"] is not None)
    fill(model, tensors, folder)
    return model.eval()


def _epoch(
    model: Gated, optimizer: torch.optim.Optimizer, documents: Sequence[Document], config: PruneConfig, number: int
) -> float:
    own = model.summarizer.config
    torch.manual_seed((config.seed << 20) + 10_000 + number)
    total, batches = 0.0, 0
    for group in shuffled(documents, own.batch, config.seed, 10_000 + number):
        optimizer.zero_grad(set_to_none=True)
        loss = model.summarizer.loss(model.summarizer.vocabulary.collate(group, own), model.change())
        loss = loss + (config.lam or 0.0) * model.price()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.summarizer.parameters(), own.clip)
        optimizer.step()
        total, batches = total + float(loss.detach()), batches + 1
    return total / batches


def _copy(summarizer: Summarizer) -> Summarizer:
    found = Summarizer(replace(summarizer.config), summarizer.vocabulary)
    found.load_state_dict(summarizer.state_dict())
    return found


def _key(block: str) -> str:
    """A module's name has no dots."""
    return block.replace(".", "-")
