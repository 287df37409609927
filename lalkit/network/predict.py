"""Sentences -> parsed sentences: batches, the network, exact joint decoding, arc labels for the decoded heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lalkit.chart.cky import cky_batch
from lalkit.chart.joint import JointTree, decode_batch
from lalkit.chart.joint_torch import decode_batch_torch
from lalkit.config import ModelConfig
from lalkit.network.batches import Collator, batches, usual
from lalkit.network.parser import Network, ParserOutput
from lalkit.network.vocabulary import Vocab
from lalkit.treebank.joint import GROUP, JointSpan, from_joint
from lalkit.treebank.tree import Sentence


@dataclass(frozen=True)
class Prediction:
    """A parsed sentence, its joint spans (<H> included; head 0 where a parser has constituents only), the score of its tree."""

    sentence: Sentence
    spans: tuple[JointSpan, ...]
    score: float


def predict(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    *,
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> list[Prediction]:
    """The joint tree of every sentence, in order; the same alone and in any batch.

    budget: words of a batch, None for what is usual on the device. tick(k): k more are done.
    """
    found: list[Prediction | None] = [None] * len(sentences)
    for group, predictions, _ in predict_batches(network, collator, sentences, lam, budget, threads):
        for index, prediction in zip(group, predictions):
            found[index] = prediction
        tick(len(group))
    return found


def predict_batches(
    network: Network,
    collator: Collator,
    sentences: Sequence[Sentence],
    lam: float = 0.5,
    budget: int | None = None,
    threads: int | None = None,
    **asked: bool,
) -> Iterator[tuple[list[int], list[Prediction], ParserOutput]]:
    """Groups of indices with their predictions, longest sentences first, and what the network gave for them.

    asked: what of it is asked for besides scores, see `Network.forward`.
    """
    training, device = network.training, next(network.parameters()).device
    network.eval()
    try:
        for group in batches([len(s) for s in sentences], budget or usual(device.type)):
            chosen = [sentences[i] for i in group]
            with torch.inference_mode():
                output = network(collator(chosen).to(device), **asked)
                trees = decode_output(output, [len(s) for s in chosen], lam, threads, network.config.task)
                labels, tags = best_labels(network, output, trees)
            predictions = [
                assemble(sentence, tree, collator.vocab, labels[b], tags[b], network.config)
                for b, (sentence, tree) in enumerate(zip(chosen, trees))
            ]
            yield group, predictions, output
    finally:
        network.train(training)


def decode_output(
    output: ParserOutput, lengths: Sequence[int], lam: float, threads: int | None = None, task: str = "joint"
) -> list[JointTree]:
    """The joint trees of a batch's scores: where they are, batched on a GPU, over threads on the CPU. The same trees.

    task 'dependencies': the best projective tree, which is the best joint one where labels weigh nothing. 'constituents':
    the best tree of labelled spans (CKY), with 0 for every head.
    """
    if task == "constituents":
        found = cky_batch(output.label_scores.float().cpu().numpy(), lengths, threads)
        return [
            JointTree(tree.score, [(*span, 0) for span in tree.spans], np.zeros(n, np.int64))
            for tree, n in zip(found, lengths)
        ]
    lam = 0.0 if task == "dependencies" else lam
    if output.label_scores.is_cuda:
        sizes = torch.tensor(lengths, device=output.label_scores.device)
        return decode_batch_torch(output.label_scores, output.arc_scores, sizes, lam)
    labels, arcs = output.label_scores.float().numpy(), output.arc_scores.float().numpy()
    return decode_batch(
        [(labels[b, : n + 1, : n + 1], arcs[b, :n, : n + 1]) for b, n in enumerate(lengths)], lam, threads
    )


def best_labels(network: Network, output: ParserOutput, trees: Sequence[JointTree]) -> tuple[list, list]:
    """Indices of the best arc label of every word under its decoded head, and of its best tag: two lists [B][N]."""
    n = output.arc_scores.shape[1]
    heads = torch.zeros(len(trees), n, dtype=torch.long)
    for b, tree in enumerate(trees):
        heads[b, : len(tree.heads)] = torch.from_numpy(tree.heads)
    scores = network.arc_labels(output, heads.to(output.arc_scores.device))
    return scores.argmax(-1).tolist(), output.tag_scores.argmax(-1).tolist()


def assemble(
    sentence: Sentence, tree: JointTree, vocab: Vocab, labels: Sequence[int], tags: Sequence[int], config: ModelConfig
) -> Prediction:
    """Indices -> names. A parser of one layer gives that layer only. Tags that were input stay."""
    n, keep_tags = len(sentence), config.tag_input == "given"
    names = tuple(vocab.tags[t] for t in tags[:n]) if vocab.tags else None
    names = sentence.tags if keep_tags and sentence.tags else names
    arc_names = tuple(vocab.arc_labels[a] for a in labels[:n]) if vocab.arc_labels else None
    spans = tuple(JointSpan(i, j, vocab.labels[k], h) for i, j, k, h in tree.spans)
    heads = tuple(tree.heads.tolist())
    if config.task == "joint":
        parsed = from_joint(sentence.words, spans, heads, names, arc_names, sentence.id)
    elif config.task == "dependencies":
        spans, parsed = (), Sentence(sentence.words, names, None, heads, arc_names, sentence.id)
    else:
        spans = tuple(span for span in spans if span.label != GROUP)
        parsed = Sentence(sentence.words, names, tuple(span[:3] for span in spans), id=sentence.id)
    return Prediction(parsed, spans, tree.score)
