"""Training of a classifier, chosen on dev by its accuracy or by its area under the ROC curve (see `frame.fit`)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lalkit.companions.classifiers.classifier import Classifier, ClassifierConfig, Vocabulary
from lalkit.companions.classifiers.examples import Dataset, Example
from lalkit.companions.frame import fill, fit, in_order, one_epoch, read_run
from lalkit.config import from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.statistics import roc_auc

logger = logging.getLogger(__name__)

FORMAT = "lalkit-classifier-1"
WINDOW = 50  # batches in which examples are sorted by length, so that there is little padding


def train(config: ClassifierConfig, data: Dataset, out: str | Path, *, resume: bool = False) -> dict:
    """Leave the best classifier in `out`, and return the state and history of the run (see `frame.fit`).

    resume: Go on with the run in `out`, if there is one. Raises ModelError if `out` holds a run with other settings or data.
    """
    torch.manual_seed(config.seed)
    vocabulary = Vocabulary.build(data, config)
    model = Classifier(config, vocabulary)
    if config.vectors and not (resume and (Path(out) / "resume.json").exists()):
        begin_with(model, config.vectors)
    if config.balanced:
        model.weight = class_weights(model, data.train)
    attention = set(model.attention.parameters())
    groups = [
        {"params": [p for p in model.parameters() if p not in attention], "weight_decay": config.weight_decay},
        {"params": [*attention], "weight_decay": 0.0},  # [C]
    ]
    optimizer = torch.optim.Adam(groups, lr=config.rate, amsgrad=True)
    score = {"accuracy": accuracy, "roc_auc": area}[config.choose_by]
    known = parts_hash([("train", data.train), ("dev", data.dev), ("extractive", [data.extractive])])
    words = {"words": vocabulary.words, "asked": vocabulary.asked, "classes": vocabulary.classes}

    def run_epoch(number: int) -> float:
        batches = shuffled(data.train, config.batch, config.seed, number)
        return one_epoch(optimizer, batches, lambda group: model.loss(vocabulary.collate(group)))

    return fit(
        model, optimizer, out,
        {"format": FORMAT, "data": data.name, "data_sha256": known, "config": to_dict(config)},
        epochs=config.epochs, run_epoch=run_epoch, score=lambda: score(model, data.dev),
        kept={"extractive": data.extractive, "vocabulary": words}, stop_at=config.stop_at, resume=resume,
        name=f"{data.name} {config.model} seed {config.seed}",
    )  # fmt: skip


def shuffled(examples: Sequence[Example], size: int, seed: int, epoch: int) -> Iterator[list[Example]]:
    """Yield the batches of an epoch in a random order. Examples of similar length are together.

    The batches depend on the seed and on the number of the epoch alone.
    """
    rng = np.random.default_rng([seed, epoch])
    groups = []
    for window in in_order(rng.permutation(len(examples)).tolist(), size * WINDOW):
        groups += in_order(sorted(window, key=lambda i: len(examples[i].words)), size)
    for g in rng.permutation(len(groups)):
        yield [examples[i] for i in groups[g]]


@torch.inference_mode()
def accuracy(model: Classifier, examples: Sequence[Example]) -> float:
    """Return the share of examples whose class is predicted rightly."""
    logits, labels = _predicted(model, examples)
    return int((logits.argmax(-1) == labels).sum()) / len(examples)


@torch.inference_mode()
def area(model: Classifier, examples: Sequence[Example]) -> float:
    """Return the area under the ROC curve of the second class. Raises ModelError unless there are two classes."""
    if (count := len(model.vocabulary.classes)) != 2:
        raise ModelError(f"the area under the ROC curve is for two classes, not {count}", remedy="Choose by accuracy.")
    logits, labels = _predicted(model, examples)
    try:
        return roc_auc((logits[:, 1] - logits[:, 0]).tolist(), labels.tolist())
    except ValueError:
        raise ModelError("dev has examples of one class only: no ROC curve", remedy="Choose by accuracy.") from None


def _predicted(model: Classifier, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Return the logits [N, C] and the right classes [N]."""
    model.eval()
    batches = [model.vocabulary.collate(group) for group in in_order(examples, 100)]
    return torch.cat([model(batch).logits for batch in batches]), torch.cat([batch.label for batch in batches])


def class_weights(model: Classifier, examples: Sequence[Example]) -> Tensor:
    """Return the weight of each class [C]: how often the first class occurs, divided by how often this one does.

    So the first class has 1, and a second one N / N2 - 1 [C].
    """
    numbers = Counter(e.label for e in examples)
    counts = torch.tensor([numbers[name] for name in model.vocabulary.classes])
    return counts[0] / counts


@torch.no_grad()
def begin_with(model: Classifier, file: str) -> None:
    """Give the words of a new classifier the vectors that a text file has for them: on each line a word and its numbers.

    The first line may tell the numbers of words and of dimensions, as in fastText's files. Words that the file lacks keep their
    random vectors (in the authors' program they are zero). Raises ModelError if the file has no vector of this size for any word.
    """
    size, words = model.config.embedding, {*model.vocabulary.words, *model.vocabulary.asked}
    vectors, remedy = {}, f"Give a text file of GloVe or fastText, and --set embedding=N as its size (now {size})."
    try:
        with open(file, encoding="utf-8", newline="\n") as lines:
            for line in lines:  # such files are large: one line at a time
                word, *numbers = line.rstrip().rsplit(" ", size)
                if word in words and len(numbers) == size:
                    vectors[word] = torch.tensor([float(number) for number in numbers])
    except (OSError, ValueError) as error:
        raise ModelError(f"has no vectors that can be read ({error})", where=file, remedy=remedy) from None
    if not vectors:
        raise ModelError(f"has no vector of {size} numbers for any word of the data", where=file, remedy=remedy)
    sides = (model.words, model.asked) if model.paired else (model.words,)
    for embedding, ids in zip(sides, model.vocabulary.ids):
        for word in ids.keys() & vectors.keys():
            embedding.weight[ids[word]] = vectors[word]
    logger.info("%s: vectors for %d of %d words", file, len(vectors), len(words))


def load_classifier(folder: str | Path) -> Classifier:
    """Return the classifier of a run. Raises ModelError unless the folder holds a whole classifier of lalkit."""
    remedy = "Give a folder written by `lalkit transparent train`."
    content, tensors = read_run(folder, FORMAT, "classifier", remedy)
    words, asked, classes = (tuple(content["vocabulary"][name]) for name in ("words", "asked", "classes"))
    config = from_dict(ClassifierConfig, content["config"], f"{folder}/model.json: config")
    return fill(Classifier(config, Vocabulary(words, asked, classes, content["extractive"])), tensors, folder)
