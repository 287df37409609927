"""Check and count treebanks: what is wrong with their sentences, and which of them a parser can learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lalkit.errors import CorpusError, JointError, TreebankError
from lalkit.treebank.corpora import Treebank, load
from lalkit.treebank.joint import GROUP, JointSpan, joint_constituents, to_joint
from lalkit.treebank.mixture import layers_of, parts_of, seen_in
from lalkit.treebank.tree import UNARY, Sentence, find_crossing


@dataclass(frozen=True)
class Lessons:
    """What a parser learns from: the sentences of every treebank of a mixture, and how often an epoch sees them.

    dev: the union of the dev parts. left_out: a line that counts what cannot be learned.
    """

    parts: tuple[tuple[list[Sentence], float], ...]
    dev: list[Sentence]
    left_out: str

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for sentences, _ in self.parts for sentence in sentences]

    def epoch(self, number: int) -> list[Sentence]:
        """Return the sentences that an epoch sees. Without a mixture these are all sentences."""
        return [sentence for part in self.parts for sentence in seen_in(*part, number)]


def lessons(treebank: str, task: str, longest: int) -> Lessons:
    """Read what a parser learns a task from: a treebank's train and dev parts, or those of a mixture.

    longest: the most words of a sentence. Raises CorpusError as `load` and `trainable` do, and if a joint parser would not see
    both layers.
    """
    parts = parts_of(treebank, task)
    dev = load(treebank, "dev", task=task)
    learned, lines, unread = [], [], 0
    for part in parts:
        corpus = load(part.name, "train", task=part.task)
        sentences, line = trainable(corpus.sentences, longest, part.task, one_layer=len(parts) > 1)
        learned.append((sentences, part.times))
        lines.append(f"{part.name}: {len(sentences)}, {line}" if len(parts) > 1 else line)
        unread += len(corpus.problems)
    if unread or dev.problems:
        lines.append(f"{unread} of train and {len(dev.problems)} of dev unread")
    result = Lessons(tuple(learned), layers_of(dev.sentences, task), "; ".join(lines))
    for name, layer in (("constituents", "constituents"), ("dependencies", "heads")):
        if task == "joint" and all(getattr(s, layer) is None for s in result.sentences):
            remedy = f"Add a treebank with {name}, or train the other layer alone with --task."
            raise CorpusError(
                f"a joint parser needs both layers, and there are no {name}", where=treebank, remedy=remedy
            )
    return result


def trainable(
    sentences: Sequence[Sentence], longest: int, task: str = "joint", one_layer: bool = False
) -> tuple[list[Sentence], str]:
    """Return the sentences from which a parser can learn a task, and a line that counts what is left out.

    Where people drew the arcs without regard to constituents (`Sentence.free_arcs`), the arcs stand: a sentence with crossing
    arcs is left out, and so is a single constituent with more than one outside head.

    Args:
        sentences: the sentences of a treebank.
        longest: the most words of a sentence.
        task: joint, dependencies or constituents.
        one_layer: for joint parsers, also keep sentences that have only one of the layers.

    Raises:
        CorpusError: no sentence is left.
    """
    short = [s for s in layers_of(sentences, task) if len(s) <= longest]
    straight = [s for s in short if not (s.free_arcs and s.heads and find_crossing(s.heads))]
    agreeing = [_agreeing(s) for s in straight]
    kept = [s for s in agreeing if _fits(s, _layers(s, task) if one_layer else task)]
    lacking = {"joint": "not joint", "dependencies": "without heads", "constituents": "without a tree over all words"}
    too_long, wrong = len(sentences) - len(short), len(straight) - len(kept)
    left_out = f"left out: {too_long} longer than {longest} words, {wrong} {lacking[task]}"
    if len(straight) < len(short):
        left_out += f", {len(short) - len(straight)} with crossing arcs"
    if against := _constituents(straight) - _constituents(agreeing):
        left_out += f", {against} constituents that disagree with the arcs"
    if not kept:
        remedy = "See `lalkit data check`, and train.max_length. For dependencies alone: --set model.task=dependencies"
        raise CorpusError(f"no sentence to train on; {left_out}", remedy=remedy)
    return kept, left_out


def _agreeing(sentence: Sentence) -> Sentence:
    """Return the sentence without the constituents that disagree with arcs that stand."""
    if not (sentence.free_arcs and sentence.heads and sentence.constituents):
        return sentence
    return replace(sentence, constituents=tuple(joint_constituents(sentence)))


def _constituents(sentences: Sequence[Sentence]) -> int:
    return sum(len(s.constituents or ()) for s in sentences)


def _layers(sentence: Sentence, task: str) -> str:
    """Return the part of a task that the layers of a sentence allow."""
    if task != "joint" or (sentence.heads is not None) == (sentence.constituents is not None):
        return task
    return "constituents" if sentence.heads is None else "dependencies"


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
        "sentences with crossing arcs": sum(bool(s.heads and find_crossing(s.heads)) for s in corpus.sentences),
    }
