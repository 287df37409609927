// Draw a sentence: constituents above the words, arcs below them. The boxes lie below the texts, which let the
// pointer through. START and STOP stand at both ends of the words, and under the words is room for numbers.
const SIDE = 62; // room for START on the left and for STOP on the right
const [SURE, UNSURE] = [0.8, 0.5]; // arcs below are drawn faint, and fainter

const write = (kind, x, y, size, text, tip, more = {}) =>
  shape("text", { class: kind, x, y, "font-size": size, "text-anchor": "middle", ...more }, ...(tip ? [shape("title", {}, tip)] : []), text);

function draw(sentence, isFolded, isHidden) {
  const columns = columnsOf(sentence, isFolded);
  const nodes = nodesOf(sentence, columns, isHidden);
  const arcs = arcsOf(sentence, columns);
  const { xs, width } = spread(nodes, columns, arcs);
  const base = MARGIN + (nodes[0].level > 1 ? LABEL + (nodes[0].level - 1) * LEVEL : TAG);
  const under = base + TAG_TO_WORD + UNDER_WORDS;
  const height = under + FIRST + (arcs.at(-1).level - 1) * STEP + ARC_LABEL + MARGIN;
  const side = sentence.attention.length ? SIDE : 0; // only label heads of the whole sentence look at START and STOP
  const places = boxPlaces(sentence, nodes, base);
  const hidden = (...children) => shape("g", { "aria-hidden": "true" }, ...children);
  return shape(
    "svg",
    {
      class: "parse", width: width + 2 * side, height, viewBox: `${-side} 0 ${width + 2 * side} ${height}`,
      role: "tree", "aria-label": `Constituents of: ${sentence.words.join(" ")}`,
    },
    shape("desc", {}, `Dependencies: ${depends(sentence)}.`),
    shape("rect", { class: "ground", x: -side, y: 0, width: width + 2 * side, height }),
    hidden(shape("rect", { class: "shade", y: base - 16, height: TAG_TO_WORD + 24 }), ...cellsOf(columns, xs, base + TAG_TO_WORD, width)),
    ...places.map(([i, place]) => boxOf(sentence, i, place)),
    hidden(
      ...linesOf(sentence, nodes, base), ...columns.flatMap((column, i) => wordOf(sentence, column, xs[i], base, nodes)),
      ...arcs.flatMap((arc) => arcOf(sentence, arc, xs, under)), ...arcs.filter(({ label }) => label).flatMap((arc) => labelOf(arc, xs, under)),
      ...places.filter(([i]) => sentence.spans[i].probability !== undefined).map(([i, place]) => shape("rect", { class: "veil", "data-span": i, ...place })),
    ),
  );
}

const depends = ({ words, heads, arc_labels: labels }) => words.map((word, i) =>
  (heads[i] ? `${word} depends on ${words[heads[i] - 1]}${labels ? ` (${labels[i]})` : ""}` : `${word} is the root`)).join(", ");

// Behind each word a rectangle that can be shaded, and below it a place for a number.
function cellsOf(columns, xs, y, width) {
  const cell = (start, end, x, wide) => [
    shape("rect", { class: "heat", "data-start": start, "data-column": end, x: x - wide / 2, y: y - WORD, width: wide, height: WORD + 6, rx: 3 }, shape("title")),
    write("number", x, y + 18, NUMBER, "", "", { "data-column": end }),
  ];
  const beyond = SIDE / 2 + 4 - MARGIN; // from the edges of the drawing to the centres of START and STOP
  const ends = [[0, "START", -beyond], [columns.at(-1).end + 1, "STOP", width + beyond]];
  return [
    ...columns.flatMap(({ start, end, text, tag }, i) => cell(start + 1, end, xs[i], Math.max(textWidth(text, WORD), textWidth(tag, TAG)) + gapOf(columns) / 2 + 1)),
    ...ends.flatMap(([column, name, x]) => [...cell(column, column, x, textWidth(name, NUMBER) + 8), write("end", x, y, NUMBER, name)]),
  ];
}

// The place of each constituent that is drawn: the box around its labels.
function boxPlaces({ spans }, nodes, base) {
  return spans.flatMap((of, i) => {
    const chain = nodes.filter((node) => node.of === of);
    if (!chain.length) return [];
    const half = Math.max(...chain.map(({ label }) => textWidth(label, LABEL))) / 2 + 5;
    const y = base - chain[0].level * LEVEL - LABEL;
    return [[i, { x: sum(chain.map(({ x }) => x)) / chain.length - half, y, width: 2 * half, height: base - chain.at(-1).level * LEVEL + 5 - y }]];
  });
}

function boxOf({ spans }, i, place) {
  const peers = spans.filter(({ parent }) => parent === spans[i].parent);
  return shape("g", {
    class: `constituent${(spans[i].gold ?? "same") === "same" ? "" : " wrong"}`, "data-span": i, role: "treeitem", tabindex: i ? -1 : 0, "aria-level": spans[i].level,
    "aria-posinset": peers.indexOf(spans[i]) + 1, "aria-setsize": peers.length, "aria-selected": "false",
  }, shape("rect", { class: "box", rx: 4, ...place }));
}

// The labels, and the lines from them: thick ones to the part with the head word.
function linesOf({ tags }, nodes, base) {
  const drawn = nodes.slice(1).filter(({ level }) => level);
  const y = ({ level }) => base - level * LEVEL;
  const line = (node, child) => {
    const end = y(child) - (child.level ? LABEL : tags ? TAG : WORD - TAG_TO_WORD);
    const bend = node.level - child.level === 1 ? end : y(node) + LEVEL - LABEL; // straight down below the next level's labels
    const kind = node.head && child.head === node.head ? "line head" : "line";
    return shape("path", { class: kind, d: `M${node.x} ${y(node) + LINE_GAP} L${child.x} ${bend}${end > bend ? ` V${end}` : ""}` });
  };
  const lines = drawn.flatMap((node) => node.children.filter((child) => child.head !== false).map((child) => line(node, child)));
  const labels = drawn.map((node) => write("label", node.x, y(node), LABEL, node.label, `${node.label}: words ${node.of.start + 1} to ${node.of.end}`));
  return [...lines.sort((a, b) => a.classList.length - b.classList.length), ...labels];
}

// A word with its tag, or a folded constituent as a triangle.
function wordOf({ words, heads }, { fold, start, tag, text }, x, base, nodes) {
  if (fold === undefined) {
    return [write("tag", x, base, TAG, tag), write(heads[start] ? "word" : "word root", x, base + TAG_TO_WORD, WORD, text, `${start + 1}: ${words[start]}`)];
  }
  const label = nodes.findLast((node) => node.of && node.children.some((child) => child.head === false && child.x === x));
  const [half, bottom] = [textWidth(text, WORD) / 2, base + TAG_TO_WORD - WORD - 2];
  const points = `${label.x},${base - LEVEL * label.level + LINE_GAP} ${x - half},${bottom} ${x + half},${bottom}`;
  return [shape("polygon", { class: "fold", points, "data-span": fold }), write("folded", x, base + TAG_TO_WORD, WORD, text, "", { "data-span": fold })];
}

// An arc from the line y = base down, with its arrow at the dependent; the root's comes from below.
function arcOf({ comparison, arc_probabilities: probabilities }, { dependent, head, to, from, level, offsets }, xs, base) {
  const probability = probabilities?.[dependent - 1] ?? 1;
  const sure = probability < UNSURE ? " unsure" : probability < SURE ? " doubtful" : "";
  const kind = `${head ? "" : " root"}${sure} wrong-${comparison?.arcs[dependent - 1]}`;
  const [x, y, far] = [xs[to] + offsets[to], base + 2, base + FIRST + (level - 1) * STEP];
  const [neck, turn, start] = [y + ARROW, far - CORNER, xs[from] + offsets[from]];
  const way = x > start ? CORNER : -CORNER;
  const d = head
    ? `M${start} ${y} V${turn} Q${start} ${far} ${start + way} ${far} H${x - way} Q${x} ${far} ${x} ${turn} V${neck}`
    : `M${x} ${far} V${neck}`;
  const line = shape("path", { class: `arc${kind}`, d, "data-arc": dependent, "data-head": head });
  return [line, shape("polygon", { class: "arrow", points: `${x},${y} ${x - 3.5},${neck} ${x + 3.5},${neck}` })];
}

function labelOf({ label, head, to, from, level, offsets }, xs, base) {
  const x = head ? (xs[to] + offsets[to] + xs[from] + offsets[from]) / 2 : xs[to];
  const [half, far] = [textWidth(label, ARC_LABEL) / 2 + PAD, base + FIRST + (level - 1) * STEP];
  const place = { x: x - half, y: far - ARC_LABEL / 2 - 2, width: 2 * half, height: ARC_LABEL + 4 };
  return [shape("rect", { class: "ground", ...place }), write(head ? "relation" : "relation root", x, far + 0.34 * ARC_LABEL, ARC_LABEL, label)];
}
