"""Training: losses, schedule, progress, selection on dev F1 + LAS, exact resume.

A run is a function of its config and seed: the order of sentences depends on (seed, epoch), dropout on (seed, step). The state
saved after every epoch is therefore the weights, Adam's moments and a few numbers, and a killed run that is resumed
ends with the same bits as one that was left alone (with the same number of threads and workers, and without
--max-minutes, whose schedule follows the clock).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from lalkit import __version__
from lalkit.config import Config, from_dict, override, to_dict
from lalkit.errors import ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.scores import evaluate
from lalkit.files import write_json
from lalkit.network.batches import batches
from lalkit.network.parser import Network
from lalkit.network.predict import predict
from lalkit.network.vocabulary import Vocab
from lalkit.training.checkpoint import fill, load_tensors, make_collator, save_model, save_tensors, start_from, trained
from lalkit.training.named import find
from lalkit.training.objective import has_bf16, losses, make_optimizer, rate_factor, terms_of
from lalkit.training.parallel import Team, gather, launched, serve, several
from lalkit.treebank.check import layers_of, subset, trainable
from lalkit.treebank.corpora import load
from lalkit.treebank.tree import Sentence


@dataclass
class State:
    """Where a run is: everything beside weights and moments that the rest of it depends on."""

    epoch: int = 0  # epochs done
    step: int = 0
    planned: int = 0  # epochs the schedule decays over
    scale: float = 1.0  # of the rates, halved on a plateau
    stale: int = 0  # evaluations since the best
    best: float = -1.0
    seconds: float = 0.0  # of training and evaluation
    evaluation: float = 0.0  # of the longest evaluation
    history: list[dict] = field(default_factory=list)


ALONE = Team()


def train(
    config: Config, treebank: str, out: str | Path, *, resume: bool = False, say: Callable[[str], None] = print
) -> dict:
    """Train on a treebank's train part, choose on its dev part; leaves the best parser in `out`. Returns its dev scores.

    Among processes of `accelerate launch` all call it and share the batches; `train.workers` is then their number. Raises
    ModelError where `out` holds another run, or (resume) none that fits the config.
    """
    if several():
        with launched() as team:
            check_folder(Path(out), resume)
            config = override(config, {"train.workers": team.size})
            return Run(config, treebank, Path(out), resume, say if team.rank == 0 else _silent, team).finish()
    task = {"config": to_dict(config), "treebank": treebank, "out": str(out), "resume": resume}
    check_folder(Path(out), resume)
    with gather(config.train.workers, "lalkit.training.loop", task) as team:
        return Run(config, treebank, Path(out), resume, say, team).finish()


def work(task: dict, team: Team) -> None:
    """What a worker other than the first does: the same run, silently, writing nothing."""
    config = from_dict(Config, task["config"])
    Run(config, task["treebank"], Path(task["out"]), task["resume"], _silent, team).finish()


def _silent(text: str) -> None:
    pass


def check_folder(out: Path, resume: bool) -> None:
    if (out / "resume.json").exists() and not resume:
        raise ModelError(
            "holds a run already", where=str(out), remedy="Add --resume to go on with it, or give another --out."
        )
    if (out / "model.json").exists() and not (resume and (out / "config.json").exists()):
        raise ModelError("holds a parser, and no run to go on with", where=str(out), remedy="Give another --out.")


class Run:
    """One training run in a folder: model.json (best so far), resume.json (where it is, and its history)."""

    def __init__(
        self, config: Config, treebank: str, out: Path, resume: bool, say: Callable[[str], None], team: Team = ALONE
    ):
        self.config, self.treebank, self.out, self.say, self.team = config, treebank, out, say, team
        task, inside = config.model.task, config.model.span_attention
        if config.train.head_word_weight and (not inside or inside.attention != "learned" or task != "joint"):
            raise ModelError(
                "train.head_word_weight is for learned label attention inside the span, on both layers of a tree",
                remedy="Leave it 0, or train with --preset minilm-span.",
            )
        train, dev = (load(treebank, split, task=task) for split in ("train", "dev"))
        self.train, left_out = trainable(train.sentences, config.train.max_length, task)
        if train.problems or dev.problems:
            left_out += f", {len(train.problems)} of train and {len(dev.problems)} of dev unread"
        self.dev = subset(layers_of(dev.sentences, task), config.train.dev_sentences)
        self.data = parts_hash([("train", self.train), ("dev", self.dev)])
        self.vocab = Vocab.build(self.train, config.model.encoder.min_count, task)
        torch.manual_seed(config.train.seed)
        self.network = Network(config.model, self.vocab)
        if config.train.start and not (resume and (out / "resume.json").exists()):
            start_from(self.network, self.vocab, find(config.train.start))
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network.to(self.device)
        self.collator = make_collator(config, self.vocab, remember=True)
        self.parameters = [p for p in self.network.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.network, self.parameters, config.train)
        self.state = State(planned=config.train.epochs)
        say(
            f"{treebank}: {len(self.train)} sentences to train on ({left_out}), {len(self.dev)} of dev; "
            f"{sum(p.numel() for p in self.parameters) / 1e6:.1f} M weights trained on {self.device}"
        )
        if resume and (out / "resume.json").exists():
            self._load()
            say(f"going on after epoch {self.state.epoch}")
        elif team.rank == 0:
            write_json(out / "config.json", {"treebank": treebank, "lalkit": __version__, **to_dict(config)})

    def finish(self) -> dict:
        train = self.config.train
        while not self._done():
            self.epoch()
            if self.team.rank == 0:
                if self._done() or self.state.epoch % train.evaluate_every == 0:
                    self.evaluate()
                self._save()
            self.state = State(**self.team.from_first(vars(self.state)))
        best = max(self.state.history, key=quality)
        self.say(f"best after epoch {best['epoch']}: dev {shown(best)}; parser in {self.out}")
        return best

    def _done(self) -> bool:
        train, state = self.config.train, self.state
        return state.epoch >= state.planned or bool(train.stop_after and state.stale >= train.stop_after)

    def epoch(self) -> None:
        """One pass over the training part."""
        state, train = self.state, self.config.train
        self.network.train()
        groups = batches([len(s) for s in self.train], train.batch_tokens, train.seed, state.epoch)
        started, said, sums, words = time.perf_counter(), time.perf_counter(), {}, 0
        for i, group in enumerate(groups):
            progress = (state.epoch + i / len(groups)) / max(state.planned, 1)
            elapsed = state.seconds + time.perf_counter() - started
            terms, progress = self.step([self.train[b] for b in group], progress, elapsed)
            for name, value in terms.items():
                sums[name] = sums.get(name, 0.0) + value
            words += sum(len(self.train[b]) for b in group)
            if time.perf_counter() - said > 15 or i + 1 == len(groups):
                said = time.perf_counter()
                bar = "#" * (20 * (i + 1) // len(groups))
                means = " ".join(f"{name} {value / (i + 1):.3f}" for name, value in sums.items())
                self.say(
                    f"epoch {state.epoch + 1}/{state.planned} [{bar:20}] {means}  {words / (said - started):.0f} words/s  "
                    f"{100 * progress:.0f}%"
                )
            if progress >= 1:
                state.planned = state.epoch + 1  # the time is up: this was the last epoch, whole or not
                break
        state.epoch += 1
        self.means = {name: value / (i + 1) for name, value in sums.items()}
        state.seconds += time.perf_counter() - started

    def step(
        self, sentences: Sequence[Sentence], progress: float, elapsed: float = 0.0
    ) -> tuple[dict[str, float], float]:
        """One update. progress: the share of the planned epochs that is done; elapsed: seconds of this run so far.

        Returns the terms of the loss over all workers, and the progress by which the rates were set: under a time limit
        it is that of the first worker's clock, where that is further on.
        """
        train, state = self.config.train, self.state
        torch.manual_seed((train.seed << 32) + state.step * self.team.size + self.team.rank)
        self.optimizer.zero_grad(set_to_none=True)
        terms = self.gradients(self.team.share(sentences), len(sentences), self._clock(elapsed))
        progress = max(progress, terms.pop("clock"))
        if not math.isfinite(terms["loss"]):
            raise ModelError(
                f"the loss is {terms['loss']} at step {state.step}", remedy="Lower train.rate or train.encoder_rate."
            )
        self.team.add_gradients(self.parameters)
        if train.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, train.clip)
        factor = rate_factor(train, state.step, progress) * state.scale
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * factor
        self.optimizer.step()
        state.step += 1
        return terms, progress

    def _clock(self, elapsed: float) -> float:
        """The share of the time for training that is over; time for the last evaluation is kept. 0 without a limit."""
        limit = self.config.train.max_minutes * 60
        if not limit or self.team.rank:
            return 0.0
        evaluation = self.state.evaluation or 0.03 * limit
        return elapsed / max(limit - 1.1 * evaluation, 1.0)

    def gradients(self, share: Sequence[Sentence], size: int, clock: float = 0.0) -> dict[str, float]:
        """Adds this worker's part of the gradient of the mean over `size` sentences; returns the terms over all workers,
        and the first worker's clock, which travels with them."""
        terms = dict.fromkeys(terms_of(self.config.train), 0.0)
        for part in in_parts(share, self.config.train.part_tokens):
            batch = self.collator(part, gold=True).to(self.device)
            autocast = self.config.train.autocast and has_bf16(self.device)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=autocast):
                found = losses(self.network, batch, self.config.train)
            weight = len(part) / size
            (found["loss"] * weight).backward()
            terms = {name: terms[name] + float(value.detach()) * weight for name, value in found.items()}
        terms["clock"] = clock
        return dict(zip(terms, self.team.add(list(terms.values()))))

    def evaluate(self) -> None:
        """Dev scores; keeps the parser if they are the best so far."""
        state, started = self.state, time.perf_counter()
        found = [p.sentence for p in predict(self.network, self.collator, self.dev, lam=self.config.train.lam)]
        scores = evaluate(self.dev, found).summary()
        spent = time.perf_counter() - started
        state.seconds, state.evaluation = state.seconds + spent, max(state.evaluation, spent)
        state.history.append(
            {"epoch": state.epoch, "step": state.step, "seconds": round(state.seconds, 1), **self.means, **scores}
        )
        self.say(f"epoch {state.epoch}: dev {shown(scores)}  {state.seconds / 60:.1f} min")
        if quality(scores) > state.best:
            state.best, state.stale = quality(scores), 0
            info = {"treebank": self.treebank, "lalkit": __version__, "dev": scores, "epoch": state.epoch}
            save_model(self.out, self.network, self.config, self.vocab, f"{state.step:07d}", info)
        else:
            state.stale += 1
            if self.config.train.decay == "plateau" and state.stale % self.config.train.patience == 0:
                state.scale /= 2

    def _save(self) -> None:
        tensors = {f"model.{k}": v for k, v in trained(self.network).items()}
        for name, p in self.network.named_parameters():
            for key, value in self.optimizer.state.get(p, {}).items():
                tensors[f"adam.{key}.{name}"] = value.detach().cpu().contiguous()
        known = {"treebank": self.treebank, "data_sha256": self.data, "config": to_dict(self.config)}
        save_tensors(self.out, "resume", f"{self.state.step:07d}", tensors, {**known, "state": vars(self.state)})

    def _load(self) -> None:
        content, tensors = load_tensors(self.out, "resume")
        if from_dict(Config, content.get("config")) != self.config or content.get("treebank") != self.treebank:
            raise ModelError(
                "was started with another config or treebank",
                where=str(self.out),
                remedy="Resume with the settings in its config.json, or give another --out.",
            )
        if content.get("data_sha256", self.data) != self.data:
            raise ModelError(
                f"was started with other sentences than {self.treebank} has now",
                where=str(self.out),
                remedy="Put the treebank back as it was, or give another --out.",
            )
        fill(self.network, {k[6:]: v for k, v in tensors.items() if k.startswith("model.")}, str(self.out))
        for name, p in self.network.named_parameters():
            prefix = {key: f"adam.{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
            if prefix["step"] in tensors:
                self.optimizer.state[p] = {
                    key: tensors[full].to("cpu" if key == "step" else self.device) for key, full in prefix.items()
                }
        try:
            self.state = State(**content["state"])
        except (KeyError, TypeError):
            raise ModelError(
                "does not say how far it is", where=f"{self.out}/resume.json", remedy="Train into another --out."
            ) from None


def in_parts(sentences: Sequence[Sentence], words: int) -> list[list[Sentence]]:
    """A batch as parts that are computed one after the other, each of at most so many words with padding (0: one part)."""
    if not words:
        return [list(sentences)] if sentences else []
    return [[sentences[i] for i in group] for group in batches([len(s) for s in sentences], words)]


def quality(scores: dict) -> float:
    """By which a parser is chosen: F1 + LAS, or what there is of them (UAS where arcs have no labels)."""
    arcs = scores["las"] if scores["las"] is not None else scores["uas"]
    return (scores["f1"] or 0.0) + (arcs or 0.0)


def shown(scores: dict) -> str:
    names = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
    return " ".join(f"{name} {scores[key]:.2f}" for key, name in names.items() if scores[key] is not None)


if __name__ == "__main__":  # a worker, started by `gather`
    serve(work)
