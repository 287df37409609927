"""Gold against predicted, classed, and each wrong span traced to its label heads and the words they attend to (section 4.6).

| class      | a span of the parse that is not gold, a gold span that is not in the parse, or both                |
|------------|----------------------------------------------------------------------------------------------------|
| relabelled | both, over the same words                                                                          |
| unary      | the same, and one chain of labels is the other with a label more or less (S::VP for VP)            |
| attachment | both, with one label and one end in common: something was taken in or left out at the other end    |
| extra      | of the parse only                                                                                  |
| missing    | gold only                                                                                          |

Every wrong span is in one error, looked for in this order; of several attachments the nearest lengths are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from lalkit.errors import LalkitError
from lalkit.interpret.contributions import Contributions
from lalkit.interpret.paper_layer import Look, Span
from lalkit.interpret.tables import chosen
from lalkit.treebank.joint import GROUP
from lalkit.treebank.tree import Sentence

CLASSES = ("relabelled", "unary", "attachment", "extra", "missing", "wrong arc", "wrong arc label")
COLUMNS = "sentence id class gold_start gold_end gold_label start end label text".split()
TOP = 4  # heads that are called the top heads of a label: as many as the paper lists for S and PP


def gold_spans(sentences: Sequence[Sentence]) -> list[list[Span]]:
    """What to look at besides the parse (`look(..., besides=...)`), so that missing spans can be traced too."""
    return [[(c.start, c.end, c.label) for c in s.constituents if c.label != GROUP] for s in sentences]


def errors(gold: Sequence[Sentence], found: Sequence[Sentence]) -> pd.DataFrame:
    """A row per error: sentence, id, class, gold_start, gold_end, gold_label, start, end, label (what is missing on either side
    is <NA>), text. Of a wrong arc, start and gold_start are the heads (0 = root), label and gold_label the arc labels, and end
    is the word's number."""
    rows = []
    for place, (right, guess) in enumerate(zip(gold, found, strict=True)):
        (theirs,), (ours,) = gold_spans([right]), gold_spans([guess])
        for kind, expected, given in classify(set(theirs) - set(ours), set(ours) - set(theirs)):
            start, end, _ = given or expected
            text = " ".join(right.words[start:end])
            rows.append((place, right.id, kind, *(expected or (None,) * 3), *(given or (None,) * 3), text))
        for i in range(len(right)) if right.heads and guess.heads else ():
            labels = (right.arc_labels or guess.arc_labels)[i], guess.arc_labels[i]
            if right.heads[i] != guess.heads[i] or labels[0] != labels[1]:
                kind = "wrong arc" if right.heads[i] != guess.heads[i] else "wrong arc label"
                sides = (right.heads[i], i + 1, labels[0]), (guess.heads[i], i + 1, labels[1])
                rows.append((place, right.id, kind, *sides[0], *sides[1], right.words[i]))
    numbers = ["gold_start", "gold_end", "start", "end"]
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(numbers, "Int64"))


def classify(missing: set[Span], extra: set[Span]) -> Iterator[tuple[str, Span | None, Span | None]]:
    """(class, gold span, span of the parse), every span once."""
    missing, extra = set(missing), set(extra)
    for given in sorted(extra):
        expected = next((g for g in sorted(missing) if g[:2] == given[:2]), None)
        if expected:
            missing.remove(expected)
            extra.remove(given)
            yield "unary" if _chains(expected[2], given[2]) else "relabelled", expected, given
    pairs = sorted(
        (abs((g[1] - g[0]) - (p[1] - p[0])), g, p)
        for g in missing for p in extra if g[2] == p[2] and (g[0] == p[0] or g[1] == p[1])
    )  # fmt: skip
    for _, expected, given in pairs:
        if expected in missing and given in extra:
            missing.remove(expected)
            extra.remove(given)
            yield "attachment", expected, given
    yield from (("extra", None, given) for given in sorted(extra))
    yield from (("missing", expected, None) for expected in sorted(missing))


def _chains(a: str, b: str) -> bool:
    """One chain of unary labels has all labels of the other, in their order, and more."""
    shorter, longer = sorted((a.split("::"), b.split("::")), key=len)
    rest = iter(longer)
    return len(shorter) < len(longer) and all(label in rest for label in shorter)


def top_heads(found: Contributions, norm: str, label: str, count: int = TOP) -> list[int]:
    """The heads that are on top of most of a label's spans, the first first. Raises LalkitError for a label no span has."""
    chosen(found, [label])
    led = np.bincount(found.top(norm)[(found.spans["label"] == label).to_numpy()])
    order = np.argsort(-led, kind="stable")
    return [int(head) for head in order[:count] if led[head]]


def missed(found: Contributions, norm: str, labels: Sequence[str] | None = None, count: int = TOP) -> pd.DataFrame:
    """The paper's 36 of 53 (NP) and 141 of 193 (S), for every label: of its gold spans that the parse does not have, how many
    have a top head that is one of the label's top heads in the spans that were found: label, norm, heads, gold, missed, still,
    percent, by_chance (percent of all parsed spans, whatever their label, that are led by one of these heads)."""
    spans = found.spans
    if spans["gold"].isna().any():
        raise LalkitError("gold spans are needed", remedy="Look with besides=gold_spans(gold), gather with gold=gold.")
    parsed, gold = spans["parsed"].to_numpy(), spans["gold"].to_numpy(dtype=bool)
    top, right = found.top(norm), found.where(parsed & gold)
    rows = []
    for label in labels if labels is not None else right.spans["label"].value_counts().index:
        heads = top_heads(right, norm, label, count)
        lost = (spans["label"] == label).to_numpy() & gold & ~parsed
        still = int(np.isin(top[lost], heads).sum())
        chance = 100 * np.isin(top[parsed], heads).mean()
        total = int(((spans["label"] == label).to_numpy() & gold).sum())
        share = 100 * still / lost.sum() if lost.any() else np.nan
        rows.append((label, norm, heads, total, int(lost.sum()), still, share, chance))
    return pd.DataFrame(rows, columns="label norm heads gold missed still percent by_chance".split())


def trace(
    looks: Sequence[Look], found: Contributions, norm: str, sentence: int, span: Span, count: int = 9
) -> pd.DataFrame:
    """The heads behind one span: rank, head, contribution, word (that it attends to most), attention, root (is that word the
    root of the parse?), of_label (is it a top head of the span's label?). Raises LalkitError for a sentence or span that was
    not looked at, and for a parse without dependencies."""
    if not 0 <= sentence < len(looks):
        raise LalkitError(f"there is no sentence {sentence}", remedy=f"They are numbered 0 to {len(looks) - 1}.")
    seen, spans = looks[sentence], found.spans
    same = (spans[["start", "end", "label"]] == list(span)).all(axis=1) & (spans["sentence"] == sentence)
    if not same.any():
        there = ", ".join(f"{label} {start}-{end}" for start, end, label in seen.spans)
        raise LalkitError(f"no span {span} was looked at", where=seen.sentence.id, remedy=f"These were: {there}.")
    values = found.by(norm)[same.to_numpy().argmax()]
    known = top_heads(found.parsed, norm, span[2]) if (found.parsed.spans["label"] == span[2]).any() else []
    words = ["<START>", *seen.sentence.words, "<STOP>"]
    rows, at_root = [], _root(seen)
    for rank, head in enumerate(np.argsort(-values, kind="stable")[:count], 1):
        place = int(seen.attention[head].argmax())
        row = rank, int(head), values[head], words[place], seen.attention[head, place], place == at_root, head in known
        rows.append(row)
    return pd.DataFrame(rows, columns="rank head contribution word attention root of_label".split())


def root_shares(looks: Sequence[Look], found: Contributions, norm: str, count: int = 9) -> pd.DataFrame:
    """How many of a span's `count` top heads attend most to the root of the parse: spans (wrong or correct ones of the parse,
    and all heads of every sentence, with which these are to be compared), count, percent. Raises LalkitError for a parse without
    dependencies."""
    rooted = [seen.attention.argmax(1) == _root(seen) for seen in looks]
    parsed = found.parsed
    top = np.argsort(-parsed.by(norm), axis=1, kind="stable")[:, :count]
    share = np.array([rooted[place][heads].mean() for place, heads in zip(parsed.spans["sentence"], top)])
    right = parsed.spans["gold"].to_numpy(dtype=bool)
    rows = [
        (name, int(mask.sum()), 100 * share[mask].mean())
        for name, mask in (("wrong", ~right), ("correct", right))
        if mask.any()
    ]
    rows.append(("all heads", sum(map(len, rooted)), 100 * np.concatenate(rooted).mean()))
    return pd.DataFrame(rows, columns=["spans", "count", "percent"])


def _root(seen: Look) -> int:
    """Where the root of the parse stands among START, words, STOP."""
    if seen.sentence.heads is None:
        raise LalkitError(
            "this parser gives constituents alone: no word is the root",
            where=seen.sentence.id,
            remedy="Trace with a parser of both layers.",
        )
    return seen.sentence.heads.index(0) + 1


def nearest(found: Contributions, norm: str, sentence: int, span: Span, count: int = 5) -> pd.DataFrame:
    """The correctly parsed spans of other sentences whose contributions are most like this one's (cosine): rows of
    `found.spans` with likeness. Raises LalkitError for a span that was not looked at."""
    spans = found.spans
    same = (spans[["start", "end", "label"]] == list(span)).all(axis=1) & (spans["sentence"] == sentence)
    if not same.any():
        raise LalkitError(f"no span {span} of sentence {sentence} was looked at")
    values = found.by(norm)
    sizes = np.linalg.norm(values, axis=1)
    mine = values[same.to_numpy().argmax()]
    likeness = values @ mine / np.maximum(sizes * np.linalg.norm(mine), 1e-12)
    fit = (spans["parsed"] & spans["gold"].fillna(False) & (spans["sentence"] != sentence)).to_numpy(dtype=bool)
    order = np.argsort(-np.where(fit, likeness, -np.inf), kind="stable")[: min(count, int(fit.sum()))]
    return spans.iloc[order].assign(likeness=likeness[order]).reset_index(drop=True)
