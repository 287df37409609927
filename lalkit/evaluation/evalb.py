"""Compare labelled brackets as EVALB does, the C program of Sekine and Collins. Its parameter files are data here
(`EvalbRules`).

These rules were read in the C program and checked by running it:

* The *tag* of a word decides whether the word is deleted. Tags are compared exactly as written, and each tree uses its own
  tags. COLLINS deletes the tags ',' ':' '``' "''" and '.'. So it also deletes a question mark tagged '.', and keeps only one
  whose tag is literally '?'. Positions are counted over the words that are left, so a phrase of deleted words is no bracket.
* The two sides are compared after that. If the numbers of words differ, the result is 'error: length'; if a word differs, it is
  'error: words'. So a wrong tag (':' for NN) can make an error.
* A prediction without a word left is 'skipped: empty', whatever the gold tree is.
* Labels of phrases are cut at the first '-' or '=', even at the start (-X becomes the empty label, as in C). Tags are never cut:
  -LRB- stays -LRB-. COLLINS deletes the label TOP, but neither S1 nor ROOT. An unlabelled bracket counts.
* Brackets match as a multiset.

Departures from the C program: it gives up after 10 errors and has buffers of fixed size, we do not; and if nothing matches,
F1 is 0 here, not nan. It also counts crossing brackets, we do not. Newer versions of the program can also repair a possessive
or a quote (' " /) that one side deletes and the other does not (QUOTE_LABEL in nk.prm). We do not.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from lalkit.treebank.tree import Node, escape

OK, EMPTY, LENGTH, WORDS = "ok", "skipped: empty", "error: length", "error: words"

Bracket = tuple[int, int, str]  # start, end (places between the words that are not deleted), label


@dataclass(frozen=True)
class EvalbRules:
    """A parameter file as data.

    deleted: DELETE_LABEL. A tag deletes its word; the label of a phrase deletes its bracket, but not what is below it.
    equal_labels: EQ_LABEL as classes. Labels of one class are the same label, for phrases and for tags.
    """

    deleted: frozenset[str]
    equal_labels: tuple[frozenset[str], ...] = ()

    def same(self, label: str) -> str:
        """Return the one name under which a label and its equals are compared: PRT -> ADVP."""
        return next((min(equals) for equals in self.equal_labels if label in equals), label)

    def words(self, tree: Node) -> list[Node]:
        """Return the leaves whose words are not deleted."""
        return [leaf for leaf in tree.leaves() if leaf.label not in self.deleted]


# COLLINS.prm
COLLINS = EvalbRules(frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}), (frozenset({"ADVP", "PRT"}),))


@dataclass(frozen=True)
class Counts:
    """Brackets and tags that were counted, and their scores in percent. A score is 0 if there is nothing to divide by.

    words and tags_right count the words that are not deleted.
    """

    matched: int = 0
    gold: int = 0
    predicted: int = 0
    words: int = 0
    tags_right: int = 0

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
    def tag_accuracy(self) -> float:
        return percent(self.tags_right, self.words)


@dataclass(frozen=True)
class BracketCount(Counts):
    """The counts of one sentence. If the status is not 'ok', the sentence is left out of the totals, as in the C program, and
    every count is 0."""

    status: str = OK

    @property
    def complete(self) -> bool:
        """Whether every bracket of either side has its partner. Two trees without brackets are complete, too."""
        return self.status == OK and self.matched == self.gold == self.predicted


def score_brackets(gold: Node, predicted: Node | None, rules: EvalbRules = COLLINS) -> BracketCount:
    """Count the brackets of one sentence. None is an empty parse. Trees that cannot be compared give a status, not an
    exception."""
    gold_words, predicted_words = (rules.words(tree) if tree else [] for tree in (gold, predicted))
    if not predicted_words:
        return BracketCount(status=EMPTY)
    if len(gold_words) != len(predicted_words):
        return BracketCount(status=LENGTH)
    pairs = list(zip(gold_words, predicted_words))
    # '(' and '-LRB-' are one word: they are written alike, and the C program sees the written form.
    if any(escape(a.word) != escape(b.word) for a, b in pairs):
        return BracketCount(status=WORDS)
    expected, actual = brackets(gold, rules), brackets(predicted, rules)
    return BracketCount(
        matched=(expected & actual).total(),
        gold=expected.total(),
        predicted=actual.total(),
        words=len(pairs),
        tags_right=sum(rules.same(a.label) == rules.same(b.label) for a, b in pairs),
    )


def brackets(tree: Node, rules: EvalbRules = COLLINS) -> Counter[Bracket]:
    """Return the multiset of brackets that are scored."""
    deleted = {rules.same(label) for label in rules.deleted}
    counts: Counter[Bracket] = Counter()
    position = 0
    stack: list[Node | tuple[int, str]] = [tree]  # no recursion: a tree may be very deep
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            start, label = item
            if start < position and label not in deleted:
                counts[start, position, label] += 1
        elif item.is_leaf:
            position += item.label not in rules.deleted
        else:
            label = re.split("[-=]", item.label, maxsplit=1)[0]  # NP-SBJ=2 -> NP
            stack.append((position, rules.same(label)))
            stack.extend(reversed(item.children))
    return counts


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
