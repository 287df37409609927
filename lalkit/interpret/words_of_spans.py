"""Ask what made the constituents of many parses: tables with the words of each constituent and its head word as columns.

So a question such as "which head is on top of an SBAR that begins with *that*?" is a filter of a table. All tables begin with

    sentence, id   the place of the sentence (from 0), and its id
    start, end     the words of the constituent, as words[start:end]
    label, text    of the constituent
    head_word      the word of the constituent whose own head word lies outside; None without dependencies
    gold           is it also in the given tree? <NA> if the sentence was given without a tree
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError, whole_number
from lalkit.interpret.source import AttributionSource
from lalkit.treebank.joint import head_word
from lalkit.treebank.tree import Sentence

PLACE = ["sentence", "start", "end"]
FIRST = ["sentence", "id", "start", "end", "label", "text", "head_word", "gold"]


def contributions(source: AttributionSource, looks: Sequence, given: Sequence[Sentence | None], norm: str = "exact"):
    """Return what made the score of each constituent of the parses, by label head. given: the sentences as they were given.

    Paper's layer: a row for each constituent and label head; value is the contribution by a norm. Label attention inside the
    span: only the head of the constituent's own label makes its score, so there is a row for each term of the score (term,
    position, word, attention, evidence), and the values of a constituent add up to its score.
    """
    return _with_words(source.contributions_table(looks, norm), looks, given)


def attention(source: AttributionSource, looks: Sequence, given: Sequence[Sentence | None], label: str | None = None):
    """Return which words label heads attend to: head, position (from 1), word, attention.

    Paper's layer: a head has one attention for the whole sentence. Without a label: a row for each head and word, also for START
    (position 0) and STOP. With a label: for each constituent of this label, the rows of its words.
    Label attention inside the span: for each constituent (of this label), the attention of its label's head, which adds up to 1.
    """
    table = source.attention_table(looks, label)
    return _with_words(table if label is None else _of_label(table, label, looks), looks, given)


def top_heads(
    source: AttributionSource,
    looks: Sequence,
    given: Sequence[Sentence | None],
    label: str | None = None,
    norm: str | None = None,
    count: int = 1,
) -> pd.DataFrame:
    """Return the label heads that contribute most to each constituent: rank (from 1), head, norm, value.

    Paper's layer: value is the contribution by a norm. Label attention inside the span: value is what the head's attention and
    evidence give over these words, above the head's mean over all spans of these sentences. Only the part of its own label's
    head is in the score of a constituent; the others are in the scores of other labels. head_label: the label of the head.
    """
    ranked, norm = source.ranked(looks), norm or source.top_norm
    if label is not None:
        _of_label(ranked.spans, label, looks)
        ranked = ranked.where(ranked.labelled(label))
    values = ranked.by(norm)
    heads = np.argsort(-values, axis=1, kind="stable")[:, : whole_number("count", count, 1)]
    table = ranked.spans[[*PLACE, "label"]].loc[np.repeat(np.arange(len(heads)), heads.shape[1])].reset_index(drop=True)
    table["rank"], table["head"] = np.tile(np.arange(heads.shape[1]) + 1, len(heads)), heads.ravel()
    if labels := list(source.head_labels):
        table["head_label"] = [labels[head] for head in heads.ravel()]
    table["norm"], table["value"] = norm, np.take_along_axis(values, heads, 1).ravel()
    return _with_words(table, looks, given)


def _of_label(table: pd.DataFrame, label: str, looks: Sequence) -> pd.DataFrame:
    """Return the rows of a label. Raises LalkitError if there are none."""
    rows = table[table["label"] == label]
    if not len(rows):
        there = ", ".join(sorted({name for look in looks for *_, name in look.spans}))
        raise LalkitError(f"no constituent is labelled {label!r}", remedy=f"Labels here: {there}.")
    return rows


def _with_words(table: pd.DataFrame, looks: Sequence, given: Sequence[Sentence | None]) -> pd.DataFrame:
    """Add id, text, head_word and gold to a table of constituents, with a row or many for each."""
    rows = []
    for place, start, end, label in table[[*PLACE, "label"]].drop_duplicates().itertuples(index=False):
        parse, tree = looks[place].prediction.sentence, given[place] and given[place].constituents
        right = None if tree is None or label is None else (start, end, label) in tree
        rows.append(
            (place, start, end, parse.id, " ".join(parse.words[start:end]), head_word(parse, start, end), right)
        )
    words = pd.DataFrame(rows, columns=[*PLACE, "id", "text", "head_word", "gold"]).astype({"gold": "boolean"})
    table = table.merge(words, on=PLACE, how="left")
    return table[[*FIRST, *(name for name in table.columns if name not in FIRST)]]
