"""Check and count treebanks: what is wrong with their sentences, and which of them a parser can learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lalkit.errors import CorpusError, JointError, TreebankError
from lalkit.treebank.corpora import Treebank
from lalkit.treebank.joint import GROUP, JointSpan, to_joint
from lalkit.treebank.tree import UNARY, Sentence


def layers_of(sentences: Sequence[Sentence], task: str) -> list[Sentence]:
    """Return the sentences with only those layers that a task learns and scores."""
    if task == "dependencies":
        return [replace(s, constituents=None) for s in sentences]
    if task == "constituents":
        return [replace(s, heads=None, arc_labels=None) for s in sentences]
    return list(sentences)


def trainable(sentences: Sequence[Sentence], longest: int, task: str = "joint") -> tuple[list[Sentence], str]:
    """Return the sentences from which a parser can learn a task, and a line that counts those left out.

    longest: the most words of a sentence. Raises CorpusError if no sentence is left.
    """
    short = [s for s in layers_of(sentences, task) if len(s) <= longest]
    kept = [s for s in short if _fits(s, task)]
    lacking = {"joint": "not joint", "dependencies": "without heads", "constituents": "without a tree over all words"}
    too_long, wrong = len(sentences) - len(short), len(short) - len(kept)
    left_out = f"left out: {too_long} longer than {longest} words, {wrong} {lacking[task]}"
    if not kept:
        remedy = "See `lalkit data check`, and train.max_length. For dependencies alone: --set model.task=dependencies"
        raise CorpusError(f"no sentence to train on; {left_out}", remedy=remedy)
    return kept, left_out


def _fits(sentence: Sentence, task: str) -> bool:
    if task == "dependencies":
        return sentence.heads is not None
    if task == "constituents":
        return bool(sentence.constituents) and sentence.constituents[0][:2] == (0, len(sentence))
    return isinstance(_joint_form(sentence), tuple)


def _joint_form(sentence: Sentence) -> tuple[JointSpan, ...] | JointError:
    try:
        return to_joint(sentence)
    except JointError as error:
        return error


def subset(sentences: Sequence[Sentence], size: int) -> list[Sentence]:
    """Return `size` sentences from all over a part, at equal distances. Size 0 means all sentences."""
    if not size or size >= len(sentences):
        return list(sentences)
    return [sentences[i * len(sentences) // size] for i in range(size)]


@dataclass(frozen=True)
class Report:
    """problems: sentences that could not be read. not_joint: sentences without a joint form. Each error says where and why."""

    sentences: int
    problems: tuple[TreebankError, ...]
    not_joint: tuple[JointError, ...]

    @property
    def clean(self) -> bool:
        return not self.problems and not self.not_joint


def check(corpus: Treebank) -> Report:
    """Return every problem of a corpus that was loaded with lenient=True. Sentences without constituents need no joint form."""
    forms = [_joint_form(sentence) for sentence in corpus.sentences if sentence.constituents is not None]
    return Report(len(corpus), corpus.problems, tuple(form for form in forms if isinstance(form, JointError)))


def stats(corpus: Treebank) -> dict[str, int | float]:
    """Count what is in one split. The order is that in which the counts are printed."""
    lengths = [len(s) for s in corpus.sentences]
    labels = Counter(span.label for s in corpus.sentences for span in s.constituents or ())
    forms = [form for form in map(_joint_form, corpus.sentences) if not isinstance(form, JointError)]
    return {
        "sentences": len(lengths),
        "unread": len(corpus.problems),
        "words": sum(lengths),
        "mean length": round(sum(lengths) / max(len(lengths), 1), 1),
        "longest": max(lengths, default=0),
        "constituents": sum(labels.values()),
        "labels": len({part for label in labels for part in label.split(UNARY)}),
        "labels with unary chains": len(labels),
        "groups (<H>)": sum(span.label == GROUP for form in forms for span in form),
        "tags": len({tag for s in corpus.sentences for tag in s.tags or ()}),
        "arc labels": len({label for s in corpus.sentences for label in s.arc_labels or ()}),
    }
