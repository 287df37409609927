"""Train a parser: the loop over epochs, the choice of the best parser on dev, and exact resume.

A run depends only on its config and its seed: the order of the sentences comes from (seed, epoch), and dropout from
(seed, step). The state saved after every epoch therefore holds the weights, Adam's moments and a few numbers. A killed run
that is resumed ends with the same bits as an undisturbed run, if the number of threads is the same. A run with a time limit
is an exception, because its schedule follows the clock.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch.optim.swa_utils import get_ema_multi_avg_fn

from lalkit import __version__
from lalkit.chart import machine
from lalkit.config import Config, from_dict, to_dict
from lalkit.errors import ModelError
from lalkit.evaluation import provenance
from lalkit.evaluation.scores import evaluate
from lalkit.files import check_form, locked_folder, write_json
from lalkit.network.encoder import LARGEST, check_numbers, fill
from lalkit.network.model import check_lengths, find_device
from lalkit.training import checkpoint
from lalkit.training.named import find
from lalkit.training.objective import MAX_LENGTH, TERMS, add_gradient, begin, groups_of, milliseconds, rate_factor
from lalkit.treebank.check import lessons
from lalkit.treebank.corpora import subset
from lalkit.treebank.text import habits
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)
PATIENCE, STOP_AFTER = 5, 20  # stale evaluations after which a plateau halves the learning rates, and ends the run [R]
LOWER_RATES = "Lower train.rate or train.encoder_rate."


def train(config: Config, treebank: str, out: str | Path, *, resume: bool = False, device: str = "auto") -> dict:
    """Train on a treebank's train part and keep the parser that is best on its dev part. Return its dev scores.

    >>> lalkit.train(preset("minilm"), "sample", "runs/first")  # `from lalkit.config import preset`  # doctest: +SKIP

    Args:
        config: All settings.
        treebank: A treebank's name or folder, or a mixture of them.
        out: The folder of the run. It will hold the best parser and the state from which the run can be resumed.
        resume: Continue the run in `out`, if there is one.
        device: Where to train: cpu or cuda; auto is cuda if there is one, else cpu.

    Raises:
        ParameterError: There is no such device.
        ModelError: `out` holds another run, or (resume) a run that does not fit the config.
        LalkitError: Another process writes into `out`.
    """
    out = Path(out)
    find_device(device)
    with locked_folder(out):
        begun = (out / "resume.json").exists()
        if begun and not resume:
            remedy = "Add --resume to continue it, or give another --out."
            raise ModelError("holds a run already", where=str(out), remedy=remedy)
        if (out / "model.json").exists() and not begun:
            raise ModelError("holds a parser, but no run to continue", where=str(out), remedy="Give another --out.")
        return Training(config, treebank, out, resume, device).finish()


@dataclass
class State:
    """The progress of a run: everything on which the rest of the run depends, besides weights and moments."""

    planned: PositiveInt  # the learning rate decays over this many epochs
    epoch: NonNegativeInt = 0  # epochs that are done
    step: NonNegativeInt = 0
    scale: NonNegativeFloat = 1.0  # of the learning rates; halved on a plateau
    stale: NonNegativeInt = 0  # evaluations since the best one
    best: float = -1.0
    seconds: NonNegativeFloat = 0.0  # of training and evaluation
    evaluation: NonNegativeFloat = 0.0  # seconds of the longest evaluation
    history: list[dict] = field(default_factory=list)


class Training:
    """One training run in a folder: model.json is the best parser so far, resume.json the state and the history."""

    def __init__(self, config: Config, treebank: str, out: Path, resume: bool = False, device: str = "auto"):
        task = config.model.task
        self.lessons = lessons(treebank, task, MAX_LENGTH)
        self.train, self.dev = self.lessons.sentences, subset(self.lessons.dev, config.train.dev_sentences)
        self.data = provenance.parts_hash([("train", self.train), ("dev", self.dev)])
        self.model, self.optimizer = begin(config, self.train, device)
        self.parameters = [p for p in self.model.network.parameters() if p.requires_grad]
        self.config, self.treebank, self.out = config, treebank, out
        check_lengths(self.model, [*self.train, *self.dev])
        self.state, self.averages = State(planned=config.train.epochs), []
        logger.info(
            f"{treebank}: {len(self.train)} sentences to train on ({self.lessons.left_out}), {len(self.dev)} of dev; "
            f"{self.model.network.size() / 1e6:.1f} M weights are trained on {self.model.device}"
        )
        if resume and (out / "resume.json").exists():
            self._load()
            logger.info(f"the run continues after epoch {self.state.epoch}")
            return
        if config.train.start:
            checkpoint.start_from(self.model, find(config.train.start))
        self._keep_averages()
        write_json(out / "config.json", {"treebank": treebank, "lalkit": __version__, **to_dict(config)})

    def finish(self) -> dict:
        """Train to the end. Return the dev scores of the best epoch.

        An epoch is saved before it is scored, so that no error or kill during an evaluation loses it.
        """
        while self._unscored() or not self._done():
            if not self._unscored():
                self.epoch()
                tensors = checkpoint.trained(self.model.network)
                check_numbers(tensors, LARGEST, f"after step {self.state.step}", LOWER_RATES)
                self._save()
            self.evaluate()
            self._save(same_weights=True)
        best = max(self.state.history, key=quality)
        logger.info("best after epoch %d: dev %s; parser in %s", best["epoch"], _shown(best), self.out)
        return best

    def _done(self) -> bool:
        stop = self.config.train.decay == "plateau" and self.state.stale >= STOP_AFTER
        return self.state.epoch >= self.state.planned or stop

    def _unscored(self) -> bool:
        """Return whether the last epoch has its row in the history, but no dev scores yet."""
        return bool(self.state.history) and "f1" not in self.state.history[-1]

    def epoch(self) -> None:
        """Train on every sentence once, or as often as the mixture says. All sentences of a batch have the same layers."""
        state, train = self.state, self.config.train
        self.model.network.train()
        groups = groups_of(self.lessons, train, state.epoch)
        started, sums = time.perf_counter(), dict.fromkeys(TERMS, 0.0)
        words = sum(len(s) for group in groups for s in group)
        with machine.progress(total=words, desc=f"epoch {state.epoch + 1}/{state.planned}", unit=" words") as bar:
            for i, group in enumerate(groups):
                done = (state.epoch + i / len(groups)) / max(state.planned, 1)
                done = max(done, self._clock(state.seconds + time.perf_counter() - started))
                sums = {name: sums[name] + value for name, value in self.step(group, done).items()}
                means = {name: value / (i + 1) for name, value in sums.items()}
                bar.set_postfix({name: f"{value:.3f}" for name, value in means.items()}, refresh=False)
                bar.update(sum(map(len, group)))
                if done >= 1:
                    state.planned = state.epoch + 1  # the time is over: this is the last epoch, complete or not
                    break
        state.epoch += 1
        state.seconds += time.perf_counter() - started
        state.history.append({"epoch": state.epoch, "step": state.step, "seconds": state.seconds, **means})

    def step(self, sentences: Sequence[Sentence], done: float) -> dict[str, float]:
        """Update the weights once by a batch, and return the terms of its loss. Raises ModelError if the loss is not finite.

        done: The share of the planned epochs, or of the time limit, that is over. It sets the learning rates.
        """
        train, state = self.config.train, self.state
        torch.manual_seed((train.seed << 32) + state.step)
        self.optimizer.zero_grad(set_to_none=True)
        terms = {name: float(value.detach()) for name, value in add_gradient(self.model, sentences).items()}
        if not math.isfinite(terms["loss"]):
            raise ModelError(f"the loss is {terms['loss']} at step {state.step}", remedy=LOWER_RATES)
        if train.decay == "linear":
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        factor = rate_factor(train, state.step, done) * state.scale
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * factor
        self.optimizer.step()
        if self.averages:  # early steps keep less, so that the weights of the start are soon forgotten
            keep = min(train.average, (1 + state.step) / (10 + state.step))
            get_ema_multi_avg_fn(keep)(self.averages, self.parameters, None)
        state.step += 1
        return terms

    def _clock(self, elapsed: float) -> float:
        """Return the share of the training time that is over; 0 without a limit. Time for the last evaluation is reserved."""
        limit = self.config.train.max_minutes * 60
        evaluation = self.state.evaluation or 0.03 * limit
        return elapsed / max(limit - 1.1 * evaluation, 1.0) if limit else 0.0

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Give the network the average of its weights inside the `with` block, if the config asks for one."""
        weights = [p.detach().clone() for p in self.parameters] if self.averages else []
        try:
            self._fill(self.averages)
            yield
        finally:
            self._fill(weights)

    def _keep_averages(self) -> None:
        """Begin the average with the weights as they are, if the config asks for one."""
        self.averages = [p.detach().clone() for p in self.parameters if self.config.train.average]

    @torch.no_grad()
    def _fill(self, weights: Sequence[torch.Tensor]) -> None:
        for p, values in zip(self.parameters, weights):
            p.copy_(values)

    def evaluate(self) -> None:
        """Score the parser on dev, and save it if it is the best so far."""
        state, train, started = self.state, self.config.train, time.perf_counter()
        with self._averaged():
            parses = [p.sentence for p in self.model.parse(self.dev)]
        scores = evaluate(self.dev, parses, arc_labels=self.model.vocab.arc_labels).summary()
        spent = time.perf_counter() - started
        state.seconds, state.evaluation = state.seconds + spent, max(state.evaluation, spent)
        row = state.history[-1]
        means = " ".join(f"{name} {row[name]:.3f}" for name in TERMS)
        row.update(seconds=round(state.seconds, 1), **scores)
        logger.info(f"epoch {state.epoch}/{state.planned}: {means}  dev {_shown(scores)}  {state.seconds / 60:.1f} min")
        if quality(scores) > state.best:
            state.best, state.stale = quality(scores), 0
            info = {"treebank": self.treebank, "lalkit": __version__, "dev": scores, "epoch": state.epoch}
            info |= {"threads": torch.get_num_threads(), **habits(self.train)}
            with self._averaged():
                checkpoint.save_model(replace(self.model, info=info), self.out, f"{state.step:07d}")
        else:
            state.stale += 1
            if train.decay == "plateau" and state.stale % PATIENCE == 0:
                state.scale /= 2

    def _save(self, same_weights: bool = False) -> None:
        """Save the state. same_weights: those on the disk are the present ones, and are not written again."""
        tensors: dict[str, torch.Tensor] = {}
        if not same_weights:
            tensors |= {f"model.{k}": v for k, v in checkpoint.trained(self.model.network).items()}
            tensors |= checkpoint.adam_tensors(self.model.network, self.optimizer)
        if self.averages and not same_weights:
            with self._averaged():
                tensors |= {f"average.{k}": v.clone() for k, v in checkpoint.trained(self.model.network).items()}
        content = {"treebank": self.treebank, "data_sha256": self.data, "config": to_dict(self.config)}
        content["state"] = vars(self.state)
        checkpoint.save_tensors(self.out, "resume", f"{self.state.step:07d}", tensors, content)

    def _load(self) -> None:
        content, tensors = checkpoint.load_tensors(self.out, "resume")
        file = f"{self.out}/resume.json"
        config = from_dict(Config, content.get("config"), f"{file}: config")
        then = config, content.get("treebank"), content.get("data_sha256")
        now = self.config, self.treebank, self.data
        if then != now:
            changed = [name for name, a, b in zip(("settings", "treebank", "sentences"), then, now) if a != b]
            remedy = "Resume with the settings in its config.json and the treebank as it was, or give another --out."
            raise ModelError(f"was started with other {changed[0]}", where=str(self.out), remedy=remedy)
        for part in ("average.", "model.") if self.config.train.average else ("model.",):
            weights = {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
            fill(self.model.network, weights, str(self.out), checkpoint.RETRAIN, checkpoint.trained(self.model.network))
            if part == "average.":
                self._keep_averages()
        checkpoint.restore_adam(self.model.network, self.optimizer, tensors, f"{self.out}/{content['weights']}")
        try:
            check_form(content["state"], State)
            self.state = State(**content["state"])
            scored = self.state.history[: -1 if self._unscored() else None]
            if (self._done() and not self.state.history) or not (
                all(row["epoch"] and quality(row) >= 0 for row in scored)
                and all(name in row for row in self.state.history for name in TERMS)
            ):
                raise ValueError("an epoch has no scores")
        except (KeyError, TypeError, ValueError) as error:
            problem = f"does not say how far it is: {error}"
            raise ModelError(problem, where=file, remedy="Train into another --out.") from None


def estimate(config: Config, treebank: str) -> str:
    """Return a text about the needs of a run: weights, memory, and the time of an epoch without evaluation. Writes nothing.

    The largest batch of the first epoch, three others and one update are computed on the GPU if there is one. Time is
    estimated per word, padding included. Raises ModelError and CorpusError where training would raise them.
    """
    material = lessons(treebank, config.model.task, MAX_LENGTH)
    model, optimizer = begin(config, material.sentences)
    spent = partial(milliseconds, device=model.device.type)
    model.network.train()
    groups = sorted(groups_of(material, config.train, 0), key=padded)
    add_gradient(model, groups[-1])  # this also compiles the kernels
    optimizer.step()  # the first update creates the moments
    chosen = [groups[len(groups) * k // 6] for k in (1, 3, 5)]
    a_word = sum(spent(partial(add_gradient, model, group)) for group in chosen) / sum(map(padded, chosen))
    seconds = (a_word * sum(map(padded, groups)) + len(groups) * spent(optimizer.step)) / 1000
    peak = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else provenance.peak_memory()
    every, trained = sum(p.numel() for p in model.network.parameters()), model.network.size()
    seen, epochs = sum(len(sentence) for group in groups for sentence in group), config.train.epochs
    return (
        f"weights     {every / 1e6:.1f} M, of which {trained / 1e6:.1f} M are trained\n"
        f"memory      {f'{peak / 1000:.1f} GB' if peak else 'not known here'}; less with a lower train.batch_tokens\n"
        f"an epoch    about {seconds / 60:.1f} minutes: {len(groups):,} steps, {seen:,} words; "
        f"{epochs} epochs take {seconds * epochs / 3600:.1f} hours, without evaluation"
    )


def padded(batch: Sequence[Sentence]) -> int:
    """Return the number of words of a batch, with padding."""
    return len(batch) * max(map(len, batch))


def quality(scores: dict) -> float:
    """Return F1 + LAS, by which the best parser is chosen. A missing score counts 0, and UAS stands in for a missing LAS.

    In a mixture F1 is over the dev sentences with constituents (silver ones of GUM, too), and LAS over those with arcs.
    """
    arcs = scores["las"] if scores["las"] is not None else scores["uas"]
    return (scores["f1"] or 0.0) + (arcs or 0.0)


def _shown(scores: dict) -> str:
    names = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
    return " ".join(f"{name} {scores[key]:.2f}" for key, name in names.items() if scores[key] is not None)
