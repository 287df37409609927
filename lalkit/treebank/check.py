"""Which sentences of a treebank a parser can learn from, and with which of their layers.

What a treebank holds, and everything that is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lalkit.errors import CorpusError, JointError, TreebankError
from lalkit.treebank.corpora import Corpus
from lalkit.treebank.joint import GROUP, to_joint
from lalkit.treebank.tree import UNARY, Sentence


def layers_of(sentences: Sequence[Sentence], task: str) -> list[Sentence]:
    """The sentences with what a task is about, and nothing else that could be scored or learned."""
    if task == "dependencies":
        return [replace(s, constituents=None) for s in sentences]
    if task == "constituents":
        return [replace(s, heads=None, arc_labels=None) for s in sentences]
    return list(sentences)


def trainable(sentences: Sequence[Sentence], longest: int, task: str = "joint") -> tuple[list[Sentence], str]:
    """The sentences a parser can learn a task from, and a word on those left out. Raises CorpusError where none is left."""
    kept, too_long, wrong = [], 0, 0
    for sentence in layers_of(sentences, task):
        if len(sentence) > longest:
            too_long += 1
        elif _fits(sentence, task):
            kept.append(sentence)
        else:
            wrong += 1
    lacking = {"joint": "not joint", "dependencies": "without heads", "constituents": "without a tree over all words"}
    left_out = f"left out: {too_long} longer than {longest} words, {wrong} {lacking[task]}"
    if not kept:
        raise CorpusError(
            f"no sentence to train on; {left_out}",
            remedy="See `lalkit data check`, and train.max_length. For dependencies alone: --set model.task=dependencies",
        )
    return kept, left_out


def _fits(sentence: Sentence, task: str) -> bool:
    if task == "dependencies":
        return sentence.heads is not None
    if task == "constituents":
        return bool(sentence.constituents) and sentence.constituents[0][:2] == (0, len(sentence))
    try:
        return bool(to_joint(sentence))
    except JointError:
        return False


def subset(sentences: Sequence[Sentence], size: int) -> list[Sentence]:
    """`size` sentences spread evenly over a part (0: all)."""
    if not size or size >= len(sentences):
        return list(sentences)
    return [sentences[i * len(sentences) // size] for i in range(size)]


@dataclass(frozen=True)
class Report:
    """problems: sentences that could not be read; not_joint: sentences that have no joint form; each says where and why."""

    sentences: int
    problems: tuple[TreebankError, ...]
    not_joint: tuple[JointError, ...]

    @property
    def clean(self) -> bool:
        return not self.problems and not self.not_joint


def check(corpus: Corpus) -> Report:
    """Every problem of a leniently loaded corpus."""
    not_joint = []
    for sentence in corpus.sentences:
        if sentence.constituents is None:
            continue  # dependencies alone: there is no joint form to ask for
        try:
            to_joint(sentence)
        except JointError as error:
            not_joint.append(error)
    return Report(len(corpus), corpus.problems, tuple(not_joint))


def stats(corpus: Corpus) -> dict[str, int | float]:
    """Counts of one split, in the order a reader wants them."""
    lengths = [len(s) for s in corpus.sentences]
    labels = Counter(span.label for s in corpus.sentences for span in s.constituents or ())
    groups = 0
    for sentence in corpus.sentences:
        try:
            groups += sum(span.label == GROUP for span in to_joint(sentence))
        except JointError:
            pass
    return {
        "sentences": len(lengths),
        "unread": len(corpus.problems),
        "words": sum(lengths),
        "mean length": round(sum(lengths) / max(len(lengths), 1), 1),
        "longest": max(lengths, default=0),
        "constituents": sum(labels.values()),
        "labels": len({part for label in labels for part in label.split(UNARY)}),
        "labels with unary chains": len(labels),
        "groups (<H>)": groups,
        "tags": len({tag for s in corpus.sentences for tag in s.tags or ()}),
        "arc labels": len({label for s in corpus.sentences for label in s.arc_labels or ()}),
    }
