"""What a treebank holds, and everything that is wrong with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lalkit.errors import JointError, TreebankError
from lalkit.treebank.corpora import Corpus
from lalkit.treebank.joint import GROUP, to_joint
from lalkit.treebank.tree import UNARY


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
