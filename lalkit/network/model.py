"""A trained parser, from sentences to parsed sentences: scores, exact joint decoding, arc labels, probabilities.

The precision of the scores is fp32, or bf16 by torch's autocast, which is faster on some hardware. Explanations and
probabilities are always computed in fp32. Only fp32 gives every sentence the same tree in every batch: in bf16 the rounding
differs a little with the size of a batch.

Constituents, arcs and trees have the probabilities of `lalkit.chart.sums`, which divide scores by a temperature. Arc labels and
tags have those of the network's softmax.
"""

from __future__ import annotations

import math
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.backends import mps

from lalkit.chart import machine
from lalkit.chart.cky import SUBHEAD, cky_batch
from lalkit.chart.joint import JointTree, decode_batch
from lalkit.chart.joint_torch import start_batch, start_copy, to_device
from lalkit.chart.sums import Temperature, check_distribution, marginals_batch, of_one_layer, temperatures
from lalkit.config import Config
from lalkit.errors import LalkitError, ModelError, ParameterError, checked, warn_once, whole_number
from lalkit.network.batches import Collator, batches, usual
from lalkit.network.encoder import HookedModule
from lalkit.network.parser import Network, ParserOutput
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.conllu import universal_tags
from lalkit.treebank.joint import GROUP, JointSpan
from lalkit.treebank.tree import Sentence, Span

if TYPE_CHECKING:
    import pandas as pd

Precision = Literal["auto", "fp32", "bf16"]
AHEAD = {"cuda": 1}  # batches that a device computes while the host decodes an earlier one; on other devices none
MANY_WORDS = 10_000  # above this number of words, 'auto' may choose bf16 [D]
# Both make a named tuple of a tuple, in three quarters of the time that the classes take.
JOINT_SPAN, SPAN = partial(tuple.__new__, JointSpan), partial(tuple.__new__, Span)


DEVICES: dict[str, Callable] = {"cpu": lambda: True, "cuda": torch.cuda.is_available, "mps": mps.is_available}


def find_device(name: str) -> torch.device:
    """Return the device of a name: cpu, cuda, cuda:1, mps; auto is cuda if there is one, else cpu.

    Raises ParameterError for another name, and for a device that this machine does not have.
    """
    here = [kind for kind, there in DEVICES.items() if there()]
    name = "cuda" * (name == "auto" and "cuda" in here) or name.replace("auto", "cpu")
    kind, _, number = name.partition(":")
    most = torch.cuda.device_count() if kind == "cuda" else 1
    if kind not in here or not (name == kind or (number.isdecimal() and int(number) < most)):
        raise ParameterError(f"there is no device {name!r} here", remedy=f"Give one of auto, {', '.join(here)}.")
    return torch.device(name)


def has_bf16(device: str) -> bool:
    """Return whether the hardware computes bf16. Where it is emulated, a step takes 15 times as long as in float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device == "mps":
        return False
    x86 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return x86 if platform.machine() in ("x86_64", "AMD64") else torch.ops.mkldnn._is_mkldnn_bf16_supported()


def bf16_is_fast(device: str) -> bool:
    """Return whether the hardware computes bf16, and faster than fp32.

    Intel's processors with AVX-512 for fp16 multiply bf16 in AMX. Where a virtual machine hides AMX, a product of matrices takes
    1.9 times as long in bf16 as in fp32 (600 x 384 by 384 x 384, one thread).
    """
    found = torch.cpu.get_capabilities() if device == "cpu" else {}
    return has_bf16(device) and not (found.get("avx512_fp16") and not found.get("amx_tile"))


@checked
def resolve_precision(precision: Precision, device: str, exact: bool = False, words: int = 0) -> Precision:
    """Return fp32 or bf16. 'auto' is fp32; for more than MANY_WORDS it is bf16 where that is faster, with one warning.

    device: cpu, cuda or mps. exact: True for probabilities and constraints, which need fp32. words: the number to parse.
    Raises ParameterError for an unknown precision, for one that the hardware does not have, and for bf16 with exact.
    """
    if precision == "auto":
        if exact or words <= MANY_WORDS or not bf16_is_fast(device):
            return "fp32"
        warn_once("scores are computed in bf16, which is faster: a few trees differ from fp32 (--precision fp32)")
        return "bf16"
    if precision == "bf16" and exact:
        problem = "probabilities and constraints are computed in fp32, not in bf16"
        raise ParameterError(problem, remedy="Use fp32 or auto.")
    if precision == "bf16" and not has_bf16(device):
        raise ParameterError("this processor does not compute in bf16", remedy="Use fp32.")
    return precision


@dataclass(frozen=True)
class Confidence:
    """The probabilities of the parts of one parse.

    spans: for each joint span of the prediction, the probability that these words have this label. arcs: for each word, the
    probability that its head word is right. arc_labels: for each word, the probability of its arc label if its head word is
    right. tags: for each word, the probability of its tag. None: the parse does not have this layer, or the tags were given.
    log_probability: the logarithm of the probability of the whole joint tree, without arc labels and tags. temperature: the
    number by which scores were divided.
    """

    temperature: Temperature
    log_probability: float
    spans: tuple[float, ...]
    arcs: tuple[float, ...] | None
    arc_labels: tuple[float, ...] | None = None
    tags: tuple[float, ...] | None = None

    @property
    def probability(self) -> float:
        """The probability of the whole joint tree."""
        return math.exp(self.log_probability)

    def to_dict(self) -> dict:
        lists = {name: getattr(self, name) for name in ("spans", "arcs", "arc_labels", "tags")}
        rounded = {name: values and [_rounded(p) for p in values] for name, values in lists.items()}
        return {"temperature": self.temperature, "tree": _rounded(self.probability), **rounded}

    def table(self, sentence: Sentence, spans: Sequence[tuple[int, int, str, int]]) -> pd.DataFrame:
        """Return a row for each part: kind, start, end, label, head, probability.

        kind: span, arc, arc label, tag or tree. start, end: over the places between words. head: the head word, from 1; 0 is
        the root. spans: those of the prediction.
        """
        import pandas as pd

        rows = [("span", *span, p) for span, p in zip(spans, self.spans)]
        rows += [("arc", i, i + 1, None, h, p) for i, (h, p) in enumerate(zip(sentence.heads or (), self.arcs or ()))]
        pairs = zip(sentence.arc_labels or (), sentence.heads or (), self.arc_labels or ())
        rows += [("arc label", i, i + 1, *values) for i, values in enumerate(pairs)]
        tags = zip(sentence.tags or (), self.tags or ())
        rows += [("tag", i, i + 1, tag, None, p) for i, (tag, p) in enumerate(tags)]
        rows.append(("tree", 0, len(sentence), None, None, self.probability))
        table = pd.DataFrame(rows, columns=["kind", "start", "end", "label", "head", "probability"])
        return table.astype({"head": "Int64"})

    def conllu(self) -> tuple[list[str], list[str]]:
        """Return comments, and the last column of every word, for CoNLL-U."""
        names = {"ArcP": self.arcs, "LabelP": self.arc_labels, "TagP": self.tags}
        columns = [[f"{name}={_rounded(p)}" for p in values] for name, values in names.items() if values is not None]
        comments = [f"tree_probability = {_rounded(self.probability)}", f"temperature = {self.temperature}"]
        return comments, ["|".join(column) for column in zip(*columns)]


@dataclass(frozen=True)
class Prediction:
    """A parsed sentence, its joint spans, and the score of its tree.

    The spans include <H>. Their head word is 0 if the parser has constituents only. confidence: None unless it was requested.
    precision: of the scores, see `resolve_precision`.
    """

    sentence: Sentence
    spans: tuple[JointSpan, ...]
    score: float
    confidence: Confidence | None = field(default=None, repr=False, compare=False)
    precision: Precision = field(default="fp32", repr=False, compare=False)


class Scored(NamedTuple):
    """A batch that the network has scored: the places of its sentences among all, the sentences, and the scores."""

    places: list[int]
    sentences: list[Sentence]
    output: ParserOutput

    def arrays(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the label scores [n+1, n+1, L] and the arc scores [n, n+1] of every sentence, without padding."""
        labels, arcs = (scores.float().cpu().numpy() for scores in (self.output.label_scores, self.output.arc_scores))
        sizes = enumerate(map(len, self.sentences))
        return [(labels[b, : n + 1, : n + 1], arcs[b, :n, : n + 1]) for b, n in sizes]


@checked
@dataclass(frozen=True, eq=False)
class Model:
    """A trained parser: its network, and all that turns sentences into scores, and scores into parses.

    >>> [p.sentence.heads for p in parser.model.parse(treebank.sentences[:1])]
    [(2, 4, 4, 0, 4, 4, 4)]

    The fields are never set again: `dataclasses.replace(model, temperature=2.0)` makes another model with the same weights.

    info: results, and where the model comes from. calibration: the content of calibration.json. temperature: scores are divided
    by it before they become probabilities: one number, or two, of labels and of arcs. precision: of the scores.
    """

    network: Network
    vocab: Vocab
    collator: Collator
    config: Config
    info: dict
    calibration: dict | None = None
    temperature: Temperature = 1.0
    precision: Precision = "fp32"

    @classmethod
    def new(cls, config: Config, sentences: Sequence[Sentence], device: str = "auto") -> Model:
        """Make an untrained model for these sentences. Its new weights are random, and depend only on the config's seed.

        device: as in `find_device`.
        """
        vocab = Vocab.build(sentences, config.model.task)
        torch.manual_seed(config.train.seed)
        network = Network(config.model, vocab)
        return cls(network, vocab, Collator(vocab, config.model.encoder), config, {}).to(device)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.network.parameters()).device

    @property
    def lam(self) -> float:
        """The weight of labels: that of the config; 0 for dependencies alone, 1 for constituents alone."""
        return {"dependencies": 0.0, "constituents": 1.0}.get(self.config.model.task, self.config.train.lam)

    @property
    def exact(self) -> Model:
        """The same model, with scores in fp32."""
        return replace(self, precision="fp32")

    def to(self, device: str) -> Model:
        """Move the network to a device, and return the model: see `lalkit.Parser.to`."""
        place = find_device(device)
        if place.type == "mps" and self.config.model.span_attention:
            raise ModelError("label attention inside the span needs float64: mps has none", "Use cpu or cuda.")
        self.network.to(place)
        return self

    def scores(
        self, sentences: Sequence[Sentence], *, batch_words: int | None = None, progress: bool = False
    ) -> Iterator[Scored]:
        """Yield scored batches, longest sentences first.

        Args:
            sentences: Only their words count, and their tags if the network reads given tags.
            batch_words: Words of a batch; None: the usual number for the device.
            progress: Show a bar: live in a terminal and in a notebook, else a new line now and then.
        """
        device = self.device
        most = usual(device.type) if batch_words is None else whole_number("batch_words", batch_words, 1)
        bf16 = resolve_precision(self.precision, device.type, words=sum(map(len, sentences))) == "bf16"
        check_lengths(self, sentences)
        bar = machine.progress(total=len(sentences), desc="parsing", unit=" sentences") if progress else nullcontext()
        with self.network.parsing(), bar as shown:
            for group in batches([len(s) for s in sentences], most):
                chosen = [sentences[i] for i in group]
                with undisturbed(device, bf16):
                    output = self.network(self.collator(chosen).to(device))
                yield Scored(group, chosen, output)
                if progress:
                    shown.update(len(group))

    def decode(self, scored: Scored, threads: int | None = None) -> list[JointTree]:
        """Return the best joint trees, by threads of the CPU. A GPU first finds the best label of each span: the same trees.

        'dependencies' gives the best projective trees, which are the best joint trees if labels have weight 0. 'constituents'
        gives the best trees of labelled spans (CKY): the head word of each span is 0, and `heads` are those of `first_words`.

        threads: of the decoder; None: as many as torch uses.
        """
        return self.start_decoding(scored, threads)()

    def start_decoding(self, scored: Scored, threads: int | None = None) -> Callable[[], list[JointTree]]:
        """Start the GPU's part of `decode`. Return a function that waits for it, and returns the trees."""
        output, device = scored.output, scored.output.label_scores.device
        lengths, names = [len(s) for s in scored.sentences], [s.where for s in scored.sentences]
        threads = torch.get_num_threads() if threads is None else whole_number("threads", threads, 1)
        if device.type in AHEAD and self.config.model.task != "constituents":
            with undisturbed(device):
                return start_batch(output.label_scores, output.arc_scores, lengths, self.lam, names, threads)
        return partial(self._decode, scored, lengths, names, threads)

    def _decode(self, scored: Scored, lengths: list[int], names: list[str], threads: int) -> list[JointTree]:
        if self.config.model.task == "constituents":
            charts = scored.output.label_scores.float().cpu().numpy().copy()
            charts[..., SUBHEAD] = -1e9  # there are no groups
            trees = zip(cky_batch(charts, lengths, threads, names), lengths)
            return [JointTree(t.score, [(*s, 0) for s in t.spans], first_words(t.spans, n)) for t, n in trees]
        return decode_batch(scored.arrays(), self.lam, threads, names)

    def rescored(self, scored: Scored, trees: Sequence[JointTree]) -> list[JointTree]:
        """Return the trees of a batch, with their present scores. trees: the trees of all sentences."""
        shares, pairs = (self.lam, 1 - self.lam), zip((trees[place] for place in scored.places), scored.arrays())
        return [tree._replace(score=weighted_score(*pair, tree.spans, tree.heads, *shares)) for tree, pair in pairs]

    def predictions(
        self, scored: Scored, trees: Sequence[JointTree], *, probabilities: bool = False, threads: int | None = None
    ) -> list[Prediction]:
        """Return the parses of a batch with these trees. probabilities: also compute those of all parts of the trees."""
        return self.start_predictions(scored, trees, probabilities, threads)()

    def start_predictions(
        self, scored: Scored, trees: Sequence[JointTree], probabilities: bool, threads: int | None
    ) -> Callable[[], list[Prediction]]:
        """Start the GPU's part of `predictions`. Return a function that waits for it, and returns the parses."""
        precision = resolve_precision(self.precision, self.device.type)
        with undisturbed(self.device, precision == "bf16"):
            scores = arc_labels(self, scored, trees)
            best = start_copy(scores.argmax(-1), scored.output.tag_scores.argmax(-1))

        def finish() -> list[Prediction]:
            labels, tags = (indices.tolist() for indices in best())
            certainty = confidences(self, scored, trees, scores, threads) if probabilities else [None] * len(trees)
            return [assemble(self, *of, precision) for of in zip(scored.sentences, trees, labels, tags, certainty)]

        return finish

    def predict(
        self, sentences: Sequence[Sentence], *, batch_words: int | None = None, threads: int | None = None,
        progress: bool = False, probabilities: bool = False, trees: Sequence[JointTree] | None = None,
    ) -> Iterator[tuple[Scored, list[Prediction]]]:  # fmt: skip
        """Yield scored batches with the parses of their sentences. Raises TooLongError, and ParameterError for a wrong option.

        A GPU computes batch k + 2 while the host decodes batch k + 1 and then assembles batch k, which is yielded (`AHEAD`). So a
        hook that is set between two batches holds from a later batch on.

        Args:
            sentences, batch_words, progress: As in `scores`.
            threads: Threads of the decoder; None: as many as torch uses.
            probabilities: Also compute the probabilities of all parts of the trees, with scores divided by the temperature.
            trees: The tree of each sentence, whose score is computed again; None: the best trees.
        """
        if probabilities:
            try:
                temperatures(self.temperature)
            except ValueError as error:
                raise ParameterError(str(error), remedy="Leave it out, or give a number such as 1.") from None
            check_lengths(self, sentences, exact=True)
        threads = torch.get_num_threads() if threads is None else whole_number("threads", threads, 1)
        words, later = sum(map(len, sentences)), AHEAD.get(self.device.type, 0)
        model = replace(self, precision=resolve_precision(self.precision, self.device.type, probabilities, words))
        run = model.scores(sentences, batch_words=batch_words, progress=progress)
        found = ((s, partial(model.rescored, s, trees) if trees else model.start_decoding(s, threads)) for s in run)
        parsed = ((s, model.start_predictions(s, find(), probabilities, threads)) for s, find in ahead(found, later))
        yield from ((s, finish()) for s, finish in ahead(parsed, later))

    def parse(self, sentences: Sequence[Sentence], **options) -> list[Prediction]:
        """Parse every sentence, in order. In fp32 the trees are the same alone and in any batch. options: those of `predict`."""
        parses: list[Prediction | None] = [None] * len(sentences)
        for scored, predictions in self.predict(sentences, **options):
            for place, prediction in zip(scored.places, predictions):
                parses[place] = prediction
        return parses

    def state(self) -> list[tuple[object, object]]:
        """Return all that decides scores except the sentence: each weight with its number of changes, and each hook.

        torch counts the changes of a tensor in place, except those through `.data`.
        """
        state: list[tuple[object, object]] = self.network.weights()
        for module in self.network.modules():
            changes = module.changes() if isinstance(module, HookedModule) else ()
            for hooks in (module._forward_hooks, module._forward_pre_hooks, *changes):
                state += [(function, point) for point, function in hooks.items()]
        return state


def ahead(steps: Iterable[tuple], count: int) -> Iterator[tuple]:
    """Yield all steps in order, each when `count` later ones have been taken."""
    taken: deque[tuple] = deque()
    for step in steps:
        taken.append(step)
        if len(taken) > count:
            yield taken.popleft()
    yield from taken


# Bytes of a pair of words while the network scores it: for each label, and for everything else. Measured on en and zh-sinica.
OF_LABEL, OF_PAIR = 10, 200


def check_lengths(model: Model, sentences: Sequence[Sentence], exact: bool = False) -> None:
    """Raise TooLongError, before anything is computed, if the longest sentence needs more memory than there is.

    exact: whether probabilities are computed, too. They need three charts of float64.
    """
    longest = max(sentences, key=len, default=())
    n, charts = len(longest), 0 if model.config.model.task == "constituents" else 1 + 5 * exact
    scores, charts = (n + 1) ** 2 * (OF_LABEL * len(model.vocab.labels) + OF_PAIR), charts * machine.chart_bytes(n, 4)
    if scores + charts <= machine.SMALL:
        return
    limits = [(scores + charts, machine.available_bytes())]
    if model.device.type == "cuda":  # the scores are there, the charts here
        unused = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
        scores *= min(2, len(sentences))  # the scores of the batch before are still in memory
        limits = [(scores, torch.cuda.mem_get_info(model.device)[0] + unused), (charts, machine.available_bytes())]
    for needed, limit in limits:
        machine.check_fits(n, needed, limit, longest.where)  # type: ignore[union-attr]


@contextmanager
def undisturbed(device: torch.device, bf16: bool = False) -> Iterator[None]:
    """Compute without gradients and without the caller's autocast; new tensors are made on the CPU by default.

    So the scores do not depend on the settings of the calling program. device: of the network. bf16: with an autocast to it.
    """
    default = nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16), default:
        yield


def arc_labels(model: Model, scored: Scored, trees: Sequence[JointTree]) -> Tensor:
    """Return the scores [B, N, arc labels] of every word's arc to its decoded head.

    Only arcs from the root can have the label of the root, and always have it: see `Vocab.root`.
    """
    output, root = scored.output, model.vocab.root
    n = output.arc_scores.shape[1]
    heads = torch.zeros(len(trees), n, dtype=torch.long)
    for b, tree in enumerate(trees):
        heads[b, : len(tree.heads)] = torch.from_numpy(tree.heads)
    heads = to_device(heads, output.arc_scores.device)
    scores = model.network.arc_labels(output, heads)
    if root is not None:
        is_root = torch.arange(scores.shape[-1], device=scores.device) == root
        scores = scores.masked_fill((heads == 0)[..., None] != is_root, -1e9)
    return scores


def assemble(
    model: Model, sentence: Sentence, tree: JointTree, labels: Sequence[int], tags: Sequence[int],
    confidence: Confidence | None, precision: Precision,
) -> Prediction:  # fmt: skip
    """Turn indices into names. A parser of one layer returns that layer only. Tags that the network was given are kept."""
    vocab, config = model.vocab, model.config.model
    words, n, label_of = sentence.words, len(sentence), vocab.labels
    given = sentence.tags if config.tag_input == "given" else None
    names = given or (tuple(map(vocab.tags.__getitem__, tags[:n])) if vocab.tags else None)
    arcs = tuple(map(vocab.arc_labels.__getitem__, labels[:n])) if vocab.arc_labels else None
    spans = tuple([JOINT_SPAN((i, j, label_of[k], h)) for i, j, k, h in tree.spans])
    if config.task == "constituents":
        spans = tuple(span._replace(head=0) for span in spans)
    layers: dict = {"tags": names, "id": sentence.id, "text": sentence.text, "rows": sentence.rows}
    if config.task != "dependencies":
        layers["constituents"] = tuple([SPAN((i, j, label)) for i, j, label, _ in spans if label != GROUP])
    if config.task != "constituents":
        upos = universal_tags(words, names, arcs) if vocab.root is not None else None
        layers |= {"heads": tuple(tree.heads.tolist()), "arc_labels": arcs, "upos": upos}
    spans = () if config.task == "dependencies" else spans
    return Prediction(Sentence.trusted(words, **layers), spans, tree.score, confidence, precision)


def confidences(
    model: Model, scored: Scored, trees: Sequence[JointTree], arc_label_scores: Tensor, threads: int | None = None
) -> list[Confidence]:
    """Return the probabilities of one tree of every sentence of a batch; not of tags that were given, nor of missing layers.

    Args:
        model: Its temperature divides the scores.
        scored: The batch.
        trees: The trees.
        arc_label_scores: [B, N, arc labels], for the heads of the trees: see `arc_labels`.
        threads: Threads of the CPU; None: one per core.
    """
    lam, temperature, task = model.lam, model.temperature, model.config.model.task
    pairs = [of_one_layer(task, *pair) for pair in scored.arrays()]
    names, given = [sentence.where for sentence in scored.sentences], model.config.model.tag_input == "given"
    best = [torch.softmax(s, -1).amax(-1).tolist() for s in (arc_label_scores, scored.output.tag_scores)]
    results, weights = [], check_distribution(lam, temperature)
    sums = marginals_batch(pairs, lam, temperature, threads=threads, names=names, task=task)
    for b, (pair, tree, m) in enumerate(zip(pairs, trees, sums)):
        tree = tree._replace(spans=[]) if task == "dependencies" else tree
        n, log = len(tree.heads), weighted_score(*pair, tree.spans, tree.heads, *weights) - m.log_partition
        spans = tuple(min(1.0, float(m.labels[i, j, k])) for i, j, k, _ in tree.spans)
        of_arcs = tuple(min(1.0, float(m.arcs[d, h])) for d, h in enumerate(tree.heads))
        arcs = of_arcs if task != "constituents" else None
        known = model.vocab.arc_labels, model.vocab.tags and not (given and scored.sentences[b].tags)
        labels, tags = (tuple(p[b][:n]) if there else None for p, there in zip(best, known))
        results.append(Confidence(temperature, min(0.0, log), spans, arcs, labels, tags))
    return results


def first_words(spans: Sequence[tuple], n: int) -> np.ndarray:
    """Return the heads of n words, if the first word of each constituent is its head: [n], from 1. spans: from the top down."""
    heads = np.zeros(n, np.int64)
    for start, end, *_ in spans:
        heads[start + 1 : end] = start + 1
    return heads


def weighted_score(
    label_scores: np.ndarray, arc_scores: np.ndarray, spans, heads, of_labels: float, of_arcs: float
) -> float:
    """Return the weighted sum of the scores of labels and of arcs: those of (start, end, label index, ...) and head words."""
    labels = math.fsum(float(label_scores[i, j, k]) for i, j, k, *_ in spans)
    return of_labels * labels + of_arcs * math.fsum(float(arc_scores[d, h]) for d, h in enumerate(heads))


def check_joint(task: str) -> None:
    """Raise LalkitError for a parser of constituents or dependencies alone: it scores no joint trees."""
    if task != "joint":
        problem = f"this parser was trained on {task} alone: it has no probabilities of joint trees"
        raise LalkitError(problem, remedy="Use a parser of both layers, such as en-news.")


def _rounded(probability: float) -> float:
    return float(f"{probability:.6g}")  # six significant digits are written
