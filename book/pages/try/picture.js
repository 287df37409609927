// The drawing of a sentence for the explorer: lalkit/draw/explorer/picture.py in JavaScript, without a gold tree to compare with.
import { element, escape, GREY, number, text, textWidth } from "./svg.js";
import { gapOf, LABEL, layOut, LEVEL, MARGIN, readArcs, readTree, TAG_TO_WORD, walk, WORD } from "./layout.js";

const [SIDE, NUMBER, SURE, UNSURE, UNDER_WORDS] = [62, 12, 0.8, 0.5, 24];

// The spans in pre-order, each with its parent (index or null) and its level (1: outermost).
export function inOrder(spans) {
  const [ordered, open] = [[], []];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    while (open.length && ordered[open.at(-1)].end <= span.start) open.pop();
    ordered.push({ ...span, parent: open.at(-1) ?? null, level: open.length + 1 });
    open.push(ordered.length - 1);
  }
  return ordered;
}

// sentence: words, tags, heads, arcLabels; arcProbabilities, or null. spans: as `inOrder` returns them. fonts: a list for CSS.
export function picture(sentence, spans, fonts) {
  const root = readTree({ ...sentence, constituents: spans });
  const index = new Map(spans.map((span, i) => [`${span.start} ${span.end}`, i]));
  const chains = spans.map(() => []); // the nodes of a constituent from the top: one, or a unary chain
  for (const item of walk(root)) {
    item.key = `w${item.end}`;
    if (!item.children.length) continue;
    const i = index.get(`${item.start} ${item.end}`);
    item.key = String(i);
    chains[i].push(item);
  }
  const drawing = layOut(sentence, root, readArcs(sentence), UNDER_WORDS, kindsOf(sentence.arcProbabilities ?? []));
  const { base, width, height } = drawing;
  const boxes = spans.map((span, i) => [span, placeOf(chains[i], base), i]);
  const content = [
    "", element("desc", {}, escape(`Dependencies: ${depends(sentence)}.`)),
    element("rect", { x: 0, y: 0, width, height, fill: "white" }), '<g aria-hidden="true">',
    element("rect", { class: "shade", x: 0, y: base - 16, width: 0, height: TAG_TO_WORD + 24 }), ...cells(drawing, sentence.words), "</g>",
    ...boxes.map(([span, place, i]) => box(spans, span, place, i)), '<g aria-hidden="true">', ...drawing.parts,
    ...boxes.filter(([span]) => span.probability !== undefined).map(([, place, i]) => element("rect", { class: "veil", "data-span": i, ...place })),
    "</g>", "",
  ];
  const look = { class: "parse", width, height, viewBox: `0 0 ${number(width)} ${number(height)}`, role: "tree" };
  return element("svg", { ...look, "aria-label": `Constituents of: ${sentence.words.join(" ")}`, "font-family": fonts }, content.join("\n"));
}

const kindsOf = (probabilities) => new Map(probabilities.flatMap((p, i) => (p < SURE ? [[i + 1, p < UNSURE ? "unsure" : "doubtful"]] : [])));

const depends = ({ words, heads, arcLabels }) => words.map((word, i) =>
  (heads[i] ? `${word} depends on ${words[heads[i] - 1]} (${arcLabels[i]})` : `${word} is the root`)).join(", ");

// A box behind each word that the script can shade, and a place for a number below it; START and STOP at both ends.
function cells({ xs, slots, base, width }, words) {
  const y = base + TAG_TO_WORD;
  const beyond = SIDE / 2 + 4 - MARGIN;
  const ends = [["0", "START", -beyond], ["last", "STOP", width + beyond]];
  return [
    ...xs.flatMap((x, i) => cell(String(i + 1), x, slots[i] - gapOf(words) / 2 + 1, y)),
    ...ends.flatMap(([column, name, x]) => [
      ...cell(column, x, textWidth(name, NUMBER) + 8, y), element("g", { class: "end" }, text(x, y, name, NUMBER, { colour: GREY })),
    ]),
  ];
}

const cell = (column, x, width, y) => [
  element("rect", { class: "heat", "data-column": column, x: x - width / 2, y: y - WORD, width, height: WORD + 6, rx: 3 }, "<title></title>"),
  element("text", { class: "number", "data-column": column, x, y: y + 18, "font-size": NUMBER, "text-anchor": "middle" }, ""),
];

function placeOf(chain, base) {
  const half = Math.max(...chain.map((item) => textWidth(item.label, LABEL))) / 2 + 5;
  const y = base - chain[0].level * LEVEL - LABEL;
  const x = chain.reduce((sum, item) => sum + item.x, 0) / chain.length - half;
  return { x, y, width: 2 * half, height: base - chain.at(-1).level * LEVEL + 5 - y };
}

function box(spans, span, place, i) {
  const peers = spans.flatMap((other, j) => (other.parent === span.parent ? [j] : []));
  const about = {
    class: "constituent", "data-span": i, role: "treeitem", tabindex: i === 0 ? 0 : -1, "aria-level": span.level,
    "aria-posinset": peers.indexOf(i) + 1, "aria-setsize": peers.length, "aria-selected": "false",
  };
  return element("g", about, element("rect", { class: "box", ...place, rx: 4 }));
}
