"""Silver constituents, which a parser drew: write them as the Penn Treebank's guidelines do.

The parser that made the constituents of GUM leaves out, or names otherwise, two kinds of small constituents. Rules find them.
On the trees that people drew for the Penn Treebank sample, the same rules change next to nothing (a test counts):

* a relative pronoun or question word alone at the beginning of a clause is a WHNP or a WHADVP: (SBAR (WHNP who) (S ...));
* a number of several words is a QP: (NP (QP $ 1.5 million)), (NP (QP 3 million) people).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from lalkit.treebank.tree import UNARY, Sentence, Span

CLAUSES = ("SBAR", "SBARQ")
WH_PHRASES = {"WDT": "WHNP", "WP": "WHNP", "WRB": "WHADVP"}
PLAIN = (None, "NP", "ADVP")  # what a parser has over such a word instead
NUMBER_TAGS = ("$", "#", "CD")
NUMBER_WORDS = ("hundred", "thousand", "million", "billion", "trillion")


def penn_form(sentence: Sentence) -> Sentence:
    """Return the sentence with the constituents that the Penn Treebank has in these two places; nothing else changes."""
    if sentence.constituents is None:
        return sentence
    labels = {(start, end): label for start, end, label in sentence.constituents}
    for start, end, label in sentence.constituents:
        wh = WH_PHRASES.get(sentence.tags[start])
        child_ends = [e for s, e in labels if s == start and e < end]
        if label.split(UNARY)[-1] in CLAUSES and wh and max(child_ends, default=start + 1) == start + 1 < end:
            if labels.get((start, start + 1)) in PLAIN:
                labels[start, start + 1] = wh
    for start, end in _numbers(sentence):
        around = [span for span in labels if span[0] <= start and end <= span[1]]
        smallest = min(around, key=lambda span: span[1] - span[0], default=None)
        if any(s < start < e < end or start < s < end < e for s, e in labels):
            continue  # a constituent has only a part of the number
        if smallest is None or not labels[smallest].endswith("QP"):
            labels[start, end] = f"{labels[start, end]}{UNARY}QP" if smallest == (start, end) else "QP"
    return replace(sentence, constituents=tuple(Span(*span, label) for span, label in labels.items()))


def _numbers(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yield the spans of numbers of several words that have a word such as million in them."""
    start = 0
    for number, run in groupby(sentence.tags, lambda tag: tag in NUMBER_TAGS):
        end = start + len(list(run))
        words = {word.lower() for word in sentence.words[start:end]}
        if number and end - start > 1 and not words.isdisjoint(NUMBER_WORDS):
            yield start, end
        start = end
