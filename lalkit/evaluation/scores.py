"""Score predicted sentences: EVALB brackets, UAS and LAS over a corpus, and tables by sentence, by length and by label.

`Comparison` is a table of the differences between two parses.

UAS (unlabelled attachment score) is the share of words with the right head; LAS (labelled) is the share with the right head and
arc label. Scores depend on these conventions:

* Brackets and tags follow the C program, see `lalkit.evaluation.evalb`. A sentence without a parse, or with other words than
  gold, is left out of precision, recall, F1, exact match and tag accuracy; `skipped` counts such sentences.
* Attachment leaves no sentence out: all arcs of a sentence without a parse, or with other words, are wrong. Arcs of gold that
  cross count, too, although no projective parser finds all of them; `out_of_reach` counts those.
* The *gold* tag decides what is punctuation (`PUNCTUATION`). A bracket -LRB- or a currency sign $ is a word. The root's arc
  counts. Labels are compared exactly as written.
* Brackets are scored under the gold tags, as usual for parsers that were given the tags. Otherwise a parser that predicts its own
  tags would lose a sentence when it takes a quote for an apostrophe. `retag=False` scores each side under its own tags, as
  the C program does with two files. Tag accuracy compares the predicted tags in both cases.
* Arcs are scored only if the labels of both sides follow the same conventions (`other_arc_labels`): Universal Dependencies and
  our English rules, for example, choose other head words, so that UAS and LAS would measure nothing.
* A predicted sentence without tags takes the gold ones. If gold has no tags, no word is known to be punctuation: EVALB deletes
  no word, and the scores without punctuation are None.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from lalkit.chart.constraints import ArcItem, Item, items_of
from lalkit.chart.joint import decode_batch
from lalkit.errors import LalkitError
from lalkit.evaluation import evalb
from lalkit.evaluation.evalb import COLLINS, OK, BracketCount, EvalbRules, percent
from lalkit.treebank.conllu import is_universal, same_convention, without_subtype
from lalkit.treebank.tree import Node, Sentence, escape, find_crossing

# The usual five of the Penn Treebank (the evaluation of Stanford, and of Zhou and Zhao), and the Chinese Treebank's PU.
PUNCTUATION = frozenset({"``", "''", ":", ",", ".", "PU"})
SHOWN = 20  # rows of the table of a comparison that a notebook displays
NO_GOLD = "skipped: no gold tree"
REASONS = {
    NO_GOLD: "gold has no tree", evalb.EMPTY: "no parse, or no word but punctuation", evalb.LENGTH: "another number of words",
    evalb.WORDS: "other words",
}  # fmt: skip


class AttachmentCount(NamedTuple):
    """The arcs of one sentence: all, with the right head, with the right head and label (None if gold has no labels)."""

    arcs: int
    arcs_right: int
    labels_right: int | None


def attachment(gold: Sentence, predicted: Sentence | None, punctuation: bool) -> AttachmentCount:
    """Count the arcs of one sentence.

    punctuation: False leaves out the words that are punctuation by their gold tag; without gold tags every word counts. A
    prediction that is None, has no heads or has other words has no right arc.
    Raises LalkitError if the gold sentence has no dependencies.
    """
    if gold.heads is None:
        remedy = "Read the corpus with its dependency layer, or score the brackets alone."
        raise LalkitError("the gold sentence has no dependencies to compare with", where=gold.id, remedy=remedy)
    tags = gold.tags if gold.tags is not None and not punctuation else ("",) * len(gold)
    scored = [i for i, tag in enumerate(tags) if tag not in PUNCTUATION]
    right = []
    # '(' and '-LRB-' are one word, as for the brackets: CRAFT's trees have one, its dependencies have the other.
    same = predicted is not None and [*map(escape, gold.words)] == [*map(escape, predicted.words)]
    if same and predicted.heads is not None:
        right = [i for i in scored if gold.heads[i] == predicted.heads[i]]
    labels = None
    if gold.arc_labels is not None:
        known = predicted is not None and predicted.arc_labels is not None
        labels = sum(gold.arc_labels[i] == predicted.arc_labels[i] for i in right) if known else 0
    return AttachmentCount(len(scored), len(right), labels)


def out_of_reach(gold: Sequence[Sentence]) -> tuple[int, int]:
    """Return how many gold sentences have crossing arcs, and how many of their arcs even the best projective tree lacks."""
    crossing = [sentence for sentence in gold if sentence.heads is not None and find_crossing(sentence.heads)]
    pairs = []
    for sentence in crossing:
        n = len(sentence)
        arcs = np.zeros((n, n + 1), np.float32)
        arcs[range(n), sentence.heads] = 1  # the best tree has as many of gold's arcs as a projective tree can have
        pairs.append((np.zeros((n + 1, n + 1, 3), np.float32), arcs))
    trees = decode_batch(pairs, lam=0.0)
    return len(crossing), sum(len(sentence) - round(tree.score) for sentence, tree in zip(crossing, trees))


ARCS = AttachmentCount._fields
COLUMNS = {
    "id": "str", "length": "int64", "matched": "Int64", "gold": "Int64", "predicted": "Int64", "precision": "float64",
    "recall": "float64", "f1": "float64", "exact": "boolean", "arcs": "Int64", "arcs_right": "Int64",
    "labels_right": "Int64", "tags_right": "Int64", "status": "str",
}  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`. The flags say which layers gold and prediction both have, and so which scores exist.

    brackets: the sums over the sentences that are not left out. Without trees only words and tags have a meaning. rows: one for
    each sentence, with the columns of `table` and, for arcs with punctuation, arcs_all and so on. others: a line for each layer
    (arcs, tags) that is not scored although both sides have it, because their conventions differ.
    """

    brackets: evalb.Counts
    rows: pd.DataFrame
    has_trees: bool
    has_tags: bool
    others: dict[str, str] = dataclasses.field(default_factory=dict)

    def summary(self) -> dict[str, float | int | None]:
        """Return the scores in percent, None if gold or prediction lacks the layer; `sentences` and `skipped` are counts.

        uas and las leave out punctuation; uas_all and las_all count every word. exact: whole trees. tag_accuracy: over the
        words that EVALB does not delete. precision, recall, f1, exact and tag_accuracy leave out the `skipped` sentences.
        """
        skipped = int((self.rows["status"] != OK).sum())
        measures = ("precision", "recall", "f1")
        scores = {name: getattr(self.brackets, name) if self.has_trees else None for name in measures}
        exact = percent(int(self.rows["exact"].sum()), len(self.rows) - skipped)
        scores["exact"] = exact if self.has_trees else None
        for suffix in ("", "_all"):
            scores[f"uas{suffix}"] = _percent_right(self.rows, f"arcs_right{suffix}", f"arcs{suffix}")
            scores[f"las{suffix}"] = _percent_right(self.rows, f"labels_right{suffix}", f"arcs{suffix}")
        scores["tag_accuracy"] = self.brackets.tag_accuracy if self.has_tags else None
        return {**scores, "sentences": len(self.rows), "skipped": skipped}

    def left_out(self) -> dict[str, list[str]]:
        """Return the ids of the sentences that precision, recall, F1, exact and tag accuracy leave out, by reason."""
        skipped = self.rows[self.rows["status"] != OK]
        return {REASONS[status]: list(rows["id"]) for status, rows in skipped.groupby("status")}

    def table(self) -> pd.DataFrame:
        """Return one row for each sentence, in corpus order. A count or score that does not exist is missing (<NA>, NaN).

        id, length (all words); matched, gold, predicted (brackets), precision, recall, f1 (percent; missing if there is nothing
        to divide by), exact; arcs, arcs_right, labels_right (head and label), without punctuation if gold has tags; tags_right
        (over the words that EVALB keeps); status ('ok', or why brackets and tags are left out).
        """
        arcs = {name: self.rows[name].fillna(self.rows[f"{name}_all"]) for name in ARCS}
        return self.rows.assign(**arcs)[list(COLUMNS)]


def _percent_right(counts: pd.DataFrame, right: str, arcs: str = "arcs") -> float | None:
    """Return the percentage over the sentences for which both columns have a count; None if there is no such sentence."""
    known = counts[[right, arcs]].dropna()
    return percent(int(known[right].sum()), int(known[arcs].sum())) if len(known) else None


def evaluate(
    gold: Sequence[Sentence],
    predicted: Sequence[Sentence | None],
    rules: EvalbRules = COLLINS,
    *,
    retag: bool = True,
    arc_labels: Collection[str] | None = None,
    tags: Collection[str] | None = None,
) -> Evaluation:
    """Score a corpus, sentence i against sentence i.

    >>> lalkit.evaluate(treebank.sentences, treebank.sentences).summary()["f1"]
    100.0

    Args:
        gold: the right sentences.
        predicted: one for each gold sentence; None for a sentence that could not be parsed.
        rules: the rules of EVALB.
        retag: score brackets under the gold tags.
        arc_labels: all arc labels that the parser knows. They are compared with those of gold, see `other_arc_labels`.
        tags: all tags that the parser knows. Tags are left out if over half of gold's words have others.

    Returns:
        The scores. A layer is scored if some gold sentence and some prediction have it, tags only if all have them. Predictions
        that are all None count as having every layer, and score 0. A label or tag that is not in gold counts as wrong.

    Raises:
        LalkitError: there are more or fewer predictions than gold sentences.
    """
    gold, predicted = list(gold), [getattr(parse, "sentence", parse) for parse in predicted]
    if len(gold) != len(predicted):
        remedy = "Give one prediction per gold sentence, in the same order; None for one that could not be parsed."
        raise LalkitError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones", remedy=remedy)
    parses = [sentence for sentence in predicted if sentence is not None]
    has = {layer: _both_have(layer, gold, parses) for layer in ("constituents", "heads", "arc_labels")}
    in_gold = Counter(tag for sentence in gold for tag in sentence.tags or ())
    strange = in_gold.keys() - set(tags or in_gold)
    other_tags = _other("tags", set(tags or ()), set(in_gold)) * (2 * sum(map(in_gold.get, strange)) > in_gold.total())
    has_tags = bool(gold) and all(sentence.tags is not None for sentence in gold + parses) and not other_tags
    other = other_arc_labels(gold, parses, arc_labels)
    if other:
        has["heads"] = has["arc_labels"] = False
    counts, rows = [], []
    for right, parse in zip(gold, predicted):
        count = _score_brackets(right, parse, rules, has["constituents"], retag)
        counts.append(count)
        row: dict = {"id": right.id, "length": len(right), "status": count.status}
        # A score is missing, not 0, if there is nothing to divide by: a right tree of one word has no bracket.
        divisors = {"precision": count.predicted, "recall": count.gold, "f1": count.gold + count.predicted}
        row |= {name: getattr(count, name) for name, divisor in divisors.items() if divisor}
        if count.status == OK and has["constituents"]:
            row |= {name: getattr(count, name) for name in ("matched", "gold", "predicted")} | {"exact": count.complete}
        if count.status == OK and has_tags:
            row["tags_right"] = count.tags_right
        for suffix, punctuation in (("", False), ("_all", True)) if has["heads"] and right.heads is not None else ():
            if punctuation or right.tags is not None:
                arcs = attachment(right, parse, punctuation)
                arcs = arcs if has["arc_labels"] else arcs._replace(labels_right=None)
                row |= {f"{name}{suffix}": number for name, number in zip(ARCS, arcs)}
        rows.append(row)
    columns = COLUMNS | {f"{name}_all": "Int64" for name in ARCS}
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    sums = {name: sum(getattr(count, name) for count in counts) for name in vars(evalb.Counts())}
    others = {layer: line for layer, line in (("arcs", other), ("tags", other_tags)) if line}
    return Evaluation(evalb.Counts(**sums), table, has["constituents"], has_tags, others)


def other_arc_labels(
    gold: Iterable[Sentence], predicted: Iterable[Sentence | None], known: Collection[str] | None = None
) -> str:
    """Return one line that says why arcs cannot be compared if the labels of the two sides follow different conventions, or "".

    known: all arc labels that the parser knows; None: those of the predictions.
    """
    wanted = _arc_labels(gold)
    ours = set(known) if known else _arc_labels(predicted)
    if same_convention(wanted, ours):
        return ""
    return _other("arcs", ours, wanted) + ", so only constituents are compared"


def _other(layer: str, ours: set[str], theirs: set[str]) -> str:
    some, others = (", ".join(sorted(names - (ours & theirs))[:3]) for names in (ours, theirs))
    kind = "arc labels" if layer == "arcs" else layer
    problem = f"the {kind} of the parser ({some} ...) and of the treebank ({others} ...) follow other conventions"
    return f"{layer} are left out: {problem}"


def _arc_labels(sentences: Iterable[Sentence | None]) -> set[str]:
    return {label for sentence in sentences if sentence for label in sentence.arc_labels or ()}


def _both_have(layer: str, gold: list[Sentence], parses: list[Sentence]) -> bool:
    in_gold, in_parses = (any(getattr(s, layer) is not None for s in sentences) for sentences in (gold, parses))
    return in_gold and (in_parses or not parses)


def _score_brackets(
    gold: Sentence, predicted: Sentence | None, rules: EvalbRules, has_trees: bool, retag: bool
) -> BracketCount:
    if has_trees and gold.constituents is None:
        return BracketCount(status=NO_GOLD)
    if predicted is None or (has_trees and predicted.constituents is None):
        return BracketCount(status=evalb.EMPTY)
    tags = predicted.tags
    untagged = gold.tags is None or tags is None
    retagged = len(gold) == len(predicted) and (untagged or retag)
    if retagged:
        predicted = dataclasses.replace(predicted, tags=gold.tags)
    count = evalb.score_brackets(_tree(gold, has_trees), _tree(predicted, has_trees), rules)
    if retagged and not untagged and count.status == OK:
        right = sum(g == p for g, p in zip(gold.tags, tags) if g not in rules.deleted)
        count = dataclasses.replace(count, tags_right=right)
    return count


def _tree(sentence: Sentence, has_trees: bool) -> Node:
    """Return the sentence's tree. Without trees: a flat one, which has no brackets, but words and tags to compare."""
    return (sentence if has_trees else dataclasses.replace(sentence, constituents=())).tree


def universal_scores(gold: Sequence[Sentence], predicted: Sequence[Sentence | None]) -> pd.DataFrame:
    """Score arcs by the conventions of Universal Dependencies: a row for all words, and one without punctuation.

    All words count as in the shared task of CoNLL 2018 (Zeman et al. 2018; its evaluation script, with the words given): labels
    are compared without subtypes, and punctuation counts. Without punctuation: without the words that gold calls `punct`.

    Returns: words (which words count), arcs (their number); in percent uas, las, and upos (words with the right universal part
        of speech, if gold and all predictions have it). No rows if gold has other labels, or the predictions have none.
    """
    if not is_universal(_arc_labels(gold)) or not any(parse and parse.arc_labels for parse in predicted):
        return pd.DataFrame()
    pairs = [(right, parse) for right, parse in zip(gold, predicted, strict=True) if right.heads is not None]
    sides = [_by_conventions(right) for right, _ in pairs], [parse and _by_conventions(parse) for _, parse in pairs]
    tagged, rows = all(right.upos and parse and parse.upos for right, parse in pairs), []
    for words, punctuation in (("all (CoNLL 2018)", True), ("without punctuation", False)):
        counts = pd.DataFrame([attachment(*pair, punctuation) for pair in zip(*sides)], columns=ARCS)
        row: dict = {"words": words, "arcs": int(counts["arcs"].sum())}
        row |= {"uas": _percent_right(counts, "arcs_right"), "las": _percent_right(counts, "labels_right")}
        if tagged:
            tags = [z for (a, b), side in zip(pairs, sides[0]) for z in zip(a.upos, b.upos, side.tags)]
            row["upos"] = percent(sum(a == b for a, b, tag in tags if punctuation or tag != "."), row["arcs"])
        rows.append(row)
    return pd.DataFrame(rows)


def _by_conventions(sentence: Sentence) -> Sentence:
    """Return the dependencies as UD scores them: labels without subtypes, and the tag '.' for words with the label punct."""
    labels = tuple(without_subtype(label) for label in sentence.arc_labels or ("_",) * len(sentence))
    tags = tuple("." if label == "punct" else "_" for label in labels)
    return dataclasses.replace(sentence, tags=tags, constituents=None, arc_labels=labels if sentence.heads else None)


LENGTHS = (10, 20, 30, 40, 60)  # words; the last group has the longer sentences


def by_length(evaluation: Evaluation, lengths: Sequence[int] = LENGTHS) -> pd.DataFrame:
    """Return one row for each group of sentence lengths: words, sentences, and f1, uas (without punctuation) and las in
    percent.

    lengths: the most words of each group but the last. A score is None if its layer is missing.
    """
    table = evaluation.table()
    rows = []
    for low, high in zip((0, *lengths), (*lengths, None)):
        group = table[(table.length > low) & (table.length <= (high or table.length.max() + 1))]
        if len(group):
            sums = group[["matched", "gold", "predicted", "arcs", "arcs_right", "labels_right"]].sum()
            rows.append({
                "words": f"{low + 1} to {high}" if high else f"over {low}",
                "sentences": len(group),
                "f1": percent(2 * sums.matched, sums.gold + sums.predicted) if evaluation.has_trees else None,
                "uas": percent(sums.arcs_right, sums.arcs) if table.arcs.notna().any() else None,
                "las": percent(sums.labels_right, sums.arcs) if table.labels_right.notna().any() else None,
            })  # fmt: skip
    return pd.DataFrame(rows)


def by_label(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], rules: EvalbRules = COLLINS, least: int = 1
) -> pd.DataFrame:
    """Return one row for each label, the most frequent first: gold, predicted, matched (brackets), precision, recall, f1
    (percent).

    Brackets are compared under the gold tags, as in `evaluate`.

    Args:
        gold: the right sentences.
        predicted: one for each gold sentence.
        rules: the rules of EVALB.
        least: the fewest gold brackets of a label in the table; 0 adds labels that are only predicted.
    """
    counts = {"gold": Counter(), "predicted": Counter(), "matched": Counter()}
    for right, parse in zip(gold, predicted, strict=True):
        retagged = dataclasses.replace(parse, tags=right.tags)
        expected, actual = evalb.brackets(right.tree, rules), evalb.brackets(retagged.tree, rules)
        for name, spans in (("gold", expected), ("predicted", actual), ("matched", expected & actual)):
            for (_, _, label), times in spans.items():
                counts[name][label] += times
    labels = dict.fromkeys([label for label, _ in counts["gold"].most_common()] + list(counts["predicted"]))
    columns, rows = ("gold", "predicted", "matched", "precision", "recall", "f1"), []
    for label in labels:
        count = evalb.Counts(**{name: of_label[label] for name, of_label in counts.items()})
        if count.gold >= least:
            rows.append({"label": label, **{name: getattr(count, name) for name in columns}})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- two parses of the same sentences


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two parses of each sentence. A notebook displays the table. Raises LalkitError for different sentences, or none."""

    first: tuple[Sentence, ...]
    second: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        if not self.first or [s.words for s in self.first] != [s.words for s in self.second]:
            remedy = "Give the same sentences on both sides, in the same order; for two parsers, give texts."
            raise LalkitError("the two sides have different sentences, or none", remedy=remedy)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each sentence.

        sentence, id, text; f1, uas: agreement in percent, as if the first side were gold, without punctuation; only_first,
        only_second: the constituents and arcs that only this side has, in the notation of `lalkit.chart.constraints`.
        """
        scores = evaluate(self.first, self.second).table()
        columns = {"sentence": range(len(self.first)), "id": scores["id"]}
        columns |= {"text": [" ".join(s.words) for s in self.first], "f1": scores["f1"]}
        columns["uas"] = 100 * (scores["arcs_right"] / scores["arcs"]).astype(float)
        for name, sides in (("only_first", (self.first, self.second)), ("only_second", (self.second, self.first))):
            columns[name] = [" ".join(map(str, _only(*pair))) for pair in zip(*sides)]
        return pd.DataFrame(columns)

    @property
    def differs(self) -> pd.Series:
        """For each sentence, whether the two parses differ."""
        return self.table["only_first"] + self.table["only_second"] != ""

    def __repr__(self) -> str:
        return f"Comparison of {len(self.first)} sentences: {self.differs.sum()} differ"

    def _repr_html_(self) -> str:
        return self.table.to_html(max_rows=SHOWN)


def _only(one: Sentence, other: Sentence) -> list[Item]:
    """Return the constituents, and then the arcs, that only the first of two sentences has."""
    first, second = (items_of(s.constituents or (), s.heads or ()) for s in (one, other))
    return sorted(first - second, key=lambda item: (isinstance(item, ArcItem), item[::-1]))
