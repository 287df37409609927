"""Draw a sentence for the explorer: a joint drawing with boxes to point at and places for shading and numbers.

The boxes lie below the texts; the texts let the pointer through (tree.css). START and STOP stand at both ends of the words.
If there is a gold parse, `compare` says which constituents and arcs differ from it, and the drawing marks them.
"""

from __future__ import annotations

from dataclasses import replace

from lalkit.draw import svg
from lalkit.draw.tree import LABEL, LEVEL, MARGIN, TAG_TO_WORD, WORD, Placed, gap_of, lay_out, read, read_arcs, walk
from lalkit.treebank.tree import Node, Sentence

# These symbols follow the label; they repeat what colours and dashes say.
EXTRA, OTHER = "\u00d7", "\u2260"  # × not in gold; ≠ gold has another label there
MARKS = {"extra": f" {EXTRA}", "head": f" {EXTRA}", "label": f" {OTHER}", "same": ""}
SIDE = 62  # room for START on the left and for STOP on the right
NUMBER = 12  # font size of the attention below the words
SURE, UNSURE = 0.8, 0.5  # arcs below are drawn faint, and fainter
UNDER_WORDS = 24  # from the words' baseline to where the arcs begin: the numbers stand between them


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


def picture(data: dict, spans: list[dict], comparison: dict | None) -> str:
    """Return the <svg> of one sentence for the page.

    Args:
        data: a sentence of the explorer's data.
        spans: its spans as `in_order` returns them.
        comparison: as `compare` returns it.
    """
    layers, arcs = read(data["sentence"]), read_arcs(data["sentence"])
    index = {(span["start"], span["end"]): i for i, span in enumerate(spans)}
    chains: list[list[Placed]] = [[] for _ in spans]  # the nodes of a constituent from the top: one, or a unary chain
    for item in walk(layers.root):
        item.key = f"w{item.end}"
        if item.children:
            item.key = str(index[item.start, item.end])
            chains[index[item.start, item.end]].append(item)
    kinds: dict[int, str] = {}
    if comparison:  # the symbols become part of the labels, so that the layout leaves room for them
        for (top, *_), status in zip(chains, comparison["status"]):
            mark = MARKS["label" if isinstance(status, dict) else status]
            top.node = Node(top.node.label + mark, top.node.children)
        arcs = [replace(arc, label=arc.label + MARKS[comparison["arcs"][arc.dependent - 1]]) for arc in arcs]
        kinds = {i: f"wrong-{what}" for i, what in enumerate(comparison["arcs"], 1) if what != "same"}
    for i, probability in enumerate(data.get("arc_probabilities") or (), 1):
        if probability < SURE:
            kinds[i] = f"{kinds.get(i, '')} {'unsure' if probability < UNSURE else 'doubtful'}".strip()
    drawing = lay_out(layers, arcs, UNDER_WORDS, kinds)
    y = drawing.base + TAG_TO_WORD
    shade = svg.element("rect", class_="shade", x=0, y=drawing.base - 16, width=0, height=TAG_TO_WORD + 24)
    cells = []
    for i, (x, slot) in enumerate(zip(drawing.xs, drawing.slots), 1):  # column 0 is START
        cells += _cell(str(i), x, slot - gap_of(layers.words) / 2 + 1, y)
    beyond = SIDE / 2 + 4 - MARGIN  # from the edges of the joint drawing to the centres of START and STOP
    for column, name, x in (("0", "START", -beyond), ("last", "STOP", drawing.width + beyond)):
        cells += _cell(column, x, svg.text_width(name, NUMBER) + 8, y)
        cells.append(svg.element("g", svg.text(x, y, name, NUMBER, colour=svg.GREY), class_="end"))
    boxes, veils = [], []
    for i, (span, chain) in enumerate(zip(spans, chains)):
        half = max(svg.text_width(item.node.label, LABEL) for item in chain) / 2 + 5
        upper = drawing.base - chain[0].level * LEVEL - LABEL
        place = {"x": sum(item.x for item in chain) / len(chain) - half, "y": upper, "width": 2 * half}
        place["height"] = drawing.base - chain[-1].level * LEVEL + 5 - upper
        wrong = " wrong" * bool(comparison and comparison["status"][i] != "same")
        peers = [j for j, other in enumerate(spans) if other["parent"] == span["parent"]]
        boxes.append(svg.element(
            "g", svg.element("rect", class_="box", **place, rx=4), class_=f"constituent{wrong}", data_span=i,
            role="treeitem", tabindex=0 if i == 0 else -1, aria_level=span["level"], aria_posinset=peers.index(i) + 1,
            aria_setsize=len(peers), aria_selected="false",
        ))  # fmt: skip
        if "probability" in span:  # a white box over the labels, which makes them faint
            veils.append(svg.element("rect", class_="veil", data_span=i, **place))
    side = SIDE if "attention" in data else 0  # only label heads of the whole sentence look at START and STOP
    width, height = drawing.width + 2 * side, drawing.height
    ground = svg.element("rect", x=-side, y=0, width=width, height=height, fill="white")
    hidden = '<g aria-hidden="true">'
    depends = [
        f"{word} depends on {layers.words[arc.head - 1]} ({arc.label})" if arc.head else f"{word} is the root"
        for word, arc in zip(layers.words, sorted(read_arcs(data["sentence"]), key=lambda arc: arc.dependent))
    ]
    desc = svg.element("desc", svg.escape(f"Dependencies: {', '.join(depends)}."))
    content = ["", desc, ground, hidden, shade, *cells, "</g>", *boxes, hidden, *drawing.parts, *veils, "</g>", ""]
    view = f"{-side} 0 {svg.number(width)} {svg.number(height)}"
    label = "Constituents of: " + " ".join(layers.words)
    return svg.element(
        "svg", "\n".join(content), class_="parse", width=width, height=height, viewBox=view, role="tree", aria_label=label,
        font_family=svg.CSS,
    )  # fmt: skip


def _cell(column: str, x: float, width: float, y: float) -> list[str]:
    """Return a box behind a word that the script can shade, and a place for a number below it."""
    box = {"x": x - width / 2, "y": y - WORD, "width": width, "height": WORD + 6, "rx": 3}
    number = {"x": x, "y": y + 18, "font_size": NUMBER}
    return [
        svg.element("rect", "<title></title>", class_="heat", data_column=column, **box),
        svg.element("text", "", class_="number", data_column=column, **number, text_anchor="middle"),
    ]
