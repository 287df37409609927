"""A parse against gold: which constituents and arcs differ, and how many. A unary chain counts as one constituent."""

from __future__ import annotations

# What is said by colour or dashes is also said by these, after the label.
EXTRA, OTHER = "\u00d7", "\u2260"  # × not in gold; ≠ gold has another label there


def compare(sentence: dict) -> dict | None:
    """None without gold; else status (per span: "same", "extra", gold's label as {"label": str}, None for a group),
    arcs (per word: "same", "head", "label": what is wrong), missing (gold's constituents that are not there), and line,
    the counts as a sentence or two."""
    gold = sentence.get("gold")
    if gold is None:
        return None
    labels = {(span["start"], span["end"]): span["label"] for span in gold["spans"]}
    status = [_status(span, labels) for span in sentence["spans"]]
    found = {(s["start"], s["end"], s["label"]) for s in sentence["spans"] if not s.get("group")}
    missing = [
        {"start": start, "end": end, "label": label}
        for (start, end), label in sorted(labels.items(), key=lambda item: (item[0][0], -item[0][1]))
        if (start, end, label) not in found
    ]
    arcs = []
    for head, label, right, name in zip(sentence["heads"], sentence["arc_labels"], gold["heads"], gold["arc_labels"]):
        arcs.append("head" if head != right else "label" if label != name else "same")
    return {"status": status, "arcs": arcs, "missing": missing, "line": _line(status, arcs, missing, len(labels))}


def _status(span: dict, labels: dict[tuple[int, int], str]) -> str | dict | None:
    if span.get("group"):
        return None
    label = labels.get((span["start"], span["end"]))
    return "extra" if label is None else "same" if label == span["label"] else {"label": label}


def _line(status: list, arcs: list[str], missing: list, gold: int) -> str:
    said = [item for item in status if item is not None]
    extra, other = said.count("extra"), sum(isinstance(item, dict) for item in said)
    heads = len(arcs) - arcs.count("head")
    return (
        f"Constituents: {said.count('same')} of {len(said)} are in gold, {other} with another label there ({OTHER}), "
        f"{extra} not there ({EXTRA}); {len(missing)} of gold's {gold} are missing. "
        f"Arcs: {heads} of {len(arcs)} have gold's head, {arcs.count('same')} its label too; punctuation counts."
    )
