"""Sort the errors of a parse into classes, and trace each wrong span to its label heads and their words (section 4.6).

| class      | a span of the parse that is not gold, a gold span that is not in the parse, or both                |
|------------|----------------------------------------------------------------------------------------------------|
| relabelled | both, over the same words                                                                          |
| unary      | the same, and one chain of labels is the other with one or more labels added (S::VP for VP)        |
| attachment | both, with the same label and one common end: words were taken in or left out at the other end     |
| extra      | only a span of the parse                                                                           |
| missing    | only a gold span                                                                                   |

Every wrong span belongs to exactly one error. The classes are tried in this order. If a span could be paired with several for
`attachment`, the pair whose lengths are nearest is chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError
from lalkit.evaluation.scores import other_arc_labels
from lalkit.interpret.explanation import Explanation
from lalkit.interpret.layers import gold_spans
from lalkit.interpret.tables import Contributions, Span, chosen
from lalkit.treebank.joint import head_word
from lalkit.treebank.tree import Sentence

logger = logging.getLogger(__name__)

COLUMNS = "sentence id class gold_start gold_end gold_label start end label word gold_head head text head_word".split()
NOTHING = (None, None, None)
# How many heads count as the top heads of a label: section 4.6 follows two for NP and four for S, and lists four for PP.
TOP = {"NP": 2}
TOP_OF_OTHERS = 4


def errors(
    gold: Sequence[Sentence], parses: Sequence[Sentence], arc_labels: Collection[str] | None = None
) -> pd.DataFrame:
    """Return a row for each error.

    If the arc labels of parses and treebank follow other conventions, arcs are left out, and the log says so.

    Args: arc_labels: all arc labels that the parser knows (None: those of the parses).
    Returns: sentence, id, class, gold_start, gold_end, gold_label, start, end, label, word, gold_head, head, text, head_word. If
        one side is missing, its columns are <NA>. Of spans: start and end. Of a wrong arc: word (its number), gold_head and head
        (0 = root); label and gold_label are arc labels. head_word: in the parse; in gold if the span is missing in the parse.
    """
    rows, other = [], other_arc_labels(gold, parses, arc_labels)
    if other:
        logger.warning(other)
    for place, (right, guess) in enumerate(zip(gold, parses, strict=True)):
        if right.constituents is not None and guess.constituents is not None:
            expected, predicted = (set(spans) for spans in gold_spans([right, guess]))
            for kind, there, here in classify(expected - predicted, predicted - expected):
                start, end, _ = here or there
                text = " ".join(right.words[start:end]), head_word(guess if here else right, start, end)
                rows.append((place, right.id, kind, *(there or NOTHING), *(here or NOTHING), *NOTHING, *text))
        if right.heads and guess.heads and not other:
            rows += [(place, right.id, *row) for row in _wrong_arcs(right, guess)]
    numbers = ["gold_start", "gold_end", "start", "end", "word", "gold_head", "head"]
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(numbers, "Int64"))


def _wrong_arcs(right: Sentence, guess: Sentence) -> Iterator[tuple]:
    """Yield the columns of `errors` for each word with a wrong arc. Labels that one side lacks are not compared."""
    blank = (None,) * len(right)
    names = right.arc_labels or guess.arc_labels or blank, guess.arc_labels or right.arc_labels or blank
    for i, (head, other, *labels) in enumerate(zip(right.heads, guess.heads, *names)):
        if head != other or labels[0] != labels[1]:
            kind = "wrong arc" if head != other else "wrong arc label"
            text = right.words[i], (None, *right.words)[other]
            yield kind, None, None, labels[0], None, None, labels[1], i + 1, head, other, *text


def classify(missing: set[Span], extra: set[Span]) -> Iterator[tuple[str, Span | None, Span | None]]:
    """Yield (class, gold span, span of the parse); every span is in exactly one of these."""
    missing, extra = set(missing), set(extra)
    for here in sorted(extra):
        there = next((g for g in sorted(missing) if g[:2] == here[:2]), None)
        if there:
            missing.remove(there)
            extra.remove(here)
            yield "unary" if _is_longer_chain(there[2], here[2]) else "relabelled", there, here
    pairs = sorted(
        (abs((g[1] - g[0]) - (p[1] - p[0])), g, p)
        for g in missing for p in extra if g[2] == p[2] and (g[0] == p[0] or g[1] == p[1])
    )  # fmt: skip
    for _, there, here in pairs:
        if there in missing and here in extra:
            missing.remove(there)
            extra.remove(here)
            yield "attachment", there, here
    yield from (("extra", None, here) for here in sorted(extra))
    yield from (("missing", there, None) for there in sorted(missing))


def _is_longer_chain(a: str, b: str) -> bool:
    """Return whether one chain of unary labels has all labels of the other, in the same order, and more."""
    shorter, longer = sorted((a.split("::"), b.split("::")), key=len)
    rest = iter(longer)
    return len(shorter) < len(longer) and all(label in rest for label in shorter)


def top_heads(contributions: Contributions, norm: str, label: str) -> list[int]:
    """Return the heads that lead most of a label's spans, the best first: as many as the paper follows.

    Raises LalkitError for a label without spans.
    """
    chosen(contributions, [label])
    led = np.bincount(contributions.top(norm)[contributions.labelled(label)])
    order = np.argsort(-led, kind="stable")
    return [int(head) for head in order[: TOP.get(label, TOP_OF_OTHERS)] if led[head]]


def missed(
    contributions: Contributions, norm: str, among: Literal["relabelled", "missed"] = "relabelled"
) -> pd.DataFrame:
    """Count, for each label, the gold spans with another label in the parse although a top head of their label leads them.

    The paper counts 36 of 53 for NP and 141 of 193 for S, predicted with another label. Raises LalkitError without gold spans.

    Args: contributions: `parser.explain(treebank, gold=True).heads()`. among: the gold spans to count: "relabelled", those over
        whose words the parse has another label, as in the paper; "missed", all that are not in the parse.
    Returns: label, norm, among, heads (the top heads of the parsed spans), gold (gold spans), missed (the counted ones among
        them), still (the missed spans that a top head leads), percent, by_chance (percent of all parsed spans, with any label,
        that one of these heads leads).
    """
    spans = contributions.spans
    if spans["gold"].isna().any():
        raise LalkitError("gold spans are needed", remedy="Explain a treebank with gold=True.")
    parsed, gold = spans["parsed"].to_numpy(), spans["gold"].to_numpy(dtype=bool)
    top, right = contributions.top(norm), contributions.where(parsed & gold)
    lost = gold & ~parsed
    if among == "relabelled":
        words = pd.MultiIndex.from_frame(spans[["sentence", "start", "end"]])
        lost &= words.isin(words[parsed])
    rows = []
    for label in right.spans["label"].value_counts().index:
        heads, of_label = top_heads(contributions.parsed, norm, label), contributions.labelled(label)
        counted = top[of_label & lost]
        still = int(np.isin(counted, heads).sum())
        percent = 100 * still / len(counted) if len(counted) else np.nan
        by_chance = 100 * np.isin(top[parsed], heads).mean()
        rows.append((label, norm, among, heads, int((of_label & gold).sum()), len(counted), still, percent, by_chance))
    return pd.DataFrame(rows, columns="label norm among heads gold missed still percent by_chance".split())


def trace(explanation: Explanation, norm: str, sentence: int, span: Span, count: int) -> pd.DataFrame:
    """Return the label heads that contribute most to one span.

    Args: explanation: with gold trees. norm: see `NORMS`. sentence: from 0. span: (start, end, label). count: of heads.
    Returns: rank, head, contribution, word (to which the head attends most), attention (to this word), root (is this word the
        root of the sentence?), noun (is it a noun?), of_label (is the head a top head of the span's label?).
    Raises: LalkitError for a span that is not explained, for trees without dependencies, and for label attention inside the span.
    """
    contributions = explanation.heads()
    values, parsed = contributions.by(norm)[_row(contributions, sentence, span)], contributions.parsed
    if (attention := explanation.sentences[sentence].attention) is None:
        raise LalkitError("a head attends inside each span only", remedy="Trace with a parser of the paper's layer.")
    known = top_heads(parsed, norm, span[2]) if parsed.labelled(span[2]).any() else []
    words, rows = ["<START>", *explanation.parses[sentence].words, "<STOP>"], []
    root, nouns = _root_and_nouns(explanation.given[sentence])
    for rank, head in enumerate(np.argsort(-values, kind="stable")[:count], 1):
        place = int(attention[head].argmax())
        seen = (words[place], attention[head, place], root[place], nouns[place])
        rows.append((rank, int(head), values[head], *seen, head in known))
    return pd.DataFrame(rows, columns="rank head contribution word attention root noun of_label".split())


def _root_and_nouns(tree: Sentence) -> np.ndarray:
    """Return, for START, words and STOP, whether each is the root, and whether it is a noun: [2, words + 2].

    A noun has a tag that begins with N, as in the Penn, Chinese and Sinica Treebanks.
    """
    if tree.heads is None:
        remedy = "Trace with a treebank of both layers."
        raise LalkitError("there are no dependencies: no word is the root", where=tree.id, remedy=remedy)
    root, nouns = [head == 0 for head in tree.heads], [tag.startswith("N") for tag in tree.tags or [""] * len(tree)]
    return np.pad([root, nouns], ((0, 0), (1, 1)))


def _row(contributions: Contributions, sentence: int, span: Span) -> int:
    """Return the row of a span. Raises LalkitError if there is none."""
    keys = contributions.spans[["sentence", "start", "end", "label"]]
    same = (keys == [sentence, *span]).all(axis=1)
    if not same.any():
        there = ", ".join(f"{label} {start}-{end}" for s, start, end, label in keys.to_numpy() if s == sentence)
        raise LalkitError(f"no span {span} of sentence {sentence} was explained", remedy=f"These were: {there}.")
    return int(same.idxmax())
