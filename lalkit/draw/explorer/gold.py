"""Compare the sentences of a page with gold, and put their constituents in the order of the page."""

from __future__ import annotations

from lalkit.treebank.tree import Sentence

EXTRA, OTHER = "\u00d7", "\u2260"  # × not in gold; ≠ gold has another label there. The drawing has them, too


def compare(sentence: Sentence, spans: list[dict], gold: Sentence | None, name: str = "gold") -> dict | None:
    """Compare a parse with gold; a unary chain counts as one constituent. Returns None if there is no gold, else

    status: for each span "same", "extra" (not in gold), or {"label": gold's label over the same words};
    arcs: for each word "same", "head" (the head is wrong) or "label" (only the label is wrong);
    missing: the constituents of gold that the parse does not have; line: the counts, as sentences for the page; differs:
    whether anything does. name: what the page calls gold.
    """
    if gold is None:
        return None
    labels = {(c.start, c.end): c.label for c in gold.constituents}
    mine = {(span["start"], span["end"]): span["label"] for span in spans}
    status = [
        "extra" if place not in labels else "same" if labels[place] == label else {"label": labels[place]}
        for place, label in mine.items()
    ]
    missing = [
        {"start": start, "end": end, "label": label}
        for (start, end), label in sorted(labels.items(), key=lambda item: (item[0][0], -item[0][1]))
        if mine.get((start, end)) != label
    ]
    blank = ("_",) * len(sentence)
    pairs = zip(sentence.heads, gold.heads, sentence.arc_labels or blank, gold.arc_labels or blank)
    arcs = ["head" if head != right else "same" if a == b else "label" for head, right, a, b in pairs]
    extra, same, heads = status.count("extra"), status.count("same"), len(arcs) - arcs.count("head")
    line = (
        f"Constituents: {same} of {len(status)} are in {name}. For {len(status) - same - extra} of them, {name} has another "
        f"label over the same words ({OTHER}). For {extra} of them, {name} has no constituent over these words ({EXTRA}). "
        f"{len(missing)} of the {len(labels)} constituents in {name} are missing here. Arcs: {heads} of {len(arcs)} words have "
        f"the same head word as in {name}, and {arcs.count('same')} words also have the same arc label. Punctuation counts."
    )
    differs = bool(missing) or any(item != "same" for item in [*status, *arcs])
    return {"status": status, "arcs": arcs, "missing": missing, "differs": differs, "line": line}


def in_order(spans: list[dict]) -> list[dict]:
    """Return the spans in pre-order, each with its parent (index or None) and its level (1: outermost)."""
    ordered, open_ = [], []
    for span in sorted(spans, key=lambda s: (s["start"], -s["end"])):
        while open_ and ordered[open_[-1]]["end"] <= span["start"]:
            open_.pop()
        ordered.append({**span, "parent": open_[-1] if open_ else None, "level": len(open_) + 1})
        open_.append(len(ordered) - 1)
    return ordered
