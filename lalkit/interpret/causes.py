"""Say for each match of a search why the parser has it, in columns that are computed only if they are asked for.

| column      | of the constituent over the words of the match                                                           |
|-------------|----------------------------------------------------------------------------------------------------------|
| top_head    | the label head that contributes most; its label, with label attention inside the span                    |
| share       | the share of this head: the size of its part, divided by the sizes of the parts of all heads             |
| effect      | what the score of the label loses without this head; inside the span, without the label's own head        |
| probability | that these words have this label                                                                         |
| margin      | of the whole sentence: the score of the best tree minus that of the second best                          |
| gold        | "right", or the class of the error (`interpret.errors`); missing for a sentence without a gold tree       |

The columns are found by the words of the match. A word that is a constituent by itself, such as a pronoun under NP, has the
values of that constituent. A match over other words has only a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lalkit.errors import ParameterError
from lalkit.interpret.errors import classify
from lalkit.interpret.source import AttributionSource, gold_spans
from lalkit.treebank.search import Hits
from lalkit.treebank.tree import Sentence

CAUSES = ("top_head", "share", "effect", "probability", "margin", "gold")
HEADS = CAUSES[:3]
Values = dict[tuple[int, int, int], Any]  # number of the sentence, start, end -> value


def check_columns(columns: Collection[str]) -> None:
    """Raise ParameterError for a column that there is not."""
    if isinstance(columns, str) or (unknown := [name for name in columns if name not in CAUSES]):
        name = columns if isinstance(columns, str) else unknown[0]
        raise ParameterError(f"columns cannot be {name!r}", remedy=f"Give a list of these: {', '.join(CAUSES)}.")


def causes(
    hits: Hits,
    results: Mapping[int, Any],
    given: Mapping[int, Sentence],
    source: Callable[[], AttributionSource],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Return a row for each match, with these columns.

    Args:
        hits: The matches in parses.
        results: The results of the sentences with matches (`lalkit.ParseResult`), by their numbers.
        given: All sentences as they were given, some perhaps with gold trees.
        source: It returns what answers for the parser's label attention.
        columns: Some of `CAUSES`.
    """
    parses = {number: result.sentence for number, result in results.items() if result.sentence.constituents}
    values: dict[str, Values] = dict.fromkeys(HEADS, {})
    if parses and set(HEADS) & set(columns):
        values |= _of_heads(source(), parses)
    if "probability" in columns:
        sure = {number: results[number].with_confidence().prediction for number in parses}
        values["probability"] = {
            (number, *span[:2]): p for number, s in sure.items() for span, p in zip(s.spans, s.confidence.spans)
        }
    if "gold" in columns:
        values["gold"] = {}
        for number, parse in parses.items():
            if given[number].constituents is not None:
                expected, predicted = (set(spans) for spans in gold_spans([given[number], parse]))
                classes = {here: kind for kind, _, here in classify(expected - predicted, predicted - expected) if here}
                values["gold"] |= {(number, *span[:2]): classes.get(span, "right") for span in predicted}
    margins = {number: result.margin for number, result in results.items()} if "margin" in columns else {}
    rows = [
        [margins[n] if name == "margin" else values[name].get((n, m.start, m.end)) for name in columns]
        for n, _, m in hits.matches
    ]
    return pd.DataFrame(rows, columns=list(columns))


def _of_heads(source: AttributionSource, parses: Mapping[int, Sentence]) -> dict[str, Values]:
    numbers, sentences = list(parses), list(parses.values())
    mean = source.mean(sentences) if source.head_labels else None
    heads = source.measure(sentences, mean).contributions
    top, rows = heads.top(source.top_norm), np.arange(len(heads.spans))
    names, effects = top.tolist(), heads.exact
    if effects is None:  # a score has only the part of its label's own head, which `measure` gives above the mean
        label_heads = heads.spans["label"].map(list(source.head_labels).index).to_numpy()
        effect = heads.raw[rows, label_heads] + mean.cpu().numpy()[label_heads]
        names = [source.head_labels[head] for head in names]
    else:
        effect = effects[rows, top]
    lists = (names, heads.by("share")[rows, top].tolist(), effect.tolist())
    keys = [(numbers[s], start, end) for s, start, end in zip(*(heads.spans[c] for c in ("sentence", "start", "end")))]
    return {name: dict(zip(keys, column)) for name, column in zip(HEADS, lists)}
