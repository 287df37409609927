"""How good are predicted sentences? EVALB brackets, UAS and LAS over a corpus, and a table with a row per sentence.

Conventions, each stated because scores change with them:

* Brackets and tags follow the C program, see `lalkit.evaluation.evalb`: a sentence without a parse, or whose words differ, is left
  out of precision, recall, F1, exact match and tag accuracy, and counted in `skipped`.
* Attachment leaves nothing out: the arcs of a sentence without a parse, or whose words differ, are all wrong.
* Punctuation is what the *gold* tag says it is (`PUNCTUATION`); a bracket -LRB- or a currency sign $ is a word. The
  root arc counts. LAS asks for head and label, compared exactly as written.
* Brackets are scored under the gold tags, as has always been done with parsers that were given the tags: a parser that
  predicts its own must not have a sentence left out because it took a quote for an apostrophe. `retag=False` scores
  each side under its own tags, as the C program would on two files. Tag accuracy compares the predicted tags either way.
* A predicted sentence without tags takes the gold ones; where gold has none, no word is known to be punctuation: EVALB
  deletes nothing, and the scores without punctuation are None.

Where the errors are: scores by sentence length and by constituent label.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lalkit.errors import LalkitError
from lalkit.evaluation.evalb import (
    COLLINS,
    EMPTY,
    NK,
    OK,
    BracketCount,
    BracketTotals,
    EvalbRules,
    brackets,
    percent,
    score_brackets,
)
from lalkit.treebank.brackets import escape
from lalkit.treebank.tree import Node, Sentence

__all__ = [
    "COLLINS", "NK", "PUNCTUATION", "AttachmentCount", "BracketCount", "BracketTotals", "EvalbRules", "Evaluation",
    "attachment", "evaluate", "score_brackets",
]  # fmt: skip

# The usual five of the Penn Treebank (Stanford's and Zhou and Zhao's evaluation), and the Chinese Treebank's PU.
PUNCTUATION = frozenset({"``", "''", ":", ",", ".", "PU"})
NO_GOLD = "skipped: no gold tree"


@dataclass(frozen=True)
class AttachmentCount:
    """The arcs of one sentence: all, with the right head, with the right head and label (None: gold has no labels)."""

    arcs: int
    heads_right: int
    labels_right: int | None

    @property
    def uas(self) -> float:
        """Percent."""
        return percent(self.heads_right, self.arcs)

    @property
    def las(self) -> float | None:
        """Percent, or None without gold labels."""
        return None if self.labels_right is None else percent(self.labels_right, self.arcs)


def attachment(gold: Sentence, predicted: Sentence | None, punctuation: bool) -> AttachmentCount:
    """The arcs of one sentence, with or without (`punctuation=False`) words that the gold tag calls punctuation.

    A prediction that is None, has no heads or has other words has no right arc. Without gold tags every word counts.
    Raises LalkitError if the gold sentence has no dependencies.
    """
    if gold.heads is None:
        raise LalkitError(
            "the gold sentence has no dependencies to compare with",
            where=gold.id,
            remedy="Read the corpus with its dependency layer, or score the brackets alone.",
        )
    tags = gold.tags if gold.tags is not None and not punctuation else ("",) * len(gold)
    scored = [i for i, tag in enumerate(tags) if tag not in PUNCTUATION]
    right = []
    if predicted is not None and predicted.heads is not None and _same_words(gold, predicted):
        right = [i for i in scored if gold.heads[i] == predicted.heads[i]]
    labels = None
    if gold.arc_labels is not None:
        known = predicted is not None and predicted.arc_labels is not None
        labels = sum(gold.arc_labels[i] == predicted.arc_labels[i] for i in right) if known else 0
    return AttachmentCount(len(scored), len(right), labels)


def _same_words(gold: Sentence, predicted: Sentence) -> bool:
    """'(' and '-LRB-' are one word, as for the brackets: CRAFT's trees have one and its dependencies the other."""
    return [*map(escape, gold.words)] == [*map(escape, predicted.words)]


@dataclass(frozen=True)
class _Row:
    """One sentence: attachments are None where the layer (or, without punctuation, the gold tags) is missing."""

    id: str
    length: int
    brackets: BracketCount
    without_punctuation: AttachmentCount | None
    with_punctuation: AttachmentCount | None


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found. The flags say which layers gold and prediction both have, so which scores exist."""

    rows: tuple[_Row, ...]
    has_trees: bool
    has_labels: bool
    has_tags: bool

    @property
    def brackets(self) -> BracketTotals:
        """The corpus totals of the brackets; without trees only words, tags and skipped sentences mean anything."""
        return BracketTotals.of(row.brackets for row in self.rows)

    def summary(self) -> dict[str, float | int | None]:
        """Scores in percent, None where a layer is missing in gold or prediction; `sentences` and `skipped` are counts.

        uas, las: without punctuation; uas_all, las_all: every word. exact: whole trees; tag_accuracy: EVALB's, over
        words not deleted. precision, recall, f1, exact and tag_accuracy leave out the `skipped` sentences.
        """
        totals = self.brackets
        measures = ("precision", "recall", "f1", "exact")
        without = [row.without_punctuation for row in self.rows if row.without_punctuation is not None]
        with_ = [row.with_punctuation for row in self.rows if row.with_punctuation is not None]
        return {
            **{name: getattr(totals, name) if self.has_trees else None for name in measures},
            "uas": _uas(without),
            "las": _las(without) if self.has_labels else None,
            "uas_all": _uas(with_),
            "las_all": _las(with_) if self.has_labels else None,
            "tag_accuracy": totals.tag_accuracy if self.has_tags else None,
            "sentences": totals.sentences,
            "skipped": totals.skipped,
        }

    def table(self) -> pd.DataFrame:
        """One row per sentence, in corpus order; a count or score that does not exist is missing (<NA>, NaN).

        id, length (all words); matched, gold, predicted (brackets), precision, recall, f1 (percent; missing where
        nothing can be divided), exact; arcs, arcs_right, labels_right (head and label) without punctuation, or over all
        words where gold has no tags; tags_right (over the words EVALB keeps); status ('ok', or why brackets and tags
        are left out).
        """
        return pd.DataFrame([self._record(row) for row in self.rows], columns=list(COLUMNS)).astype(COLUMNS)

    def _record(self, row: _Row) -> dict:
        count, arcs = row.brackets, row.without_punctuation or row.with_punctuation
        scored = count.status == OK
        brackets = scored and self.has_trees
        return {
            "id": row.id,
            "length": row.length,
            "matched": count.matched if brackets else None,
            "gold": count.gold if brackets else None,
            "predicted": count.predicted if brackets else None,
            "precision": _share(count.matched, count.predicted),
            "recall": _share(count.matched, count.gold),
            "f1": _share(2 * count.matched, count.gold + count.predicted),
            "exact": count.complete if brackets else None,
            "arcs": arcs.arcs if arcs else None,
            "arcs_right": arcs.heads_right if arcs else None,
            "labels_right": arcs.labels_right if arcs and self.has_labels else None,
            "tags_right": count.tags_right if scored and self.has_tags else None,
            "status": count.status,
        }


COLUMNS = {
    "id": "str", "length": "int64", "matched": "Int64", "gold": "Int64", "predicted": "Int64", "precision": "float64",
    "recall": "float64", "f1": "float64", "exact": "boolean", "arcs": "Int64", "arcs_right": "Int64",
    "labels_right": "Int64", "tags_right": "Int64", "status": "str",
}  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    """Percent, or None of nothing: a right one-word tree has no bracket, and its F1 is not 0."""
    return percent(part, whole) if whole else None


def _uas(counts: Sequence[AttachmentCount]) -> float | None:
    return percent(sum(c.heads_right for c in counts), sum(c.arcs for c in counts)) if counts else None


def _las(counts: Sequence[AttachmentCount]) -> float | None:
    """Over the sentences whose gold arcs are labelled."""
    labelled = [c for c in counts if c.labels_right is not None]
    return percent(sum(c.labels_right for c in labelled), sum(c.arcs for c in labelled)) if labelled else None


def evaluate(
    gold: Sequence[Sentence], predicted: Sequence[Sentence | None], rules: EvalbRules = COLLINS, *, retag: bool = True
) -> Evaluation:
    """Scores a corpus, sentence i against sentence i; None stands for a sentence that could not be parsed.

    A layer is scored if some gold sentence and some prediction have it, tags if all have them; predictions that are all
    None lack no layer, and score 0. Raises LalkitError unless there are as many predictions as gold sentences; nothing
    else about a prediction is an error: an unknown label or tag is merely wrong.
    """
    gold, predicted = list(gold), list(predicted)
    if len(gold) != len(predicted):
        raise LalkitError(
            f"{len(gold)} gold sentences but {len(predicted)} predicted ones",
            remedy="Give one prediction per gold sentence, in the same order; None for one that could not be parsed.",
        )
    parses = [sentence for sentence in predicted if sentence is not None]
    has = {layer: _both_have(layer, gold, parses) for layer in ("constituents", "heads", "arc_labels")}
    has_tags = bool(gold) and all(sentence.tags is not None for sentence in gold + parses)
    rows = []
    for expected, found in zip(gold, predicted):
        arcs = has["heads"] and expected.heads is not None
        rows.append(
            _Row(
                id=expected.id,
                length=len(expected),
                brackets=_score_brackets(expected, found, rules, has["constituents"], retag),
                without_punctuation=attachment(expected, found, False) if arcs and expected.tags is not None else None,
                with_punctuation=attachment(expected, found, True) if arcs else None,
            )
        )
    return Evaluation(tuple(rows), has["constituents"], has["arc_labels"], has_tags)


def _both_have(layer: str, gold: list[Sentence], parses: list[Sentence]) -> bool:
    in_gold = any(getattr(sentence, layer) is not None for sentence in gold)
    return in_gold and (not parses or any(getattr(sentence, layer) is not None for sentence in parses))


def _score_brackets(
    gold: Sentence, predicted: Sentence | None, rules: EvalbRules, has_trees: bool, retag: bool
) -> BracketCount:
    if has_trees and gold.constituents is None:
        return BracketCount(status=NO_GOLD)
    if predicted is None or (has_trees and predicted.constituents is None):
        return BracketCount(status=EMPTY)
    tags = predicted.tags
    untagged = gold.tags is None or tags is None
    retagged = len(gold) == len(predicted) and (untagged or retag)
    if retagged:
        predicted = dataclasses.replace(predicted, tags=gold.tags)
    count = score_brackets(_tree(gold, has_trees), _tree(predicted, has_trees), rules)
    if retagged and not untagged and count.status == OK:
        right = sum(g == p for g, p in zip(gold.tags, tags) if g not in rules.deleted)
        count = dataclasses.replace(count, tags_right=right)
    return count


def _tree(sentence: Sentence, has_trees: bool) -> Node:
    """The sentence's tree; without trees a flat one, which has no brackets but words and tags to compare."""
    return (sentence if has_trees else dataclasses.replace(sentence, constituents=())).tree


LENGTHS = (10, 20, 30, 40, 60)  # words; the last group has the longer ones


def by_length(evaluation: Evaluation, lengths: Sequence[int] = LENGTHS) -> pd.DataFrame:
    """A row per group of lengths: words, sentences, f1, uas (without punctuation) and las, percent over the group; None where
    a layer is missing.

    lengths: the most words of each group but the last.
    """
    table = evaluation.table()
    rows = []
    for low, high in zip((0, *lengths), (*lengths, None)):
        group = table[(table.length > low) & (table.length <= (high or table.length.max() + 1))]
        if len(group):
            sums = group[["matched", "gold", "predicted", "arcs", "arcs_right", "labels_right"]].sum()
            rows.append(
                {
                    "words": f"{low + 1} to {high}" if high else f"over {low}",
                    "sentences": len(group),
                    "f1": percent(2 * sums.matched, sums.gold + sums.predicted) if evaluation.has_trees else None,
                    "uas": percent(sums.arcs_right, sums.arcs) if table.arcs.notna().any() else None,
                    "las": percent(sums.labels_right, sums.arcs) if evaluation.has_labels else None,
                }
            )
    return pd.DataFrame(rows)


def by_label(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], rules: EvalbRules = COLLINS, least: int = 1
) -> pd.DataFrame:
    """A row per label of at least `least` gold brackets (0: those that are only predicted, too): label, gold, predicted, matched
    (brackets), precision, recall, f1 (percent), the most frequent first. Brackets are compared under the gold tags, as in
    `evaluate`."""
    counts = {"gold": Counter(), "predicted": Counter(), "matched": Counter()}
    for expected, found in zip(gold, predicted, strict=True):
        right = brackets(expected.tree, rules)
        tagged = found if expected.tags is None else dataclasses.replace(found, tags=expected.tags)
        given = brackets(tagged.tree, rules)
        for name, spans in (("gold", right), ("predicted", given), ("matched", right & given)):
            for (_, _, label), times in spans.items():
                counts[name][label] += times
    rows = []
    invented = [(label, 0) for label in counts["predicted"] if label not in counts["gold"]]
    for label, count in [*counts["gold"].most_common(), *invented]:
        if count >= least:
            p, m = counts["predicted"][label], counts["matched"][label]
            rows.append(
                {
                    "label": label, "gold": count, "predicted": p, "matched": m, "precision": percent(m, p),
                    "recall": percent(m, count), "f1": percent(2 * m, count + p),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)
