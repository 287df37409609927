"""Which sentences of a treebank a parser can learn from, and with which of their layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lalkit.errors import CorpusError, JointError
from lalkit.treebank.joint import to_joint
from lalkit.treebank.tree import Sentence


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
