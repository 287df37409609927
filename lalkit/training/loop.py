"""Train a parser: the loop over epochs, the choice of the best parser on dev, and exact resume.

A run depends only on its config and its seed: the order of the sentences comes from (seed, epoch), and dropout from
(seed, step). The state saved after every epoch therefore holds the weights, Adam's moments and a few numbers. A killed run
that is resumed ends with the same bits as an undisturbed run, if the numbers of threads and workers are the same. A run
with a time limit is an exception, because its schedule follows the clock.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch.optim.swa_utils import get_ema_multi_avg_fn

from lalkit import __version__
from lalkit.chart import machine
from lalkit.chart.joint_torch import available_bytes
from lalkit.chart.machine import progress
from lalkit.config import Config, read_saved, to_dict
from lalkit.errors import LalkitError, ModelError
from lalkit.evaluation.provenance import parts_hash
from lalkit.evaluation.scores import evaluate
from lalkit.files import check_form, locked_folder, write_json
from lalkit.network.predict import predict
from lalkit.training import checkpoint
from lalkit.training.named import find
from lalkit.training.objective import Learner, check_heads, in_parts, rate_factor, terms_of
from lalkit.training.parallel import Team, gather, launched, serve, several
from lalkit.treebank.check import lessons, subset
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)
ALONE = Team()
PATIENCE = 5  # evaluations without a better one, after which a plateau halves the learning rates [R]
LOWER_RATES = "Lower train.rate or train.encoder_rate."


def train(config: Config, treebank: str, out: str | Path, *, resume: bool = False) -> dict:
    """Train on a treebank's train part and keep the parser that is best on its dev part. Return its dev scores.

    With `accelerate launch` every process calls this function; they share each batch, and `train.workers` becomes their
    number.

    Args:
        config: All settings.
        treebank: A treebank's name or folder, or a mixture of them.
        out: The folder of the run. It will hold the best parser and the state from which the run can be resumed.
        resume: Continue the run in `out`, if there is one.

    Raises:
        ModelError: `out` holds another run, or (resume) a run that does not fit the config.
    """
    out = Path(out)
    if several():
        with launched() as team, _claimed(out, resume, team):
            return Run(config, treebank, out, resume, team).finish()
    task = {"config": to_dict(config), "treebank": treebank, "out": str(out), "resume": resume}
    with _claimed(out, resume, ALONE), gather(config.train.workers, "lalkit.training.loop", task) as team:
        return Run(config, treebank, out, resume, team).finish()


def work(task: dict, team: Team) -> None:
    """Do the same run as the first worker, without messages and files."""
    Run(read_saved(task["config"]), task["treebank"], Path(task["out"]), task["resume"], team).finish()


@contextmanager
def _claimed(out: Path, resume: bool, team: Team) -> Iterator[None]:
    """Keep every other training out of the folder. Raises LalkitError in all workers if it is in use, or holds another run."""
    refusal = None
    with ExitStack() as stack:
        if team.rank == 0:
            try:
                stack.enter_context(locked_folder(out))
                _check_folder(out, resume)
            except LalkitError as error:
                refusal = error
        if refusal := team.from_first(refusal):
            raise refusal
        yield


def _check_folder(out: Path, resume: bool) -> None:
    """Raise ModelError for a run that is not to be continued, and for a parser without a run: it would be overwritten."""
    run = (out / "resume.json").exists()
    if run and not resume:
        remedy = "Add --resume to continue it, or give another --out."
        raise ModelError("holds a run already", where=str(out), remedy=remedy)
    if (out / "model.json").exists() and not run:
        raise ModelError("holds a parser, but no run to continue", where=str(out), remedy="Give another --out.")


@dataclass
class State:
    """How far a run is: everything besides weights and moments on which the rest of the run depends."""

    planned: PositiveInt  # the learning rate decays over this many epochs
    epoch: NonNegativeInt = 0  # epochs that are done
    step: NonNegativeInt = 0
    scale: NonNegativeFloat = 1.0  # of the learning rates; halved on a plateau
    stale: NonNegativeInt = 0  # evaluations since the best one
    best: float = -1.0
    seconds: NonNegativeFloat = 0.0  # of training and evaluation
    evaluation: NonNegativeFloat = 0.0  # seconds of the longest evaluation
    history: list[dict] = field(default_factory=list)


@dataclass
class Scores:
    """What the files of a run hold at least of its scores on one part of the treebank."""

    f1: float | None
    exact: float | None
    uas: float | None
    las: float | None
    tag_accuracy: float | None


@dataclass
class Epoch(Scores):
    """What the history of a run holds at least of an epoch that was scored."""

    epoch: PositiveInt


class Run(Learner):
    """One training run in a folder: model.json is the best parser so far, resume.json the state and the history."""

    def __init__(self, config: Config, treebank: str, out: Path, resume: bool = False, team: Team = ALONE):
        config = replace(config, train=replace(config.train, workers=team.size))
        task = config.model.task
        check_heads(config)
        self.lessons = lessons(treebank, task, config.train.max_length)
        self.train, self.dev = self.lessons.sentences, subset(self.lessons.dev, config.train.dev_sentences)
        self.data = parts_hash([("train", self.train), ("dev", self.dev)])
        super().__init__(config, self.train)
        self.treebank, self.out, self.team = treebank, out, team
        if task != "constituents":  # only joint charts grow with the cube of the words
            self._check_charts()
        self.state, self.averages = State(planned=config.train.epochs), []
        self._log(
            f"{treebank}: {len(self.train)} sentences to train on ({self.lessons.left_out}), {len(self.dev)} of dev; "
            f"{sum(p.numel() for p in self.parameters) / 1e6:.1f} M weights are trained on {self.device}"
        )
        if resume and (out / "resume.json").exists():
            self._load()
            self._log(f"the run continues after epoch {self.state.epoch}")
            return
        if config.train.start:
            checkpoint.start_from(self.network, self.vocab, find(config.train.start))
        self._keep_averages()
        if team.rank == 0:
            write_json(out / "config.json", {"treebank": treebank, "lalkit": __version__, **to_dict(config)})

    def _check_charts(self) -> None:
        """Raise TooLongError if a sentence of train or dev is too long for the memory of the first worker."""
        limit = self.team.from_first(available_bytes(self.device))
        for sentence in (max(sentences, key=len) for sentences in (self.train, self.dev)):
            if (needed := machine.chart_bytes(len(sentence), torch.float32.itemsize)) > machine.SMALL:
                machine.check_fits(len(sentence), needed, limit, sentence.where)

    def finish(self) -> dict:
        """Train to the end. Return the dev scores of the best epoch.

        An epoch is saved before it is scored, so that no error or kill during an evaluation loses it.
        """
        self._share_state()  # a slow worker may have read resume.json after the first one scored its last epoch
        while self._unscored() or not self._done():
            if not self._unscored():
                self.epoch()
                tensors = checkpoint.trained(self.network)
                checkpoint.check_numbers(tensors, checkpoint.LARGEST, f"after step {self.state.step}", LOWER_RATES)
                if self.team.rank == 0:
                    self._save()
            if self.team.rank == 0 and self._unscored():
                self.evaluate()
                self._save(same_weights=True)
            self._share_state()
        best = max(self.state.history, key=quality)
        self._log(f"best after epoch {best['epoch']}: dev {_shown(best)}; parser in {self.out}")
        return best

    def _share_state(self) -> None:
        self.state = State(**self.team.from_first(vars(self.state)))

    def _done(self) -> bool:
        train, state = self.config.train, self.state
        return state.epoch >= state.planned or bool(train.stop_after and state.stale >= train.stop_after)

    def _unscored(self) -> bool:
        """Return whether the last epoch has its row in the history, but no dev scores yet."""
        return bool(self.state.history) and "f1" not in self.state.history[-1]

    def epoch(self) -> None:
        """Train on every sentence once, or as often as the mixture says. All sentences of a batch have the same layers."""
        state, train = self.state, self.config.train
        self.network.train()
        groups = self.batches(self.lessons, state.epoch)
        started, sums = time.perf_counter(), dict.fromkeys(terms_of(train), 0.0)
        words = sum(len(s) for group in groups for s in group)
        bar = progress(
            total=words, desc=f"epoch {state.epoch + 1}/{state.planned}", unit=" words", disable=self.team.rank > 0
        )
        for i, group in enumerate(groups):
            done = (state.epoch + i / len(groups)) / max(state.planned, 1)
            elapsed = state.seconds + time.perf_counter() - started
            terms, done = self.step(group, done, elapsed)
            sums = {name: value + terms[name] for name, value in sums.items()}
            means = {name: value / (i + 1) for name, value in sums.items()}
            bar.set_postfix({name: f"{value:.3f}" for name, value in means.items()}, refresh=False)
            bar.update(sum(map(len, group)))
            if done >= 1:
                state.planned = state.epoch + 1  # the time is over: this is the last epoch, complete or not
                break
        bar.close()
        state.epoch += 1
        state.seconds += time.perf_counter() - started
        if self._done() or state.epoch % train.evaluate_every == 0:
            state.history.append({"epoch": state.epoch, "step": state.step, "seconds": state.seconds, **means})

    def step(self, sentences: Sequence[Sentence], done: float, elapsed: float = 0.0) -> tuple[dict[str, float], float]:
        """Make one update of the weights.

        Args:
            sentences: The batch, of all workers together.
            done: The share of the planned epochs that is done.
            elapsed: Seconds of this run so far.

        Returns:
            The terms of the loss over all workers, and the progress by which the learning rates were set. Under a time
            limit this is the progress of the first worker's clock, if that is further on.
        """
        train, state = self.config.train, self.state
        torch.manual_seed((train.seed << 32) + state.step * self.team.size + self.team.rank)
        self.optimizer.zero_grad(set_to_none=True)
        terms = self.gradients(self.team.share(sentences), len(sentences), self._clock(elapsed))
        done = max(done, terms.pop("clock"))
        if not math.isfinite(terms["loss"]):
            raise ModelError(f"the loss is {terms['loss']} at step {state.step}", remedy=LOWER_RATES)
        self.team.add_gradients(self.parameters)
        if train.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, train.clip)
        factor = rate_factor(train, state.step, done) * state.scale
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * factor
        self.optimizer.step()
        if self.averages:  # early steps keep less, so that the weights of the start are soon forgotten
            keep = min(train.average, (1 + state.step) / (10 + state.step))
            get_ema_multi_avg_fn(keep)(self.averages, self.parameters, None)
        state.step += 1
        return terms, done

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

    def _clock(self, elapsed: float) -> float:
        """Return the share of the training time that is over; 0 without a limit. Time for the last evaluation is kept."""
        limit = self.config.train.max_minutes * 60
        if not limit or self.team.rank:
            return 0.0
        evaluation = self.state.evaluation or 0.03 * limit
        return elapsed / max(limit - 1.1 * evaluation, 1.0)

    def gradients(self, share: Sequence[Sentence], size: int, clock: float = 0.0) -> dict[str, float]:
        """Add this worker's share of the gradient of a batch's mean loss. Return the terms of the loss over all workers.

        size: sentences of the whole batch. clock: the first worker's clock, which all workers get back with the terms.
        """
        terms = dict.fromkeys(terms_of(self.config.train), 0.0)
        for part in in_parts(share, self.config.train.part_tokens):
            weight = len(part) / size
            for name, value in self.add_gradient(part, weight).items():
                terms[name] += float(value.detach()) * weight
        terms["clock"] = clock
        return dict(zip(terms, self.team.add(list(terms.values()))))

    def evaluate(self) -> None:
        """Score the parser on dev, and save it if it is the best so far."""
        state, started, lam = self.state, time.perf_counter(), self.config.train.lam
        threads = machine.cpu_count() if self.team.size > 1 else None  # the other workers wait: use their cores
        with self._averaged():
            predictions = predict(self.network, self.collator, self.dev, lam=lam, threads=threads)
        parses = [p.sentence for p in predictions]
        scores = evaluate(self.dev, parses, arc_labels=self.vocab.arc_labels).summary()
        spent = time.perf_counter() - started
        state.seconds, state.evaluation = state.seconds + spent, max(state.evaluation, spent)
        row = state.history[-1]
        means = " ".join(f"{name} {row[name]:.3f}" for name in terms_of(self.config.train))
        row.update(seconds=round(state.seconds, 1), **scores)
        self._log(f"epoch {state.epoch}/{state.planned}: {means}  dev {_shown(scores)}  {state.seconds / 60:.1f} min")
        if quality(scores) > state.best:
            state.best, state.stale = quality(scores), 0
            info = {"treebank": self.treebank, "lalkit": __version__, "dev": scores, "epoch": state.epoch}
            with self._averaged():
                checkpoint.save_model(self.out, self.network, self.config, self.vocab, f"{state.step:07d}", info)
        else:
            state.stale += 1
            if self.config.train.decay == "plateau" and state.stale % PATIENCE == 0:
                state.scale /= 2

    def _log(self, message: str) -> None:
        if self.team.rank == 0:
            logger.info(message)

    def _save(self, same_weights: bool = False) -> None:
        """Save the state. same_weights: those on the disk are the present ones, and are not written again."""
        tensors = {} if same_weights else {f"model.{k}": v for k, v in checkpoint.trained(self.network).items()}
        tensors |= {} if same_weights else checkpoint.adam_tensors(self.network, self.optimizer)
        if self.averages and not same_weights:
            with self._averaged():
                tensors |= {f"average.{k}": v.clone() for k, v in checkpoint.trained(self.network).items()}
        source = {"treebank": self.treebank, "data_sha256": self.data, "config": to_dict(self.config)}
        checkpoint.save_tensors(
            self.out, "resume", f"{self.state.step:07d}", tensors, {**source, "state": vars(self.state)}
        )

    def _load(self) -> None:
        content, tensors = checkpoint.load_tensors(self.out, "resume")
        file = f"{self.out}/resume.json"
        then = read_saved(content.get("config"), f"{file}: config"), content.get("treebank"), content.get("data_sha256")
        now = self.config, self.treebank, self.data
        if then != now:
            changed = [name for name, a, b in zip(("settings", "treebank", "sentences"), then, now) if a != b]
            remedy = "Resume with the settings in its config.json and the treebank as it was, or give another --out."
            raise ModelError(f"was started with other {changed[0]}", where=str(self.out), remedy=remedy)
        for part in ("average.", "model.") if self.config.train.average else ("model.",):
            weights = {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
            checkpoint.fill(self.network, weights, str(self.out))
            if part == "average.":
                self._keep_averages()
        checkpoint.restore_adam(self.network, self.optimizer, tensors, f"{self.out}/{content['weights']}")
        try:
            check_form(content["state"], State)
            self.state = State(**content["state"])
            check_form(self.state.history[: -1 if self._unscored() else None], list[Epoch])
            if self._unscored():
                check_form([self.state.history[-1][name] for name in terms_of(self.config.train)], list[float])
            if self._done() and not self.state.history:
                raise ValueError("no epoch was scored")
        except (KeyError, TypeError, ValueError) as error:
            problem = f"does not say how far it is: {error}"
            raise ModelError(problem, where=file, remedy="Train into another --out.") from None


def estimate(config: Config, treebank: str) -> str:
    """Say what a run will need: its weights, its memory, and the time of an epoch without evaluation. Nothing is written.

    Three parts of the first epoch's batches and one update are computed, on the device that training would use. Memory and time
    are taken to grow with the words, padding included, and workers to share a step as well as cores do.

    Raises ModelError and CorpusError where training would raise them.
    """
    check_heads(config)
    free, train = available_bytes(torch.device("cuda" if torch.cuda.is_available() else "cpu")), config.train
    material = lessons(treebank, config.model.task, train.max_length)
    learner = Learner(config, material.sentences)
    learner.network.train()
    parameters = list(learner.network.parameters())
    trained = sum(p.numel() for p in learner.parameters)
    # Every weight takes 4 bytes; one that is trained also has a gradient and two moments.
    fixed = 4 * sum(p.numel() for p in parameters) + 12 * trained
    groups = learner.batches(material, 0)
    seen = sum(len(sentence) for group in groups for sentence in group)
    parts = sorted((part for group in groups for part in in_parts(group, train.part_tokens)), key=padded)
    largest, words = padded(parts[-1]), sum(map(padded, parts))
    chosen = [parts[len(parts) * k // 6] for k in (1, 3, 5)]
    kept = max(kept_bytes(learner, part) / padded(part) for part in chosen) * largest  # this also compiles the kernels
    learner.optimizer.step()  # the first update creates the moments
    update = _seconds(learner.optimizer.step)
    spent = sum(_seconds(learner.add_gradient, part) for part in chosen) / sum(map(padded, chosen)) * words
    seconds = spent / train.workers + len(groups) * update
    lines = [
        f"weights     {sum(p.numel() for p in parameters) / 1e6:.1f} M, of which {trained / 1e6:.1f} M are trained",
        f"memory      about {(fixed + kept) / 1e9:.1f} GB: {fixed / 1e9:.1f} GB for weights, gradients and moments, "
        f"{kept / 1e9:.1f} GB to compute {largest} words at once; the program is not counted",
        f"an epoch    about {seconds / 60:.1f} minutes: {len(groups):,} steps, {seen:,} words; "
        f"{train.epochs} epochs take {seconds * train.epochs / 3600:.1f} hours, without evaluation",
    ]
    if free is not None and fixed + kept > free:
        lines.append(f"too much    {free / 1e9:.1f} GB are free: lower train.part_tokens; it changes no result")
    return "\n".join(lines)


def padded(part: Sequence[Sentence]) -> int:
    """Return the number of words of a part of a batch, with padding."""
    return len(part) * max(map(len, part))


def kept_bytes(learner: Learner, part: Sequence[Sentence]) -> int:
    """Return how many bytes a forward pass keeps for its backward pass. Each piece of memory counts once, and weights do not."""
    weights = {p.untyped_storage().data_ptr() for p in learner.network.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        learner.add_gradient(part)
    return sum(kept.values())


def _seconds(function: Callable, *arguments) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    function(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # a GPU computes on after the call
    return time.perf_counter() - started


def quality(scores: dict) -> float:
    """Return F1 + LAS, by which the best parser is chosen. A missing score counts 0, and UAS stands in for a missing LAS.

    In a mixture F1 is over the dev sentences with constituents (silver ones of GUM, too), and LAS over those with arcs.
    """
    arcs = scores["las"] if scores["las"] is not None else scores["uas"]
    return (scores["f1"] or 0.0) + (arcs or 0.0)


def _shown(scores: dict) -> str:
    names = {"f1": "F1", "exact": "exact", "uas": "UAS", "las": "LAS", "tag_accuracy": "tags"}
    return " ".join(f"{name} {scores[key]:.2f}" for key, name in names.items() if scores[key] is not None)


if __name__ == "__main__":  # a worker, started by `gather`
    serve(work)
