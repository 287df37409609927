"""(constituents, heads) <-> joint spans: one simplified-HPSG tree over both layers (Zhou and Zhao 2019, section 3).

A joint span is a constituent with its head word: the one word of the span whose own head lies outside it. In the joint
tree every word's full yield (the word with all its descendants) is either that single word or a span. Where a yield wider
than one word is no constituent (a group of words headed by a sibling inside a flat constituent), it becomes a span with
the special label <H>; groups inside groups, to any depth, are spans inside spans. <H> is removed on the way back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lalkit.errors import JointError
from lalkit.treebank.tree import Sentence, Span

GROUP = "<H>"


class JointSpan(NamedTuple):
    """words[start:end] with its label (unary chains joined by '::') and its head word (1-based)."""

    start: int
    end: int
    label: str
    head: int


def yields(heads: tuple[int, ...]) -> list[tuple[int, int]]:
    """For each word the fenceposts (start, end) of its full yield; heads must be a projective tree."""
    n = len(heads)
    left, right = list(range(n)), list(range(1, n + 1))
    for i in range(n):  # every word stretches the yield of all its ancestors
        j = heads[i]
        while j:
            left[j - 1], right[j - 1] = min(left[j - 1], i), max(right[j - 1], i + 1)
            j = heads[j - 1]
    return list(zip(left, right))


def to_joint(sentence: Sentence) -> tuple[JointSpan, ...]:
    """The joint spans of a sentence, in pre-order. Raises JointError, with the words, where the layers do not agree."""
    if sentence.constituents is None or sentence.heads is None:
        raise JointError("the joint form needs constituents and dependencies", where=sentence.id)
    covers = yields(sentence.heads)
    found = {(span.start, span.end): _joint_span(sentence, span, covers) for span in sentence.constituents}
    for word, cover in enumerate(covers, 1):
        if cover[1] - cover[0] > 1 and cover not in found:
            found[cover] = JointSpan(*cover, GROUP, word)
    if found.get((0, len(sentence)), (0, 0, GROUP))[2] == GROUP:
        raise JointError("no constituent covers the whole sentence", where=sentence.id)
    return tuple(sorted(found.values(), key=lambda s: (s.start, -s.end)))


def joint_constituents(sentence: Sentence) -> int:
    """How many of a sentence's constituents the joint form can represent, each taken by itself."""
    covers, good = yields(sentence.heads), 0
    for span in sentence.constituents:
        try:
            _joint_span(sentence, span, covers)
            good += 1
        except JointError:
            pass
    return good


def _joint_span(sentence: Sentence, span: Span, covers: list[tuple[int, int]]) -> JointSpan:
    head = _head_word(sentence, span)
    for dependent in range(span.start, span.end):
        inside = span.start <= covers[dependent][0] and covers[dependent][1] <= span.end
        if dependent + 1 != head and not inside:
            raise JointError(
                f"a word outside the constituent {_show(sentence, span)} depends on {sentence.words[dependent]!r} "
                f"(word {dependent + 1}) inside it, which is not its head word",
                where=sentence.id,
            )
    return JointSpan(*span, head)


def _head_word(sentence: Sentence, span: Span) -> int:
    """The one word (1-based) of a span whose head is outside it."""
    outside = [i + 1 for i in range(span.start, span.end) if not span.start < sentence.heads[i] <= span.end]
    if len(outside) != 1:
        raise JointError(
            f"the constituent {_show(sentence, span)} has {len(outside)} words with a head outside it "
            f"({', '.join(f'{sentence.words[i - 1]} ({i})' for i in outside)}) instead of one",
            where=sentence.id,
        )
    return outside[0]


def _show(sentence: Sentence, span: Span) -> str:
    words = sentence.words[span.start : span.end]
    text = " ".join(words if len(words) <= 8 else (*words[:4], "...", *words[-3:]))
    return f"{span.label} ({span.start}, {span.end}) [{text}]"


def from_joint(
    words: tuple[str, ...],
    spans: Iterable[tuple[int, int, str, int]],
    heads: tuple[int, ...],
    tags: tuple[str, ...] | None = None,
    arc_labels: tuple[str, ...] | None = None,
    id: str = "",
) -> Sentence:
    """Joint spans and heads -> Sentence, <H> removed. Raises TreebankError if they are no tree."""
    constituents = tuple(Span(start, end, label) for start, end, label, _ in spans if label != GROUP)
    return Sentence(words, tags, constituents, tuple(heads), arc_labels, id)
