"""Check and count treebanks: find problems of their sentences, and the sentences from which a parser can learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lalkit.errors import CorpusError, JointError, TreebankError
from lalkit.treebank.conllu import same_convention
from lalkit.treebank.corpora import Treebank, layers_of, load, parts_of
from lalkit.treebank.joint import JointSpan, joint_constituents, to_joint
from lalkit.treebank.tree import Sentence, find_crossing


@dataclass(frozen=True)
class Lessons:
    """The sentences from which a parser learns.

    parts: the sentences of every treebank of a mixture, and how often an epoch sees them. dev: the sentences that choose the best
    epoch. left_out: a line that counts the sentences that cannot be learned.
    """

    parts: list[tuple[list[Sentence], float]]
    dev: list[Sentence]
    left_out: str

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for sentences, _ in self.parts for sentence in sentences]

    def epoch(self, number: int) -> list[Sentence]:
        """Return the sentences that an epoch sees: with `times` 2.5, all of a part twice and half of them once more.

        The share is spread evenly, and each epoch takes it one sentence later than the epoch before.
        """
        seen = []
        for sentences, times in self.parts:
            size, (whole, share) = len(sentences), divmod(times, 1)
            count = min(size, max(round(share * size), share > 0))
            seen += sentences * int(whole) + [sentences[(i * size // count + number) % size] for i in range(count)]
        return seen


def lessons(treebank: str, task: str, longest: int) -> Lessons:
    """Read the sentences from which a parser learns a task: the train and dev parts of a treebank or of a mixture.

    longest: the most words of a sentence. Of a sentence with one of two layers, only this layer is learned. Raises CorpusError
    as `load` and `trainable` do, if a joint parser would not see both layers, or if two treebanks name their arcs differently.
    """
    named, dev = parts_of(treebank, task), load(treebank, "dev", task=task)
    parts, lines, unread, arcs = [], [], 0, {}
    for part in named:
        corpus = load(part.name, "train", task=part.task)
        sentences, line = trainable(corpus.sentences, longest, part.task, one_layer=True)
        parts.append((sentences, part.times))
        lines.append(f"{part.name}: {len(sentences)}, {line}" if len(named) > 1 else line)
        unread += len(corpus.problems)
        if labels := {label for s in sentences for label in s.arc_labels or ()}:
            arcs[part.name] = labels
            if not same_convention(labels, next(iter(arcs.values()))):
                problem = f"the arc labels of {' and '.join(arcs)} are different ones"
                raise CorpusError(problem, f"Use only the constituents: {part.name}:constituents.", where=treebank)
    if unread or dev.problems:
        lines.append(f"{unread} of train and {len(dev.problems)} of dev unread")
    result = Lessons(parts, layers_of(dev.sentences, task), "; ".join(lines))
    for name, layer in (("constituents", "constituents"), ("dependencies", "heads")):
        if task == "joint" and all(getattr(s, layer) is None for s in result.sentences):
            problem = f"a joint parser needs both layers, and there are no {name}"
            raise CorpusError(problem, f"Add a treebank with {name}, or train one layer alone: --task.", where=treebank)
    return result


def trainable(
    sentences: Sequence[Sentence], longest: int, task: str = "joint", one_layer: bool = False
) -> tuple[list[Sentence], str]:
    """Return the sentences from which a parser can learn a task, and a line that counts the left-out ones.

    Where people drew the arcs without regard to constituents (`Sentence.free_arcs`), arcs have priority: a sentence with
    crossing arcs is left out, and so is each constituent that disagrees with the arcs (`joint.joint_constituents`).

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
    kept = [s for s in agreeing if _fits(s, task, one_layer)]
    lacking = {"joint": "not joint", "dependencies": "without heads", "constituents": "without a tree over all words"}
    too_long, wrong = len(sentences) - len(short), len(straight) - len(kept)
    left_out = f"left out: {too_long} longer than {longest} words, {wrong} {lacking[task]}"
    if len(straight) < len(short):
        left_out += f", {len(short) - len(straight)} with crossing arcs"
    if against := sum(len(s.constituents or ()) - len(t.constituents or ()) for s, t in zip(straight, agreeing)):
        left_out += f", {against} constituents that disagree with the arcs"
    if not kept:
        remedy = "See `lalkit data check`. For one layer alone: --task dependencies"
        raise CorpusError(f"no sentence to train on; {left_out}", remedy)
    return kept, left_out


def _agreeing(sentence: Sentence) -> Sentence:
    """Return the sentence without the constituents that disagree with its free arcs."""
    if not (sentence.free_arcs and sentence.heads and sentence.constituents):
        return sentence
    return replace(sentence, constituents=tuple(joint_constituents(sentence)))


def _fits(sentence: Sentence, task: str, one_layer: bool) -> bool:
    if task == "joint" and one_layer and (sentence.heads is None) != (sentence.constituents is None):
        task = "constituents" if sentence.heads is None else "dependencies"
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


def check(corpus: Treebank) -> list[TreebankError]:
    """Return every problem of a corpus that was loaded with lenient=True, and of every sentence without a joint form.

    Each error says where and why. Sentences with one layer need no joint form.
    """
    forms = [_joint_form(s) for s in corpus.sentences if s.constituents is not None and s.heads is not None]
    return [*corpus.problems, *(form for form in forms if isinstance(form, JointError))]
