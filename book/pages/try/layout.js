// Where everything of a joint tree stands: lalkit/draw/tree.py in JavaScript, step by step. A test compares the drawings.
import { BLACK, BLUE, element, GREY, number as n, path, shorten, text, textWidth, VERMILION } from "./svg.js";

export const [WORD, TAG, LABEL, LEVEL, MARGIN, TAG_TO_WORD] = [15, 12, 14, 42, 16, 19];
const [ARC_LABEL, LINE_GAP, GAP, LONG, FIRST, STEP, LEG, CLOSE, CORNER, ARROW, PAD] = [12, 5, 14, 25, 24, 21, 7, 5, 6, 7, 3];
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const room = (item) => textWidth(item.label, LABEL) + GAP;

// The tree of a sentence {words, tags, heads, constituents: [{start, end, label}] in pre-order}. A node has label, start, end,
// level (0: a word), head (its head word, from 0), and children. A unary chain, such as S::VP, is several nodes.
export function readTree({ words, tags, heads, constituents }) {
  const open = [];
  const waiting = [...constituents].reverse();
  let root = null;
  words.forEach((word, i) => {
    while (waiting.at(-1)?.start === i) open.push([waiting.pop(), []]);
    const leaf = { label: tags[i], start: i, end: i + 1, level: 0, head: i, children: [] };
    if (open.length) open.at(-1)[1].push(leaf);
    else root = leaf;
    while (open.at(-1)?.[0].end === i + 1) {
      const [of, children] = open.pop();
      let [inner] = [children];
      for (const label of of.label.split("::").reverse()) inner = [node(of, label, inner, heads)];
      if (open.length) open.at(-1)[1].push(...inner);
      else [root] = inner;
    }
  });
  return root;
}

const node = ({ start, end }, label, children, heads) =>
  ({ label, start, end, level: 1 + Math.max(...children.map((child) => child.level)), head: externalHead(heads, start, end), children });

function externalHead(heads, start, end) {
  const outside = [];
  for (let i = start; i < end; i++) if (!(start < heads[i] && heads[i] <= end)) outside.push(i);
  return outside.length === 1 ? outside[0] : null;
}

// Every node: parents before their children, and children from right to left.
export function walk(root) {
  const stack = [root];
  const items = [];
  while (stack.length) {
    items.push(stack.pop());
    stack.push(...items.at(-1).children);
  }
  return items;
}

export const gapOf = (words) => (words.length <= LONG ? GAP : CLOSE);

// Arcs {dependent, head (0: the root), label, level, offsets} with words from 1: short ones first, and the root's last.
export function readArcs({ words, heads, arcLabels }) {
  const arcs = [];
  const pairs = heads.map((head, i) => [i + 1, head]).filter(([, head]) => head);
  pairs.sort((a, b) => Math.abs(a[0] - a[1]) - Math.abs(b[0] - b[1]) || a[0] - b[0] || a[1] - b[1]);
  for (const [dependent, head] of pairs) {
    const arc = { dependent, head, label: arcLabels[dependent - 1], left: Math.min(dependent, head), right: Math.max(dependent, head), offsets: new Map() };
    const inside = arcs.filter((inner) => arc.left <= inner.left && inner.right <= arc.right).map((inner) => inner.level);
    arc.level = 1 + Math.max(0, ...inside);
    arcs.push(arc);
  }
  const root = heads.indexOf(0) + 1;
  const leg = Math.min(LEG, gapOf(words));
  for (let word = 1; word <= words.length; word++) {
    const first = word === root ? leg : leg / 2; // the root's own line stands in the centre
    for (const side of [-1, 1]) {
      const meeting = arcs.filter((arc) => (side < 0 ? arc.right : arc.left) === word);
      meeting.sort((a, b) => (a.left - a.right) - (b.left - b.right));
      meeting.forEach((arc, k) => arc.offsets.set(word, side * (first + k * leg)));
    }
  }
  const level = 1 + Math.max(0, ...arcs.map((arc) => arc.level));
  return [...arcs, { dependent: root, head: 0, label: arcLabels[root - 1] || "root", left: 0, right: root, level, offsets: new Map([[root, 0]]) }];
}

const arcRoom = ({ label }) => (label ? textWidth(label, ARC_LABEL) + 2 * (CORNER + PAD) : 2 * CORNER);

// kinds: Map from a dependent to the class of its arc's line.
export function layOut(sentence, root, arcs, underWords, kinds) {
  const { words, tags } = sentence;
  const gap = gapOf(words);
  const slots = words.map((word, i) => Math.max(textWidth(shorten(word), WORD), textWidth(tags[i], TAG)) + gap);
  const wide = [...slots]; // the ends of the arcs of a word stand within its slot
  for (const arc of arcs) for (const [word, offset] of arc.offsets) wide[word - 1] = Math.max(wide[word - 1], 2 * Math.abs(offset) + gap);
  const xs = spread(root, wide, arcs);
  const base = MARGIN + (root.level ? LABEL + root.level * LEVEL : TAG);
  const last = arcs.at(-1);
  const under = base + TAG_TO_WORD + underWords;
  const parts = [...treeParts(root, base), ...wordParts(sentence, xs, base), ...arcParts(arcs, xs, under, kinds)];
  const edges = walk(root).map((item) => item.x + (item.children.length ? room(item) : slots[item.start]) / 2);
  const width = Math.max(0, ...edges, xs.at(-1) + wide.at(-1) / 2, xs[last.dependent - 1] + arcRoom(last) / 2) + MARGIN;
  return { parts, xs, slots, base, width, height: under + FIRST + (last.level - 1) * STEP + ARC_LABEL + MARGIN };
}

// Place every node so that each label fits on its arc. Returns the centres of the words.
function spread(root, slots, arcs) {
  const pads = slots.map(() => 0); // extra room to the left of each word
  let xs = place(root, slots, pads);
  for (let round = 0; round < 200; round++) {
    const moved = [...xs];
    let wrong = false;
    for (const arc of [arcs.at(-1), ...arcs.slice(0, -1)]) {
      let [word, missing] = [1, MARGIN - (xs[arc.dependent - 1] - arcRoom(arc) / 2)]; // of the root, which may reach beyond the first word
      if (arc.head) {
        const [start, end] = [arc.left, arc.right].map((one) => moved[one - 1] + arc.offsets.get(one));
        [word, missing] = [arc.right, arcRoom(arc) - (end - start)];
        for (let k = word - 1; k < moved.length; k++) moved[k] += Math.max(missing, 0);
      }
      if (missing > 0.01) {
        wrong = true;
        pads[word - 1] += missing;
      }
    }
    if (!wrong) break;
    xs = place(root, slots, pads);
  }
  return xs;
}

// Set left, width and x of every node, from MARGIN on. Returns the centres of the words.
function place(root, slots, pads) {
  const order = walk(root);
  for (const item of [...order].reverse()) {
    item.width = item.children.length ? Math.max(room(item), sum(item.children.map((child) => child.width))) : slots[item.start] + pads[item.start];
  }
  const xs = slots.map(() => 0);
  root.left = MARGIN;
  for (const item of order) {
    if (!item.children.length) item.x = xs[item.start] = item.left + pads[item.start] + slots[item.start] / 2;
    let left = item.left + (item.width - sum(item.children.map((child) => child.width))) / 2;
    for (const child of item.children) {
      child.left = left;
      left += child.width;
    }
  }
  for (const item of [...order].reverse()) {
    if (!item.children.length) continue;
    const middle = (item.children[0].x + item.children.at(-1).x) / 2;
    item.x = Math.min(Math.max(middle, item.left + room(item) / 2), item.left + item.width - room(item) / 2);
  }
  return xs;
}

// Lines and labels of all constituents. base: the y of the tags' baseline.
function treeParts(root, base) {
  const [plain, thick, labels] = [[], [], []];
  for (const item of walk(root).filter((one) => one.level)) {
    const y = base - item.level * LEVEL;
    const tip = `${item.label}: words ${item.start + 1} to ${item.end}`;
    labels.push(text(item.x, y, item.label, LABEL, { bold: true, tip, "data-of": item.key }));
    for (const child of item.children) {
      const end = base - child.level * LEVEL - (child.children.length ? LABEL : TAG);
      const bend = item.level - child.level === 1 ? end : y + LEVEL - LABEL;
      const line = `M${n(item.x)} ${n(y + LINE_GAP)} L${n(child.x)} ${n(bend)}${end > bend ? ` V${n(end)}` : ""}`;
      const ends = { "data-of": item.key, "data-to": child.key };
      if (item.head !== null && child.head === item.head) thick.push(path(line, { colour: BLUE, width: 2.6, kind: "head", ...ends }));
      else plain.push(path(line, ends));
    }
  }
  return [...plain, ...thick, ...labels];
}

// Tags and words; the root of the dependencies is underlined.
function wordParts({ words, tags, heads }, xs, base) {
  return words.flatMap((word, i) => {
    const isRoot = heads[i] === 0;
    const [y, short, x] = [base + TAG_TO_WORD, shorten(word), xs[i]];
    const half = textWidth(short, WORD) / 2 - 2;
    const parts = [
      text(x, base, tags[i], TAG, { colour: GREY }),
      text(x, y, short, WORD, { bold: isRoot, colour: isRoot ? VERMILION : BLACK, tip: `${i + 1}: ${word}` }),
    ];
    return isRoot ? [...parts, path(`M${n(x - half)} ${n(y + 4)} H${n(x + half)}`, { colour: VERMILION, width: 1.6 })] : parts;
  });
}

// Arcs and their labels, from the line y = base down.
function arcParts(arcs, xs, base, kinds) {
  const [lines, labels] = [[], []];
  for (const arc of arcs) {
    const words = { "data-arc": arc.dependent, "data-head": arc.head };
    const [tipX, tipY] = [xs[arc.dependent - 1] + arc.offsets.get(arc.dependent), base + 2];
    const [neck, far] = [tipY + ARROW, base + FIRST + (arc.level - 1) * STEP];
    let [colour, textColour, line, middle] = [VERMILION, VERMILION, `M${n(tipX)} ${n(far)} V${n(neck)}`, tipX];
    if (arc.head) {
      const fromX = xs[arc.head - 1] + arc.offsets.get(arc.head);
      const [turn, way] = [far - CORNER, tipX > fromX ? CORNER : -CORNER];
      line = `M${n(fromX)} ${n(tipY)} V${n(turn)} Q${n(fromX)} ${n(far)} ${n(fromX + way)} ${n(far)} `
        + `H${n(tipX - way)} Q${n(tipX)} ${n(far)} ${n(tipX)} ${n(turn)} V${n(neck)}`;
      [colour, textColour, middle] = [BLUE, BLACK, (fromX + tipX) / 2];
    }
    lines.push(path(line, { colour, kind: kinds.get(arc.dependent) ?? "", ...words }));
    lines.push(element("polygon", { points: `${n(tipX)},${n(tipY)} ${n(tipX - 3.5)},${n(neck)} ${n(tipX + 3.5)},${n(neck)}`, fill: colour, ...words }));
    if (!arc.label) continue;
    const [half, top] = [textWidth(arc.label, ARC_LABEL) / 2 + PAD, far - ARC_LABEL / 2 - 2];
    labels.push(element("rect", { x: middle - half, y: top, width: 2 * half, height: ARC_LABEL + 4, fill: "white", ...words }));
    labels.push(text(middle, far + 0.34 * ARC_LABEL, arc.label, ARC_LABEL, { colour: textColour, ...words }));
  }
  return [...lines, ...labels];
}
