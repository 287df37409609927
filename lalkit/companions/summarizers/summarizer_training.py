"""Training of a summarizer, chosen on dev by the probabilities of the words of true summaries (see `frame.fit`)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from lalkit.chart.machine import available_bytes
from lalkit.companions.frame import fill, fit, in_order, one_epoch, read_run
from lalkit.companions.summarizers.documents import Dataset, Document
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.config import from_dict, to_dict
from lalkit.errors import CorpusError
from lalkit.evaluation.provenance import parts_hash
from lalkit.training.estimate import Estimate, kept_bytes, needed_by, timed

FORMAT = "lalkit-summarizer-1"


def train(config: SummarizerConfig, data: Dataset, out: str | Path, *, resume: bool = False) -> dict:
    """Leave the best summarizer in `out`, and return the state and history of the run (see `frame.fit`).

    resume: Go on with the run in `out`, if there is one. Raises ModelError if `out` holds a run with other settings or documents,
    and CorpusError for data without train or dev.
    """
    task = task_of(FORMAT, data, to_dict(config))
    torch.manual_seed(config.seed)
    model = Summarizer(config, Vocabulary.build(data.train, config))
    optimizer = torch.optim.Adam(model.parameters(), config.rate, fused=True)

    def run_epoch(number: int) -> float:
        torch.manual_seed((config.seed << 20) + number)
        batches = shuffled(data.train, config.batch, config.seed, number)
        clip = [*model.parameters()], config.clip
        return one_epoch(optimizer, batches, lambda group: model.loss(model.collate(group)), clip)

    return fit(
        model, optimizer, out, task, epochs=config.epochs, run_epoch=run_epoch, score=lambda: likelihood(model, data.dev),
        kept={"vocabulary": model.vocabulary.words}, resume=resume,
        name=f"{data.name} sparse {config.sparse} seed {config.seed}",
    )  # fmt: skip


def estimate(config: SummarizerConfig, data: Dataset, most: int = 4) -> Estimate:
    """Estimate what a training needs (see `lalkit.training.estimate`), and write nothing.

    It computes the `most` longest documents of the largest batch for the memory, and as many of a usual batch for the time. Both
    grow with the number of documents.
    """
    task_of(FORMAT, data, to_dict(config))  # raises an error for data without train or dev
    free = available_bytes()
    model = Summarizer(config, Vocabulary.build(data.train, config)).train()
    parameters = [*model.parameters()]
    memory = needed_by(parameters, parameters)
    optimizer = torch.optim.Adam(parameters, 0.0, fused=True)  # at this rate the weights stay as they are
    groups = sorted(shuffled(data.train, config.batch, config.seed, 0), key=lambda group: _read(group, config))
    largest, usual = groups[-1], groups[len(groups) // 2][:most]

    def step(documents: Sequence[Document]) -> float:
        return one_epoch(optimizer, [documents], lambda group: model.loss(model.collate(group)))

    some = sorted(largest, key=lambda d: len(d.words))[-most:]
    kept = kept_bytes(model, lambda: step(some))
    update = timed(optimizer.step)
    seconds = (timed(step, usual) - update) / len(usual) * len(data.train) + len(groups) * update
    words = sum(_read([document], config) for document in data.train)
    return Estimate(
        **memory, activations=kept * len(largest) // len(some), steps=len(groups), words=words, largest=_read(largest, config),
        seconds=seconds, available=free, epochs=config.epochs, advice=f"lower batch (now {config.batch}) with --set batch=N",
    )  # fmt: skip


def _read(documents: Sequence[Document], config: SummarizerConfig) -> int:
    """Return how many words of a batch are read, with padding."""
    longest = [max(len(getattr(d, name)) for d in documents) for name in ("words", "summary")]
    return len(documents) * sum(map(min, longest, (config.source, config.target)))


def task_of(format: str, data: Dataset, config: dict) -> dict:
    """Return what must be equal for a run to go on (see `frame.fit`). It does not depend on where the documents are kept.

    Raises CorpusError if there are no documents to train on, or none to choose by.
    """
    for part in ("train", "dev"):
        if not getattr(data, part):
            remedy = "Train on news, hf:NAME, or a folder of files."
            raise CorpusError(f"has no {part} part", where=data.name, remedy=remedy)
    texts = [(part, [(d.words, d.summary) for d in getattr(data, part)]) for part in ("train", "dev")]
    return {"format": format, "data": data.name, "data_sha256": parts_hash(texts), "config": config}


def shuffled(documents: Sequence[Document], size: int, seed: int, epoch: int) -> Iterator[list[Document]]:
    """Yield the batches of an epoch in a random order. Documents of similar length are together.

    The batches depend on the seed and on the number of the epoch alone.
    """
    draw = random.Random(f"{seed}-{epoch}")
    order = sorted(range(len(documents)), key=lambda i: (len(documents[i].words) + draw.random() * 4, i))
    groups = list(in_order(order, size))
    draw.shuffle(groups)
    yield from ([documents[i] for i in group] for group in groups)


@torch.inference_mode()
def likelihood(model: Summarizer, documents: Sequence[Document]) -> float:
    """Return the geometric mean of the probabilities of all words of the true summaries, their ends included."""
    model.eval()
    total, words = 0.0, 0
    for group in in_order(documents, 100):
        batch = model.collate(group)
        count = int(batch.target_mask.sum())
        total, words = total + float(model.loss(batch)) * count, words + count
    return math.exp(-total / words)


def load_summarizer(folder: str | Path) -> Summarizer:
    """Return the summarizer of a run. Raises ModelError unless the folder holds a whole summarizer of lalkit."""
    remedy = "Give a folder written by `lalkit summarize train`."
    content, tensors = read_run(folder, FORMAT, "summarizer", remedy)
    config = from_dict(SummarizerConfig, content["config"], f"{folder}/model.json: config")
    return fill(Summarizer(config, Vocabulary(tuple(content["vocabulary"]))), tensors, folder)
