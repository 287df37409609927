"""The explorer's drawing of a sentence: `draw_joint`'s, with boxes to point at and places for heat and numbers.

Boxes lie below the texts, which let the pointer through (tree.css). START and STOP stand at both ends of the words.

A parse against gold: which constituents and arcs differ, and how many. A unary chain counts as one constituent.
"""

from __future__ import annotations

from dataclasses import replace

from lalkit.draw import svg
from lalkit.draw.arcs import arc_parts, arc_slots, arcs_height, arcs_width, leg_offsets, read_arcs, spread
from lalkit.draw.tree import (
    GAP,
    LABEL,
    LEVEL,
    MARGIN,
    TAG_TO_WORD,
    WORD,
    Placed,
    place,
    read,
    slot_widths,
    total_width,
    tree_parts,
    word_parts,
)
from lalkit.errors import LalkitError
from lalkit.treebank.tree import Node, Sentence, Span

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


SIDE = 62  # room for START on the left and for STOP on the right
NUMBER = 12  # font size of the attention below the words
UNDER_WORDS = 24  # from the words' baseline to where the arcs begin: the numbers stand between


def in_order(spans: list[dict]) -> list[dict]:
    """In pre-order, each with its parent (index or None) and its level (1: outermost)."""
    ordered, open_ = [], []
    for span in sorted(spans, key=lambda s: (s["start"], -s["end"])):
        while open_ and ordered[open_[-1]]["end"] <= span["start"]:
            open_.pop()
        ordered.append({**span, "parent": open_[-1] if open_ else None, "level": len(open_) + 1})
        open_.append(len(ordered) - 1)
    return ordered


def picture(data: dict, spans: list[dict], comparison: dict | None) -> str:
    """An <svg> for a page. data: a sentence of the explorer's; spans: `in_order`; comparison: `gold.compare`'s.

    Raises TreebankError where the layers are no trees, LalkitError where two spans have the same ends.
    """
    constituents = tuple(Span(s["start"], s["end"], s["label"]) for s in spans)
    layers = (tuple(data[key]) for key in ("words", "tags"))
    sentence = Sentence(*layers, constituents, tuple(data["heads"]), tuple(data["arc_labels"]), data["id"])
    root, words, heads = read(sentence)
    chains = _chains(root, {(s["start"], s["end"]): i for i, s in enumerate(spans)})
    if len(chains) < len(spans):
        raise LalkitError("a constituent was not drawn", where=data["id"])
    arcs, kinds = read_arcs(sentence), {}
    if comparison:
        for i, nodes in chains.items():
            _mark(nodes[0], comparison["status"][i])
        marks = {"head": " " + EXTRA, "label": " " + OTHER, "same": ""}
        arcs = [replace(arc, label=arc.label + marks[comparison["arcs"][arc.dependent - 1]]) for arc in arcs]
        kinds = {i: f"wrong-{what}" for i, what in enumerate(comparison["arcs"], 1) if what != "same"}
    offsets = leg_offsets(arcs)
    own = slot_widths(words, sentence.tags)
    slots = arc_slots(own, offsets)
    xs = spread(arcs, offsets, lambda pads: place(root, slots, pads))
    base = MARGIN + LABEL + root.level * LEVEL
    y = base + TAG_TO_WORD
    wide = max(total_width(root, words, sentence.tags), arcs_width(arcs, xs, slots))
    heat = [*_heat(xs, [w - GAP + 8 for w in own], y), *_ends(wide, y)]
    shown = [
        *tree_parts(root, base, tags=True),
        *word_parts(words, xs, base, sentence.tags, heads),
        *arc_parts(arcs, offsets, xs, y + UNDER_WORDS, upwards=False, kinds=kinds),
    ]
    boxes = [_box(i, chains[i], base, spans, comparison) for i in range(len(spans))]
    shade = f'<rect class="shade" x="0" y="{base - 16}" width="0" height="{TAG_TO_WORD + 24}"/>'
    parts = ['<g aria-hidden="true">', shade, *heat, "</g>", *boxes, '<g aria-hidden="true">', *shown, "</g>"]
    width, height = wide + 2 * SIDE, y + UNDER_WORDS + arcs_height(arcs) + MARGIN
    w, h = svg.number(width), svg.number(height)
    return "\n".join(
        [
            f'<svg class="parse" width="{w}" height="{h}" viewBox="{-SIDE} 0 {w} {h}" role="tree" '
            f'aria-label="Constituents of: {svg.escape(" ".join(words))}" font-family="{svg.FONT}">',
            f'<rect x="{-SIDE}" width="{w}" height="{h}" fill="white"/>',
            *parts,
            "</svg>",
        ]
    )


def _chains(root: Placed, index: dict[tuple[int, int], int]) -> dict[int, list[Placed]]:
    """span's index -> its nodes, top first: one, or those of a unary chain."""
    found: dict[int, list[Placed]] = {}
    stack = [root]
    while stack:
        item = stack.pop()
        stack.extend(item.children)
        if not item.node.is_leaf and (item.start, item.end) in index:
            found.setdefault(index[item.start, item.end], []).append(item)
    return found


def _mark(item: Placed, status: str | dict | None) -> None:
    """Put the symbol for a difference from gold behind the label, so that the layout leaves room for it."""
    mark = EXTRA if status == "extra" else OTHER if isinstance(status, dict) else ""
    if mark:
        item.node = Node(f"{item.node.label} {mark}", item.node.children)


def _box(i: int, chain: list[Placed], base: float, spans: list[dict], comparison: dict | None) -> str:
    """What is pointed at: behind all labels of a constituent. The script names it for screen readers."""
    half = max(svg.text_width(item.node.label, LABEL) for item in chain) / 2 + 5
    x = sum(item.x for item in chain) / len(chain) - half
    top, bottom = base - chain[0].level * LEVEL - LABEL, base - chain[-1].level * LEVEL + 5
    status = comparison and comparison["status"][i]
    kind = "group" if spans[i].get("group") else "wrong" if status not in (None, "same") else ""
    peers = [j for j, span in enumerate(spans) if span["parent"] == spans[i]["parent"]]
    n = svg.number
    return (
        f'<g class="{f"constituent {kind}".strip()}" data-span="{i}" role="treeitem" tabindex="{0 if i == 0 else -1}" '
        f'aria-level="{spans[i]["level"]}" aria-posinset="{peers.index(i) + 1}" aria-setsize="{len(peers)}" '
        f'aria-selected="false"><rect class="box" x="{n(x)}" y="{n(top)}" width="{n(2 * half)}" '
        f'height="{n(bottom - top)}" rx="4"/></g>'
    )


def _heat(xs: list[float], widths: list[float], y: float) -> list[str]:
    """Behind every word a box to colour, below it a place for a number; column 0 is START, so word i has column i + 1."""
    parts = []
    for i, (x, width) in enumerate(zip(xs, widths)):
        parts += _cell(i + 1, x, width, y)
    return parts


def _ends(wide: float, y: float) -> list[str]:
    """START and STOP, seen while a label head's attention is shown."""
    parts = []
    for column, name, x in (("0", "START", MARGIN - SIDE / 2 - 4), ("last", "STOP", wide - MARGIN + SIDE / 2 + 4)):
        parts += _cell(column, x, svg.text_width(name, NUMBER) + 8, y)
        parts.append(f'<g class="end">{svg.text(x, y, name, NUMBER, colour=svg.GREY)}</g>')
    return parts


def _cell(column: int | str, x: float, width: float, y: float) -> list[str]:
    n = svg.number
    where = f'x="{n(x - width / 2)}" y="{n(y - WORD)}" width="{n(width)}" height="{WORD + 6}"'
    return [
        f'<rect class="heat" data-column="{column}" {where} rx="3"><title></title></rect>',
        f'<text class="number" data-column="{column}" x="{n(x)}" y="{n(y + 18)}" font-size="{NUMBER}" '
        f'text-anchor="middle"></text>',
    ]
