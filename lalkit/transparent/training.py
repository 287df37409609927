"""Training a classifier: chosen by its accuracy on dev, resumed with the same bits.

The order of examples depends on (seed, epoch) and nothing else is random after the weights are, so that the state after an
epoch is weights, Adam's moments and a few numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from lalkit import __version__
from lalkit.checkpoint import load_tensors, save_tensors
from lalkit.config import from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.files import write_json
from lalkit.transparent.batch import Vocabulary, in_order, shuffled
from lalkit.transparent.classifier import Classifier
from lalkit.transparent.config import ClassifierConfig
from lalkit.transparent.examples import Dataset, Example

FORMAT = "lalkit-classifier-1"
MOMENTS = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def train(
    config: ClassifierConfig,
    data: Dataset,
    out: str | Path,
    *,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict:
    """Leaves the best classifier in `out`: model.json, its weights, config.json, resume.json. Returns the run's history.

    resume: go on with the run that is there, if one is. Raises ModelError where `out` holds another run.
    """
    out = Path(out)
    there = (out / "resume.json").exists()
    if there and not resume:
        raise ModelError("holds a run already", where=str(out), remedy="Add --resume, or give another --out.")
    torch.manual_seed(config.seed)
    vocabulary = Vocabulary.build(data, config)
    model = Classifier(config, vocabulary)
    optimizer = make_optimizer(model)
    state = {"epoch": 0, "best": -1.0, "seconds": 0.0, "history": []}
    task = {"format": FORMAT, "lalkit": __version__, "data": data.name, "config": to_dict(config)}
    if there:
        state = _load(out, task, model, optimizer)
    else:
        write_json(out / "config.json", task)
    while state["epoch"] < config.epochs and state["best"] < config.stop_at:
        begun = time.perf_counter()
        loss = _epoch(model, optimizer, data.train, state["epoch"])
        score = accuracy(model, data.dev)
        state["epoch"] += 1
        state["seconds"] += time.perf_counter() - begun
        state["history"].append({"epoch": state["epoch"], "loss": loss, "dev": score})
        bar = "#" * (20 * state["epoch"] // config.epochs)
        say(f"{data.name} {config.model} seed {config.seed}: epoch {state['epoch']}/{config.epochs} [{bar:20}] "
            f"loss {loss:.3f}  dev {100 * score:.1f}%  {state['seconds']:.0f} s")  # fmt: skip
        tag = f"{state['epoch']:03d}"
        if score > state["best"]:
            state["best"] = score
            words = {"words": vocabulary.words, "asked": vocabulary.asked, "classes": vocabulary.classes}
            content = {
                **task,
                "dev": score,
                "epoch": state["epoch"],
                "extractive": data.extractive,
                "vocabulary": words,
            }
            save_tensors(out, "model", tag, _tensors(model), content)
        moments = {f"adam.{k}.{n}": v for n, k, v in _moments(model, optimizer)}
        save_tensors(out, "resume", tag, {**_tensors(model), **moments}, {**task, "state": state})
    return state


def _epoch(model: Classifier, optimizer: torch.optim.Optimizer, examples: Sequence[Example], epoch: int) -> float:
    """One pass; the mean loss. Raises ModelError where it is no number."""
    model.train()
    total, batches = 0.0, 0
    for group in shuffled(examples, model.config.batch, model.config.seed, epoch):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(model.vocabulary.collate(group))
        loss.backward()
        optimizer.step()
        total, batches = total + float(loss.detach()), batches + 1
    if not total < float("inf"):
        raise ModelError(f"the loss is {total} in epoch {epoch + 1}", remedy="Lower the rate.")
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


def load_classifier(folder: str | Path) -> Classifier:
    """Raises ModelError for anything that is not a whole classifier of lalkit's."""
    content, tensors = _read(folder, "model")
    vocabulary = Vocabulary(
        *(tuple(content["vocabulary"][k]) for k in ("words", "asked", "classes")), extractive=content["extractive"]
    )
    model = Classifier(from_dict(ClassifierConfig, content["config"], f"{folder}/model.json: config"), vocabulary)
    _fill(model, tensors, folder)
    return model.eval()


def _read(folder: str | Path, name: str) -> tuple[dict, dict]:
    remedy = "Give a folder written by `lalkit transparent train`."
    try:
        content, tensors = load_tensors(folder, name)
    except ModelError as error:
        raise ModelError("no classifier here, or not a whole one", where=error.where, remedy=remedy) from None
    if content.get("format") != FORMAT:
        raise ModelError(f"is no {FORMAT} but {content.get('format')!r}", where=f"{folder}/{name}.json", remedy=remedy)
    return content, tensors


def _fill(model: Classifier, tensors: dict, folder: str | Path) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise ModelError("the weights do not fit the config", where=str(folder), remedy="Train it again.") from None


def _load(out: Path, task: dict, model: Classifier, optimizer: torch.optim.Optimizer) -> dict:
    content, tensors = _read(out, "resume")
    if any(content.get(key) != task[key] for key in ("data", "config")):
        raise ModelError("was started with another config or other data", where=str(out), remedy="Give another --out.")
    _fill(model, {k: v for k, v in tensors.items() if not k.startswith("adam.")}, out)
    for name, p in model.named_parameters():
        kept = {k: tensors[f"adam.{k}.{name}"] for k in MOMENTS if f"adam.{k}.{name}" in tensors}
        if kept:
            optimizer.state[p] = kept
    return content["state"]


def _moments(model: Classifier, optimizer: torch.optim.Optimizer):
    for name, p in model.named_parameters():
        for key, value in optimizer.state.get(p, {}).items():
            yield name, key, value.detach().contiguous()


def _tensors(model: Classifier) -> dict:
    return {k: v.detach().contiguous() for k, v in model.state_dict().items()}
