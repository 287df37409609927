"""Training a classifier: chosen on dev, by accuracy or area under the ROC curve; resumed with the same bits (`fitting`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from lalkit.companions.classifiers.classifier import Classifier, ClassifierConfig, Vocabulary, in_order, shuffled
from lalkit.companions.classifiers.examples import Dataset, Example
from lalkit.config import from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.statistics import roc_auc
from lalkit.training.small_loop import fill, fit, read_fitted

FORMAT = "lalkit-classifier-1"


def train(
    config: ClassifierConfig,
    data: Dataset,
    out: str | Path,
    *,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict:
    """Leaves the best classifier in `out`; returns the run's state and history. See `lalkit.training.small_loop.fit`.

    resume: go on with the run that is there, if one is. Raises ModelError where `out` holds another run, of other
    settings or other data.
    """
    torch.manual_seed(config.seed)
    vocabulary = Vocabulary.build(data, config)
    model = Classifier(config, vocabulary)
    if config.balanced:
        model.weight = class_weights(model, data.train)
    score = {"accuracy": accuracy, "roc_auc": area}[config.choose_by]
    optimizer = make_optimizer(model)
    known = parts_hash([("train", data.train), ("dev", data.dev), ("extractive", [data.extractive])])
    task = {"format": FORMAT, "data": data.name, "data_sha256": known, "config": to_dict(config)}
    words = {"words": vocabulary.words, "asked": vocabulary.asked, "classes": vocabulary.classes}
    return fit(
        model, optimizer, out, task, epochs=config.epochs,
        one_epoch=lambda number: _epoch(model, optimizer, data.train, number),
        score=lambda: score(model, data.dev), kept={"extractive": data.extractive, "vocabulary": words},
        stop_at=config.stop_at, resume=resume, name=f"{data.name} {config.model} seed {config.seed}", say=say,
    )  # fmt: skip


def _epoch(model: Classifier, optimizer: torch.optim.Optimizer, examples: Sequence[Example], epoch: int) -> float:
    """One pass; the mean loss."""
    total, batches = 0.0, 0
    for group in shuffled(examples, model.config.batch, model.config.seed, epoch):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(model.vocabulary.collate(group))
        loss.backward()
        optimizer.step()
        total, batches = total + float(loss.detach()), batches + 1
    return total / batches


def make_optimizer(model: Classifier) -> torch.optim.Optimizer:
    """AMSGrad; no weight decay on the attention [C]."""
    attention = set(model.attention.parameters())
    rest = [p for p in model.parameters() if p not in attention]
    groups = [
        {"params": rest, "weight_decay": model.config.weight_decay},
        {"params": [*attention], "weight_decay": 0.0},
    ]
    return torch.optim.Adam(groups, lr=model.config.rate, amsgrad=True)


@torch.inference_mode()
def accuracy(model: Classifier, examples: Sequence[Example]) -> float:
    """The share of examples whose class is found."""
    model.eval()
    right = 0
    for group in in_order(examples, 100):
        batch = model.vocabulary.collate(group)
        right += int((model(batch).logits.argmax(-1) == batch.label).sum())
    return right / len(examples)


@torch.inference_mode()
def area(model: Classifier, examples: Sequence[Example]) -> float:
    """The area under the ROC curve of the second class's probability. Raises ModelError unless there are two classes."""
    if len(model.vocabulary.classes) != 2:
        raise ModelError(
            f"the area under the ROC curve is for two classes, not {len(model.vocabulary.classes)}",
            remedy="Choose by accuracy.",
        )
    model.eval()
    scores, second = [], []
    for group in in_order(examples, 100):
        batch = model.vocabulary.collate(group)
        logits = model(batch).logits
        scores += (logits[:, 1] - logits[:, 0]).tolist()
        second += batch.label.tolist()
    try:
        return roc_auc(scores, second)
    except ValueError:
        raise ModelError("dev has examples of one class only: no ROC curve", remedy="Choose by accuracy.") from None


def class_weights(model: Classifier, examples: Sequence[Example]) -> Tensor:
    """[C]: how often the first class occurs for every time that this one does: 1, and for a second class N / N2 - 1 [C]."""
    counts = torch.bincount(model.vocabulary.collate(examples).label, minlength=len(model.vocabulary.classes))
    return counts[0] / counts


def load_classifier(folder: str | Path) -> Classifier:
    """Raises ModelError for anything that is not a whole classifier of lalkit's."""
    remedy = "Give a folder written by `lalkit transparent train`."
    content, tensors = read_fitted(folder, FORMAT, "classifier", remedy)
    vocabulary = Vocabulary(
        *(tuple(content["vocabulary"][k]) for k in ("words", "asked", "classes")), extractive=content["extractive"]
    )
    model = Classifier(from_dict(ClassifierConfig, content["config"], f"{folder}/model.json: config"), vocabulary)
    fill(model, tensors, folder)
    return model.eval()
