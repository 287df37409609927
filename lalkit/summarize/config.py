"""Settings of the summarizers, each with its source: [P] Baan et al. 2019, [C] OpenNMT's page for the model, [D] ours."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from lalkit.settings import within

Normaliser = Literal["softmax", "sparsemax", "entmax15"]
# Where attention is sparse: nowhere, in the encoder, everywhere but in the last layer's cross heads, everywhere but in the
# copy head, everywhere ([P] section 5).
SPARSE = ("none", "encoder", "but-top", "but-copy", "all")


@dataclass(frozen=True)
class SummarizerConfig:
    """One summarizer and how it is trained; saved in its run's folder. The defaults fit a CPU [D]."""

    layers: int = 2  # of the encoder, and of the decoder; [P] 4
    heads: int = 4  # [P] 8
    d_model: int = 64  # [P] 512; 96 costs half as much again, and the news are learned with 64
    d_ff: int = 256  # [C] 2048
    dropout: float = 0.0  # [C] 0.2; a third of a step on a CPU, and made-up news need none
    sparse: Literal["none", "encoder", "but-top", "but-copy", "all"] = "none"
    normaliser: Normaliser = "sparsemax"  # of the heads that `sparse` names; all others: softmax
    vocabulary: int = 50_000  # [C] most frequent words; all others can only be copied
    min_count: int = 4  # [D] words that are rarer in the training part are unknown too
    source: int = 400  # [C] tokens of a document; what is beyond is cut
    target: int = 100  # [C]
    seed: int = 1
    epochs: int = 12  # [D]
    batch: int = 50  # [D]
    rate: float = 1e-3  # [D] Adam; [C] noam 2, warm-up 8000
    clip: float = 1.0  # [D]

    def __post_init__(self):
        within(self, 1, inf, "layers", "heads", "d_model", "d_ff", "source", "target", "epochs", "batch")


def paper() -> SummarizerConfig:
    """[P] 4 + 4 layers of 8 heads, 512 wide."""
    return SummarizerConfig(layers=4, heads=8, d_model=512, d_ff=2048, dropout=0.2, min_count=1)
