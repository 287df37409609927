"""Training a summarizer: chosen by its loss on dev, resumed with the same bits (`lalkit.training.small_loop`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from lalkit.companions.summarizers.documents import Dataset, Document
from lalkit.companions.summarizers.summarizer import Summarizer, SummarizerConfig, Vocabulary
from lalkit.config import from_dict, to_dict
from lalkit.errors import CorpusError
from lalkit.evaluation.provenance import parts_hash
from lalkit.training.small_loop import fill, fit, read_fitted

FORMAT = "lalkit-summarizer-1"


def train(
    config: SummarizerConfig,
    data: Dataset,
    out: str | Path,
    *,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict:
    """Leaves the best summarizer in `out`; returns the run's state and history. dev: the geometric mean of the probabilities
    of words. See `lalkit.training.small_loop.fit`. Raises ModelError where `out` holds another run, CorpusError for data without train or
    dev."""
    task = task_of(FORMAT, data, to_dict(config))
    torch.manual_seed(config.seed)
    model = Summarizer(config, Vocabulary.build(data.train, config))
    optimizer = torch.optim.Adam(model.parameters(), config.rate, fused=True)
    return fit(
        model, optimizer, out, task, epochs=config.epochs,
        one_epoch=lambda number: one_epoch(model, optimizer, data.train, number),
        score=lambda: likelihood(model, data.dev), kept={"vocabulary": model.vocabulary.words},
        resume=resume, name=f"{data.name} sparse {config.sparse} seed {config.seed}", say=say,
    )  # fmt: skip


def task_of(format: str, data: Dataset, config: dict) -> dict:
    """What a run is known by (`lalkit.training.small_loop.fit`): its documents by what is read of them, wherever they lie. Raises CorpusError
    where there are none to train on, or to choose by."""
    for part in ("train", "dev"):
        if not getattr(data, part):
            raise CorpusError(
                f"has no {part} part", where=data.name, remedy="Train on news, hf:NAME, or a folder of files."
            )
    read = [(part, [(d.words, d.summary) for d in getattr(data, part)]) for part in ("train", "dev")]
    return {"format": format, "data": data.name, "data_sha256": parts_hash(read), "config": config}


def one_epoch(model: Summarizer, optimizer: torch.optim.Optimizer, documents: Sequence[Document], number: int) -> float:
    """One pass; the mean loss. Order and dropout depend on (seed, number)."""
    config = model.config
    torch.manual_seed((config.seed << 20) + number)
    total, batches = 0.0, 0
    for group in shuffled(documents, config.batch, config.seed, number):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(model.vocabulary.collate(group, config))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        total, batches = total + float(loss.detach()), batches + 1
    return total / batches


@torch.inference_mode()
def likelihood(model: Summarizer, documents: Sequence[Document]) -> float:
    """exp of the mean log-probability of the documents' summaries' words, their ends included."""
    model.eval()
    total, words = 0.0, 0
    for start in range(0, len(documents), 100):
        batch = model.vocabulary.collate(documents[start : start + 100], model.config)
        count = int(batch.target_mask.sum())
        total, words = total + float(model.loss(batch)) * count, words + count
    return float(torch.tensor(-total / words).exp())


def shuffled(documents: Sequence[Document], size: int, seed: int, epoch: int) -> Iterator[list[Document]]:
    """Batches of documents of like length, in random order."""
    draw = random.Random(f"{seed}-{epoch}")
    order = sorted(range(len(documents)), key=lambda i: (len(documents[i].words) + draw.random() * 4, i))
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    draw.shuffle(groups)
    yield from ([documents[i] for i in group] for group in groups)


def load_summarizer(folder: str | Path) -> Summarizer:
    """Raises ModelError for anything that is not a whole summarizer of lalkit's."""
    content, tensors = read_fitted(folder, FORMAT, "summarizer", "Give a folder written by `summarize.training.train`.")
    config = from_dict(SummarizerConfig, content["config"], f"{folder}/model.json: config")
    model = Summarizer(config, Vocabulary(tuple(content["vocabulary"])))
    fill(model, tensors, folder)
    return model.eval()
