"""Turn constituents and heads into joint spans, and back: one simplified-HPSG tree over both layers (Zhou and Zhao 2019,
section 3).

A joint span is a constituent with its head word: the one word of the span whose own head lies outside the span. The full
yield of a word is the word with all its descendants. In the joint tree each full yield is either a single word or a span.
Sometimes a yield wider than one word is no constituent: inside a flat constituent, some words depend on a sibling. Such a
group of words becomes a span with the special label <H>. Groups can contain groups. On the way back to constituents, <H> is
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from lalkit.errors import JointError, TreebankError
from lalkit.treebank.tree import GROUP, Sentence, Span, check_heads

REMEDY = "Correct one of the two layers. Training on joint trees leaves such a sentence out."


class JointSpan(NamedTuple):
    """A constituent or group over words[start:end], with its label (unary chains joined by '::') and its head word (from 1)."""

    start: int
    end: int
    label: str
    head: int


def yields(heads: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return for each word the fenceposts (start, end) of its full yield. heads must be a projective tree."""
    n = len(heads)
    left, right = list(range(n)), list(range(1, n + 1))
    for i in range(n):  # every word widens the yields of all its ancestors
        j = heads[i]
        while j:
            left[j - 1], right[j - 1] = min(left[j - 1], i), max(right[j - 1], i + 1)
            j = heads[j - 1]
    return list(zip(left, right))


def external_head(heads: Sequence[int], start: int, end: int) -> int | None:
    """Return the word (0-based) of words[start:end] whose head lies outside, or None unless there is exactly one."""
    outside = [i for i in range(start, end) if not start < heads[i] <= end]
    return outside[0] if len(outside) == 1 else None


def head_word(sentence: Sentence, start: int, end: int) -> str | None:
    """Return the word of `external_head`; None without dependencies."""
    head = external_head(sentence.heads, start, end) if sentence.heads else None
    return None if head is None else sentence.words[head]


def to_joint(sentence: Sentence) -> tuple[JointSpan, ...]:
    """Return the joint spans of a sentence, in pre-order. Raises JointError if the two layers do not fit together."""
    if sentence.constituents is None or sentence.heads is None:
        remedy = "Give both layers, or train one task alone: --set model.task=constituents or dependencies."
        raise JointError("the joint form needs constituents and dependencies", where=sentence.id, remedy=remedy)
    if sentence.free_arcs:
        try:
            check_heads(sentence.heads)
        except TreebankError as error:
            raise JointError(error.problem, where=sentence.id, remedy=REMEDY) from None
    covers = yields(sentence.heads)
    spans = {(span.start, span.end): _joint_span(sentence, span, covers) for span in sentence.constituents}
    if (0, len(sentence)) not in spans:
        remedy = "Put one constituent over all words."
        raise JointError("no constituent covers the whole sentence", where=sentence.id, remedy=remedy)
    for word, cover in enumerate(covers, 1):
        if cover[1] - cover[0] > 1 and cover not in spans:
            spans[cover] = JointSpan(*cover, GROUP, word)
    return tuple(sorted(spans.values(), key=lambda span: (span.start, -span.end)))


def joint_constituents(sentence: Sentence) -> list[Span]:
    """Return the constituents of a sentence that the joint form can represent, each by itself. No arcs may cross."""
    covers, agreeing = yields(sentence.heads), []
    for span in sentence.constituents:
        with suppress(JointError):
            _joint_span(sentence, span, covers)
            agreeing.append(span)
    return agreeing


def _joint_span(sentence: Sentence, span: Span, covers: list[tuple[int, int]]) -> JointSpan:
    inside = range(span.start, span.end)
    heads = [i + 1 for i in inside if not span.start < sentence.heads[i] <= span.end]
    if len(heads) != 1:
        words = ", ".join(f"{sentence.words[i - 1]} ({i})" for i in heads)
        raise _not_joint(sentence, span, f"has {len(heads)} words with a head outside it ({words}) instead of one")
    for i in inside:
        start, end = covers[i]
        if i + 1 != heads[0] and not span.start <= start < end <= span.end:
            raise _not_joint(sentence, span, f"has an outer dependent of word {i + 1}, which is not its head word")
    return JointSpan(*span, heads[0])


def _not_joint(sentence: Sentence, span: Span, problem: str) -> JointError:
    text = " ".join(sentence.words[span.start : span.end][:8])
    constituent = f"the constituent {span.label} ({span.start}, {span.end}) [{text}]"
    return JointError(f"{constituent} {problem}", REMEDY, where=sentence.id)


def from_joint(
    words: tuple[str, ...],
    spans: Iterable[tuple[int, int, str, int]],
    heads: tuple[int, ...],
    tags: tuple[str, ...] | None = None,
    arc_labels: tuple[str, ...] | None = None,
    id: str = "",
) -> Sentence:
    """Return the sentence of joint spans and heads, without <H>. Raises TreebankError if they are not trees.

    Args:
        words: the words.
        spans: (start, end, label, head word), over fenceposts.
        heads: the head word of each word, from 1; 0 is the root.
        tags: the tag of each word, or None.
        arc_labels: the label of each arc, or None.
        id: the id of the sentence.
    """
    constituents = tuple(Span(start, end, label) for start, end, label, _ in spans if label != GROUP)
    return Sentence(words, tags, constituents, tuple(heads), arc_labels, id)
