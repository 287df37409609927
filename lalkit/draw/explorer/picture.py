"""Draw a sentence for the explorer: a joint drawing with boxes to point at and places for shading and numbers.

The boxes lie below the texts; the texts let the pointer through (tree.css). START and STOP stand at both ends of the words.
If there is a gold parse, `compare` says which constituents and arcs differ from it, and the drawing marks them.
"""

from __future__ import annotations

from dataclasses import replace

from lalkit.draw import svg
from lalkit.draw.arcs import joint_drawing, read_arcs
from lalkit.draw.tree import GAP, LABEL, LEVEL, MARGIN, TAG_TO_WORD, WORD, Placed, read, slot_widths, walk
from lalkit.treebank.tree import Node, Sentence, Span

# These symbols follow the label; they repeat what colours and dashes say.
EXTRA, OTHER = "\u00d7", "\u2260"  # × not in gold; ≠ gold has another label there
SIDE = 62  # room for START on the left and for STOP on the right
NUMBER = 12  # font size of the attention below the words
SURE, UNSURE = 0.8, 0.5  # arcs below are drawn faint, and fainter
UNDER_WORDS = 24  # from the words' baseline to where the arcs begin: the numbers stand between them


def compare(sentence: dict, name: str = "gold") -> dict | None:
    """Compare a parse with gold; a unary chain counts as one constituent. Returns None if there is no gold, else

    status: for each span "same", "extra", {"label": gold's label over the same words};
    arcs: for each word "same", "head" (the head is wrong) or "label" (only the label is wrong);
    missing: the constituents of gold that the parse does not have; line: the counts, as sentences for the page; differs:
    whether anything does. name: what the page calls gold.
    """
    gold = sentence.get("gold")
    if gold is None:
        return None
    labels = {(span["start"], span["end"]): span["label"] for span in gold["spans"]}
    status = [_status(span, labels) for span in sentence["spans"]]
    constituents = {(s["start"], s["end"], s["label"]) for s in sentence["spans"]}
    missing = [
        {"start": start, "end": end, "label": label}
        for (start, end), label in sorted(labels.items(), key=lambda item: (item[0][0], -item[0][1]))
        if (start, end, label) not in constituents
    ]
    pairs = zip(sentence["heads"], gold["heads"], sentence["arc_labels"], gold["arc_labels"])
    arcs = [
        "head" if head != gold_head else "same" if label == gold_label else "label"
        for head, gold_head, label, gold_label in pairs
    ]
    differs = bool(missing) or any(item != "same" for item in [*status, *arcs])
    line = _counts(status, arcs, missing, len(labels), name)
    return {"status": status, "arcs": arcs, "missing": missing, "differs": differs, "line": line}


def _status(span: dict, labels: dict[tuple[int, int], str]) -> str | dict:
    label = labels.get((span["start"], span["end"]))
    return "extra" if label is None else "same" if label == span["label"] else {"label": label}


def _counts(status: list, arcs: list[str], missing: list, gold: int, name: str) -> str:
    extra, other = status.count("extra"), sum(isinstance(item, dict) for item in status)
    heads = len(arcs) - arcs.count("head")
    return (
        f"Constituents: {status.count('same')} of {len(status)} are in {name}. For {other} of them, {name} has another label "
        f"over the same words ({OTHER}). For {extra} of them, {name} has no constituent over these words ({EXTRA}). "
        f"{len(missing)} of the {gold} constituents in {name} are missing here. Arcs: {heads} of {len(arcs)} words have the same "
        f"head word as in {name}, and {arcs.count('same')} words also have the same arc label. Punctuation counts."
    )


def in_order(spans: list[dict]) -> list[dict]:
    """Return the spans in pre-order, each with its parent (index or None) and its level (1: outermost)."""
    ordered, open_ = [], []
    for span in sorted(spans, key=lambda s: (s["start"], -s["end"])):
        while open_ and ordered[open_[-1]]["end"] <= span["start"]:
            open_.pop()
        ordered.append({**span, "parent": open_[-1] if open_ else None, "level": len(open_) + 1})
        open_.append(len(ordered) - 1)
    return ordered


def picture(data: dict, spans: list[dict], comparison: dict | None) -> str:
    """Return the <svg> of one sentence for the page.

    Args:
        data: a sentence of the explorer's data.
        spans: its spans as `in_order` returns them.
        comparison: as `compare` returns it.

    Raises:
        TreebankError: the spans or the heads are not a tree, or two spans cover the same words.
    """
    constituents = tuple(Span(s["start"], s["end"], s["label"]) for s in spans)
    sentence = Sentence(data["words"], data["tags"], constituents, data["heads"], data["arc_labels"], data["id"])
    layers, arcs, kinds = read(sentence), read_arcs(sentence), {}
    chains = _chains(layers.root, {(s["start"], s["end"]): i for i, s in enumerate(spans)})
    for item in walk(layers.root):
        if item.node.is_leaf:
            item.key = f"w{item.end}"
    for i, nodes in chains.items():
        for item in nodes:
            item.key = str(i)
    status = comparison["status"] if comparison else [None] * len(spans)
    if comparison:  # the symbols become part of the labels, so that the layout leaves room for them
        for i, nodes in chains.items():
            mark = EXTRA if status[i] == "extra" else OTHER if isinstance(status[i], dict) else ""
            if mark:
                nodes[0].node = Node(f"{nodes[0].node.label} {mark}", nodes[0].node.children)
        marks = {"head": f" {EXTRA}", "label": f" {OTHER}", "same": ""}
        arcs = [replace(arc, label=arc.label + marks[comparison["arcs"][arc.dependent - 1]]) for arc in arcs]
        kinds = {i: f"wrong-{what}" for i, what in enumerate(comparison["arcs"], 1) if what != "same"}
    for i, probability in enumerate(data.get("arc_probabilities") or (), 1):
        if probability < SURE:
            kinds[i] = f"{kinds.get(i, '')} {'unsure' if probability < UNSURE else 'doubtful'}".strip()
    drawing = joint_drawing(layers, arcs, UNDER_WORDS, kinds)
    y = drawing.base + TAG_TO_WORD
    shade = svg.element("rect", class_="shade", x=0, y=drawing.base - 16, width=0, height=TAG_TO_WORD + 24)
    cells = []
    for i, (x, slot) in enumerate(zip(drawing.xs, slot_widths(layers)), 1):  # column 0 is START
        cells += _cell(str(i), x, slot - GAP + 8, y)
    beyond = SIDE / 2 + 4 - MARGIN  # from the edges of the joint drawing to the centres of START and STOP
    for column, name, x in (("0", "START", -beyond), ("last", "STOP", drawing.width + beyond)):
        cells += _cell(column, x, svg.text_width(name, NUMBER) + 8, y)
        cells.append(svg.element("g", svg.text(x, y, name, NUMBER, colour=svg.GREY), class_="end"))
    matches = {tuple(match) for match in data.get("matches") or ()}
    cells += [_match(start, end, drawing.xs, slot_widths(layers), y) for start, end in sorted(matches)]
    boxes = [
        _box(i, chains[i], drawing.base, spans, status[i], (s["start"], s["end"]) in matches)
        for i, s in enumerate(spans)
    ]
    veils = [_box(i, chains[i], drawing.base, spans, "veil") for i, s in enumerate(spans) if "probability" in s]
    side = SIDE if "attention" in data else 0  # only label heads of the whole sentence look at START and STOP
    width, height = drawing.width + 2 * side, drawing.height
    ground = svg.element("rect", x=-side, y=0, width=width, height=height, fill="white")
    hidden = '<g aria-hidden="true">'
    depends = [
        f"{layers.words[i]} depends on {layers.words[head - 1]} ({label})" if head else f"{layers.words[i]} is the root"
        for i, (head, label) in enumerate(zip(data["heads"], data["arc_labels"]))
    ]
    desc = svg.element("desc", svg.escape(f"Dependencies: {', '.join(depends)}."))
    content = ["", desc, ground, hidden, shade, *cells, "</g>", *boxes, hidden, *drawing.parts, *veils, "</g>", ""]
    view = f"{-side} 0 {svg.number(width)} {svg.number(height)}"
    label = "Constituents of: " + " ".join(layers.words)
    return svg.element(
        "svg", "\n".join(content), class_="parse", width=width, height=height, viewBox=view, role="tree", aria_label=label,
        font_family=svg.CSS,
    )  # fmt: skip


def _chains(root: Placed, index: dict[tuple[int, int], int]) -> dict[int, list[Placed]]:
    """Return, for the index of every span, its nodes from the top: one node, or those of a unary chain."""
    chains: dict[int, list[Placed]] = {}
    for item in walk(root):
        if not item.node.is_leaf and (item.start, item.end) in index:
            chains.setdefault(index[item.start, item.end], []).append(item)
    return chains


def _box(
    i: int, chain: list[Placed], base: float, spans: list[dict], status: str | dict | None, match: bool = False
) -> str:
    """Return the box behind all labels of a constituent, at which one points. The script names it for screen readers.

    status "veil": a white box over the labels, which makes them faint.
    """
    half = max(svg.text_width(item.node.label, LABEL) for item in chain) / 2 + 5
    left = sum(item.x for item in chain) / len(chain) - half
    top, bottom = base - chain[0].level * LEVEL - LABEL, base - chain[-1].level * LEVEL + 5
    kind = " wrong" if status not in (None, "same") else ""
    if status == "veil":
        return svg.element("rect", class_="veil", data_span=i, x=left, y=top, width=2 * half, height=bottom - top)
    peers = [j for j, span in enumerate(spans) if span["parent"] == spans[i]["parent"]]
    rect = svg.element("rect", class_="box", x=left, y=top, width=2 * half, height=bottom - top, rx=4)
    return svg.element(
        "g", rect, class_=f"constituent{kind}" + " match" * match, data_span=i, role="treeitem", tabindex=0 if i == 0 else -1,
        aria_level=spans[i]["level"], aria_posinset=peers.index(i) + 1, aria_setsize=len(peers), aria_selected="false",
    )  # fmt: skip


def _match(start: int, end: int, xs: list[float], slots: list[float], y: float) -> str:
    """Return a frame around the words that a search found."""
    left, right = xs[start] - slots[start] / 2 + 2, xs[end - 1] + slots[end - 1] / 2 - 2
    return svg.element("rect", class_="match", x=left, y=y - WORD - 3, width=right - left, height=WORD + 10, rx=4)


def _cell(column: str, x: float, width: float, y: float) -> list[str]:
    """Return a box behind a word that the script can shade, and a place for a number below it."""
    box = {"x": x - width / 2, "y": y - WORD, "width": width, "height": WORD + 6, "rx": 3}
    number = {"x": x, "y": y + 18, "font_size": NUMBER}
    return [
        svg.element("rect", "<title></title>", class_="heat", data_column=column, **box),
        svg.element("text", "", class_="number", data_column=column, **number, text_anchor="middle"),
    ]
