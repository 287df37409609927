"""EVALB: labelled brackets compared as the C program of Sekine and Collins compares them, its parameter file as data.

Convention, as read from and measured on the C program:

* a word is deleted by its *tag*, exactly as written, and each tree by its own tags. COLLINS deletes the tags ',' ':'
  '``' "''" and '.'; a question mark tagged '.' is therefore deleted too, and only one whose tag is literally '?' stays
  (NK deletes that as well). Positions are counted over the words left, so a phrase of deleted words only is no bracket.
* only after that are the two sides compared: another number of words is 'error: length', another word 'error: words'.
  A tag that moves a word over the line (':' for NN) thus makes an error. NK has the repair of newer versions for
  a possessive or quote ' " / that one side deletes and the other does not; COLLINS, like its file, has not.
* a prediction of which no word is left is 'skipped: empty', and this is asked first, whatever the gold tree is.
* labels of phrases are cut at the first '-' or '=', even in first place (-X becomes the empty label, as in C). Tags are
  never cut: -LRB- stays -LRB-. TOP is deleted, S1 by NK only, ROOT by neither; an unlabelled bracket counts.
* brackets match as a multiset, and a predicted bracket that crosses any gold bracket counts as crossing once.

Departures: there is no give-up after 10 errors (nor fixed-size buffers), and F1 is 0, not nan, where nothing matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lalkit.treebank.brackets import escape
from lalkit.treebank.tree import Node

OK, EMPTY, LENGTH, WORDS = "ok", "skipped: empty", "error: length", "error: words"
TRACE = "-NONE-"
QUOTE_WORDS = ("'", '"', "/")  # the words the quote repair looks at, fixed in the C program


@dataclass(frozen=True)
class EvalbRules:
    """A parameter file as data.

    deleted: DELETE_LABEL, one list for both: a tag deletes its word, a phrase label its bracket (not what is below it).
    equal_labels: EQ_LABEL as classes; the members of one class are the same label, for phrases and for tags.
    quote_tags: QUOTE_LABEL; empty = no quote repair. labelled: LABELED; False compares spans alone.
    """

    name: str
    deleted: frozenset[str]
    equal_labels: tuple[frozenset[str], ...] = ()
    quote_tags: frozenset[str] = frozenset()
    labelled: bool = True

    def cut(self, label: str) -> str:
        """NP-SBJ=2 -> NP: a phrase label up to its first '-' or '='."""
        return re.split("[-=]", label, maxsplit=1)[0]

    def same(self, label: str) -> str:
        """The one name under which a label and its equals are compared: PRT -> ADVP."""
        return next((min(equals) for equals in self.equal_labels if label in equals), label)


COLLINS = EvalbRules(
    name="COLLINS.prm",
    deleted=frozenset({"TOP", TRACE, ",", ":", "``", "''", "."}),
    equal_labels=(frozenset({"ADVP", "PRT"}),),
)
NK = EvalbRules(
    name="nk.prm",
    deleted=COLLINS.deleted | {"S1", "?", "!"},
    equal_labels=COLLINS.equal_labels,
    quote_tags=frozenset({"``", "''", "POS", "NN", "CD", "VBZ", ":"}),
)


@dataclass(frozen=True)
class BracketCount:
    """One sentence. crossing counts predicted brackets; words and tags_right count the words not deleted.

    Unless status is 'ok' every count is 0: the sentence is left out of the totals, as in the C program.
    """

    matched: int = 0
    gold: int = 0
    predicted: int = 0
    crossing: int = 0
    words: int = 0
    tags_right: int = 0
    status: str = OK

    @property
    def complete(self) -> bool:
        """Exact match: every bracket of either side has its partner (true of two bare leaves, which have none)."""
        return self.status == OK and self.matched == self.gold == self.predicted


def score_brackets(gold: Node, predicted: Node | None, rules: EvalbRules = COLLINS) -> BracketCount:
    """The counts of one sentence. None is the empty parse. Bad pairs come back as a status, nothing is raised."""
    if predicted is None:
        return BracketCount(status=EMPTY)
    gold_leaves, predicted_leaves = gold.leaves(), predicted.leaves()
    gold_kept = [leaf.label not in rules.deleted for leaf in gold_leaves]
    predicted_kept = [leaf.label not in rules.deleted for leaf in predicted_leaves]
    if not any(predicted_kept):
        return BracketCount(status=EMPTY)
    if rules.quote_tags and sum(gold_kept) != sum(predicted_kept):
        _repair_quotes(gold_leaves, predicted_leaves, gold_kept, predicted_kept, rules)
    if sum(gold_kept) != sum(predicted_kept):
        return BracketCount(status=LENGTH)
    pairs = list(zip(_select(gold_leaves, gold_kept), _select(predicted_leaves, predicted_kept)))
    # '(' and '-LRB-' are one word: they are written alike, and the C program sees what is written.
    if any(escape(a.word) != escape(b.word) for a, b in pairs):
        return BracketCount(status=WORDS)
    expected, found = _brackets(gold, gold_kept, rules), _brackets(predicted, predicted_kept, rules)
    spans = {(start, end) for start, end, _ in expected}
    return BracketCount(
        matched=(expected & found).total(),
        gold=expected.total(),
        predicted=found.total(),
        crossing=sum(times for (start, end, _), times in found.items() if _crosses(start, end, spans)),
        words=len(pairs),
        tags_right=sum(rules.same(a.label) == rules.same(b.label) for a, b in pairs),
    )


def _select(leaves: Sequence[Node], kept: Sequence[bool]) -> list[Node]:
    return [leaf for leaf, keep in zip(leaves, kept) if keep]


def _repair_quotes(
    gold: list[Node], predicted: list[Node], gold_kept: list[bool], predicted_kept: list[bool], rules: EvalbRules
) -> None:
    """Keeps, on both sides, a quote that one side's tag deletes and the other's does not; changes the two lists.

    Leaves are paired by position, traces left out (the C program pairs by position among the words not deleted; the two
    agree unless there are other errors in the sentence).
    """
    here = [i for i, leaf in enumerate(gold) if leaf.label != TRACE]
    there = [i for i, leaf in enumerate(predicted) if leaf.label != TRACE]
    if len(here) != len(there):
        return
    for i, j in zip(here, there):
        both = gold[i], predicted[j]
        if all(leaf.word in QUOTE_WORDS and leaf.label in rules.quote_tags for leaf in both):
            gold_kept[i] = predicted_kept[j] = gold_kept[i] or predicted_kept[j]


def brackets(tree: Node, rules: EvalbRules = COLLINS) -> Counter[tuple[int, int, str]]:
    """The multiset of (start, end, label) that is scored, places counted over the words that are not deleted."""
    return _brackets(tree, [leaf.label not in rules.deleted for leaf in tree.leaves()], rules)


def _brackets(tree: Node, kept: Sequence[bool], rules: EvalbRules) -> Counter[tuple[int, int, str]]:
    """The multiset of (start, end, label) over the kept words; no recursion, trees may be deep."""
    deleted = {rules.same(label) for label in rules.deleted}
    found: Counter[tuple[int, int, str]] = Counter()
    leaf = position = 0
    stack: list[Node | tuple[int, str]] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            start, label = item
            if start < position and label not in deleted:
                found[start, position, label if rules.labelled else ""] += 1
        elif item.is_leaf:
            position += kept[leaf]
            leaf += 1
        else:
            stack.append((position, rules.same(rules.cut(item.label))))
            stack.extend(reversed(item.children))
    return found


def _crosses(start: int, end: int, spans: set[tuple[int, int]]) -> bool:
    return any(a < start < b < end or start < a < end < b for a, b in spans)


@dataclass(frozen=True)
class BracketTotals:
    """The counts of a corpus. Measures are percent, over the sentences not left out; 0 where nothing can be divided."""

    sentences: int = 0
    empty: int = 0
    errors: int = 0
    complete: int = 0
    matched: int = 0
    gold: int = 0
    predicted: int = 0
    crossing: int = 0
    words: int = 0
    tags_right: int = 0

    @classmethod
    def of(cls, counts: Iterable[BracketCount]) -> "BracketTotals":
        """Sums over sentences, all of them: however many are bad, it never gives up."""
        counts = list(counts)
        names = ("complete", "matched", "gold", "predicted", "crossing", "words", "tags_right")
        return cls(
            sentences=len(counts),
            empty=sum(count.status.startswith("skipped") for count in counts),
            errors=sum(count.status.startswith("error") for count in counts),
            **{name: sum(getattr(count, name) for count in counts) for name in names},
        )

    @property
    def skipped(self) -> int:
        """Sentences left out, for whatever reason."""
        return self.empty + self.errors

    @property
    def precision(self) -> float:
        return percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        return percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        return percent(2 * self.matched, self.gold + self.predicted)  # = 2pr / (p + r)

    @property
    def exact(self) -> float:
        """Complete matches among the sentences not left out."""
        return percent(self.complete, self.sentences - self.skipped)

    @property
    def mean_crossing(self) -> float:
        """Crossing brackets per sentence not left out (no percentage)."""
        return percent(self.crossing, self.sentences - self.skipped) / 100

    @property
    def tag_accuracy(self) -> float:
        return percent(self.tags_right, self.words)


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
