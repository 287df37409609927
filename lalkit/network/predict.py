"""Sentences -> parsed sentences: batches, the network, exact joint decoding, and arc labels for the decoded heads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from lalkit.chart import machine
from lalkit.chart.cky import cky_batch
from lalkit.chart.joint import JointTree, decode_batch
from lalkit.chart.joint_torch import decode_batch_torch
from lalkit.chart.sums import Temperature, temperatures
from lalkit.config import ModelConfig
from lalkit.errors import ParameterError, whole_number
from lalkit.network.batches import Collator, batches, usual
from lalkit.network.confidence import Confidence, check_joint, confidences
from lalkit.network.parser import Network, ParserOutput
from lalkit.network.precision import Precision, resolve
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.joint import GROUP, JointSpan, from_joint
from lalkit.treebank.tree import Sentence, Span
from lalkit.treebank.universal import universal_tags

logger = logging.getLogger(__name__)
LONG = 500  # words of a sentence that is announced before it is parsed
SECONDS = 1e-10  # of one core, for the decoder: times the fourth power of the words
FORBIDDEN = 1e6  # more than all labels of a tree score
# What finds the trees of a batch: it takes the arguments of `decode_output`.
Decode = Callable[..., list[JointTree]]


@dataclass(frozen=True)
class Prediction:
    """A parsed sentence, its joint spans, and the score of its tree.

    The spans include <H>. Their head word is 0 if the parser has constituents only. confidence: only if it was asked for.
    precision: in which the scores were computed, see `lalkit.network.precision`.
    """

    sentence: Sentence
    spans: tuple[JointSpan, ...]
    score: float
    confidence: Confidence | None = field(default=None, repr=False, compare=False)
    precision: Precision = field(default="fp32", repr=False, compare=False)


def predict(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    *,
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    tick: Callable[[int], object] = lambda done: None,
    decode: Decode | None = None,
    temperature: Temperature | None = None,
    precision: Precision = "fp32",
) -> list[Prediction]:
    """Parse every sentence. The trees are in order, and in fp32 the same alone and in any batch.

    Args:
        network: The parser's network.
        collator: It makes batches for this network.
        sentences: The sentences; only their words count, and their tags if the network reads given tags.
        lam: The weight of labels against arcs in decoding.
        budget: Words of a batch; None: the usual number for the device.
        threads: Threads of the decoder; None: as many as torch uses.
        tick: It is called with the number of sentences that each batch has finished.
        decode: What finds the trees; None: the best trees.
        temperature: Also compute the probabilities of all parts of the trees, with scores divided by this number (or two:
            of labels, of arcs); None: do not.
        precision: Of the scores: auto, fp32 or bf16, see `lalkit.network.precision`.
    """
    parses: list[Prediction | None] = [None] * len(sentences)
    arguments = network, collator, sentences, lam, budget, threads, decode, temperature, precision
    for group, predictions, _ in predict_batches(*arguments):
        for index, prediction in zip(group, predictions):
            parses[index] = prediction
        tick(len(group))
    return parses


def predict_batches(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    decode: Decode | None = None,
    temperature: Temperature | None = None,
    precision: Precision = "fp32",
    **asked: bool,
) -> Iterator[tuple[list[int], list[Prediction], ParserOutput]]:
    """Yield groups of indices with their predictions and the network's output, longest sentences first.

    asked: options of `Network.forward`, which add to the output.
    """
    if temperature is not None:
        check_joint(network.config.task)
        try:
            temperatures(temperature)
        except ValueError as error:
            raise ParameterError(str(error), remedy="Leave it out, or give a number such as 1.") from None
    device = next(network.parameters()).device
    precision = resolve(precision, device.type, exact=temperature is not None)
    budget = usual(device.type) if budget is None else whole_number("budget", budget, 1)
    threads = torch.get_num_threads() if threads is None else whole_number("threads", threads, 1)
    long = device.type == "cpu" and network.config.task != "constituents"  # only joint charts take so long
    with network.parsing():
        for group in batches([len(s) for s in sentences], budget):
            chosen = [sentences[i] for i in group]
            announcement = announced(chosen[0]) if long and len(chosen[0]) >= LONG else nullcontext()
            with undisturbed(device, precision == "bf16"), announcement:
                output = network(collator(chosen).to(device), **asked)
                names = [sentence.where for sentence in chosen]
                find = decode or decode_output
                trees = find(output, [len(s) for s in chosen], lam, threads, network.config.task, names)
                arc_labels = arc_label_scores(network, output, trees, collator.vocab.root)
                labels, tags = arc_labels.argmax(-1).tolist(), output.tag_scores.argmax(-1).tolist()
            predictions = [
                replace(
                    assemble(sentence, tree, collator.vocab, labels[b], tags[b], network.config), precision=precision
                )
                for b, (sentence, tree) in enumerate(zip(chosen, trees))
            ]
            if temperature is not None:
                pairs = scores_of(output, [len(s) for s in chosen])
                sums = confidences(pairs, trees, arc_labels, output.tag_scores, lam, temperature, threads, names)
                predictions = [
                    with_confidence(*pair, network.config.tag_input) for pair in zip(predictions, chosen, sums)
                ]
            yield group, predictions, output


@contextmanager
def announced(sentence: Sentence) -> Iterator[None]:
    """Say, before a long sentence is parsed, what it takes, and show a progress line until it is done.

    Raises TooLongError if its chart does not fit into memory. The time is a forecast: 400 words took 2.7 s of one core of a
    common processor, and 1,000 words 80 to 100 s.
    """
    n, needed = len(sentence), machine.chart_bytes(len(sentence), torch.float32.itemsize)
    machine.check_fits(n, needed, machine.available_bytes(), sentence.where)
    seconds, done = max(1, round(SECONDS * n**4)), threading.Event()
    logger.warning(
        f"{sentence.where}: {n:,} words need about {seconds:,} s and up to {needed / 1e6:,.0f} MB. The time grows with the "
        "fourth power of the words, the memory with the third: split the sentence if you can."
    )

    def count() -> None:
        with machine.progress(total=seconds, desc=f"{n:,} words", unit=" s") as bar:
            while not done.wait(1):
                bar.update()

    clock = threading.Thread(target=count, daemon=True)
    clock.start()
    try:
        yield
    finally:
        done.set()
        clock.join()


@contextmanager
def undisturbed(device: torch.device, bf16: bool = False) -> Iterator[None]:
    """Compute without gradients and without the caller's autocast; new tensors are made on the CPU by default.

    So the scores are the same whatever the program around has set. device: of the network. bf16: with an autocast to it.
    """
    default = nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16), default:
        yield


def decode_output(
    output: ParserOutput,
    lengths: Sequence[int],
    lam: float,
    threads: int | None = None,
    task: str = "joint",
    names: Sequence[str] | None = None,
) -> list[JointTree]:
    """Return the joint trees of a batch's scores: batched on a GPU, over threads on a CPU. Both give the same trees.

    Args:
        output: The scores.
        lengths: The number of words of every sentence.
        lam: The weight of labels against arcs.
        threads: Threads of the decoder on a CPU; None: one per core.
        task: 'dependencies' gives the best projective tree, which is the best joint tree if labels have weight 0.
            'constituents' gives the best tree of labelled spans (CKY), with 0 as every head.
        names: How errors name the sentences; None: by their numbers in the batch.
    """
    if task == "constituents":
        trees = zip(cky_batch(output.label_scores.float().cpu().numpy(), lengths, threads, names), lengths)
        return [JointTree(t.score, [(*span, 0) for span in t.spans], np.zeros(n, np.int64)) for t, n in trees]
    lam = 0.0 if task == "dependencies" else lam
    if output.label_scores.is_cuda:
        sizes = torch.tensor(lengths, device=output.label_scores.device)
        return decode_batch_torch(output.label_scores, output.arc_scores, sizes, lam, names)
    return decode_batch(scores_of(output, lengths), lam, threads, names)


def with_arcs(sentences: Sequence[Sentence]) -> Decode:
    """Return a decoder that keeps the arcs of these sentences. It finds the best joint tree among the trees that have these arcs.

    The sentences are told apart by `Sentence.where`. Their arcs must not cross. Every other arc costs more than labels can gain.
    """
    heads = {sentence.where: torch.tensor(sentence.heads) for sentence in sentences}

    def decode(output: ParserOutput, lengths: Sequence[int], lam: float, threads, task: str, names) -> list[JointTree]:
        arcs = torch.full_like(output.arc_scores, -FORBIDDEN)
        for row, name in zip(arcs, names):
            row[range(len(heads[name])), heads[name]] = 0
        # Not `lam`: with lam 1 arcs would weigh nothing.
        return decode_output(replace(output, arc_scores=arcs), lengths, 0.5, threads, task, names)

    return decode


def scores_of(output: ParserOutput, lengths: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the label scores [n+1, n+1, L] and the arc scores [n, n+1] of every sentence of a batch, without padding."""
    labels, arcs = output.label_scores.float().cpu().numpy(), output.arc_scores.float().cpu().numpy()
    return [(labels[b, : n + 1, : n + 1], arcs[b, :n, : n + 1]) for b, n in enumerate(lengths)]


def with_confidence(prediction: Prediction, given: Sentence, confidence: Confidence, tag_input: str) -> Prediction:
    """Add probabilities to a prediction, without those of tags that were given and of layers that it does not have."""
    sentence = prediction.sentence
    kept = tag_input == "given" and given.tags
    tags = confidence.tags if sentence.tags and not kept else None
    arc_labels = confidence.arc_labels if sentence.arc_labels else None
    return replace(prediction, confidence=replace(confidence, tags=tags, arc_labels=arc_labels))


def arc_label_scores(
    network: Network, output: ParserOutput, trees: Sequence[JointTree], root: int | None
) -> torch.Tensor:
    """Return the scores [B, N, arc labels] of every word's arc to its decoded head.

    root: the label that only arcs from the root can have, and always have: see `Vocab.root`.
    """
    n = output.arc_scores.shape[1]
    heads = torch.zeros(len(trees), n, dtype=torch.long)
    for b, tree in enumerate(trees):
        heads[b, : len(tree.heads)] = torch.from_numpy(tree.heads)
    heads = heads.to(output.arc_scores.device)
    scores = network.arc_labels(output, heads)
    if root is not None:
        is_root = torch.arange(scores.shape[-1], device=scores.device) == root
        scores = scores.masked_fill((heads == 0)[..., None] != is_root, -1e9)
    return scores


def best_labels(
    network: Network, output: ParserOutput, trees: Sequence[JointTree], root: int | None
) -> tuple[list, list]:
    """Return the indices of every word's best arc label under its decoded head, and of its best tag: two lists [B][N]."""
    return arc_label_scores(network, output, trees, root).argmax(-1).tolist(), output.tag_scores.argmax(-1).tolist()


def assemble(
    sentence: Sentence, tree: JointTree, vocab: Vocab, labels: Sequence[int], tags: Sequence[int], config: ModelConfig
) -> Prediction:
    """Turn indices into names. A parser of one layer returns that layer only. Tags that the network was given are kept."""
    n, keep_tags = len(sentence), config.tag_input == "given"
    names = tuple(vocab.tags[t] for t in tags[:n]) if vocab.tags else None
    names = sentence.tags if keep_tags and sentence.tags else names
    arc_names = tuple(vocab.arc_labels[a] for a in labels[:n]) if vocab.arc_labels else None
    upos = universal_tags(sentence.words, names, arc_names) if vocab.root is not None else None
    spans = tuple(JointSpan(i, j, vocab.labels[k], h) for i, j, k, h in tree.spans)
    heads = tuple(tree.heads.tolist())
    if config.task == "joint":
        parsed = from_joint(sentence.words, spans, heads, names, arc_names, sentence.id, upos)
    elif config.task == "dependencies":
        spans, parsed = (), Sentence(sentence.words, names, None, heads, arc_names, sentence.id, upos=upos)
    else:
        spans = tuple(span for span in spans if span.label != GROUP)
        parsed = Sentence(sentence.words, names, tuple(Span(*span[:3]) for span in spans), id=sentence.id)
    return Prediction(parsed, spans, tree.score)
